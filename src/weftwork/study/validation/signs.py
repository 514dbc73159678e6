"""Published comparisons of two fabrics, by sign and ratio.

A row is two scenarios that differ in the fabric or in how it spreads flows. Its ratio is the time on the other fabric
over that on the one whose authors compare. Most sources name neither plan nor batch nor message size nor placement:
these are chosen here, so that the sign is what is compared, not the size.
- HPN (Qian et al., SIGCOMM 2024, sections 9.1 and 9.2, appendix C): one segment of two planes with a leaf for each rail
  and plane. DCN+: four segments of 16 servers with two leaves each, 8 spines, 8 links of 400 Gb/s between leaf and
  spine, non-blocking. Servers of 8 H800 with 2 x 200 Gb/s a GPU; switches hash (ECMP).
- Rail-only (Wang et al., arXiv:2307.12169, abstract): the authors' own model, no measurement. An all-to-all goes
  directly over joined rails; where rails are apart, bytes for other rails are forwarded through NVLink.
- Meta (Gangidi et al., SIGCOMM 2024, doi:10.1145/3651890.3672233, and their post at engineering.fb.com): racks of 16
  GPUs. E-ECMP hashes the queue pair too and spreads a connection over several; and uplinks of twice the bandwidth
  (1:2) instead of 1:1.
- MegaScale (Jiang et al., NSDI 2024): the eight NICs of a server on eight switches instead of one, below
  uplinks of twice a NIC's rate. The authors say that flows collide less, and publish no number.
- DeepSeek (ISCA 2025, doi:10.1145/3695053.3731412, section 5.1): multi-plane and multi-rail fat trees.
Leaves out: other jobs on the fabric, hash polarization.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import EngineError
from weftwork.base.grammar import plural
from weftwork.data.measured import measured
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.yaml_tree import write_tree
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.collective import collective_scenario, measure_collective
from weftwork.study.record.road import execute, results
from weftwork.study.validation.scorecard import Excluded, Point
from weftwork.topology.build import fabric_of_section

__all__ = ["COMPARISONS", "OVER", "SignRow", "comparisons", "sign_row"]

Tree = Mapping[str, Any]

OVER: Final = "over"  # the bound of a row whose ratio is only known to be larger
_SIZE: Final = "1GiB"  # chosen: a large message, whose time is that of bandwidth
_SEGMENT: Final = {"model": "hgx-h800", "nic_ports": 16}
_HPN: Final[Tree] = {
    "topology": "hpn", "segments": 1, "nodes_per_segment": 56, "node": _SEGMENT, "link_rate": "200Gbps",
    "switch": "tomahawk-5",
}  # fmt: skip
_DCN: Final[Tree] = {
    "topology": "leaf-spine", "leaves": 8, "spines": 8, "hosts_per_leaf": 16, "links_per_pair": 8, "dual_homed": True,
    "node": _SEGMENT, "link_rate": "200Gbps", "fabric_rate": "400Gbps",
}  # fmt: skip
_BATCH: Final = 896  # chosen: two sequences a GPU where each holds the model, 3.7 M tokens at 4,096
_HPN_JOBS: Final[Mapping[str, Tree]] = {
    "LLaMa-7B": {"model": "llama-2-7b", "data": 448},
    "LLaMa-13B": {"model": "llama-2-13b", "tensor": 2, "data": 224},
    "GPT3-175B": {"model": "gpt-3-175b", "tensor": 8, "pipeline": 8, "data": 7},
}
_DENSE: Final[Tree] = {
    "model": "gpt-3-175b", "tensor": 8, "pipeline": 8, "data": 16, "global_batch": 1536, "gpus": 1024,
    "gradients": "bf16",
}  # fmt: skip
# chosen: as schedulers find servers free. In order, a lone job leaves its leaves on few flows, and nothing collides.
_FOUND_FREE: Final = {"placement": "random-servers"}
_MEGASCALE_SERVERS: Final[Tree] = {
    "node": "dgx-a100", "link_rate": "200Gbps", "fabric_rate": "400Gbps", "spines": 32,
}  # fmt: skip
_MEGASCALE_JOB: Final[Tree] = {
    "model": "gpt-3-175b", "tensor": 8, "pipeline": 8, "virtual_stages": 6, "data": 8, "gpus": 512,
    "global_batch": 256, "gradients": "bf16", "overlap": {"data": 0}, **_FOUND_FREE,
}  # fmt: skip
_DEEPSEEK_JOB: Final[Tree] = {  # as the set deepseek-v3 has it: `weftwork.study.validation.training_runs`
    "model": "deepseek-v3", "pipeline": 16, "data": 128, "expert": 64, "schedule": "dualpipe", "global_batch": 15_360,
    "sequence": 4096, "sequence_parallel": False, "recompute": "selective",
    "recompute_modules": ["layernorm", "mla_up_proj", "moe_act"], "precision": "fp8", "balanced_ends": True,
    "gradients": "bf16", "moments": "bf16", "overlap": {"data": 0.9, "pipeline": 0.8, "expert": 0.9}, "gpus": 2048,
    "software": "megatron-bridge-26.02", "memory": "110GB",
}  # fmt: skip
_ADAPTIVE: Final[Tree] = {"transport": {"load_balancing": "switch-spray", "reorder_tolerant": True}}  # InfiniBand


@dataclass(frozen=True, kw_only=True, slots=True)
class SignRow:
    """One comparison.

    Attributes
    ----------
    name : of the row
    ratio : published, the time on ``other`` over that on ``own``
    is_over : whether only that is published that the ratio is larger than ``ratio``
    own, other : scenarios with a section ``training`` or ``collective``
    """

    name: str
    ratio: float
    own: Tree
    other: Tree
    is_over: bool = False

    def scenarios(self) -> dict[str, dict[str, Any]]:
        """Both scenarios by a name for people."""
        return {f"{self.name}, {side}": _scenario(tree) for side, tree in (("own", self.own), ("other", self.other))}

    def point(self) -> Point:
        """The ratio of two runs.

        The naive rule is that fabrics do not differ.

        Raises
        ------
        EngineError : a run did not end
        """
        found = _time_s(self.other) / _time_s(self.own)
        return Point(name=self.name, measured_s=self.ratio, predicted_s=found, naive_s=1.0, is_over=self.is_over)


def comparisons() -> tuple[tuple[SignRow, ...], tuple[Excluded, ...]]:
    """All rows, and the omitted comparisons of the same papers."""
    return tuple(sign_row(row) for row in measured("fabric-comparisons").to_pylist()), _EXCLUDED


COMPARISONS: Final = tuple(dict.fromkeys(row["comparison"] for row in measured("fabric-comparisons").to_pylist()))
_EXCLUDED: Final = (
    Excluded(name="HPN: 2,300 GPUs, +14.9 %", reason="a proprietary model, on 19 segments of shared clusters"),
    Excluded(name="HPN: Multi-AllReduce, up to +158.2 %", reason="no collective operation runs eight rings at once"),
    Excluded(
        name="HPN: dual-plane, +50.1 to +63.7 %", reason="the links of the leaves without planes are not published"
    ),
)


def sign_row(row: Mapping[str, Any]) -> SignRow:
    """One row of the table, or a user's row in its columns."""
    authors, _, kind = row["comparison"].partition(": ")
    own, other = _MAKERS[authors](kind, row["gpus"])
    name = f"{row['comparison']} on {plural(row['gpus'], 'GPU')} ({row['bound']})"
    return SignRow(name=name, ratio=row["ratio"], own=own, other=other, is_over=row["bound"] == OVER)


