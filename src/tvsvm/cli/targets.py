"""Where results go: never over the input or an existing file unless the user says so."""

from dataclasses import dataclass
from pathlib import Path

from tvsvm.cli.errors import UserError
from tvsvm.tables.output import check_writable


@dataclass(frozen=True)
class Targets:
    """Files that a command will write; those that are not asked for are None."""

    table: Path
    model: Path | None = None
    report: Path | None = None

    @classmethod
    def checked(
        cls,
        path: Path,
        out: Path | None,
        *,
        force: bool,
        in_place: bool = False,
        model: Path | None = None,
        report: Path | None = None,
    ) -> "Targets":
        """Choose the files, and refuse them before any work is done."""
        table = _in_place(path, out) if in_place else out or default_output(path)
        suffix = default_output(path).suffix
        if table.suffix.lower() != suffix.lower():
            raise UserError(
                f"The result is written in the format of the input. Got --out {table}; pass a name "
                f"that ends in {suffix}."
            )
        if not in_place:
            if table.resolve() == path.resolve():
                raise UserError(
                    f"--out {table} is the input; pass another name, or --in-place "
                    "to `tvsvm label`."
                )
            check_writable(table, option="--out", force=force)
        if model is not None:
            check_writable(model, option="--save-model", force=force)
        if report is not None:
            check_writable(report, option="--report", force=force)
        files = [file.resolve() for file in (path, table, model, report) if file is not None]
        if len(set(files)) < len(files) - in_place:
            raise UserError(
                "The input, --out, --save-model and --report must be different files; name each "
                "another."
            )
        return cls(table, model, report)


def default_output(path: Path) -> Path:
    """Name of the result beside the input: table.labelled.csv for table.csv."""
    if path.is_dir():
        return path.resolve().with_name(f"{path.resolve().name}.labelled.csv")
    suffix = ".npz" if path.suffix.lower() == ".npy" else path.suffix
    return path.with_name(f"{path.stem}.labelled{suffix}")


def _in_place(path: Path, out: Path | None) -> Path:
    if out is not None:
        raise UserError("--in-place and --out say two things; pass one of them.")
    if path.is_dir() or path.suffix.lower() == ".npy":
        raise UserError(
            f"--in-place needs a file that can hold columns. Got {path}; leave it out, or pass "
            "--out."
        )
    return path
