"""Findings as an answer: a line each, and the exit code of the first fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from cairnq_supervisor.commands.answer import Answer, Note
from cairnq_supervisor.pure import findings
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.findings import Finding, Verdict
from cairnq_supervisor.pure.settings import ConfigurationError
from cairnq_supervisor.roles.file_survey import FileSurvey


def report(found: Sequence[Finding]) -> Answer:
    counts = {verdict: sum(finding.verdict is verdict for finding in found) for verdict in Verdict}
    summary = ", ".join(f"{count} {_plural(verdict, count)}" for verdict, count in counts.items() if count)
    return Answer(
        [asdict(finding) for finding in found],
        [*(Note(finding.lead, finding.sentence, finding.more) for finding in found), summary],
        findings.exit_code(found),
    )


def _plural(verdict: Verdict, count: int) -> str:
    return f"{verdict}s" if count != 1 and verdict in (Verdict.FAULT, Verdict.WARNING) else verdict


def configuration_faults(error: ConfigurationError) -> list[Finding]:
    return [findings.fault("configuration", str(each), code=Exit.CONFIG) for each in error.faults]


def reached_file(found: FileSurvey) -> Finding:
    size = "not there yet" if found.size is None else f"{found.size / (1 << 20):.1f} MiB"
    place = f" on {found.filesystem}" if found.filesystem else ""
    return findings.ok("database", f"{found.path} ({size}){place}, SQLite {found.version}")
