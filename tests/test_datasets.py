"""Loaders: every source gives the same arrays, a wrong file is refused, offline is one sentence."""

from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils import Bunch

from tvsvm import datasets
from tvsvm.datasets import (
    DatasetError,
    DatasetNotFoundError,
    available,
    checksum,
    draw_labels,
    load,
)

USPS_COUNTS = (1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """TVSVM_DATA, empty, and an empty data home beside it."""
    place = tmp_path / "data"
    place.mkdir()
    monkeypatch.setenv("TVSVM_DATA", str(place))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    return place


def offline(**options):
    raise URLError("no network")


def two_classes(rng, n=20):
    return {"X": rng.random((n, 3)), "y": np.repeat([-1, 1], n // 2)}


@pytest.mark.parametrize("name", datasets.BUNDLED)
def test_bundled_sets_need_nothing(name, folder):
    dataset = load(name)
    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    np.testing.assert_array_equal(dataset.X, X)
    np.testing.assert_array_equal(dataset.y, y)
    assert available()[name] == "scikit-learn, bundled"


def test_classes_keep_their_numbers():
    dataset = load("digits", classes=(9, 4))
    assert dataset.name == "digits[4, 9]"
    assert load("digits", classes=(0, 1)).name == "digits[0, 1]"
    assert dataset.n_classes == 2
    assert set(dataset.y) == {4, 9}
    assert len(dataset.X) == np.isin(load("digits").y, (4, 9)).sum()
    with pytest.raises(DatasetError, match="0 to 9 of digits"):
        load("digits", classes=(4, 10))
    with pytest.raises(DatasetError, match="at least two"):
        load("digits", classes=(4,))


def test_any_file_with_rows_and_classes_is_a_set(folder, rng):
    splits = {"idxLab4": np.array([[0, 1, 10, 11], [2, 3, 12, 13]], dtype=np.int16)}
    np.savez(folder / "mine.npz", **two_classes(rng), **splits)
    np.savez(folder / "notes.npz", text=np.array("no data set"))
    dataset = load("mine")
    assert set(dataset.y) == {0, 1}  # never -1, which would read as unknown
    np.testing.assert_array_equal(dataset.splits[4], splits["idxLab4"])
    assert available()["mine"] == str(folder / "mine.npz")
    assert "notes" not in available()
    assert not dataset.only([0, 1]).splits


def test_folder_comes_before_data_home(folder, rng, tmp_path):
    home = tmp_path / "home" / "tvsvm"
    home.mkdir(parents=True)
    np.savez(home / "mine.npz", X=np.zeros((2, 1)), y=[0, 1])
    assert load("mine").X.shape == (2, 1)
    np.savez(folder / "mine.npz", **two_classes(rng))
    assert load("mine").X.shape == (20, 3)


def test_changed_file_is_refused(folder, rng, monkeypatch):
    stored = two_classes(rng)
    np.savez(folder / "known.npz", **stored)
    monkeypatch.setitem(datasets.CHECKSUMS, "known", checksum(stored["X"], stored["y"]))
    assert load("known").X.dtype == np.float32
    stored["X"][3, 1] += 1e-9
    np.savez(folder / "known.npz", **stored)
    with pytest.raises(DatasetError, match=r"is not the known that is known here.*anew"):
        load("known")


def test_cora_brings_its_graph(folder, rng, monkeypatch):
    stored = two_classes(rng, n=6)
    monkeypatch.setitem(datasets.CHECKSUMS, "cora", checksum(stored["X"], stored["y"]))
    edges = np.array([[0, 1], [1, 0], [2, 5]])
    np.savez(folder / "cora.npz", **stored, edges=edges, train_idx=[0, 5])
    dataset = load("cora")
    expected = np.zeros((6, 6))
    expected[[0, 1, 2, 5], [1, 0, 5, 2]] = 1
    np.testing.assert_array_equal(dataset.graph.affinity.toarray(), expected)
    np.testing.assert_array_equal(dataset.splits[2], [[0, 5]])


def test_mnist_brings_neighbours_and_splits(folder, rng, monkeypatch):
    stored = two_classes(rng, n=6)
    monkeypatch.setitem(datasets.CHECKSUMS, "mnist", checksum(stored["X"], stored["y"]))
    np.savez(folder / "mnist.npz", **stored)
    assert load("mnist").graph is None
    near = (np.arange(6)[:, None] + [1, 2]) % 6
    np.savez(folder / "mnist_knn10.npz", indices=near, distances=np.ones((6, 2), np.float32))
    np.savez(folder / "mnist_poisson_splits.npz", idx10=[[0, 3]], source="fixed")
    dataset = load("mnist")
    np.testing.assert_array_equal(np.diff(dataset.graph.affinity.indptr), 4)
    np.testing.assert_array_equal(dataset.splits[2], [[0, 3]])


def test_openml_gives_the_arrays_of_the_file(folder, rng, monkeypatch):
    y = rng.permutation(np.repeat(np.arange(10), USPS_COUNTS)).astype(np.uint8)
    steps = rng.integers(0, 2001, size=(len(y), 3))
    steps[0] = 0, 2000, 1000
    bunch = Bunch(data=steps / 2000, target=(y + 1).astype(str))  # [0, 1] and "1" to "10"
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **options: bunch)
    online = load("usps")
    assert "41082" in online.source

    X = (steps / 1000 - 1).astype(np.float32)
    monkeypatch.setitem(datasets.CHECKSUMS, "usps", checksum(X, y))
    np.savez(folder / "usps.npz", X=X, y=y)
    stored = load("usps")
    assert stored.source == str(folder / "usps.npz")
    np.testing.assert_array_equal(stored.X, X)
    for name in ("X", "y"):
        np.testing.assert_array_equal(getattr(online, name), getattr(stored, name))
        assert getattr(online, name).dtype == getattr(stored, name).dtype


def test_openml_set_of_another_shape_is_refused(folder, monkeypatch):
    bunch = Bunch(data=np.eye(3), target=np.array(["1", "2", "2"]))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **options: bunch)
    with pytest.raises(DatasetError, match="Got 3 rows in classes of 1 to 2 instead of 9298"):
        load("usps")


def test_offline_says_so_and_what_there_is(folder, rng, monkeypatch):
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)
    np.savez(folder / "mine.npz", **two_classes(rng))
    expected = r"OpenML.*no network.*TVSVM_DATA.*digits.*mine"
    with pytest.raises(DatasetNotFoundError, match=expected) as info:
        load("usps")
    assert str(info.value).count("\n") == 0


def test_unknown_name(folder):
    with pytest.raises(DatasetNotFoundError, match=r"no data set 'ups'.*usps"):
        load("ups")


@settings(deadline=None, derandomize=True, max_examples=50)
@given(
    counts=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    per_class=st.integers(1, 8),
    draw=st.integers(0, 1000),
    seed=st.integers(0, 5),
)
def test_drawn_labels(counts, per_class, draw, seed):
    y = np.repeat(np.arange(len(counts)), counts)
    rows = draw_labels(y, per_class, draw, seed=seed)
    assert (np.diff(rows) > 0).all()
    expected = [max(1, min(per_class, count // 2)) for count in counts]
    np.testing.assert_array_equal(np.bincount(y[rows], minlength=len(counts)), expected)
    np.testing.assert_array_equal(rows, draw_labels(y, per_class, draw, seed=seed))
    assert set(rows) <= set(draw_labels(y, per_class + 1, draw, seed=seed))


def test_draws_differ():
    y = np.zeros(1000, dtype=int)
    drawn = {tuple(draw_labels(y, 3, draw, seed=seed)) for draw in range(5) for seed in range(5)}
    assert len(drawn) == 25


@pytest.fixture
def rng():
    return np.random.default_rng(0)
