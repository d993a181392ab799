import json

import numpy as np
import pytest
from test_cli_label import SIDE, N, files, frame, run


@pytest.fixture
def trained(tmp_path):
    frame().to_csv(tmp_path / "pets.csv", index=False)
    result = run("label", tmp_path / "pets.csv", "-q", "--save-model", tmp_path / "m.skops")
    assert result.exit_code == 0, result.stderr
    return tmp_path


def test_new_rows_get_classes(trained):
    new = frame().drop(columns="kind").sample(frac=1, random_state=0)
    new.to_csv(trained / "new.csv", index=False)
    result = run("predict", trained / "m.skops", trained / "new.csv", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["classes"] == {"cat": N // 2, "dog": N // 2}
    lines = (trained / "new.labelled.csv").read_text().splitlines()
    assert [line.rsplit(",", 2)[0] for line in lines] == (trained / "new.csv").read_text().split()
    expected = np.array(["cat", "dog"])[SIDE][new.index]
    assert [line.rsplit(",", 2)[1] for line in lines] == ["label", *expected]


def test_another_format_with_the_same_columns(trained):
    frame().to_parquet(trained / "new.parquet")
    assert run("predict", trained / "m.skops", trained / "new.parquet").exit_code == 0
    frame().to_excel(trained / "new.xlsx", index=False)
    assert run("predict", trained / "m.skops", trained / "new.xlsx").exit_code == 0


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("height,joined\n1,2020-01-01\n", "It lacks 'colour'"),
        ("height,colour,joined\ntall,red,2020-01-01\n", "Got 'tall' in line 2"),
        ("height,colour,joined\n1,red,soon\n", "Got 'soon' in line 2"),
        ("height,colour,joined\n", "has no rows"),
    ],
)
def test_other_columns_are_refused(trained, content, sentence):
    (trained / "new.csv").write_text(content)
    before = files(trained)
    result = run("predict", trained / "m.skops", trained / "new.csv")
    assert (result.exit_code, sentence in result.stderr) == (1, True)
    assert files(trained) == before


def test_unknown_categories_gaps_and_outliers_are_normal(trained):
    rows = "4,violet,\n,,2020-01-01\n1e300,red,1200-01-01\n"
    (trained / "new.csv").write_text("height,colour,joined\n" + rows)
    assert run("predict", trained / "m.skops", trained / "new.csv").exit_code == 0


def test_a_model_from_elsewhere(trained):
    for model in ("pets.csv", "none.skops"):
        result = run("predict", trained / model, trained / "pets.csv", "--force")
        assert result.exit_code == 1
        assert result.stderr.startswith("error: ")
