"""Unchanged programs find the shim as `pyverbs`, on this machine and on a simulated fabric."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.pyverbs_ends import own_address

from weftwork.compat.pyverbs.__main__ import main
from weftwork.compat.pyverbs.alias import path_entry
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.testing.simulated_programs.run import HostedProgram, SimulatedPrograms

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = """
import sys
import pyverbs.device as d
from pyverbs.pd import PD
import pyverbs.qp, weftwork.compat.pyverbs.qp
assert pyverbs.qp is weftwork.compat.pyverbs.qp
with d.Context(name=d.get_device_list()[0].name.decode()) as context, PD(context):
    print("opened", context.name, *sys.argv[1:])
"""
SCENARIO = """
schema: 3
name: two hosts
fabric: {topology: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 2, link_rate: 100Gbps}
transport: {congestion_control: fixed-window}
traffic: {pattern: permutation, size: 1B}
"""
# Each end writes its number into the memory of the other one, whose keys it reads from a file.
PEERS = """
import os, sys, json, time
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.libibverbs_enums import ibv_wr_opcode
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

folder, me, peer = sys.argv[1:]
context = Context(name="weft0")
pd, cq = PD(context), CQ(context, 8)
memory = MR(pd, 64, 3)
first = QPAttr()
first.qp_access_flags = 3
qp = QP(pd, QPInitAttr(qp_type=2, scq=cq, rcq=cq, cap=QPCap()), first)
with open(f"{folder}/{me}.new", "w") as file:
    json.dump([qp.qp_num, str(context.query_gid(1, 0)), memory.buf, memory.rkey], file)
os.rename(f"{folder}/{me}.new", f"{folder}/{me}")
while not os.path.exists(f"{folder}/{peer}"):
    time.sleep(0.001)
with open(f"{folder}/{peer}") as file:
    number, gid, address, rkey = json.load(file)
attr = QPAttr()
attr.dest_qp_num, attr.ah_attr = number, AHAttr(is_global=1, gr=GlobalRoute(dgid=GID(gid)))
attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
qp.to_rts(attr)
memory.write(me, 1, 32)
request = SendWR(opcode=ibv_wr_opcode.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(memory.buf + 32, 1, memory.lkey)])
request.set_wr_rdma(rkey, address)
qp.post_send(request)
found = []
while not found:
    found = cq.poll()[1]
while memory.read(1, 0) == bytes(1):
    cq.poll()
print(found[0].status, memory.read(1, 0).decode())
"""


@pytest.fixture
def _no_alias() -> Iterator[None]:
    finders, modules, path = list(sys.meta_path), dict(sys.modules), list(sys.path)
    yield
    sys.meta_path[:], sys.path[:] = finders, path
    for name in set(sys.modules) - set(modules):
        if name.partition(".")[0] == "pyverbs":
            del sys.modules[name]


def started(tmp_path: Path, *words: str, **environment: str) -> str:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = tuple(str(program) if word == "PROGRAM" else word for word in words)
    variables = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": ":".join(filter(None, sys.path)),
        "WEFTWORK_PYVERBS_DEVICES": f"weft7={own_address()}",
    }
    if "path" in environment:
        variables["PYTHONPATH"] = environment["path"] + ":" + variables["PYTHONPATH"]
    ran = subprocess.run([sys.executable, *words], env=variables, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return ran.stdout


def test_the_module_runs_a_program_with_its_arguments(tmp_path: Path) -> None:
    assert started(tmp_path, "-m", "weftwork.compat.pyverbs", "PROGRAM", "a", "b") == "opened weft7 a b\n"


def test_the_folder_on_the_path_does_the_same(tmp_path: Path) -> None:
    assert started(tmp_path, "PROGRAM", path=str(path_entry())) == "opened weft7\n"


def test_the_folder_is_printed_and_a_missing_program_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--path"]) == 0
    assert (Path(capsys.readouterr().out.strip()) / "pyverbs" / "__init__.py").is_file()
    assert main([]) == 2
    assert "usage: python -m weftwork.compat.pyverbs" in capsys.readouterr().err


@pytest.mark.usefixtures("_no_alias")
def test_two_programs_run_on_a_simulated_fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, program = tmp_path / "fabric.yaml", tmp_path / "peers.py"
    scenario.write_text(SCENARIO)
    program.write_text(PEERS)
    monkeypatch.syspath_prepend(str(path_entry()))
    prepared = prepare(read_scenario(scenario))
    programs = [
        HostedProgram(host=number, file=program, arguments=(str(tmp_path), str(number), str(1 - number)))
        for number in (0, 1)
    ]
    output = io.StringIO()
    ran = SimulatedPrograms(prepared.engine_input, programs).run(output, names_lines=False)
    assert ran.exit_codes == (0, 0), output.getvalue()
    assert sorted(output.getvalue().split()) == ["0", "0", "0", "1"]
    assert all(host.traffic.sent >= 2 for host in ran.hosts)
