"""One self-contained HTML page from what `collect` returns."""

from __future__ import annotations

from functools import cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dubito._files import refuse_overwriting, write_whole
from dubito._validation import DEFAULT_COVERAGE
from dubito.report import wording
from dubito.report.collection import FORMAT, collect
from dubito.report.reliability import MOST_MODELS

if TYPE_CHECKING:
    import numpy.typing as npt


def render(collected: dict[str, Any]) -> str:
    """Return one HTML page of what was collected.

    The page holds its charts, styles and scripts: it works without a network, follows light and
    dark mode, and fits a phone. The same dict gives the same page, byte for byte.

    Parameters
    ----------
    collected : dict
        As `collect` returns it, or read back from JSON.

    Returns
    -------
    str
        About a megabyte, nearly all of it the library that draws the charts.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dubito.report import collect, render
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X[::2], y[::2])
    >>> page = render(collect(model, X[1::2], y[1::2], title="Irises"))
    >>> "<title>Irises</title>" in page
    True
    """
    _check_format(collected)
    jinja2 = _import("jinja2")
    _import("altair")
    _import("vl_convert")
    from markupsafe import Markup  # noqa: PLC0415 - an extra

    from dubito.report.charts import CONFIG, DASHES  # noqa: PLC0415 - an extra
    from dubito.report.figures import make_figures  # noqa: PLC0415

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    filters = ("percent", "percentage_points", "number", "cases")
    environment.filters |= {name: getattr(wording, name) for name in filters}
    template = environment.from_string(_text("page.html.jinja"))
    return template.render(
        c=collected,
        figures=make_figures(collected),
        stops=wording.slider_texts(collected),
        config=CONFIG,
        dashes=[" ".join(map(str, dash)) for dash in DASHES[:MOST_MODELS]],
        style=Markup(_text("page.css")),  # noqa: S704 - dubito's own file
        library=Markup(chart_library()),  # noqa: S704 - Vega's own scripts
    )


def write_page(
    collected: dict[str, Any], path: str | PathLike[str], *, force: bool = False
) -> None:
    """Write the page of what was collected; if something fails, no file is left behind.

    Parameters
    ----------
    collected : dict
        As `collect` returns it.
    path : path
        Where to write. Its folder must exist.
    force : bool, default False
        Overwrite the file if it exists; without it that is an error.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dubito.report import collect, write_page
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X[::2], y[::2])
    >>> collected = collect(model, X[1::2], y[1::2], title="Irises")
    >>> with TemporaryDirectory() as folder:
    ...     write_page(collected, Path(folder) / "irises.html")
    """
    target = Path(path)
    refuse_overwriting(target, force=force)  # before the work
    write_whole(target, render(collected).encode(), force=force)


def write_report(  # noqa: PLR0913 - keyword options
    models: Any,
    X: Any,
    y: npt.ArrayLike,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    strategy: str | None = None,
    cost: float | None = None,
    level: float | None = None,
    coverage: float = DEFAULT_COVERAGE,
    doubtful_rows: int = 20,
    row_names: Any = None,
    random_state: int = 0,
    force: bool = False,
) -> dict[str, Any]:
    """Write a page about one classifier, compared with others: `collect`, then `write_page`.

    Parameters
    ----------
    models : estimator, or dict of str to estimator
        Fitted; the report is about the first.
    X : array-like, or dict of str to array-like
        Rows that no model was fitted on.
    y : array-like of shape (n,)
        Their true labels.
    path : path
        Where to write. Its folder must exist.
    title, strategy, cost, level, coverage, doubtful_rows, row_names, random_state
        As in `collect`.
    force : bool, default False
        Overwrite the file if it exists; without it that is an error.

    Returns
    -------
    dict
        What was collected; ``["summary"]["lines"]`` are the sentences worth knowing.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dubito.report import write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X[::2], y[::2])
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "irises.html"
    ...     collected = write_report(model, X[1::2], y[1::2], path)
    ...     path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    >>> collected["summary"]["lines"][0]
    'It is right in 96.0% of 75 cases (95% interval: 88.8% to 99.2%).'
    """
    if not isinstance(path, str | PathLike):
        raise TypeError(
            "write_report(models, X, y, path) needs a file to write, such as 'report.html'; got "
            f"{type(path).__name__} as path."
        )
    if isinstance(y, str | PathLike):
        raise TypeError(
            f"write_report(models, X, y, path) needs the true labels as y; got {y!r}. The order of "
            "the arguments is models, X, y, path."
        )
    target = Path(path)
    refuse_overwriting(target, force=force)  # before the work
    collected = collect(
        models,
        X,
        y,
        title=title,
        strategy=strategy,
        cost=cost,
        level=level,
        coverage=coverage,
        doubtful_rows=doubtful_rows,
        row_names=row_names,
        random_state=random_state,
    )
    write_page(collected, target, force=force)
    return collected


def _check_format(collected: Any) -> None:
    found = collected.get("format") if isinstance(collected, dict) else None
    if found != FORMAT:
        raise ValueError(
            f"collected must be what dubito.report.collect returns (format {FORMAT}); got "
            f"{'format ' + repr(found) if found else type(collected).__name__}. Collect again."
        )


def _import(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError as error:
        raise ImportError(
            f"a report is drawn with {name}, which is not installed: "
            'pip install ".[report]" in a checkout of dubito'
        ) from error


def _text(name: str) -> str:
    return resources.files("dubito.report").joinpath(name).read_text(encoding="utf-8")


@cache
def chart_library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, of the version Altair writes for."""
    import altair as alt  # noqa: PLC0415 - an extra
    import vl_convert  # noqa: PLC0415

    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
