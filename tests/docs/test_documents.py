"""The documents' files and commands run, and no block of theirs is left out."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.support.documents import ROOT, RUN, Reader, blocks_of

TUTORIAL = ROOT / "docs" / "tutorial.md"
FOLLOWED = [ROOT / "docs" / name for name in ("tutorial.md", "protocol.md", "migrating.md")]
URL = "postgresql://shop@db.example/shop"
HTTP = "127.0.0.1:9464"


@pytest.mark.parametrize("document", FOLLOWED, ids=lambda path: path.name)
def test_a_document_does_what_it_says(document, database, tmp_path):
    with (
        tempfile.TemporaryDirectory(prefix="cq-") as runtime,  # a short path, for the control socket
        Reader(tmp_path, Path(runtime), replaced={URL: f"'{database}'", HTTP: "127.0.0.1:0"}) as reader,
    ):
        reader.follow(document)


@pytest.mark.parametrize("document", FOLLOWED, ids=lambda path: path.name)
def test_every_block_is_run_or_says_why_not(document):
    for block in blocks_of(document):
        assert block.kind in RUN or block.file or block.is_foreign or block.kind == "text", block.text
