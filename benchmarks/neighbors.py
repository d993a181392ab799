"""Nearest neighbours side by side with peers: ``python -m benchmarks.neighbors``.

Ten neighbours of the 70,000 rows of MNIST, each search in a fresh process: wall seconds from
importing the library to having the neighbours, recall against the exact ones, and whether a second
run gives the same. `TVSVM_DATA` names the folder with mnist.npz and mnist_knn10.npz.
"""

import argparse
import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

N_NEIGHBORS = 10
N_DIRECTIONS = 64
N_CANDIDATES = 40


def data_folder() -> Path:
    return Path(os.environ.get("TVSVM_DATA", "../shared/data"))


def ours(X: np.ndarray, n_jobs: int) -> np.ndarray:
    from tvsvm.neighbors import nearest_neighbors

    return nearest_neighbors(
        X, N_NEIGHBORS, algorithm="approximate", random_state=0, n_jobs=n_jobs
    )[0]


def ours_exact(X: np.ndarray, n_jobs: int) -> np.ndarray:
    from tvsvm.neighbors import nearest_neighbors

    return nearest_neighbors(X, N_NEIGHBORS, algorithm="exact", n_jobs=n_jobs)[0]


def scikit_learn(X: np.ndarray, n_jobs: int) -> np.ndarray:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=N_NEIGHBORS, algorithm="brute", n_jobs=n_jobs).fit(X)
    return search.kneighbors(return_distance=False)


def faiss_exact(X: np.ndarray, n_jobs: int) -> np.ndarray:
    return without_self(faiss_search(X, N_NEIGHBORS + 1, "Flat", n_jobs))


def faiss_projected(index: str) -> Callable[[np.ndarray, int], np.ndarray]:
    """Search the projection with a faiss index, re-rank its candidates as ours are."""

    def search(X: np.ndarray, n_jobs: int) -> np.ndarray:
        projected = project(X)
        candidates = faiss_search(projected, N_CANDIDATES + 1, index, n_jobs)
        return rerank(X, without_self(candidates))

    return search


def hnswlib_projected(X: np.ndarray, n_jobs: int) -> np.ndarray:
    import hnswlib

    projected = project(X)
    index = hnswlib.Index(space="l2", dim=projected.shape[1])
    index.init_index(max_elements=len(X), ef_construction=80, M=16, random_seed=0)
    index.set_num_threads(n_jobs)
    index.add_items(projected)
    index.set_ef(64)
    return rerank(X, without_self(index.knn_query(projected, N_CANDIDATES + 1)[0]))


def pynndescent(X: np.ndarray, n_jobs: int) -> np.ndarray:
    from pynndescent import NNDescent

    index = NNDescent(X, n_neighbors=N_NEIGHBORS + 5, random_state=0, n_jobs=n_jobs)
    return without_self(index.neighbor_graph[0])[:, :N_NEIGHBORS]


def project(X: np.ndarray) -> np.ndarray:
    from sklearn.decomposition import PCA

    model = PCA(N_DIRECTIONS, svd_solver="covariance_eigh").fit(X[:: len(X) // 8192])
    return model.transform(X).astype(np.float32)


def faiss_search(X: np.ndarray, n_neighbors: int, index: str, n_jobs: int) -> np.ndarray:
    import faiss

    faiss.omp_set_num_threads(n_jobs)
    search = faiss.index_factory(X.shape[1], index)
    search.train(X)
    search.add(X)
    if "IVF" in index:
        search.nprobe = 24
    if "HNSW" in index:
        search.hnsw.efSearch = 64
    return search.search(X, n_neighbors)[1]


def without_self(indices: np.ndarray) -> np.ndarray:
    """Drop each row's own number, or its last neighbour where that is missing."""
    own = indices == np.arange(len(indices))[:, None]
    own[~own.any(axis=1), -1] = True
    return indices[~own].reshape(len(indices), -1)


def rerank(X: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    from tvsvm.neighbors.kernels import nearest_candidates

    candidates = np.sort(candidates, axis=1).astype(np.int32)
    indptr = np.arange(0, candidates.size + 1, candidates.shape[1])
    X = X.view()
    X.flags.writeable = False
    return nearest_candidates(X, np.arange(len(X)), indptr, candidates.ravel(), N_NEIGHBORS)[0]


Search = Callable[[np.ndarray, int], np.ndarray]
# name: (search, module it needs, whether it takes a minute or more)
SEARCHES: dict[str, tuple[Search, str, bool]] = {
    "tvsvm": (ours, "tvsvm", False),
    "faiss Flat, projected": (faiss_projected("Flat"), "faiss", False),
    "faiss IVF, projected": (faiss_projected("IVF529,Flat"), "faiss", False),
    "faiss HNSW, projected": (faiss_projected("HNSW16"), "faiss", False),
    "hnswlib, projected": (hnswlib_projected, "hnswlib", False),
    "pynndescent": (pynndescent, "pynndescent", True),
    "tvsvm exact": (ours_exact, "tvsvm", True),
    "faiss exact": (faiss_exact, "faiss", True),
    "scikit-learn brute": (scikit_learn, "sklearn", True),
}


def run_one(name: str, n_jobs: int, output: str) -> None:
    X = np.load(data_folder() / "mnist.npz")["X"].astype(np.float32)
    start = time.perf_counter()
    indices = SEARCHES[name][0](X, n_jobs)
    seconds = time.perf_counter() - start
    Path(output).write_bytes(pickle.dumps((seconds, indices)))


def in_fresh_process(name: str, n_jobs: int) -> tuple[float, np.ndarray]:
    with tempfile.NamedTemporaryFile() as file:
        command = [sys.executable, "-m", "benchmarks.neighbors", "--one", name]
        command += ["--n-jobs", str(n_jobs), "--output", file.name]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": str(n_jobs)})
        return pickle.loads(Path(file.name).read_bytes())


def recall(indices: np.ndarray, truth: np.ndarray) -> float:
    n_rows = len(truth)
    found = np.arange(n_rows)[:, None] * n_rows + indices
    wanted = np.arange(n_rows)[:, None] * n_rows + truth
    return float(np.isin(wanted, found).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="also those that take minutes")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        run_one(options.one, options.n_jobs, options.output)
        return
    truth = np.load(data_folder() / "mnist_knn10.npz")["indices"]
    print(f"{'MNIST, 10 neighbours':24} {'seconds':>8} {'recall':>8}  same again")
    for name, (_, module, slow) in SEARCHES.items():
        if importlib.util.find_spec(module) is None:
            print(f"{name:24} skipped: {module} is not installed")
        elif slow and not options.all:
            print(f"{name:24} skipped: slow, pass --all")
        else:
            runs = [in_fresh_process(name, options.n_jobs) for _ in range(options.repeats)]
            seconds = np.median([run[0] for run in runs])
            same = all(np.array_equal(run[1], runs[0][1]) for run in runs)
            print(f"{name:24} {seconds:8.1f} {recall(runs[0][1], truth):8.4f}  {same}")


if __name__ == "__main__":
    main()
