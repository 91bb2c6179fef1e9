"""Formulas of belief functions on arrays, over all subsets of K classes.

=========================================================  ===================================
formula                                                    module
=========================================================  ===================================
zeta and Möbius transforms (belief, commonality, mass)     `moebius`
products onto intersections and unions (Dempster's rule)   `moebius`
the same, compiled, for large arrays                       `moebius_compiled`
contextual discounting of dense masses                     `moebius.spread_to_supersets`
=========================================================  ===================================
"""
