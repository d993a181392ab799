"""What AutoTV chose and why, in words for everybody."""

from dataclasses import dataclass
from typing import Any

IN_WORDS = {
    "balanced": "divided the rows where they hang together least",
    "smooth": "let the labels spread among similar rows, with a weak total variation",
    "laplacian": "let the labels spread smoothly among similar rows, as LapRLS does",
    "kernel": "learnt from the labelled rows alone, as RLS does",
    "pairs": "learnt from the labelled rows alone, class against class",
    "constant": "gave all rows the same class",
}


@dataclass(frozen=True)
class Choice:
    """The method that was chosen, and a sentence about it."""

    method: str
    sentence: str


def choice_of(model: Any) -> Choice | None:
    """The choice of a fitted AutoTV; None for classifiers that have nothing to choose."""
    report = getattr(model, "report_", None)
    if report is None:
        return None
    return Choice(report["method"], f"AutoTV {IN_WORDS[report['method']]} ({report['reason']})")
