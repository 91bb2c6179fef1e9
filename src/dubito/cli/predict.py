"""`dubito predict`: a table in, a table of decisions out, in chunks."""

from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from dubito.cli.console import CliError, Console, check_fraction_option, check_option
from dubito.cli.options import Coverage, Force, Json, Level, Model, Quiet, Trust

#: Rules of `dubito.decision.choose_set` and strategies of `dubito.decision.reject`. They are listed
#: again because importing `dubito.decision` would slow `dubito --help`; a test compares the lists.
RULES = ("interval_dominance", "maximality", "e_admissibility", "weak_dominance", "set_utility")
STRATEGIES = ("pignistic", "pessimistic", "optimistic", "probabilistic")
#: Output columns that --without leaves out.
OUTPUTS = ("proba", "bounds", "set", "familiarity")


def predict(  # noqa: PLR0913 - a command's options
    model: Model,
    table: Annotated[Path, typer.Argument(help="Rows to decide on: CSV or Parquet.")],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write: .csv, .csv.gz or .parquet. Without it, CSV on stdout.",
        ),
    ] = None,
    level: Level = None,
    coverage: Coverage = None,
    reject_cost: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Cost of declining a row (asking a person), where a wrong answer costs 1; adds "
            "the column 'rejected'.",
        ),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Which risk is compared with the cost of declining: one of "
            f"{', '.join(STRATEGIES)}. pessimistic (the lower bound) declines more rows, "
            "optimistic (the upper bound) fewer. Models without bounds use their probabilities.",
        ),
    ] = "pignistic",
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Which classes stay in the set: one of {', '.join(RULES)}. By default "
            "interval_dominance; of conformal models, sets with coverage.",
        ),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns to copy from the table, such as an id."),
    ] = None,
    without: Annotated[
        str | None,
        typer.Option(metavar="A,B", help=f"Columns to leave out: {', '.join(OUTPUTS)}."),
    ] = None,
    trust: Trust = None,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write a table of decisions: class, probabilities, bounds, label set, whether to decline.

    Columns: row (from 0), those kept, prediction (the most probable class), p_CLASS, lower_CLASS
    and upper_CLASS (with --level after a column level), set (classes that could be the best
    answer, with | between; of conformal models, sets with the coverage asked for), set_size,
    familiarity (of models trained with --novelty), and rejected (whether the row is declined).
    """
    check_option("--strategy", strategy, STRATEGIES)
    check_option("--rule", rule, RULES)
    check_fraction_option("--level", level)
    check_fraction_option("--coverage", coverage)
    if rule is not None and coverage is not None:
        raise CliError("--rule and --coverage both choose the sets. Say one of them.")
    if reject_cost is not None and not isfinite(reject_cost):
        raise CliError(f"--reject-cost must be a number such as 0.2. Got {reject_cost}.")
    left_out = [name.strip() for name in without.split(",")] if without else []
    for output_name in left_out:
        check_option("--without", output_name, OUTPUTS)
    if json and output is None:
        raise CliError(
            "--json and the table cannot both go to stdout. Name a file for the table: -o FILE."
        )
    from dubito.cli.decisions import DecisionMaker, PredictOptions, decide_table  # noqa: PLC0415 - slow to import
    from dubito.cli.tables import Table  # noqa: PLC0415
    from dubito.cli.writer import TableWriter, check_outputs  # noqa: PLC0415
    from dubito.saving import load  # noqa: PLC0415

    console = Console(quiet=quiet, json=json)
    check_outputs([output] if output else [], [model, table], force=force)
    writer = TableWriter(output, force=force)
    saved = load(model, trusted=trust or ())
    rows = Table(table)
    options = PredictOptions(
        cost=reject_cost,
        strategy=strategy,
        rule=rule,
        level=level,
        coverage=coverage,
        keep=rows.select(keep) if keep else [],
        without=frozenset(left_out),
        single_precision=writer.is_text,
    )
    decider = DecisionMaker(saved, options)
    with writer, console.progress(rows.estimated_rows, "Predicting") as advance:
        decide_table(decider, rows, writer, advance)
    wrote = f" · wrote {output}" if output else ""
    for note in decider.notes():
        console.note(f"note: {note}")
    (console.say if output else console.note)(f"{decider.summary()}{wrote}")
    console.result({"output": str(output), **decider.as_dict()})
