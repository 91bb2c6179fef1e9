"""``python -m dubito.cli`` is the command ``dubito``."""

from dubito.cli import main

if __name__ == "__main__":
    main()
