"""Tools for testing code built on dubito.

`dubito.testing.calibrators` has checks for user-defined calibrators;
`dubito.testing.strategies` has hypothesis strategies for beliefs and needs the package
`hypothesis`.
"""
