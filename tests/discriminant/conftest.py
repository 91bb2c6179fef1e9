"""Boxes wider than the spread of a feature are what many of these tests are about."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(
                pytest.mark.filterwarnings("ignore::dubito.discriminant.WideBoxWarning")
            )
