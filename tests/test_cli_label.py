import errno
import json
import re
from html import escape

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tvsvm.cli import fitting
from tvsvm.cli.main import app
from tvsvm.estimators import capacity
from tvsvm.persistence import load_model
from tvsvm.tables import base, text

N = 60
SIDE = np.arange(N) % 2


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def frame(labelled=8):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "customer_id": [f"{i:04d}" for i in range(N)],
            "height": np.round(rng.normal(size=N) + 4 * SIDE, 3),
            "colour": np.array(["red", "blue"])[SIDE],
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 9, N), "D"),
            "kind": np.where(np.arange(N) < labelled, np.array(["cat", "dog"])[SIDE], None),
        }
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "pets.csv"
    frame().to_csv(path, index=False)
    return path


def files(folder):
    return sorted(path.name for path in folder.iterdir())


WRITERS = {
    ".csv": lambda data, path: data.to_csv(path, index=False),
    ".tsv": lambda data, path: data.to_csv(path, index=False, sep="\t"),
    ".parquet": lambda data, path: data.to_parquet(path),
    ".feather": lambda data, path: data.to_feather(path),
    ".xlsx": lambda data, path: data.to_excel(path, index=False),
    ".jsonl": lambda data, path: data.to_json(
        path, orient="records", lines=True, date_format="iso"
    ),
}
READERS = {
    ".csv": lambda path: pd.read_csv(path, dtype={"customer_id": str}),
    ".tsv": lambda path: pd.read_csv(path, sep="\t", dtype={"customer_id": str}),
    ".parquet": pd.read_parquet,
    ".feather": pd.read_feather,
    ".xlsx": pd.read_excel,
    ".jsonl": lambda path: pd.read_json(path, lines=True, dtype={"customer_id": str}),
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_comes_back_with_three_columns(tmp_path, suffix):
    path = tmp_path / f"pets{suffix}"
    WRITERS[suffix](frame(), path)
    before = path.read_bytes()
    result = run("label", path, "--method", "LapRLS", "--neighbors", 5)
    assert result.exit_code == 0, result.stderr
    assert path.read_bytes() == before
    out = READERS[suffix](tmp_path / f"pets.labelled{suffix}")
    assert out.columns.tolist() == [*frame().columns, "label", "confidence", "reachable"]
    assert out["label"].tolist() == np.array(["cat", "dog"])[SIDE].tolist()
    assert out["confidence"].between(0, 1).all()
    assert out["reachable"].all()
    assert set(files(tmp_path)) == {f"pets.labelled{suffix}", f"pets{suffix}"}


def test_the_default_method_text_and_notes(table):
    result = run("label", table)
    assert result.exit_code == 0, result.stderr
    lines = (table.parent / "pets.labelled.csv").read_text().splitlines()
    assert [line.rsplit(",", 3)[0] for line in lines] == table.read_text().splitlines()
    assert "60 rows, 8 labels of 2 classes in 'kind'" in result.stdout
    assert re.search(r"^AutoTV \w.* \(of 8 labels held back it missed", result.stdout, re.MULTILINE)
    assert "'customer_id' is left out: it looks like an id" in result.stderr
    again = run("label", table, "--out", table.parent / "again.csv")
    assert again.exit_code == 0
    assert (table.parent / "again.csv").read_text().splitlines() == lines


def test_numpy_and_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4)) + 5 * SIDE[:, None]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", np.where(np.arange(N) < 6, SIDE, -1))
    result = run(
        "label", tmp_path / "X.npy", "--labels-file", tmp_path / "y.npy", "--method", "RLS"
    )
    assert result.exit_code == 0, result.stderr
    stored = np.load(tmp_path / "X.labelled.npz")
    np.testing.assert_array_equal(stored["label"], SIDE)
    np.testing.assert_array_equal(stored["X"], X)

    for row in range(N):
        folder = tmp_path / "pictures" / (("dark", "light")[SIDE[row]] if row < 6 else "unlabelled")
        folder.mkdir(parents=True, exist_ok=True)
        shade = rng.integers(0, 50, (8, 8)) + 200 * SIDE[row]
        image.fromarray(shade.astype(np.uint8)).save(folder / f"{row:02d}.png")
    result = run("label", tmp_path / "pictures", "--method", "RLS", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["ids"] == ["file"]
    out = pd.read_csv(tmp_path / "pictures.labelled.csv")
    shades = out["file"].str[-6:-4].astype(int).map(lambda row: ("dark", "light")[SIDE[row]])
    assert (out["label"] == shades).all()


def test_json_is_all_there_is_on_standard_output(table):
    result = run("label", table, "--method", "RLS", "--json", "--seed", 3)
    values = json.loads(result.stdout)
    assert values["rows"] == N
    assert values["labels"] == {"cat": 4, "dog": 4}
    assert values["classes"] == {"cat": 30, "dog": 30}
    assert values["features"] == {"height": "number", "colour": "category", "joined": "date"}
    assert values["output"] == str(table.parent / "pets.labelled.csv")
    assert (values["method"], values["chosen"], values["reason"]) == ("RLS", None, None)
    assert values["notes"] == ["column 'customer_id' is left out: it looks like an id"]


def test_quiet_says_nothing(table):
    result = run("label", table, "--method", "RLS", "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_dry_run_writes_nothing(table):
    result = run("label", table, "--dry-run")
    assert result.exit_code == 0, result.stderr
    assert "AutoTV would take about" in result.stdout
    assert files(table.parent) == ["pets.csv"]
    values = json.loads(run("label", table, "--dry-run", "--json").stdout)
    assert values["expected_bytes"] > 0
    assert values["expected_seconds"] > 0


def test_never_over_a_file_unless_asked(table):
    before = table.read_bytes()
    assert run("label", table, "--method", "RLS").exit_code == 0
    again = run("label", table, "--method", "RLS")
    assert (again.exit_code, "pass --force" in again.stderr) == (1, True)
    assert run("label", table, "--method", "RLS", "--force").exit_code == 0
    same = run("label", table, "--out", table, "--force")
    assert (same.exit_code, "--in-place" in same.stderr) == (1, True)
    assert table.read_bytes() == before
    assert run("label", table, "--method", "RLS", "--in-place").exit_code == 0
    assert table.read_text().splitlines()[0].endswith(",kind,label,confidence,reachable")


def test_a_second_run_does_not_learn_from_the_first(table):
    for _ in range(2):
        result = run("label", table, "--method", "RLS", "--in-place", "--label", "kind", "--json")
        assert list(json.loads(result.stdout)["features"]) == ["height", "colour", "joined"]
    assert (
        table.read_text()
        .splitlines()[0]
        .endswith("reachable,tvsvm_label,tvsvm_confidence,tvsvm_reachable")
    )


def test_config_gives_defaults_and_the_command_line_wins(table, tmp_path):
    config = tmp_path / "run.toml"
    config.write_text(
        'method = "LapRLS"\nneighbors = 3\nfeatures = ["height"]\njson = true\nseed = 1\n'
    )
    values = json.loads(run("label", table, "--config", config).stdout)
    assert (values["method"], list(values["features"])) == ("LapRLS", ["height"])
    values = json.loads(
        run("label", table, "--config", config, "--method", "LapSVM", "--force").stdout
    )
    assert values["method"] == "LapSVM"
    for content, code in [("colour = 1", 2), ("neighbors = 'many'", 2), ("= 1", 2)]:
        config.write_text(content)
        assert run("label", table, "--config", config).exit_code == code
    config.write_text("method = 'TVRLS'\nprior = { cat = 0.5, dog = 0.5 }\n")
    assert run("label", table, "--config", config, "--force").exit_code == 0


def test_options_reach_the_classifier(table, monkeypatch):
    seen = {}

    def spy(study, choices, console):
        seen.update(choices.classifier(["cat", "dog"]).get_params())
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "fit", spy)
    options = ["--neighbors", 7, "--metric", "cosine", "--prior", "dog=0.7,cat=0.3", "--jobs", 2]
    assert run("label", table, *options, "--seed", 5, "--method", "TVSVM").exit_code == 130
    expected = {"n_neighbors": 7, "metric": "cosine", "class_prior": [0.3, 0.7], "n_jobs": 2}
    assert {name: seen[name] for name in expected} == expected
    assert seen["random_state"] == 5


BAD = {
    "empty.csv": ("", "is empty"),
    "header.csv": ("a,b,label\n", "has no rows"),
    "no_gaps.csv": ("a,label\n1,x\n2,y\n3,x\n", "No column of .* has gaps"),
    "two_gaps.csv": ("a,b,kind\n1,,x\n2,1,\n3,1,y\n", "Several columns have gaps: 'b', 'kind'"),
    "one_class.csv": ("a,label\n1,x\n2.5,\n3,x\n", "one class only, 'x' in 2 rows"),
    "all_text.csv": (
        "t,label\n" + "".join(f"{'long ' * 9}{i},{'xy'[i % 2]}\n" for i in range(9)) + "short,\n",
        "No column is left .*'t': it is text",
    ),
    "ragged.csv": ("a,label\n1,x\n2,y,z\n3,\n", "line 3 must have 2 cells"),
    "cell.csv": (
        "a,label\n" + "".join(f"{i}.5,{'xy'[i % 2]}\n" for i in range(20)) + "oops,\n",
        "Got 'oops' in line 22",
    ),
    "lines.jsonl": ('{"a": 1}\nnot json\n', "line 2 is not JSON"),
    "x.parquet": ("no parquet", "is no parquet file"),
    "x.xlsx": ("no workbook", "is no Excel workbook"),
    "x.npy": ("no array", "is no NumPy file"),
    "x.docx": ("text", "is of no kind that can be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_get_one_sentence_and_leave_nothing(tmp_path, name):
    content, sentence = BAD[name]
    (tmp_path / name).write_text(content)
    result = run("label", tmp_path / name)
    assert result.exit_code == 1
    assert result.stdout == ""
    last = result.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert re.search(sentence, last)
    assert files(tmp_path) == [name]


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--label", "knd"], 1, "did you mean 'kind'"),
        (["--features", "height,weight"], 1, "the column 'weight'"),
        (["--prior", "cat=1"], 1, "'dog' without a share"),
        (["--prior", "cat=0.3,dog=0.3,fox=0.4"], 1, "'fox' without a label"),
        (["--prior", "half"], 1, "'uniform' or shares"),
        (["--prior", "uniform"], 1, "or pass --method TVRLS, TVSVM, CheegerRLS or CheegerSVM."),
        (["--method", "RLS", "--neighbors", "3"], 1, "--neighbors means nothing to RLS"),
        (["--jobs", "0"], 1, "--jobs must be positive, or -1 for all cores"),
        (["--metric", "far"], 1, "--metric must be one of"),
        (["--out", "pets.parquet"], 1, "in the format of the input"),
        (["--out", "no/where.csv"], 1, "does not exist"),
        (["--labels-file", "y.npy"], 1, "--labels-file is for"),
        (["--method", "KNN"], 2, "KNN"),
        (["--neighbors", "0"], 2, None),
        (["--nonsense"], 2, None),
    ],
)
def test_bad_options(table, options, code, sentence):
    result = run("label", table, *options)
    assert result.exit_code == code
    assert files(table.parent) == ["pets.csv"]
    assert sentence is None or sentence in result.stderr


def test_a_file_that_is_not_there(tmp_path):
    result = run("label", tmp_path / "none.csv")
    assert (result.exit_code, "does not exist" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyboardInterrupt(), 130, "Interrupted; no file was changed"),
        (MemoryError(), 1, "Not enough memory"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "the disk is full"),
        (PermissionError(errno.EACCES, "Permission denied", "pets.csv"), 1, "Permission denied"),
    ],
)
def test_whatever_stops_the_writing_leaves_nothing(table, monkeypatch, error, code, sentence):
    def half(self, path, added, progress):
        path.write_text("half")
        raise error

    before = table.read_bytes()
    monkeypatch.setattr(text.TextTable, "write", half)
    result = run(
        "label", table, "--method", "RLS", "--in-place", "--save-model", table.parent / "m"
    )
    assert result.exit_code == code
    assert sentence in result.stderr
    assert files(table.parent) == ["pets.csv"]
    assert table.read_bytes() == before


