"""The engine: same draws for all, unlabelled rows only, resumed and parallel without a change."""

import numpy as np
import pytest

import tvsvm
from tvsvm.datasets import Dataset, draw_labels
from tvsvm.experiments import Case, Method, Outcome, Store, Trial, paper, plan, run
from tvsvm.experiments.files import side_by_side, write_csv, write_markdown
from tvsvm.experiments.methods import NAMES, classifier
from tvsvm.experiments.tables import Setting, markdown, ranks, summarize

COUNT = 40


def truth(case, rows):
    return case.y


def wrong_where_hidden(case, rows):
    found = (case.y + 1) % 2
    found[rows] = case.y[rows]
    return found


def right_only_where_shown_or_even(case, rows):
    found = np.where(np.arange(len(case.y)) % 2 == 0, case.y, -1)
    found[rows] = case.y[rows]
    return found


def fails(case, rows):
    raise ValueError("does not work")


def exits(case, rows):
    raise SystemExit("bad input")


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], COUNT // 2)
    return Case.of(Dataset("blobs", rng.normal(size=(COUNT, 2)) + 6 * y[:, None], y, "made"))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "deep" / "results.jsonl")


def outcomes(case, store, *functions, **options):
    methods = [Method(function.__name__, function, "1") for function in functions]
    trials = plan(case, methods, **{"labels": [1, 3], "draws": 2, **options})
    return list(run([case], methods, trials, store=store))


def test_error_counts_unlabelled_rows_only(case, store):
    found = outcomes(case, store, truth, wrong_where_hidden, right_only_where_shown_or_even)
    for outcome in found:
        rows = draw_labels(case.y, outcome.trial.labels, outcome.trial.draw)
        hidden = np.setdiff1d(np.arange(COUNT), rows)
        expected = {
            "truth": 0,
            "wrong_where_hidden": 100,
            "right_only_where_shown_or_even": 100 * np.mean(hidden % 2),
        }
        assert outcome.error == pytest.approx(expected[outcome.trial.method])
    assert len(found) == 3 * 2 * 2


@pytest.mark.parametrize("function", [fails, exits])
def test_failure_counts_as_guessing(case, store, function):
    first, *_ = outcomes(case, store, function)
    assert first.error == 50
    assert first.note in ("ValueError: does not work", "SystemExit: bad input")


def test_second_run_repeats_nothing(case, store):
    first = outcomes(case, store, truth)
    lines = store.path.read_text()
    assert outcomes(case, store, truth) == first
    assert store.path.read_text() == lines
    more = outcomes(case, store, truth, draws=3)
    assert set(first) < set(more)
    assert store.path.read_text().startswith(lines)
    store.clear()
    assert store.read() == {}


def test_other_settings_are_run_anew(case, store):
    outcomes(case, store, truth)
    method = Method("truth", wrong_where_hidden, "2")
    (outcome,) = run([case], [method], plan(case, [method], labels=[1], draws=1), store=store)
    assert outcome.error == 100


def test_torn_line_is_done_again_and_swallows_nothing(case, store):
    first = outcomes(case, store, truth)
    text = store.path.read_text()
    store.path.write_text("not JSON\n[1]\n" + text[:-20])
    assert len(store.read()) == len(first) - 1
    again = outcomes(case, store, truth)
    assert {outcome.trial for outcome in again} == {outcome.trial for outcome in first}
    assert store.read().keys() == {outcome.trial for outcome in first}


def test_processes_change_nothing(case, tmp_path):
    methods = [classifier("RLS"), Method("fails", fails, "1")]
    trials = plan(case, methods, labels=[1], draws=3)
    alone = list(run([case], methods, trials, store=Store(tmp_path / "1")))
    shared = list(run([case], methods, trials, store=Store(tmp_path / "2"), n_jobs=2))
    assert {(o.trial, o.error, o.note) for o in alone} == {
        (o.trial, o.error, o.note) for o in shared
    }


def test_official_splits(case, store):
    splits = {2: np.array([[0, 20], [5, 25]])}
    official = Case(case.name, case.X, case.y, case.graph, splits)
    found = outcomes(official, store, wrong_where_hidden, labels=[2], draws=9, official=True)
    assert [outcome.trial.draw for outcome in found] == [0, 1]
    np.testing.assert_array_equal(official.labelled(found[1].trial), [5, 25])


