"""Labels: every way to write y, what is refused, and values back to classes."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.exceptions import DataConversionWarning

from tvsvm import RLS
from tvsvm.labels import codes_of, distributions_of, read_labels

law = settings(deadline=None, derandomize=True, max_examples=50)
values = st.one_of(
    st.floats(-3, 3),
    st.floats(-1e-15, 1e-15),
    st.floats(-1e300, 1e300),
    st.sampled_from([0.0, 1.0]),
)
functions = st.integers(1, 5).flatmap(lambda c: arrays(float, (6, c), elements=values))

NAN = float("nan")
WAYS_TO_WRITE = {
    "integers": (np.array([3, -1, 1, 3]), [1, 3]),
    "small integers": (np.array([3, -1, 1, 3], dtype=np.int8), [1, 3]),
    "floats": ([3.0, NAN, 1.0, 3.0], [1.0, 3.0]),
    "floats with -1": ([3.0, -1.0, 1.0, 3.0], [1.0, 3.0]),
    "strings": (np.array(["c", "-1", "a", "c"]), ["a", "c"]),
    "strings and -1": (["c", -1, "a", "c"], ["a", "c"]),
    "strings and NaN": (["c", NAN, "a", "c"], ["a", "c"]),
    "strings and None": (["c", None, "a", "c"], ["a", "c"]),
    "objects and -1": (np.array(["c", -1, "a", "c"], dtype=object), ["a", "c"]),
    "booleans": ([True, None, False, True], [False, True]),
    "objects": (np.array([3, None, 1, 3], dtype=object), [1, 3]),
    "series": (pd.Series(["c", None, "a", "c"]), ["a", "c"]),
    "Int64": (pd.Series([3, pd.NA, 1, 3], dtype="Int64"), [1, 3]),
    "boolean": (pd.Series([True, pd.NA, False, True], dtype="boolean"), [False, True]),
    "string": (pd.Series(["c", pd.NA, "a", "c"], dtype="string"), ["a", "c"]),
    "categorical": (pd.Categorical(["c", None, "a", "c"], categories=["c", "a"]), ["a", "c"]),
    "categorical numbers": (pd.Series(pd.Categorical([3, None, 1, 3])), [1, 3]),
    "dates": (pd.Series(pd.to_datetime(["2021", None, "2020", "2021"])), None),
}


@pytest.mark.parametrize("way", WAYS_TO_WRITE)
def test_all_ways_to_write_labels_mean_the_same(way):
    y, classes = WAYS_TO_WRITE[way]
    labels = read_labels(y, 4)
    np.testing.assert_array_equal(labels.codes, [1, -1, 0, 1])
    np.testing.assert_array_equal(labels.rows, [0, 2, 3])
    if classes is not None:
        assert labels.classes.tolist() == classes
        assert all(
            type(a) is type(b) for a, b in zip(labels.classes.tolist(), classes, strict=True)
        )


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, bool, "U3", object])
def test_classes_keep_the_type_of_y(dtype):
    y = np.array(["0", "1"] if dtype in ("U3", object) else [0, 1]).astype(dtype)
    assert read_labels(y, 2).classes.dtype == y.dtype


@pytest.mark.parametrize(
    ("y", "unlabeled", "codes"),
    [
        ([-1, 1, 0], 0, [0, 1, -1]),
        ([-1, 1, np.nan], 1, [0, -1, -1]),
        (["?", "-1", "a"], "?", [-1, 0, 1]),
        (["nan", "b", None], "b", [0, -1, -1]),
        ([1, 2, 3], "?", [0, 1, 2]),
    ],
)
def test_only_the_given_value_and_missing_values_are_unknown(y, unlabeled, codes):
    np.testing.assert_array_equal(read_labels(y, 3, unlabeled=unlabeled).codes, codes)


def test_ignored_labels_are_unknown_and_their_class_does_not_exist():
    labels = read_labels([0, 1, 2], 3, ignore=np.array([False, True, False]))
    np.testing.assert_array_equal(labels.codes, [0, -1, 1])
    np.testing.assert_array_equal(labels.classes, [0, 2])


def test_targets():
    np.testing.assert_array_equal(read_labels([5, -1, 7], 3).targets, [[-1], [1]])
    np.testing.assert_array_equal(read_labels([2, 0, -1, 1], 4).targets, np.eye(3)[[2, 0, 1]])
    np.testing.assert_array_equal(read_labels([5, -1, 5], 3).targets, [[-1], [-1]])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([-1, -1, -1], "Got 0 labels for 3 rows; label at least one row of each class"),
        ([None, NAN, pd.NA], "Got 0 labels for 3 rows"),
        ([0, 1], "Got 2 for 3 rows"),
        (None, "requires y to be passed, but the target y is None"),
        (np.zeros((3, 2)), "y should be a 1d array"),
        ([0.5, 1.0, -1.0], "continuous.* Got 0.5"),
        ([np.inf, 1.0, 0.0], "continuous.* Got inf"),
        ([np.inf] * 3, "continuous"),
        (np.array([1, "a", None], dtype=object), "Got int, str; convert"),
        (np.array([(1,), (2,), None], dtype=object), "Unknown label type.* Got tuple"),
        ([{}, {}, {}], "Unknown label type.* Got dict"),
    ],
)
def test_refusals(y, message):
    with pytest.raises(ValueError, match=message):
        read_labels(y, 3)


def test_a_column_is_accepted_with_scikit_learns_warning():
    with pytest.warns(DataConversionWarning):
        labels = read_labels(np.array([[0], [1], [-1]]), 3)
    np.testing.assert_array_equal(labels.codes, [0, 1, -1])


def test_y_is_not_modified():
    y = np.array([0, 1, -1])
    y.flags.writeable = False
    read_labels(y, 3)


@law
@given(F=functions)
def test_distributions_agree_with_the_choice(F):
    n_classes = max(2, F.shape[1])
    P = distributions_of(F, n_classes)
    assert P.shape == (6, n_classes)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(P.argmax(axis=1), codes_of(F))


def test_distributions_by_hand():
    F = np.array([[0.0], [0.5], [-1.0], [7.0], [-0.2]])
    P = distributions_of(F, 2)
    np.testing.assert_allclose(P[:, 1], [0.5, 0.75, 0, 1, 0.4])
    np.testing.assert_array_equal(codes_of(F), [0, 1, 0, 1, 0])
    np.testing.assert_allclose(distributions_of(np.zeros((1, 4)), 4), 0.25)
    np.testing.assert_allclose(distributions_of(np.array([[-1.0]]), 1), 1.0)


@law
@given(f=st.lists(st.floats(-2, 2), min_size=2, max_size=10))
def test_two_class_probabilities_rise_with_the_value(f):
    P = distributions_of(np.sort(f)[:, None], 2)
    assert (np.diff(P[:, 1]) >= 0).all()


@pytest.mark.parametrize("big", [2**63, 2**53])
def test_integers_that_no_number_of_64_bits_tells_apart(big):
    y = [big + 1, big, -7 if big > 2**60 else 7.0, None]
    with pytest.raises(ValueError, match="stay different"):
        read_labels(np.array(y, dtype=object), 4)


@pytest.mark.parametrize(
    ("y", "doubt"),
    [
        ([1, -1, None], "missing"),
        ([1.0, 0.0, -1.0, np.nan], "missing"),
        ([1, -1, -1], "only other value"),
        ([0, 1, -1], ""),  # as usual
        ([0, -1, -1], ""),
        ([1, 0, None], ""),
        (["a", "-1", None], ""),
    ],
)
def test_minus_one_that_may_be_a_class_is_told(y, doubt):
    y = np.array(y, dtype=object)
    found = read_labels(y, len(y))
    assert doubt in found.doubt
    assert bool(found.doubt) == bool(doubt)
    for said in (-1, float("nan")):
        assert not read_labels(y, len(y), unlabeled=said).doubt
    X = np.arange(len(y), dtype=float)[:, None]
    with pytest.warns(UserWarning, match="unlabeled=") if doubt else nullcontext():
        RLS().fit(X, y)
