"""Pictures of a fitted classifier with matplotlib: its map, its confidence, its energy."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tvsvm._palette import class_colors
from tvsvm.layout import layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEGEND_CLASSES = 20  # a legend of more is a wall


def plot_map(
    model: Any, *, color: str = "class", positions: Any = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw all rows as points, alike ones near each other, those with a label as stars.

    Parameters
    ----------
    model : fitted classifier
        With a graph, unless `positions` are given.
    color : {"class", "confidence"}
        What the colours show: `transduction_`, or the probability of that class.
    positions : array-like of shape (n_samples, 2), optional
        Where the points are; by default :func:`tvsvm.layout.layout` of the graph.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    if color not in ("class", "confidence"):
        raise ValueError(f"`color` must be 'class' or 'confidence'. Got {color!r}; pass one.")
    if positions is None:
        if not hasattr(model, "graph_"):
            raise ValueError(
                f"A map is drawn from the graph. Got {type(model).__name__}, which has none; pass "
                "`positions`, for example layout(knn_graph(X))."
            )
        positions = layout(model.graph_)
    ax = _axes(ax)
    codes = model.label_distributions_.argmax(axis=1)
    palette = class_colors(len(model.classes_))
    if color == "class":
        style: dict[str, Any] = {"c": np.array(palette)[codes]}
    else:
        low = 1 / len(model.classes_)
        style = {"c": model.label_distributions_.max(axis=1), "cmap": "viridis"}
        style |= {"vmin": min(low, 0.99), "vmax": 1.0}
    x, y = np.asarray(positions, dtype=np.float64).T
    size = np.clip(20_000 / x.size, 1.0, 25.0)
    points = ax.scatter(x, y, s=size, linewidths=0, **style)
    known = model.labeled_
    stars: dict[str, Any] = {"marker": "*", "s": 130, "edgecolors": "black", "zorder": 3}
    ax.scatter(x[known], y[known], c=np.array(palette)[codes[known]], linewidths=0.8, **stars)
    if color == "confidence":
        ax.figure.colorbar(points, ax=ax, label="confidence")
    elif len(palette) <= LEGEND_CLASSES:
        for name, shade in zip(model.classes_, palette, strict=True):
            ax.scatter([], [], c=shade, s=30, label=str(name))
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    ax.set(xticks=[], yticks=[], aspect="equal", title=_title(model))
    ax.spines[:].set_visible(False)
    return ax


def plot_confidence(model: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw how many of the rows without a label were classified with which probability.

    Parameters
    ----------
    model : fitted classifier
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax)
    confidence = model.label_distributions_.max(axis=1)[~model.labeled_]
    ax.hist(confidence, bins=np.linspace(0.0, 1.0, 41).tolist(), color=class_colors(1)[0])
    ax.set(xlabel="confidence", ylabel="rows without a label", title=_title(model), xlim=(0, 1))
    return ax


def plot_energy(model: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the energy after each iteration.

    Parameters
    ----------
    model : fitted classifier
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax)
    path = model.energy_path_
    ax.plot(np.arange(1, path.size + 1), path, marker="o", markersize=3, color=class_colors(1)[0])
    ended = "converged" if model.converged_ else "stopped before it converged"
    ax.set(xlabel="iteration", ylabel="energy", title=f"{type(model).__name__}: {ended}")
    return ax


def _axes(ax: "Axes | None") -> "Axes":
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib, which is not installed: pip install tvsvm[plot]."
        ) from error
    return plt.subplots(layout="constrained")[1]


def _title(model: Any) -> str:
    n_labels = int(np.count_nonzero(model.labeled_))
    return f"{type(model).__name__}: {model.labeled_.size:,} rows, {n_labels:,} labels"
