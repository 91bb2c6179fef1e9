"""Fixtures for tests of any package."""

import signal

import pytest


@pytest.fixture
def default_interrupts():
    """Let SIGINT raise KeyboardInterrupt, here and in new processes.

    Tests that run in the background of a shell ignore it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
