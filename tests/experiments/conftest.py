"""What the experiments' tests have in common."""

import builtins

import pytest


@pytest.fixture
def without_matplotlib(monkeypatch):
    """Make matplotlib a package that is not installed."""
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
