"""One HTML page that says how far a classifier can be trusted.

`collect` returns the numbers as a plain dict, `render` turns it into a page that needs no network,
`write_page` writes that page into a file; `write_report` does all of it. Only drawing needs the
extra: ``pip install ".[report]"`` in a checkout.
"""

from dubito.report.collection import collect
from dubito.report.page import render, write_page, write_report

__all__ = ["collect", "render", "write_page", "write_report"]
