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
    """`advice` says what to do about a warning or a fault. `code` is the exit code that a fault means.

    `more`: lines to show below, such as a traceback.
    """

    topic: str
    verdict: Verdict
    says: str
    advice: str = ""
    code: int = Exit.OK
    more: str = ""

    @property
    def lead(self) -> str:
        return f"{self.verdict:<8} {self.topic:<14} "

    @property
    def sentence(self) -> str:
        return f"{self.says}; {self.advice}" if self.advice else self.says


def ok(topic: str, says: str) -> Finding:
    return Finding(topic, Verdict.OK, says)


def warning(topic: str, says: str, advice: str) -> Finding:
    return Finding(topic, Verdict.WARNING, says, advice)


def fault(topic: str, says: str, advice: str = "", *, code: int = Exit.FAILED, more: str = "") -> Finding:
    return Finding(topic, Verdict.FAULT, says, advice, code, more)


def skipped(topic: str, says: str) -> Finding:
    return Finding(topic, Verdict.SKIPPED, says)


def exit_code(findings: Iterable[Finding]) -> int:
    """That of the first fault."""
    return next((finding.code for finding in findings if finding.verdict is Verdict.FAULT), Exit.OK)
