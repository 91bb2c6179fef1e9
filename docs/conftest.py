"""Folders that pytest leaves out: generated pages, and code that builds the documentation."""  # noqa: INP001

collect_ignore = ["conf.py"]
collect_ignore_glob = ["_build/*", "_extensions/*", "reference/api/*", "gallery/*"]
