"""A file is written completely or not at all, and an old one is kept on failure."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile

import pytest
from sklearn.linear_model import LogisticRegression

from dubito.calibration import PlattCalibrator
from dubito.pipeline import RejectClassifier
from dubito.saving import ModelFileError, load, save

MODEL = PlattCalibrator().fit([-2.0, -1.0, 0.5, 3.0], ["no", "no", "yes", "yes"])


def test_nothing_is_overwritten_without_force(tmp_path):
    path = tmp_path / "model.skops"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match=r"already exists.*force=True.*--force"):
        save(MODEL, path)
    assert path.read_text() == "precious"
    save(MODEL, path, force=True)
    assert load(path).stamp.classes == ["no", "yes"]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "model.skops"
    monkeypatch.setattr(os, "fsync", lambda _: path.write_text("quicker"))
    with pytest.raises(FileExistsError):
        save(MODEL, path)
    assert path.read_text() == "quicker"
    assert list(tmp_path.iterdir()) == [path]


def test_paths_may_be_text_and_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(MODEL, "model.skops")
    assert load("model.skops").stamp.classes == ["no", "yes"]


def test_a_folder_that_is_not_there_and_one_that_is(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*none\. Make it first"):
        save(MODEL, tmp_path / "none" / "model.skops")
    for force in (False, True):
        with pytest.raises(IsADirectoryError, match=r"is a folder\. Name a file"):
            save(MODEL, tmp_path, force=force)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("old", [None, "precious"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_full_disk_leaves_no_half_file(tmp_path, monkeypatch, code, old):
    path = tmp_path / "model.skops"
    if old:
        path.write_text(old)

    def fail(_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=rf"model\.skops could not be written: {os.strerror(code)}\."):
        save(MODEL, path, force=True)
    assert [file.read_text() for file in tmp_path.iterdir()] == ([old] if old else [])


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied", "some/hidden/name")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(
        PermissionError, match=r"model\.skops could not be written: Permission"
    ) as e:
        save(MODEL, tmp_path / "model.skops")
    assert "hidden" not in str(e.value)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_locked_folder(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="could not be written"):
        save(MODEL, tmp_path / "model.skops")


def test_an_interrupted_save_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(MODEL, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_others_may_read_the_file_as_any_other(tmp_path):
    (tmp_path / "plain").write_text("")
    save(MODEL, tmp_path / "model.skops")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "model.skops")]
    assert modes[0] == modes[1]


def test_unsavable_models_are_an_error_and_leave_no_file(tmp_path):
    model = PlattCalibrator().fit([-2.0, -1.0, 0.5, 3.0], ["no", "no", "yes", "yes"])
    model.extra = (row for row in [1, 2])
    with pytest.raises(ModelFileError, match=r"PlattCalibrator cannot be saved: .*generator"):
        save(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_as_a_parameter_is_refused(tmp_path, library):
    frames = pytest.importorskip(library)
    loss = frames.DataFrame({"no": [0.0, 1.0], "yes": [5.0, 0.0]})
    X, y = [[-2.0], [-1.0], [0.5], [3.0]], ["no", "no", "yes", "yes"]
    model = RejectClassifier(LogisticRegression(), loss=loss).fit(X, y)
    with pytest.raises(ModelFileError, match=r"loss is a DataFrame, which.* frame\.to_numpy\(\)"):
        save(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())
    model = RejectClassifier(LogisticRegression(), loss=loss.to_numpy()).fit(X, y)
    save(model, tmp_path / "model.skops")
    again, _ = load(tmp_path / "model.skops")
    assert again.predict(X).tolist() == model.predict(X).tolist()


def test_without_skops_the_error_names_what_to_install(tmp_path, monkeypatch):
    save(MODEL, tmp_path / "model.skops")
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r'needs? skops: pip install "\.\[cli\]"'):
        load(tmp_path / "model.skops")
    with pytest.raises(ImportError, match=r'pip install "\.\[cli\]"'):
        save(MODEL, tmp_path / "other.skops")


def test_torch_and_dask_are_not_loaded_for_a_file(tmp_path):
    """skops would import scikit-learn's modules for them; those must work again afterwards."""
    save(MODEL, tmp_path / "model.skops")
    script = f"""
import sys
from dubito.saving import load
load({str(tmp_path / "model.skops")!r})
print(*{{"torch", "dask", "cupy"}} & set(sys.modules), None in sys.modules.values())
"""
    command = [sys.executable, "-c", script]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own
    assert ran.stdout == "False\n"
