import json

import pytest
from test_cli_label import frame, run


def test_suggest_lists_rows_by_line_and_id(tmp_path):
    path = tmp_path / "pets.csv"
    frame().to_csv(path, index=False)
    values = json.loads(run("suggest", path, "-n", 3, "--json").stdout)
    assert len(values["suggestions"]) == 3
    for item in values["suggestions"]:
        assert set(item) == {"line", "id", "score", "reason"}
        assert item["line"] == int(item["id"]) + 2
        assert item["line"] > 9  # the first eight rows are labelled
    text = run("suggest", path, "-n", 3).stdout
    assert "reason" in text


@pytest.mark.parametrize("options", [[], ["--no-labels"]])
def test_suggest_without_labels(tmp_path, options):
    path = tmp_path / "pets.csv"
    data = frame().drop(columns="kind")
    if options:
        data.loc[3, "height"] = None
    data.to_csv(path, index=False)
    result = run("suggest", path, "-n", 4, "--json", *options)
    assert result.exit_code == 0, result.stderr
    assert len(json.loads(result.stdout)["suggestions"]) == 4


def test_suggest_with_one_class_only(tmp_path):
    path = tmp_path / "pets.csv"
    frame(labelled=1).to_csv(path, index=False)
    assert run("suggest", path).exit_code == 0


def test_check_finds_a_wrong_label(tmp_path):
    path = tmp_path / "pets.csv"
    data = frame(labelled=30)
    data.loc[6, "kind"] = "dog"  # a cat, as its neighbours are
    data.to_csv(path, index=False)
    values = json.loads(run("check", path, "--json").stdout)
    found = {item["line"]: (item["given"], item["instead"]) for item in values["suspicious_labels"]}
    assert found[8] == ("dog", "cat")
    assert "given" in run("check", path).stdout


def test_check_needs_a_graph(tmp_path):
    path = tmp_path / "pets.csv"
    frame().to_csv(path, index=False)
    result = run("check", path, "--method", "RLS")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("error: ")
