"""What `tvsvm label` says: its plan, and its result."""

from typing import Any

import numpy as np

from tvsvm.cli.console import Console, aligned
from tvsvm.cli.fitting import Choices, expected_of
from tvsvm.cli.study import Study
from tvsvm.cli.targets import Targets
from tvsvm.estimators.base import KernelClassifier
from tvsvm.report.choice import choice_of

# Classes in a summary for people.
SHOWN_CLASSES = 20


def tell_plan(study: Study, choices: Choices, targets: Targets, console: Console) -> None:
    """Say what would be done."""
    classifier = choices.classifier(list(study.counts))
    method, expected = type(classifier).__name__, expected_of(study, classifier)
    lines = [
        *study.describe(),
        *_class_table(["class", "labels"], list(study.counts.items())),
        f"{method} would take {expected}",
        f"would write {targets.table}",
    ]
    values = _about(study) | {
        "method": method,
        "expected_bytes": round(expected.bytes),
        "expected_seconds": round(expected.seconds),
        "output": str(targets.table),
        "dry_run": True,
    }
    console.result(lines, values)


def tell_result(study: Study, model: KernelClassifier, targets: Targets, console: Console) -> None:
    """Say what was found and written."""
    found = dict(zip(*_counted(model.transduction_), strict=True))
    found_rows = study.unlabelled
    confidences = model.label_distributions_.max(axis=1)[found_rows]
    confidence = float(confidences.mean()) if found_rows.any() else 1.0
    unreachable = int((~model.reachable_).sum())
    sizes = [(name, given, found.get(name, 0)) for name, given in study.counts.items()]
    written = [str(file) for file in (targets.table, targets.model, targets.report) if file]
    lines = [
        *study.describe(),
        *_class_table(["class", "labels", "rows"], sizes),
        f"mean confidence of the rows that had no label: {confidence:.3f}"
        if found_rows.any()
        else "every row had a label already: none was changed",
    ]
    choice = choice_of(model)
    if choice:
        lines.append(choice.sentence)
    if unreachable:
        lines.append(
            f"{unreachable:,} rows are not connected to any label; their classes are guesses "
            "(`tvsvm suggest` says which to label)"
        )
    lines.append(f"wrote {', '.join(written)} in {console.seconds:.1f} s")
    values = _about(study) | {
        "method": type(model).__name__,
        "chosen": choice and choice.method,
        "reason": choice and choice.sentence,
        "classes": {str(name): count for name, count in found.items()},
        "mean_confidence": confidence,
        "unreachable": unreachable,
        "converged": bool(model.converged_),
        "seconds": round(console.seconds, 3),
        "output": str(targets.table),
        "model": targets.model and str(targets.model),
        "report": targets.report and str(targets.report),
    }
    console.result(lines, values)


def _about(study: Study) -> dict[str, Any]:
    return {
        "input": str(study.table.path),
        "rows": study.n_rows,
        "label": study.roles.label,
        "labels": {str(name): count for name, count in study.counts.items()},
        "features": {feature.name: feature.kind for feature in study.roles.features},
        "columns": study.X.shape[1],
        "ids": study.roles.ids,
        "left_out": study.roles.left_out,
    }


def _class_table(header: list[str], rows: list[tuple[Any, ...]]) -> list[str]:
    shown = [(str(name), *numbers) for name, *numbers in rows[:SHOWN_CLASSES]]
    more = [f"... and {len(rows) - SHOWN_CLASSES} classes more"] if len(rows) > len(shown) else []
    return aligned([header, *shown]) + more


def _counted(labels: Any) -> tuple[list[Any], list[int]]:
    names, counts = np.unique(labels, return_counts=True)
    return names.tolist(), counts.tolist()
