"""Tables on disk: what is written is whole and reads back as it was."""

from __future__ import annotations

import numpy as np
import pytest

from dubito.datasets._tables import Table, read_table, write_table


def test_failed_write_leaves_the_old_file(tmp_path):
    file = tmp_path / "toy.csv.gz"
    file.write_bytes(b"the old file")
    ragged = Table(["size"], np.zeros((3, 1)), np.array([1, 2]))
    with pytest.raises(ValueError, match="zip"):
        write_table(file, ragged)
    assert file.read_bytes() == b"the old file"
    assert list(tmp_path.iterdir()) == [file]


def test_written_numbers_read_back_bit_for_bit(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) * 10.0 ** rng.integers(-300, 300, (50, 3))
    X[0] = [0.1, -0.0, 1e300]
    X[1, 1] = np.nan
    table = Table(["a b", 'c"d', "e,f"], X, np.arange(50))
    write_table(tmp_path / "t.csv.gz", table)
    again = read_table((tmp_path / "t.csv.gz").read_bytes(), {"": np.nan}, "t")
    assert again.X.tobytes() == table.X.tobytes()
    assert again.feature_names == table.feature_names
    np.testing.assert_array_equal(again.y, table.y)
