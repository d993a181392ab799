"""`tvsvm check`: labels that look wrong."""

from tvsvm.cli import options as o


def check(
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
    config: o.Config = None,
    quiet: o.Quiet = False,
    as_json: o.AsJson = False,
) -> None:
    """List labels that look wrong: rows whose neighbours all say otherwise."""
    from tvsvm.advice import suspicious_labels
    from tvsvm.cli.console import Console
    from tvsvm.cli.errors import UserError
    from tvsvm.cli.fitting import Choices, fit
    from tvsvm.cli.listing import listing
    from tvsvm.cli.study import Request, read_study

    console = Console(quiet=quiet, as_json=as_json)
    request = Request(path, label, labels_file, unlabeled, features or (), ids or (), encoding)
    choices = Choices(method, neighbors, metric, prior, jobs, seed)
    study = read_study(request, console)
    model = fit(study, choices, console)
    try:
        found = suspicious_labels(model)
    except ValueError as error:  # a method without a graph; the sentence is for the user
        raise UserError(str(error)) from error
    rows = [
        (
            item.row,
            {
                "given": str(item.given),
                "instead": str(item.instead),
                "confidence": float(item.confidence),
                "reason": item.reason,
            },
        )
        for item in found
    ]
    listing("suspicious labels", study, rows, console)
