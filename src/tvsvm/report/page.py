"""The page as a whole: sections and data put into the template, written in one piece."""

import base64
import hashlib
import os
import platform
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from tvsvm.advice import suggest, suspicious_labels
from tvsvm.report.context import ReportContext, Rows
from tvsvm.report.map_data import map_data
from tvsvm.report.sections import LISTED, Sections, facts
from tvsvm.tables.output import replacing

CERTAIN = 0.995  # shown as 1.00
LIBRARIES = ("tvsvm", "numpy", "scipy", "scikit-learn", "numba")
NO_MAP = "<p>A map is drawn from a graph, which this method does not use.</p>"


def write_report(
    path: str | os.PathLike[str], model: Any, context: ReportContext | None = None
) -> Path:
    """Write a page about a fitted classifier: one file, for any browser, without network.

    Parameters
    ----------
    path : str or path
        The file; it appears whole or not at all.
    model : fitted classifier
        Any of this package.
    context : ReportContext, optional
        Names, cells and pictures of the rows, and how the model came about.

    Returns
    -------
    Path
        The file.
    """
    page = _page(model, context or ReportContext())
    place = Path(path)
    with replacing(place) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return place


def _page(model: Any, context: ReportContext) -> str:
    graph = getattr(model, "graph_", context.graph)
    rows = Rows(context, model.labeled_.size)
    sections = Sections(model, rows)
    suggested = suggest(model, LISTED)
    suspects = suspicious_labels(model) if hasattr(model, "graph_") else None
    doubtful = _least_certain(model)
    listed = [item.row for item in suggested] + [item.row for item in suspects or []] + doubtful
    script = _resource("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return Template(_resource("page.html")).substitute(
        title=escape(context.title or type(model).__name__),
        style=_resource("style.css"),
        script=script,
        script_hash=digest,
        data="null" if graph is None else map_data(model, graph, rows, listed),
        no_map="" if graph is not None else NO_MAP,
        summary=sections.summary(),
        figures=sections.figures(),
        settings=facts(context.settings),
        classes=sections.classes(),
        confidence=sections.confidence(),
        suggestions=sections.suggestions(suggested),
        suspicious=sections.suspicious(suspects),
        least_certain=sections.least_certain(doubtful),
        unreachable=sections.unreachable(),
        convergence=sections.convergence(),
        command=_command(context.command),
        parameters=facts(_parameters(model)),
        versions=facts(_versions(model, context)),
    )


def _least_certain(model: Any) -> list[int]:
    confidence = model.label_distributions_.max(axis=1)
    unsure = np.flatnonzero(confidence < CERTAIN)
    return unsure[np.argsort(confidence[unsure], kind="stable")[:LISTED]].tolist()


def _command(command: str | None) -> str:
    if command is None:
        return ""
    return f'<pre id="command">{escape(command)}</pre><button id="copy">Copy</button>'


def _parameters(model: Any) -> dict[str, Any]:
    # Arrays and graphs are not for reading; their type tells what was passed.
    readable = (str, int, float, bool, dict, type(None))
    return {"method": type(model).__name__} | {
        name: value if isinstance(value, readable) else type(value).__name__
        for name, value in model.get_params().items()
    }


def _versions(model: Any, context: ReportContext) -> dict[str, Any]:
    seed = model.random_state if context.seed is None else context.seed
    libraries = {name: version(name) for name in LIBRARIES}
    return {
        "seed": "none" if seed is None else seed,
        "Python": platform.python_version(),
    } | libraries


def _resource(name: str) -> str:
    return files("tvsvm.report").joinpath(name).read_text(encoding="utf-8")
