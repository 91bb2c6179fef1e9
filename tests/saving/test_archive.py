"""Files that are not models, or damaged ones, raise clear errors."""

from __future__ import annotations

import json
import pickle
from zipfile import ZIP_DEFLATED

import joblib
import numpy as np
import pytest
import skops.io

from dubito.calibration import PlattCalibrator
from dubito.saving import ModelFileError, archive, load, read_stamp, save
from dubito.saving.archive import SCHEMA, STAMP, pack_members
from saving.forging import as_npy, forge, members_of, nodes_of, write, zipped

MODEL = PlattCalibrator().fit([-2.0, -1.0, 0.5, 3.0], ["no", "no", "yes", "yes"])


@pytest.fixture
def path(tmp_path):
    save(MODEL, tmp_path / "model.skops")
    return tmp_path / "model.skops"


def assert_refused(path, match):
    for read in (load, read_stamp):
        with pytest.raises(ModelFileError, match=match) as refusal:
            read(path)
        assert str(path) in str(refusal.value)


def test_pickles_are_not_opened(path):
    class Loud:
        def __reduce__(self):
            return (exit, (3,))

    path.write_bytes(pickle.dumps(Loud()))
    assert_refused(path, "looks like a pickle")
    joblib.dump(MODEL, path)
    assert_refused(path, "looks like a pickle")


def test_compressed_joblib_files_are_not_opened(path):
    for compress in (("zlib", 3), ("gzip", 3), ("xz", 3)):
        joblib.dump(MODEL, path, compress=compress)
        assert_refused(path, "is no skops file")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty"),
        (b"P", "is no skops file"),
        (b"PK", "damaged"),
        (b"a,b,y\n1,2,no\n", "is no skops file"),
        (b"\x00\xff" * 50, "is no skops file"),
        (zipped([("notes.txt", "hello")]), "a zip file, but not a model"),
        (zipped([]), "a zip file, but not a model"),
    ],
)
def test_other_files(path, content, match):
    path.write_bytes(content)
    assert_refused(path, match)


def test_no_file_and_a_folder(tmp_path):
    for read in (load, read_stamp):
        with pytest.raises(FileNotFoundError, match="there is no file"):
            read(tmp_path / "none.skops")
        with pytest.raises(IsADirectoryError, match="is a folder"):
            read(tmp_path)


def test_a_skops_file_without_a_stamp_is_an_error(path):
    skops.io.dump(MODEL, path)
    assert_refused(path, r"did not write it.*skops\.io\.load.*dubito\.saving\.save")


def test_cut_short_anywhere(path):
    whole = path.read_bytes()
    for length in range(2, len(whole), 37):
        path.write_bytes(whole[:length])
        assert_refused(path, "damaged or was cut short")


def test_any_flipped_bit_is_noticed_or_changes_nothing(path):
    """Some bits of a zip file, such as its time stamps, do not affect its content."""
    whole, honest = path.read_bytes(), members_of(path)
    noticed = 0
    for place in range(0, len(whole), 3):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        try:
            read_stamp(path)
        except ModelFileError:
            noticed += 1
        else:
            assert members_of(path) == honest
    assert noticed > 0.8 * len(whole) / 3


@pytest.mark.parametrize(
    "change",
    [
        lambda members: members.update({"extra.bin": b"more"}),
        lambda members: members.update({SCHEMA: members[SCHEMA] + b" "}),
        lambda members: members.pop(next(name for name in members if name.endswith(".npy"))),
    ],
)
def test_a_member_added_changed_or_removed_is_noticed(path, change):
    members = members_of(path)
    change(members)
    write(path, members)
    assert_refused(path, "checksum")


@pytest.mark.parametrize("field", ["classes", "columns", "saved", "options", "sha256"])
def test_an_edited_stamp_is_noticed(path, field):
    members = members_of(path)
    stamp = json.loads(members[STAMP])
    stamp[field] = ["a", "b"]
    write(path, {**members, STAMP: json.dumps(stamp).encode()})
    assert_refused(path, "checksum")


