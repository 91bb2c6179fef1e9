"""Tools for testing code built on dubito.

`dubito.testing.calibrators` checks calibrators of one's own; `dubito.testing.strategies` has
hypothesis strategies for beliefs, and needs the package `hypothesis`.
"""
