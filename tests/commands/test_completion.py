"""Completion scripts, asked as the shells would ask them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from cairnq_supervisor.pure import shells


def complete(script, *words):
    """The words that bash offers for a command line that ends with the last of `words`."""
    line = " ".join(f"'{word}'" for word in words)
    program = (
        f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _cairnq; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture
def script(bare):
    return bare("completion", "bash").out


def test_bash_completes_commands(script):
    assert complete(script, "cairnq", "ca") == ["cancel"]
    assert {"run", "submit", "list", "stats"} <= set(complete(script, "cairnq", ""))


def test_bash_completes_options_and_their_values(script):
    assert complete(script, "cairnq", "list", "--st") == ["--status"]
    assert complete(script, "cairnq", "list", "--status", "ca") == ["canceled"]
    assert set(complete(script, "cairnq", "completion", "")) >= {"bash", "zsh", "fish"}


def test_bash_completes_the_configuration_by_file(script, nowhere):
    (nowhere / "cairnq.toml").touch()
    assert complete(script, "cairnq", "run", "-c", "cai") == ["cairnq.toml"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_accept_theirs(bare, shell, tmp_path):
    said = bare("completion", shell)
    assert said.code == 0
    assert "submit" in said.out
    assert "--status" in said.out or "-l status" in said.out
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(said.out)
    subprocess.run([shell, "--no-execute" if shell == "fish" else "-n", path], check=True)


def test_every_registered_command_is_in_every_script(bare):
    listed = bare("--help").out
    for shell in shells.SCRIPTS:
        script = bare("completion", shell).out
        for name in ("run", "check", "doctor", "migrate", "submit", "get", "list", "stats", "cancel", "retry", "purge"):
            assert name in listed
            assert name in script


def test_an_unknown_shell_is_a_usage_error(bare):
    assert bare("completion", "tcsh").code == 64
