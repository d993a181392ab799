"""Compiled kernels: cached between processes, and never stale."""

import ast
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import textwrap

from numba.core.dispatcher import Dispatcher

import tvsvm
from tvsvm import _jit

FIRST_SOLVE = """
    import numpy as np
    from tvsvm.graph import Graph
    from tvsvm.solvers import graph_tv_prox, _tv_flow, _tv_sweeps
    path = Graph([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    graph_tv_prox(path, np.eye(3), 0.5)
    graph_tv_prox(path, [0.0, 1.0, 5.0], 0.5)
    kernels = [_tv_sweeps.sweep_blocks, _tv_sweeps.sweep_column, _tv_sweeps.gap_and_value]
    misses = sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels)
    hits = sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels)
    print(hits, misses)
"""


def process(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )


def run(code, **environment):
    return process(code, **environment).stdout.strip()


def modules():
    for info in pkgutil.walk_packages(tvsvm.__path__, "tvsvm."):
        yield importlib.import_module(info.name)


def kernels(module):
    for value in vars(module).values():
        if isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__:
            yield value.py_func


def names_from_elsewhere_in_the_package(module):
    """What the module imports from other files of this package."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tvsvm":
            yield from (alias.asname or alias.name for alias in node.names)
        if isinstance(node, ast.Import):
            yield from (
                alias.asname or alias.name.split(".")[0]
                for alias in node.names
                if alias.name.split(".")[0] == "tvsvm"
            )


def reaches_further(function, foreign):
    """Names that the function's code, not its annotations, takes from other files."""
    return set(function.__code__.co_names) & set(foreign)


def test_a_kernel_uses_only_its_own_file():
    # numba drops a cached kernel when its own file changes, and only then.
    seen = 0
    for module in modules():
        foreign = list(names_from_elsewhere_in_the_package(module))
        for function in kernels(module):
            assert not reaches_further(function, foreign), (
                f"{module.__name__}.{function.__name__} uses "
                f"{reaches_further(function, foreign)} from another file: its cached code would "
                "go stale when that file is edited; move it here or pass it as an argument."
            )
            seen += 1
    assert seen > 10


def test_the_rule_catches_a_kernel_that_reaches_further():
    def offender(x):
        return SolverResult(x)  # noqa: F821

    assert reaches_further(offender, ["SolverResult"]) == {"SolverResult"}


def test_editing_a_callee_in_the_same_file_recompiles_the_caller(tmp_path):
    module = tmp_path / "edited_kernels.py"
    source = textwrap.dedent("""
        from tvsvm._jit import kernel

        @kernel
        def callee(x):
            return x + {constant}

        @kernel
        def caller(x):
            return callee(x)
    """)
    use = "import edited_kernels; print(edited_kernels.caller(1))"
    module.write_text(source.format(constant=1))
    assert run(use, PYTHONPATH=str(tmp_path)) == "2"
    assert run(use, PYTHONPATH=str(tmp_path)) == "2"
    module.write_text(source.format(constant=5))
    assert run(use, PYTHONPATH=str(tmp_path)) == "6"


def test_a_second_process_compiles_nothing():
    run(FIRST_SOLVE)
    hits, misses = map(int, run(FIRST_SOLVE).split())
    assert hits > 0
    assert misses == 0


def test_without_a_place_for_the_cache_it_still_runs():
    code = """
        import numba.core.caching as caching
        def nowhere(self, *args, **kwargs):
            raise RuntimeError("cannot cache function: no locator available")
        caching.FunctionCache.__init__ = nowhere
        from tvsvm._jit import kernel
        @kernel
        def twice(x):
            return 2 * x
        print(twice(21))
    """
    assert run(code) == "42"


# ---- telling that it compiles ------------------------------------------------------------------

# A module that looks like one of the package: its own loops take ten seconds to compile.
MADE_UP = """
    from tvsvm._jit import kernel

    @kernel
    def twice(x):
        return 2 * x
"""
COMPILE = """
    import tvsvm
    from tvsvm import _jit
    tvsvm.__path__.append({folder!r})
    _jit.PATIENCE = {patience}
    from tvsvm.made_up import twice
    assert twice(21) == 42
    assert twice(0.5) == 1
"""


def told(folder, patience):
    (folder / "made_up.py").write_text(textwrap.dedent(MADE_UP))
    code = COMPILE.format(folder=str(folder), patience=patience)
    return process(code, NUMBA_CACHE_DIR=str(folder / "cache")).stderr


def test_long_compiling_is_told_once_and_only_where_nothing_is_cached(tmp_path):
    assert told(tmp_path, patience=0) == f"{_jit.KEPT}\n"
    assert told(tmp_path, patience=0) == ""


def test_short_compiling_is_not_told(tmp_path):
    assert told(tmp_path, patience=1e3) == ""


class Compiled:
    """An event as numba sends it."""

    def __init__(self, module):
        def function():
            pass

        function.__module__ = module
        self.data = {"dispatcher": type("Dispatcher", (), {"py_func": staticmethod(function)})}


def test_the_sentence_goes_where_it_is_asked_to(monkeypatch):
    notice, heard = _jit._Notice(), []
    monkeypatch.setattr(_jit, "_notice", notice)
    monkeypatch.setattr(_jit, "PATIENCE", -1.0)
    with _jit.compiling_told_by(heard.append):
        for other in ("somebody.else", None):  # what exec made has no module
            notice.on_start(Compiled(other))
            notice.on_end(Compiled(other))
        assert heard == []
        for _ in range(2):
            notice.on_start(Compiled("tvsvm.graph"))
            notice.on_end(Compiled("tvsvm.graph"))
    assert heard == [_jit.KEPT]
    assert notice.tell is _jit._to_stderr


def test_without_standard_error_nothing_is_told(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    _jit._to_stderr("unheard")
