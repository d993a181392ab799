"""`tvsvm suggest`: the rows most worth labelling next."""

from typing import TYPE_CHECKING, Annotated

import typer

from tvsvm.cli import options as o

if TYPE_CHECKING:
    from tvsvm.advice import Suggestion
    from tvsvm.cli.console import Console
    from tvsvm.cli.fitting import Choices
    from tvsvm.cli.study import Study


def suggest(
    path: o.Input,
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="How many rows.")] = 20,
    label: o.Label = None,
    labels_file: o.LabelsFile = None,
    unlabeled: o.Unlabeled = None,
    no_labels: Annotated[
        bool,
        typer.Option(
            "--no-labels", help="There are none yet; gaps are gaps.", rich_help_panel=o.TABLE
        ),
    ] = False,
    features: o.Features = None,
    ids: o.Ids = None,
    encoding: o.Encoding = "utf-8",
    method: o.MethodOption = o.DEFAULT_METHOD,
    neighbors: o.Neighbors = None,
    metric: o.Metric = None,
    prior: o.Prior = None,
    jobs: o.Jobs = None,
    seed: o.Seed = o.DEFAULT_SEED,
    config: o.Config = None,
    quiet: o.Quiet = False,
    as_json: o.AsJson = False,
) -> None:
    """List the rows most worth labelling next, also when none is labelled yet."""
    from tvsvm.cli.console import Console
    from tvsvm.cli.fitting import Choices
    from tvsvm.cli.listing import listing
    from tvsvm.cli.study import Request, read_study

    console = Console(quiet=quiet, as_json=as_json)
    request = Request(
        path, label, labels_file, unlabeled, features or (), ids or (), encoding, no_labels
    )
    choices = Choices(method, neighbors, metric, prior, jobs, seed)
    study = read_study(request, console, labels_needed=False)
    found = _suggestions(study, choices, n, console)
    listing(
        "suggestions",
        study,
        [(item.row, {"score": float(item.score), "reason": item.reason}) for item in found],
        console,
    )


def _suggestions(
    study: "Study", choices: "Choices", n: int, console: "Console"
) -> "list[Suggestion]":
    from tvsvm.advice import suggest, suggest_without_labels
    from tvsvm.cli.errors import UserError
    from tvsvm.cli.fitting import fit, neighbor_graph

    try:
        if len(study.counts) > 1:
            return suggest(fit(study, choices, console), n)
        console.note("there are no labels of two classes yet: these rows stand for the others")
        return suggest_without_labels(neighbor_graph(study, choices, console), n)
    except ValueError as error:  # a method without a graph; the sentence is for the user
        raise UserError(str(error)) from error
