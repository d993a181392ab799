"""Outcomes put together: mean, spread and worst draw, and tables of them in Markdown."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tvsvm.experiments.store import Outcome


class Setting(NamedTuple):
    """What the methods of one line of a table have in common."""

    case: str
    official: bool
    labels: int


@dataclass(frozen=True)
class Summary:
    """Error in % over the draws."""

    mean: float
    std: float
    worst: float
    seconds: float
    n_draws: int
    n_failed: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.std:.2f}" + ("†" if self.n_failed else "")


def summarize(outcomes: Iterable[Outcome]) -> dict[Setting, dict[str, Summary]]:
    """Summaries by setting and method: cases and methods as they first occur, labels ascending."""
    grouped: dict[Setting, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        trial = outcome.trial
        grouped[Setting(trial.case, trial.official, trial.labels)][trial.method].append(outcome)
    cases = list(dict.fromkeys(setting.case for setting in grouped))
    return {
        setting: {method: _summary(found) for method, found in grouped[setting].items()}
        for setting in sorted(grouped, key=lambda item: (cases.index(item.case), item))
    }


def markdown(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [list(header), ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def ranks(errors: Mapping[str, float]) -> dict[str, float]:
    """Rank of each method, 1 for the smallest error, ties sharing the mean of their ranks."""
    values = np.array(list(errors.values()))
    below = (values[:, None] > values).sum(axis=1)
    equal = (values[:, None] == values).sum(axis=1)
    return dict(zip(errors, (below + (equal + 1) / 2).tolist(), strict=True))


def _summary(outcomes: list[Outcome]) -> Summary:
    errors = np.array([outcome.error for outcome in outcomes])
    return Summary(
        mean=float(errors.mean()),
        std=float(errors.std(ddof=1)) if len(errors) > 1 else 0.0,
        worst=float(errors.max()),
        seconds=float(np.mean([outcome.seconds for outcome in outcomes])),
        n_draws=len(errors),
        n_failed=sum(bool(outcome.note) for outcome in outcomes),
    )
