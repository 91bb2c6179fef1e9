"""Settings shared by all tests."""

import os

from hypothesis import settings

# Compiled kernels load on first use, so single examples may be slow. In CI the examples are the
# same on every run: a change fails for what it did, not for what was drawn.
settings.register_profile("dubito", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("dubito")
