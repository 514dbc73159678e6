"""Suspects for the time of a run.

They are from the scenario and from the records of the run.

A suspect is something without which the run can be simulated again. Those that the scenario names come first: faults,
slow GPUs, other jobs, devices that are slower than their peers, stages with too much work. Others are suspects only
where the run recorded that they were at work (`docs/models/answer.md`, section Suspects).
Leaves out: what each of them cost (`weftwork.study.answer.answer`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.base.units import DURATION, RATE, SIZE, format_quantity
from weftwork.engine.flow.flow_input import FlowInput, Mode
from weftwork.spec.scenario.policies import PRESETS, PolicyChoice
from weftwork.study.answer.direct_suspects import direct_suspects
from weftwork.study.answer.measure import computed_ps
from weftwork.study.answer.suspect import BUSY, COLLIDED, Suspect
from weftwork.study.prepare import what_if
from weftwork.study.results.link_use import link_use, siblings_use, up_use
from weftwork.topology.oversubscription import oversubscription_by_tier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from weftwork.spec.answer import CulpritKind
    from weftwork.spec.scenario.faults import FaultSection
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["ALONE", "NO_OVERSUBSCRIPTION", "fault_suspects", "suspects"]

ALONE: Final = "alone"
NO_OVERSUBSCRIPTION: Final = "no oversubscription"
_FEW: Final = 0.1  # chosen: of the links or NICs of a tier; where more of them differ, the fabric is built like that
_UNEVEN: Final = 1.02  # chosen: times the work of a mean stage; less costs less than an answer tells
_BUFFERS: Final = 16  # times the memory; chosen: more than any switch of its generation has
_HASTY: Final = 16  # of the timeout; chosen: what is left of it costs little beside the whole
_PATIENT: Final = 1_000  # times the timeout; chosen: longer than any run that ends


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
        *_settings(prepared, execution),
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
        rest = tuple(fault for index, fault in enumerate(prepared.scenario.faults) if index not in indices)
        first = prepared.scenario.faults[indices[0]]
        mine = _REWIRED if kind == "event" else ()
        last_ps = [fault.at_ps for fault in prepared.faults if fault.where == name or fault.event in mine]
        yield Suspect(
            kind=_PLACES.get(kind, "fault"),
            name=name,
            key=f"faults.{indices[0]}",
            text=_happened(first, has_more=len(indices) > 1),
            make=partial(what_if.with_section, prepared, faults=rest),
            start_ps=first.at_ps,
            end_ps=max(last_ps) if len(last_ps) > 1 else None,
            lasts_ps=_lasts_ps(prepared, [prepared.scenario.faults[index] for index in indices]),
        )


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
            make=partial(what_if.with_section, prepared, stragglers=slow[:index] + slow[index + 1 :]),
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
            make=partial(what_if.alone, prepared, index),
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
                make=partial(what_if.with_rates, prepared, rates),
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
                    make=partial(what_if.on_fabric, prepared, links=mended),
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
        make=partial(what_if.on_fabric, prepared, node_device=device),
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
            make=partial(what_if.with_balanced_stages, prepared, computed) if can_run else None,
            job=index,
            bound_share=(own[worst] / mean - 1) * (batches + len(own) - 1) / batches,
        )


def _key_of(prepared: Prepared, job: int, key: str) -> str:
    return f"training.{key}" if prepared.scenario.training is not None else f"jobs.{job}.{key}"


def _settings(prepared: Prepared, execution: Execution) -> Iterator[Suspect]:
    """Settings and policies whose effect the run recorded."""
    counters = execution.outcome.counters
    by_packet = execution.flows is None
    if by_packet and counters["timeouts"]:
        yield _timeout(prepared, timeouts=counters["timeouts"], has_losses=_drops(counters) > 0)
    if by_packet and (counters["drop_buffer_full"] or counters["drop_egress_threshold"]):
        yield _small_buffer(prepared)
    ratios = {tier: ratio for tier, ratio in oversubscription_by_tier(prepared.fabric).items() if ratio > 1.001}
    use = link_use(prepared, execution)
    if any(up_use(prepared, use, tier) > BUSY for tier in ratios):
        told = ", ".join(f"{ratio:.3g}:1" for ratio in ratios.values())
        yield Suspect(
            kind="setting",
            name="oversubscription",
            key="fabric.oversubscription" if prepared.scenario.fabric.topology != "file" else "fabric",
            text=f"is {told} (a switch's rate down to its rate up)",
            make=partial(what_if.without_oversubscription, prepared),
            case=NO_OVERSUBSCRIPTION,
        )
    if _is_hashed(prepared):
        uneven, port, its_use = siblings_use(prepared, execution, use)
        if uneven > COLLIDED and its_use > BUSY:
            yield Suspect(
                kind="policy",
                name=prepared.policies["port_selection"].name,
                key="transport.load_balancing",
                text=f"put {uneven:.3g} times the mean load of equal ports on {port}: hashes collide",
                make=partial(_sprayed, prepared),
            )
    yield from direct_suspects(prepared, execution, use)
    control = prepared.policies["congestion_control"]
    if by_packet and control.name != "none" and (counters["cnps_sent"] or execution.outcome.ports["marks"].any()):
        # a network without flow and congestion control loses what it cannot carry: a window of a round trip stands in
        transport = prepared.transport
        other = "none" if transport.lossless_priorities or transport.link_credits else "fixed-window"
        yield Suspect(
            kind="policy",
            name=control.name,
            key="transport.congestion_control",
            text=f"holds senders back, compared with {other}",
            make=partial(_with_transport, prepared, congestion_control=PolicyChoice(name=other)),
        )


def _drops(counters: Mapping[str, int]) -> int:
    return sum(count for name, count in counters.items() if name.startswith("drop_"))


def _timeout(prepared: Prepared, *, timeouts: int, has_losses: bool) -> Suspect:
    """The timeout: too short if nothing was lost, else too long."""
    timeout_ps = prepared.transport.retransmission_timeout_ps
    told = format_quantity(DURATION, timeout_ps)
    often = "once" if timeouts == 1 else f"{timeouts:,} times"
    text = f"of {told} ran out {often} though nothing was lost"
    if has_losses:
        text = f"of {told} passed before lost packets were sent again, {often}"
    other_ps = max(1, timeout_ps // _HASTY) if has_losses else timeout_ps * _PATIENT
    return Suspect(
        kind="setting",
        name="timeout",
        key="transport.timeout",
        text=text,
        make=partial(_with_transport, prepared, timeout_ps=other_ps),
    )


def _small_buffer(prepared: Prepared) -> Suspect:
    fabric = prepared.fabric
    switches = tuple(
        switch.model_copy(update={"buffer_bytes": switch.buffer_bytes * _BUFFERS}) for switch in fabric.switches
    )
    smallest = min(switch.buffer_bytes for switch in fabric.switches)
    return Suspect(
        kind="setting",
        name="buffer",
        key="fabric.switch.buffer",
        text=f"of {format_quantity(SIZE, smallest)} overflowed",
        make=partial(what_if.on_fabric, prepared, switches=switches),
    )


def _is_hashed(prepared: Prepared) -> bool:
    if isinstance(prepared.engine_input, FlowInput):
        return prepared.engine_input.mode in {Mode.HASHED, Mode.WEIGHTED}
    chosen = (prepared.policies["path_selection"], prepared.policies["port_selection"])
    by_hash = getattr(chosen[1].plugin, "spreads", None) in {"hash", "weighted-hash"}
    return by_hash and not any(getattr(one.plugin, "reorders", "never") == "always" for one in chosen)


def _sprayed(prepared: Prepared) -> Prepared:
    by_entropy = prepared.scenario.fabric.routing == "k-shortest"  # which leaves switches nothing to choose
    path, port = (PolicyChoice(name=name) for name in PRESETS["spray" if by_entropy else "switch-spray"])
    return _with_transport(prepared, path_selection=path, port_selection=port, reorder_tolerant=True)


def _with_transport(prepared: Prepared, **keys: object) -> Prepared:
    transport = prepared.scenario.transport.model_copy(update=keys)
    return what_if.with_section(prepared, transport=transport)
