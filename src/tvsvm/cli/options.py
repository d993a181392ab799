"""Options that commands share, each written once, and the file they may come from."""

import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tvsvm.cli.errors import UserError


class Method(StrEnum):
    """The classifiers."""

    RLS = "RLS"
    SVM = "SVM"
    LapRLS = "LapRLS"
    LapSVM = "LapSVM"
    TVRLS = "TVRLS"
    TVSVM = "TVSVM"
    CheegerRLS = "CheegerRLS"
    CheegerSVM = "CheegerSVM"
    AutoTV = "AutoTV"


DEFAULT_METHOD = Method.AutoTV
DEFAULT_SEED = 0

TABLE, FIT, OUTPUT = "The table", "The classifier", "Output"


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take defaults of the command's options from a TOML file; the command line wins."""
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            values = tomllib.load(file)
    except FileNotFoundError as error:
        raise typer.BadParameter(f"{path} does not exist.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} is no TOML file: {error}.") from error
    # By the long option's name, as it is typed.
    parameters = {
        name.removeprefix("--"): parameter.name
        for parameter in context.command.params
        for name in parameter.opts
        if name.startswith("--") and parameter.name != "config"
    }
    defaults: dict[str, Any] = {}
    for name, value in values.items():
        option = name.replace("_", "-")
        if option not in parameters:
            known = ", ".join(sorted(parameters))
            raise typer.BadParameter(
                f"{path} sets {name!r}, which is no option; there are {known}."
            )
        defaults[str(parameters[option])] = _as_given(value)
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


def _as_given(value: Any) -> Any:
    """Write a table such as {cat = 0.4, dog = 0.6} as it is typed: cat=0.4,dog=0.6."""
    if isinstance(value, dict):
        return ",".join(f"{key}={share}" for key, share in value.items())
    return value


def parse_prior(text: str | None) -> str | dict[str, float] | None:
    """Shares of classes: "uniform" or "cat=0.4,dog=0.6"."""
    if text is None or text == "uniform":
        return text
    try:
        pairs = [part.rsplit("=", 1) for part in text.split(",")]
        return {name.strip(): float(share) for name, share in pairs}
    except ValueError as error:  # no "=", or no number after it
        raise UserError(
            f"--prior must be 'uniform' or shares of all classes. Got {text!r}; pass for example "
            "--prior cat=0.4,dog=0.6."
        ) from error


Input = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, Parquet, Feather, Excel, JSON lines, .npy, .npz, or a folder of images.",
        metavar="INPUT",
        show_default=False,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        help="Column with the labels, empty where unknown. By default the one with gaps; of "
        "several, the one called label, class, target or y.",
        rich_help_panel=TABLE,
    ),
]
LabelsFile = Annotated[
    Path | None,
    typer.Option(
        "--labels-file",
        help="Labels of a NumPy file (one a row, .npy or a column of a table) or of images "
        "(file names and labels).",
        rich_help_panel=TABLE,
    ),
]
Unlabeled = Annotated[
    str | None,
    typer.Option(
        "--unlabeled",
        help="Text that stands for an unknown label, besides empty cells. By default words such as "
        "NA and none, and in a column without gaps -1.",
        rich_help_panel=TABLE,
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        "--features",
        help="Columns to learn from, separated by commas, as name or name:kind (number, category, "
        "date, vector). By default all that can serve.",
        rich_help_panel=TABLE,
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        "--id", help="Columns that name the rows; never learnt from.", rich_help_panel=TABLE
    ),
]
Encoding = Annotated[str, typer.Option("--encoding", help="Of text files.", rich_help_panel=TABLE)]
MethodOption = Annotated[
    Method,
    typer.Option(
        "--method", help="The classifier; AutoTV finds out what suits.", rich_help_panel=FIT
    ),
]
Neighbors = Annotated[
    int | None,
    typer.Option("--neighbors", min=1, help="Neighbours of a row.", rich_help_panel=FIT),
]
Metric = Annotated[
    str | None,
    typer.Option("--metric", help="Distance of rows: euclidean, cosine, ...", rich_help_panel=FIT),
]
Prior = Annotated[
    str | None,
    typer.Option(
        "--prior",
        help="Expected shares of the classes (TV, Cheeger): uniform or cat=0.4,dog=0.6.",
        rich_help_panel=FIT,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", help="Threads; -1 for all cores.", rich_help_panel=FIT),
]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, help="The same seed, the same answer.", rich_help_panel=FIT),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="TOML file with any of these options by name; the command line wins.",
        callback=read_config,
        is_eager=True,
        rich_help_panel=OUTPUT,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Where to write. By default INPUT with .labelled.", rich_help_panel=OUTPUT
    ),
]
InPlace = Annotated[
    bool, typer.Option("--in-place", help="Write over the input.", rich_help_panel=OUTPUT)
]
SaveModel = Annotated[
    Path | None,
    typer.Option("--save-model", help="File for `tvsvm predict`.", rich_help_panel=OUTPUT),
]
Report = Annotated[
    Path | None,
    typer.Option("--report", help="HTML page about the result.", rich_help_panel=OUTPUT),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say what would be done.", rich_help_panel=OUTPUT)
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace files that exist.", rich_help_panel=OUTPUT)
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing but errors.", rich_help_panel=OUTPUT)
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="The result as JSON on standard output.", rich_help_panel=OUTPUT),
]
