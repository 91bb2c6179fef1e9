"""Messages of the commands, the streams they go to, and exit codes.

===========================================  ======  ===========================
outcome                                      code    stderr
===========================================  ======  ===========================
success                                      0
a bug in dubito                              1       error: … please report it
an error in the input or the options         2       error: …
the reader of stdout closed it (`| head`)    141
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
from dubito.cli.options import FLAG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

P = ParamSpec("P")
R = TypeVar("R")

#: Appended to errors about models whose bounds have no confidence level.
LEVEL_HINT = (
    "From the command line: leave --level out, or make a model by dubito calibrate, or by dubito "
    "train with its default, another calibrated one, nested or fusion, without --conformal."
)


class CliError(Exception):
    """An error the user can correct; the message says what, where, and what to do."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


class CommandGroup(typer.core.TyperGroup):
    """All commands; usage errors are one line, and without arguments the help is shown."""

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run the given command and exit."""
        given = settings.get("args")
        settings["args"] = list(sys.argv[1:] if given is None else given) or ["--help"]
        try:
            code = super().main(*args, **settings | {"standalone_mode": False})
        except Exception as error:
            if not hasattr(error, "format_message"):  # not a usage error
                raise
            typer.echo(f"error: {_usage_message(error)}", err=True)
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
            callback=lambda given: _print_version() if given else None,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Classifiers that know when to doubt."""


def check_option(option: str, given: str | None, allowed: Iterable[str]) -> None:
    """Raise an error if the value of an option is not allowed; None means not given.

    Parameters
    ----------
    option : str
        As it is spelled: ``--method``.
    given : str or None
        The value.
    allowed : iterable of str
        The allowed values.
    """
    words = list(allowed)
    if given is not None and given not in words:
        hint = did_you_mean(given, words)
        raise CliError(f"{option} must be one of {', '.join(words)}. Got {given!r}.{hint}")


def did_you_mean(
    given: str,
    known: Iterable[str],
    show: Callable[[str], object] = str,
    *,
    cutoff: float = 0.6,
) -> str:
    """Return " Did you mean X?" with the known name most similar to `given`; empty without one.

    Parameters
    ----------
    given : str
        The name that is not known.
    known : iterable of str
        The known names.
    show : callable
        Returns X for a known name.
    cutoff : float
        Least similarity, from 0 to 1, as in `difflib.get_close_matches`.
    """
    near = difflib.get_close_matches(given, list(known), n=1, cutoff=cutoff)
    return f" Did you mean {show(near[0])}?" if near else ""


def check_fraction_option(option: str, given: float | None) -> None:
    """Raise an error if the value of an option is not between 0 and 1; None means not given.

    Parameters
    ----------
    option : str
        As it is spelled: ``--level``.
    given : float or None
        The value.
    """
    if given is not None and not 0 < given < 1:
        hint = f" For {given:g} % say {given / 100:g}." if 1 < given < 100 else ""
        raise CliError(
            f"{option} must be a number between 0 and 1, as in 0.9. Got {given:g}.{hint}"
        )


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """Return the command with errors turned into one-line messages and exit codes.

    With ``DUBITO_DEBUG=1`` in the environment the traceback is shown.
    """

    @functools.wraps(command)
    def guard(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with _short_warnings():
                result = command(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise _exit_with("interrupted: no file was written or changed.", 130) from None
        except BrokenPipeError:  # as with `| head`
            _close_stdout()
            raise typer.Exit(141) from None
        except CliError as error:
            raise _exit_with(f"error: {error}", error.code) from None
        except Exception as error:
            if _is_parser_error(error) or _debugging():
                raise
            message, code = _message_and_code(error)
            raise _exit_with(f"error: {message}", code) from None
        return result

    return guard


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Print warnings as one line each, without the line of code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: typer.echo(f"warning: {message}", err=True)
        yield


def _debugging() -> bool:
    return os.environ.get("DUBITO_DEBUG", "") not in ("", "0")


def _is_parser_error(error: Exception) -> bool:
    """Return whether typer, or click which it uses, raised it: an exit code or a usage error."""
    return type(error).__module__.split(".")[0] in ("click", "typer")


def _usage_message(error: Any) -> str:
    """Return a usage error of the parser as one line."""
    message = " ".join(error.format_message().split())
    end = "" if message.endswith((".", "?")) else "."
    command = error.ctx.command_path if error.ctx else "dubito"
    return f"{message[:1].lower()}{message[1:]}{end} {command} --help lists what there is."


def _message_and_code(error: Exception) -> tuple[str, int]:
    """Return the message for an error, and the exit code."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f'this needs {error.name}: pip install ".[cli,report]" in a checkout of dubito', 2
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}.", 2
    if type(error).__name__ == "NoLevelError":  # by name: importing it would load numpy
        return f"{error} {LEVEL_HINT}", 2
    if isinstance(error, (ValueError, OSError)) or _is_dubito_error(error):
        return str(error) or type(error).__name__, 2
    if isinstance(error, MemoryError):
        return f"there is not enough memory ({error}). Use fewer columns or fewer rows.", 2
    message = (
        f"something in dubito itself went wrong ({type(error).__name__}: {error}). Set "
        "DUBITO_DEBUG=1 to see where, and please report it to the maintainers of dubito."
    )
    return message, 1


def _is_dubito_error(error: Exception) -> bool:
    """Return whether the error class is defined in dubito, so that the input is at fault."""
    return type(error).__module__.split(".")[0] == "dubito"


def _exit_with(message: str, code: int) -> typer.Exit:
    typer.echo(message, err=True)
    return typer.Exit(code)


def _close_stdout() -> None:
    """Redirect buffered output to the null device, so that Python exits without an error."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())


@dataclass(frozen=True)
class Console:
    """Output of one run of a command: text for people, or one JSON object.

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
        """Print the result as one JSON object, with --json only."""
        if self.json:
            typer.echo(
                json.dumps(content, ensure_ascii=False, default=_json_value, allow_nan=False)
            )

    @contextmanager
    def progress(
        self, total: int | None, description: str, *, unit: str = "rows"
    ) -> Iterator[Callable[[int], None]]:
        """Show a progress bar on stderr if that is a terminal; yield the function that advances it.

        Parameters
        ----------
        total : int or None
            About how many steps there are; None if unknown.
        description : str
            Text before the bar.
        unit : str
            Unit of the steps.
        """
        if self.quiet or not sys.stderr.isatty():
            yield lambda _steps: None
            return
        from rich.console import Console as Screen  # noqa: PLC0415 - needed on terminals only
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


def _json_value(value: Any) -> Any:
    """Return a value of another type for JSON: of numpy as a Python value, the rest as text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def _print_version() -> None:
    typer.echo(f"dubito {dubito.__version__}")
    raise typer.Exit


def side_by_side(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as an aligned table; the first row holds the column names."""
    if sys.stdout.isatty():
        return _rich_table(rows)
    return "\n".join(f"  {line}".rstrip() for line in aligned_lines(rows))


def aligned_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one line of text for each row, its cells padded to the width of their column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _rich_table(rows: Sequence[Sequence[str]]) -> str:
    from rich.console import Console as Screen  # noqa: PLC0415 - needed on terminals only
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    head, *body = rows
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for name in head:
        table.add_column(Text(name), overflow="fold")
    for row in body:
        table.add_row(*map(Text, row))
    screen = Screen()
    with screen.capture() as capture:
        screen.print(table)
    return capture.get().rstrip("\n")
