"""The `tvsvm` command and its sub-commands."""

from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import typer

from tvsvm.cli.run import tidy

COMMANDS = ("label", "predict", "suggest", "check", "datasets", "reproduce")

app = typer.Typer(
    name="tvsvm",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name in COMMANDS:
    app.command(name)(tidy(getattr(import_module(f"tvsvm.cli.{name}"), name)))


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tvsvm {version('tvsvm')}")
        raise typer.Exit


@app.callback()
def main(
    asked: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Classification when almost nothing is labelled: a table with a few labels in, all out.

    Exit codes: 0 done, 1 something in the data to correct, 2 wrong usage, 130 interrupted.
    """
