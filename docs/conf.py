"""How the documentation is built: `sphinx-build -E -W --keep-going -b html docs docs/_build/html`.

The pages are Markdown, and their examples run as tests. The reference is made from docstrings, the
gallery by running everything in the folders of `examples/`. Building and reading need no network.
"""  # noqa: INP001

import re
import sys
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_DOCS = Path(__file__).parent
sys.path.insert(0, str(_DOCS / "_extensions"))

project = "dubito"
author = "The dubito developers"
release = version = installed_version("dubito")

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}

# Pages
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# Reference
default_role = "py:obj"
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_mock_imports = [] if find_spec("torch") else ["torch"]
numpydoc_show_class_members = False
add_module_names = False
toc_object_entries_show_parents = "hide"

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": ["../examples/1_start", "../examples/2_deeper", "../examples/3_papers"],
    "within_subsection_order": "FileNameSortKey",
    "ignore_pattern": r"^(?!plot_)\w+\.py$",  # scripts to be run by hand
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("dubito",),
    "capture_repr": (),
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
}

# Appearance
html_theme = "furo"
html_title = "dubito"
html_static_path = ["_static"]
html_css_files = ["dubito.css"]
html_math_renderer = "mathml"
pygments_dark_style = "github-dark"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False

#: The parts of the documentation: caption, folder, and pages that are not in the folder.
_PARTS = {
    "Tutorials": ("tutorials", ["gallery/index"]),
    "How-to guides": ("how_to", []),
    "Explanation": ("explanation", []),
    "Reference": ("reference", ["reference/modules"]),
    "Measured results": ("results", []),
}

_ADDED = re.compile(r"set_\w+_request|get_metadata_routing|set_callbacks")
#: A link to a page outside docs/ that is a line of its own.
_PAGE_OUTSIDE = re.compile(r"^\[[^\]]*\]\((\.\./\.\./[\w/]+\.md)\)$", re.MULTILINE)
#: The first cell of a row in the tables of names.
_LISTED_NAME = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
_EXAMPLE = re.compile(r"\]\((?:\.\./)+examples/([\w/]+)\.py\)")
_EXAMPLES_FOLDER = re.compile(r"\]\((?:\.\./)+examples\)")


def _replace_links(_app: Any, docname: str, source: list[str]) -> None:
    """Replace links to files of the repository, which a code host follows, by what Sphinx has.

    A link to a page outside docs/, alone on its line, becomes that page; below other text it comes
    without its title, as the page has a heading for it. Links to examples go to the gallery. Names
    listed in the page of the API go to their own pages.
    """
    if docname == "index":
        source[0] += _page_trees(source[0])
    text = _PAGE_OUTSIDE.sub(_include, source[0])
    text = _EXAMPLE.sub(r"](/gallery/\1.rst)", text)
    text = _EXAMPLES_FOLDER.sub("](/gallery/index.rst)", text)
    source[0] = _link_names(text) if docname == "reference/api" else text


def _page_trees(text: str) -> str:
    """Return the directives for the side bar: pages as the index links to them, then the others."""
    trees = []
    for caption, (folder, more) in _PARTS.items():
        linked = re.findall(rf"\]\(({folder}/\w+)\.md", text)
        others = sorted(f"{folder}/{page.stem}" for page in (_DOCS / folder).glob("*.md"))
        pages = dict.fromkeys([*linked, *others, *more])
        trees.append(
            "\n".join(["```{toctree}", f":caption: {caption}", ":hidden:", "", *pages, "```"])
        )
    return "\n\n".join(["", *trees]) + "\n"


def _include(link: re.Match[str]) -> str:
    """Return the directive that includes the page a link leads to."""
    below = link.start() > 0
    options = ":start-line: 1\n:heading-offset: 1\n" if below else ""
    return f"```{{include}} {link[1]}\n{options}:relative-images:\n```"


def _link_names(text: str) -> str:
    """Return the page of the API, the names under each package being links to their pages."""
    parts = re.split(r"^(## dubito[\w.]+)$", text, flags=re.MULTILINE)
    for place in range(2, len(parts), 2):
        package = parts[place - 1].removeprefix("## ")
        parts[place] = _LISTED_NAME.sub(rf"| {{py:obj}}`~{package}.\1` |", parts[place])
    return "".join(parts)


def _skip(_app: Any, _what: str, name: str, member: Any, *_rest: Any) -> bool | None:
    """Leave out methods that scikit-learn adds to every estimator, and fields of named tuples."""
    is_field = type(member).__name__ == "_tuplegetter"
    return True if is_field or _ADDED.fullmatch(name) else None


def setup(app: Any) -> None:
    """Connect the functions above to Sphinx."""
    app.connect("source-read", _replace_links)
    app.connect("autodoc-skip-member", _skip)
