import errno
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvsvm.tables import open_table, text
from tvsvm.tables.base import TableError
from tvsvm.tables.cells import day, numbers, object_array, vector
from tvsvm.tables.classes import check_classes, count_classes, read_classes
from tvsvm.tables.features import BlockScaler, FeatureReader
from tvsvm.tables.output import check_writable, replacing
from tvsvm.tables.profile import scan
from tvsvm.tables.roles import choose_roles, label_column, new_names


def silent(share):
    assert 0 <= share <= 1


def added(n):
    return {"label": ["a,b", "c"] * (n // 2) + ["d"] * (n % 2), "confidence": np.linspace(0, 1, n)}


def rows_of(path, **options):
    table = open_table(path, **options)
    return [
        cells for chunk in table.chunks() for cells in zip(*chunk.columns.values(), strict=True)
    ]


def written(path, new, **options):
    out = path.with_name("out" + path.suffix)
    table = open_table(path, **options)
    list(table.chunks())
    table.write(out, new, silent)
    return out


def profiles_of(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8")
    return scan(open_table(path), silent)


# --- text


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"a,b\n007,1e-5\n", b"a,b,new\n007,1e-5,x\n"),
        (b'a,b\r\n"q ""q""", 1\r\n', b'a,b,new\r\n"q ""q""", 1,x\r\n'),
        (b"\xef\xbb\xbfa,b\n1,2\n", b"\xef\xbb\xbfa,b,new\n1,2,x\n"),
        (b'a;b\n"x\ny";2\n', b'a;b;new\n"x\ny";2;x\n'),
        (b"a,b\n\n1,2\n\n", b"a,b,new\n\n1,2,x\n\n"),
        (b"a,b\n1,2", b"a,b,new\n1,2,x"),
        (b"a|b\n1|2\n", b"a|b|new\n1|2|x\n"),
        ("ä,b\n€,2\n".encode(), "ä,b,new\n€,2,x\n".encode()),
    ],
)
def test_text_is_kept_byte_for_byte(tmp_path, given, expected):
    path = tmp_path / "t.csv"
    path.write_bytes(given)
    assert written(path, {"new": ["x"]}).read_bytes() == expected


CELLS = st.text(alphabet="ab\"'\n\r,;\t 0é", max_size=5)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=6), new=CELLS)
def test_any_cells_go_through_and_new_ones_can_be_read_back(tmp_path_factory, rows, new):
    path = tmp_path_factory.mktemp("t") / "t.tsv"
    header = {"one": 0, "two": 1, "three": 2}
    frame = pd.DataFrame(rows, columns=list(header))
    frame.to_csv(path, index=False, sep="\t", quoting=1, lineterminator="\n")
    out = written(path, {"new": [new] * len(rows)})
    read = rows_of(out)
    assert [cells[:3] for cells in read] == rows
    assert [cells[3] for cells in read] == [new] * len(rows)


def test_lines_count_through_quoted_line_breaks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b\n"x\ny",1\n\nz,2\n')
    (chunk,) = open_table(path).chunks()
    assert chunk.lines.tolist() == [2, 5]


def test_decimal_commas_are_numbers_and_are_written_as_such(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1,5;x\n-2,25;y\n")
    (chunk,) = open_table(path).chunks()
    np.testing.assert_array_equal(numbers(chunk.columns["a"]), [1.5, -2.25])
    assert written(path, {"c": np.array([0.25, 1.0])}).read_text().splitlines()[1] == "1,5;x;0,25"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a,b\n1,2\n1,2,3\n", "line 3 must have 2 cells"),
        (b'a,b\n1,2\n1,"2\n', "line 3 cannot be read"),
        (b"a,a\n1,2\n", "2 columns called 'a'"),
        (b"1,2\n3,4\n", "must hold the column names"),
        (b"\n1,2\n", "it is blank"),
        ("ä,b\n1,2\n".encode("cp1252"), "--encoding cp1252"),
        (b"", "is empty"),
    ],
)
def test_bad_text_gets_a_sentence(tmp_path, content, sentence):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=sentence):
        rows_of(path)


