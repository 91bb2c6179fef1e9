"""The command line: parse, call, print. ``dubito --help`` lists the commands.

It needs ``pip install "dubito[cli]"``. Each command is a module of its own with one function of
its name; what they share is in ``_console`` (messages, exit codes), ``_options`` (spellings),
``_tables`` and ``_writer`` (files), and ``_inputs`` (a model's columns and labels).
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

#: In the order a newcomer meets them; `dubito --help` lists them so.
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

_NEEDS_TYPER = 'error: the command line needs typer: pip install "dubito[cli]"'


def main() -> None:
    """Run the command line."""
    if find_spec("typer") is None:  # a plain install
        sys.stderr.write(f"{_NEEDS_TYPER}\n")
        raise SystemExit(2)
    signal.signal(signal.SIGTERM, _leave)
    build_app()(prog_name="dubito")


def build_app() -> typer.Typer:
    """Return the commands."""
    import typer  # noqa: PLC0415 - the module itself must load without it

    from dubito.cli._console import Commands, about, guarded  # noqa: PLC0415

    app = typer.Typer(cls=Commands, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(about)
    for name in COMMANDS:
        module = import_module(f"dubito.cli._{name}")
        settings = getattr(module, "CONTEXT", None)
        command = getattr(module, name)
        app.command(help=_unwrapped(command.__doc__), context_settings=settings)(guarded(command))
    return app


def _unwrapped(text: str) -> str:
    """Return paragraphs on a line each, to be wrapped as wide as the terminal is."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _leave(signum: int, _frame: FrameType | None) -> None:
    """Leave by the front door when told to end, so that half-written files are removed."""
    raise SystemExit(128 + signum)
