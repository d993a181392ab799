"""`tvsvm reproduce`: the paper's experiments, or the same on other data."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from tvsvm.cli.console import Console
from tvsvm.cli.errors import UserError
from tvsvm.cli.options import DEFAULT_SEED, Method, Quiet
from tvsvm.cli.run import INTERRUPTED

if TYPE_CHECKING:
    from tvsvm.experiments import Case, Outcome

T = TypeVar("T")


def reproduce(
    dataset: Annotated[
        str | None,
        typer.Option(help="See `tvsvm datasets`. By default the paper's two tables, on USPS."),
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="Keep these classes only, as 4,9. By default all.")
    ] = None,
    methods: Annotated[str, typer.Option(help="Separated by commas.")] = ",".join(Method),
    labels: Annotated[str, typer.Option(help="Labels a class, as 1,5.")] = "1,5,10,50",
    draws: Annotated[int, typer.Option(min=1, help="Random sets of labels for each.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Series of the draws.")] = DEFAULT_SEED,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("reproduce"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what is in --out.")] = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce the paper's experiments: error against the number of labels.

    Interrupted, the same command goes on where it stopped. Writes results.jsonl (every single
    fit), error.md, error.csv and error.png to --out.
    """
    names = _listed(methods, Method, "methods", "TVRLS,TVSVM")
    counts = sorted(set(_listed(labels, _positive, "labels", "1,5,10")))
    kept = _listed(classes, int, "classes", "4,9") if classes else None
    if jobs < -1 or jobs == 0:
        raise typer.BadParameter("--jobs must be positive, or -1 for all cores.")

    from tvsvm.experiments import Store, plan, run
    from tvsvm.experiments.methods import classifier

    console = Console(quiet=quiet, as_json=False)
    store = Store(out / "results.jsonl")
    if fresh:
        store.clear()
    chosen = [classifier(name) for name in dict.fromkeys(names)]
    with console.stage("Data and graphs"):
        cases = _cases(dataset, kept)
    for case in cases:
        smallest = min(Counter(case.y.tolist()).values())
        if 2 * counts[-1] > smallest:
            console.note(f"at most half of a class is labelled; {case.name} has one of {smallest}.")
    plans = (plan(case, chosen, labels=counts, draws=draws, seed=seed) for case in cases)
    trials = list(chain.from_iterable(plans))
    n_jobs = (os.cpu_count() or 1) if jobs == -1 else jobs
    running = run(cases, chosen, trials, store=store, n_jobs=n_jobs)
    order = {trial: place for place, trial in enumerate(trials)}
    outcomes = _collected(running, len(order), store.path, console)
    outcomes.sort(key=lambda outcome: order[outcome.trial])
    _tell(outcomes, out, console, f"{draws} draws, seed {seed}")


def _cases(dataset: str | None, classes: list[int] | None) -> "list[Case]":
    from tvsvm.datasets import DatasetError, DatasetNotFoundError, load
    from tvsvm.experiments import Case, paper

    wanted: Sequence[Sequence[int] | None] = [classes]
    if dataset is None and classes is None:
        wanted = list(paper.TABLES)
    try:
        return [Case.of(load(dataset or paper.DATASET, part), n_jobs=-1) for part in wanted]
    except DatasetNotFoundError as error:
        raise UserError(f"{str(error).rstrip('.')}, as in --dataset digits.") from error
    except DatasetError as error:
        raise UserError(str(error)) from error


def _collected(
    running: "Iterator[Outcome]", total: int, path: Path, console: Console
) -> "list[Outcome]":
    """All outcomes, with a progress bar while they come."""
    outcomes: list[Outcome] = []
    try:
        with console.stage("Fits") as progress:
            for outcome in running:
                outcomes.append(outcome)
                progress(len(outcomes) / total)
    except KeyboardInterrupt:
        typer.echo(
            f"Interrupted; {len(outcomes)} of {total} fits are in {path}, the same command goes "
            "on from there.",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    return outcomes


def _tell(outcomes: "list[Outcome]", out: Path, console: Console, heading: str) -> None:
    """Tables and picture into the folder, tables on the terminal."""
    from tvsvm.experiments import files
    from tvsvm.experiments.tables import summarize

    summaries = summarize(outcomes)
    files.write_markdown(out / "error.md", summaries, heading)
    files.write_csv(out / "error.csv", summaries)
    try:
        files.write_picture(out / "error.png", summaries)
    except ImportError:
        console.note("no picture without matplotlib: pip install 'tvsvm[plot]'.")
    for note in sorted({f"{o.trial.method}: {o.note}" for o in outcomes if o.note}):
        console.note(f"† counts as guessing, {note}")
    if console.quiet:
        return
    from rich.console import Console as RichConsole
    from rich.table import Table

    terminal = RichConsole()
    if not terminal.is_terminal:
        terminal.width = 140  # nobody's window is too narrow
    for case in dict.fromkeys(setting.case for setting in summaries):
        header, lines = files.side_by_side(summaries, case)
        table = Table(title=f"{case}: error in %, {heading}")
        for title in header:
            table.add_column(title, justify="left" if title == header[0] else "right")
        for line in lines:
            table.add_row(*line)
        terminal.print(table)
    typer.echo(f"Written to {out}.")


def _listed(text: str, convert: Callable[[str], T], option: str, example: str) -> list[T]:
    try:
        return [convert(part.strip()) for part in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(
            f"--{option} must be a list such as {example}. Got {text!r}: {error}."
        ) from error


def _positive(text: str) -> int:
    if int(text) < 1:
        raise ValueError(f"{text} is not positive")
    return int(text)
