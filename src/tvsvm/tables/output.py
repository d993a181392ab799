"""Files that appear whole or not at all: written beside their place, then renamed."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tvsvm.tables.base import TableError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary file in the folder of `path`, which becomes `path` if the block succeeds.

    If it fails for any reason the temporary file is gone and `path` is as it was.
    """
    path = path.resolve()  # a link stays one
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent
        )
    except OSError as error:
        raise TableError(
            f"{path} cannot be written ({error.strerror}); choose another place."
        ) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp keeps others out; a result is as readable as any file its user makes.
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise TableError(
            f"{path} cannot be written, the disk is full; make room or choose another place, "
            "nothing was changed."
        ) from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def check_writable(path: Path, *, option: str, force: bool) -> None:
    """Refuse a place that holds something already, or is in no folder, before any work is done."""
    if not path.parent.is_dir():
        raise TableError(f"{option} {path} is in a folder that does not exist; make it first.")
    if path.is_dir():
        raise TableError(f"{option} {path} is a folder; pass the name of a file.")
    if path.exists() and not path.is_file():  # a device or a pipe would be gone
        raise TableError(f"{option} {path} is no usual file; pass the name of one.")
    if not os.access(path.resolve().parent, os.W_OK):
        raise TableError(f"{option} {path} is in a folder you may not write to; pass another.")
    if path.exists() and not force:
        raise TableError(f"{path} exists already; pass --force to replace it, or another {option}.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