def _hpn(kind: str, gpus: int) -> tuple[Tree, Tree]:
    job = _HPN_JOBS.get(kind)
    # NVLS sums in the switch (section 9.2)
    inner = {"inner": "nvls"} if kind == "all-reduce" else {}
    work: Tree = {"collective": {**_collective(kind, gpus), **inner}} if job is None else {"training": _job(job, gpus)}
    return {"fabric": _HPN, **work}, {"fabric": _DCN, **work}


def _rail_only(kind: str, gpus: int) -> tuple[Tree, Tree]:
    joined, apart = _rails(gpus, is_rail_only=False), _rails(gpus, is_rail_only=True)
    if kind == "dense GPT":
        return {"fabric": joined, "training": _DENSE}, {"fabric": apart, "training": _DENSE}
    # one piece: the hop over NVLink ends before the network begins, as in a sum of both times
    direct, forwarded = (
        {**_collective("all-to-all", gpus), **keys} for keys in ({"algorithm": "direct"}, {"chunks": 1})
    )
    return {"fabric": joined, "collective": direct}, {"fabric": apart, "collective": forwarded}


def _meta(kind: str, gpus: int) -> tuple[Tree, Tree]:
    work: Tree = {"collective": {**_collective("all-reduce", gpus), "inner": "nvls", **_FOUND_FREE}}
    alike: Tree = {"fabric": _racks(gpus, uplinks=1), **work}
    if kind == "E-ECMP":
        return {**alike, "transport": {"load_balancing": "e-ecmp"}}, alike
    return {**alike, "fabric": _racks(gpus, uplinks=2)}, alike


