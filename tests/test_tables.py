"""Tables: every kind of file is read whole, written as it was, and appears at once."""

import errno
import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvsvm.tables import open_table, text
from tvsvm.tables.base import TableError
from tvsvm.tables.cells import numbers
from tvsvm.tables.classes import read_classes
from tvsvm.tables.output import check_writable, replacing
from tvsvm.tables.profile import scan


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


@pytest.mark.parametrize("mark", ["\t", "|"])
def test_decimal_commas_beside_other_marks(tmp_path, mark):
    path = tmp_path / ("t.tsv" if mark == "\t" else "t.csv")
    lines = ["a;b;c", "1,5;1,234;2,5", "-0,25;12,000;x"]
    path.write_text("\n".join(lines).replace(";", mark) + "\n")
    (chunk,) = open_table(path).chunks()
    np.testing.assert_array_equal(numbers(chunk.columns["a"]), [1.5, -0.25])
    assert chunk.columns["b"].tolist() == ["1,234", "12,000"]  # perhaps thousands


def test_a_class_with_a_decimal_comma_keeps_it(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;kind\n1,5;2,5\n-2,25;\n")
    (chunk,) = open_table(path).chunks()
    assert chunk.columns["kind"][0] == "2.5"
    out = written(path, {"label": chunk.columns["kind"]})
    assert out.read_text().splitlines()[1] == "1,5;2,5;2,5"


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


def test_a_file_that_changes_meanwhile_is_not_mixed_up(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    table = open_table(path)
    path.write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(TableError, match="changed by another program"):
        table.write(tmp_path / "out.csv", {"c": ["x"]}, silent)


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


def test_neither_devices_nor_folders_of_others_are_written_to(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TableError, match="no usual file"):
        check_writable(tmp_path / "pipe", option="--report", force=True)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(TableError, match="may not write"):
        check_writable(tmp_path / "new.csv", option="--out", force=False)


def test_an_encoding_that_nobody_knows(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match="one that Python knows"):
        open_table(tmp_path / "t.csv", encoding="foo")
