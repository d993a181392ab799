"""Data sets to try the methods on: where each comes from, checked and always coded the same way."""

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array

from tvsvm.graph import Graph
from tvsvm.results import IntArray

BUNDLED = ("breast_cancer", "digits", "iris", "wine")

# Data id, rows, and the number of rows that the smallest and the largest class must have.
OPENML = {"usps": (41082, 9298, 708, 1553), "mnist": (554, 70000, 6313, 7877)}

# First 16 digits of the sha256 of X and y as they are in the file; see `checksum`.
CHECKSUMS = {
    "banking77_minilm": "111fc38eb5b486fd",
    "coil20": "eb389b3d2e9298eb",
    "cora": "5972cafec1fec8fd",
    "isolet1": "db02c8d24141db97",
    "mnist": "76f816c866ed3046",
    "optdigits": "0414b65376c0dfee",
    "pbmc68k_pca": "6774bd8b46e908d9",
    "ssl_bci": "4dcaf056ac5ab70e",
    "ssl_coil": "9fafae0f8d989b39",
    "ssl_digit1": "59b67cb44c375a72",
    "ssl_g241c": "f7b9d14dfc87246b",
    "ssl_g241n": "8db58bc745aa31e6",
    "ssl_text": "f3f649f08d60ff5f",
    "ssl_usps": "a447e774eb3f4dde",
    "usps": "af7b185c1e7724b6",
}


class DatasetError(ValueError):
    """A data set that is not what it should be."""


class DatasetNotFoundError(DatasetError):
    """A data set that cannot be had; the message ends with the names of those that can be."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with their classes.

    Attributes
    ----------
    name : str
        What `load` was called with, and the classes if some were left out: "usps[4, 9]".
    X : ndarray of shape (N, d), float32 or float64
        The rows.
    y : ndarray of shape (N,), int
        Class of each row, numbered from 0 in the order of the source's own labels.
    source : str
        Where the rows come from.
    graph : Graph or None
        The graph that comes with the rows: Cora's citations, MNIST's exact nearest neighbours.
    splits : mapping from int to ndarray
        Official sets of labelled rows by their size n, each of shape (number of sets, n).
    """

    name: str
    X: NDArray[np.floating]
    y: IntArray
    source: str
    graph: Graph | None = None
    splits: Mapping[int, IntArray] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        """Number of classes that occur."""
        return len(np.unique(self.y))

    def only(self, classes: Iterable[int]) -> "Dataset":
        """The rows of some classes, which keep their numbers; official splits do not apply."""
        chosen = sorted(set(classes))
        if not set(chosen) <= set(self.y.tolist()) or len(chosen) < 2:
            raise DatasetError(
                f"`classes` must name at least two of the classes 0 to {self.y.max()} of "
                f"{self.name}. Got {chosen}; pass e.g. {np.unique(self.y)[:2].tolist()}."
            )
        kept = np.isin(self.y, chosen)
        graph = self.graph.subgraph(kept) if self.graph else None
        return Dataset(f"{self.name}{chosen}", self.X[kept], self.y[kept], self.source, graph)


def load(name: str, classes: Iterable[int] | None = None) -> Dataset:
    """Load a data set.

    Looked for in this order: scikit-learn's bundled sets; ``name.npz`` in the folder that the
    environment variable TVSVM_DATA names, then in the folder ``tvsvm`` of scikit-learn's data home
    (any file with `X` and `y` will do, the known ones are checked against their sha256); OpenML
    for "usps" and "mnist", through the cache in the same data home.

    Parameters
    ----------
    name : str
        One of `available`.
    classes : iterable of int, optional
        Keep the rows of these classes only.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetError
        If it is not there or not what it should be.

    Examples
    --------
    >>> from tvsvm.datasets import load
    >>> load("digits", classes=(4, 9)).X.shape
    (361, 64)
    """
    path = _find(name)
    if name in BUNDLED:
        dataset = _bundled(name)
    elif path is not None:
        dataset = _from_file(name, path)
    elif name in OPENML:
        dataset = _from_openml(name)
    else:
        raise DatasetNotFoundError(
            f"There is no data set {name!r} in {_searched()}. Set TVSVM_DATA to a folder with "
            f"{name}.npz, or choose one of: {', '.join(available())}."
        )
    return dataset if classes is None else dataset.only(classes)


def available() -> dict[str, str]:
    """Names that `load` takes, and where each would come from."""
    places = {name: f"OpenML, data id {OPENML[name][0]} (download)" for name in OPENML}
    for folder in reversed(_folders()):
        places |= {path.stem: str(path) for path in sorted(folder.glob("*.npz")) if _is_set(path)}
    places |= dict.fromkeys(BUNDLED, "scikit-learn, bundled")
    return dict(sorted(places.items()))


