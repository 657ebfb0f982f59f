"""The fleets of tests/process, hurt in the ways of docs/faults.md."""

from tests.process.conftest import gate, runs

__all__ = ["gate", "runs"]
