"""What the benchmarks decide by: goals, and the exit code that stops a slow version."""

from pathlib import Path

import pytest


@pytest.fixture
def goals(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    from benchmarks.goals import Goals

    return Goals()


def test_goals_that_are_met_or_nearly_pass(goals, capsys):
    goals.at_least("faster", 3.1, 3)
    goals.at_least("nearly", 2.5, 3)
    goals.at_most("short", 0.0, 1)
    goals.at_most("nearly short", 1.2, 1)
    assert goals.exit_code == 0
    lines = capsys.readouterr().out.splitlines()
    assert [("MISSED" in line, "met" in line) for line in lines] == [
        (False, True),
        (True, False),
        (False, True),
        (True, False),
    ]


@pytest.mark.parametrize(
    "measure",
    [
        lambda goals: goals.at_least("speed", 2.3, 3),
        lambda goals: goals.at_most("speed", 1.3, 1),
        lambda goals: goals.at_least("speed", 0.998, 0.999, "", slack=0),
    ],
)
def test_a_goal_clearly_missed_fails_the_run_and_is_named(goals, measure):
    goals.at_least("other", 10, 1)
    measure(goals)
    goals.at_least("other", 10, 1)
    assert goals.exit_code == 1
    assert goals.summary() == "Clearly missed: speed"
