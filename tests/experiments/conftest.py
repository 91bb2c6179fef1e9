"""Fixtures of the tests of experiments."""

import builtins

import pytest


@pytest.fixture
def without_matplotlib(monkeypatch):
    """Make every import of matplotlib fail."""
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
