"""The pages that show commands: every one is run, in order, and prints what the page shows.

Numbers are not compared, besides those of rows: others may differ by machine. A shown line with …
is compared up to there.
"""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "docs/index.md", "docs/how_to/command_line.md"]

#: Commands that are not run here, and why.
NOT_RUN = {"reproduce": "takes minutes and needs benchmark files; tests/cli/test_reproduce.py"}

_BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def steps(page):
    """Yield programs, and commands with the lines shown after each."""
    for kind, text in _BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        if kind == "python":
            if ">>>" not in text:  # those are run as doctests
                yield text, None
            continue
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            yield command, shown


def bare(line):
    """A line without its numbers, and without what is left open."""
    line = re.sub(r"\d[\d.,]*(?! rows)\b", "#", line.partition("…")[0] if line != "…" else "")
    return " ".join(line.split())


@pytest.mark.parametrize("page", [*PAGES[:2], pytest.param(PAGES[2], marks=pytest.mark.slow)])
def test_every_command_runs_and_prints_what_is_shown(page, dubito_command, in_folder):
    ran = 0
    for command, shown in steps(page):
        if shown is None:
            exec(command, {})  # noqa: S102 - our own page
            continue
        program, *arguments = shlex.split(command, comments=True)
        assert program == "dubito", command
        if arguments[0] in NOT_RUN:
            continue
        result = dubito_command(*arguments)
        assert result.exit_code == 0, f"{command}\n{result.output}"
        assert result.output, f"{command}\nprints nothing: no example to show"
        printed = " ".join(map(bare, result.output.replace("…", "").splitlines()))
        for line in shown:
            assert bare(line) in printed, (
                f"{command}\nshould print\n{line}\nbut printed\n{result.output}"
            )
        ran += 1
    assert ran > 3
    assert list(in_folder.glob("*.skops"))


def test_the_guide_shows_every_command():
    from dubito.cli import COMMANDS

    shown = {shlex.split(command)[1] for command, lines in steps(PAGES[2]) if lines is not None}
    assert shown == set(COMMANDS)
    guide = (ROOT / PAGES[2]).read_text(encoding="utf-8")
    assert all(f"dubito {command}" in guide for command in COMMANDS)


def test_the_guide_names_every_method_and_model():
    from dubito.cli.calibrate import CALIBRATOR_CLASSES
    from dubito.cli.recipes import RECIPES

    guide = (ROOT / PAGES[2]).read_text(encoding="utf-8")
    assert [name for name in [*CALIBRATOR_CLASSES, *RECIPES] if f"`{name}`" not in guide] == []
