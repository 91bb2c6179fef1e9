"""Formulas of belief functions on arrays: subset transforms and products."""
