"""What `tvsvm label` takes for a class, and what for no label."""

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from tvsvm.cli.main import app


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_minus_one_is_a_class_where_other_cells_are_empty(tmp_path):
    path = tmp_path / "signs.csv"
    path.write_text("a,b,y\n0,0,-1\n0.1,0,-1\n5,5,1\n5.1,5,1\n0.2,0.1,\n5.2,5.1,\n")
    assert run("label", path).exit_code == 0
    found = pd.read_csv(tmp_path / "signs.labelled.csv")
    assert found["label"].tolist() == [-1, -1, 1, 1, -1, 1]


def test_a_class_called_none_is_told_and_can_be_kept(tmp_path):
    path = tmp_path / "severity.csv"
    side = np.repeat([0, 5, 10], 12)
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": side + rng.random(36), "b": side + rng.random(36)})
    data["severity"] = np.where(np.arange(36) % 12 < 4, np.repeat(["none", "low", "high"], 12), "")
    data.to_csv(path, index=False)
    told = run("label", path)
    assert told.exit_code == 0
    assert "'none' in column 'severity' was read as no label" in " ".join(told.output.split())
    kept = run("label", path, "--unlabeled", "", "--force")
    assert "read as no label" not in kept.output
    found = pd.read_csv(tmp_path / "severity.labelled.csv", keep_default_na=False)
    assert found["label"].tolist() == np.repeat(["none", "low", "high"], 12).tolist()


def test_a_label_column_without_a_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,\n1,2,cat\n3,4,dog\n5,6,\n1,2,\n")
    assert run("label", path).exit_code == 0
    assert pd.read_csv(tmp_path / "t.labelled.csv")["label"].tolist() == [
        "cat",
        "dog",
        "dog",
        "cat",
    ]
