"""Workloads, faults and the checks that a run must pass."""
