"""Memory before the kernel acts: what the cgroup says, and which worker goes."""

from __future__ import annotations

import pytest

from cairnq_supervisor.pure.evidence import over_share
from cairnq_supervisor.system.granted_memory import MemoryGrant, memory_grant

MIB = 1 << 20


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_a_container_sees_its_own_cgroup_as_the_root(tmp_path):
    own = tmp_path / "own"
    own.write_text("0::/\n")
    write(tmp_path, memory__max=1000, memory__current=900, memory__stat="anon 600\ninactive_file 200")
    assert memory_grant(tmp_path, own) == MemoryGrant(limit=1000, used=700)


def test_a_unit_of_systemd_is_found_by_its_path(tmp_path):
    own = tmp_path / "own"
    own.write_text("0::/system.slice/cairnq.service\n")
    folder = tmp_path / "system.slice" / "cairnq.service"
    write(folder, memory__max=1000, memory__current=900, memory__stat="inactive_file 0")
    assert memory_grant(tmp_path, own) == MemoryGrant(limit=1000, used=900)


def test_version_1_is_understood(tmp_path):
    own = tmp_path / "own"
    own.write_text("5:cpu,memory:/box\n0::/\n")
    write(tmp_path / "memory" / "box", memory__limit_in_bytes=1000, memory__usage_in_bytes=500)
    (tmp_path / "memory" / "box" / "memory.stat").write_text("total_inactive_file 100\n")
    assert memory_grant(tmp_path, own) == MemoryGrant(limit=1000, used=400)


@pytest.mark.parametrize("limit", ["max", str(2**63 - 4096)])
def test_no_limit_is_no_grant(tmp_path, limit):
    own = tmp_path / "own"
    own.write_text("0::/\n4:memory:/\n")
    write(tmp_path, memory__max=limit, memory__current=1, memory__stat="inactive_file 0")
    write(tmp_path / "memory", memory__limit_in_bytes=2**63 - 4096, memory__usage_in_bytes=1)
    assert memory_grant(tmp_path, own) is None


def test_nothing_to_read_is_no_grant(tmp_path):
    assert memory_grant(tmp_path, tmp_path / "nowhere") is None


def test_the_largest_goes_when_memory_is_short_and_it_is_over_its_share():
    resident = {"a": 600 * MIB, "b": 100 * MIB, "c": 100 * MIB}
    assert over_share(resident, limit=1000 * MIB, used=899 * MIB) is None
    assert over_share(resident, limit=1000 * MIB, used=901 * MIB) == "a"


def test_nobody_goes_where_the_memory_went_elsewhere():
    resident = {"a": 100 * MIB, "b": 100 * MIB}
    assert over_share(resident, limit=1000 * MIB, used=990 * MIB) is None
    assert over_share({}, limit=1000 * MIB, used=990 * MIB) is None
