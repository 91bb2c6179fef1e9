"""Options that all experiments reject, and the README pages of their tables."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.common.tables import insert  # noqa: E402

#: A part of each experiment, and a number of rounds below that of a full run.
PAPERS = {
    "p1": ("rates", 99),
    "p2": ("heart", 29),
    "p3": ("table", 9),
    "p4": ("described", 1),
    "validity": ("sets", 9),
}


@pytest.fixture(params=PAPERS)
def paper(request):
    return request.param


@pytest.fixture
def run(paper):
    return import_module(f"experiments.{paper}.run")


def refused(run, options, capsys):
    """Return the error message for wrong options."""
    with pytest.raises(SystemExit) as stop:
        run.main(options)
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_unknown_parts_are_refused(paper, run, capsys):
    part, _ = PAPERS[paper]
    assert "unknown: nowhere" in refused(run, ["--parts", f"{part},nowhere"], capsys)


def test_zero_rounds_are_refused(run, capsys):
    assert "at least 1" in refused(run, ["--rounds", "0"], capsys)


def test_the_readme_is_written_only_from_a_full_run(paper, run, capsys):
    _, some = PAPERS[paper]
    for less in (["--quick"], ["--rounds", str(some)]):
        assert "needs all rounds" in refused(run, ["--write-readme", *less], capsys)


def test_the_readme_has_markers_for_each_part(paper, run, tmp_path):
    copy = tmp_path / "README.md"
    page = ROOT / "experiments" / paper / "README.md"
    copy.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    for part in run.PARTS:
        insert(copy, part, f"table of {part}")
    assert all(f"table of {part}\n" in copy.read_text(encoding="utf-8") for part in run.PARTS)
