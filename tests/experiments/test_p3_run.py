"""Tables and figures of P3 from quick rounds; stopping, continuing; without matplotlib."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.common.published import read_claims, read_column, read_expected  # noqa: E402
from experiments.p3 import data, figures, measures, protocol, run, tables, times  # noqa: E402

P3 = ROOT / "experiments" / "p3"
EXPECTED = P3 / "expected.csv"


def three_classes(_):
    rng = np.random.default_rng(0)
    centres = [[0, 0, 0], [1.5, 0, 1], [0, 2, -1]]
    X = np.vstack([rng.normal(centre, 1, size=(18, 3)) for centre in centres])
    return X, np.repeat(np.arange(3), 18)


@pytest.fixture
def fake(calls, count_calls, monkeypatch):
    """Make rounds quick (few rows, coarse figures); return the list of calls."""
    monkeypatch.setattr(figures, "RESOLUTION", 12)
    monkeypatch.setattr(figures, "DPI", 30)
    monkeypatch.setattr(times, "LEAST", 0.001)
    for module in (protocol, times):
        monkeypatch.setattr(module, "rows_of", three_classes)
        count_calls(module)
    return calls


def test_all_parts_are_run_and_drawn(fake, tmp_path, capsys):
    assert run.main(["--quick", "--out", str(tmp_path), "--quiet"]) == 0
    captured = capsys.readouterr()
    assert len(fake) == len(set(fake)) == 6 + 3 + 2 + 3 + 3
    for part in run.PARTS:
        assert f"## {part}\n" in captured.out
    for claim in read_claims(P3 / "claims.csv", "table"):
        assert f"| {claim.name} | {claim.statement} |" in captured.out
    assert "**Differences** from the paper's raw box" in captured.out
    drawn = {path.stem.removeprefix("figure_") for path in (tmp_path / "figures").iterdir()}
    assert drawn == {"1", "2", "3ab", "3c", "3c_iris", "3c_seeds"}
    assert captured.err == f"6 figures are in {tmp_path / 'figures'}\n"
    assert not list(tmp_path.rglob("*.part"))
    assert (tmp_path / ".gitignore").read_text().splitlines()[-1] == "*"


@pytest.mark.usefixtures("no_figures")
def test_a_second_run_computes_nothing_and_prints_the_same(fake, tmp_path, capsys):
    options = ["--quick", "--rounds", "1", "--out", str(tmp_path), "--quiet"]
    assert run.main(options) == 0
    first = capsys.readouterr().out
    assert len(fake) == len(set(fake)) == 14
    assert run.main(options) == 0
    assert capsys.readouterr().out == first
    assert len(fake) == 14


@pytest.mark.usefixtures("no_figures")
def test_an_interrupt_keeps_finished_rounds_and_prints_how_to_continue(
    fake, interrupted, tmp_path, capsys
):
    options = ["--quick", "--parts", "table", "--out", str(tmp_path)]
    with interrupted(4, protocol):
        assert run.main(options) == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("stopped: 4 of 6 rounds are kept in ")
    assert run.main(options) == 0
    assert len(fake) == len(set(fake)) == 6


@pytest.mark.usefixtures("fake", "no_figures")
def test_the_part_beyond_the_paper_can_be_run_alone(tmp_path, capsys):
    options = ["--quick", "--rounds", "1", "--parts", "beyond", "--out", str(tmp_path)]
    assert run.main(options) == 0
    captured = capsys.readouterr().out
    assert "**u80**, in per cent" in captured
    assert "**Differences**" not in captured


@pytest.mark.usefixtures("without_matplotlib")
def test_without_matplotlib_the_tables_are_still_printed(fake, tmp_path, capsys):  # noqa: ARG001
    assert run.main(["--quick", "--parts", "times", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert "**Time of a prediction**" in captured.out
    assert captured.err.startswith("figures left out: they need matplotlib")


# Published numbers


def test_every_cell_of_table_2_is_there():
    printed = read_expected(EXPECTED, "table")
    assert set(printed) == {f"{d}.{column}" for d in data.DATASETS for column in measures.COLUMNS}
    assert set(read_expected(EXPECTED, "average")) == set(measures.COLUMNS)
    assert set(read_expected(EXPECTED, "times")) == set(data.DATASETS)
    assert set(read_column(EXPECTED, "reason")) <= set(printed)


@pytest.mark.parametrize("model", ["lda", "qda"])
def test_the_first_of_two_columns_is_u80(model):
    """The headings are lost; the u80 of a set is never below its u65."""
    printed = read_expected(EXPECTED, "table")
    for dataset in data.DATASETS:
        assert printed[f"{dataset}.{model}.u80"].value > printed[f"{dataset}.{model}.u65"].value


def test_the_printed_average_is_not_the_mean_of_the_printed_rows():
    printed, means = read_expected(EXPECTED, "average"), measures.printed_means(EXPECTED)
    off = {column: round(printed[column].value - means[column], 2) for column in measures.COLUMNS}
    assert list(off.values()) == [0.39, 0.25, 0.41, -3.8, 0.02, -0.06]


# Numbers of made-up rounds


def made_up(worth, *, dataset="iris", rounds=3):
    """Return rounds of 100 rows with the given results; curves end at 40."""
    counts = {"size": 120.0, "covered": 98.0, "undecided": 20.0, "undecided_covered": 18.0}
    counts |= {"undecided_precise": 10.0, "undecided_u80": 14.0}

    def model(accuracy, u80, u65):
        tuned = {**counts, "u80": u80, "u65": u65}
        return {
            "right": accuracy,
            "c": {score: [0.5, 1.0] for score in protocol.ALPHAS},
            "tuned": {score: dict(tuned) for score in protocol.ALPHAS},
            "path": {score: [accuracy, u65 - 5, 40.0] for score in protocol.ALPHAS},
            "grid": [0.0, 0.5, 5.5],
            "singular": 0,
            "unsettled": 0,
        }

    models = {name: model(*values) for name, values in worth.items()}
    shared = {"dataset": dataset, "rows": 100, "features": 4, "right_uncut": 90}
    return [{**shared, "round": r, "models": models} for r in range(rounds)]


IRIS = {"lda": (97.96, 98.38, 97.16), "qda": (97.29, 98.08, 97.13)}


def test_the_papers_own_row_is_reproduced_and_another_is_not():
    text = tables.render_table({"table": made_up(IRIS)})
    assert "6 of 6 are reproduced" in text
    assert "| a iris | 97.96 / 98.0 ± 0.0 | 98.38 / 98.4 ± 0.0 |" in text
    assert "**Not reproduced.** None." in text
    other = tables.render_table({"table": made_up({**IRIS, "lda": (97.96, 99.5, 97.16)})})
    assert "5 of 6 are reproduced" in other
    assert "98.38 / *99.5 ± 0.0*" in other
    assert "| iris: ILDA u80 | 98.38 | 99.5 ± 0.0 | +1.1 |" in other


def test_numbers_of_a_repetition_follow_their_definition():
    found = measures.of_table(made_up(IRIS))
    assert found["iris.lda.correct"][0] == pytest.approx(90)
    assert found["iris.lda.precise"][0] == pytest.approx(50)
    assert found["lda.avoided"][0] == pytest.approx(80)  # 8 of the 10 that the precise one misses
    assert found["lda.hard"][0] == pytest.approx(100 * 87.96 / 80 - 50)
    assert found["qda.gain.u80"][0] == pytest.approx(98.08 - 97.29)
    assert found["mean.qda.u65"][0] == pytest.approx(97.13)
    assert "vowel.rise.u80" not in found


def test_means_leave_out_datasets_in_which_all_rows_are_decided():
    decided = made_up(IRIS, dataset="wine")
    for one in decided:
        for model in one["models"].values():
            for counts in model["tuned"].values():
                counts.update({name: 0.0 for name in counts if name.startswith("undecided")})
    both = measures.of_table([*made_up(IRIS), *decided])
    assert np.isnan(both["wine.lda.correct"]).all()
    assert both["lda.avoided"][0] == pytest.approx(80)
    alone = measures.of_table(decided)
    assert np.isnan(alone["lda.avoided"]).all()
    assert "| **open** |" in tables.render_table({"table": decided})


def test_a_curve_that_rises_and_falls_confirms_the_claims_about_vowel():
    found = measures.of_table(made_up({"lda": (60, 67, 62), "qda": (88, 90, 88)}, dataset="vowel"))
    assert found["vowel.rise.u65"][0] == pytest.approx(62 - 57)
    assert found["vowel.fall.u80"][0] == pytest.approx(67 - 40)
    quantities = {claim.quantity for claim in read_claims(P3 / "claims.csv", "table")}
    assert quantities <= set(found)


def test_differences_are_paired_with_the_papers_models():
    scaled = dict.fromkeys(protocol.BEYOND, (97, 98.0, 97.0))
    text = tables.render_beyond({"table": made_up(IRIS), "beyond": made_up(scaled)})
    assert "| iris | **-0.38 ± 0.00** | **-0.16 ± 0.00** |" in text
    assert "| better / worse | 0 / 1 |" in text


def test_tables_of_other_protocols_include_the_published_numbers():
    rows = made_up({**IRIS, "lda": (96.0, 98.4, 97.2)})
    text = tables.render_plain({"plain": rows})
    assert text.startswith("**Table 2 with plain folds.**")
    assert "| a iris | 97.96 / *96.0 ± 0.0* |" in text
    text = tables.render_wide({"wide": rows})
    assert text.startswith("**c up to 5.5**")
    assert "| iris | ILDA | 98.38 / 98.4 ± 0.0 | 97.16 / 97.2 ± 0.0 |" in text
    assert "| iris | ILDA | 96.0 / 96.0 | 40.0 / 40.0 |" in text  # c = 0, and the end of the curve


def test_the_table_of_times_includes_the_published_ones():
    models = {
        "lda": {"c": 1.0, "row": 5.6e-6, "alone": 2e-3},
        "qda": {"c": 1, "row": 1, "alone": 1},
    }
    text = tables.render_times({"times": [{"dataset": "iris", "models": models}]})
    assert "| iris | 4 | 3 | 0.56 | 5.6 | 2,000 | 1.00 |" in text
    assert text.endswith("| 100,000 |")
