"""What an experiment leaves behind: tables side by side with the paper's, and a picture."""

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tvsvm.experiments import paper
from tvsvm.experiments.tables import Setting, Summary, markdown

TICKS = (0, 1, 2, 5, 10, 20, 50)
Summaries = Mapping[Setting, Mapping[str, Summary]]


def side_by_side(summaries: Summaries, case: str) -> tuple[list[str], list[list[str]]]:
    """Header and lines of a case's table: a line a method, the paper's figures beside ours."""
    settings = sorted(setting for setting in summaries if setting.case == case)
    methods = list(dict.fromkeys(name for setting in settings for name in summaries[setting]))
    header, lines = ["labels a class"], [[name] for name in methods]
    for setting in settings:
        figures = [paper.figure(case, name, setting.labels) for name in methods]
        known = any(figure is not None for figure in figures)
        header += [str(setting.labels), "paper"] if known else [str(setting.labels)]
        for line, name, figure in zip(lines, methods, figures, strict=True):
            summary = summaries[setting].get(name)
            line.append(str(summary) if summary else "–")
            if known:
                line.append(f"{figure:.2f}" if figure is not None else "–")
    return header, lines


def write_markdown(path: Path, summaries: Summaries, heading: str) -> None:
    """Tables of all cases."""
    text = f"# {heading}\n\nError in % on the unlabelled rows, mean ± standard deviation.\n"
    for case in dict.fromkeys(setting.case for setting in summaries):
        text += f"\n## {case}\n\n" + markdown(*side_by_side(summaries, case))
    path.write_text(text, encoding="utf-8")


def write_csv(path: Path, summaries: Summaries) -> None:
    """One line for each case, method and number of labels, with the paper's figure."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        names = ("mean", "std", "worst", "seconds", "n_draws", "n_failed")
        table.writerow(["case", "method", "labels", *names, "paper"])
        for setting, by_method in summaries.items():
            for name, summary in by_method.items():
                values = [round(getattr(summary, value), 4) for value in names]
                given = paper.figure(setting.case, name, setting.labels)
                table.writerow([setting.case, name, setting.labels, *values, given])


def write_picture(path: Path, summaries: Summaries) -> None:
    """Error against labels, a line a method, the paper's figures as hollow markers."""
    from matplotlib.figure import Figure

    cases = list(dict.fromkeys(setting.case for setting in summaries))
    figure = Figure(figsize=(5.5 * len(cases), 4.5), layout="constrained")
    known = False
    for axes, case in zip(figure.subplots(1, len(cases), squeeze=False)[0], cases, strict=True):
        settings = sorted(setting for setting in summaries if setting.case == case)
        counts, lowest = [setting.labels for setting in settings], np.inf
        for name in summaries[settings[0]]:
            means = [summaries[setting][name].mean for setting in settings]
            (line,) = axes.plot(counts, means, marker="o", markersize=4, label=name)
            given = [paper.figure(case, name, count) or np.nan for count in counts]
            known = known or bool(np.isfinite(given).any())
            axes.plot(counts, given, "o", color=line.get_color(), markerfacecolor="none")
            lowest = min(lowest, *means)
        axes.set(xscale="log", title=case, xlabel="labels a class", ylabel="error in %")
        axes.set_yscale("symlog", linthresh=1)  # from 0 to 1 % linear: no error at all is possible
        axes.set_xticks(counts, labels=[str(count) for count in counts])
        axes.set_yticks(TICKS, labels=[str(tick) for tick in TICKS])
        if lowest > 1:  # no room for errors that nobody has
            axes.set_ylim(bottom=0.8 * lowest)
        axes.tick_params(which="minor", bottom=False, labelbottom=False, left=False)
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside right upper",
        fontsize="small",
        title="hollow: the paper's" if known else None,
    )
    figure.savefig(path, dpi=150)
