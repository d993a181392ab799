"""Memory of a fit, estimated before it starts, and the error if there is not as much."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.sparse import issparse

from tvsvm.kernel import RKHS
from tvsvm.kernel.features import BATCH_SIZE, POOL_SIZE
from tvsvm.kernel.space import n_landmarks
from tvsvm.labels import Labels

# Fitted to the peaks of 18 fits of 2,000 to 300,000 rows, 16 to 400 columns, 4 and 10 classes, 10
# and 30 neighbours, all methods: the estimate was 0.8 to 1.9 times the peak, 1.2 in the middle.
# Since then 25 bytes a neighbour more for the confirmed graph; AutoTV, 10,000 rows 1.0, 100,000
# rows 1.3 and, where the partition is clear, 3.3, a million 2.2 and 4.5.
# `python -m benchmarks.speed --part growth` prints both.
BYTES_A_NEIGHBOR = 150  # of each row: candidates of the search, edges, duals
BYTES_A_FUNCTION = {"supervised": 67, "laplacian": 130, "balanced": 220}  # of each row
# Square matrices at a time: while landmarks are chosen, in an eigendecomposition, and as distances
# of a precomputed kernel.
CHOOSING, EIGENVECTORS, DISTANCES = 1.2, 7.0, 4.0
PROC, CGROUP = Path("/proc"), Path("/sys/fs/cgroup")


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What decides the memory of a fit.

    Attributes
    ----------
    n_rows, n_columns, n_classes : int
        Sizes of the data.
    n_stored : int
        Numbers that X holds, fewer than rows times columns if it is sparse.
    itemsize : int
        Bytes of each.
    n_landmarks : int
        Landmarks of the kernel space.
    n_candidates : int
        Rows that they are chosen from.
    n_neighbors : int
        Neighbours of a row in the graph, 0 without a graph.
    family : {"supervised", "laplacian", "balanced"}
        Kind of method.
    precomputed : bool
        Whether X is a kernel matrix.
    """

    n_rows: int
    n_columns: int
    n_classes: int
    n_stored: int
    itemsize: int
    n_landmarks: int
    n_candidates: int
    n_neighbors: int
    family: str
    precomputed: bool

    @property
    def features(self) -> float:
        """Bytes of Φ, which is in float64 where all rows are landmarks."""
        itemsize = 8 if self.n_landmarks == self.n_rows else self.itemsize
        return float(itemsize * self.n_rows * self.n_landmarks)

    @property
    def graph(self) -> float:
        """Bytes of the graph and of the search for it, which is in float32."""
        if self.n_neighbors == 0:
            return 0.0
        copy = 4 * self.n_stored if self.itemsize > 4 else 0
        distances = DISTANCES * 8 * self.n_rows**2 if self.precomputed else 0
        return BYTES_A_NEIGHBOR * self.n_rows * self.n_neighbors + copy + distances

    @property
    def bytes(self) -> float:
        """Peak of the fit beyond X."""
        m = self.n_landmarks
        choice = m < self.n_candidates
        pool = min(self.n_candidates, max(m, min(4 * m, POOL_SIZE))) if choice else 0
        batch = 3 * self.itemsize * min(BATCH_SIZE, self.n_rows * max(self.n_columns, m))
        functions = BYTES_A_FUNCTION[self.family] * self.n_rows * self.n_classes
        later = max(EIGENVECTORS * 8 * m**2, self.graph + functions)
        return batch + max(CHOOSING * 8 * pool**2, self.features + later)

    def cures(self) -> Iterator[str]:
        """What would make it less, the most effective first."""
        if self.features >= self.graph:
            yield "fewer `n_components`"
        if self.itemsize > 4 and not self.precomputed:
            yield "X in float32"
        if self.n_neighbors > 1:
            yield "fewer `n_neighbors`"
        yield "fewer rows"


def demand(
    model: Any,
    shape: tuple[int, int],
    *,
    n_classes: int,
    n_labels: int,
    itemsize: int = 4,
    n_stored: int | None = None,
) -> Demand:
    """Demand of `model`, a classifier of this package, for X of this shape."""
    n_rows, n_columns = shape
    n_candidates = n_labels if model._family == "supervised" else n_rows
    return Demand(
        n_rows=n_rows,
        n_columns=n_columns,
        n_classes=n_classes,
        n_stored=n_rows * n_columns if n_stored is None else n_stored,
        itemsize=itemsize,
        n_landmarks=(
            model.kernel.rank
            if isinstance(model.kernel, RKHS)
            else n_landmarks(n_candidates, n_rows, model.n_components)
        ),
        n_candidates=n_candidates,
        n_neighbors=min(getattr(model, "n_neighbors", 0), n_rows - 1),
        family=model._family,
        precomputed=model.kernel == "precomputed",
    )


def require_memory(model: Any, X: Any, labels: Labels) -> None:
    """Raise MemoryError if a fit of `model` would take more memory than there is."""
    needed = demand(
        model,
        X.shape,
        n_classes=labels.n_classes,
        n_labels=len(labels.rows),
        itemsize=X.dtype.itemsize,
        n_stored=X.nnz if issparse(X) else None,
    )
    available = available_memory()
    if available is not None and needed.bytes > available:
        raise MemoryError(
            f"{type(model).__name__} needs about {size(needed.bytes)} of memory for "
            f"{needed.n_rows:,} rows and {needed.n_classes} classes. Got {size(available)}; pass "
            f"{' or '.join(needed.cures())}."
        )


def available_memory() -> float | None:
    """Bytes that this process may still take; None if the system does not say."""
    limits = [limit for limit in (_free(), *_left_in_groups()) if limit is not None]
    if not limits and hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        limits.append(float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    return min(limits, default=None)


def _free() -> float | None:
    kilobytes = _table(PROC / "meminfo").get("MemAvailable:")
    return None if kilobytes is None else 1024.0 * kilobytes


def _left_in_groups() -> Iterator[float]:
    """What the control groups of this process, and those around them, leave (version 1 and 2)."""
    try:
        lines = (PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        names = ("memory.max", "memory.current")
        root = CGROUP
        if controllers:
            if "memory" not in controllers.split(","):
                continue
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            root = CGROUP / "memory"
        inner = root / path.lstrip("/")
        for group in (inner, *inner.parents):
            if group != root and root not in group.parents:
                break
            try:
                limit, used = (float((group / name).read_text()) for name in names)
            except (OSError, ValueError):  # no such group here, or no limit ("max")
                continue
            # Files kept in memory count as used, but give way.
            yield limit - used + _table(group / "memory.stat").get("inactive_file", 0)


def _table(path: Path) -> dict[str, int]:
    """Names and numbers of a system file; empty if there is none."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in lines if len(words) > 1}


def size(n_bytes: float) -> str:
    """Bytes in words."""
    if n_bytes >= 1e9:
        return f"{n_bytes / 1e9:.1f} GB"
    return f"{max(1, round(n_bytes / 1e6)):,} MB"
