"""Messages of all commands, their streams, and exit codes."""

import itertools
import json
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import dubito
from dubito import cli
from dubito.calibration import CalibrationInputError
from dubito.cli.console import CliError, Console, check_option, guarded
from dubito.datasets import DatasetError


def run(body, *arguments):
    """Run a command that does `body` as `dubito` would."""
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    @guarded
    def command() -> None:
        body()

    return CliRunner().invoke(app, arguments)


def raising(error):
    def body():
        raise error

    return body


def python(code):
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )


class TestDubito:
    def test_version(self, dubito_command):
        output = dubito_command("--version")
        assert output.exit_code == 0
        assert output.stdout == f"dubito {dubito.__version__}\n"

    def test_no_command_shows_help(self, dubito_command):
        output = dubito_command()
        assert re.findall(r"^│ (\w+) ", output.output, re.MULTILINE) == list(cli.COMMANDS)

    @pytest.mark.parametrize("command", cli.COMMANDS)
    def test_every_command_has_help(self, dubito_command, command):
        output = dubito_command(command, "--help")
        assert output.exit_code == 0
        assert f"Usage: root {command}" in output.stdout

    @pytest.mark.parametrize("command", cli.COMMANDS)
    def test_an_unknown_option_is_a_usage_error(self, dubito_command, command):
        output = dubito_command(command, "p9", "--no-such-option")
        assert output.exit_code == 2
        assert "Traceback" not in output.output

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ("calibrat", "no such command 'calibrat'. Did you mean 'calibrate'? root --help"),
            ("predict", "missing argument 'model'. root predict --help lists what there is."),
            ("train t.csv --cv x", "invalid value for '--cv': "),
            ("evaluate m t --no-such", "no such option: --no-such. root evaluate --help"),
            ("train t.csv --impute true", "got unexpected extra argument"),
        ],
    )
    def test_usage_errors_are_one_line(self, refused, arguments, message):
        assert refused(*arguments.split()).startswith(message)

    @pytest.mark.parametrize("command", cli.COMMANDS)
    def test_help_is_wrapped_by_the_terminal_and_flags_take_nothing(
        self, dubito_command, command, monkeypatch
    ):
        monkeypatch.setenv("COLUMNS", "500")
        output = dubito_command(command, "--help").stdout
        assert output.count("<bool>") <= 1, "typer's own --help"
        prose = [line.strip() for line in output.partition("╭")[0].splitlines()]
        for line, after in itertools.pairwise(prose):
            assert not (line and after), "a paragraph is one line on a wide terminal"

    def test_it_runs_as_a_module(self):
        ran = subprocess.run(
            [sys.executable, "-m", "dubito.cli", "--version"],
            check=True,
            capture_output=True,
            text=True,
        )
        assert ran.stdout == f"dubito {dubito.__version__}\n"

    def test_without_typer_the_error_names_what_to_install(self):
        ran = python("import sys; sys.modules['typer'] = None; import dubito.cli as c; c.main()")
        assert ran.returncode == 2
        assert ran.stdout == ""
        assert ran.stderr == (
            'error: the command line needs typer: pip install ".[cli]" in a checkout of dubito\n'
        )

    def test_help_and_version_load_nothing_heavy(self):
        ran = python(
            "import sys, dubito.cli\n"
            "dubito.cli.build_app()\n"
            "print(*({'sklearn', 'numpy', 'numba', 'pandas', 'pyarrow', 'skops', 'altair', "
            "'jinja2'} & set(sys.modules)))"
        )
        assert ran.stderr == ""
        assert ran.stdout == "\n"