def test_case_numbers_its_classes_without_a_gap():
    y = np.repeat([0, 4, 9], 10)
    X = np.random.default_rng(0).normal(size=(30, 2))
    case = Case.of(Dataset("usps", X, y, "made").only([4, 9]))
    assert case.name == "usps[4, 9]"
    assert set(case.y) == {0, 1}
    assert paper.figure(case.name, "TVSVM", 5) == 3.13
    assert paper.figure("usps[0, 1, 4, 9]", "CheegerSVM", 50) == 1.74
    assert paper.figure(case.name, "RLS", 5) is None
    assert paper.figure(case.name, "TVSVM", 7) is None
    assert paper.figure("digits", "TVSVM", 5) is None


def test_case_takes_the_graph_that_comes_with_the_rows(case):
    own = Case.of(Dataset("own", case.X, case.y, "made", graph=case.graph))
    assert own.graph is case.graph


@pytest.mark.parametrize("name", NAMES)
def test_every_classifier_finds_blobs_on_the_graph_of_the_case(case, store, name, monkeypatch):
    monkeypatch.setattr("tvsvm.estimators.graph.knn_graph", None)  # not made again
    method = classifier(name)
    (outcome,) = run([case], [method], plan(case, [method], labels=[2], draws=1), store=store)
    assert (outcome.error, outcome.note) == (0, "")
    assert tvsvm.__version__ in method.settings


def outcome(method, labels, draw, error, case="usps[4, 9]", note=""):
    return Outcome(Trial(case, method, "", labels, False, draw, 0), error, 2.0, note)


@pytest.fixture
def summaries():
    return summarize(
        [
            outcome("TVRLS", 5, 0, 2.0),
            outcome("TVRLS", 1, 0, 1.0),
            outcome("TVRLS", 1, 1, 4.0),
            outcome("RLS", 1, 0, 50.0, note="failed"),
        ]
    )


def test_summary(summaries):
    summary = summaries[Setting("usps[4, 9]", False, 1)]["TVRLS"]
    assert (summary.mean, summary.worst, summary.n_draws, summary.n_failed) == (2.5, 4.0, 2, 0)
    assert [setting.labels for setting in summaries] == [1, 5]
    assert summary.std == pytest.approx(np.std([1, 4], ddof=1))
    assert str(summary) == "2.50 ± 2.12"
    assert str(summaries[Setting("usps[4, 9]", False, 1)]["RLS"]) == "50.00 ± 0.00†"


def test_tables_stand_beside_the_papers(summaries, tmp_path):
    header, lines = side_by_side(summaries, "usps[4, 9]")
    assert header == ["labels a class", "1", "paper", "5", "paper"]
    assert lines == [
        ["TVRLS", "2.50 ± 2.12", "3.18", "2.00 ± 0.00", "3.16"],
        ["RLS", "50.00 ± 0.00†", "–", "–", "–"],
    ]
    write_markdown(tmp_path / "t.md", summaries, "Title")
    assert markdown(header, lines) in (tmp_path / "t.md").read_text()
    write_csv(tmp_path / "t.csv", summaries)
    first, *rows = (tmp_path / "t.csv").read_text().splitlines()
    assert first == "case,method,labels,mean,std,worst,seconds,n_draws,n_failed,paper"
    assert '"usps[4, 9]",TVRLS,5,2.0,0.0,2.0,2.0,1,0,3.16' in rows


def test_no_column_for_a_paper_that_says_nothing():
    header, _ = side_by_side(summarize([outcome("RLS", 1, 0, 3.0, case="digits")]), "digits")
    assert header == ["labels a class", "1"]


def test_ranks_share_ties():
    assert ranks({"a": 3.0, "b": 1.0, "c": 3.0, "d": np.inf}) == {
        "a": 2.5,
        "b": 1,
        "c": 2.5,
        "d": 4,
    }


def test_cases_have_names_of_their_own(case, store):
    trials = plan(case, [classifier("RLS")], labels=[1], draws=1)
    for cases in ([case, case], []):
        with pytest.raises(ValueError, match="names of their own"):
            list(run(cases, [classifier("RLS")], trials, store=store))
