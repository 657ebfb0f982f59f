"""Submit a walk of one folder and print the report: `python submit.py [FOLDER]`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from cairnq import CairnQ


async def main(folder: Path) -> None:
    async with CairnQ.postgres(os.environ["CAIRNQ_DSN"]) as client:
        walk = await client.call("walk", str(folder), queue="reports", wait_timeout_ms=60_000)
        print(f"{walk['files']} files to inspect")
        report = (await client.wait(walk["report"], timeout_ms=600_000)).result
    print(f"{report['files']} files, {report['bytes']:,} bytes in {report['folder']}")
    for kind, lines in list(report["lines_by_kind"].items())[:10]:
        print(f"  {lines:>9,} lines  {kind}")
    for paths in report["duplicates"][:5]:
        print("  the same content:", *paths, sep="\n    ")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
