"""Suspects for the time of a run.

Here are those that the scenario or the fabric names.

A suspect is something without which the run can be simulated again. Those that the scenario names come first: faults,
slow GPUs, other jobs, devices that are slower than their peers, stages with too much work. Others are suspects only
where the run recorded that they were at work (`docs/models/answer.md`, section Suspects).
Leaves out: suspects that a record of the run makes (`weftwork.study.answer.recorded_suspects`), and what each of them
cost (`weftwork.study.answer.answer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.base.units import DURATION, RATE, format_quantity
from weftwork.engine.flow.flow_input import FlowInput
from weftwork.study.answer.measure import computed_ps
from weftwork.study.answer.recorded_suspects import NO_OVERSUBSCRIPTION, recorded_suspects
from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from weftwork.spec.answer import CulpritKind
    from weftwork.spec.scenario.faults import FaultSection
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["ALONE", "NO_OVERSUBSCRIPTION", "fault_suspects", "suspects"]

ALONE: Final = "alone"
_FEW: Final = 0.1  # chosen: of the links or NICs of a tier; where more of them differ, the fabric is built like that
_UNEVEN: Final = 1.02  # chosen: times the work of a mean stage; less costs less than an answer tells


def suspects(prepared: Prepared, execution: Execution) -> list[Suspect]:
    """List the suspects of a finished run, the likeliest first.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    """
    return [
        *fault_suspects(prepared),
        *_stragglers(prepared),
        *_neighbours(prepared),
        *_unlike_peers(prepared),
        *_stages(prepared),
        *recorded_suspects(prepared, execution),
    ]


def fault_suspects(prepared: Prepared) -> Iterator[Suspect]:
    """One suspect for each place with a fault.

    The event that ends a fault belongs to the same suspect.

    Parameters
    ----------
    prepared : what was run
    """
    places: dict[tuple[str, str], list[int]] = {}
    for index, fault in enumerate(prepared.scenario.faults):
        named = ((kind, name) for kind in _PLACES if (name := getattr(fault, kind)) is not None)
        kind, name = next(named, ("event", "optical switches"))
        places.setdefault((kind, name), []).append(index)
    for (kind, name), indices in places.items():
        gone = tuple(prepared.scenario.faults[index] for index in indices)
        first = prepared.scenario.faults[indices[0]]
        mine = _REWIRED if kind == "event" else ()
        last_ps = [fault.at_ps for fault in prepared.faults if fault.where == name or fault.event in mine]
        yield Suspect(
            kind=_PLACES.get(kind, "fault"),
            name=name,
            key=f"faults.{indices[0]}",
            text=_happened(first, has_more=len(indices) > 1),
            change=changed(_without_faults, gone),
            start_ps=first.at_ps,
            end_ps=max(last_ps) if len(last_ps) > 1 else None,
            lasts_ps=_lasts_ps(prepared, [prepared.scenario.faults[index] for index in indices]),
        )


def _without_faults(prepared: Prepared, gone: Sequence[FaultSection]) -> Prepared:
    """The run without some of its faults."""
    rest = tuple(fault for fault in prepared.scenario.faults if fault not in gone)
    return what_if.with_section(prepared, faults=rest)


def _lasts_ps(prepared: Prepared, faults: Sequence[FaultSection]) -> int | None:
    """Time for which the faults of a place delay the run.

    A link that is down counts until routes or NICs avoid it.
    """
    total = 0
    for fault in faults:
        turns = fault.times or 1
        if fault.for_ps is not None:
            total += turns * fault.for_ps
        elif fault.event == "rewire":
            total += (fault.switching_time_ps or 0) + (fault.bring_up_ps or 0)
            total += prepared.scenario.fabric.reconvergence_delay_ps
        elif fault.event == "down":
            section = prepared.scenario.fabric
            total += turns * max(section.reconvergence_delay_ps, section.failover_delay_ps)
        elif fault.event != "up":
            return None
    return total


_PLACES: Final[dict[str, CulpritKind]] = {"link": "link", "switch": "switch", "nic": "nic"}
_REWIRED: Final = ("rewire", "rewire ends")


def _happened(fault: FaultSection, *, has_more: bool) -> str:
    at = f"from {format_quantity(DURATION, fault.at_ps)} on"
    left = f"{100 * fault.fraction:g} %" if fault.fraction is not None else ""
    if fault.rate_bps is not None:
        left = format_quantity(RATE, fault.rate_bps)
    text = {
        "down": "is down",
        "up": "comes up",
        "degrade": f"has {left} of its rate",
        "lossy": f"loses {100 * (fault.loss or 0):g} % of its packets",
        "rewire": "change circuits",
        "slow": f"has its PCIe at {left}{' of its rate' if fault.rate_bps is None else ''}",
    }[fault.event]
    if fault.times and fault.times > 1:
        text = f"{'flaps' if fault.event == 'down' else text} {fault.times} times"
    elif fault.for_ps is not None:
        at = f"{at} for {format_quantity(DURATION, fault.for_ps)}"
    return f"{text} {at}" + (", and more" if has_more else "")


def _stragglers(prepared: Prepared) -> Iterator[Suspect]:
    slow = prepared.scenario.stragglers
    for index, one in enumerate(slow):
        yield Suspect(
            kind="gpu",
            name=f"GPU {one.gpu}",
            key=f"stragglers.{index}",
            text=f"computes {one.factor:g} times as long as the others",
            change=changed(what_if.with_section, stragglers=slow[:index] + slow[index + 1 :]),
            bound_share=1 - 1 / one.factor,
        )


def _neighbours(prepared: Prepared) -> Iterator[Suspect]:
    if len(prepared.jobs) < 2:
        return
    for index in range(len(prepared.jobs)):
        others = [job.name for place, job in enumerate(prepared.jobs) if place != index]
        yield Suspect(
            kind="job",
            name=" and ".join(others),
            key=f"jobs.{1 - index}" if len(others) == 1 else "jobs",
            text=f"shares the fabric with {prepared.jobs[index].name}",
            change=changed(what_if.alone, index),
            job=index,
            case=ALONE,
        )


def _unlike_peers(prepared: Prepared) -> Iterator[Suspect]:
    """Links and NICs that are slower or lossier than nearly all their peers.

    Peers are the links between the same tiers.
    """
    fabric = prepared.fabric
    links, tier = fabric.links, fabric.node_tier
    between = tier[links["a"]].astype(np.int64) * 64 + tier[links["b"]]
    for group in np.unique(between).tolist():
        own = np.flatnonzero(between == group)
        usual_bps = _usual(links["rate_bps"][own])
        slow = own[links["rate_bps"][own] < usual_bps]
        if 0 < len(slow) <= _FEW * len(own):
            rates = links["rate_bps"].copy()
            rates[slow] = usual_bps
            has, wanted = (format_quantity(RATE, int(rate)) for rate in (links["rate_bps"][slow].min(), usual_bps))
            yield Suspect(
                kind="link",
                name=_named([fabric.link_names[link] for link in slow.tolist()]),
                key="fabric",
                text=f"has {has}, its peers have {wanted}",
                change=changed(what_if.with_rates, rates),
            )
        for name, words in (("loss", "loses"), ("corruption", "corrupts")):
            usual = _usual(links[name][own])
            bad = own[links[name][own] > usual]
            if 0 < len(bad) <= _FEW * len(own):
                mended = links.copy()
                mended[name][bad] = usual
                share = float(links[name][bad].max())
                yield Suspect(
                    kind="link",
                    name=_named([fabric.link_names[link] for link in bad.tolist()]),
                    key="fabric",
                    text=f"{words} {100 * share:g} % of its packets",
                    change=changed(what_if.on_fabric, links=mended),
                )
    yield from _slow_nics(prepared)


def _slow_nics(prepared: Prepared) -> Iterator[Suspect]:
    fabric = prepared.fabric
    if len(fabric.nics) < 2:
        return
    pcie_bps = np.array([nic.pcie_rate_bps or 2**62 for nic in fabric.nics])[fabric.node_device[fabric.hosts]]
    usual_bps = _usual(pcie_bps)
    slow = np.flatnonzero(pcie_bps < usual_bps)
    if not 0 < len(slow) <= _FEW * len(fabric.hosts):
        return
    device = fabric.node_device.copy()
    device[fabric.hosts[slow]] = fabric.node_device[fabric.hosts[int(np.argmax(pcie_bps == usual_bps))]]
    yield Suspect(
        kind="nic",
        name=_named([fabric.node_names[node] for node in fabric.hosts[slow].tolist()]),
        key="fabric",
        text=f"has {format_quantity(RATE, int(pcie_bps[slow].min()))} of PCIe behind its NIC, less than its peers",
        change=changed(what_if.on_fabric, node_device=device),
    )


def _usual(values: NDArray[Any]) -> Any:  # noqa: ANN401 - a number of the array's type
    """The most frequent value."""
    found, count = np.unique(values, return_counts=True)
    usual = found[int(count.argmax())]
    return usual.item()


def _named(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} like it"


def _stages(prepared: Prepared) -> Iterator[Suspect]:
    """A pipeline stage that computes more than its job's mean.

    Of several, the last by name.
    """
    computed = computed_ps(prepared) if prepared.jobs else {}
    stage = prepared.stage_of_program
    for index, job in enumerate(prepared.jobs):
        own = {p: ps for p, ps in computed.items() if prepared.job_of_program[p] == index}
        mean = sum(own.values()) / len(own)
        worst = max(own, key=lambda program: own[program])
        if len(own) < 2 or own[worst] <= _UNEVEN * mean:
            continue
        name = f"stage {stage[worst]}"
        can_run = isinstance(prepared.engine_input, FlowInput)
        batches = job.plan.micro_batches
        yield Suspect(
            kind="stage",
            name=name if len(prepared.jobs) == 1 else f"{name} of {job.name}",
            key=_key_of(prepared, index, "pipeline"),
            text=f"computes {100 * (own[worst] / mean - 1):.3g} % more than the mean of {plural(len(own), 'stage')}",
            change=changed(what_if.with_balanced_stages, computed) if can_run else None,
            job=index,
            bound_share=(own[worst] / mean - 1) * (batches + len(own) - 1) / batches,
        )


def _key_of(prepared: Prepared, job: int, key: str) -> str:
    return f"training.{key}" if prepared.scenario.training is not None else f"jobs.{job}.{key}"