def _megascale(_kind: str, gpus: int) -> tuple[Tree, Tree]:
    hosts, work = gpus // 8, {"training": {**_MEGASCALE_JOB, "gpus": gpus, "data": gpus // 64}}
    rails = {"topology": "rail-optimized", "hosts": hosts, "pods": 1, **_MEGASCALE_SERVERS}
    leaves = {"topology": "leaf-spine", "leaves": hosts // 8, "hosts_per_leaf": 8, **_MEGASCALE_SERVERS}
    return {"fabric": rails, **work}, {"fabric": leaves, **work}


def _deepseek(kind: str, gpus: int) -> tuple[Tree, Tree]:
    work = {"training": _DEEPSEEK_JOB} if kind == "step" else {"collective": _collective("all-to-all", gpus)}
    planes, rails = (
        {"fabric": {"topology": topology, "gpus": 2048, "node": "hgx-h800", "switch": "quantum-2"}, **_ADAPTIVE, **work}
        for topology in ("multi-plane", "rail-optimized")
    )
    return planes, rails


_MAKERS: Final[Mapping[str, Callable[[str, int], tuple[Tree, Tree]]]] = {
    "HPN": _hpn, "Rail-only": _rail_only, "Meta": _meta, "MegaScale": _megascale, "DeepSeek": _deepseek,
}  # fmt: skip


def _job(job: Tree, gpus: int) -> Tree:
    return {**job, "gpus": gpus, "global_batch": _BATCH, "gradients": "bf16", "overlap": {"data": 0}, **_FOUND_FREE}


def _collective(operation: str, gpus: int) -> Tree:
    # an all-to-all sends tokens of other rails through NVLink first
    return {"operation": operation, "algorithm": "hierarchical", "size": _SIZE, "gpus": gpus}


def _racks(gpus: int, *, uplinks: int) -> Tree:
    # as many links up as GPUs of a rack, or twice as many
    return {
        "topology": "meta-24k", "pods": 1, "racks_per_pod": gpus // 16, "links_per_pair": uplinks, "node": "dgx-h100",
    }  # fmt: skip


def _rails(gpus: int, *, is_rail_only: bool) -> Tree:
    # pods of 16 servers, so that rails have spines whose absence between rails can be felt
    return {
        "topology": "rail-only" if is_rail_only else "rail-optimized", "gpus": gpus, "node": "dgx-h100",
        "nodes_per_pod": 16, "switch": "tomahawk-5",
    }  # fmt: skip


def _scenario(tree: Tree) -> dict[str, Any]:
    usual = {"schema": SCHEMA, "name": "comparison", "transport": {"load_balancing": "ecmp"}}
    return {**usual, **tree, "engine": {"fidelity": "flow"}}


def _time_s(tree: Tree) -> float:
    scenario = _scenario(tree)
    if "collective" in tree:
        settings = {key: json.dumps(value) for key, value in scenario.items() if key not in {"schema", "name"}}
        read = collective_scenario({}, file=None, overrides=settings)
        (operation,) = measure_collective(read, fabric_of_section(read.fabric, directory=Path()), [1 << 30])
        taken_ps: float | None = operation.time_ps
    else:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "comparison.yaml"
            file.write_text(write_tree(scenario), encoding="utf-8")
            prepared = prepare(read_scenario(file))
        taken_ps = results(prepared, execute(prepared, what_if="none")).summary["iteration_ps"].value
    if taken_ps is None:
        raise EngineError("a run of a comparison did not end")
    return taken_ps / SECOND_PS
