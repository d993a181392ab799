"""Data of the map for the script of the page: quantised, and safe inside HTML."""

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvsvm._palette import class_colors
from tvsvm.graph import Graph
from tvsvm.layout import layout
from tvsvm.report.context import Rows
from tvsvm.results import IntArray

MOST_POINTS = 100_000  # drawn; beyond that every so many rows, and all labelled ones
PICTURE_BYTES = 4_000_000  # for pictures of points, those of labelled rows first
LABELED, UNREACHED = 1, 2


def map_data(model: Any, graph: Graph, rows: Rows, listed: list[int]) -> str:
    """JSON that the script draws the map from; `listed` rows are drawn in any case."""
    shown = _shown_rows(model.labeled_, listed)
    P = model.label_distributions_[shown]
    flags = LABELED * model.labeled_[shown] + UNREACHED * ~model.reachable_[shown]
    data = {
        "positions": _packed(np.round(layout(graph)[shown] * 65535), np.uint16),
        "codes": _packed(P.argmax(axis=1), np.uint16),
        "confidence": _packed(np.round(P.max(axis=1) * 255), np.uint8),
        "flags": _packed(flags, np.uint8),
        "rows": _packed(shown, np.uint32),
        "classes": [str(name) for name in model.classes_],
        "colors": class_colors(len(model.classes_)),
        "names": [rows.name(row) for row in shown.tolist()] if rows.named else None,
        "columns": rows.columns,
        "cells": [rows.cells(row) for row in shown.tolist()] if rows.columns else None,
        "pictures": _pictures(rows, shown, np.append(np.flatnonzero(model.labeled_), listed)),
    }
    # "<" could end the script element or begin a comment.
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def _shown_rows(labeled: NDArray[np.bool_], listed: list[int]) -> IntArray:
    if labeled.size <= MOST_POINTS:
        return np.arange(labeled.size)
    spread = np.linspace(0, labeled.size - 1, MOST_POINTS).astype(np.intp)
    marked = np.flatnonzero(labeled)[:MOST_POINTS]
    return np.unique(np.concatenate([spread, marked, np.array(listed, dtype=np.intp)]))


def _pictures(rows: Rows, shown: IntArray, first: IntArray) -> dict[str, str]:
    """Pictures by row, as many as the page can carry."""
    if not rows.pictured:
        return {}
    # A stride that shares no factor with most sizes spreads the pictures when not all fit.
    scattered = shown[np.argsort(np.arange(shown.size) * 0.6180339887 % 1.0, kind="stable")]
    pictures: dict[str, str] = {}
    size = 0
    for row in np.append(first, scattered).tolist():
        if size > PICTURE_BYTES:
            break
        if str(row) not in pictures:
            pictures[str(row)] = rows.thumbnail(row)
            size += len(pictures[str(row)])
    return pictures


def _packed(values: NDArray[Any], dtype: type) -> str:
    numbers = np.asarray(values).astype(np.dtype(dtype).newbyteorder("<"))
    return base64.b64encode(numbers.tobytes()).decode("ascii")
