"""How many threads BLAS gets during a fit."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

# Up to so many rows BLAS gets one thread: more gain little, and wait for each other as soon as
# anything else runs. Measured next to one busy process, two threads against one: 2 to 6 times the
# time for 1,673 rows, 1 to 1.6 times for 9,298.
FEW_ROWS = 10_000


def blas_threads(n_rows: int) -> AbstractContextManager[Any]:
    """Context in which BLAS has the threads that suit so many rows."""
    limit = 1 if n_rows <= FEW_ROWS else None
    return _thread_pools().limit(limits=limit, user_api="blas")


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()  # looking for the libraries takes longer than a small fit
