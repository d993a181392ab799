"""Wheel and sdist: built, installed into an empty environment, and used there."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
USE = """
import tvsvm
model = tvsvm.RLS().fit([[0.0], [1.0], [5.0], [6.0]], ["a", None, "b", None])
assert model.transduction_.tolist() == ["a", "a", "b", "b"]
assert "site-packages" in tvsvm.__file__
from tvsvm.report import write_report
write_report("report.html", model)
"""


def call(*command, cwd=None):
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The sdist, and the wheel, which is built from it and so tests it, too."""
    pytest.importorskip("build", reason="needs build, which `make dist` installs")
    folder = tmp_path_factory.mktemp("dist")
    probe = call(
        sys.executable, "-m", "pip", "download", "-q", "--no-deps", "hatchling", "-d", folder
    )
    if probe.returncode:
        pytest.skip("no package index to be reached: nothing can be built or installed")
    for path in folder.iterdir():
        path.unlink()
    done = call(sys.executable, "-m", "build", ROOT, "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_wheel_works_in_an_empty_environment(archives, tmp_path):
    assert len(list(archives.glob("*.tar.gz"))) == 1
    (wheel,) = archives.glob("*.whl")
    venv.create(tmp_path / "empty", with_pip=True)
    scripts = tmp_path / "empty" / ("Scripts" if sys.platform == "win32" else "bin")
    # Compiling all of scipy and scikit-learn would take longer than the rest.
    done = call(scripts / "python", "-m", "pip", "install", "-q", "--no-compile", wheel)
    assert done.returncode == 0, done.stderr
    used = call(scripts / "python", "-c", USE, cwd=tmp_path)
    assert used.returncode == 0, used.stderr
    assert call(scripts / "tvsvm", "--version").stdout.startswith("tvsvm ")
