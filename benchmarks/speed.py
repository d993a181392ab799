"""Speed and size against the goals and peers: python -m benchmarks.speed [--part NAME] [--quick].

Everything side by side in one run, medians over repeats, one label a class. `--quick` takes under
two minutes and no data but what is made up and what scikit-learn brings; `make bench-quick` runs
it. Its goals are those of its size.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from functools import partial
from importlib.util import find_spec

import numpy as np

import tvsvm
from benchmarks import tasks
from benchmarks.children import in_fresh_process
from benchmarks.data import at_hand, named_rows, one_label_a_class, synthetic_graph, unit_weights
from benchmarks.goals import Goals
from benchmarks.tv import bandwidth, seconds
from tvsvm.datasets import load
from tvsvm.experiments import Case
from tvsvm.experiments.methods import NAMES
from tvsvm.graph import knn_graph

# Seconds that a peer gets, at all and with --quick; if it needs more, this is what counts.
CAP, QUICK_CAP = 300.0, 15.0
QUICK_ROWS = 5_000
# The goals are about many rows. With few, peers have less overhead and little depends on the type
# of the rows; there the goal is not to fall behind what a version has reached.
GOALS = {"poisson": 1, "poisson_mbo": 10, "raw": 3, "refit": 5, "same": 0.999, "float32": 1.4}
QUICK_GOALS = {
    "poisson": 0.1,
    "poisson_mbo": 5,
    "raw": 0.1,
    "refit": 8,
    "same": 0.99,
    "float32": 0.9,
}
MNIST_ROWS = 70_000


def _goal(name, quick):
    return (QUICK_GOALS if quick else GOALS)[name]


def fit_on(case, rows, *, name):
    """Fit a classifier on the graph of the case, its kernel space included."""
    model = getattr(tvsvm, name)(random_state=0)
    if "graph" in model.get_params():
        model.set_params(graph=case.graph)
    return model.fit_predict(case.X, case.shown(rows))


def cases(quick):
    """Data sets on a given graph."""
    if quick:
        X, y = named_rows("digits", QUICK_ROWS)
        yield Case("digits", X, y, knn_graph(X, random_state=0), {})
    for name in ("usps",) if quick else ("usps", "mnist"):
        if at_hand(name):
            yield Case.of(load(name))


def fit(goals, quick):
    """On a given graph: our recommended method against GraphLearning's."""
    if find_spec("graphlearning") is None:
        print("graphlearning is not installed, pip install 'tvsvm[bench]'")
        return
    for case in cases(quick):
        rows = np.flatnonzero(one_label_a_class(case.y) >= 0)
        run = partial(fit_on, case, rows, name="AutoTV")
        run()
        ours, found = seconds(run)
        print(f"  {case.name}: ours {ours:.2f} s, accuracy {np.mean(found == case.y):.3f}")
        for name, sizes in (("poisson", None), ("poisson_mbo", "uniform")):
            repeats, cap = 3 if name == "poisson" else 1, QUICK_CAP if quick else CAP
            peer = in_fresh_process(tasks.on_graph, case, rows, name, sizes, repeats, cap=cap)
            theirs, classes = peer or (cap, None)
            accuracy = "not ended" if peer is None else f"accuracy {np.mean(classes == case.y):.3f}"
            goals.at_least(
                f"{case.name}, {len(case.y):,} rows, given graph: {name} / ours",
                theirs / ours,
                _goal(name, quick),
                note=f"{theirs:.2f} s, {accuracy}",
            )


def methods(goals, quick):
    """Every method on two classes, after the graph."""
    name = "digits" if quick or not at_hand("usps") else "usps"
    case = Case.of(load(name, (4, 9)))
    rows = np.flatnonzero(one_label_a_class(case.y) >= 0)
    for method in (*NAMES, "AutoTV"):
        run = partial(fit_on, case, rows, name=method)
        run()
        goals.at_most(f"{name} {{4, 9}}, {len(case.y):,} rows: {method}", seconds(run)[0], 1)


def raw(goals, quick):
    """From raw rows to classes, each in a fresh process that has compiled and imported."""
    data, n_rows = ("digits", QUICK_ROWS) if quick else ("mnist", MNIST_ROWS)
    if not quick and not at_hand(data):
        return
    ours = in_fresh_process(tasks.ours, data, n_rows)[0]
    for name, task in tasks.peers_at_hand():
        cap = QUICK_CAP if quick else CAP
        theirs = in_fresh_process(task, data, n_rows, cap=cap)
        goals.at_least(
            f"{data}, {n_rows:,} raw rows: {name} / ours",
            (theirs or cap) / ours,
            _goal("raw", quick),
            note=f"{'' if theirs else 'over '}{theirs or cap:.1f} / {ours:.1f} s",
        )


def growth(goals, quick):
    """Time and memory of AutoTV from raw rows against their number."""
    sizes = (2_500, 5_000, 10_000) if quick else (10_000, 30_000, 100_000, 300_000, 10**6)
    for data in ("sheets",) if quick else ("sheets", "usps"):
        if data != "sheets" and not at_hand(data):
            continue
        times = []
        for n_rows in sizes:
            spent, peak, estimate, _ = in_fresh_process(tasks.ours, data, n_rows)
            times.append(spent)
            print(
                f"  {data} {n_rows:9,} rows: {spent:7.1f} s, {peak / n_rows:7.0f} bytes a row "
                f"beyond X, estimated {estimate / n_rows:.0f}",
                flush=True,
            )
        exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        goals.at_most(f"{data}: exponent of time in the number of rows", exponent, 1.15, "")
        if not quick:
            goals.at_most(f"{data}: memory of 1,000,000 rows", peak / n_rows, 2000, " B a row")
            goals.at_most(f"{data}: 1,000,000 rows from raw rows", times[-1], 600)


