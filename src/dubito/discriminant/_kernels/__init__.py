"""Formulas of imprecise Gaussian discriminants on arrays: distances to boxes, sets, critical c."""
