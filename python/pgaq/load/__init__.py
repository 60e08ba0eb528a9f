"""Workloads that the benchmark, the lab, the demo and the tests share, and the proof made from their ledgers."""
