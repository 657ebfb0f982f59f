"""Completion scripts, asked by the shells themselves."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
from pathlib import Path

import pytest

from cairnq_supervisor.pure import shells

PATIENCE = 30.0
"""Seconds for a shell to answer."""


class Bash:
    def __init__(self, script: Path) -> None:
        self._script = script

    def complete(self, line: str) -> set[str]:
        words = line.split(" ")
        quoted = " ".join(f"'{word}'" for word in words)
        ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _cairnq; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        return set(output("bash", "--norc", "-c", f"source {self._script}; {ask}").split())

    def close(self) -> None: ...


class Fish:
    def __init__(self, script: Path) -> None:
        self._script = script

    def complete(self, line: str) -> set[str]:
        said = output("fish", "-c", f"source {self._script}; complete -C '{line}'", home=self._script.parent)
        return {offer.partition("\t")[0] for offer in said.splitlines()}

    def close(self) -> None: ...


class Zsh:
    """It completes at a terminal alone, so it gets one; what the tab key made of the line is read back."""

    SETTING_UP = "autoload -Uz compinit; compinit -D -u; bindkey '^I' complete-word; zstyle ':completion:*' menu no\n"
    SHOWING = "show() { print -r -- \"<$BUFFER>\"; BUFFER='' }; zle -N show; bindkey '^T' show\n"

    def __init__(self, script: Path, *, installed: bool = False) -> None:
        """`installed`: found in fpath, under the name that a completion of `cairnq` has."""
        self._terminal, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "dumb", "PS1": "", "HOME": str(script.parent)}
        self._shell = subprocess.Popen(
            ["zsh", "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
        )
        os.close(theirs)
        if installed:
            script.rename(script.with_name("_cairnq"))
            self._type(f"fpath=({script.parent} $fpath)\n{self.SETTING_UP}")
        else:
            self._type(f"{self.SETTING_UP}source {script}\n")
        self._type(f"{self.SHOWING}print REA''DY\n")
        self._until(b"READY")

    def complete(self, line: str) -> set[str]:
        """The last word of the line, as it became."""
        self._type(f"{line}\t\x14")
        written = re.findall(r"<(.*?)>", self._until(b">").decode(), re.DOTALL)[-1]
        return {written.split(" ")[-1] or written.split(" ")[-2]}

    def close(self) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._terminal)

    def _type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def _until(self, mark: bytes) -> bytes:
        seen = b""
        while mark not in seen:
            ready, _, _ = select.select([self._terminal], [], [], PATIENCE)
            assert ready, f"zsh says nothing more after {seen!r}"
            seen += os.read(self._terminal, 65_536)
        return seen


def output(*command: str, home: Path | None = None) -> str:
    """`home`: for shells that leave files there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    environment = kept if home is None else {**kept, "HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stderr == ""
    return done.stdout


def made(shell: str, bare, folder: Path):
    name = shell.partition(" ")[0]
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed (apt-get install {name})")
    script = folder / "script"
    script.write_text(bare("completion", name).out)
    match shell:
        case "bash":
            return Bash(script)
        case "fish":
            return Fish(script)
        case _:
            return Zsh(script, installed="installed" in shell)


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh sourced", "zsh installed"])
def test_a_shell_completes_commands_options_their_values_and_files(bare, nowhere, shell):
    (nowhere / "cairnq.toml").touch()
    asked = made(shell, bare, nowhere)
    try:
        assert asked.complete("cairnq ca") == {"cancel"}
        assert asked.complete("cairnq list --st") == {"--status"}
        assert asked.complete("cairnq list --status ca") == {"canceled"}
        assert asked.complete("cairnq completion z") == {"zsh"}
        assert asked.complete("cairnq run -c cai") == {"cairnq.toml"}
    finally:
        asked.close()


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_every_command_is_offered(bare, nowhere, shell):
    listed = re.findall(r"^ {4}([a-z]+) ", bare("--help").out, re.MULTILINE)
    assert {"run", "submit", "status"} <= set(listed)
    assert set(listed) <= made(shell, bare, nowhere).complete("cairnq ")


def test_every_registered_command_is_in_every_script(bare):
    listed = re.findall(r"^ {4}([a-z]+) ", bare("--help").out, re.MULTILINE)
    for shell in shells.SCRIPTS:
        script = bare("completion", shell).out
        assert json.loads(bare("completion", shell, "--json").out) == {"script": script}
        assert [name for name in listed if name not in script] == []


def test_an_unknown_shell_is_a_usage_error(bare):
    assert bare("completion", "tcsh").code == 64
