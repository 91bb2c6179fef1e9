"""Tools for testing code built on dubito: hypothesis strategies for beliefs.

`dubito.testing.strategies` needs the package `hypothesis`.
"""
