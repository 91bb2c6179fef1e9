"""`dubito predict` as a process: signals, pipes, memory."""

import os
import signal
import time
from pathlib import Path

import pytest


@pytest.mark.usefixtures("default_interrupts")
class TestProcesses:
    """Behaviour that needs a process of its own."""

    @pytest.fixture
    def many(self, make_scores, in_folder):
        """A table that takes a while."""
        path = in_folder / "many.csv"
        rows = make_scores(20_000).drop(columns="y").to_csv(index=False).split("\n", 1)
        path.write_text(rows[0] + "\n" + rows[1] * 25)
        return path

    @pytest.mark.parametrize(
        ("sent", "ends"),
        [
            (signal.SIGINT, (130, "interrupted: no file was written or changed.\n")),
            (signal.SIGTERM, (143, "")),
        ],
    )
    def test_an_interrupted_run_leaves_no_half_file(self, start_dubito, model, many, sent, ends):
        with start_dubito("predict", model, many, "-o", "d.csv") as run:
            deadline = time.monotonic() + 120
            while not list(Path().glob(".d.csv.*.part")) and time.monotonic() < deadline:
                time.sleep(0.02)
            assert run.poll() is None, "it should still be at work"
            run.send_signal(sent)
            out, error = run.communicate(timeout=60)
        assert (run.returncode, error) == ends
        assert out == ""
        assert [path.name for path in Path().iterdir()] == ["many.csv"]

    def test_a_reader_that_stops_is_no_error(self, start_dubito, model, many):
        with start_dubito("predict", model, many, "--quiet") as run:
            assert run.stdout.readline().startswith("row,prediction,p_cat")
            run.stdout.close()
            assert run.stderr.read() == ""
        assert run.returncode == 141

    @pytest.mark.slow
    def test_memory_does_not_grow_with_the_rows(self, start_dubito, model, many):
        few = many.with_name("few.csv")
        with many.open() as lines:
            few.write_text("".join(next(lines) for _ in range(50_001)))
        peaks = []
        for table in (few, many):
            with start_dubito("predict", model, table, "-o", f"{table.stem}.parquet") as run:
                _, run.returncode, used = os.wait4(run.pid, 0)
            assert run.returncode == 0
            peaks.append(used.ru_maxrss)
        assert peaks[1] < 1.25 * peaks[0], "ten times the rows"
