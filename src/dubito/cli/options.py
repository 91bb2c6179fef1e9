"""Options that several commands take, spelled the same on each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

#: Metavar of flags: the help shows no value.
FLAG = ""

Model = Annotated[Path, typer.Argument(help="A model saved by dubito.")]
Test = Annotated[Path, typer.Argument(help="CSV or Parquet: labelled rows the model has not seen.")]
Compare = Annotated[
    list[Path] | None,
    typer.Option(metavar="MODEL", help="Another model to compare with; may be repeated."),
]
Label = Annotated[
    str | None, typer.Option("--label", "-y", metavar="COLUMN", help="Column of the true labels.")
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        help="Columns to use, in this order; patterns such as 'c*' too (quote them).",
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write.")
]
Force = Annotated[
    bool, typer.Option("--force", metavar=FLAG, help="Overwrite the output if it exists.")
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", metavar=FLAG, help="No text and no progress bar: errors only."),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json", metavar=FLAG, help="One JSON object on stdout in place of text, nothing else."
    ),
]
Level = Annotated[
    float | None,
    typer.Option(
        metavar="FRACTION",
        help="Confidence level of the bounds: 0.9 means that they contain the true probability "
        "about 9 times in 10. Without it they are belief and plausibility.",
    ),
]
Coverage = Annotated[
    float | None,
    typer.Option(
        metavar="FRACTION",
        help="Of conformal models: how often sets contain the true class, 0.9 by default.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TYPE",
        help="A type in the model file that you trust besides those of dubito and scikit-learn; "
        "may be repeated.",
    ),
]
