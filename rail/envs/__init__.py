"""Benchmarks, one module or package each: `build(settings) -> Benchmark`."""
