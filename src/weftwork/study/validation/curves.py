"""Published curves of nccl-tests as scores.

They are of one server, and of AWS p5 over the network.

Each row is a scenario with a section ``collective`` on the servers of the table, which `weftwork collective` runs too,
here on the flow engine. Its algorithm and protocol are those that NCCL's tuner takes (`weftwork.workload.collectives.
tuner`), since the tables do not say which it was. One server: the figures are fitted on the Azure tables. AWS p5: first
blind, with what AWS and NCCL publish of the network (networks.toml), then on 64 GPUs with what was fitted on 16. The
naive rule is line rate: NVLink's signalling rate in one server, all NIC ports between servers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import EngineError
from weftwork.base.grammar import plural
from weftwork.data.measured import measured
from weftwork.hardware.catalogue import GPUS, SERVERS, node
from weftwork.spec.calibration import Calibration, read_calibration
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.study.prepare.calibrated import calibrated_figures, latency_scale
from weftwork.study.record.collective import collective_scenario, measure_collective
from weftwork.study.validation.network_fit import P5_FITTED
from weftwork.study.validation.scorecard import Point, Score
from weftwork.topology.build import fabric_of_section
from weftwork.workload.collectives.call import bus_bandwidth_factor
from weftwork.workload.collectives.closed_form import GroupShape, Method, latencies
from weftwork.workload.collectives.figures import CollectiveFigures, collective_figures
from weftwork.workload.collectives.program import program
from weftwork.workload.collectives.tuner import chosen_method

__all__ = ["CurveRow", "Operation", "one_server", "p5", "p5_small", "rows_of", "size_words"]

Operation = Literal["all-reduce", "all-gather", "all-to-all"]

_OPERATIONS: Final[tuple[Operation, ...]] = ("all-reduce", "all-gather", "all-to-all")
_MIB: Final = 1 << 20
_LARGE_BYTES: Final = 256 * _MIB
_SERVER_GPUS: Final = 8
_LEAF_HOSTS: Final = 2  # chosen: one server alone has no fabric
_LEAST_RADIX: Final = 128  # chosen: a leaf of two p5; a rack in one NVLink domain needs more ports, down and up
_JUDGED_GPUS: Final = 64  # after what the network adds was fitted on 16
_AZURE: Final = "Azure AI benchmarking guide"
_CONTRADICTION: Final = (
    "At 64 MiB this server has 203 GB/s. The similar server of Azure, to which a constant was fitted, has 167 GB/s. "
    "The two tables contradict each other by as much as the error of Weftwork there."
)
_P5_NAIVE: Final = "line rate of the NICs"
_P5_SOURCE: Final = "public measurements on AWS p5"
_P5_FIT: Final = "the same fabric with 16 GPUs: latency of a step, flush, cost of a peer, rate of NICs"
_BLIND_NOTE: Final = (
    "A step of LL128 over the network takes less than the 79 us that NCCL assumes for EFA, by a third or more. Rings "
    "in LL128 therefore come out too slow, and more so over more servers."
)
_DIP_NOTE: Final = (
    "The measured curve dips by 8 to 14 % where NCCL's tuner changes from LL128 to Simple, at 256 MiB among 16 GPUs "
    "and at 1 GiB among 64. Weftwork's curve dips there too, since it follows the tuner."
)
_SMALL_NOTE: Final = (
    "The tree of an all-reduce among 64 GPUs up to 112 MiB comes out too fast: pieces of LL128 share the capacity of "
    "a channel, which the program of the tree does not model."
)
_AZURE_FIT: Final = "the curves of one server in the Azure AI benchmarking guide (launch, NVLink)"


@dataclass(frozen=True, kw_only=True, slots=True)
class CurveRow:
    """One size of a published curve.

    Attributes
    ----------
    name : for people
    server : in the catalogue
    operation, gpus, size_bytes : as nccl-tests counts them
    measured_s : its time
    is_calibrated : whether the network has the figures that were fitted on 16 GPUs
    calibration : file of constants of the user's own; empty: none
    """

    name: str
    server: str
    operation: Operation
    gpus: int
    size_bytes: int
    measured_s: float
    is_calibrated: bool = False
    calibration: str = ""

    @property
    def domain_gpus(self) -> int:
        """GPUs of a server."""
        return node(self.server).server.gpus

    @property
    def group(self) -> GroupShape:
        """The ranks of the collective."""
        domain = self.domain_gpus
        return GroupShape(members=self.gpus, per_domain=min(self.gpus, domain), domain_gpus=domain)

    @property
    def method(self) -> Method:
        """The method of NCCL's tuner, with NCCL's figures of the network."""
        return chosen_method(self.operation, self.group, self.size_bytes, self._known_figures)

    @property
    def figures(self) -> CollectiveFigures:
        """Figures of the servers and their network.

        A calibration may have changed them.
        """
        return P5_FITTED.on(self._known_figures) if self.is_calibrated else self._known_figures

    @property
    def _known_figures(self) -> CollectiveFigures:
        """Figures as NCCL knows them.

        A launch of the user's calibration is one of them.
        """
        return calibrated_figures(_figures(self.server), self._own)

    @property
    def _own(self) -> Calibration | None:
        return read_calibration(Path(self.calibration)) if self.calibration else None

    def scenario(self) -> dict[str, Any]:
        """The scenario of the row, as a tree of YAML for `weftwork run`."""
        figures, method = self.figures, self.method
        found = program(method, self.group, self.size_bytes, figures)
        own = latencies(method, self.operation, self.group, self.size_bytes, figures)
        rate_bps = round(float(SERVERS[self.server].value("nic_port_rate_bps")) * figures.network_share)
        scale = latency_scale(self._own)
        hosts = max(_LEAF_HOSTS, -(-self.gpus // self.domain_gpus))
        keys: dict[str, Any] = {
            "operation": self.operation, "algorithm": found.method.algorithm, "inner": found.method.inner,
            "protocol": found.method.protocol, "gpus": self.gpus, "size": f"{self.size_bytes}B",
            "chunks": found.chunks, "least_chunk": _bytes(found.least_chunk_bytes), "round": _bytes(found.round_bytes),
            "base_latency": f"{round(scale * own.base_latency_ps)}ps",
            "step_latency": f"{round(scale * own.step_latency_ps)}ps",
            "local_step_latency": f"{round(scale * own.local_step_latency_ps) + found.hold_ps}ps",
        }  # fmt: skip
        return {
            "schema": SCHEMA,
            "name": f"{self.operation} on {self.server}, {self.name}",
            **({"calibration": self.calibration} if self.calibration else {}),
            "fabric": {
                "topology": "leaf-spine", "node": self.server, "hosts": hosts, "hosts_per_leaf": _LEAF_HOSTS,
                "radix": max(_LEAST_RADIX, 2 * _LEAF_HOSTS * node(self.server).server.nic_ports),
                "cable_length": "20m", "link_rate": f"{rate_bps}bps",
            },
            "transport": {
                "congestion_control": "none", "load_balancing": "switch-spray", "reorder_tolerant": True,
            },
            "collective": {key: value for key, value in keys.items() if value is not None},
            "engine": {"fidelity": "flow"},
        }  # fmt: skip

    def predicted_s(self) -> float:
        """Predicted time by a run of the scenario.

        Raises
        ------
        EngineError : the operation did not end
        """
        scenario = collective_scenario({}, file=None, overrides=_settings(self.scenario()))
        fabric = fabric_of_section(scenario.fabric, directory=Path())
        (found,) = measure_collective(scenario, fabric, [self.size_bytes])
        if found.time_ps is None:
            raise EngineError(
                f"the {self.operation} of {self.size_bytes:,} B among {plural(self.gpus, 'GPU')} did not end"
            )
        return found.time_ps / SECOND_PS

    def naive_s(self) -> float:
        """Time of the naive rule.

        NVLink's signalling rate in one server, all NIC ports between servers.
        """
        bus = float(bus_bandwidth_factor(self.operation, self.gpus))
        if self.gpus <= self.domain_gpus:
            raw_bps = float(GPUS[str(SERVERS[self.server].value("gpu"))].value("scale_up_rate_bps"))
            return self.size_bytes * 8 * bus / raw_bps
        rate_bps = _figures(self.server).network_rate_bps
        if self.operation == "all-to-all":
            return self.size_bytes * 8 * (self.gpus - self.domain_gpus) / self.gpus / rate_bps
        return self.size_bytes * 8 * bus / (rate_bps * self.domain_gpus)

    def point(self) -> Point:
        """Run it, and compare it with the measured time."""
        return Point(
            name=self.name.removeprefix("another "),
            measured_s=self.measured_s,
            predicted_s=self.predicted_s(),
            naive_s=self.naive_s(),
        )


def _bytes(count: int | None) -> str | None:
    return None if count is None else f"{count}B"


def _settings(tree: dict[str, Any]) -> dict[str, str]:
    """Sections of a tree in the form of ``--set``."""
    return {key: json.dumps(value) for key, value in tree.items() if key not in {"schema", "name"}}


def rows_of(key: str) -> tuple[CurveRow, ...]:
    """All rows of a set of the scorecard, from all its curves.

    Parameters
    ----------
    key : such as ``nccl-one-server`` or ``nccl-p5-all-gather``; empty for other sets
    """
    if key == "nccl-one-server":
        return (*_fitted_rows(), *_other_rows())
    if key == "nccl-p5-small":
        return (*_small_rows(is_calibrated=False), *_small_rows(is_calibrated=True))
    for operation in _OPERATIONS:
        if key == f"nccl-p5-{operation}":
            return (*_p5_rows(operation), *_p5_rows(operation, is_calibrated=True))
    return ()


def one_server() -> tuple[Score, ...]:
    """All-reduces of eight GPUs: the fitted curves, and one of another laboratory."""
    fitted, others = ([row.point() for row in rows] for rows in (_fitted_rows(), _other_rows()))
    naive = "NVLink's signalling rate"
    return (
        Score(
            key="nccl-one-server",
            title="All-reduce in one server of 8 A100 or 8 H100, 64 MiB and above",
            role="calibration",
            calibrated_on="these curves, all sizes from 1 KiB",
            source=_AZURE,
            naive=naive,
            tolerance=0.06,
            points=tuple(fitted),
        ),
        Score(
            key="nccl-one-server-blind",
            title="All-reduce of 8 A100 in another laboratory, 64 MiB and above",
            role="blind",
            calibrated_on=_AZURE_FIT,
            source="data set of vTrain (MICRO 2024)",
            naive=naive,
            tolerance=0.04,
            points=tuple(others),
            notes=(_CONTRADICTION,),
        ),
    )


def p5(operation: Operation, *, is_calibrated: bool) -> Score:
    """A curve of AWS p5 at 256 MiB and above.

    Parameters
    ----------
    operation : which
    is_calibrated : whether NICs have the rate that was fitted on 16 GPUs; then 64 GPUs are judged
    """
    points = tuple(row.point() for row in _p5_rows(operation, is_calibrated=is_calibrated))
    words = operation.capitalize()
    notes: tuple[str, ...] = ()
    if operation == "all-gather":
        notes = (_DIP_NOTE,)
    if not is_calibrated and operation != "all-to-all":
        notes = (*notes, _BLIND_NOTE)
    if is_calibrated:
        return Score(
            key=f"nccl-p5-{operation}-64",
            title=f"{words} on AWS p5, 64 GPUs, 256 MiB and above",
            role="blind",
            calibrated_on=_P5_FIT,
            source=_P5_SOURCE,
            naive=_P5_NAIVE,
            tolerance=0.06,
            points=points,
            notes=notes,
        )
    return Score(
        key=f"nccl-p5-{operation}",
        title=f"{words} on AWS p5, 16 and 64 GPUs, 256 MiB and above",
        role="blind",
        calibrated_on=_AZURE_FIT,
        source=_P5_SOURCE,
        naive=_P5_NAIVE,
        tolerance=0.10,
        points=points,
        notes=notes,
    )


def p5_small(*, is_calibrated: bool) -> Score:
    """All three curves of AWS p5 below 256 MiB.

    Parameters
    ----------
    is_calibrated : as for `p5`
    """
    points = tuple(row.point() for row in _small_rows(is_calibrated=is_calibrated))
    return Score(
        key="nccl-p5-small-64" if is_calibrated else "nccl-p5-small",
        title=f"Collectives on AWS p5, {'64' if is_calibrated else '16 and 64'} GPUs, 32 to 128 MiB",
        role="blind",
        calibrated_on=_P5_FIT if is_calibrated else _AZURE_FIT,
        source=_P5_SOURCE,
        naive=_P5_NAIVE,
        tolerance=0.15,
        points=points,
        notes=(_SMALL_NOTE,) if is_calibrated else (_BLIND_NOTE, _SMALL_NOTE),
    )


def _group(gpus: int) -> GroupShape:
    return GroupShape(members=gpus, per_domain=min(gpus, _SERVER_GPUS), domain_gpus=_SERVER_GPUS)


def _figures(server: str) -> CollectiveFigures:
    model = node(server)
    return collective_figures(model.server, nic_port_rate_bps=model.nic_port_rate_bps)


def _fitted_rows() -> list[CurveRow]:
    return [
        CurveRow(
            name=f"{gpu.upper()}, {size_words(row['size_bytes'])}",
            server=f"azure-nd-{gpu}-{version}",
            operation="all-reduce",
            gpus=_SERVER_GPUS,
            size_bytes=row["size_bytes"],
            measured_s=row["size_bytes"] * 1.75 / row[f"{gpu}_bus_bandwidth_gbyte_per_s"] / 1e9,
        )
        for gpu, version in (("a100", "v4"), ("h100", "v5"))
        for row in measured("nccl-all-reduce-one-node").to_pylist()
        if row["size_bytes"] >= 64 * _MIB
    ]


def _other_rows() -> list[CurveRow]:
    return [
        CurveRow(
            name=f"another A100, {size_words(row['size_bytes'])}",
            server="azure-nd-a100-v4",
            operation="all-reduce",
            gpus=_SERVER_GPUS,
            size_bytes=row["size_bytes"],
            measured_s=row["time_ns"] / 1e9,
        )
        for row in measured("nccl-all-reduce-a100-nvlink").to_pylist()
        if row["size_bytes"] >= 64 * _MIB
    ]


def _p5_rows(operation: Operation, *, is_calibrated: bool = False, is_small: bool = False) -> list[CurveRow]:
    return [
        CurveRow(
            name=f"{plural(row['gpus'], 'GPU')}, {size_words(row['size_bytes'])}",
            server="p5",
            operation=operation,
            gpus=row["gpus"],
            size_bytes=row["size_bytes"],
            measured_s=_taken_s(row),
            is_calibrated=is_calibrated,
        )
        for row in _p5_table(operation)
        if (row["size_bytes"] < _LARGE_BYTES) == is_small and (row["gpus"] == _JUDGED_GPUS or not is_calibrated)
    ]


def _small_rows(*, is_calibrated: bool) -> list[CurveRow]:
    return [
        replace(row, name=f"{operation}, {row.name}")
        for operation in _OPERATIONS
        for row in _p5_rows(operation, is_calibrated=is_calibrated, is_small=True)
    ]


def _p5_table(operation: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = measured(f"nccl-{operation}-h100-efa").to_pylist()
    return found


def _taken_s(row: dict[str, Any]) -> float:
    return float(row["size_bytes"] / row["algorithm_bandwidth_gbyte_per_s"] / 1e9)


def size_words(size_bytes: int) -> str:
    """A size in whole KiB, MiB or GiB, else in bytes."""
    for unit, name in ((1 << 30, "GiB"), (_MIB, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= unit and size_bytes % unit == 0:
            return f"{size_bytes // unit} {name}"
    return f"{size_bytes:,} B"
