"""What the documents point at is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"`((?:cairnq|supervisor|sql|tests|bench|docs|deploy|systemd|examples)/[\w./-]*)`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_and_link_leads_somewhere(document):
    text = document.read_text()
    prose = FENCED.sub("", text)
    missing = [link for link in LINK.findall(prose) if not (document.parent / link).exists()]
    missing += [path for path in PATH.findall(text) if not (ROOT / path).exists()]
    assert missing == []
