"""`tvsvm predict`: the classes of new rows by a saved model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tvsvm.cli import options as o

if TYPE_CHECKING:
    from tvsvm.cli.console import Console
    from tvsvm.persistence import SavedModel
    from tvsvm.tables.base import Chunk, Table


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            help="A file of `tvsvm label --save-model`.", metavar="MODEL", show_default=False
        ),
    ],
    path: o.Input,
    encoding: o.Encoding = "utf-8",
    out: o.Out = None,
    force: o.Force = False,
    config: o.Config = None,
    quiet: o.Quiet = False,
    as_json: o.AsJson = False,
) -> None:
    """Find the classes of new rows by a saved model.

    Writes the same table with two more columns: label and confidence (its probability).
    """
    from tvsvm.cli.console import Console
    from tvsvm.cli.targets import Targets
    from tvsvm.persistence import load_model
    from tvsvm.tables import open_table
    from tvsvm.tables.output import replacing

    console = Console(quiet=quiet, as_json=as_json)
    targets = Targets.checked(path, out, force=force)
    with console.stage("Loading the model"):
        saved = load_model(model)
    with console.stage("Opening") as progress:
        table = open_table(path, encoding=encoding, progress=progress)
    added = _predicted(table, saved, console)
    with replacing(targets.table) as file, console.stage("Writing the table") as progress:
        table.write(file, added, progress)
    _tell(table, added, targets.table, console)


def _predicted(table: "Table", saved: "SavedModel", console: "Console") -> dict[str, Any]:
    """Columns to add."""
    import numpy as np

    from tvsvm.tables.base import TableError, told
    from tvsvm.tables.roles import new_names

    labels: list[Any] = []
    confidence = []
    seen: dict[str, None] = {}
    with console.stage("Predicting") as progress:
        for chunk in told(table.chunks(), progress):
            if not labels:
                _check_columns(chunk, table, saved)
            seen |= dict.fromkeys(chunk.columns)
            P = saved.classifier.predict_proba(saved.reader(chunk, table.place))
            labels += saved.classifier.classes_[P.argmax(axis=1)].tolist()
            confidence.append(P.max(axis=1))
    if not labels:
        raise TableError(f"{table.path} has no rows; there is nothing to predict.")
    names = new_names(list(seen), ("label", "confidence"))
    return {names["label"]: labels, names["confidence"]: np.concatenate(confidence)}


def _check_columns(chunk: "Chunk", table: "Table", saved: "SavedModel") -> None:
    from tvsvm.tables.base import TableError

    lacking = saved.reader.missing_columns(chunk.columns)
    if lacking:
        raise TableError(
            f"{table.path} must have the columns that the model was fitted to. It lacks "
            f"{', '.join(map(repr, lacking[:10]))}; add them, or fit a model without them."
        )


def _tell(table: "Table", added: dict[str, Any], out: Path, console: "Console") -> None:
    from collections import Counter

    from tvsvm.cli.console import aligned

    labels, confidence = added.values()
    counts = Counter(labels)
    lines = [
        f"{table.path}: {len(labels):,} rows",
        *aligned([["class", "rows"], *((str(name), counts[name]) for name in sorted(counts))]),
        f"mean confidence {confidence.mean():.3f}",
        f"wrote {out} in {console.seconds:.1f} s",
    ]
    values = {
        "input": str(table.path),
        "rows": len(labels),
        "classes": {str(name): count for name, count in counts.items()},
        "mean_confidence": float(confidence.mean()),
        "seconds": round(console.seconds, 3),
        "output": str(out),
    }
    console.result(lines, values)
