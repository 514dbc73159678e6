"""One collective at several sizes on one fabric, like nccl-tests.

The scenario gives fabric, transport, faults and seed; each size is a run of its own, on a fabric that is built once.
Source of the columns: nccl-tests, README.md and doc/PERFORMANCE.md.
Leaves out: run folders, which `weftwork.study.record.run` writes for one size.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import harmonic_mean
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.user_code import UserCode
from weftwork.hardware.catalogue import node, nodes
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.scenario import load, loads
from weftwork.study.prepare.calibrated import calibration_of
from weftwork.study.prepare.collective import method_used
from weftwork.study.prepare.prepare import check_parameters, check_transport, known_names, prepare
from weftwork.study.record.interrupts import interrupts
from weftwork.study.record.road import execute, results
from weftwork.topology.from_file import FABRIC_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.result import Quantity
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.run.execute import Progress

__all__ = ["DEFAULT_NODE", "Measured", "collective_scenario", "measure_collective"]

DEFAULT_NODE: Final = "dgx-h100"  # chosen: the server of most published nccl-tests curves
DEFAULT_SWITCH: Final = "tomahawk-5"  # chosen: 128 ports of 400 Gb/s, so that two tiers reach 8,192 GPUs


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """The result at one size.

    Parameters
    ----------
    size_bytes : as nccl-tests counts it
    algorithm, protocol : by which it was done; of ``auto`` what it took at this size
    time_ps : from the first rank that begins to the last that has its result; None where it did not end
    algorithm_bandwidth_bps, bus_bandwidth_bps : as nccl-tests defines them; None where there is no time
    packet_hops, wall_s : what the simulation cost
    low_ps, high_ps : interval of the time by the calibration of the scenario; None without one, or without a closed
        form
    """

    size_bytes: int
    algorithm: str
    protocol: str
    time_ps: int | None
    algorithm_bandwidth_bps: float | None
    bus_bandwidth_bps: float | None
    packet_hops: int
    wall_s: float
    low_ps: int | None = None
    high_ps: int | None = None


def collective_scenario(
    collective: Mapping[str, Any],
    *,
    file: Path | None,
    overrides: Mapping[str, str] | None = None,
    user_code: bool = True,
) -> Scenario:
    """Make the scenario of a collective from a fabric.

    Parameters
    ----------
    collective : keys of the section ``collective``, in place of the file's workload
    file : a scenario, or a fabric as JSON or GraphML; None: a rail-optimized fabric of as many H100 servers as it takes
    overrides : keys of the scenario set from the command line
    user_code : as in `read_scenario`

    Raises
    ------
    ConfigError : with all mistakes
    """
    given = {"collective": json.dumps(dict(collective)), **(overrides or {})}
    known: dict[str, Any] = {"known": known_names(), "check_parameters": check_parameters, "nodes": nodes()}
    known["check_transport"] = check_transport
    known["user_code"] = UserCode.RUN if user_code else UserCode.REFUSED
    if file is not None and file.suffix not in FABRIC_FILES:
        return load(file, {"traffic": "null", **given}, **known)
    fabric: dict[str, Any] = {"topology": "rail-optimized", "node": DEFAULT_NODE, "switch": DEFAULT_SWITCH}
    if file is not None:
        fabric = {"file": str(file.absolute())}
    elif "gpus" in collective:
        is_usual = not any(key.startswith("fabric.node") for key in overrides or {})
        each = node(DEFAULT_NODE).server.gpus if is_usual else 1  # whole servers, of which some GPUs may take no part
        fabric["gpus"] = -(-int(collective["gpus"]) // each) * each
    text = json.dumps({"schema": SCHEMA, "fabric": fabric})
    return loads(text, "command line", given, name="collective", **known)


def measure_collective(
    scenario: Scenario,
    fabric: Fabric,
    sizes_bytes: Sequence[int],
    on_progress: Callable[[Progress], None] | None = None,
) -> Iterator[Measured]:
    """Run the collective of a scenario at each size.

    Parameters
    ----------
    scenario : from `collective_scenario`
    fabric : that `prepare` has built for it
    sizes_bytes : each takes the place of ``collective.size``
    on_progress : called about ten times a second

    Yields
    ------
    one `Measured` for each size, in order; fewer after Ctrl-C

    Raises
    ------
    ConfigError : the scenario cannot run
    """
    if not scenario.workload_kind.is_collective:
        raise ConfigError(scenario.source, [Mistake(path="collective", text="missing, wanted the operation")])
    section = scenario.collective_section
    with interrupts() as interrupt:

        def told(now: Progress) -> None:
            interrupt.keep()
            if on_progress is not None:
                on_progress(now)
            interrupt.check()

        for size_bytes in sizes_bytes:
            clock = time.perf_counter()
            sized = section.model_copy(update={"size_bytes": size_bytes})
            try:
                prepared = prepare(scenario.model_copy(update={"collective": sized}), fabric=fabric)
                execution = execute(prepared, told)
                interrupt.check()
                interrupt.let_go()
                found = results(prepared, execution)
            except KeyboardInterrupt:
                return
            times = found.tables["collectives"].to_pydict()
            low_ps, high_ps = (_whole(found.summary.get(f"collective_duration_{end}_ps")) for end in ("low", "high"))
            algorithm, protocol = method_used(
                sized, prepared.fabric, seed=scenario.engine.seed, calibration=calibration_of(scenario)
            )
            yield Measured(
                size_bytes=size_bytes,
                algorithm=algorithm,
                protocol=protocol,
                time_ps=_mean(times["duration_ps"]),
                algorithm_bandwidth_bps=_at_mean_time(times["algorithm_bandwidth_bps"]),
                bus_bandwidth_bps=_at_mean_time(times["bus_bandwidth_bps"]),
                packet_hops=execution.outcome.counters["packet_hops"],
                wall_s=time.perf_counter() - clock,
                low_ps=low_ps,
                high_ps=high_ps,
            )


def _whole(number: Quantity | None) -> int | None:
    return None if number is None or number.value is None else round(number.value)


def _mean(values: list[int | None]) -> int | None:
    """Mean time over the repetitions; None if one did not end."""
    known = [value for value in values if value is not None]
    return sum(known) // len(known) if known and len(known) == len(values) else None


def _at_mean_time(values: list[float | None]) -> float | None:
    """Bandwidth at the mean time, as nccl-tests defines it.

    It is the harmonic mean; None if a repetition has none.
    """
    known = [value for value in values if value is not None]
    return harmonic_mean(known) if known and len(known) == len(values) else None
