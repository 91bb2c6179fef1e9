"""`dubito reproduce`."""

import argparse
import ast
import shlex
import sys
from pathlib import Path

import pytest

from dubito.cli.reproduce import find_run

ROOT = Path(__file__).parents[2]

#: A stand-in for an experiment: prints its arguments, and fails or stops on demand.
ECHO = """import sys
print("ran with", sys.argv[1:])
sys.exit(7 if "--fail" in sys.argv else 130 if "--stop" in sys.argv else 0)
"""


def given(capfd):
    """Return what the stand-in was given."""
    out = capfd.readouterr().out
    assert out.startswith("ran with ")
    return ast.literal_eval(out.removeprefix("ran with "))


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one experiment, and a nested folder as the working directory."""
    for file, text in {"src/dubito/__init__.py": "", "experiments/p7/run.py": ECHO}.items():
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    inside = tmp_path / "docs" / "deep"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    return tmp_path


def test_reproduce_runs_the_checkouts_experiment_with_all_options(checkout, capfd, dubito_command):
    options = ["--quick", "--jobs", 2, "--out", "here", "--quiet", "--rounds", "3"]
    assert dubito_command("reproduce", "p7", *options).exit_code == 0
    assert capfd.readouterr().out == f"ran with {[str(o) for o in options]}\n"
    assert find_run("p7", Path.cwd()) == checkout / "experiments" / "p7" / "run.py"


@pytest.mark.usefixtures("checkout")
def test_reproduce_passes_on_the_exit_code(capfd, dubito_command):
    assert dubito_command("reproduce", "p7", "--fail", "--resume").exit_code == 7
    assert given(capfd) == ["--fail"]


def test_without_resume_nothing_is_reused(checkout, capfd, dubito_command):
    results = checkout / "experiments" / "p7" / "results"
    folders = []
    for _ in range(3):  # within one second
        assert dubito_command("reproduce", "p7", "--quick").exit_code == 0
        quick, out, folder = given(capfd)
        assert (quick, out) == ("--quick", "--out")
        folders.append(Path(folder))
        folders[-1].mkdir(parents=True)
    assert len(set(folders)) == 3
    assert {folder.parent for folder in folders} == {results}


@pytest.mark.usefixtures("checkout")
def test_resume_leaves_the_folder_to_the_experiment(capfd, dubito_command):
    assert dubito_command("reproduce", "p7", "--quick", "--resume").exit_code == 0
    assert given(capfd) == ["--quick"]


@pytest.mark.usefixtures("checkout")
def test_resume_and_out_are_one_too_many(dubito_command):
    result = dubito_command("reproduce", "p7", "--resume", "--out", "here")
    assert result.exit_code == 2
    assert "Give one of them" in result.stderr


def test_an_interrupted_run_prints_how_to_resume(checkout, capfd, dubito_command):
    result = dubito_command("reproduce", "p7", "--quick", "--jobs", 2, "--stop", "-q")
    assert result.exit_code == 130
    folder = given(capfd)[4]
    assert Path(folder).parent == checkout / "experiments" / "p7" / "results"
    words = f"dubito reproduce p7 --quick --jobs 2 --out {folder} --quiet --stop"
    assert result.stderr == f"to continue: {words}\n"
    # That command is one: it gives the experiment the same folder.
    dubito_command(*shlex.split(words)[1:])
    assert given(capfd) == ["--quick", "--jobs", "2", "--out", folder, "--quiet", "--stop"]


@pytest.mark.usefixtures("checkout")
def test_with_resume_or_out_the_same_command_goes_on(dubito_command):
    for folder in (["--resume"], ["--out", "here"]):
        result = dubito_command("reproduce", "p7", "--stop", *folder)
        assert (result.exit_code, result.stderr) == (130, "")


@pytest.mark.usefixtures("checkout")
def test_an_unknown_experiment_is_an_error_that_lists_the_known(dubito_command):
    result = dubito_command("reproduce", "p8")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == "error: no experiments for 'p8'; this checkout has p7.\n"


def test_outside_a_checkout_is_an_error_with_advice(dubito_command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = dubito_command("reproduce", "p0")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: no checkout of dubito in {tmp_path}")
    assert "clone the repository" in result.stderr


def test_this_checkout_has_p0():
    assert find_run("p0", ROOT / "docs") == ROOT / "experiments" / "p0" / "run.py"


def test_options_of_the_experiments_are_those_passed_on():
    sys.path.append(str(ROOT))
    from experiments.common.options import add_common

    parser = argparse.ArgumentParser()
    add_common(parser, ROOT / "experiments" / "p0", quick="")
    known = parser.parse_args(["--quick", "--jobs", "2", "--out", "here", "--quiet"])
    assert (known.quick, known.jobs, known.out, known.quiet) == (True, 2, Path("here"), True)
    assert parser.parse_args([]).out == ROOT / "experiments" / "p0" / "results"
