"""The command line: what it prints, where, and with which exit code."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dubito
from dubito.cli import build_app, find_run
from dubito.datasets import list_datasets, load

ROOT = Path(__file__).parents[1]

#: A stand-in for an experiment: says what it was given, and fails when told to.
ECHO = """import sys
print("ran with", sys.argv[1:])
sys.exit(7 if "--fail" in sys.argv else 0)
"""


@pytest.fixture
def dubito_command():
    app = build_app()
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one experiment, and a folder deep inside it to stand in."""
    for file, text in {"src/dubito/__init__.py": "", "experiments/p7/run.py": ECHO}.items():
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    inside = tmp_path / "docs" / "deep"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    return tmp_path


def test_version(dubito_command):
    said = dubito_command("--version")
    assert said.exit_code == 0
    assert said.stdout == f"dubito {dubito.__version__}\n"


def test_no_command_shows_help(dubito_command):
    said = dubito_command()
    assert "datasets" in said.output
    assert "reproduce" in said.output


def test_datasets_lists_all_with_their_sizes(dubito_command, monkeypatch, tmp_path):
    monkeypatch.setenv("DUBITO_DATA", str(tmp_path))
    monkeypatch.setenv("DUBITO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "dna.csv.gz").write_bytes(b"")
    head, *lines = dubito_command("datasets").stdout.splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert head.split() == ["name", "rows", "features", "classes", "paper", "at", "hand"]
    assert list(rows) == list_datasets()
    iris = load("iris")
    assert rows["iris"] == [*map(str, iris.X.shape), str(len(iris.class_names)), "P3", "yes"]
    assert rows["dna"][-1] == "yes"
    assert rows["usps"][-1] == "no"


def test_datasets_looks_in_the_cache_too(dubito_command, monkeypatch, tmp_path):
    monkeypatch.delenv("DUBITO_DATA", raising=False)
    monkeypatch.setenv("DUBITO_CACHE", str(tmp_path))
    (tmp_path / "usps.csv.gz").write_bytes(b"")
    hand = dict(re.findall(r"^(\w+) .* (\w+)$", dubito_command("datasets").stdout, re.MULTILINE))
    assert [name for name, word in hand.items() if word == "yes"] == ["iris", "usps", "wine"]


def test_reproduce_runs_the_checkouts_experiment_with_all_options(checkout, capfd, dubito_command):
    options = ["--quick", "--jobs", 2, "--out", "here", "--quiet", "--rounds", "3"]
    assert dubito_command("reproduce", "p7", *options).exit_code == 0
    assert capfd.readouterr().out == f"ran with {[str(o) for o in options]}\n"
    assert find_run("p7", Path.cwd()) == checkout / "experiments" / "p7" / "run.py"


@pytest.mark.usefixtures("checkout")
def test_reproduce_passes_on_the_exit_code(capfd, dubito_command):
    assert dubito_command("reproduce", "p7", "--fail").exit_code == 7
    assert capfd.readouterr().out == "ran with ['--fail']\n"


@pytest.mark.usefixtures("checkout")
def test_an_unknown_experiment_is_an_error_that_lists_the_known(dubito_command):
    said = dubito_command("reproduce", "p8")
    assert said.exit_code == 2
    assert said.stdout == ""
    assert said.stderr == "error: no experiments for 'p8'; this checkout has p7.\n"


def test_outside_a_checkout_is_an_error_that_says_where_to_go(
    dubito_command, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    said = dubito_command("reproduce", "p0")
    assert said.exit_code == 2
    assert said.stderr.startswith(f"error: no checkout of dubito in {tmp_path}")
    assert "clone the repository" in said.stderr


def test_this_checkout_has_p0():
    assert find_run("p0", ROOT / "docs") == ROOT / "experiments" / "p0" / "run.py"


def test_without_typer_it_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; import dubito.cli as c; c.main()"
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr == 'error: the command line needs typer: pip install "dubito[cli]"\n'


def test_asking_for_the_version_loads_no_room():
    code = "import sys, dubito.cli; print(*({'sklearn', 'numpy', 'numba'} & set(sys.modules)))"
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert ran.stdout.split() == []


def test_it_runs_as_a_module():
    ran = subprocess.run(
        [sys.executable, "-m", "dubito.cli", "--version"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert ran.stdout == f"dubito {dubito.__version__}\n"
