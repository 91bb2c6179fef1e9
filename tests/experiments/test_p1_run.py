"""Tables and figures of P1 from made-up rounds; stopping and continuing."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.p1 import (  # noqa: E402
    claims,
    comparison,
    curves,
    data,
    figures,
    frontiers,
    multiclass,
    multiclass_tables,
    rates,
    run,
    tables,
)

from dubito.belief import Bounds  # noqa: E402

CLAIMS = claims.read_claims(ROOT / "experiments" / "p1" / "expected.csv")


def fake_rates(cell, settings):  # noqa: ARG001
    rng = np.random.default_rng([cell.round, len(cell.dataset), len(cell.kernel)])
    proba = np.linspace(0.5, 0.89, 40)
    truth = (rng.uniform(size=40) > 0.2).astype(int)
    proba, lower, upper = (np.column_stack([1 - p, p]) for p in (proba, proba - 0.1, proba + 0.1))
    bounds = Bounds(
        np.column_stack([upper[:, 0], lower[:, 1]]), np.column_stack([lower[:, 0], upper[:, 1]])
    )
    beliefs = {
        "probabilistic": (proba, "pignistic", proba),
        "optimistic": (bounds, "optimistic", bounds.upper),
        "pessimistic": (bounds, "pessimistic", bounds.lower),
    }
    counted = {m: rates.counts_at_costs(*belief, truth) for m, belief in beliefs.items()}
    variants = {**dict.fromkeys(rates.VARIANTS, counted), "raw": counted if cell.round else None}
    sizes = rates.SIZES[cell.dataset]
    return {**cell._asdict(), "n_test": 40, "counts": {str(size): variants for size in sizes}}


def fake_comparison(cell, settings):  # noqa: ARG001
    error = {method: 20.0 + i + 0.1 * cell.round for i, method in enumerate(comparison.METHODS)}
    by_third = {str(third): error for third in comparison.N_THIRD}
    growing = {"10": error} if cell.dataset == "heart" else by_third
    return {**cell._asdict(), "error": {"fixed": by_third, "growing": growing}}


def fake_multiclass(cell, settings):  # noqa: ARG001
    accuracy = {m: 80.0 + i + 0.1 * cell.round for i, m in enumerate(multiclass.METHODS)}
    upper = {"rows": 30, "differ": 2, "right_probable": 25, "right_plausible": 24}
    alone = {"alone": 60.0, "alone_p0": 60.0}
    return {**cell._asdict(), "accuracy": accuracy, "upper": upper, **alone}


@pytest.fixture
def fake(calls, count_calls, monkeypatch):
    """Replace rounds by made-up results; return the list of calls."""
    made = {"rates": fake_rates, "comparison": fake_comparison, "multiclass": fake_multiclass}

    for name, function in made.items():
        count_calls(run.PARTS[name].module, function)
    monkeypatch.setattr(curves, "N_RESAMPLES", 20)
    monkeypatch.setattr(frontiers, "LINES", np.linspace(-4, 4, 5))
    frontiers.margins.cache_clear()
    yield calls
    frontiers.margins.cache_clear()


def test_all_parts_are_run_once_and_a_second_run_prints_the_same(fake, tmp_path, capsys):
    options = ["--quick", "--out", str(tmp_path), "--quiet"]
    assert run.main(options) == 0
    captured = capsys.readouterr()
    assert len(fake) == len(set(fake)) == 5 * 5 + 5 * 5 + 2 * 3
    for heading in ("## rates", "## comparison", "## multiclass"):
        assert heading in captured.out
    for claim in CLAIMS:
        assert f"**Claim {claim}.**" in captured.out
    assert "| simulated | rbf | 0 | 0 | 1 |" not in captured.out
    assert "| simulated | rbf | 1 | 1 | 1 |" in captured.out  # raw has no estimate in round 0
    assert captured.err == f"8 figures are in {tmp_path / 'figures'}\n"
    assert len(list((tmp_path / "figures").glob("*.png"))) == 8
    assert run.main(options) == 0
    assert capsys.readouterr().out == captured.out
    assert len(fake) == 56
    assert not list(tmp_path.rglob("*.part"))


def test_an_interrupt_keeps_finished_rounds_and_prints_how_to_continue(
    fake, interrupted, tmp_path, capsys
):
    options = ["--quick", "--rounds", "1", "--parts", "rates,comparison", "--out", str(tmp_path)]
    with interrupted(7, comparison):
        assert run.main(options) == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"stopped: 7 of 10 rounds are kept in {tmp_path}; run the same command again to continue.\n"
    )
    assert run.main(options) == 0
    assert len(fake) == len(set(fake)) == 10


@pytest.mark.usefixtures("without_matplotlib")
def test_without_matplotlib_the_tables_are_still_printed(fake, tmp_path, capsys):  # noqa: ARG001
    options = ["--quick", "--rounds", "2", "--parts", "rates", "--out", str(tmp_path)]
    assert run.main(options) == 0
    captured = capsys.readouterr()
    assert "**Figure 3.**" in captured.out
    assert captured.err.startswith("figures left out: they need matplotlib")


def test_each_kernel_and_scheme_has_a_row():
    results = [fake_comparison(cell, None) for cell in data.cells(3, quick=False)]
    text = tables.render_comparison(results, CLAIMS)
    assert "| heart | linear | growing | 20.1 / 21.1 / 22.1 |  |  |  |" in text
    assert "| simulated (rbf), fixed | **+1.00 [+1.00, +1.00]** |" in text
    assert "Of 40 cells, confirmed: 40." in text
    assert "Of 148 cells, confirmed: 148." in text  # 2 x 10 x 4 and 2 x (8 x 4 + 2 x 1)


def test_multiclass_tables_count_where_joint_is_best():
    cells = [multiclass.Cell(d, 1, "grid", r) for d in ("dna", "usps") for r in range(3)]
    results = [fake_multiclass(cell, None) for cell in cells]
    for one in results:
        if one["dataset"] == "usps":
            one["accuracy"] = {
                **one["accuracy"],
                "inverse_cdf": 90.0 + one["accuracy"]["inverse_cdf"] - 81,
            }
    text = multiclass_tables.render(results)
    assert "in 1 of 2 cells, and clearly below one of them in 1." in text
    assert "| dna | 1 | 80.1 ± 0.2 | 81.1 ± 0.2 |" in text
    assert "| better / worse |  | 2 / 0 | 1 / 1 |" in text
    assert "On 180 test rows of 6 rounds it differs from the most probable one on 12" in text
    assert "in 6 of 6 rounds" in text


def test_every_figure_has_a_colour_for_each_method():
    assert set(figures.COLOURS) == set(rates.METHODS)
