"""Completion scripts for bash, zsh and fish, written from the words that the command line knows."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """`flags` is empty for a positional argument with fixed choices."""

    flags: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...]
    is_file: bool


@dataclass(frozen=True, slots=True)
class Word:
    """One command."""

    name: str
    help: str
    options: tuple[Option, ...]


def bash(words: Sequence[Word]) -> str:
    cases = "\n".join(f"        {word.name}) words={_quoted(_offered(word))} ;;" for word in words)
    values = "\n".join(
        f"        {word.name}:{flag}) {_bash_value(option)}; return ;;"
        for word in words
        for option in word.options
        for flag in option.flags
        if option.takes_value
    )
    return f"""\
# bash completion for cairnq; load it with: source <(cairnq completion bash)
_cairnq() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} words
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=($(compgen -W {_quoted([word.name for word in words])} -- "$current"))
        return
    fi
    case "$command:$previous" in
{values}
    esac
    case "$command" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -F _cairnq cairnq
"""


def zsh(words: Sequence[Word]) -> str:
    names = " ".join(_zsh_quote(f"{_zsh_escape(word.name)}:{_zsh_escape(word.help)}") for word in words)
    cases = "\n".join(
        f"        {word.name}) _arguments {' '.join(spec for option in word.options for spec in _zsh_specs(option))} ;;"
        for word in words
    )
    return f"""\
#compdef cairnq
_cairnq() {{
    if (( CURRENT == 2 )); then
        local -a commands=({names})
        _describe command commands
        return
    fi
    local command=${{words[2]}}
    shift words
    (( CURRENT-- ))
    case "$command" in
{cases}
    esac
}}
# Found in fpath, this file is what the first completion calls; sourced, it says what there is to call.
if [[ $funcstack[1] == _cairnq ]]; then
    _cairnq "$@"
else
    compdef _cairnq cairnq
fi
"""


def fish(words: Sequence[Word]) -> str:
    lines = ["# fish completion for cairnq", "complete -c cairnq -f"]
    for word in words:
        lines.append(f"complete -c cairnq -n __fish_use_subcommand -a {word.name} -d {shlex.quote(word.help)}")
        lines += [_fish_option(word.name, option) for option in word.options]
    return "\n".join(lines) + "\n"


SCRIPTS: Mapping[str, Callable[[Sequence[Word]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


def _offered(word: Word) -> list[str]:
    flags = [flag for option in word.options for flag in option.flags]
    return flags + [choice for option in word.options if not option.flags for choice in option.choices]


def _quoted(words: Sequence[str]) -> str:
    return shlex.quote(" ".join(words))


def _bash_value(option: Option) -> str:
    if option.is_file:
        return 'COMPREPLY=($(compgen -f -- "$current"))'
    return f'COMPREPLY=($(compgen -W {_quoted(option.choices)} -- "$current"))'


def _zsh_specs(option: Option) -> list[str]:
    value = f"({' '.join(option.choices)})" if option.choices else ("_files" if option.is_file else " ")
    if not option.flags:
        return [_zsh_quote(f"1:{_zsh_escape(option.help)}:{value}")]
    tail = f":value:{value}" if option.takes_value else ""
    return [_zsh_quote(f"{flag}[{_zsh_escape(option.help)}]{tail}") for flag in option.flags]


def _zsh_escape(text: str) -> str:
    return "".join(f"\\{char}" if char in ":[]\\" else char for char in text)


def _zsh_quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_option(command: str, option: Option) -> str:
    line = f"complete -c cairnq -n {shlex.quote(f'__fish_seen_subcommand_from {command}')}"
    for flag in option.flags:
        line += f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}"
    if option.choices:
        line += f" -a {_quoted(option.choices)}"
    if option.takes_value and option.flags:
        line += " -r -F" if option.is_file else " -x"
    return f"{line} -d {shlex.quote(option.help)}" if option.help else line
