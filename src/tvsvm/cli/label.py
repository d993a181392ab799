"""`tvsvm label`: find the class of every row of a table."""

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tvsvm.cli import options as o

if TYPE_CHECKING:
    from tvsvm.cli.console import Console
    from tvsvm.cli.fitting import Choices
    from tvsvm.cli.study import Study
    from tvsvm.cli.targets import Targets
    from tvsvm.estimators.base import KernelClassifier

# Columns of the table that the report shows with a row.
SHOWN_COLUMNS = 6


def label(
    path: o.Input,
    label: o.Label = None,
    labels_file: o.LabelsFile = None,
    unlabeled: o.Unlabeled = None,
    features: o.Features = None,
    ids: o.Ids = None,
    encoding: o.Encoding = "utf-8",
    method: o.MethodOption = o.DEFAULT_METHOD,
    neighbors: o.Neighbors = None,
    metric: o.Metric = None,
    prior: o.Prior = None,
    jobs: o.Jobs = None,
    seed: o.Seed = o.DEFAULT_SEED,
    out: o.Out = None,
    in_place: o.InPlace = False,
    force: o.Force = False,
    save_model: o.SaveModel = None,
    report: o.Report = None,
    dry_run: o.DryRun = False,
    config: o.Config = None,
    quiet: o.Quiet = False,
    as_json: o.AsJson = False,
) -> None:
    """Find the class of every row of a table in which a few rows have one.

    Writes the same table with three more columns: label (the given one, or the one found),
    confidence (its probability), reachable (whether a labelled row is connected to this one by
    neighbours; if not, its class is a guess).
    """
    from tvsvm.cli.console import Console
    from tvsvm.cli.fitting import Choices, fit
    from tvsvm.cli.study import Request, read_study
    from tvsvm.cli.summary import tell_plan, tell_result
    from tvsvm.cli.targets import Targets

    console = Console(quiet=quiet, as_json=as_json)
    targets = Targets.checked(
        path, out, force=force or dry_run, in_place=in_place, model=save_model, report=report
    )
    request = Request(path, label, labels_file, unlabeled, features or (), ids or (), encoding)
    choices = Choices(method, neighbors, metric, prior, jobs, seed)
    study = read_study(request, console)
    if dry_run:
        tell_plan(study, choices, targets, console)
        return
    model = fit(study, choices, console)
    _write(study, model, choices, targets, console)
    tell_result(study, model, targets, console)


def _write(
    study: "Study",
    model: "KernelClassifier",
    choices: "Choices",
    targets: "Targets",
    console: "Console",
) -> None:
    """Write all files, or none: each appears only when all are complete."""
    from tvsvm.persistence import SavedModel, save_model
    from tvsvm.tables.output import replacing
    from tvsvm.tables.roles import new_names

    names = new_names(study.names)
    added = {
        names["label"]: model.transduction_.tolist(),
        names["confidence"]: model.label_distributions_.max(axis=1),
        names["reachable"]: model.reachable_,
    }
    with ExitStack() as files:
        table = files.enter_context(replacing(targets.table))
        with console.stage("Writing the table") as progress:
            study.table.write(table, added, progress)
        if targets.model is not None:
            with console.stage("Saving the model"):
                saved = SavedModel(model, study.reader)
                save_model(files.enter_context(replacing(targets.model)), saved)
        if targets.report is not None:
            with console.stage("Drawing the report"):
                page = files.enter_context(replacing(targets.report))
                _draw(page, study, model, choices)


def _draw(path: Path, study: "Study", model: "KernelClassifier", choices: "Choices") -> None:
    from tvsvm.report import ReportContext, write_report
    from tvsvm.tables.images import ImageTable

    columns = [f.name for f in study.roles.features if f.kind != "vector"][:SHOWN_COLUMNS]
    context = ReportContext(
        title=study.table.path.name,
        command=shlex.join(["tvsvm", *sys.argv[1:]]),
        settings={
            "label column": study.roles.label,
            "features": ", ".join(f"{f.name} ({f.kind})" for f in study.roles.features),
            **{f"left out: {name}": reason for name, reason in study.roles.left_out.items()},
            "method": choices.method.value,
        },
        seed=choices.seed,
        ids=study.ids or [f"{study.table.place} {line}" for line in study.lines],
        table=study.columns(columns),
        images=study.table.vectors if isinstance(study.table, ImageTable) else None,
    )
    write_report(path, model, context)