class TestFaults:
    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (CliError("mend it."), "mend it."),
            (ValueError("odd value."), "odd value."),
            (CalibrationInputError("odd scores."), "odd scores."),
            (DatasetError("no such data."), "no such data."),
            (PermissionError(13, "Permission denied", "a.csv"), "a.csv: permission denied."),
            (FileExistsError("a.csv is there."), "a.csv is there."),
            (MemoryError("1 TiB"), "there is not enough memory (1 TiB). Use fewer columns or"),
            (
                ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow"),
                'this needs pyarrow: pip install ".[cli,report]" in a checkout of dubito',
            ),
        ],
    )
    def test_what_was_given_wrong_is_one_line_and_code_2(self, error, message):
        output = run(raising(error))
        assert output.exit_code == 2
        assert output.stdout == ""
        assert output.stderr.startswith(f"error: {message}")
        assert output.stderr.count("\n") == 1

    def test_an_error_may_have_another_code(self):
        assert run(raising(CliError("no.", code=3))).exit_code == 3

    def test_a_defect_of_ours_is_owned_up_to(self):
        output = run(raising(KeyError("x")))
        assert output.exit_code == 1
        assert output.stderr == (
            "error: something in dubito itself went wrong (KeyError: 'x'). Set DUBITO_DEBUG=1 to "
            "see where, and please report it to the maintainers of dubito.\n"
        )

    @pytest.mark.parametrize("error", [KeyError("x"), ValueError("x")])
    def test_debugging_shows_the_traceback(self, error, monkeypatch):
        monkeypatch.setenv("DUBITO_DEBUG", "1")
        assert run(raising(error)).exception is error

    def test_an_interruption(self):
        output = run(raising(KeyboardInterrupt()))
        assert output.exit_code == 130
        assert output.stderr == "interrupted: no file was written or changed.\n"

    def test_exit_codes_of_commands_pass(self):
        assert run(raising(typer.Exit(7))).exit_code == 7

    def test_warnings_are_one_line(self):
        def warn():
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.warn("odd, but it went on.", stacklevel=1)

        output = run(warn)
        assert output.exit_code == 0
        assert output.stderr == "warning: odd, but it went on.\n"

    def test_a_wrong_choice_suggests_the_nearest(self):
        check_option("--rule", None, ["maximin"])
        check_option("--rule", "maximin", ["maximin"])
        with pytest.raises(CliError) as caught:
            check_option("--rule", "maxmin", ["maximin", "hurwicz"])
        assert str(caught.value) == (
            "--rule must be one of maximin, hurwicz. Got 'maxmin'. Did you mean maximin?"
        )


class TestConsole:
    @pytest.mark.parametrize(
        ("options", "out", "error"),
        [
            ({}, "said\n", "noted\n"),
            ({"quiet": True}, "", ""),
            ({"json": True}, '{"n": 1, "p": [0.5], "é": null}\n', ""),
            ({"json": True, "quiet": True}, '{"n": 1, "p": [0.5], "é": null}\n', ""),
        ],
    )
    def test_text_or_json_or_nothing(self, capsys, options, out, error):
        console = Console(**options)
        console.say("said")
        console.note("noted")
        console.result({"n": np.int64(1), "p": np.array([0.5]), "é": None})
        assert capsys.readouterr() == (out, error)

    def test_json_has_no_nan(self):
        with pytest.raises(ValueError, match="JSON"):
            Console(json=True).result({"x": float("nan")})

    def test_no_progress_bar_without_a_terminal(self, capsys):
        with Console().progress(10, "Working") as advance:
            advance(10)
        assert capsys.readouterr() == ("", "")

    def test_a_bar_on_a_terminal_goes_to_stderr(self, capsys, monkeypatch):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("FORCE_COLOR", "1")
        with Console().progress(4000, "Working") as advance:
            advance(4000)
        out, error = capsys.readouterr()
        assert out == ""
        assert "Working" in error
        assert "4,000 rows" in error
        with Console(quiet=True).progress(10, "Working") as advance:
            advance(10)
        assert capsys.readouterr().err == ""

    def test_json_of_a_command_is_one_object(self, dubito_command, saved_models, scores):
        del scores
        model = saved_models["platt"]
        output = dubito_command("predict", model, "scores.csv", "-o", "d.csv", "--json")
        assert output.stdout.count("\n") == 1
        assert json.loads(output.stdout)["rows"] == 300
        assert output.stderr == ""
