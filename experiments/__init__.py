"""Benchmarks of gtx, and how its bundled set and its pretrained model are made; see README.md."""

from experiments import benchmark_sets as benchmark_sets
