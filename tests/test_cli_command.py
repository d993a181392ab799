"""The installed command itself, in processes of its own."""

import signal
import subprocess
import sys
import sysconfig
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from test_cli_label import files, frame, run

COMMAND = Path(sysconfig.get_path("scripts")) / "tvsvm"


def call(*arguments):
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=100, check=False
    )


def test_the_installed_command_labels_a_file(tmp_path):
    frame().to_csv(tmp_path / "pets.csv", index=False)
    done = call("label", tmp_path / "pets.csv", "--method", "RLS")
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) == ["pets.csv", "pets.labelled.csv"]
    assert "wrote" in done.stdout


def test_version_and_help():
    done = call("--version")
    assert (done.returncode, done.stdout) == (0, f"tvsvm {version('tvsvm')}\n")
    module = [sys.executable, "-m", "tvsvm", "--version"]
    assert subprocess.check_output(module, text=True) == done.stdout
    text = run("--help").stdout
    for command in ("label", "predict", "suggest", "check", "datasets", "reproduce"):
        assert command in text
    assert run("label").exit_code == 2


def test_help_does_not_wait_for_numpy():
    code = (
        "import sys, tvsvm.cli.main; print(sorted({'numpy', 'sklearn', 'pandas'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_nothing(tmp_path, number):
    frame().to_csv(tmp_path / "pets.csv", index=False)
    code = (
        # A process in the background of a shell, and what it starts, ignores an interrupt.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import sys, time; from tvsvm.tables import text\n"
        "def slow(self, path, added, progress):\n"
        "    path.write_text('half'); print('writing', flush=True); time.sleep(60)\n"
        "text.TextTable.write = slow\n"
        "from tvsvm.cli.main import app; app(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, "label", str(tmp_path / "pets.csv"), "--method", "RLS"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        time.sleep(0.1)
        process.send_signal(number)
        _, errors = process.communicate(timeout=50)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "error: Interrupted; no file was changed."
    assert files(tmp_path) == ["pets.csv"]
