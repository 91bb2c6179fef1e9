"""Unusual files: one given twice, typing errors among numbers, lists in cells."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dubito.cli.tables import Table
from dubito.saving import load


@pytest.fixture
def model(saved_models, in_folder):
    """A model of three animals in m.skops."""
    (in_folder / "m.skops").write_bytes(saved_models["evidential-multinomial"].read_bytes())
    return "m.skops"


def measured(**cells):
    """120 rows of measurements and classes; `cells` has texts for rows of `alcohol`."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"alcohol": rng.normal(13, 1, 120).round(2), "ash": rng.normal(size=120)})
    frame = frame.assign(y=["a", "b"] * 60)
    column = frame["alcohol"].astype(object)
    for row, text in cells.items():
        column[int(row.removeprefix("row_"))] = text
    return frame.assign(alcohol=column)


class TestNamedTwice:
    @pytest.mark.usefixtures("scores", "model")
    @pytest.mark.parametrize(
        "arguments",
        [
            "calibrate scores.csv -y y -o scores.csv",
            "predict m.skops scores.csv -o ./scores.csv",
            "predict m.skops scores.csv -o link.csv",
            "report m.skops scores.csv -o scores.csv",
            "report m.skops scores.csv -o m.skops",
            "report m.skops scores.csv -o other.skops --compare other.skops",
            "train scores.csv -y y -o scores.csv",
            "train scores.csv -y y -o new.skops --set-aside scores.csv",
        ],
    )
    def test_what_is_read_is_not_written_over(self, arguments, refused, in_folder):
        Path("other.skops").write_bytes(Path("m.skops").read_bytes())
        Path("link.csv").symlink_to("scores.csv")
        before = {file.name: file.read_bytes() for file in in_folder.iterdir()}
        message = refused(*arguments.split(), "--force")
        assert (
            "is named twice: each file that is read or written needs a name of its own." in message
        )
        assert {file.name: file.read_bytes() for file in in_folder.iterdir()} == before