def test_another_encoding_is_kept(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("ä,b\nß,2\n".encode("cp1252"))
    out = written(path, {"c": ["ö"]}, encoding="cp1252")
    assert out.read_bytes() == "ä,b,c\nß,2,ö\n".encode("cp1252")


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    n = 20_000
    path.write_text("a,b,c\n" + "".join(f"{i},{i / 7},some text\n" for i in range(n)))
    monkeypatch.setattr(text, "CHUNK_ROWS", 500)
    table = open_table(path)
    constant = ["x"] * n
    tracemalloc.start()
    for _ in table.chunks():
        pass
    table.write(tmp_path / "out.csv", {"new": constant}, silent)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6


# --- other formats


def test_json_lines_keep_their_text(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a":1.50, "é": "x}"}\n\n{}\r\n{"a": null} ', encoding="utf-8", newline="")
    out = written(path, {"new": ["ü", 2, True]}).read_bytes().decode()
    assert out == ('{"a":1.50, "é": "x}", "new": "ü"}\n\n{"new": 2}\r\n{"a": null, "new": true} ')
    assert [json.loads(line)["new"] for line in out.split("\n") if line.strip()] == ["ü", 2, True]


def test_json_keys_may_come_late(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f'{{"a": {i}}}\n' for i in range(4)) + '{"a": 1, "b": "x"}\n')
    profiles = scan(open_table(path), silent)
    assert (profiles["b"].n_rows, profiles["b"].n_missing) == (5, 4)


