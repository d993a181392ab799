"""`tvsvm reproduce` and `tvsvm datasets`, as a user runs them."""

import csv
import json
from urllib.error import URLError

import pytest
import sklearn.datasets
import typer
from typer.testing import CliRunner

from tvsvm import experiments
from tvsvm.cli.datasets import datasets
from tvsvm.cli.errors import UserError
from tvsvm.cli.reproduce import reproduce

app = typer.Typer()
app.command()(reproduce)
app.command()(datasets)

QUICK = ("--dataset=iris", "--methods=RLS,LapRLS,RLS", "--labels=5,1", "--draws=2", "--jobs=1")


def call(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """No data but the bundled ones, and no network."""
    monkeypatch.delenv("TVSVM_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))

    def offline(**options):
        raise URLError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)


def test_tables_and_picture(tmp_path):
    result = call("reproduce", *QUICK, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "iris: error in %, 2 draws, seed 0" in result.output
    with (tmp_path / "error.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["method"], row["labels"]) for row in rows] == [
        ("RLS", "1"), ("LapRLS", "1"), ("RLS", "5"), ("LapRLS", "5"),
    ]  # fmt: skip
    assert all(0 <= float(row["mean"]) < 50 and row["n_draws"] == "2" for row in rows)
    assert "| labels a class | 1 | 5 |" in (tmp_path / "error.md").read_text()
    assert (tmp_path / "error.png").read_bytes().startswith(b"\x89PNG")
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 8


def test_interrupted_it_says_where_it_stands_and_goes_on(tmp_path, monkeypatch):
    run = experiments.run

    def interrupted(*args, **options):
        running = run(*args, **options)
        yield next(running)
        yield next(running)
        raise KeyboardInterrupt

    monkeypatch.setattr(experiments, "run", interrupted)
    result = call("reproduce", *QUICK, "--out", tmp_path)
    assert result.exit_code == 130
    assert "2 of 8 fits" in result.output
    kept = (tmp_path / "results.jsonl").read_text()
    assert kept.count("\n") == 2

    monkeypatch.setattr(experiments, "run", run)
    assert call("reproduce", *QUICK, "--out", tmp_path).exit_code == 0
    whole = (tmp_path / "results.jsonl").read_text()
    assert whole.startswith(kept)
    assert whole.count("\n") == 8

    assert call("reproduce", *QUICK, "--out", tmp_path, "--fresh", "--quiet").exit_code == 0
    anew = (tmp_path / "results.jsonl").read_text()
    assert anew.count("\n") == 8
    assert anew != whole  # seconds differ


def test_without_usps_one_sentence_offers_digits(tmp_path):
    result = call("reproduce", "--out", tmp_path)
    assert result.exit_code == 1
    assert isinstance(result.exception, UserError)
    sentence = str(result.exception)
    assert "usps is neither in" in sentence
    assert "--dataset digits" in sentence
    assert "\n" not in sentence
    assert not (tmp_path / "results.jsonl").exists()


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--methods", "TVRLS,Magic", "Magic"),
        ("--labels", "1,0", "0 is not positive"),
        ("--labels", "one", "such as"),
        ("--classes", "a", "such as"),
        ("--jobs", "0", "positive"),
        ("--draws", "0", "Invalid value for '--draws'"),
    ],
)
def test_wrong_usage(option, value, expected, tmp_path):
    result = call("reproduce", "--dataset", "iris", option, value, "--out", tmp_path)
    assert result.exit_code == 2
    assert expected in " ".join(result.output.replace("│", " ").split())


def test_classes_too_small_for_the_labels(tmp_path):
    result = call("reproduce", *QUICK, "--labels", "26", "--draws", "1", "--out", tmp_path)
    assert "at most half of a class is labelled; iris has one of 50." in result.output


def test_unknown_classes(tmp_path):
    result = call("reproduce", "--dataset", "iris", "--classes", "1,7", "--out", tmp_path)
    assert isinstance(result.exception, UserError)
    assert "0 to 2 of iris" in str(result.exception)
    assert "digits" not in str(result.exception)


def test_datasets():
    result = call("datasets")
    assert result.exit_code == 0
    assert "digits         scikit-learn, bundled" in result.output
    assert "OpenML, data id 41082" in result.output
    assert "iris" in json.loads(call("datasets", "--json").output)["datasets"]
