"""Nothing in these folders is a test: they are built, or serve to build."""  # noqa: INP001

collect_ignore = ["conf.py"]
collect_ignore_glob = ["_build/*", "_extensions/*", "api/*", "gallery/*"]
