"""Options that the experiments of all papers refuse alike, and the pages their tables go to."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.common.tables import insert  # noqa: E402

#: A part of each paper's experiments, and fewer rounds than all.
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
    """Return what is said to options that end the run."""
    with pytest.raises(SystemExit) as stop:
        run.main(options)
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_unknown_parts_are_refused(paper, run, capsys):
    part, _ = PAPERS[paper]
    assert "unknown: nowhere" in refused(run, ["--parts", f"{part},nowhere"], capsys)


def test_no_rounds_are_refused(run, capsys):
    assert "at least 1" in refused(run, ["--rounds", "0"], capsys)


def test_the_readme_is_written_from_all_rounds_alone(paper, run, capsys):
    _, some = PAPERS[paper]
    for less in (["--quick"], ["--rounds", str(some)]):
        assert "needs all rounds" in refused(run, ["--write-readme", *less], capsys)


def test_the_readme_has_a_place_for_each_part(paper, run, tmp_path):
    copy = tmp_path / "README.md"
    page = ROOT / "experiments" / paper / "README.md"
    copy.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    for part in run.PARTS:
        insert(copy, part, f"table of {part}")
    assert all(f"table of {part}\n" in copy.read_text(encoding="utf-8") for part in run.PARTS)
