"""Sphinx: how the pages are built, without any network and without a script for the formulas."""

import re
import sys
from importlib.metadata import version as installed_version

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

from tvsvm._jit import compiling_told_by

project = "tvsvm"
author = "The tvsvm developers"
copyright = author
version = release = installed_version("tvsvm")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
default_role = "py:obj"
add_module_names = False
autodoc_typehints = "none"
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"tvsvm {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "mathml"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "/plot_",
    "ignore_pattern": "demo",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # a page that wants scripts from the network
    "remove_config_comments": True,
    "abort_on_example_error": True,
}
# The functions in the configuration of the gallery cannot be pickled, which is all this says.
suppress_warnings = ["config.cache"]
# What docutils would take for a substitution, |f|, or a link, classes_.
MARKUP = re.compile(r"\||(?<=\w)_(?=[\s,.;)]|$)")


def visit_math(translator, node):
    """Write a formula within a line as MathML, which browsers show by themselves."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_displayed_math(translator, node):
    """Write a formula of its own as MathML."""
    formula = tex2mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def prepare_docstring(app, what, name, obj, options, lines):
    """Show objectives as they are typed; |f| is no substitution and classes_ no link."""
    shown, in_formula = [], False
    for line in lines:
        if line.startswith("min_") and not in_formula:
            shown += [".. code-block:: text", ""]
            in_formula = True
        elif not line:
            in_formula = False
        if in_formula:
            shown.append(f"    {line}")
        elif line.lstrip().startswith((">>>", "...")):
            shown.append(line)
        else:
            parts = re.split(r"(``.*?``)", line)
            parts[::2] = [MARKUP.sub(r"\\\g<0>", part) for part in parts[::2]]
            shown.append("".join(parts))
    lines[:] = shown


def setup(app):
    """Add the formulas and the docstrings' preparation."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displayed_math, None))
    # After numpydoc, which reads the sections of the docstring as they are.
    app.connect("autodoc-process-docstring", prepare_docstring, priority=900)
    # To the terminal: on a new machine it would be part of the first example's output.
    compiling_told_by(lambda sentence: print(sentence, file=sys.__stderr__)).__enter__()
