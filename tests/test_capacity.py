"""Memory estimated before a fit: near the measured peak, and refused in one sentence."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy import sparse

import tvsvm
from tvsvm.estimators import capacity

NAMES = [name for name in tvsvm.__all__ if hasattr(getattr(tvsvm, name), "fit")]
PEAK = """
    import json
    from pathlib import Path
    import numpy as np
    import tvsvm
    from tvsvm.estimators.capacity import demand

    def peak_bytes():  # not ru_maxrss, which begins with that of the parent process
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])

    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 20_000)
    X = rng.standard_normal((len(y), 8), dtype=np.float32) + 4 * y[:, None].astype(np.float32)
    shown = np.where(np.arange(len(y)) < 40, y, -1)
    model = tvsvm.LapRLS(random_state=0, n_components=300, n_neighbors=20)
    tvsvm.LapRLS(random_state=0).fit(X[:300], shown[:300])
    before = peak_bytes()
    model.fit(X, shown)
    peak = peak_bytes() - before
    print(json.dumps([peak, demand(model, X.shape, n_classes=4, n_labels=40).bytes]))
"""


def problem(n=60):
    X = np.random.default_rng(0).standard_normal((n, 3))
    return X, np.where(np.arange(n) < 10, np.arange(n) % 2, -1)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is in /proc")
def test_the_estimate_is_near_the_measured_peak():
    command = [sys.executable, "-c", textwrap.dedent(PEAK)]
    # Each thread of BLAS that happens to work takes 32 MB once, on rows of any number.
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    peak, estimate = json.loads(done.stdout)
    assert peak / 2 < estimate < 2 * peak


@pytest.mark.parametrize("name", NAMES)
def test_every_classifier_refuses_what_does_not_fit(name, monkeypatch):
    assert len(NAMES) == 9
    monkeypatch.setattr(capacity, "available_memory", lambda: 1e3)
    with pytest.raises(MemoryError, match=rf"{name} needs about 1 MB .* Got 1 MB; pass .* rows\."):
        getattr(tvsvm, name)().fit(*problem())


def test_unknown_memory_refuses_nothing(monkeypatch):
    monkeypatch.setattr(capacity, "available_memory", lambda: None)
    tvsvm.RLS().fit(*problem())


def test_what_a_warm_start_kept_is_not_asked_for_again(monkeypatch):
    X, y = problem()
    model = tvsvm.LapRLS(warm_start=True).fit(X, y)
    monkeypatch.setattr(capacity, "available_memory", lambda: 1e3)
    model.fit(X, y)


def bytes_of(name="TVRLS", shape=(100_000, 50), n_classes=3, itemsize=4, n_stored=None, **params):
    return capacity.demand(
        getattr(tvsvm, name)(**params),
        shape,
        n_classes=n_classes,
        n_labels=30,
        itemsize=itemsize,
        n_stored=n_stored,
    ).bytes


def test_it_grows_with_all_that_matters():
    least = bytes_of()
    assert bytes_of("RLS") < bytes_of("LapRLS") < least
    more = [
        bytes_of(shape=(200_000, 50)),
        bytes_of(n_classes=10),
        bytes_of(itemsize=8),
        bytes_of(n_neighbors=30),
        bytes_of(n_components=1000),
    ]
    assert min(more) > 1.1 * least
    assert bytes_of(itemsize=8, n_stored=1000) < bytes_of(itemsize=8)


def test_an_exact_kernel_and_a_precomputed_one_count_their_square_matrices():
    n = 20_000
    assert bytes_of(shape=(n, 5), n_components=n) > 7 * 8 * n**2
    assert bytes_of(shape=(n, n), kernel="precomputed") > 4 * 8 * n**2


def test_the_cure_fits_the_case():
    X, y = problem()
    cures = {}
    for rows in (X, X.astype(np.float32), sparse.csr_array(X)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(capacity, "available_memory", lambda: 1.0)
            with pytest.raises(MemoryError) as caught:
                tvsvm.TVRLS().fit(rows, y)
        cures[rows.dtype] = str(caught.value)
    assert "X in float32" in cures[np.dtype(np.float64)]
    assert "X in float32" not in cures[np.dtype(np.float32)]


# ---- memory that is there ----------------------------------------------------------------------


def system(tmp_path, monkeypatch, files):
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    monkeypatch.setattr(capacity, "PROC", tmp_path / "proc")
    monkeypatch.setattr(capacity, "CGROUP", tmp_path / "cgroup")
    return capacity.available_memory()


MEMINFO = {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable: 5000 kB\n"}


def test_a_machine_without_groups(tmp_path, monkeypatch):
    assert system(tmp_path, monkeypatch, MEMINFO) == 5000 * 1024


def test_the_tightest_group_of_version_2_counts_and_files_in_memory_give_way(tmp_path, monkeypatch):
    files = {
        "proc/self/cgroup": "0::/outer/inner\n",
        "cgroup/outer/memory.max": "2000000\n",
        "cgroup/outer/memory.current": "1500000\n",
        "cgroup/outer/memory.stat": "anon 1\ninactive_file 300000\n",
        "cgroup/outer/inner/memory.max": "max\n",
        "cgroup/outer/inner/memory.current": "1\n",
    }
    assert system(tmp_path, monkeypatch, MEMINFO | files) == 800_000


def test_groups_of_version_1_whose_path_is_that_of_the_host(tmp_path, monkeypatch):
    files = {
        "proc/self/cgroup": "5:cpu:/\n4:memory:/docker/abc\n0::/\n",
        "cgroup/memory/memory.limit_in_bytes": "1000000\n",
        "cgroup/memory/memory.usage_in_bytes": "400000\n",
    }
    assert system(tmp_path, monkeypatch, MEMINFO | files) == 600_000


def test_another_system_says_what_it_can(tmp_path, monkeypatch):
    assert system(tmp_path, monkeypatch, {}) > 0  # from sysconf here
    monkeypatch.setattr(capacity.os, "sysconf_names", {})
    assert system(tmp_path, monkeypatch, {}) is None
