"""The documentation site: pages in Markdown, a gallery of examples, a reference from docstrings.

CONTRIBUTING.md has the command that builds it, and fetches nothing. Browsers fetch MathJax.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import heatsketch  # noqa: E402

project = "heatsketch"
author = "The heatsketch developers"
copyright = "The heatsketch developers"
release = version = heatsketch.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "commands",
    "plain_docstrings",
]
nitpicky = True
nitpick_ignore_regex = [("py:obj", r"sklearn\..*")]  # named beside ours; its index is not fetched
default_role = "code"
smartquotes_action = "qe"  # "--version" keeps its two hyphens
exclude_patterns = ["_build", "_ext", "gallery/**/*.ipynb", "gallery/**/*.py", "pictures.py"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"heatsketch {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["tables.css"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

copybutton_prompt_text = ">>> "
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say types, with shapes
numpydoc_show_class_members = False  # the template of classes lists them
numpydoc_class_members_toctree = False

# Sources that are cited: checked by `sphinx-build -b linkcheck`, which needs a network.
linkcheck_timeout = 20


def scrape_picture(block, block_vars, gallery_conf, **kwargs):
    """Take the picture that a script has written under its own name."""
    from sphinx_gallery.scrapers import figure_rst

    written = Path(block_vars["src_file"]).with_suffix(".png")
    if not written.exists():
        return ""
    target = Path(next(block_vars["image_path_iterator"]))
    target.parent.mkdir(parents=True, exist_ok=True)
    written.replace(target)
    return figure_rst([str(target)], gallery_conf["src_dir"])


sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/used",  # what a class is used by, for its page
    "doc_module": ("heatsketch",),
    "filename_pattern": r"\.py$" if find_spec("scanpy") else r"/(?!cells)\w+\.py$",
    "image_scrapers": (scrape_picture,),
    "min_reported_time": 1e9,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
}
# Functions are pickled with the configuration by name only.
suppress_warnings = ["config.cache"]
