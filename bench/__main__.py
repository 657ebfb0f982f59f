"""Runs the workloads and prints the table; a run of them all, and not quick, writes it to bench/RESULTS.md too."""

from __future__ import annotations

import sys

from bench.cli import main

if __name__ == "__main__":
    sys.exit(main())
