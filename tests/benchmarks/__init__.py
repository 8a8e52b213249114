"""What a run costs, as multiples of parsing every file: `python -m tests.benchmarks ROOT`."""