def draw_labels(y: ArrayLike, per_class: int, draw: int, *, seed: int = 0) -> IntArray:
    """Rows whose label is shown, the same number of each class, chosen at random.

    Parameters
    ----------
    y : array of shape (N,)
        Class of each row.
    per_class : int
        Labels a class; at most half of a class, so that something is left to be found.
    draw, seed : int
        Number of the draw and of the series it belongs to. The rows of a draw depend on nothing
        else, and those for fewer labels are among those for more.

    Returns
    -------
    ndarray of shape (n,), int
        Row numbers, sorted.
    """
    codes = np.asarray(y)
    rng = np.random.default_rng((seed, draw))
    chosen = []
    for label in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == label))
        chosen.append(members[: max(1, min(per_class, len(members) // 2))])
    return np.sort(np.concatenate(chosen))


def checksum(*arrays: NDArray[Any]) -> str:
    """First 16 hexadecimal digits of the sha256 of the arrays' types, shapes and bytes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def _folders() -> list[Path]:
    from sklearn.datasets import get_data_home

    given = os.environ.get("TVSVM_DATA")
    home = Path(get_data_home()) / "tvsvm"
    return [Path(given), home] if given else [home]


def _searched() -> str:
    return " or ".join(str(folder) for folder in _folders())


def _find(name: str) -> Path | None:
    paths = [folder / f"{name}.npz" for folder in _folders()]
    return next((path for path in paths if path.is_file() and _is_set(path)), None)


def _is_set(path: Path) -> bool:
    """Whether the file holds X and y; other files in the folder belong to such a one."""
    with np.load(path, allow_pickle=False) as stored:
        return {"X", "y"} <= set(stored.files)


def _bundled(name: str) -> Dataset:
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return Dataset(name, X, y, f"scikit-learn's load_{name}")


def _from_file(name: str, path: Path) -> Dataset:
    with np.load(path, allow_pickle=False) as file:
        stored = {key: file[key] for key in file.files}
    X, y = stored["X"], stored["y"]
    if name in CHECKSUMS and checksum(X, y) != CHECKSUMS[name]:
        raise DatasetError(
            f"{path} is not the {name} that is known here. Got checksum {checksum(X, y)} instead "
            f"of {CHECKSUMS[name]}; get the file anew or save yours under another name."
        )
    make_extras = EXTRAS.get(name, _official_splits)
    graph, splits = make_extras(stored, path.parent)
    source = str(stored.get("source", path))
    codes = np.unique(y, return_inverse=True)[1]
    return Dataset(name, _rows(name, X), codes, source, graph, splits)


Extras = tuple[Graph | None, Mapping[int, IntArray]]


def _official_splits(stored: dict[str, NDArray[Any]], folder: Path) -> Extras:
    """Sets of labelled rows that the file holds, if any: `idx10`, `idxLab100` and the like."""
    sets = [stored[key].astype(np.intp) for key in stored if key.startswith("idx")]
    return None, {rows.shape[1]: rows for rows in sets}


def _citations(stored: dict[str, NDArray[Any]], folder: Path) -> Extras:
    n_rows = len(stored["y"])
    ones = np.ones(len(stored["edges"]))
    directed = coo_array((ones, tuple(stored["edges"].T)), shape=(n_rows, n_rows))
    splits = {len(stored["train_idx"]): stored["train_idx"][None].astype(np.intp)}
    return Graph.from_directed(directed.tocsr(), symmetrize="max"), splits


def _mnist_files(stored: dict[str, NDArray[Any]], folder: Path) -> Extras:
    """Exact neighbours and fixed splits, from files next to the rows if they are there."""
    graph: Graph | None = None
    splits: Mapping[int, IntArray] = {}
    if (folder / "mnist_knn10.npz").is_file():
        near = np.load(folder / "mnist_knn10.npz")
        n_rows, k = near["indices"].shape
        indptr = np.arange(0, n_rows * k + 1, k)
        distances = (near["distances"].ravel(), near["indices"].ravel(), indptr)
        graph = Graph.from_distances(csr_array(distances, shape=(n_rows, n_rows)))
    if (folder / "mnist_poisson_splits.npz").is_file():
        splits = _official_splits(dict(np.load(folder / "mnist_poisson_splits.npz")), folder)[1]
    return graph, splits


EXTRAS: dict[str, Callable[[dict[str, NDArray[Any]], Path], Extras]] = {
    "cora": _citations,
    "mnist": _mnist_files,
}


def _from_openml(name: str) -> Dataset:
    from sklearn.datasets import fetch_openml

    number, n_rows, smallest, largest = OPENML[name]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of every further try
            # This parser needs no pandas; scikit-learn checks OpenML's own checksum.
            bunch = fetch_openml(data_id=number, as_frame=False, parser="liac-arff")
    except OSError as error:  # URLError is one
        others = ", ".join(sorted(set(available()) - set(OPENML)))
        raise DatasetNotFoundError(
            f"{name} is neither in {_searched()} nor to be had from OpenML "
            f"({str(error).strip('<>')}); set TVSVM_DATA to a folder with {name}.npz, or choose "
            f"one of: {others}."
        ) from error
    labels = bunch.target.astype(np.float64).astype(np.intp)
    y = labels - labels.min()  # USPS is there with classes 1 to 10 for the digits 0 to 9
    counts = np.bincount(y)
    if (len(y), counts.min(), counts.max()) != (n_rows, smallest, largest):
        raise DatasetError(
            f"OpenML's data id {number} is not {name} as known here. Got {len(y)} rows in classes "
            f"of {counts.min()} to {counts.max()} instead of {n_rows} in {smallest} to {largest}; "
            f"set TVSVM_DATA to a folder with {name}.npz."
        )
    return Dataset(name, _rows(name, bunch.data), y, f"OpenML, data id {number}")


def _rows(name: str, X: NDArray[Any]) -> NDArray[np.floating]:
    """X as floating point, the same from every source."""
    if name == "usps":
        # Whatever its scale: -1 to 1 in steps of 0.001, as the data were published.
        X = X.astype(np.float64)
        X = np.round(2 * (X - X.min()) / (X.max() - X.min()) - 1, 3)
    known = name in CHECKSUMS
    return X if X.dtype == np.float64 and not known else X.astype(np.float32, copy=False)
