"""The one way this package compiles a loop: numba, cached on disk, without the GIL.

numba decides that a cached kernel is stale from the file it is *defined* in, and does not look at
what that kernel calls. So a kernel may use only kernels and constants of its own file;
``tests/test_jit.py`` walks all of them and fails on one that reaches further.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` on its first call and keep the machine code for later processes."""
    # Division by zero follows IEEE (error_model) so that loops vectorise; strict floating point
    # otherwise: a duality gap summed with fast-math certifies nothing.
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return cast(F, numba.njit(cache=True, **options)(function))
    except RuntimeError:
        # No folder to write the cache to (read-only installation and home): compile every time.
        return cast(F, numba.njit(**options)(function))