def test_if_the_model_cannot_be_saved_no_table_appears(table, monkeypatch):
    import tvsvm.persistence

    def fail(path, model):
        raise KeyboardInterrupt

    monkeypatch.setattr(tvsvm.persistence, "save_model", fail)
    result = run("label", table, "--method", "RLS", "--save-model", table.parent / "m.skops")
    assert result.exit_code == 130
    assert files(table.parent) == ["pets.csv"]


def test_too_little_memory_is_told_before_it_is_taken(table, monkeypatch):
    monkeypatch.setattr(capacity, "available_memory", lambda: 1e3)
    result = run("label", table)
    assert (result.exit_code, "and 1 MB are free" in result.stderr) == (1, True)


def test_too_little_memory_for_the_fit_is_told_in_its_sentence(table, monkeypatch):
    monkeypatch.setattr(capacity, "available_memory", lambda: 50e3)
    result = run("label", table, "--method", "LapRLS")
    assert result.exit_code == 1
    assert "error: LapRLS needs about 1 MB of memory for 60 rows" in result.stderr


def test_a_missing_package_is_named(table, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(base, "import_module", missing)
    result = run("label", table)
    assert result.exit_code == 1
    assert "needs pandas" in result.stderr
    assert "pip install 'tvsvm[tables]'" in result.stderr


def test_minus_one_means_unknown_in_a_column_without_gaps(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{i % 2 * 5 + i % 7 / 7:.3f},{i % 2 if i < 6 else -1}" for i in range(40)]
    path.write_text("x,y\n" + "\n".join(rows))
    values = json.loads(run("label", path, "--label", "y", "--method", "RLS", "--json").stdout)
    assert values["labels"] == {"0": 3, "1": 3}


def test_the_choice_is_told_in_result_report_and_model(table):
    report, model = (table.parent / name for name in ("pets.html", "pets.tvsvm"))
    result = run("label", table, "--json", "--report", report, "--save-model", model)
    assert result.exit_code == 0, result.stderr
    values = json.loads(result.stdout)
    assert values["method"] == "AutoTV"
    assert values["chosen"] in ("balanced", "smooth", "laplacian", "kernel", "pairs", "spectral")
    page = report.read_text(encoding="utf-8")
    assert "pets.csv" in page
    assert escape(values["reason"]) in page
    assert load_model(model).classifier.report_["method"] == values["chosen"]
    predicted = run("predict", model, table, "--out", table.parent / "again.csv")
    assert predicted.exit_code == 0, predicted.stderr


def test_all_rows_labelled_already(tmp_path):
    frame(labelled=N).to_csv(tmp_path / "pets.csv", index=False)
    result = run("label", tmp_path / "pets.csv", "--label", "kind", "--method", "RLS")
    assert result.exit_code == 0
    assert "every row had a label already: none was changed" in result.output
    assert "mean confidence" not in result.output
