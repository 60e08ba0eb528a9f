"""Metrics and health over HTTP: pgaq metrics, and the same paths in pgaq console."""
