"""What a fit says while it runs, and what the command line makes of it."""

import io
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from rich.console import Console as RichConsole
from test_cli_label import frame, run

from tvsvm import TVSVM, AutoTV, CheegerRLS
from tvsvm._telling import each, part_of, tell, told_by
from tvsvm.cli import console
from tvsvm.neighbors import nearest_neighbors

HELD_BACK = "labels held back, fold {} of 3: searching a partition"


def heard(function):
    """What a function tells."""
    told = []
    with told_by(lambda stage, share: told.append((stage, share))):
        function()
    return told


def clusters(n_classes, n_labels=4):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(n_classes), 40)
    X = rng.normal(size=(truth.size, 3)) + 8 * np.eye(n_classes, 3)[truth]
    y = np.where(np.arange(truth.size) % 40 < n_labels, truth, -1)
    return X, y


def test_what_is_told_arrives_until_the_context_ends():
    assert heard(lambda: (tell("graph"), tell("graph", 0.5))) == [("graph", None), ("graph", 0.5)]
    assert heard(lambda: (heard(lambda: tell("inner")), tell("outer"))) == [("outer", None)]
    told = []
    with pytest.raises(ZeroDivisionError), told_by(lambda *what: told.append(what)):
        _ = 1 / 0
    tell("nobody listens")
    with part_of("this"):
        tell("nobody listens")
    assert told == []


def test_a_part_is_told_with_the_whole_and_its_share():
    def work():
        with part_of("fold 2", 0.5):
            tell("cut", 0.9)
        tell("end")

    assert heard(work) == [("fold 2: cut", 0.5), ("end", None)]


def test_each_passes_items_on_with_the_share_before():
    assert list(each("ab", "letters")) == ["a", "b"]
    assert heard(lambda: list(each("ab", "letters"))) == [("letters", 0.0), ("letters", 0.5)]


def test_threads_do_not_talk_into_each_other():
    with ThreadPoolExecutor(2) as pool:
        assert heard(lambda: pool.submit(tell, "elsewhere").result()) == []


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_for_neighbours_tells_all_its_blocks(n_jobs):
    X = np.random.default_rng(0).normal(size=(3000, 2))
    told = heard(lambda: nearest_neighbors(X, 3, algorithm="exact", n_jobs=n_jobs))
    assert {stage for stage, _ in told} == {"neighbours"}
    assert [share for _, share in told] == [k / len(told) for k in range(len(told))]
    assert len(told) > 1


@pytest.mark.parametrize(
    ("classifier", "n_classes", "expected"),
    [
        (AutoTV, 3, ["searching a partition", "first guess", "searching a partition"]),
        (TVSVM, 2, ["first guess", "total variation", "searching a partition"]),
        (CheegerRLS, 2, ["first guess", "Cheeger cut", "searching a partition"]),
        (
            CheegerRLS,
            3,
            ["first guess", "searching a partition", "total variation", "Cheeger cut"],
        ),
    ],
)
def test_a_fit_tells_its_stages_in_order(classifier, n_classes, expected):
    X, y = clusters(n_classes, n_labels=1)
    told = [stage for stage, _ in heard(lambda: classifier(random_state=0).fit(X, y))]
    stages = [stage for k, stage in enumerate(told) if told[:k][-1:] != [stage]]
    assert stages[:3] == ["kernel space", "graph", "neighbours"]
    assert stages[-len(expected) :] == expected


def test_labels_held_back_are_told_fold_by_fold():
    X, y = clusters(3)
    told = dict(heard(lambda: AutoTV(random_state=0).fit(X, y)))
    assert [told.get(HELD_BACK.format(fold)) for fold in (1, 2, 3)] == [0, 1 / 3, 2 / 3]


@pytest.mark.parametrize("verbose", [1, 2])
def test_verbose_says_what_begins(capsys, verbose):
    X, y = clusters(3, n_labels=1)
    AutoTV(random_state=0, verbose=verbose).fit(X, y)
    begun = [line for line in capsys.readouterr().out.splitlines() if line.endswith(" ...")]
    assert begun[:2] == ["[AutoTV] kernel space ...", "[AutoTV] graph ..."][: len(begun)]
    assert begun.count("[AutoTV] neighbours ...") == verbose - 1


def test_listening_changes_no_digit():
    X, y = clusters(3)
    models = []
    heard(lambda: models.append(AutoTV(random_state=0).fit(X, y)))
    silent = AutoTV(random_state=0).fit(X, y)
    np.testing.assert_array_equal(models[0].label_distributions_, silent.label_distributions_)


@pytest.fixture
def terminal(monkeypatch):
    screen = io.StringIO()

    def rich(**_):
        return RichConsole(file=screen, force_terminal=True, color_system=None, width=80)

    monkeypatch.setattr(console, "RichConsole", rich)
    return screen


def test_the_bar_says_what_the_fit_is_doing(tmp_path, terminal):
    frame().to_csv(tmp_path / "pets.csv", index=False)
    assert run("label", tmp_path / "pets.csv", "--method", "TVRLS").exit_code == 0
    assert "Fitting TVRLS" in terminal.getvalue()
    # Whatever it is doing when the bar is drawn, several times a second.
    assert re.search("first guess|total variation|searching a partition", terminal.getvalue())


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_no_bar_for_scripts(tmp_path, terminal, option):
    frame().to_csv(tmp_path / "pets.csv", index=False)
    assert run("label", tmp_path / "pets.csv", "--method", "RLS", option).exit_code == 0
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(
    ("share", "bar"), [(0.5, console.BAR_WIDTH // 2), (None, console.BAR_WIDTH)]
)
def test_the_bar_moves_where_a_share_is_known_and_pulses_elsewhere(terminal, share, bar):
    with console.Console(quiet=False, as_json=False).stage("Fitting", expected=60) as report:
        report(0.25, "neighbours")
        report(share, "total variation")
    last = [line for line in terminal.getvalue().splitlines() if "Fitting" in line][-1]
    assert last.count("━") == bar
    assert "total variation" in last
    assert "neighbours" not in last
