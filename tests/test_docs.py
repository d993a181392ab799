"""The documentation: every code block runs, every link inside it leads somewhere."""

import ast
import doctest
import re
import shlex
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from tvsvm.cli.main import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.rst"))
TEXTS = sorted(ROOT.glob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
RST_BLOCK = re.compile(r"^\.\. code-block:: (\w+)\n\n((?:(?: {3,}.*)?\n)+)", re.MULTILINE)
MD_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
DOCUMENTED = re.findall(r"currentmodule:: (\S+)", (DOCS / "api.rst").read_text())


def named(paths):
    return pytest.mark.parametrize("path", paths, ids=[path.name for path in paths])


def blocks(path):
    """Language and code of every block of a page, in their order."""
    text = path.read_text()
    pattern = RST_BLOCK if path.suffix == ".rst" else MD_BLOCK
    return [(match[1], textwrap.dedent(match[2])) for match in pattern.finditer(text)]


def run_commands(code):
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in code.strip().splitlines():
        program, *arguments = shlex.split(line.removeprefix("$ "), comments=True)
        if program == "tvsvm":
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, (line, done.output)
        elif program == "make":
            assert set(arguments) <= set(targets), line


@named([path for path in (*TEXTS, *PAGES) if blocks(path)])
def test_code_blocks_run_in_their_order(path, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {}
    for language, code in blocks(path):
        if language == "python":
            exec(compile(code, path.name, "exec"), names)
        else:
            assert language == "console", language
            run_commands(code)
    import matplotlib.pyplot as plt

    plt.close("all")


def test_blocks_are_found():
    assert [language for language, _ in blocks(DOCS / "command_line.rst")].count("console") >= 5
    assert sum(language == "python" for path in PAGES for language, _ in blocks(path)) >= 20
    assert all(path.read_text().count("code-block::") == len(blocks(path)) for path in PAGES)


@pytest.mark.parametrize("module", sorted(set(DOCUMENTED)))
def test_examples_of_docstrings(module):
    for name in getattr(import_module(module), "__all__", [None]):
        home = module if name is None else getattr(import_module(module), name).__module__
        assert doctest.testmod(import_module(home)).failed == 0


@named(TEXTS)
def test_links_of_texts_lead_to_files(path):
    for target in re.findall(r"\]\(([^)#]+)", path.read_text()):
        assert target.startswith("https://") or (path.parent / target).exists(), target


@named(PAGES)
def test_links_of_pages_lead_somewhere(path):
    text = path.read_text()
    examples = {f"auto_examples/{example.stem}" for example in EXAMPLES}
    pages = {page.stem for page in PAGES} | {"auto_examples/index"} | examples
    assert set(re.findall(r":doc:`([^`]+)`", text)) <= pages
    for picture in re.findall(r"^\.\. figure:: (.+)$", text, re.MULTILINE):
        assert (DOCS / picture).is_file(), picture
    shown = re.findall(r"literalinclude:: (\S+)\n +:pyobject: (\w+)", text)
    assert len(shown) == text.count("literalinclude::")
    for source, name in shown:
        tree = ast.parse((DOCS / source).read_text())
        assert name in {getattr(node, "name", None) for node in tree.body}, (source, name)


def test_names_that_are_linked_exist():
    text = "".join(path.read_text() for path in (*PAGES, *(ROOT / "src").rglob("*.py")))
    for target in re.findall(r":(?:func|class):`~?(tvsvm[\w.]+)`", text):
        module, _, name = target.rpartition(".")
        assert hasattr(import_module(module), name), target


def test_every_page_is_in_the_table_of_contents():
    listed = set(re.findall(r"^   (\w+)$", (DOCS / "index.rst").read_text(), re.MULTILINE))
    assert {page.stem for page in PAGES} - {"index"} == listed


def test_every_module_has_its_place_in_the_architecture():
    paths = (ROOT / "src" / "tvsvm").iterdir()
    modules = {path.stem for path in paths if path.suffix in ("", ".py")} - {"__pycache__"}
    mentioned = set(re.findall(r"\w+", (DOCS / "architecture.rst").read_text()))
    assert modules - {"__init__", "__main__"} <= mentioned


@pytest.mark.parametrize("module", sorted(set(DOCUMENTED)))
def test_every_public_name_is_in_the_reference(module):
    listed = set(re.findall(r"^   (\w+)$", (DOCS / "api.rst").read_text(), re.MULTILINE))
    assert set(getattr(import_module(module), "__all__", [])) <= listed


def test_pages_build_without_warnings(tmp_path):
    pytest.importorskip("sphinx_gallery", reason="needs what `make docs` installs")
    pytest.importorskip("furo", reason="needs what `make docs` installs")
    # A copy: what the build generates belongs into no checkout.
    copied = tmp_path / "docs"
    for path in (*PAGES, DOCS / "conf.py", *DOCS.glob("_*/**/*.*"), *DOCS.glob("*.[ps][nv]g")):
        if "_build" not in path.parts:
            target = copied / path.relative_to(DOCS)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    for folder in ("src", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    options = ["-q", "-W", "--keep-going", "-D", "plot_gallery=0", "-b", "html"]
    command = [sys.executable, "-m", "sphinx", *options, "docs", "html"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert_links_lead_somewhere(tmp_path / "html")


def assert_links_lead_somewhere(site):
    """Every link between pages has its file and place."""
    texts = {path.resolve(): path.read_text() for path in site.rglob("*.html")}
    for page, text in texts.items():
        for link in re.findall(r'(?:href|src)="([^":]+)"', text):
            address, _, place = unquote(link).partition("#")
            target = (page.parent / address.partition("?")[0]).resolve() if address else page
            assert target.exists(), (page, link)
            assert not place or f'id="{place}"' in texts[target], (page, link)
