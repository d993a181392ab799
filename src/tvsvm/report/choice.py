"""What AutoTV chose and why, in words for everybody."""

from dataclasses import dataclass
from typing import Any

IN_WORDS = {
    "balanced": "divided the rows where they hang together least",
    "smooth": "let the labels spread among similar rows, with a weak total variation",
    "laplacian": "let the labels spread smoothly among similar rows, as LapRLS does",
    "kernel": "learnt from the labelled rows alone, as RLS does",
    "pairs": "learnt from the labelled rows alone, class against class",
    "spectral": "fitted the labels by the slowest waves on the graph of similar rows",
    "constant": "gave all rows the same class",
}


@dataclass(frozen=True)
class Choice:
    """The method that was chosen, and a sentence about it."""

    method: str
    sentence: str


# What has a say beside it, in fewer words.
BESIDE = {
    "balanced": "a cut",
    "smooth": "weak total variation",
    "laplacian": "LapRLS",
    "kernel": "RLS",
    "pairs": "class against class",
    "spectral": "waves on the graph",
}
HEARD = 0.1  # of the say, from where on a method is told


def choice_of(model: Any) -> Choice | None:
    """The choice of a fitted AutoTV; None for classifiers that have nothing to choose."""
    report = getattr(model, "report_", None)
    if report is None:
        return None
    method = report["method"]
    sentence = f"AutoTV {IN_WORDS[method]} ({report['reason']})"
    beside = [
        f"{BESIDE[name]} {share:.0%}"
        for name, share in report["say"].items()
        if name != method and share >= HEARD
    ]
    if beside:
        sentence += f"; that has {report['say'][method]:.0%} of the say, {', '.join(beside)}"
    return Choice(method, sentence)