@pytest.mark.usefixtures("in_folder")
class TestSlips:
    ASKED = ("train", "t.csv", "-y", "y", "-o", "m.skops", "--cv", 0)

    def test_a_typing_error_among_numbers_is_reported_with_its_row(self, refused):
        measured(row_17="abc").to_csv("t.csv", index=False)
        assert refused(*self.ASKED) == (
            "column 'alcohol' of t.csv holds numbers in 119 of 120 rows; row 17 holds 'abc'. "
            "Correct or empty the cells that are no numbers (--impute fills empty ones). To leave "
            "the column out, or to take it as text, name the columns to use: --columns."
        )
        assert not Path("m.skops").exists()

    def test_several_slips(self, refused):
        texts = {f"row_{row}": f"{row}?" for row in (3, 5, 8, 90, 99)}
        frame = measured(**texts)
        frame.assign(ash=["x", *frame["ash"][1:]]).to_csv("t.csv", index=False)
        message = refused(*self.ASKED)
        assert message.startswith(
            "column 'alcohol' of t.csv holds numbers in 115 of 120 rows; row 3 holds '3?', row 5 "
            "holds '5?', row 8 holds '8?', and 2 more rows hold text. The same goes for 'ash'."
        )

    def test_a_mark_for_what_is_not_known(self, refused):
        texts = {f"row_{row}": "unknown" for row in range(40)}
        measured(**texts).to_csv("t.csv", index=False)
        assert "holds numbers in 80 of 120 rows; row 0 holds 'unknown'" in refused(*self.ASKED)

    def test_decimal_commas(self, refused, dubito_command):
        frame = measured(row_17="13.1")
        frame.to_csv("t.csv", index=False, sep=";", decimal=",")
        text = Path("t.csv").read_text().replace("13.1;", "abc;")
        Path("t.csv").write_text(text)
        frame = measured()
        assert "row 17 holds 'abc'" in refused(*self.ASKED)
        frame.to_csv("t.csv", index=False, sep=";", decimal=",")
        assert dubito_command(*self.ASKED).exit_code == 0

    def test_named_columns_are_taken_as_text_and_that_is_noted(self, dubito_command):
        measured(row_17="abc").to_csv("t.csv", index=False)
        result = dubito_command(*self.ASKED, "--columns", "a*")
        assert result.exit_code == 0, result.output
        assert result.stderr == (
            "note: column 'alcohol' holds numbers in 119 of 120 rows; row 17 holds 'abc': it is "
            "taken as text.\n"
        )
        assert load("m.skops").stamp.column_types == ("text", "number")

    def test_many_texts_are_names_and_left_out_as_such(self, dubito_command):
        texts = {f"row_{row}": f"PC {row}" for row in range(40)}  # as tickets are
        measured(**texts).to_csv("t.csv", index=False)
        result = dubito_command(*self.ASKED)
        assert result.exit_code == 0, result.output
        assert "'alcohol' holds 1" in result.stdout
        assert (
            "different texts (holds numbers in 80 of 120 rows; row 0 holds 'PC 0'" in result.stdout
        )

    def test_kinds_named_by_numbers_are_kinds(self, dubito_command):
        frame = measured().assign(stage=["1", "2", "3", "3a"] * 30)
        frame.to_csv("t.csv", index=False)
        assert dubito_command(*self.ASKED).exit_code == 0
        assert load("m.skops").stamp.column_types == ("number", "number", "text")

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    @pytest.mark.parametrize("names", [("cat", "dog"), ("cat", "cow", "dog")])
    def test_a_slip_among_scores(self, refused, make_scores, names, suffix):
        frame = make_scores(60, names)
        frame["cat"] = [*map(str, frame["cat"][:17]), "abc", *map(str, frame["cat"][18:])]
        frame = frame.assign(day=pd.Timestamp("2020-02-02"), note="a word")
        getattr(frame, f"to_{suffix}")(f"s.{suffix}", index=False)
        assert refused("calibrate", f"s.{suffix}", "-y", "y", "-o", "m.skops") == (
            f"column 'cat' of s.{suffix} holds 'abc' in row 17, which is not a number. Correct it, "
            "or leave the column out."
        )

    def test_columns_of_numbers(self):
        lines = ["a,b,c,d,e,y", *["1,x,1,,2020-02-02,u"] * 3, "?,1,x,,2020-02-02,u"]
        Path("t.csv").write_text("\n".join(lines))
        assert Table("t.csv").number_columns() == ["a", "c", "d"]
        Path("t.csv").write_text("a,b\n")
        assert Table("t.csv").number_columns() == ["a", "b"]


class TestCellsThatAreNoValues:
    KINDS = (
        ([["x"], ["y"]], "lists or records"),
        ([{"k": 0}, {"k": 1}], "lists or records"),
        ([b"\xff", b"\xfe"], "bytes"),
    )

    @pytest.mark.usefixtures("in_folder")
    @pytest.mark.parametrize(("cells", "held"), KINDS)
    def test_labels(self, cells, held, model, refused):
        frame = pd.DataFrame({name: np.arange(40.0) % 7 for name in ("cat", "cow", "dog")})
        frame.assign(y=cells * 20).to_parquet("t.parquet")
        message = (
            f"column 'y' of t.parquet holds {held}, and labels are text or whole numbers. Turn it "
            "into such a column, or name another."
        )
        assert refused("calibrate", "t.parquet", "-y", "y", "-o", "n.skops") == message
        assert refused("train", "t.parquet", "-y", "y", "-o", "n.skops") == message
        assert refused("evaluate", model, "t.parquet", "-y", "y") == message

    @pytest.mark.parametrize(("cells", "held"), KINDS)
    def test_kept_columns(self, cells, held, model, refused, dubito_command, make_scores):  # noqa: PLR0917
        make_scores(300).assign(extra=cells * 150).to_parquet("t.parquet")
        call = ("predict", model, "t.parquet", "--keep", "extra", "-o")
        assert refused(*call, "d.csv") == (
            f"column 'extra' holds {held}, which have no place in a CSV file. Write to a .parquet "
            "file instead, or leave the column out."
        )
        assert dubito_command(*call, "d.parquet").exit_code == 0
        assert len(pd.read_parquet("d.parquet")["extra"]) == 300
