"""A scenario with the constants of a calibration.

They replace Weftwork's, for training jobs and collectives.

A key that the scenario itself gives goes before the calibration's. The efficiency of the network is, in a training job,
that of its collectives; in a scenario of one collective every packet carries as many bytes more beside its data, so
that packets, flows and the closed form obey it alike. Source: docs/models/calibration.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.errors import ConfigError
from weftwork.spec.calibration import CONSTANTS, Calibration, read_calibration

if TYPE_CHECKING:
    from weftwork.spec.scenario.devices import DeviceChoice
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.training import Software
    from weftwork.spec.transport import Transport
    from weftwork.workload.collectives.figures import CollectiveFigures

__all__ = [
    "calibrated_figures",
    "calibrated_software",
    "calibrated_transport",
    "calibration_caveats",
    "calibration_of",
    "latency_scale",
    "network_efficiency",
]

_US_PS: Final = 1_000_000
# Constants of `Software` by the name of the field, with what makes a field of them
_SOFTWARE: Final[Mapping[str, tuple[str, Callable[[float], Any]]]] = {
    "matmul_efficiency": ("matmul_efficiency", float),
    "fp8_efficiency": ("fp8_efficiency", float),
    "kernel_tail_us": ("kernel_tail_ps", lambda us: round(us * _US_PS)),
    "launch_us": ("launch_ps", lambda us: round(us * _US_PS)),
    "network_efficiency": ("network_efficiency", float),
    "latency_scale": ("latency_scale", float),
}


def calibration_of(scenario: Scenario) -> Calibration | None:
    """The calibration of a scenario; None without one.

    Raises
    ------
    ConfigError : the file is wrong, or none of its constants means anything for the workload
    """
    if scenario.calibration is None:
        return None
    found = read_calibration(Path(scenario.calibration))
    workload = scenario.workload_kind.calibrated_as
    used = [name for name in found.values if workload in CONSTANTS[name].workloads]
    if not scenario.has_library_latencies:
        used = [name for name in used if name == "network_efficiency"]
    if not used:
        what = scenario.workload_kind.noun
        if not scenario.has_library_latencies:
            what = "a collective with protocol none"
        text = f"changes nothing: {what} uses none of the constants of {found.file} ({', '.join(found.values)})"
        raise ConfigError(scenario.source, [scenario.mistake("calibration", text)])
    return found


def calibrated_software(made: Software, choice: DeviceChoice, calibration: Calibration | None) -> Software:
    """Software with the constants of a calibration.

    Keys that the scenario sets stay.

    Parameters
    ----------
    made : resolved from the scenario
    choice : of the scenario
    calibration : None: none
    """
    if calibration is None:
        return made
    changed = {
        field: make(calibration.values[name])
        for name, (field, make) in _SOFTWARE.items()
        if name in calibration.values and field not in choice.fields
    }
    return made.model_copy(update=changed)


def calibrated_figures(figures: CollectiveFigures, calibration: Calibration | None) -> CollectiveFigures:
    """Figures of collectives with the launch of a calibration.

    Parameters
    ----------
    figures : of the servers
    calibration : None: none
    """
    if calibration is None or "collective_launch_us" not in calibration.values:
        return figures
    return replace(figures, launch_ps=round(calibration.values["collective_launch_us"] * _US_PS))


def latency_scale(calibration: Calibration | None) -> float:
    """Latency factor of a scenario's collective."""
    return 1.0 if calibration is None else calibration.values.get("latency_scale", 1.0)


def network_efficiency(calibration: Calibration | None) -> float:
    """Share of a NIC's rate that a scenario's collective reaches."""
    return 1.0 if calibration is None else calibration.values.get("network_efficiency", 1.0)


def calibrated_transport(transport: Transport, efficiency: float) -> Transport:
    """A transport whose full packets carry a smaller share of data.

    The share is reduced by a factor.

    Parameters
    ----------
    transport : resolved
    efficiency : above 0; 1 changes nothing
    """
    frame_bytes = transport.mtu_bytes / transport.payload_share
    extra = ceil(frame_bytes * (1 / efficiency - 1))
    return transport.model_copy(update={"data_overhead_bytes": transport.data_overhead_bytes + extra})


def calibration_caveats(scenario: Scenario, calibration: Calibration | None) -> dict[str, Caveat]:
    """Notes on the calibration: its rows, and constants without effect here.

    Parameters
    ----------
    scenario : that names it
    calibration : None: none
    """
    if calibration is None:
        return {}
    workload = scenario.workload_kind.calibrated_as
    constants = calibration.constants_of(workload)
    words = f"constants of {Path(calibration.file).name}, fitted on {calibration.words}: {constants}"
    found = [Caveat(subject="calibration", kind="note", text=words)]
    fields = {name for section in scenario.trainings for name in section.software.fields}
    bare = not scenario.has_library_latencies
    for name in calibration.values:
        text = ""
        if workload not in CONSTANTS[name].workloads:
            text = f"changes nothing: a {workload} has no such constant"
        elif name in _SOFTWARE and _SOFTWARE[name][0] in fields:
            text = f"changes nothing for a job with {CONSTANTS[name].key}, which has priority"
        elif bare and name != "network_efficiency":
            text = "changes nothing: protocol none has no latencies"
        if text:
            found.append(Caveat(subject=f"calibration.{name}", kind="note", text=text))
    return caveats_by_subject(found)
