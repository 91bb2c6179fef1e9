"""Pure functions, arrays in and arrays out: the formulas, and compiled twins where a profile asked.

Nothing here validates, knows a class, or imports scikit-learn. numba is imported only when a
compiled twin is first called.
"""
