"""Findings as an answer: a line each, and the exit code of the first fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from cairnq_supervisor.commands.answer import Answer
from cairnq_supervisor.pure import findings
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.findings import Finding, Verdict
from cairnq_supervisor.pure.settings import ConfigurationError


def report(found: Sequence[Finding]) -> Answer:
    counts = {verdict: sum(finding.verdict is verdict for finding in found) for verdict in Verdict}
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return Answer(
        [asdict(finding) for finding in found], [*map(Finding.line, found), summary], findings.exit_code(found)
    )


def configuration_faults(error: ConfigurationError) -> list[Finding]:
    return [findings.fault("configuration", str(each), code=Exit.CONFIG) for each in error.faults]
