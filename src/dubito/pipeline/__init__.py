"""Estimators around a model with bounds: a pipeline, and a classifier that may decline rows."""

from dubito.pipeline.cautious import CautiousPipeline, make_cautious_pipeline
from dubito.pipeline.reject import RejectClassifier

__all__ = ["CautiousPipeline", "RejectClassifier", "make_cautious_pipeline"]
