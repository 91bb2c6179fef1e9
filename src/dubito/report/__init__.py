"""One page that says how far a classifier can be trusted: collect the numbers, then render them.

`write_report` does both. `collect` asks the models and returns a plain dict, `render` makes one
HTML page of it that needs no network, `write_page` puts it into a file. Drawing needs the extra:
``pip install "dubito[report]"``; collecting does not.
"""

from dubito.report._collect import collect
from dubito.report._render import render, write_page, write_report

__all__ = ["collect", "render", "write_page", "write_report"]
