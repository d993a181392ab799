"""Error of our classifiers and of peers on every data set: python -m benchmarks.accuracy --help."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.classifiers import peers
from benchmarks.data import folder
from benchmarks.keel import PREFIX, keel_sets, load_keel
from tvsvm.datasets import load
from tvsvm.experiments import Case, Store, plan, run
from tvsvm.experiments.methods import NAMES, classifier
from tvsvm.experiments.tables import markdown, ranks, summarize

CITATIONS = "cora_citations"  # Cora on its own graph; "cora" is on the neighbours of its rows
GIVEN_SIZES = ("PoissonMBO, true sizes", "VolumeMBO, true sizes")
LABELS_ALONE = ("1-NN", "SVC")
# PoissonMBO does not end in two minutes on banking77, nor SelfTraining on usps, which is smaller
# than these; and there are forty fits.
TOO_SLOW = {
    "banking77_minilm": (
        "PoissonMBO, uniform sizes",
        "PoissonMBO, true sizes",
        "SelfTraining(SVC)",
    ),
    "mnist": ("SelfTraining(SVC)",),
}


def all_sets():
    """Names of the data sets in the folder, the small ones first."""
    paths = [path for path in folder().glob("*.npz") if {"X", "y"} <= set(np.load(path).files)]
    sizes = {path.stem: path.stat().st_size for path in paths}
    if "cora" in sizes:
        sizes[CITATIONS] = sizes["cora"]
    return sorted(sizes, key=sizes.__getitem__)


def make_case(name):
    if name == CITATIONS:
        return Case.of(replace(load("cora"), name=CITATIONS))
    dataset = load_keel(name) if name.startswith(PREFIX) else load(name)
    return Case.of(replace(dataset, graph=None) if name == "cora" else dataset)


def protocol(case, labels):
    """Official splits where there are several, drawn labels elsewhere: keywords for `plan`."""
    official = sorted(count for count, sets in case.splits.items() if len(sets) > 1)
    if case.name == "mnist":
        official = [count for count in official if count // 10 in (1, 5)]
    return {"labels": official, "official": True} if official else {"labels": labels}


def measure(names, methods, options):
    """Outcomes of everything, printed line by line as they come."""
    store, outcomes = Store(options.out / "accuracy.jsonl"), []
    for name in names:
        case = make_case(name)
        chosen = [method for method in methods if method.name not in TOO_SLOW.get(name, ())]
        trials = plan(case, chosen, draws=options.draws, **protocol(case, options.labels))
        for outcome in run([case], chosen, trials, store=store, n_jobs=options.jobs):
            outcomes.append(outcome)
            print(".", end="", file=sys.stderr, flush=True)
        print(f" {name}", file=sys.stderr, flush=True)
    return outcomes


def report(outcomes, names):
    """All tables in Markdown."""
    table = summarize(outcomes)
    shown = [name for name in names if any(name in line for line in table.values())]
    text = "# Error in % on the unlabelled rows\n\n"
    text += "Mean ± standard deviation over draws; † some draws failed and count as guessing; "
    text += "– not run; best in bold, leaving out methods that are told the class sizes.\n\n"
    text += markdown(["data", "labels", *shown], [line(key, table[key], shown) for key in table])
    text += "\n## Over all lines\n\n" + markdown(
        [
            "method",
            "average rank",
            "lines",
            "at worst behind the best peer without class sizes",
            "at worst behind 1-NN and SVC",
        ],
        standing(table, shown),
    )
    notes = {(o.trial.method, o.trial.case, o.note) for o in outcomes if o.note}
    text += "".join(f"\n† {method} on {case}: {note}" for method, case, note in sorted(notes))
    return text + "\n"


def line(setting, found, shown):
    best = min((s.mean for name, s in found.items() if name not in GIVEN_SIZES), default=0)
    cells = []
    for name in shown:
        cell = str(found[name]) if name in found else "–"
        is_best = name in found and found[name].mean <= best and name not in GIVEN_SIZES
        cells.append(f"**{cell}**" if is_best else cell)
    unit = "in all" if setting.official else "a class"
    return [setting.case, f"{setting.labels} {unit}", *cells]


def standing(table, shown):
    """Of each method: average rank among those run, and how far behind it is at worst."""
    errors = {
        setting: {name: summary.mean for name, summary in found.items()}
        for setting, found in table.items()
    }
    places = [ranks(by_name) for by_name in errors.values()]
    rivals = [name for name in shown if name not in (*NAMES, "AutoTV", *GIVEN_SIZES)]
    rows = []
    for name in shown:
        own = [place[name] for place in places if name in place]
        gaps = [behind(name, others, errors) for others in (rivals, LABELS_ALONE)]
        rows.append((np.mean(own), [name, f"{np.mean(own):.2f}", str(len(own)), *gaps]))
    return [cells for _, cells in sorted(rows)]


def behind(name, others, errors):
    """Largest number of points by which the best of the others is better, and where."""
    gaps = {}
    for setting, by_name in errors.items():
        rivals = [by_name[other] for other in others if other in by_name and other != name]
        if name in by_name and rivals:
            gaps[setting] = by_name[name] - min(rivals)
    if not gaps:
        return "–"
    where = max(gaps, key=gaps.__getitem__)
    return f"{gaps[where]:+.1f} ({where.case}, {where.labels})"


def main():
    methods = {name: classifier(name) for name in (*NAMES, "AutoTV")} | peers()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", help="data sets (default: all in TVSVM_DATA)")
    parser.add_argument("--keel", action="store_true", help="all tables of KEEL instead")
    parser.add_argument("--methods", nargs="+", choices=methods, default=list(methods), metavar="M")
    parser.add_argument("--labels", nargs="+", type=int, default=[1, 2, 5, 10], help="a class")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--quick", action="store_true", help="3 draws, all sets but mnist, banking")
    parser.add_argument("--out", type=Path, default=Path("accuracy"), help="folder")
    options = parser.parse_args()
    sets = options.sets or (keel_sets() if options.keel else all_sets())
    if options.quick:
        options.draws = min(options.draws, 3)
        sets = [name for name in sets if name not in TOO_SLOW]
    text = report(
        measure(sets, [methods[name] for name in options.methods], options), options.methods
    )
    (options.out / "accuracy.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
