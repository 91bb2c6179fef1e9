"""The demo, the gallery, and the pictures of the documentation.

The documentation's build runs every script of the gallery. Tested here are scripts whose text makes
statements about numbers, and scripts outside the gallery.
"""

import ast
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
GALLERY = sorted(EXAMPLES.glob("[0-9]_*/*.py"))


def run_python(*arguments):
    """Return the completed process of a new interpreter."""
    return subprocess.run(  # noqa: S603
        [sys.executable, *map(str, arguments)], check=True, capture_output=True, text=True
    )


@pytest.fixture
def run_script(monkeypatch):
    """Return a function that runs a script of the gallery and returns its variables."""
    mpl = pytest.importorskip("matplotlib")
    monkeypatch.delenv("DISPLAY", raising=False)  # no window, and no warning about it
    mpl.use("agg")
    from matplotlib import pyplot as plt

    yield lambda script: runpy.run_path(str(EXAMPLES / script))
    plt.close("all")


@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_scripts_of_the_gallery_have_a_title_text_and_no_assertions(script):
    text = script.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, line = ast.get_docstring(tree).splitlines()[:2]
    assert line == "=" * len(title)
    assert text.count("\n# %%\n") > 1
    assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree))
    assert script.stem.startswith("plot_")


def test_every_folder_of_the_gallery_has_a_header():
    folders = sorted({script.parent for script in GALLERY})
    assert [folder.name for folder in folders] == ["1_start", "2_deeper", "3_papers"]
    for folder in (EXAMPLES, *folders):
        header = (folder / "GALLERY_HEADER.rst").read_text(encoding="utf-8")
        title, line = header.splitlines()[:2]
        assert set(line) in ({"="}, {"-"})
        assert len(line) == len(title)


@pytest.mark.slow
def test_the_demo_writes_its_report_and_prints_commands_that_work(tmp_path):
    (tmp_path / "report.html").write_text("of an earlier run", encoding="utf-8")
    ran = run_python(EXAMPLES / "demo.py", "--out", tmp_path)
    assert ran.stderr == ""
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert str(tmp_path / "report.html") in ran.stdout
    lines, _, hints = ran.stdout.partition("\n\n")
    assert len(lines.splitlines()) == 3
    commands = re.findall(r"^  \S*dubito (.+)$", hints, flags=re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        run_python("-m", "dubito.cli", *shlex.split(command))


def test_declining_reduces_errors_as_the_first_examples_state(run_script):
    lines = run_script("1_start/plot_1_five_lines.py")
    assert lines["right"][~lines["declined"]].mean() > lines["right"].mean()
    average = run_script("1_start/plot_4_when_to_decline.py")["average"]
    wrong, declined = average["wrong"], average["declined"]
    assert wrong["pessimistic"] < 0.6 * wrong["optimistic"] < 0.6 * wrong["always answers"]
    assert declined["pessimistic"] > 2 * declined["optimistic"] > 0
    assert average["cost"].idxmax() == "always answers"


def test_combined_detectors_are_more_accurate_than_each(run_script):
    accuracy = run_script("2_deeper/plot_1_weak_detectors.py")["accuracy"]
    assert accuracy["fused"] > accuracy["averaged"]
    assert accuracy["averaged"] > max(accuracy[name] for name in ("top", "middle", "bottom"))


def test_errors_are_frequent_where_conflict_is_high(run_script):
    variables = run_script("2_deeper/plot_2_conflict.py")
    by_conflict, accuracy = variables["by_conflict"], variables["accuracy"]
    assert by_conflict["width"].is_monotonic_increasing
    assert by_conflict["wrong"].iloc[2:].min() > 5 * by_conflict["wrong"].iloc[:2].max()
    assert accuracy["together"] > max(accuracy[name] for name in ("size", "texture", "shape"))


def test_evidence_distinguishes_ignorance_from_conflict(run_script, capsys):
    run_script("2_deeper/plot_3_evidence.py")
    printed = capsys.readouterr().out
    assert printed.count("doubt is conflict") == printed.count("Doubt here is lack") == 1


def test_sets_of_the_discriminant_grow_with_c(run_script):
    path = run_script("2_deeper/plot_4_cautious_discriminant.py")["path"]
    sizes = path.mean_set_size
    assert np.diff(sizes).min() > -1e-12
    assert sizes[0] == pytest.approx(1)
    assert sizes[-1] > 1.1


def test_novelty_detection_declines_unfamiliar_rows(run_script, capsys):
    variables = run_script("2_deeper/plot_7_unfamiliar_rows.py")
    alone, aware = (variables["plain"], variables["aware"])
    far = np.array([[6.0, -4.0]])
    assert aware.predict_bounds(far).width.min() > 0.8 > alone.predict_bounds(far).width.max()
    assert variables["touched"] <= 0.05
    printed = capsys.readouterr().out
    wrong = [int(percent) for percent in re.findall(r"(\d+)% wrong", printed)]
    assert wrong[1] < wrong[0] / 5


def test_conformal_sets_have_the_guaranteed_coverage(run_script):
    variables = run_script("2_deeper/plot_8_sets_with_a_promise.py")
    assert min(variables["held"]["conformal"]) > 0.86
    assert max(variables["held"]["by bounds"]) < 0.8
    assert variables["size"]["by bounds"][-1] < 1.01 < variables["size"]["conformal"][-1]


@pytest.mark.slow
def test_calibration_and_more_trees_help_many_classes(run_script):
    variables = run_script("2_deeper/plot_5_many_classes.py")
    assert variables["by_depth"]["vector"][-1] < variables["by_depth"][None][-1] / 2
    geometric, arithmetic = variables["losses"]["geometric"], variables["losses"]["arithmetic"]
    assert geometric[-1] < geometric[0] / 5
    assert geometric[-1] < arithmetic[-1] < arithmetic[0]


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_the_same_probabilities():
    pytest.importorskip("dask.distributed", reason="the extra is not installed")
    assert (
        "the same probabilities: True"
        in run_python(EXAMPLES / "cluster.py", "--classes", 60).stdout
    )


def test_every_picture_of_the_documentation_is_drawn_by_a_script_and_shown():
    drawn = runpy.run_path(str(EXAMPLES / "pictures.py"))
    simulated = (ROOT / "experiments" / "validity" / "figures.py").read_text(encoding="utf-8")
    kept = {picture.stem for picture in (ROOT / "docs" / "images").glob("*.png")}
    of_experiment = {name for name in kept if f'yield "{name}"' in simulated}
    assert kept - of_experiment == {*drawn["FIGURES"], drawn["REPORT"]}
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("experiments/*/README.md")]
    shown = " ".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in kept if f"images/{name}.png" not in shown] == []
