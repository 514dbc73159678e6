"""Published curves of nccl-tests as scores: one server, and AWS p5 over the network.

Each row is a scenario with a section ``collective`` on the servers of the table, which `weftwork collective` runs too,
here on the flow engine. Its algorithm and protocol are those that are the fastest in closed form
(`weftwork.workload.collectives.closed_form`), since NCCL takes the fastest and the tables do not say which it was. One
server: the figures are fitted on the Azure tables. AWS p5: first blind, then on 64 GPUs with the rate of NICs that was
fitted on 16. The naive rule is line rate: NVLink's signalling rate in one server, all NIC ports between servers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import EngineError
from weftwork.data.measured import measured
from weftwork.hardware.catalogue import GPUS, SERVERS, node
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.study.run.collective import collective_scenario, measure_collective
from weftwork.study.validation.scorecard import Point, Score
from weftwork.topology.build import fabric_of_section
from weftwork.workload.collectives.call import bus_bandwidth_factor
from weftwork.workload.collectives.closed_form import GroupShape, Method, fastest
from weftwork.workload.collectives.figures import CollectiveFigures, collective_figures

__all__ = ["P5_NIC_SHARE", "CurveRow", "fit_p5", "one_server", "p5", "rows_of"]

Operation = Literal["all-reduce", "all-gather", "all-to-all"]

_MIB: Final = 1 << 20
_SERVER_GPUS: Final = 8
_JUDGED_GPUS: Final = 64  # after the rate of NICs was fitted on 16
# fit_p5() on 16 GPUs, all sizes of all three operations; a test fits it again
P5_NIC_SHARE: Final = 0.776

_AZURE: Final = "Azure AI benchmarking guide"
_CONTRADICTION: Final = (
    "At 64 MiB this server has 203 GB/s and Azure's, the one that was fitted, 167: the two tables contradict each "
    "other by as much as Weftwork is off there."
)
_P5_NAIVE: Final = "line rate of the NICs"
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
    nic_share : of the rate of the NICs' ports
    """

    name: str
    server: str
    operation: Operation
    gpus: int
    size_bytes: int
    measured_s: float
    nic_share: float = 1.0

    @property
    def method(self) -> Method:
        """The fastest in closed form."""
        group = GroupShape(members=self.gpus, per_domain=min(self.gpus, _SERVER_GPUS), domain_gpus=_SERVER_GPUS)
        return fastest(self.operation, group, self.size_bytes, _figures(self.server)).method

    def scenario(self) -> dict[str, Any]:
        """The scenario of the row, as the tree of a YAML file that `weftwork run` takes."""
        method = self.method
        rate_bps = round(float(SERVERS[self.server].value("nic_port_rate_bps")) * self.nic_share)
        hosts = max(2, self.gpus // _SERVER_GPUS)  # one server alone has no fabric
        inner = {} if method.inner is None else {"inner": method.inner}
        return {
            "schema": SCHEMA,
            "name": f"{self.operation} on {self.server}, {self.name}",
            "fabric": {
                "topology": "leaf-spine", "node": self.server, "hosts": hosts, "hosts_per_leaf": 2, "radix": 128,
                "cable_length": "20m", "link_rate": f"{rate_bps}bps",
            },
            "transport": {
                "congestion_control": "none", "load_balancing": "switch-spray", "reorder_tolerant": True,
            },
            "collective": {
                "operation": self.operation, "algorithm": method.algorithm, **inner, "protocol": method.protocol,
                "gpus": self.gpus, "size": f"{self.size_bytes}B",
            },
            "engine": {"fidelity": "flow"},
        }  # fmt: skip

    def predicted_s(self) -> float:
        """What a run of the scenario says.

        Raises
        ------
        EngineError : the operation did not end
        """
        scenario = collective_scenario({}, file=None, overrides=_settings(self.scenario()))
        fabric = fabric_of_section(scenario.fabric, directory=Path())
        (found,) = measure_collective(scenario, fabric, [self.size_bytes])
        if found.time_ps is None:
            raise EngineError(f"the {self.operation} of {self.size_bytes:,} B among {self.gpus} GPUs did not end")
        return found.time_ps / SECOND_PS


def _settings(tree: dict[str, Any]) -> dict[str, str]:
    """Sections of a tree as ``--set`` takes them."""
    return {key: json.dumps(value) for key, value in tree.items() if key not in {"schema", "name"}}


def rows_of(key: str) -> tuple[CurveRow, ...]:
    """All rows of a set of the scorecard, those of all its curves.

    Parameters
    ----------
    key : such as ``nccl-one-server`` or ``nccl-p5-all-gather``; empty for other sets
    """
    if key == "nccl-one-server":
        return (*_fitted_rows(), *_other_rows())
    operations: tuple[Operation, ...] = ("all-reduce", "all-gather", "all-to-all")
    for operation in operations:
        if key == f"nccl-p5-{operation}":
            return (*_p5_rows(operation), *_p5_rows(operation, is_calibrated=True))
    return ()


def one_server() -> tuple[Score, ...]:
    """All-reduces of eight GPUs: the curves that were fitted, and one of another laboratory."""
    fitted, others = ([_one_server_point(row) for row in rows] for rows in (_fitted_rows(), _other_rows()))
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
            tolerance=0.06,
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
    points = tuple(_p5_point(row) for row in _p5_rows(operation, is_calibrated=is_calibrated))
    words = operation.capitalize()
    notes: tuple[str, ...] = ()
    if operation == "all-gather":
        notes = ("The measured curve dips by 8 to 14 % between 256 MiB and 1 GiB; nothing smooth follows it.",)
    if is_calibrated:
        return Score(
            key=f"nccl-p5-{operation}-64",
            title=f"{words} on AWS p5, 64 GPUs, 256 MiB and above",
            role="blind",
            calibrated_on="the same fabric with 16 GPUs: the rate of NICs",
            source="public measurements on AWS p5",
            naive=_P5_NAIVE,
            tolerance=0.10,
            points=points,
            notes=notes,
        )
    return Score(
        key=f"nccl-p5-{operation}",
        title=f"{words} on AWS p5, 16 and 64 GPUs, 256 MiB and above",
        role="blind",
        calibrated_on=_AZURE_FIT,
        source="public measurements on AWS p5",
        naive=_P5_NAIVE,
        tolerance=0.20,
        points=points,
        notes=notes,
    )


def fit_p5() -> float:
    """Fit the share of their rate that NICs reach on 16 GPUs, by the least mean absolute error of all rows.

    The closed form is fitted, which is fast and within some per cent of the runs.
    """
    group = GroupShape(members=16, per_domain=_SERVER_GPUS, domain_gpus=_SERVER_GPUS)
    rows = [
        (operation, row["size_bytes"], _taken_s(row))
        for operation in ("all-reduce", "all-gather", "all-to-all")
        for row in _p5_table(operation)
        if row["gpus"] == group.members
    ]

    def error(share: float) -> float:
        figures = _figures("p5")
        figures = replace(figures, network_rate_bps=round(figures.network_rate_bps * share))
        errors = [
            abs(fastest(operation, group, size_bytes, figures).time_ps / SECOND_PS / taken_s - 1)
            for operation, size_bytes, taken_s in rows
        ]
        return float(np.mean(errors))

    return min((thousandths / 1000 for thousandths in range(300, 1001)), key=error)  # the error has several dips


def _figures(server: str) -> CollectiveFigures:
    model = node(server)
    return collective_figures(model.server, nic_port_rate_bps=model.nic_port_rate_bps)


def _fitted_rows() -> list[CurveRow]:
    return [
        CurveRow(
            name=f"{gpu.upper()}, {_size(row['size_bytes'])}",
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
            name=f"another A100, {_size(row['size_bytes'])}",
            server="azure-nd-a100-v4",
            operation="all-reduce",
            gpus=_SERVER_GPUS,
            size_bytes=row["size_bytes"],
            measured_s=row["time_ns"] / 1e9,
        )
        for row in measured("nccl-all-reduce-a100-nvlink").to_pylist()
        if row["size_bytes"] >= 64 * _MIB
    ]


def _p5_rows(operation: Operation, *, is_calibrated: bool = False) -> list[CurveRow]:
    return [
        CurveRow(
            name=f"{row['gpus']} GPUs, {_size(row['size_bytes'])}",
            server="p5",
            operation=operation,
            gpus=row["gpus"],
            size_bytes=row["size_bytes"],
            measured_s=_taken_s(row),
            nic_share=P5_NIC_SHARE if is_calibrated else 1.0,
        )
        for row in _p5_table(operation)
        if row["size_bytes"] >= 256 * _MIB and (row["gpus"] == _JUDGED_GPUS or not is_calibrated)
    ]


def _one_server_point(row: CurveRow) -> Point:
    raw_bps = GPUS["a100" if "a100" in row.server else "h100"].value("scale_up_rate_bps")
    bus = float(bus_bandwidth_factor(row.operation, row.gpus))
    return Point(
        name=row.name.removeprefix("another "),
        measured_s=row.measured_s,
        predicted_s=row.predicted_s(),
        naive_s=row.size_bytes * 8 * bus / raw_bps,
    )


def _p5_point(row: CurveRow) -> Point:
    rate_bps = _figures("p5").network_rate_bps
    if row.operation == "all-to-all":
        naive_s = row.size_bytes * 8 * (row.gpus - _SERVER_GPUS) / row.gpus / rate_bps
    else:
        bus = float(bus_bandwidth_factor(row.operation, row.gpus))
        naive_s = row.size_bytes * 8 * bus / (rate_bps * _SERVER_GPUS)
    return Point(name=row.name, measured_s=row.measured_s, predicted_s=row.predicted_s(), naive_s=naive_s)


def _p5_table(operation: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = measured(f"nccl-{operation}-h100-efa").to_pylist()
    return found


def _taken_s(row: dict[str, Any]) -> float:
    return float(row["size_bytes"] / row["algorithm_bandwidth_gbyte_per_s"] / 1e9)


def _size(size_bytes: int) -> str:
    mib = size_bytes // _MIB
    return f"{mib // 1024} GiB" if mib >= 1024 else f"{mib} MiB"
