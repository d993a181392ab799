"""Columns of a table: what their cells hold, what each is for, and how they become numbers."""

import numpy as np
import pytest

from tvsvm.tables import open_table
from tvsvm.tables.base import TableError
from tvsvm.tables.cells import day, numbers, object_array, vector
from tvsvm.tables.classes import (
    check_classes,
    count_classes,
    read_classes,
    words_for_nothing,
)
from tvsvm.tables.features import BlockScaler, FeatureReader
from tvsvm.tables.profile import scan
from tvsvm.tables.roles import choose_roles, label_column, new_names


def silent(share):
    assert 0 <= share <= 1


def profiles_of(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8")
    return scan(open_table(path), silent)


def test_cells():
    assert day("2020-01-02") - day("2020-01-01") == 1
    assert day("2020-01-01T12:00:00+00:00") == day("2020-01-01") + 0.5
    assert day("01.02.2020") == day("2020-02-01")
    assert np.isnan([day("12345678"), day("x"), day("2020-13-01"), day(None)]).all()
    assert vector("[1, 2.5]").tolist() == [1, 2.5]
    assert all(vector(cell) is None for cell in ("[1, null]", "[a", "[]", "1", [[1]], [np.inf]))
    cells = object_array(["1", " 2 ", "1e-3", "", "x", "inf", "nan", None, 4])
    np.testing.assert_array_equal(numbers(cells), [1, 2, 1e-3] + [np.nan] * 5 + [4])


def test_kinds_ids_and_constants(tmp_path):
    lines = [
        f'{i},{i * 3 % 50},n{i},{"ab"[i % 2]},2020-01-{i % 28 + 1:02d},"[{i}, 1]",,same,{i}'
        for i in range(60)
    ]
    header = "count,number,name,category,date,vector,empty,constant,user_id\n"
    profiles = profiles_of(tmp_path, header + "\n".join(lines))
    kinds = {name: profile.kind for name, profile in profiles.items()}
    assert kinds == {
        "count": "number",
        "number": "number",
        "name": "text",
        "category": "category",
        "date": "date",
        "vector": "vector",
        "empty": "empty",
        "constant": "category",
        "user_id": "number",
    }
    roles = choose_roles(profiles, label=None)
    assert [feature.name for feature in roles.features] == ["number", "category", "date", "vector"]
    assert roles.ids == ["count", "name", "user_id"]
    assert set(roles.left_out) == {"count", "name", "empty", "constant", "user_id"}


def test_a_million_categories_are_left_out_or_refused(tmp_path):
    rows = "".join(f"v{i % 1500},{i % 7}\n" for i in range(4000))
    profiles = profiles_of(tmp_path, "c,x\n" + rows)
    assert len(profiles["c"].values) <= 1001
    assert [feature.name for feature in choose_roles(profiles, label=None).features] == ["x"]
    with pytest.raises(TableError, match="more than 1,000 different values in 4,000 rows"):
        choose_roles(profiles, label=None, features=["c"])


def test_columns_by_name(tmp_path):
    profiles = profiles_of(tmp_path, 'a,"b,c",label\n1,2,x\n3,5,\n7,6,y\n')
    roles = choose_roles(profiles, label="label", features=["b,c", "a:category"])
    assert [(f.name, f.kind) for f in roles.features] == [("a", "category"), ("b,c", "number")]
    assert label_column(profiles, None) == "label"
    for features, sentence in [
        (["a,z"], "the column 'z'"),
        (["a:colour"], "column:kind"),
        (["label"], "cannot be a feature and the label"),
    ]:
        with pytest.raises(TableError, match=sentence):
            choose_roles(profiles, label="label", features=features)
    with pytest.raises(TableError, match="did you mean 'label'"):
        label_column(profiles, "lable")


def test_columns_of_earlier_runs_are_not_learnt_from(tmp_path):
    header = "x,kind,label,confidence,reachable\n"
    profiles = profiles_of(tmp_path, header + "1,a,a,1,true\n2,,b,0.5,true\n4,b,b,1,true\n")
    assert [f.name for f in choose_roles(profiles, label="kind").features] == ["x"]
    # A column of the user's own that happens to have the name is one.
    profiles = profiles_of(tmp_path, "confidence,label\n1,a\n2,\n4,b\n")
    assert [f.name for f in choose_roles(profiles, label="label").features] == ["confidence"]
    assert new_names(["x"])["label"] == "label"
    assert new_names(["label"])["confidence"] == "tvsvm_confidence"
    assert new_names(["label", "tvsvm_label"])["label"] == "tvsvm_2_label"


def test_an_index_is_an_id_only_if_no_value_comes_twice(tmp_path):
    rows = "".join(f"{i * 7 % 40},{i % 3},{i % 4}.5,{i}\n" for i in range(40))
    profiles = profiles_of(tmp_path, "index,key,glycemic index,n\n" + rows)
    assert [f.name for f in choose_roles(profiles, label=None).features] == [
        "key",
        "glycemic index",
    ]


def test_an_empty_column_is_not_taken_for_the_labels(tmp_path):
    content = "x,junk,kind\n1,,a\n2,,\n4,,b\n"
    assert label_column(profiles_of(tmp_path, content), None) == "kind"
    assert label_column(profiles_of(tmp_path, "x,kind\n1,\n2,\n"), None) == "kind"


def test_of_several_columns_with_gaps_the_name_decides(tmp_path):
    rows = "1,,a,\n,2,,b\n3,3,a,b\n"
    assert label_column(profiles_of(tmp_path, "u,v,Class,w\n" + rows), None) == "Class"
    for header in ("u,v,t,w", "u,v,label,target"):
        with pytest.raises(TableError, match="Several columns have gaps"):
            label_column(profiles_of(tmp_path, header + "\n" + rows), None)


def test_classes():
    assert read_classes(["a", " b", "", "NA", None]).tolist() == ["a", "b", None, None, None]
    assert read_classes([0, -1, 1]).tolist() == [0, None, 1]
    assert read_classes([1, -1, None]).tolist() == [1, -1, None]
    assert read_classes([1.0, 2.0, np.nan]).tolist() == [1, 2, None]
    assert read_classes([1, "1b", None]).tolist() == ["1", "1b", None]
    assert read_classes(["x", "todo"], unlabeled="todo").tolist() == ["x", None]
    assert count_classes(read_classes(["b", "a", "b", ""])) == {"a": 1, "b": 2}


def test_words_for_nothing_are_classes_if_another_text_means_unknown():
    cells = ["none", "low", "", "NA", None]
    assert read_classes(cells).tolist() == [None, "low", None, None, None]
    assert read_classes(cells, unlabeled="").tolist() == ["none", "low", None, "NA", None]
    assert words_for_nothing(cells) == ["NA", "none"]
    assert words_for_nothing(["NA", "low", "NA"]) == []  # nothing else says what is unknown


@pytest.mark.parametrize("cell", ["9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00"])
def test_the_first_and_last_day_there_is(cell):
    assert abs(day(cell)) > 700_000


@pytest.mark.parametrize("cell", ["[" * 100_000, f"[1{'0' * 400}, 2]"])
def test_lists_beyond_all_bounds_are_no_vectors(cell):
    assert vector(cell) is None


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({}, "no labels"),
        ({"a": 3}, "one class only, 'a' in 3 rows"),
        ({i / 7: 1 for i in range(1, 30)}, "Got numbers such as"),
        ({f"c{i}": 1 for i in range(101)}, "101 labels, all different"),
    ],
)
def test_labels_that_nothing_can_be_learnt_from(counts, sentence):
    with pytest.raises(TableError, match=sentence):
        check_classes(counts, "y")


