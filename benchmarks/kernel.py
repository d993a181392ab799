"""Measure what the thresholds of `tvsvm.kernel` rest on: `python -m benchmarks.kernel`."""

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve

from tvsvm.kernel import RKHS

DATA = Path(os.environ.get("TVSVM_DATA", "../shared/data"))
REPEATS = 3


def load(name: str, classes: list[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    data = np.load(DATA / f"{name}.npz")
    kept = np.isin(data["y"], classes) if classes else slice(None)
    return data["X"][kept], data["y"][kept]


def timed(task: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, float, Any]:
    """Median wall and CPU seconds, and the last result."""
    wall, cpu = [], []
    for _ in range(repeats):
        start = time.perf_counter(), time.process_time()
        result = task()
        wall.append(time.perf_counter() - start[0])
        cpu.append(time.process_time() - start[1])
    return float(np.median(wall)), float(np.median(cpu)), result


def exact_sizes() -> None:
    print("\nExact space against one Cholesky factor of λI + K, and against Nyström, seconds (CPU)")
    X, _ = load("usps")
    for n in (500, 1000, 1673, 2000, 3000):
        exact = timed(lambda n=n: RKHS(X[:n], n_components=n, random_state=0))
        K = exact[2].apply(np.eye(n)) + np.eye(n)
        factor = timed(lambda K=K: cholesky(K))
        small = timed(lambda n=n: RKHS(X[:n], n_components=min(n - 1, 500), random_state=0))
        solved = timed(lambda s=exact[2], n=n: s.quadratic(lam=0.1, r=0.1).solve(np.ones((n, 4))))
        print(
            f"N {n:5d}  exact {exact[0]:6.2f} ({exact[1]:6.2f})  Cholesky {factor[0]:6.3f} "
            f"({factor[1]:6.3f})  Nyström 500 {small[0]:6.2f} ({small[1]:6.2f})  "
            f"one solve, 4 columns {1e3 * solved[0]:6.1f} ms"
        )


def landmark_quality() -> None:
    print(
        "\nNyström: |K - ΦΦᵀ|/|K| and error of K(λI + K)⁻¹Y for λ = 0.1, 1, 10, Y centred classes"
    )
    for name, classes in (("usps", [0, 1, 4, 9]), ("optdigits", None)):
        X, y = load(name, classes)
        X = X.astype(np.float64)
        Y = (y[:, None] == np.unique(y)) - 1 / len(np.unique(y))
        kernel = RKHS(X, n_components=1, random_state=0).kernel
        K = kernel(X, X)
        lams = (0.1, 1.0, 10.0)
        smooth = [K @ solve(lam * np.eye(len(K)) + K, Y, assume_a="pos") for lam in lams]
        for m in (100, 200, 500, 1000):
            for sampling in ("uniform", "kmeans++"):
                gamma = kernel.scale**2
                seconds, _, space = timed(
                    lambda X=X, g=gamma, m=m, s=sampling: RKHS(
                        X, gamma=g, n_components=m, sampling=s, random_state=1
                    ),
                    repeats=1,
                )
                error = np.linalg.norm(K - space.features @ space.features.T) / np.linalg.norm(K)
                errors = [
                    np.linalg.norm(space.quadratic(lam=lam, r=1.0).solve(Y) - f) / np.linalg.norm(f)
                    for lam, f in zip(lams, smooth, strict=True)
                ]
                print(
                    f"{name:10s} m {m:4d} {sampling:9s} K {error:.4f}  smooth "
                    + "  ".join(f"{e:.3f}" for e in errors)
                    + f"  {seconds:.2f} s"
                )


def large() -> None:
    print("\nMNIST 70000 × 784, default number of landmarks, seconds (CPU)")
    X, _ = load("mnist")
    for dtype in (np.uint8, np.float32):
        rows = X.astype(dtype, copy=False)
        for sampling in ("uniform", "kmeans++"):
            wall, cpu, space = timed(
                lambda r=rows, s=sampling: RKHS(r, sampling=s, random_state=0), repeats=1
            )
            B = np.ones((len(X), 10))
            quadratic = space.quadratic(lam=0.1, r=0.1)
            step = timed(lambda q=quadratic, B=B: q.solve(B))
            expansion = space.expansion(quadratic.coordinates(B))
            new = timed(lambda e=expansion, r=rows: e(r[:10_000]), repeats=1)
            print(
                f"{dtype.__name__:8s} {sampling:9s} m {space.rank}  "
                f"factorise {wall:5.1f} ({cpu:5.1f})  solve {step[0]:.3f}  "
                f"10k new rows {new[0]:.2f}  {space.features.nbytes / len(X):.0f} bytes a row"
            )


def million() -> None:
    X = np.random.default_rng(0).standard_normal((1_000_000, 16), dtype=np.float32)
    wall, cpu, space = timed(lambda: RKHS(X, random_state=0), repeats=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"\n1,000,000 × 16 float32: factorise {wall:.1f} s ({cpu:.1f} CPU), m {space.rank}, "
        f"{space.features.nbytes / len(X):.0f} bytes a row, peak of this process {peak:.1f} GB"
    )


if __name__ == "__main__":
    exact_sizes()
    landmark_quality()
    large()
    million()
