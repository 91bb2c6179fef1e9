"""Sets with guaranteed coverage, and rows unlike any seen."""

__all__: list[str] = []
