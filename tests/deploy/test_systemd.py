"""The units, judged by systemd's own tools, and held against the program's exit codes and time-outs."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cairnq_supervisor.pure import quantities
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.settings import Settings

UNITS = Path(__file__).parents[2] / "systemd"
PROGRAM = "/opt/cairnq/bin/cairnq"
WORST_EXPOSURE = 15
"""Tenths: 1.5 is "OK" for systemd-analyze, whose worst is 10."""

needs_systemd_analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)
every_unit = pytest.mark.parametrize("name", ["cairnq.service", "cairnq@.service"])


def read(name):
    """Section -> key -> values, in order: a unit may give a key more than once."""
    found: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for line in (UNITS / name).read_text().splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            section.setdefault(key, []).append(value)
    return found


def service(name):
    return {key: values[-1] for key, values in read(name)["Service"].items()}


@pytest.fixture
def installed(tmp_path):
    """The units with a program that is there, for verify looks whether it is."""
    program = tmp_path / "cairnq"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name in ("cairnq.service", "cairnq@.service"):
        (tmp_path / name).write_text((UNITS / name).read_text().replace(PROGRAM, str(program)))
    return tmp_path


@needs_systemd_analyze
@pytest.mark.parametrize("name", ["cairnq.service", "cairnq@shop.service"])
def test_systemd_finds_nothing_wrong(installed, name):
    shutil.copy(installed / "cairnq@.service", installed / "cairnq@shop.service")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=one", installed / name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@needs_systemd_analyze
def test_the_verdict_is_one_that_sees_a_misspelt_key(installed):
    unit = installed / "cairnq.service"
    unit.write_text(unit.read_text().replace("KillMode=", "KilMode="))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=one", unit], capture_output=True, check=False
    )
    assert done.returncode != 0


@needs_systemd_analyze
@every_unit
def test_the_exposure_is_small(name):
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={WORST_EXPOSURE}", UNITS / name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-600:]


@every_unit
def test_a_restart_is_tried_only_where_it_can_help(name):
    prevented = {int(code) for code in service(name)["RestartPreventExitStatus"].split()}
    assert prevented == {Exit.USAGE, Exit.PROTOCOL, Exit.CONFIG}
    assert service(name)["Restart"] == "on-failure"


@every_unit
def test_the_times_add_up(name):
    defaults, unit = Settings(app="", queues=(), database=""), service(name)
    stop, start = (quantities.duration(unit[key]) for key in ("TimeoutStopSec", "TimeoutStartSec"))
    assert stop >= defaults.drain_timeout + 5
    assert start > defaults.connect_timeout + defaults.boot_timeout
    assert quantities.duration(unit["WatchdogSec"]) < start


@every_unit
def test_the_drain_is_the_supervisors(name):
    unit = service(name)
    assert (unit["Type"], unit["NotifyAccess"]) == ("notify", "main")
    assert (unit["KillMode"], unit["OOMPolicy"]) == ("mixed", "continue")
    assert unit["LoadCredential"].startswith("dsn:")


def test_the_template_is_the_unit_but_for_its_instance():
    plain, template = read("cairnq.service"), read("cairnq@.service")
    assert plain.keys() == template.keys()
    different = {key for key in plain["Service"] if plain["Service"][key] != template["Service"][key]}
    assert different == {
        *("ExecStart", "EnvironmentFile", "LoadCredential", "SyslogIdentifier", "StateDirectory", "WorkingDirectory")
    }
    assert all("%i" in template["Service"][key][0] for key in different)


def test_the_directories_are_those_that_the_units_name():
    tmpfiles = (UNITS / "cairnq.tmpfiles").read_text()
    lines = {fields[1]: fields for line in tmpfiles.splitlines() if (fields := line.split()) and fields[0] == "d"}
    assert lines["/etc/cairnq/credentials"][2:5] == ["0700", "root", "root"]
    assert lines["/run/cairnq"][2] == service("cairnq.service")["RuntimeDirectoryMode"]
    assert re.search(r"^u cairnq ", (UNITS / "cairnq.sysusers").read_text(), re.MULTILINE)


def test_the_drop_in_for_newer_systemd_is_a_drop_in():
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(UNITS / "notify-reload.conf")
    assert parser["Service"]["type"] == "notify-reload"


@pytest.mark.skipif(shutil.which("systemd-sysusers") is None, reason="systemd-sysusers is not installed")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may own files to others")
def test_systemd_makes_the_user_and_the_directories(tmp_path):
    (tmp_path / "etc").mkdir()
    subprocess.run(["systemd-sysusers", f"--root={tmp_path}", UNITS / "cairnq.sysusers"], check=True)
    subprocess.run(["systemd-tmpfiles", f"--root={tmp_path}", "--create", UNITS / "cairnq.tmpfiles"], check=True)
    assert "cairnq:" in (tmp_path / "etc" / "passwd").read_text()
    assert (tmp_path / "etc/cairnq/credentials").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "run/cairnq").stat().st_uid == (tmp_path / "run/cairnq").stat().st_gid != 0


def test_the_environment_example_names_keys_that_there_are():
    from cairnq_supervisor.pure.keys import TOP_KEYS

    named = re.findall(r"^#?CAIRNQ_(\w+)=", (UNITS / "environment.example").read_text(), re.MULTILINE)
    assert named
    assert {name.lower() for name in named} <= TOP_KEYS
