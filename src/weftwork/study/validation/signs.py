"""Published comparisons of two fabrics, by sign: which one is faster, and by how much.

A row is two scenarios that differ in the fabric alone. Its ratio is the time on the other fabric over that on the one
whose authors compare. The sources name neither plan nor batch nor message size: these are chosen here, so that the sign
is what is compared, not the size.
- HPN (Qian et al., SIGCOMM 2024, sections 9.1 and 9.2, appendix C): one segment of two planes with a leaf for each rail
  and plane. DCN+: four segments of 16 servers with two leaves each, 8 spines, 8 links of 400 Gb/s between leaf and
  spine, non-blocking. Servers of 8 H800 with 2 x 200 Gb/s a GPU; switches hash (ECMP).
- Rail-only (Wang et al., arXiv:2307.12169, abstract): the authors' own model, no measurement. An all-to-all goes
  directly over joined rails; where rails are apart, bytes for other rails are forwarded through NVLink.
Leaves out: other jobs on the fabric, hash polarization, jobs that are scattered over segments.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import EngineError
from weftwork.data.measured import measured
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.yaml_tree import write_tree
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.results.results import results
from weftwork.study.run.collective import collective_scenario, measure_collective
from weftwork.study.run.execute import execute
from weftwork.study.validation.scorecard import Excluded, Point
from weftwork.topology.build import fabric_of_section

__all__ = ["COMPARISONS", "SignRow", "comparisons", "sign_row"]

Tree = Mapping[str, Any]

_SIZE: Final = "1GiB"  # chosen: a large message, whose time is that of bandwidth
_SEGMENT: Final = {"model": "hgx-h800", "nic_ports": 16}
_HPN: Final[Tree] = {
    "topology": "rail-optimized", "hosts": 56, "node": _SEGMENT, "link_rate": "200Gbps", "planes": 2,
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


@dataclass(frozen=True, kw_only=True, slots=True)
class SignRow:
    """One comparison.

    Attributes
    ----------
    name : of the row
    ratio : published, the time on ``other`` over that on ``own``
    own, other : scenarios with a section ``training`` or ``collective``
    """

    name: str
    ratio: float
    own: Tree
    other: Tree

    def scenarios(self) -> dict[str, dict[str, Any]]:
        """Both scenarios by a name for people."""
        return {f"{self.name}, {side}": _scenario(tree) for side, tree in (("own", self.own), ("other", self.other))}

    def point(self) -> Point:
        """The ratio that two runs give; the naive rule is that fabrics do not differ.

        Raises
        ------
        EngineError : a run did not end
        """
        found = _time_s(self.other) / _time_s(self.own)
        return Point(name=self.name, measured_s=self.ratio, predicted_s=found, naive_s=1.0)


def comparisons() -> tuple[tuple[SignRow, ...], tuple[Excluded, ...]]:
    """All rows, and comparisons of the same papers that are left out."""
    return tuple(sign_row(row) for row in measured("fabric-comparisons").to_pylist()), _EXCLUDED


COMPARISONS: Final = tuple(dict.fromkeys(row["comparison"] for row in measured("fabric-comparisons").to_pylist()))
_EXCLUDED: Final = (
    Excluded(name="HPN: 2,300 GPUs, +14.9 %", reason="a proprietary model, on 19 segments of shared clusters"),
    Excluded(
        name="HPN: Multi-AllReduce, up to +158.2 %", reason="eight rings at once are no operation of a collective"
    ),
    Excluded(
        name="HPN: dual-plane, +50.1 to +63.7 %", reason="how the leaves are joined without planes is not published"
    ),
)


def sign_row(row: Mapping[str, Any]) -> SignRow:
    """One row of the table, or one of a user's in its columns."""
    kind = row["comparison"].partition(": ")[2]
    name = f"{row['comparison']} on {row['gpus']} GPUs ({row['bound']})"
    if row["comparison"].startswith("Rail-only"):
        joined, apart = _rails(row["gpus"], is_rail_only=False), _rails(row["gpus"], is_rail_only=True)
        forwarded: Tree = {"training": _DENSE}
        direct = forwarded
        if kind != "dense GPT":
            forwarded = {"collective": _collective("all-to-all", row["gpus"])}
            direct = {"collective": {**_collective("all-to-all", row["gpus"]), "algorithm": "direct"}}
        own, other = {"fabric": joined, **direct}, {"fabric": apart, **forwarded}
        return SignRow(name=name, ratio=row["ratio"], own=own, other=other)
    job = _HPN_JOBS.get(kind)
    work: Tree = {"collective": _collective(kind, row["gpus"])} if job is None else {"training": _job(job, row["gpus"])}
    return SignRow(name=name, ratio=row["ratio"], own={"fabric": _HPN, **work}, other={"fabric": _DCN, **work})


def _job(job: Tree, gpus: int) -> Tree:
    return {**job, "gpus": gpus, "global_batch": _BATCH, "gradients": "bf16", "overlap": {"data": 0}}


def _collective(operation: str, gpus: int) -> Tree:
    # NVLS sums in the switch (HPN, section 9.2); an all-to-all sends tokens of other rails through NVLink first
    inner = {"inner": "nvls"} if operation == "all-reduce" else {}
    return {"operation": operation, "algorithm": "hierarchical", **inner, "size": _SIZE, "gpus": gpus}


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
