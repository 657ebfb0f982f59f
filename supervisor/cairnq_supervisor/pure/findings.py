"""What a check found: one line each, with what to do; and what the whole of them means as an exit code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from cairnq_supervisor.pure.exits import Exit


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"  # works, and somebody should look
    FAULT = "fault"
    SKIPPED = "skipped"  # could not be looked at


@dataclass(frozen=True, slots=True)
class Finding:
    """`advice` says what to do about a warning or a fault. `code` is the exit code that a fault means."""

    topic: str
    verdict: Verdict
    says: str
    advice: str = ""
    code: int = Exit.OK

    def line(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.verdict:<8} {self.topic:<14} {self.says}{advice}"


def ok(topic: str, says: str) -> Finding:
    return Finding(topic, Verdict.OK, says)


def warning(topic: str, says: str, advice: str) -> Finding:
    return Finding(topic, Verdict.WARNING, says, advice)


def fault(topic: str, says: str, advice: str = "", *, code: int = Exit.FAILED) -> Finding:
    return Finding(topic, Verdict.FAULT, says, advice, code)


def skipped(topic: str, says: str) -> Finding:
    return Finding(topic, Verdict.SKIPPED, says)


def exit_code(findings: Iterable[Finding]) -> int:
    """That of the first fault."""
    return next((finding.code for finding in findings if finding.verdict is Verdict.FAULT), Exit.OK)
