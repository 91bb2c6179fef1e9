"""Links, images and directives of the README and of the documentation's Markdown pages."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GENERATED = ("docs/_build/", "docs/gallery/", "docs/reference/api/")
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "experiments/**/*.md", "benchmarks/**/*.md")
    for page in ROOT.glob(pattern)
    if not page.relative_to(ROOT).as_posix().startswith(GENERATED)
)

_CODE = re.compile(r"^(```+).*?^\1$", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_REFERENCE = re.compile(r"^\[[^\]]+\]:\s*(\S+)$", re.MULTILINE)
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^\s*(?:```+|:::+)\{([\w-]+)\}", re.MULTILINE)
_ROLE = re.compile(r"\{[\w:]+\}`")


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def anchors_of(page):
    """Return the anchors that a code host makes of a page's headings."""
    headings = _HEADING.findall(_CODE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_there_are_pages():
    assert len(PAGES) > 30


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_and_images_lead_to_files_and_headings(page):
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    targets = [*_LINK.findall(_INLINE_CODE.sub("", text)), *_REFERENCE.findall(text)]
    broken = []
    for target in targets:
        if re.match(r"[a-z]+:", target):  # http:, https:, mailto:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        if not linked.exists() or (
            anchor and linked.suffix == ".md" and anchor not in anchors_of(linked)
        ):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_have_no_directives_that_a_code_host_shows_raw(page):
    text = page.read_text(encoding="utf-8")
    assert _DIRECTIVE.findall(text) == []
    assert _ROLE.findall(_CODE.sub("", text)) == []


def test_paths_named_in_the_contributing_guide_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:src|tests|docs|benchmarks|examples)/[\w./]*)`", text)
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []
