"""Modules whose examples cannot run here: those of extras that are not installed."""

from importlib.util import find_spec

_NEEDS = {
    "torch": ["src/dubito/evidence/torch.py", "src/dubito/evidence/_torch_*.py"],
    "triton": ["src/dubito/evidence/_triton.py"],
}

collect_ignore_glob = [
    pattern
    for extra, patterns in _NEEDS.items()
    if find_spec(extra) is None
    for pattern in patterns
]
