"""The command line: parse, call, print. ``dubito --help`` lists the commands.

It needs ``pip install ".[cli]"`` in a checkout. Each command is a function in the module of its
name, which declares the options and prints the output. These modules import nothing heavy, so that
``--help`` is quick. The work is done in modules that are imported when a command runs:

==================================================  ==========================================
`tables`, `csv_reader`, `parquet_reader`, `writer`  files
`saved_models`, `labels`, `metric_tables`           a model's columns, classes and metrics
`score_columns`, `score_calibration`                calibrate
`decisions`                                         predict
`row_explanations`                                  explain
`recipes`, `training_data`, `cross_validation`      train
`console`, `options`                                messages and exit codes, shared options
==================================================  ==========================================
"""

from __future__ import annotations

import signal
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

    import typer

#: In the order of `dubito --help`.
COMMANDS = (
    "calibrate",
    "predict",
    "evaluate",
    "report",
    "explain",
    "train",
    "reproduce",
    "datasets",
)

_NEEDS_TYPER = 'error: the command line needs typer: pip install ".[cli]" in a checkout of dubito'


def main() -> None:
    """Run the command line."""
    if find_spec("typer") is None:
        sys.stderr.write(f"{_NEEDS_TYPER}\n")
        raise SystemExit(2)
    signal.signal(signal.SIGTERM, _exit_on_signal)
    build_app()(prog_name="dubito")


def build_app() -> typer.Typer:
    """Return the application with all commands."""
    import typer  # noqa: PLC0415 - an extra

    from dubito.cli.console import CommandGroup, about, guarded  # noqa: PLC0415

    app = typer.Typer(cls=CommandGroup, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(about)
    for name in COMMANDS:
        module = import_module(f"dubito.cli.{name}")
        settings = getattr(module, "CONTEXT", None)
        command = getattr(module, name)
        app.command(help=_unwrapped(command.__doc__), context_settings=settings)(guarded(command))
    return app


def _unwrapped(text: str) -> str:
    """Return each paragraph on one line, so that the terminal can wrap it."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _exit_on_signal(signum: int, _frame: FrameType | None) -> None:
    """Turn a signal into SystemExit, so that temporary files are removed."""
    raise SystemExit(128 + signum)
