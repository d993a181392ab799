"""The paper's two tables: error in % on USPS, averaged over ten draws of the labels."""

DATASET = "usps"
LABELS = (1, 5, 10, 50)

# By classes and method, one figure for each of LABELS.
TABLES: dict[tuple[int, ...], dict[str, tuple[float, ...]]] = {
    (4, 9): {
        "LapRLS": (18.09, 10.48, 7.77, 4.14),
        "LapSVM": (13.79, 9.84, 7.61, 4.77),
        "TVRLS": (3.18, 3.16, 3.13, 3.16),
        "TVSVM": (3.18, 3.13, 3.13, 3.08),
        "CheegerRLS": (4.06, 3.74, 4.03, 2.84),
        "CheegerSVM": (3.87, 3.74, 4.00, 2.73),
    },
    (0, 1, 4, 9): {
        "LapRLS": (20.06, 6.64, 4.03, 3.3),
        "LapSVM": (49.95, 14.21, 6.27, 2.82),
        "TVRLS": (2.0, 2.06, 1.91, 1.98),
        "TVSVM": (1.75, 1.82, 1.77, 1.85),
        "CheegerRLS": (3.35, 1.95, 1.85, 1.87),
        "CheegerSVM": (2.94, 2.08, 1.72, 1.74),
    },
}


def figure(case: str, method: str, labels: int) -> float | None:
    """Error that the paper gives for a case (by `Case.name`), method and labels a class."""
    for classes, figures in TABLES.items():
        if case == f"{DATASET}{list(classes)}" and method in figures and labels in LABELS:
            return figures[method][LABELS.index(labels)]
    return None
