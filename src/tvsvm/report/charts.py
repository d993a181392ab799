"""Small charts as HTML that needs no script: shares, a histogram, a line."""

import numpy as np

from tvsvm.results import FloatArray

N_BINS = 20
MOST_LINE_POINTS = 400


def meter(value: float) -> str:
    """A number of [0, 1] with a bar of its length."""
    return (
        f'<span class="meter"><i style="width:{100 * value:.1f}%"></i></span>'
        f'<span class="number">{value:.2f}</span>'
    )


def histogram(values: FloatArray) -> str:
    """How many values are in each twentieth of [0, 1]."""
    bins = np.clip((values * N_BINS).astype(int), 0, N_BINS - 1)
    counts = np.bincount(bins, minlength=N_BINS)
    tallest = max(int(counts.max()), 1)
    bars = "".join(
        f'<div title="{k / N_BINS:.2f} to {(k + 1) / N_BINS:.2f}: {count:,} rows">'
        f'<i style="height:{100 * count / tallest:.2f}%"></i></div>'
        for k, count in enumerate(counts.tolist())
    )
    scale = "".join(f"<span>{tick:g}</span>" for tick in (0, 0.25, 0.5, 0.75, 1))
    return (
        f'<figure class="histogram"><div class="top">{tallest:,} rows</div>'
        f'<div class="columns">{bars}</div><div class="scale">{scale}</div></figure>'
    )


def line(values: FloatArray) -> str:
    """Values after each iteration, from the first to the last."""
    finite = values[np.isfinite(values)]
    if finite.size < 2:
        return ""
    at = np.linspace(0, finite.size - 1, min(finite.size, MOST_LINE_POINTS)).astype(int)
    low, high = float(finite.min()), float(finite.max())
    height = max(high - low, 1e-300)
    points = " ".join(
        f"{1000 * k / (finite.size - 1):.1f},{200 - 190 * (finite[k] - low) / height:.1f}"
        for k in at
    )
    return (
        f'<figure class="line"><div class="top">energy {high:.4g}</div>'
        '<svg viewBox="0 0 1000 205" preserveAspectRatio="none" role="img" '
        f'aria-label="Energy from {finite[0]:.4g} to {finite[-1]:.4g}">'
        f'<polyline points="{points}"/></svg>'
        f'<div class="scale"><span>iteration 1</span><span>lowest {low:.4g}</span>'
        f"<span>{finite.size:,}</span></div></figure>"
    )
