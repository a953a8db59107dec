"""Prediction-level records of a run, bundled to be published."""