def read_features(tmp_path, content, **options):
    path = tmp_path / "f.csv"
    path.write_text(content)
    table = open_table(path)
    profiles = scan(table, silent)
    roles = choose_roles(profiles, label=None, **options)
    n_rows = next(iter(profiles.values())).n_rows
    reader = FeatureReader(roles.features).learn(table.chunks(), n_rows, table.place)
    return reader, np.concatenate([reader(chunk, "line") for chunk in table.chunks()])


def test_features_are_imputed_scaled_and_encoded(tmp_path):
    rows = [f"{i % 5 if i else ''},{'ab'[i % 2]},2020-01-0{i % 9 + 1}" for i in range(20)]
    _, X = read_features(tmp_path, "x,c,d\n" + "\n".join(rows))
    assert X.dtype == np.float32
    assert X.shape == (20, 4)
    np.testing.assert_allclose(X[:, :2].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(X[:, :2].std(axis=0), 1, atol=1e-6)
    np.testing.assert_array_equal(X[:4, 2:], [[1, 0], [0, 1], [1, 0], [0, 1]])
    assert abs(X[0, 0]) < 0.2  # the median, not a gap


def test_vectors_keep_their_proportions(tmp_path):
    rng = np.random.default_rng(0)
    V = rng.normal(size=(50, 3)) * [1, 2, 3]
    scaled = BlockScaler().fit_transform(V)
    np.testing.assert_allclose(scaled.var(axis=0).mean(), 1)
    np.testing.assert_allclose(
        np.diff(V[:2], axis=0) / np.diff(scaled[:2], axis=0), BlockScaler().fit(V).scale_
    )
    _, X = read_features(tmp_path, "v\n" + "\n".join(f'"{row.tolist()}"' for row in V))
    np.testing.assert_allclose(X, scaled, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [1e300, 1e-20])
def test_numbers_of_any_size_are_scaled(tmp_path, scale):
    rows = "".join(f"{i * 3 % 7 * scale!r}\n" for i in range(20))
    _, X = read_features(tmp_path, "x\n" + rows)
    np.testing.assert_allclose([X.mean(), X.std()], [0, 1], atol=1e-5)


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [("abc", "'abc' in line 5"), ("inf", "'inf' in line 5"), ("1 000", "'1 000' in line 5")],
)
def test_unreadable_numbers_are_told_with_their_line(tmp_path, cell, sentence):
    rows = [str(i * 0.5) for i in range(30)]
    rows[3] = cell
    with pytest.raises(TableError, match=f"Column 'x' must hold finite numbers. Got {sentence}"):
        read_features(tmp_path, "x,z\n" + "\n".join(f"{row},{i % 3}" for i, row in enumerate(rows)))


def test_unreadable_vectors_are_told_with_their_line(tmp_path):
    rows = ['"[1, 2]"'] * 12 + ['"[1, 2, 3]"']
    with pytest.raises(
        TableError, match=r"lists of 2 finite numbers\. Got '\[1, 2, 3\]' in line 14"
    ):
        read_features(tmp_path, "v\n" + "\n".join(rows))