FRAME = pd.DataFrame(
    {
        "number": [1.5, None, 3.0],
        "whole": pd.array([1, None, 3], dtype="Int64"),
        "text": ["x", None, "ü"],
        "date": pd.to_datetime(["2020-01-01", None, "2021-05-06"]),
        "list": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    }
)


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_arrow_files_keep_types_and_metadata(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    FRAME.to_parquet(path) if suffix == ".parquet" else FRAME.to_feather(path)
    read = pd.read_parquet if suffix == ".parquet" else pd.read_feather
    out = read(written(path, added(3)))
    pd.testing.assert_frame_equal(out[FRAME.columns], read(path))
    assert out["label"].tolist() == ["a,b", "c", "d"]
    kinds = {name: profile.kind for name, profile in scan(open_table(path), silent).items()}
    assert kinds == {
        "number": "number",
        "whole": "number",
        "text": "category",
        "date": "date",
        "list": "vector",
    }


def test_whole_numbers_with_gaps_are_classes_without_a_point(tmp_path):
    path = tmp_path / "t.parquet"
    FRAME.to_parquet(path)
    (chunk,) = open_table(path).chunks()
    assert read_classes(chunk.columns["whole"].tolist()).tolist() == [1, None, 3]


def test_excel_keeps_formulas_formats_and_other_sheets(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "t.xlsx"
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for row in [["a", "b"], [1, "x"], [2, "=A3*2"]]:
        sheet.append(row)
    sheet["A2"].font = openpyxl.styles.Font(bold=True)
    workbook.create_sheet("other")["A1"] = "kept"
    workbook.save(path)
    out = openpyxl.load_workbook(written(path, added(2)))
    values = [[cell.value for cell in row] for row in out.worksheets[0].iter_rows()]
    assert values == [
        ["a", "b", "label", "confidence"],
        [1, "x", "a,b", 0],
        [2, "=A3*2", "c", 1],
    ]
    assert out.worksheets[0]["A2"].font.bold
    assert out["other"]["A1"].value == "kept"


def test_numpy_files(tmp_path):
    X = np.arange(12.0).reshape(3, 2, 2)
    np.save(tmp_path / "X.npy", X)
    np.savez(tmp_path / "Xy.npz", X=X, y=np.array([0, 1, -1]), other=np.zeros(5))
    (tmp_path / "y.csv").write_text("kind\nx\n\ny\n")
    table = open_table(tmp_path / "X.npy", labels_file=tmp_path / "y.csv")
    (chunk,) = table.chunks()
    assert chunk.columns["given"].tolist() == ["x", "", "y"]
    assert chunk.columns["X"].shape == (3, 4)
    table.write(tmp_path / "out.npz", added(3), silent)
    stored = np.load(tmp_path / "out.npz", allow_pickle=False)
    np.testing.assert_array_equal(stored["X"], X)
    assert stored["label"].tolist() == ["a,b", "c", "d"]
    assert open_table(tmp_path / "Xy.npz").label == "y"
    (tmp_path / "y.csv").write_text("kind\nx\ny\n")
    with pytest.raises(TableError, match="Got 2 in 'given' for 3 rows"):
        open_table(tmp_path / "X.npy", labels_file=tmp_path / "y.csv")


def test_pickles_in_numpy_files_are_refused(tmp_path):
    np.save(tmp_path / "X.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    with pytest.raises(TableError, match="no NumPy file of numbers"):
        open_table(tmp_path / "X.npy")


def test_images_take_labels_from_folders_or_from_a_file(tmp_path):
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "pictures"
    for name in ("cat/1.png", "dog/2.png", "unlabelled/3.png", "4.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        image.new("L", (5, 7), 100).save(folder / name)
    table = open_table(folder)
    assert table.columns["given"].tolist() == [None, "cat", "dog", None]
    assert table.vectors.shape == (4, 32, 32)
    (tmp_path / "labels.csv").write_text("file,kind\n4.png,bird\ncat/1.png,\n")
    table = open_table(folder, labels_file=tmp_path / "labels.csv")
    assert table.columns["given"].tolist() == ["bird", "", None, None]
    (tmp_path / "labels.csv").write_text("file,kind\n5.png,bird\n")
    with pytest.raises(TableError, match=r"'5\.png', which is no image"):
        open_table(folder, labels_file=tmp_path / "labels.csv")
    (folder / "broken.png").write_bytes(b"no image")
    with pytest.raises(TableError, match=r"broken\.png cannot be read"):
        open_table(folder)


# --- cells and columns


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


def test_a_file_that_changes_meanwhile_is_not_mixed_up(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    table = open_table(path)
    path.write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(TableError, match="changed by another program"):
        table.write(tmp_path / "out.csv", {"c": ["x"]}, silent)


def test_classes():
    assert read_classes(["a", " b", "", "NA", None]).tolist() == ["a", "b", None, None, None]
    assert read_classes([0, -1, 1]).tolist() == [0, None, 1]
    assert read_classes([1, -1, None]).tolist() == [1, -1, None]
    assert read_classes([1.0, 2.0, np.nan]).tolist() == [1, 2, None]
    assert read_classes([1, "1b", None]).tolist() == ["1", "1b", None]
    assert read_classes(["x", "todo"], unlabeled="todo").tolist() == ["x", None]
    assert count_classes(read_classes(["b", "a", "b", ""])) == {"a": 1, "b": 2}


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


# --- output


def write_half(path, error):
    with replacing(path) as temporary:
        temporary.write_text("half")
        raise error


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")
    full = OSError(errno.ENOSPC, "No space left on device")
    for error, seen in [(KeyboardInterrupt(), KeyboardInterrupt), (full, TableError)]:
        with pytest.raises(seen):
            write_half(path, error)
    assert [file.name for file in tmp_path.iterdir()] == ["out.csv"]
    assert path.read_text() == "old"
    path.chmod(0o640)
    with replacing(path) as temporary:
        assert temporary.parent == tmp_path
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_links_stay_links(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    with replacing(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "there").write_text("")
    for path, sentence in [
        (tmp_path / "there", "exists already"),
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "file", "does not exist"),
    ]:
        with pytest.raises(TableError, match=sentence):
            check_writable(Path(path), option="--out", force=False)