def test_the_layout_of_the_stamp_is_free(path):
    members = members_of(path)
    stamp = dict(reversed(json.loads(members[STAMP]).items()))
    write(path, {**members, STAMP: json.dumps(stamp, indent=7).encode()})
    assert load(path).stamp == read_stamp(path)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("kind", "both"),
        ("columns", "abc"),
        ("columns", ["a"]),
        ("column_types", ["picture"]),
        ("classes", [["a"]]),
        ("classes", {"a": 1}),
        ("versions", ["1.0"]),
        ("rows", "many"),
        ("rows", True),
        ("label", 3),
        ("options", []),
        ("dubito", None),
    ],
)
def test_a_stamp_that_makes_no_sense_is_refused(path, field, wrong):
    forge(path, stamp=lambda raw: raw.update({field: wrong}))
    assert_refused(path, "stamp has no valid")


@pytest.mark.parametrize("field", ["classes", "options", "kind"])
def test_a_stamp_with_a_part_missing_is_refused(path, field):
    forge(path, stamp=lambda raw: raw.pop(field))
    assert_refused(path, f"stamp has no valid {field}")


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"format": "1"}', b"[" * 100_000, b"\xff"])
def test_a_stamp_that_is_none(path, text):
    write(path, {**members_of(path), STAMP: text})
    assert_refused(path, "is damaged: its stamp")


@pytest.mark.parametrize("text", [b"", b"[]", b"[" * 100_000, b'"schema"', b"\xff"])
def test_a_schema_that_is_none(path, text):
    forge(path, members=lambda members: members.update({SCHEMA: text}))
    with pytest.raises(ModelFileError, match="schema"):
        load(path)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", as_npy(np.ones((0, 0)))[:40]])
def test_an_array_that_is_none(path, content):
    def replace(members):
        name = next(name for name in members if name.endswith(".npy"))
        members[name] = content

    forge(path, members=replace)
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        load(path)


def test_an_array_that_the_schema_names_and_the_file_lacks(path):
    def rename(schema):
        for one in nodes_of(schema, "NdArrayNode"):
            one["file"] = "7.npy"

    forge(path, schema=rename)
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        load(path)


def test_an_array_larger_than_all_memory_is_not_made(path):
    header = as_npy(np.ones(2)).replace(b"(2,)", b"(9999999999999999,)")

    def replace(members):
        members[next(name for name in members if name.endswith(".npy"))] = header

    forge(path, members=replace)
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        load(path)


@pytest.mark.parametrize(
    "name", ["../evil.npy", "/etc/evil.npy", "a/b.npy", "..\\evil.npy", "evil.py", "evil", "C:.npy"]
)
def test_names_that_lead_elsewhere_are_refused(path, tmp_path, name):
    path.write_bytes(zipped([*members_of(path).items(), (name, b"evil")]))
    assert_refused(path, "it has a member called")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning:zipfile")
def test_two_members_of_one_name_are_refused(path):
    members = list(members_of(path).items())
    path.write_bytes(zipped([*members, members[0]]))
    assert_refused(path, "two members have one name")


@pytest.fixture
def most(monkeypatch):
    """Lower the limit, so that tests exceed it with little memory."""
    monkeypatch.setattr(archive, "MOST_BYTES", 2**20)
    return 2**20


def bomb(n_bytes):
    return zipped([("1.npy", bytes(n_bytes)), (SCHEMA, "{}")], compression=ZIP_DEFLATED)


def test_what_unpacks_to_far_more_than_it_holds_is_not_unpacked(path, most):
    path.write_bytes(bomb(most + 1))
    assert path.stat().st_size < most / 500
    assert_refused(path, "would unpack to")


def test_nor_are_zips_inside(path, most):
    inner = zipped([("data.npy", bytes(most + 1))], compression=ZIP_DEFLATED)
    path.write_bytes(pack_members({"1.npz": inner, SCHEMA: b"{}"}))
    assert_refused(path, "would unpack to")


def test_a_size_that_lies_is_refused(path):
    whole = bomb(5_000_000)
    directory = whole.rindex(b"PK\x01\x02", 0, whole.rindex(b"schema.json"))
    first = whole.index(b"PK\x01\x02")
    assert first < directory
    small = whole[: first + 24] + (10).to_bytes(4, "little") + whole[first + 28 :]
    path.write_bytes(small)
    assert_refused(path, "damaged")


def test_a_locked_zip_is_refused(path):
    whole = bytearray(path.read_bytes())
    start = whole.index(b"PK\x01\x02")
    whole[start + 8] |= 1
    path.write_bytes(whole)
    assert_refused(path, "damaged")
