"""Sections of the page: what the model found, as HTML; all text that comes from data is escaped."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import numpy as np

from tvsvm._palette import class_colors
from tvsvm.advice import Suggestion, SuspiciousLabel
from tvsvm.report.charts import histogram, line, meter
from tvsvm.report.choice import choice_of
from tvsvm.report.context import Rows, text_of

LISTED = 20  # rows of a table
LONGEST_FACT = 1000


class Sections:
    """HTML about one fitted model and its rows."""

    def __init__(self, model: Any, rows: Rows) -> None:
        self._model = model
        self._rows = rows
        self._confidence = model.label_distributions_.max(axis=1)
        self._codes = model.label_distributions_.argmax(axis=1)
        self._names = [str(name) for name in model.classes_]
        self._colors = class_colors(len(self._names))
        self._n_found = int(np.count_nonzero(~model.labeled_))

    def summary(self) -> str:
        """What happened, in a sentence or two."""
        choice = choice_of(self._model)
        n_labels = int(np.count_nonzero(self._model.labeled_))
        return (
            f"From {counted(n_labels, 'label')} in {counted(len(self._names), 'class', 'classes')}"
            f", <strong>{escape(type(self._model).__name__)}</strong> found the class of "
            f"<strong>{counted(self._n_found, 'other row')}</strong>."
            + (f" {escape(choice.sentence)}." if choice else "")
        )

    def figures(self) -> str:
        """The numbers that matter, large."""
        mean = np.mean(self._confidence[~self._model.labeled_]) if self._n_found else 1.0
        unreached = int(np.count_nonzero(~self._model.reachable_))
        shown = {
            "rows": f"{self._model.labeled_.size:,}",
            "labels given": f"{np.count_nonzero(self._model.labeled_):,}",
            "classes": f"{len(self._names):,}",
            "mean confidence found": f"{mean:.2f}",
            "rows no label reaches": f"{unreached:,}",
        }
        return "".join(
            f"<div><b>{value}</b><span>{name}</span></div>" for name, value in shown.items()
        )

    def classes(self) -> str:
        """Sizes of the classes before and after, and how sure they are."""
        n_classes = len(self._names)
        given = np.bincount(self._codes[self._model.labeled_], minlength=n_classes)
        found = np.bincount(self._codes, minlength=n_classes)
        total = np.bincount(self._codes, self._confidence, minlength=n_classes)
        widest = found.max()
        body = "".join(
            f"<tr><td>{self._class(k)}</td>"
            f"<td class=n>{given[k]:,}</td><td class=n>{found[k]:,}</td>"
            f'<td class="wide"><span class="size"><i style="width:{100 * found[k] / widest:.2f}%;'
            f'background:{self._colors[k]}"></i></span></td>'
            f"<td class=n>{found[k] / found.sum():.1%}</td>"
            f"<td>{meter(total[k] / found[k]) if found[k] else ''}</td></tr>"
            for k in range(n_classes)
        )
        heads = (
            "<th>class<th class=n>labels<th class=n>rows<th class=wide><th class=n>share"
            "<th>confidence"
        )
        return f'<div class="scroll tall"><table><tr>{heads}</tr>{body}</table></div>'

    def confidence(self) -> str:
        """How sure the found classes are."""
        found = self._confidence[~self._model.labeled_]
        if not self._n_found:
            return "<p>Every row came with a label.</p>"
        return (
            f"<p>Half of the rows found have a confidence of {np.median(found):.2f} or more, one "
            f"in ten has {np.quantile(found, 0.1):.2f} or less.</p>{histogram(found)}"
        )

    def suggestions(self, suggested: list[Suggestion]) -> str:
        """Rows to label next."""
        if not suggested:
            return "<p>Every row has a label.</p>"
        entries = ((item.row, f"<td>{escape(item.reason)}</td>") for item in suggested)
        return self._table("<th>why", entries)

    def least_certain(self, listed: list[int]) -> str:
        """Rows that might be of another class as well."""
        if not listed:
            return "<p>None: the method is sure of every row.</p>"
        return self._table("<th>or else", ((row, self._runner_up(row)) for row in listed))

    def suspicious(self, labels: list[SuspiciousLabel] | None) -> str:
        """Labels that look wrong."""
        if labels is None:
            return "<p>Wrong labels are found by a graph, which this method does not use.</p>"
        if not labels:
            return "<p>None: no label is contradicted by most of its neighbours.</p>"
        entries = (
            (item.row, f"<td>{self._named(item.instead)}</td><td>{escape(item.reason)}</td>")
            for item in labels[:LISTED]
        )
        return self._table("<th>rather<th>why", entries) + _more(len(labels))

    def unreachable(self) -> str:
        """Rows in parts of the graph without a label."""
        unreached = np.flatnonzero(~self._model.reachable_)
        if not unreached.size:
            return "<p>None: a label is within reach of every row.</p>"
        n_parts = np.unique(self._model.graph_.component_labels[unreached]).size
        return (
            f"<p>{counted(unreached.size, 'row')} in {counted(n_parts, 'part')} of the graph "
            "without any label. Their classes come from the kernel alone: check them, or label "
            "one row of each part.</p>"
            + self._table("", ((row, "") for row in unreached[:LISTED].tolist()))
            + _more(unreached.size)
        )

    def convergence(self) -> str:
        """How the iteration ended."""
        model = self._model
        ended = "converged" if model.converged_ else "<strong>stopped before it converged</strong>"
        return (
            f"<p>The method {ended} after {counted(int(model.n_iter_), 'iteration')}. The "
            "functions for new rows agree with the classes found here on "
            f"{model.agreement_:.1%} of the rows.</p>{line(model.energy_path_)}"
        )

    def _table(self, heads: str, entries: Iterable[tuple[int, str]]) -> str:
        """Rows with their class, confidence, the given columns and their first cells."""
        picture = "<th>" if self._rows.pictured else ""
        columns = "".join(f"<th>{escape(name)}" for name in self._rows.columns)
        body = "".join(
            f"<tr>{self._row(row)}{html}{self._cells(row)}</tr>" for row, html in entries
        )
        return (
            f'<div class="scroll"><table><tr>{picture}<th>row<th>class<th>confidence'
            f"{heads}{columns}</tr>{body}</table></div>"
        )

    def _row(self, row: int) -> str:
        picture = self._rows.thumbnail(row)
        image = f'<td><img alt="" src="{picture}"></td>' if picture else ""
        sure = "given" if self._model.labeled_[row] else meter(self._confidence[row])
        return (
            f'{image}<td><a href="#map" data-row="{row}">{escape(self._rows.name(row))}</a></td>'
            f"<td>{self._class(self._codes[row])}</td><td>{sure}</td>"
        )

    def _runner_up(self, row: int) -> str:
        if len(self._names) == 1:
            return "<td></td>"
        second = np.argsort(-self._model.label_distributions_[row], kind="stable")[1]
        return f"<td>{self._class(second)}</td>"

    def _cells(self, row: int) -> str:
        return "".join(f'<td class="cell">{escape(text)}</td>' for text in self._rows.cells(row))

    def _class(self, code: int) -> str:
        return (
            f'<span class="class"><i style="background:{self._colors[code]}"></i>'
            f"{escape(self._names[code])}</span>"
        )

    def _named(self, name: Any) -> str:
        return self._class(self._names.index(str(name)))


def facts(entries: Mapping[str, Any]) -> str:
    """Names and values, one a line."""
    lines = "".join(
        f"<dt>{escape(str(name))}</dt><dd>{escape(text_of(value, LONGEST_FACT))}</dd>"
        for name, value in entries.items()
    )
    return f"<dl>{lines}</dl>" if lines else ""


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number and what it counts."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _more(total: int) -> str:
    return f'<p class="more">and {total - LISTED:,} more</p>' if total > LISTED else ""