def predict(goals, quick):
    """Classes of new rows."""
    n_new, n_model = (20_000, QUICK_ROWS) if quick else (100_000, MNIST_ROWS)
    rate, peak = in_fresh_process(tasks.predict, n_new, n_model)
    goals.at_least(f"predict {n_new:,} rows of 784 columns, {n_model:,}-row model", rate, 1e5, "/s")
    goals.at_most("  its memory", peak / 1e6, 200, " MB")


def refit(goals, quick):
    """One label more, with warm_start and without."""
    data, n_rows = ("digits", QUICK_ROWS) if quick else ("mnist", MNIST_ROWS)
    if not quick and not at_hand(data):
        return
    X, y = named_rows(data, n_rows)
    shown = one_label_a_class(y)
    warm = tvsvm.AutoTV(random_state=0, warm_start=True).fit(X, shown)
    right, wrong = (
        np.flatnonzero((shown < 0) & ((warm.transduction_ == y) == met)) for met in (True, False)
    )
    for title, rows in (("found already", right), ("found otherwise", wrong)):
        if len(rows) == 0:
            print(f"  no row was {title}")
            continue
        shown[rows[0]] = y[rows[0]]
        warm_seconds, _ = seconds(lambda: warm.fit(X, shown), 1)
        cold_seconds, cold = seconds(lambda: tvsvm.AutoTV(random_state=0).fit(X, shown), 1)
        same = np.mean(warm.transduction_ == cold.transduction_)
        name = f"{data}: one label more, {title}: cold / warm"
        note = f"{cold_seconds:.2f} / {warm_seconds:.2f} s"
        goals.at_least(name, cold_seconds / warm_seconds, _goal("refit", quick), note=note)
        goals.at_least("  share of equal classes", same, _goal("same", quick), "", slack=0)


def cold(goals, quick):
    """A new process: import, and the first fit with and without compiled code on disk."""
    importing = "import time; t = time.perf_counter(); import tvsvm; print(time.perf_counter() - t)"
    goals.at_most("import tvsvm", np.median([_python(importing) for _ in range(3)]), 0.5)
    if quick:
        return
    first_fit = """
import time, numpy as np, tvsvm
X = np.random.default_rng(0).standard_normal((500, 5)) + 4 * (np.arange(500) % 3)[:, None]
model = tvsvm.AutoTV(random_state=0)
t = time.perf_counter()
model.fit(X, np.where(np.arange(500) < 30, np.arange(500) % 3, -1))
print(time.perf_counter() - t)
"""
    with tempfile.TemporaryDirectory() as folder:
        for title in ("nothing compiled", "compiled before"):
            spent = _python(first_fit, NUMBA_CACHE_DIR=folder)
            print(f"  first fit of a process, {title}: {spent:.1f} s", flush=True)


def _python(code, **environment):
    environment = {**os.environ, **environment}
    command = [sys.executable, "-c", code]
    return float(
        subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout
    )


def float32(goals, quick):
    """Rows in float32 against float64, from raw rows."""
    data, n_rows = ("digits", QUICK_ROWS) if quick else ("mnist", MNIST_ROWS)
    if not quick and not at_hand(data):
        return
    (single, *_, found), (double, *_, classes) = (
        in_fresh_process(tasks.ours, data, n_rows, dtype) for dtype in ("float32", "float64")
    )
    note = f"{double:.2f} / {single:.2f} s"
    goal = _goal("float32", quick)
    goals.at_least(f"{data}: float64 / float32", double / single, goal, note=note)
    goals.at_least("  share of equal classes", np.mean(found == classes), 0.999, "", slack=0)


def reproduce(goals, quick):
    """The paper's experiments."""
    if quick or not at_hand("usps"):
        return
    with tempfile.TemporaryDirectory() as folder:
        start = [sys.executable, "-c", "from tvsvm.cli.main import app; app()"]
        command = [*start, "reproduce", "--draws", "10", "--quiet", "--out", folder]
        run = partial(subprocess.run, command, check=True)
        goals.at_most("tvsvm reproduce --draws 10", seconds(run, 1)[0], 180)


def limit(goals, quick):
    """Distance of a sweep to what the memory of the machine allows."""
    if quick or not at_hand("mnist"):
        bandwidth(synthetic_graph(100_000, np.random.default_rng(0))[0])
    else:
        bandwidth(unit_weights(load("mnist").graph))


PARTS = {
    part.__name__: part
    for part in (
        fit,
        methods,
        raw,
        growth,
        predict,
        refit,
        cold,
        float32,
        reproduce,
        limit,
    )
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="only this (repeatable)")
    parser.add_argument("--quick", action="store_true", help="small data, under two minutes")
    options = parser.parse_args()
    goals = Goals()
    for name in options.part or PARTS:
        print(f"-- {name}: {PARTS[name].__doc__}", flush=True)
        PARTS[name](goals, options.quick)
    print(goals.summary())
    return goals.exit_code


if __name__ == "__main__":
    sys.exit(main())
