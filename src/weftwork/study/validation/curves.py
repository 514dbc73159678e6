"""Published curves of nccl-tests as scores: one server, and AWS p5 over the network.

Each row is a scenario with a section ``collective`` on the servers of the table, which `weftwork collective` runs too,
here on the flow engine. Its algorithm and protocol are those that are the fastest in closed form
(`weftwork.workload.collectives.closed_form`), since NCCL takes the fastest and the tables do not say which it was. One
server: the figures are fitted on the Azure tables. AWS p5: first blind, then on 64 GPUs with the rate of NICs that was
fitted on 16. The naive rule is line rate: NVLink's signalling rate in one server, all NIC ports between servers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import EngineError
from weftwork.data.measured import measured
from weftwork.hardware.catalogue import GPUS, SERVERS, node
from weftwork.study.run.collective import collective_scenario, measure_collective
from weftwork.study.validation.scorecard import Point, Score
from weftwork.topology.build import fabric_of_section
from weftwork.workload.collectives.call import bus_bandwidth_factor
from weftwork.workload.collectives.closed_form import Group, Way, fastest
from weftwork.workload.collectives.figures import CollectiveFigures, collective_figures

__all__ = ["P5_NIC_SHARE", "fit_p5", "keys_of", "one_server", "p5"]

Operation = Literal["all-reduce", "all-gather", "all-to-all"]

_MIB: Final = 1 << 20
_SERVER_GPUS: Final = 8
# fit_p5() on 16 GPUs, all sizes of all three operations; a test fits it again
P5_NIC_SHARE: Final = 0.776

_AZURE: Final = "Azure AI benchmarking guide"
_CONTRADICTION: Final = (
    "At 64 MiB this server has 203 GB/s and Azure's, the one that was fitted, 167: the two tables contradict each "
    "other by as much as Weftwork is off there."
)
_P5_NAIVE: Final = "line rate of the NICs"
_AZURE_FIT: Final = "the curves of one server in the Azure AI benchmarking guide (launch, NVLink)"


def one_server() -> tuple[Score, ...]:
    """All-reduces of eight GPUs: the curves that were fitted, and one of another laboratory."""
    fitted = [
        _one_server_point(f"{gpu.upper()}, {_size(row['size_bytes'])}", f"azure-nd-{gpu}-{version}", row["size_bytes"],
                          row["size_bytes"] * 1.75 / row[f"{gpu}_bus_bandwidth_gbyte_per_s"] / 1e9)
        for gpu, version in (("a100", "v4"), ("h100", "v5"))
        for row in measured("nccl-all-reduce-one-node").to_pylist()
        if row["size_bytes"] >= 64 * _MIB
    ]  # fmt: skip
    others = [
        _one_server_point(
            f"A100, {_size(row['size_bytes'])}", "azure-nd-a100-v4", row["size_bytes"], row["time_ns"] / 1e9
        )
        for row in measured("nccl-all-reduce-a100-nvlink").to_pylist()
        if row["size_bytes"] >= 64 * _MIB
    ]
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
    points = tuple(
        _p5_point(operation, row, P5_NIC_SHARE if is_calibrated else 1.0)
        for row in _p5_rows(operation)
        if row["size_bytes"] >= 256 * _MIB and (row["gpus"] == 64 or not is_calibrated)
    )
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
    rows = [
        (operation, row)
        for operation in ("all-reduce", "all-gather", "all-to-all")
        for row in _p5_rows(operation)
        if row["gpus"] == 16
    ]

    def error(share: float) -> float:
        figures = _figures("p5")
        figures = replace(figures, network_rate_bps=round(figures.network_rate_bps * share))
        errors = [
            abs(_fastest_ps(operation, row["gpus"], row["size_bytes"], figures) / SECOND_PS / _taken_s(row) - 1)
            for operation, row in rows
        ]
        return float(np.mean(errors))

    return min((thousandths / 1000 for thousandths in range(300, 1001)), key=error)  # the error has several dips


def keys_of(
    server: str, operation: str, gpus: int, size_bytes: int, *, nic_share: float = 1.0
) -> tuple[dict[str, Any], dict[str, str]]:
    """The scenario of a row, as keys of ``collective`` and of the rest.

    Parameters
    ----------
    server : in the catalogue
    operation, gpus, size_bytes : as nccl-tests counts them
    nic_share : of the rate of the NICs' ports

    Returns
    -------
    keys of the section ``collective``, and dotted keys of other sections with their YAML text
    """
    way = _way(operation, gpus, size_bytes, _figures(server))
    collective: dict[str, Any] = {
        "operation": operation,
        "algorithm": way.algorithm,
        "protocol": way.protocol,
        "gpus": gpus,
        "size": size_bytes,
        **({} if way.inner is None else {"inner": way.inner}),
    }
    rate_bps = round(float(SERVERS[server].value("nic_port_rate_bps")) * nic_share)
    hosts = max(2, gpus // _SERVER_GPUS)  # one server alone has no fabric
    fabric = f"{{topology: leaf-spine, node: {server}, hosts: {hosts}, hosts_per_leaf: 2, radix: 128, cable_length: 20m"
    return collective, {
        "fabric": f"{fabric}, link_rate: {rate_bps}bps}}",
        "transport": "{congestion_control: none, load_balancing: switch-spray, reorder_tolerant: true}",
        "engine": "{fidelity: flow}",
    }


def _figures(server: str) -> CollectiveFigures:
    model = node(server)
    return collective_figures(model.server, nic_port_rate_bps=model.nic_port_rate_bps)


def _group(gpus: int) -> Group:
    return Group(members=gpus, per_domain=min(gpus, _SERVER_GPUS), domain_gpus=_SERVER_GPUS)


def _fastest_ps(operation: str, gpus: int, size_bytes: int, figures: CollectiveFigures) -> float:
    return fastest(operation, _group(gpus), size_bytes, figures).time_ps


def _way(operation: str, gpus: int, size_bytes: int, figures: CollectiveFigures) -> Way:
    return fastest(operation, _group(gpus), size_bytes, figures).way


def _predicted_s(server: str, operation: str, gpus: int, size_bytes: int, nic_share: float = 1.0) -> float:
    keys, others = keys_of(server, operation, gpus, size_bytes, nic_share=nic_share)
    scenario = collective_scenario(keys, file=None, overrides=others)
    fabric = fabric_of_section(scenario.fabric, directory=Path())
    (found,) = measure_collective(scenario, fabric, [size_bytes])
    if found.time_ps is None:
        raise EngineError(f"the {operation} of {size_bytes:,} B among {gpus} GPUs did not end")
    return found.time_ps / SECOND_PS


def _one_server_point(name: str, server: str, size_bytes: int, taken_s: float) -> Point:
    raw_bps = GPUS["a100" if "a100" in server else "h100"].value("scale_up_rate_bps")
    return Point(
        name=name,
        measured_s=taken_s,
        predicted_s=_predicted_s(server, "all-reduce", _SERVER_GPUS, size_bytes),
        naive_s=size_bytes * 8 * float(bus_bandwidth_factor("all-reduce", _SERVER_GPUS)) / raw_bps,
    )


def _p5_point(operation: Operation, row: dict[str, Any], nic_share: float) -> Point:
    gpus, size_bytes = row["gpus"], row["size_bytes"]
    rate_bps = _figures("p5").network_rate_bps
    if operation == "all-to-all":
        naive_s = size_bytes * 8 * (gpus - _SERVER_GPUS) / gpus / rate_bps
    else:
        naive_s = size_bytes * 8 * float(bus_bandwidth_factor(operation, gpus)) / (rate_bps * _SERVER_GPUS)
    return Point(
        name=f"{gpus} GPUs, {_size(size_bytes)}",
        measured_s=_taken_s(row),
        predicted_s=_predicted_s("p5", operation, gpus, size_bytes, nic_share),
        naive_s=naive_s,
    )


def _p5_rows(operation: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = measured(f"nccl-{operation}-h100-efa").to_pylist()
    return found


def _taken_s(row: dict[str, Any]) -> float:
    return float(row["size_bytes"] / row["algorithm_bandwidth_gbyte_per_s"] / 1e9)


def _size(size_bytes: int) -> str:
    mib = size_bytes // _MIB
    return f"{mib // 1024} GiB" if mib >= 1024 else f"{mib} MiB"
