"""Published numbers of P4, tables and figures from quick rounds."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.common.published import is_reproduced, read_claims, read_column, read_expected  # noqa: E402
from experiments.p4 import (  # noqa: E402
    data,
    depths,
    figures,
    many,
    measures,
    protocol,
    run,
    schemes,
    tables,
)

P4 = ROOT / "experiments" / "p4"
EXPECTED, CLAIMS = P4 / "expected.csv", P4 / "claims.csv"
PRINTED = read_expected(EXPECTED, "table")


# Published numbers


def test_every_cell_of_tables_2_to_5_is_there():
    kinds = {(f, s) for f in ("bayes", "boosted") for s in schemes.SCHEMES}
    kinds |= {("logistic", s) for s in schemes.TABLES_2_3}
    expected = {
        f"{f}.{d}.{s}.{m}" for f, s in kinds for d in data.DATASETS for m in ("nll", "accuracy")
    }
    assert set(PRINTED) == expected
    assert len(read_expected(EXPECTED, "sector")) == 2 * (6 + 2)
    spreads = read_column(EXPECTED, "sd")
    for q, one in PRINTED.items():
        assert one.tolerance == pytest.approx(max(float(spreads[q]) / 2, 0.01))
    assert PRINTED["logistic.micromass.baseline.nll"][0] == "5.918"
    assert PRINTED["boosted.letter.both_isotonic.accuracy"][0] == "0.884"


@pytest.mark.parametrize("dataset", data.DATASETS)
def test_probabilities_of_the_papers_boosted_trees_are_0_or_1(dataset):
    """Every wrong row costs -log(1e-15), and every right one 0."""
    nll, accuracy = (PRINTED[f"boosted.{dataset}.baseline.{m}"].value for m in ("nll", "accuracy"))
    assert nll / (1 - accuracy) == pytest.approx(-np.log(protocol.LEAST), rel=0.005)


def as_printed(base, *, change=None, rounds=3):
    """Return rounds with the printed results; those that are not printed are 0.5."""
    family = schemes.FAMILIES[base]

    def of(dataset, scheme, measure):
        one = PRINTED.get(f"{family}.{dataset}.{scheme}.{measure}")
        return (change or {}).get((dataset, scheme, measure), one.value if one else 0.5)

    names = dict.fromkeys(measures.MEASURES)
    return [
        {
            "dataset": d,
            "base": base,
            "seconds": 1.0,
            "schemes": {s: {m: of(d, s, m) for m in names} for s in schemes.SCHEMES},
        }
        for r in range(rounds)
        for d in data.DATASETS
    ]


def test_the_papers_own_numbers_are_reproduced_and_others_are_not():
    text = tables.render_described({"described": as_printed("gaussian")})
    assert "**36 of 36 are reproduced**: naive bayes 36 of 36." in text
    assert "**Not reproduced.** None." in text
    assert "| Gaussian naive Bayes: optdigits | 3 | 4.252 (0.92) / 4.252 (0.00) |" in text
    change = {("letter", "platt", "nll"): 2.5}
    text = tables.render_redone({"redone": as_printed("multinomial", change=change)})
    assert "**35 of 36 are reproduced**" in text
    assert "2.165 (0.06) / *2.500 (0.00)*" in text
    assert "| naive Bayes, letter: NLL, Internal PS | 2.165 | 2.500 (0.00) | +0.335 |" in text


def test_the_papers_claims_hold_for_its_own_numbers():
    for base, family in (("gaussian", "bayes"), ("boosting", "boosted")):
        found = measures.of_claims(measures.of_tables(as_printed(base)))
        for claim in read_claims(CLAIMS, family):
            assert found[claim.quantity].mean() > 0, claim
    found = measures.of_claims(measures.of_tables(as_printed("logistic")))
    assert found["logistic.external.nll.least"][0] == pytest.approx(100 * 0.001 / 0.302)


def test_reasons_are_given_for_numbers_that_exist():
    for column in ("described", "redone"):
        assert set(read_column(EXPECTED, column)) <= set(PRINTED)
    far = PRINTED["bayes.letter.platt.nll"]
    assert not is_reproduced(far, np.array([2.2, 2.2]))


# All parts


@pytest.fixture
def fake(few_rows_of_p4, calls, count_calls, monkeypatch):  # noqa: ARG001
    """Make rounds quick (few rows); return the list of calls."""
    monkeypatch.setattr(figures, "DPI", 30)
    for module in (protocol, many, depths):
        count_calls(module)
    return calls


def test_all_parts_are_run_and_drawn_once(fake, tmp_path, capsys):
    options = ["--quick", "--out", str(tmp_path), "--quiet"]
    assert run.main(options) == 0
    captured = capsys.readouterr()
    assert len(fake) == len(set(fake)) == 2 * 3 * 2 + 3 * 3 + 3 + 5 + 2 * 3 + 2
    for part in run.PARTS:
        assert f"## {part}\n" in captured.out
    for family in (*schemes.FAMILY_NAMES, "depths"):
        for claim in read_claims(CLAIMS, family):
            assert f"| {claim.name} | {claim.statement} |" in captured.out
    assert "| sector: bayes, the paper on all rows | 10 | 3.795 | 1.408 |" in captured.out
    assert "| dense | geometric | 1 |" in captured.out
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    assert drawn == {"figure_3.png", "figure_3_ece.png"}
    assert run.main(options) == 0
    assert capsys.readouterr().out == captured.out
    assert len(fake) == 2 * 3 * 2 + 3 * 3 + 3 + 5 + 2 * 3 + 2


@pytest.mark.usefixtures("without_matplotlib")
def test_without_matplotlib_the_tables_are_still_printed(fake, tmp_path, capsys):  # noqa: ARG001
    assert run.main(["--quick", "--parts", "depths", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert "**Figure 3 in numbers**" in captured.out
    assert captured.err.startswith("figures left out: they need matplotlib")
