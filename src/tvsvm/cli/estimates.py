"""How much memory and time a fit will take, roughly, before it is tried."""

import os
from dataclasses import dataclass
from pathlib import Path

from tvsvm.cli.console import duration
from tvsvm.cli.errors import UserError

# Measured with 100,000 rows, 15 columns and 4 classes: bytes and seconds besides the table.
START_BYTES, BYTES_A_ROW = 300e6, 4000
START_SECONDS = 2.0
SECONDS_A_ROW = {"RLS": 1e-4, "SVM": 1e-4, "LapRLS": 3e-4, "LapSVM": 3e-4}
SECONDS_A_ROW_AND_CLASS = 1.8e-4


@dataclass(frozen=True)
class Estimate:
    """Memory and time."""

    bytes: float
    seconds: float

    def __str__(self) -> str:
        return f"about {size(self.bytes)} of memory and {duration(self.seconds)}"


def estimate(n_rows: int, n_columns: int, n_classes: int, method: str) -> Estimate:
    """Memory and time of a fit."""
    a_row = SECONDS_A_ROW.get(method, SECONDS_A_ROW_AND_CLASS * n_classes)
    return Estimate(
        bytes=START_BYTES + n_rows * (BYTES_A_ROW + 3 * 4 * n_columns + 80 * n_classes),
        seconds=START_SECONDS + n_rows * (a_row + 2e-7 * n_columns),
    )


def check_memory(n_rows: int, n_columns: int) -> None:
    """Refuse a table that will not fit, before any of it is allocated."""
    needed = estimate(n_rows, n_columns, 2, "RLS").bytes
    available = available_memory()
    if available is not None and needed > available:
        raise UserError(
            f"{n_rows:,} rows of {n_columns:,} numbers need about {size(needed)} of memory, and "
            f"{size(available)} are free; use fewer rows or choose features by --features."
        )


def available_memory() -> float | None:
    """Bytes that this process may still take; None if the system does not say."""
    limits = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(1024.0 * int(line.split()[1]))
    except OSError:
        pass
    try:
        group = Path("/sys/fs/cgroup")
        limits.append(
            float((group / "memory.max").read_text())
            - float((group / "memory.current").read_text())
        )
    except (OSError, ValueError):  # no such group, or "max"
        pass
    if not limits and hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        limits.append(float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    return min(limits, default=None)


def size(n_bytes: float) -> str:
    """Bytes in words."""
    if n_bytes >= 1e9:
        return f"{n_bytes / 1e9:.1f} GB"
    return f"{max(1, round(n_bytes / 1e6)):,} MB"
