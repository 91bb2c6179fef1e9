"""`dubito calibrate`: errors and their messages."""

import numpy as np
import pandas as pd
import pytest


class TestRefusals:
    """Every one is a single line on stderr with exit code 2, and leaves no file."""

    @pytest.fixture(autouse=True)
    def _nothing_is_written(self, in_folder):
        yield
        assert not (in_folder / "m.skops").exists()

    @pytest.fixture
    def calibrate(self, refused, scores):
        """Calibrate a changed table and return the message."""

        def call(*options, change=lambda frame: frame, label="y"):
            change(scores).to_csv("t.csv", index=False)
            return refused("calibrate", "t.csv", "--label", label, "-o", "m.skops", *options)

        return call

    def test_no_such_label_column(self, calibrate):
        assert calibrate(label="Y") == (
            "column 'Y' is missing from t.csv. Its columns are cat, cow, dog, y."
        )

    def test_nan_scores(self, calibrate):
        def spoil(frame):
            frame.loc[[17, 40], "cow"] = [np.nan, np.inf]
            return frame

        assert calibrate(change=spoil) == (
            "t.csv has 2 rows with empty cells, nan or infinite numbers (first: row 17, column "
            "'cow'). Drop or fill these rows first."
        )

    def test_a_word_among_the_scores(self, calibrate):
        assert calibrate(
            "--columns", "cat,cow,dog", change=lambda t: t.assign(cow=["?", *t["cow"][1:]])
        ).startswith("column 'cow' of t.csv holds '?' in row 0, which is not a number.")

    def test_missing_labels(self, calibrate):
        assert calibrate(change=lambda t: t.assign(y=[None, *t["y"][1:]])) == (
            "column 'y' of t.csv has no label in row 0. Drop such rows first."
        )

    def test_no_rows(self, calibrate):
        assert calibrate(change=lambda t: t[:0]) == (
            "t.csv has no rows below its column names. Calibration needs some."
        )

    def test_one_row(self, calibrate):
        assert "there is nothing to learn from" in calibrate(change=lambda t: t[:1])

    def test_one_label(self, calibrate):
        assert calibrate(change=lambda t: t.assign(y="cat")) == (
            "all rows have the label cat: there is nothing to learn from."
        )
        assert calibrate("--columns", "cat", change=lambda t: t.assign(y="cat")) == (
            "all rows have the label cat: there is nothing to learn from. If the other class is "
            "only rare here, say --classes A,B."
        )

    def test_no_scores(self, calibrate):
        assert calibrate(change=lambda t: t[["y"]]) == (
            "t.csv has no column of numbers besides 'y': no scores."
        )

    def test_columns_not_named_after_labels(self, calibrate):
        renamed = {"cat": "a", "cow": "b", "dog": "c"}
        assert calibrate(change=lambda t: t.rename(columns=renamed)) == (
            "the columns a, b, c are not named after the labels cat, cow, dog. Say which class "
            "each column is about with --classes, in the order of the columns, and choose columns "
            "with --columns."
        )

    def test_a_label_without_a_column(self, calibrate):
        assert calibrate(change=lambda t: t.assign(y=["?", *t["y"][1:]])) == (
            "no column of numbers is named after the label ?, as there are for cat, cow, dog. "
            "Correct the labels, or give each its column of scores."
        )
        assert calibrate(change=lambda t: t.assign(cow="high")).startswith(
            "no column of numbers is named after the label cow, as there are for cat, dog."
        )

    def test_two_sets_of_columns(self, calibrate):
        def both(frame):
            named = frame.drop(columns="y")
            return pd.concat([named.add_prefix("p_"), named.add_prefix("z_"), frame["y"]], axis=1)

        assert calibrate(change=both) == (
            "several sets of columns are named after the classes: p_cat, … or z_cat, …. Choose "
            "with --columns."
        )

    def test_two_classes_and_columns_of_other_names(self, calibrate):
        message = calibrate(change=lambda t: t.assign(y=np.arange(len(t)) % 2))
        assert message.startswith("which columns hold the scores? Of two classes (0, 1) there may")
        assert "--method evidential-joint" in message

    def test_one_column_for_three_classes(self, calibrate):
        assert calibrate("--columns", "cat") == (
            "one column of scores (cat) is enough for two classes, but the labels are cat, cow, "
            "dog."
        )
        assert calibrate("--method", "evidential-joint") == (
            "--method evidential-joint takes scores of several classifiers of two classes, but the "
            "labels are cat, cow, dog."
        )

    def test_a_column_named_after_the_other_class(self, calibrate):
        def one(frame):
            return pd.DataFrame({"p_cat": frame["cat"], "y": frame["y"].replace("cow", "dog")})

        assert calibrate(change=one) == (
            "do higher scores in 'p_cat' mean 'cat'? Say --positive cat, or --positive dog."
        )

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--positive", "cat"], "--positive says what one column of scores is about"),
            (["--classes", "cat,cow"], "--classes names 2 classes (cat, cow) for 3 columns of"),
            (["--classes", "cat,cow,owl"], "--classes lacks dog, which occurs among the labels"),
            (["--columns", "cat,cow,dig"], "column 'dig' is missing from t.csv. Did you mean 'dog"),
            (["--method", "plat"], "--method must be one of auto, platt, "),
            (
                ["--input", "logit"],
                "--input must be one of margin, logits, proba, log_proba. Got 'logit'.",
            ),
            (["--cv", 1], "--cv 1 leaves no rows to fit on."),
        ],
    )
    def test_options_that_do_not_fit(self, calibrate, options, message):
        assert calibrate(*options).startswith(message)

    @pytest.mark.usefixtures("scores")
    def test_scores_that_do_not_fit_the_declared_input(self, dubito_command):
        call = ("calibrate", "scores.csv", "-y", "y", "-o", "m.skops", "--input", "proba")
        message = dubito_command(*call)
        assert message.exit_code == 2
        assert message.stderr.startswith("error: scores must lie in [0, 1]; not so in rows ")
        assert "margin" in message.stderr

    @pytest.mark.parametrize("method", ["auto", "evidential-joint"])
    def test_log_probabilities_of_one_class_alone(self, calibrate, method):
        def one(frame):
            return pd.DataFrame({"s": frame["cat"], "y": frame["y"].replace("cow", "dog")})

        assert calibrate("--input", "log_proba", "--method", method, change=one) == (
            "--input log_proba needs a column for each class, of one classifier. The columns are "
            "s. For log-odds, ln p - ln(1 - p), say --input margin."
        )

    def test_a_positive_class_that_is_not_there(self, calibrate):
        def one(frame):
            return pd.DataFrame({"s": frame["cat"], "y": frame["y"].replace("cow", "dog")})

        assert calibrate("--positive", "cow", change=one) == (
            "--positive cow is not among the labels cat, dog."
        )

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "t.csv is empty."),
            (bytes(range(256)), "t.csv holds binary data."),
            (b"PK\x03\x04", "t.csv is a spreadsheet, a model file or a zip archive"),
        ],
    )
    def test_files_that_are_no_tables(self, refused, in_folder, content, message):
        (in_folder / "t.csv").write_bytes(content)
        assert refused("calibrate", "t.csv", "-y", "y", "-o", "m.skops").startswith(message)

    def test_outputs_that_cannot_be(self, refused, scores, in_folder):
        del scores
        (in_folder / "file").write_text("")
        call = ("calibrate", "scores.csv", "-y", "y", "-o")
        assert refused(*call, "file") == (
            "file exists already. Add --force to overwrite it, or name another file."
        )
        assert refused(*call, "file/m.skops") == "there is no folder file to write m.skops into."
