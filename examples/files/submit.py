"""Submit a walk of one folder and print the report: `python submit.py [FOLDER]`. A plain script, without `await`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cairnq.sync import CairnQ


def main(folder: Path, database: str) -> None:
    with CairnQ.at(database) as tasks:
        walk = tasks.call("walk", str(folder), queue="reports", timeout_ms=60_000)
        print(f"{walk['files']} files to inspect")
        report = tasks.wait(walk["report"], timeout_ms=600_000).result
    print(f"{report['files']} files, {report['bytes']:,} bytes in {report['folder']}")
    for kind, lines in list(report["lines_by_kind"].items())[:10]:
        print(f"  {lines:>9,} lines  {kind}")
    for paths in report["duplicates"][:5]:
        print("  the same content:", *paths, sep="\n    ")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve(), os.environ["DATABASE_URL"])
