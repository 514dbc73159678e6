"""The limit of memory is the least that holds, whoever sets it."""

import resource
from pathlib import Path

import numpy as np
import pytest

from weftwork.base.memory import memory_limit, memory_words, peak_memory_bytes

FAR = 2**50


def machine(tmp_path: Path, groups: dict[str, str], of_process: str) -> Path:
    for name, text in {**{f"sys/fs/cgroup/{at}": text for at, text in groups.items()},
                       "proc/self/cgroup": of_process}.items():  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_without_control_groups_it_is_the_machines_memory(tmp_path: Path) -> None:
    found = memory_limit(tmp_path)
    assert found.limit_bytes > 2**20
    assert "this machine" in found.owner or "ulimit" in found.owner


@pytest.mark.parametrize(
    ("groups", "of_process", "wanted"),
    [
        ({"job/memory.max": "1048576\n"}, "0::/job\n", 1_048_576),
        ({"job/memory.max": "max\n", "memory.max": "2097152\n"}, "0::/job\n", 2_097_152),  # that of the group around it
        ({"a/b/memory.max": "4096\n", "a/memory.max": "1024\n"}, "0::/a/b\n", 1_024),
        ({"memory/job/memory.limit_in_bytes": "8192\n"}, "5:cpu:/other\n4:memory:/job\n", 8_192),  # version 1
        ({"memory.max": "512\n"}, "0::/\n", 512),
    ],
)
def test_the_least_control_group_decides(tmp_path: Path, groups: dict[str, str], of_process: str, wanted: int) -> None:
    found = memory_limit(machine(tmp_path, groups, of_process))
    assert found.limit_bytes == wanted
    assert str(found).endswith("the limit of this process's control group")


def test_a_limit_of_the_shell_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limits = {resource.RLIMIT_AS: FAR, resource.RLIMIT_DATA: 2**20}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits[kind], FAR))
    found = memory_limit(tmp_path)
    assert found.limit_bytes <= 2**20
    assert found.owner == "the limit that ulimit -d set"


def test_the_most_memory_grows_with_what_is_held() -> None:
    before = peak_memory_bytes()
    held = np.ones(before // 8 + 2**22)  # more than the process has had, touched
    assert peak_memory_bytes() - before > 2**24
    assert held[-1] == 1


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [(0, "0 B"), (1_023, "1,023 B"), (1_024, "1.0 KiB"), (10 * 2**20, "10 MiB"), (1.5 * 2**40, "1.5 TiB")],
)
def test_memory_has_words(size_bytes: float, words: str) -> None:
    assert memory_words(size_bytes) == words
