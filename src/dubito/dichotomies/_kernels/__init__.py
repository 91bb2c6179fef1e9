"""Formulas of nested dichotomies on arrays: node models, tree paths, tree structures."""
