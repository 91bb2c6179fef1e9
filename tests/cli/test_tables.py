"""Reading and writing tables, and the errors of both."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dubito.cli import csv_reader
from dubito.cli.console import CliError
from dubito.cli.tables import Table, chunk_rows
from dubito.cli.writer import TableWriter

PLAIN = "id,score,word\n01,0.5,cat\n02,1,dog\n03,,\n"


def refusal(call, *arguments, **options):
    with pytest.raises(CliError) as caught:
        call(*arguments, **options)
    assert caught.value.code == 2
    return str(caught.value)


def write(name, content):
    """Write a file in the working folder; return its name."""
    content = content.encode() if isinstance(content, str) else content
    opened = gzip.open if name.endswith(".gz") else open
    with opened(name, "wb") as file:
        file.write(content)
    return name


def read(name):
    return Path(name).read_text(encoding="utf-8")


def files():
    return [path.name for path in Path().iterdir()]


def none_as_none(frame):
    return frame.astype(object).where(frame.notna(), None)


def same_as_plain(frame):
    expected = pd.DataFrame(
        {"id": [1, 2, 3], "score": [0.5, 1, np.nan], "word": ["cat", "dog", None]}
    )
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False)


@pytest.mark.usefixtures("in_folder")
class TestReading:
    @pytest.mark.parametrize(
        ("name", "content", "note"),
        [
            ("t.csv", PLAIN, ""),
            ("t.csv.gz", PLAIN, ""),
            ("t.csv", "\ufeff" + PLAIN, ""),
            ("t.csv", PLAIN.replace("\n", "\r\n"), ""),
            ("t.csv", PLAIN.rstrip("\n"), ""),
            ("t.csv", PLAIN.replace("cat", '"cat"').replace("word", '"word"'), ""),
            ("t.tsv", PLAIN.replace(",", "\t"), "separated by tabs"),
            ("t.csv", PLAIN.replace(",", ";"), "separated by semicolons"),
            ("t.txt", PLAIN.replace(",", "\t"), "separated by tabs"),
            ("t.csv", PLAIN.replace(",", "|"), "separated by vertical bars"),
            (
                "t.csv",
                PLAIN.replace(",", ";").replace("0.5", "0,5"),
                "separated by semicolons, decimal commas",
            ),
        ],
    )
    def test_one_table_in_many_spellings(self, name, content, note):
        table = Table(write(name, content))
        assert table.note == note
        assert table.names == ["id", "score", "word"]
        assert table.types == {"id": "number", "score": "number", "word": "text"}
        same_as_plain(table.read())

    def test_parquet_whatever_it_is_called(self):
        pd.DataFrame(
            {"id": [1, 2, 3], "score": [0.5, 1, None], "word": ["cat", "dog", None]}
        ).to_parquet("t.csv")
        table = Table("t.csv")
        assert table.rows == table.estimated_rows == 3
        same_as_plain(table.read())

    def test_as_is_keeps_what_is_written(self):
        frame = Table(write("t.csv", PLAIN)).read(["word", "id"], {"id": "as_is"})
        assert frame.columns.tolist() == ["word", "id"]
        assert frame["id"].tolist() == ["01", "02", "03"]

    def test_as_is_keeps_the_types_of_parquet(self):
        pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": [True, False]}).to_parquet(
            "t.parquet"
        )
        frame = Table("t.parquet").read(types={"a": "as_is", "b": "as_is"})
        assert frame["a"].iloc[0] == 1
        assert frame["a"].isna().tolist() == [False, True]
        assert frame["b"].tolist() == [True, False]

    def test_quotes_may_hold_separators_and_line_ends(self):
        table = Table(write("t.csv", 'a,b\n1,"x, ""y""\nz"\n'))
        assert table.read()["b"].tolist() == ['x, "y"\nz']

    @pytest.mark.parametrize("separator", [";", "\t"])
    def test_a_comma_in_a_name_or_a_word_separates_nothing(self, separator):
        lines = [["a, b", "word"], ["1", "x, y"], ["2", "z"]]
        table = Table(write("t.csv", "\n".join(separator.join(cells) for cells in lines)))
        assert table.names == ["a, b", "word"]

    def test_blank_lines_are_not_rows(self):
        frame = Table(write("t.csv", "a,b\n1,2\n\n3,4\n\n")).read()
        assert frame.index.tolist() == [0, 1]

    def test_text_that_began_like_numbers_is_text(self, monkeypatch):
        monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 64)
        table = Table(write("t.csv", "a\n" + "1\n" * 100 + "x\n"))
        assert table.types == {"a": "number"}
        assert table.read()["a"].tolist() == ["1"] * 100 + ["x"]

    @pytest.mark.parametrize("rows", [1, 2, 7, 10, 11])
    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    def test_chunks_are_the_table_cut(self, kind, rows, monkeypatch):
        monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 40)
        frame = pd.DataFrame({"a": np.arange(10) / 4, "b": list("abcdefghij")})
        getattr(frame, f"to_{kind}")(f"t.{kind}", index=False)
        chunks = list(Table(f"t.{kind}").chunks(n_rows=rows))
        assert [len(chunk) for chunk in chunks] == [rows] * (10 // rows) + [10 % rows] * (
            10 % rows > 0
        )
        pd.testing.assert_frame_equal(pd.concat(chunks), frame, check_dtype=False)

    def test_no_rows_are_no_chunks(self):
        table = Table(write("t.csv", "a,b\n"))
        assert list(table.chunks()) == []
        assert table.read().shape == (0, 2)

    def test_rows_are_estimated_from_the_first_lines(self):
        assert Table(write("t.csv", "abc\n" + "1.5\n" * 5000)).estimated_rows == 5000
        assert Table(write("t.csv.gz", "a\n1\n")).estimated_rows is None

    def test_five_thousand_columns(self):
        names = [f"c{k}" for k in range(5000)]
        table = Table(write("t.csv", ",".join(names) + "\n" + ",".join(["0.25"] * 5000) + "\n"))
        assert table.names == names
        assert table.read().to_numpy().sum() == 1250
        assert chunk_rows(5000) * 5000 <= 2**22 < (chunk_rows(5000) + 1) * 5000


@pytest.mark.usefixtures("in_folder")
class TestSelecting:
    @pytest.mark.parametrize(
        ("wanted", "found"),
        [
            ("c1,a", ["c1", "a"]),
            ("c*", ["c1", "c2"]),
            ("c2, c*", ["c2", "c1"]),
            ('"x,y"', ["x,y"]),
            ("q[1]", ["q[1]"]),
        ],
    )
    def test_names_and_patterns(self, wanted, found):
        table = Table(write("t.csv", 'a,c1,c2,"x,y",q[1]\n1,2,3,4,5\n'))
        assert table.select(wanted) == found

    def test_a_column_that_is_not_there(self):
        table = Table(write("t.csv", "score,label\n1,2\n"))
        assert refusal(table.select, "scor") == (
            "column 'scor' is missing from t.csv. Did you mean 'score'? "
            "Its columns are score, label."
        )
        assert refusal(table.read, ["z"]).startswith("column 'z' is missing from t.csv.")

    def test_a_file_with_one_column_is_an_error(self):
        missing = Table(write("t.csv", "a#b\n1#2\n")).missing("a", "The model needs it.")
        assert str(missing) == (
            "column 'a' is missing from t.csv. The model needs it. All of t.csv is one column, "
            "'a#b': are its cells separated by commas, semicolons or tabs?"
        )


@pytest.mark.usefixtures("in_folder")
class TestRefusing:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "t.csv is empty. A table needs a first line with the column names."),
            (b"\n\n", "t.csv is empty. A table needs a first line with the column names."),
            (b'{"a": 1}', "t.csv has one line only. A table needs a first line with the column"),
            (bytes(range(256)), "t.csv holds binary data. dubito reads tables as CSV or Parquet."),
            (b"PK\x03\x04rest", "t.csv is a spreadsheet, a model file or a zip archive"),
            ("a,b\n1,2\n".encode("utf-16"), "t.csv is text in UTF-16. Save it as CSV in UTF-8."),
            (b"PAR1 and then nothing", "t.csv is a damaged Parquet file"),
            (b"\x1f\x8b and then nothing", "t.csv could not be read"),
            (b"a,b,a\n1,2,3\n", "t.csv has several columns named a. Give each column its own name"),
            (b"a,b\n1,2\n3\n", "t.csv has 1 cell in row 1, but 2 columns. Correct the line"),
            (b"a\n1\n3,4\n", "t.csv has 2 cells in row 1, but 1 column. Correct the line"),
            (b"a,b\n1,2\n3,4,5\n", "t.csv has 3 cells in row 1, but 2 columns. Correct the line"),
        ],
    )
    def test_files_that_are_no_tables(self, content, message):
        assert refusal(lambda: Table(write("t.csv", content)).read()).startswith(message)

    def test_no_file(self):
        write("scores.csv", PLAIN)
        assert refusal(Table, "score.csv") == (
            "there is no file score.csv. Did you mean scores.csv?"
        )
        assert refusal(Table, "-").startswith("dubito reads a table twice, so not from stdin")
        assert refusal(Table, "nowhere/t.csv") == "there is no file nowhere/t.csv."

    def test_a_folder(self, tmp_path):
        assert refusal(Table, tmp_path).endswith(
            "is a folder, not a table. Name a CSV or Parquet file."
        )

    def test_a_pipe(self):
        os.mkfifo("pipe")
        assert refusal(Table, "pipe").startswith("pipe is not a file that can be read twice")

    @pytest.mark.parametrize("way", ["read", "chunks"])
    def test_a_cell_that_is_no_number(self, way, monkeypatch):
        monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 64)
        table = Table(write("t.csv", "a,b\n" + "x,1\n" * 50 + "\nx,one\n"))
        assert refusal(lambda: list(getattr(table, way)(["b"], {"b": "number"}))) == (
            "column 'b' of t.csv holds 'one' in row 50, which is not a number. Correct it, or "
            "leave the column out."
        )

    def test_a_cell_of_parquet_that_is_no_number(self):
        pd.DataFrame({"a": ["1", None, "one"]}).to_parquet("t.parquet")
        assert refusal(Table("t.parquet").read, types={"a": "number"}) == (
            "column 'a' of t.parquet holds 'one' in row 2, which is not a number. Correct it, or "
            "leave the column out."
        )

    def test_another_encoding(self):
        table = Table(write("t.csv", "a,b\n1,x\n2,café\n".encode("latin-1")))
        assert refusal(table.read) == "t.csv is not UTF-8 text in row 1. Save it as CSV in UTF-8."
        written = write("t.csv", "a,né\n1,2\n".encode("latin-1"))
        assert refusal(Table, written) == (
            "t.csv is not UTF-8 text in its first line. Save it as CSV in UTF-8."
        )

    def test_a_quote_left_open(self, monkeypatch):
        monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 64)
        content = 'a,b\n1,"' + "x\n" * 200
        assert "Is a quote left open?" in refusal(lambda: Table(write("t.csv", content)).read())


@pytest.mark.usefixtures("in_folder")
class TestWriting:
    FRAME = pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan], "c": ["x", None], "d": [True, False]})

    @pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
    def test_two_chunks_make_one_table(self, name):
        with TableWriter(name) as writer:
            writer.write(self.FRAME)
            writer.write(self.FRAME)
        written = pd.read_parquet(name) if name.endswith("parquet") else pd.read_csv(name)
        expected = pd.concat([self.FRAME] * 2, ignore_index=True)
        pd.testing.assert_frame_equal(none_as_none(written), none_as_none(expected))
        assert files() == [name]

    def test_csv_has_quotes_where_they_are_needed_alone(self):
        with TableWriter("t.csv") as writer:
            writer.write({"a": ["x", "y"], "b,c": [1, 2]})
            writer.write({"a": ["x", 'say "y", z'], "b,c": [1, 2]})
        assert read("t.csv") == 'a,"b,c"\nx,1\ny,2\n"x",1\n"say ""y"", z",2\n'

    def test_stdout(self, capfdbinary):
        with TableWriter(None) as writer:
            writer.write({"a": [1, 2]})
        assert capfdbinary.readouterr().out == b"a\n1\n2\n"

    def test_no_file_is_overwritten_without_force(self):
        write("t.csv", "old")
        assert refusal(TableWriter, "t.csv") == (
            "t.csv exists already. Add --force to overwrite it, or name another file."
        )
        with TableWriter("t.csv", force=True) as writer:
            writer.write({"a": [1]})
            assert read("t.csv") == "old", "until all is written"
        assert pd.read_csv("t.csv")["a"].tolist() == [1]

    @pytest.mark.parametrize("fault", [KeyboardInterrupt, ValueError, SystemExit])
    def test_a_fault_leaves_nothing_and_changes_nothing(self, fault):
        write("t.csv", "old")

        def interrupted():
            with TableWriter("t.csv", force=True) as writer:
                writer.write({"a": [1]})
                raise fault

        with pytest.raises(fault):
            interrupted()
        assert files() == ["t.csv"]
        assert read("t.csv") == "old"

    def test_a_link_stays_a_link(self):
        write("real.csv", "old")
        Path("link.csv").symlink_to("real.csv")
        with TableWriter("link.csv", force=True) as writer:
            writer.write({"a": [1]})
        assert Path("link.csv").is_symlink()
        assert pd.read_csv("real.csv")["a"].tolist() == [1]

    def test_files_may_be_read_as_others_are(self):
        with TableWriter("t.csv") as writer:
            writer.write({"a": [1]})
        write("other.csv", "")
        assert Path("t.csv").stat().st_mode == Path("other.csv").stat().st_mode

    def test_outputs_that_cannot_be(self, tmp_path, monkeypatch):
        write("file", "")
        assert refusal(TableWriter, tmp_path).endswith("is a folder. Name a file to write.")
        assert refusal(TableWriter, "t.xlsx") == (
            "t.xlsx must end in .csv, .csv.gz, .parquet: the name says what to write."
        )
        assert refusal(TableWriter, "no/t.csv") == "there is no folder no to write t.csv into."
        assert refusal(TableWriter, "file/t.csv") == "there is no folder file to write t.csv into."
        assert refusal(TableWriter, "/dev/null").startswith("/dev/null is not an ordinary file.")
        monkeypatch.setattr(os, "access", lambda *_: False)
        assert refusal(TableWriter, "t.csv") == (
            ". may not be written to. Name a file in another folder."
        )

    def test_a_full_disk_is_an_error(self, monkeypatch):
        def full(*_):
            raise OSError(28, "No space left on device")

        def fill():
            with TableWriter("t.csv") as writer:
                monkeypatch.setattr(writer._sink, "write", full)
                writer.write({"a": [1]})

        assert refusal(fill) == "t.csv could not be written: No space left on device."
        assert files() == []
