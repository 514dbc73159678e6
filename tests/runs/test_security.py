"""Statements of the page "Security" that no other test holds (of Python files: `cli/test_user_code.py`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.policies.load import load
from weftwork.spec.scenario.kinds import OfferKind, PolicyChoiceKind
from weftwork.spec.scenario.scenario import loads, rows

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
# of the standard library and of what Weftwork needs: what opens connections, and what starts programs
OUTWARD = {"socket", "ssl", "http", "urllib", "ftplib", "smtplib", "asyncio", "requests", "aiohttp", "subprocess"}
# what makes objects of a file's own choice
LOADERS = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}


# The software NIC, which the user's own program has to start: its drivers open sockets, its results can be awaited.
# In a clone, `base/commit.py` asks git for the commit of Weftwork itself, as the page says.
# Its tools look up host names, start Weftwork itself as the other end, and ask running processes of the user.
# The shim of pyverbs resolves addresses; programs in a simulation may have sockets, and wait in virtual time.
# `rdma compare-tcp` starts two processes of Weftwork itself, which talk over the loopback.
MAY = {
    "rdma/drivers": {"socket"},
    "rdma": {"asyncio"},
    "rdma/perf/meeting.py": {"socket"},
    "rdma/perf/own_server.py": {"subprocess"},
    "rdma/status.py": {"socket"},
    "rdma/status_query.py": {"socket"},
    "rdma/tcp_comparison": {"socket", "subprocess"},
    "compat/pyverbs": {"socket"},
    "testing/simulated_programs": {"socket"},
    "testing/rdma_wire.py": {"asyncio"},
    "base/commit.py": {"subprocess"},
}


def test_nothing_but_the_drivers_of_the_nic_opens_a_connection_and_nothing_unpickles() -> None:
    imports = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.MULTILINE)
    root = Path(weftwork.__path__[0])
    for file in root.rglob("*.py"):
        may = MAY.get(file.parent.relative_to(root).as_posix(), set()) | MAY.get(
            file.relative_to(root).as_posix(), set()
        )
        assert not set(imports.findall(file.read_text(encoding="utf-8"))) & (OUTWARD | LOADERS) - may, file
    for file in (root / "cli").rglob("*.py"):
        assert "rdma.device" not in file.read_text(encoding="utf-8"), file


def test_the_page_names_every_key_that_may_hold_a_python_file() -> None:
    keys = {row.path for row in rows() if isinstance(row.kind, OfferKind | PolicyChoiceKind)}
    assert len(keys) == 8
    assert {key for key in keys if f"`{key}`" not in PAGE} == set()


@pytest.mark.parametrize(
    "text",
    [
        "name: !!python/object/apply:os.system ['touch mark']",
        "name: !!python/name:os.system ''",
        "name: &a tiny",
        "name: !own tiny",
    ],
)
def test_a_scenario_is_plain_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"tag|anchor"):
        loads(f"schema: 3\nfabric: {{radix: 4}}\ntraffic: {{pattern: permutation, size: 1KB}}\n{text}\n")
    assert not (tmp_path / "mark").exists()


def test_the_cache_of_a_policy_is_for_its_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFTWORK_CACHE_DIR", str(tmp_path))
    own = tmp_path / "mine.py"  # nothing that this process has compiled before
    own.write_text(Path(load("path_selection", "ecmp").source_path).read_text(encoding="utf-8") + f"# {tmp_path}\n")
    load("path_selection", str(own)).compile()
    (folder,) = (tmp_path / "policies").iterdir()
    assert folder.stat().st_mode & 0o077 == 0
