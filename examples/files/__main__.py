"""`python examples/files [FOLDER]`: three workers, and the script that submits a walk and prints the report."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import submit  # noqa: E402
from running import database_of, parser, scratch, supervisor  # noqa: E402

if __name__ == "__main__":
    made = parser(__doc__)
    made.add_argument("folder", nargs="?", type=Path, default=Path())
    arguments = made.parse_args()
    with scratch() as folder:
        database = database_of(arguments, folder)
        with supervisor(HERE / "cairnq.toml", database, folder):
            submit.main(arguments.folder.resolve(), database)
