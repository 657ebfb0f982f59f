"""`python -m cairnq_supervisor` is `cairnq`."""

from __future__ import annotations

import sys

from cairnq_supervisor.cli import main

sys.exit(main())
