"""The gallery: every example has its heading, runs without a warning and draws its picture."""

import ast
import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("plot_*.py"))
each_example = pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])


def test_there_are_enough():
    assert len(EXAMPLES) >= 8


@each_example
def test_example_has_a_heading(path):
    heading = ast.get_docstring(ast.parse(path.read_text())).splitlines()
    assert set(heading[1]) == {"="}
    assert len(heading[0]) == len(heading[1])


@each_example
def test_example_runs_and_draws(path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    runpy.run_path(str(path))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    assert all(any(axes.has_data() for axes in figure.axes) for figure in figures)
    plt.close("all")
