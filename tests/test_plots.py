"""The plots: what is drawn, where, and what is said when something is missing."""

import builtins

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from sklearn.datasets import make_blobs

import tvsvm
from tvsvm._palette import TEN, class_colors

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(scope="module")
def model():
    X, y = make_blobs(60, centers=[[-4, 0], [4, 0], [0, 6]], random_state=0)
    partial = np.full(60, -1)
    partial[:9] = y[:9]
    return tvsvm.LapRLS(random_state=0).fit(X, partial)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", ["plot_map", "plot_confidence", "plot_energy"])
def test_draws_on_the_axes_given_and_returns_them(model, name):
    plot = getattr(tvsvm, name)
    _, axes = plt.subplots()
    assert plot(model, ax=axes) is axes
    assert axes.has_data()
    assert plot(model) is not axes


def test_map_shows_every_row_and_stars_for_labels(model):
    points, stars = tvsvm.plot_map(model).collections[:2]
    assert len(points.get_offsets()) == 60
    assert len(stars.get_offsets()) == 9
    codes = np.searchsorted(model.classes_, model.transduction_)
    expected = [to_rgb(TEN[code]) for code in codes]
    np.testing.assert_allclose(points.get_facecolors()[:, :3], expected)


def test_map_of_confidence_has_a_colour_bar(model):
    axes = tvsvm.plot_map(model, color="confidence")
    assert len(axes.figure.axes) == 2
    np.testing.assert_allclose(
        axes.collections[0].get_array(), model.label_distributions_.max(axis=1)
    )


def test_map_takes_positions(model):
    positions = np.arange(120.0).reshape(60, 2)
    drawn = tvsvm.plot_map(model, positions=positions).collections[0].get_offsets()
    np.testing.assert_array_equal(drawn, positions)


def test_confidence_counts_rows_without_a_label(model):
    bars = tvsvm.plot_confidence(model).patches
    assert sum(bar.get_height() for bar in bars) == 51


def test_energy_is_the_path(model):
    (line,) = tvsvm.plot_energy(model).lines
    np.testing.assert_array_equal(line.get_ydata(), model.energy_path_)


def test_map_needs_a_graph_or_positions():
    model = tvsvm.RLS().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="Got RLS, which has none; pass `positions`"):
        tvsvm.plot_map(model)
    assert tvsvm.plot_map(model, positions=[[0, 0], [1, 1]]).has_data()


def test_unknown_colour(model):
    with pytest.raises(ValueError, match="Got 'truth'"):
        tvsvm.plot_map(model, color="truth")


def test_says_what_to_install(model, monkeypatch):
    find = builtins.__import__

    def without_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return find(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(ImportError, match=r"pip install tvsvm\[plot\]"):
        tvsvm.plot_energy(model)


@pytest.mark.parametrize("n_classes", [1, 2, 10, 11, 77, 200])
def test_colours_are_valid_and_distinct(n_classes):
    colors = class_colors(n_classes)
    assert len(colors) == n_classes
    assert len(set(colors)) == n_classes
    assert all(len(color) == 7 and to_rgb(color) for color in colors)


# What the eye without red or green cones makes of linear RGB (Machado, Oliveira, Fernandes 2009).
DEUTERANOPIA = [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.011820, 0.042940, 0.968881],
]
PROTANOPIA = [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
]


@pytest.mark.parametrize("seen", [np.eye(3), DEUTERANOPIA, PROTANOPIA])
def test_ten_colours_stay_apart_for_the_colour_blind(seen):
    linear = np.array([to_rgb(color) for color in TEN]) ** 2.2
    lightness = np.clip(linear @ np.transpose(seen), 0, 1) ** (1 / 2.2)
    distances = np.linalg.norm(lightness[:, None] - lightness, axis=2)
    assert distances[np.triu_indices(10, 1)].min() > 0.08
