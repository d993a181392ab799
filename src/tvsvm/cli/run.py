"""How every command ends: its exit code, and one sentence for what went wrong."""

import functools
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import typer

from tvsvm.cli.errors import UserError

DATA_ERROR = 1
INTERRUPTED = 130


def tidy(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command end with a sentence and an exit code where it would raise."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        _interrupt_on_terminate()
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            _end("Interrupted; no file was changed.", INTERRUPTED)
        except MemoryError:
            _end("Not enough memory; use fewer rows or features, or a larger machine.", DATA_ERROR)
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            _end(f"{place}{error.strerror or error}.", DATA_ERROR)
        except Exception as error:
            if not isinstance(error, _corrigible()):
                raise
            _end(str(error), DATA_ERROR)

    return run


def _corrigible() -> tuple[type[Exception], ...]:
    # Imported when something went wrong: `--help` must not wait for scikit-learn.
    from tvsvm.persistence import ModelError
    from tvsvm.tables.base import TableError

    return UserError, TableError, ModelError


def _end(sentence: str, code: int) -> None:
    typer.echo(f"error: {sentence}", err=True)
    raise typer.Exit(code)


def _interrupt_on_terminate() -> None:
    """Let `kill` clean up as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, interrupt)
