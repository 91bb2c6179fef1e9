"""What the commands say, where they say it, and the exit codes they leave with.

===========================================  ======  ===========================
what happened                                code    stderr
===========================================  ======  ===========================
all went well                                0
a defect of dubito                           1       error: … please report it
something is wrong with what was given       2       error: …
whoever reads the output stopped (`| head`)  141
interrupted (Ctrl-C)                         130     interrupted: …
===========================================  ======  ===========================
"""

from __future__ import annotations

import difflib
import functools
import json
import os
import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

import dubito
from dubito.cli._options import FLAG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

P = ParamSpec("P")
R = TypeVar("R")

#: Which commands make models whose bounds have levels.
LEVELS = (
    "From the command line: leave --level out, or make a model by dubito calibrate, or by dubito "
    "train with its default, another calibrated one, nested or fusion, without --conformal."
)


class CliError(Exception):
    """Something the person at the terminal can mend: what, where, and what to do."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


class Commands(typer.core.TyperGroup):
    """All commands; wrong options are told in one line too, and none at all shows the help."""

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run the command that was given, and leave."""
        given = settings.get("args")
        settings["args"] = list(sys.argv[1:] if given is None else given) or ["--help"]
        try:
            code = super().main(*args, **settings | {"standalone_mode": False})
        except Exception as error:
            if not hasattr(error, "format_message"):  # the parser's
                raise
            typer.echo(f"error: {_misused(error)}", err=True)
            code = 2
        sys.exit(code)


def about(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar=FLAG,
            is_eager=True,
            callback=lambda asked: _print_version() if asked else None,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Classifiers that know when to doubt."""


def check_choice(option: str, given: str | None, allowed: Iterable[str]) -> None:
    """Refuse a word that an option does not know; None is no word.

    Parameters
    ----------
    option : str
        As it is spelled: ``--method``.
    given : str or None
        What was said.
    allowed : iterable of str
        What may be said.
    """
    words = list(allowed)
    if given is not None and given not in words:
        near = difflib.get_close_matches(given, words, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise CliError(f"{option} must be one of {', '.join(words)}. Got {given!r}.{hint}")


def check_fraction(option: str, given: float | None) -> None:
    """Refuse what is not between 0 and 1; None is nothing given.

    Parameters
    ----------
    option : str
        As it is spelled: ``--level``.
    given : float or None
        What was said.
    """
    if given is not None and not 0 < given < 1:
        hint = f" For {given:g} % say {given / 100:g}." if 1 < given < 100 else ""
        raise CliError(
            f"{option} must be a number between 0 and 1, as in 0.9. Got {given:g}.{hint}"
        )


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """Return the command with faults told in one line, and exit codes.

    With ``DUBITO_DEBUG=1`` in the environment the traceback is shown.
    """

    @functools.wraps(command)
    def guard(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with _warnings_told():
                result = command(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise _failure("interrupted: no file was written or changed.", 130) from None
        except BrokenPipeError:  # `| head` has seen enough
            _close_stdout()
            raise typer.Exit(141) from None
        except CliError as error:
            raise _failure(f"error: {error}", error.code) from None
        except Exception as error:
            if _is_the_parsers(error) or _debugging():
                raise
            message, code = _worded(error)
            raise _failure(f"error: {message}", code) from None
        return result

    return guard


@contextmanager
def _warnings_told() -> Iterator[None]:
    """Show warnings as one line each, without the place in the code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: typer.echo(f"warning: {message}", err=True)
        yield


def _debugging() -> bool:
    return os.environ.get("DUBITO_DEBUG", "") not in ("", "0")


def _is_the_parsers(error: Exception) -> bool:
    """Whether typer, or click below it, speaks: exit codes and wrong options are theirs."""
    return type(error).__module__.split(".")[0] in ("click", "typer")


def _misused(error: Any) -> str:
    """Say what the parser says, in one line."""
    message = " ".join(error.format_message().split())
    end = "" if message.endswith((".", "?")) else "."
    command = error.ctx.command_path if error.ctx else "dubito"
    return f"{message[:1].lower()}{message[1:]}{end} {command} --help lists what there is."


def _worded(error: Exception) -> tuple[str, int]:
    """Return what to say about a fault, and the exit code."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f'this needs {error.name}: pip install "dubito[cli,report]"', 2
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}.", 2
    if type(error).__name__ == "NoLevelError":  # not imported: numpy comes with it
        return f"{error} {LEVELS}", 2
    if isinstance(error, (ValueError, OSError)) or _is_ours(error):
        return str(error) or type(error).__name__, 2
    if isinstance(error, MemoryError):
        return f"there is not enough memory ({error}). Use fewer columns or fewer rows.", 2
    message = (
        f"something in dubito itself went wrong ({type(error).__name__}: {error}). Set "
        "DUBITO_DEBUG=1 to see where, and please report it to the maintainers of dubito."
    )
    return message, 1


def _is_ours(error: Exception) -> bool:
    """Whether dubito has a name of its own for the fault, so it is about what was given."""
    return type(error).__module__.split(".")[0] == "dubito"


def _failure(message: str, code: int) -> typer.Exit:
    typer.echo(message, err=True)
    return typer.Exit(code)


def _close_stdout() -> None:
    """Send what is still buffered nowhere, so that Python does not complain on leaving."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


@dataclass(frozen=True)
class Console:
    """What one run of a command prints: text for people, or one JSON object.

    Parameters
    ----------
    quiet : bool
        Print nothing but errors, no progress bar either.
    json : bool
        Print one JSON object on stdout in place of the text.
    """

    quiet: bool = False
    json: bool = False

    def say(self, text: str) -> None:
        """Print a line for people."""
        if not (self.quiet or self.json):
            typer.echo(text)

    def note(self, text: str) -> None:
        """Print a line for people on stderr: for commands whose result goes to stdout."""
        if not (self.quiet or self.json):
            typer.echo(text, err=True)

    def result(self, content: Mapping[str, Any]) -> None:
        """Print what came out as JSON, when JSON was asked for."""
        if self.json:
            typer.echo(json.dumps(content, ensure_ascii=False, default=_plain, allow_nan=False))

    @contextmanager
    def progress(
        self, total: int | None, description: str, *, unit: str = "rows"
    ) -> Iterator[Callable[[int], None]]:
        """Show a bar on stderr when that is a terminal; what it yields takes the steps done.

        Parameters
        ----------
        total : int or None
            How many steps there are, roughly; None where nobody knows.
        description : str
            What is being done.
        unit : str
            What is counted.
        """
        if self.quiet or not sys.stderr.isatty():
            yield lambda _steps: None
            return
        from rich.console import Console as Screen  # noqa: PLC0415 - only where it is seen
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            TextColumn("{task.completed:,} " + unit),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=Screen(stderr=True), transient=True) as bar:
            task = bar.add_task(description, total=total)
            yield lambda steps: bar.advance(task, steps)


def _plain(value: Any) -> Any:
    """Return numpy's numbers as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def _print_version() -> None:
    typer.echo(f"dubito {dubito.__version__}")
    raise typer.Exit
