"""From the section ``collective`` to its job.

The job has the call, the algorithm's programs, and the places of ranks.

Leaves out: what algorithms do (`weftwork.workload.collectives`), how ranks are placed (`weftwork.workload.placement`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.study.prepare.calibrated import calibrated_figures, latency_scale, network_efficiency
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import ALGORITHMS, schedule
from weftwork.workload.collectives.closed_form import OPERATIONS, GroupShape, Method, alone, latencies, methods
from weftwork.workload.collectives.fabric_lattice import LatticePlaces, NoLattice, in_order, lattice_of, lattice_rates
from weftwork.workload.collectives.figures import collective_caveats, collective_figures, path_latency_ps
from weftwork.workload.collectives.group_time import chosen_over_groups, group_ranks, group_rates
from weftwork.workload.collectives.lattice_streams import LOOPS
from weftwork.workload.collectives.lattice_time import chosen_on_lattice
from weftwork.workload.collectives.program import program
from weftwork.workload.collectives.protocols import PROTOCOLS, software
from weftwork.workload.collectives.tuner import chosen_method
from weftwork.workload.placement import PLACEMENTS, scattered, with_nvlink_switches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from weftwork.spec.calibration import Calibration
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job, Placement
    from weftwork.spec.scenario.workload import CollectiveSection
    from weftwork.workload.collectives.figures import CollectiveFigures
    from weftwork.workload.collectives.lattice import Lattice

__all__ = ["collective_job", "domain_ranks", "fabric_figures", "method_used", "nvlink_domains", "port_rate_bps"]

NO_DOMAINS: Final = Caveat(
    subject="collective.placement",
    kind="note",
    text="these ranks are not whole NVLink domains of equal size in rank order, so the algorithm knows no domain: every"
    " step has the software latency of a network step, and hierarchical has no step inside a domain",
)
_LATENCIES = ("base_latency_ps", "local_step_latency_ps", "step_latency_ps")


def collective_job(
    section: CollectiveSection, fabric: Fabric, *, seed: int, calibration: Calibration | None = None
) -> tuple[Job, dict[str, Caveat]]:
    """Make the job of a collective, with the caveats of its software.

    Parameters
    ----------
    section : of a scenario that has been checked
    fabric : whose GPUs take part
    seed : of a random placement
    calibration : constants of the user's own; None: none

    Raises
    ------
    ConfigError : there are too few GPUs, or the algorithm cannot do this; with all mistakes
    """
    ranks = fabric.gpus if section.gpus is None else section.gpus
    if ranks > fabric.gpus:
        text = f"found {ranks:,}, wanted at most {fabric.gpus:,}, the GPUs of the fabric"
        raise ConfigError(
            "collective",
            [Mistake(path="collective.gpus", text=text, fix=str(fabric.gpus) if fabric.gpus > 1 else None)],
        )
    placement = PLACEMENTS[section.placement](fabric, ranks, seed=seed)
    section, chosen = _with_method(section, fabric, placement, calibration)
    lattice = None
    if ALGORITHMS.load(section.algorithm or "").needs_lattice:
        places = lattice_of(fabric, placement)
        if isinstance(places, NoLattice):
            name = ALGORITHMS.load(section.algorithm or "").name
            text = f"{name} needs GPUs that fill a box of a torus or a mesh, but {places.reason}"
            raise ConfigError("collective", [Mistake(path="collective.algorithm", text=text)])
        placement, lattice = in_order(placement, places), places.lattice
    call, caveats = _call(section, fabric, placement, lattice, calibration)
    found = schedule(section.algorithm or "", call)
    if found.switches:
        placement, _ = with_nvlink_switches(fabric, placement)
    return found.job(placement), caveats | chosen


def method_used(
    section: CollectiveSection, fabric: Fabric, *, seed: int, calibration: Calibration | None = None
) -> tuple[str, str]:
    """Name the algorithm and the protocol of a collective.

    They are the section's, or the choice of ``auto`` at this size.

    Parameters
    ----------
    section, fabric, seed, calibration : as for `collective_job`

    Raises
    ------
    ConfigError : ``auto`` has no protocols to choose among
    """
    if "auto" in {section.algorithm, section.protocol}:
        ranks = fabric.gpus if section.gpus is None else section.gpus
        placement = PLACEMENTS[section.placement](fabric, ranks, seed=seed)
        section = _with_method(section, fabric, placement, calibration)[0]
    return ALGORITHMS.load(section.algorithm or "").name, section.protocol


def fabric_figures(fabric: Fabric) -> CollectiveFigures:
    """Figures of collectives on a fabric, from its first host.

    Parameters
    ----------
    fabric : of servers
    """
    node = int(fabric.hosts[0])
    return collective_figures(
        fabric.servers[0],
        nic_port_rate_bps=port_rate_bps(fabric),
        nic=fabric.nics[fabric.node_device[node]].name,
        network_latency_ps=path_latency_ps(fabric),
    )


def port_rate_bps(fabric: Fabric) -> int:
    """Rate of one NIC port, by its link or host interface.

    Of different ports, the slowest.
    """
    ports = fabric.ports
    node = int(fabric.hosts[0])
    link_bps = int(fabric.links["rate_bps"][ports.link[ports.base[node] : ports.base[node + 1]]].min())
    pcie_bps = fabric.nics[fabric.node_device[node]].pcie_rate_bps
    return min(link_bps, pcie_bps) if pcie_bps else link_bps


def _with_method(
    section: CollectiveSection, fabric: Fabric, placement: Placement, calibration: Calibration | None
) -> tuple[CollectiveSection, dict[str, Caveat]]:
    """The section with the choices of ``auto``, and notes on them.

    ``auto`` chooses algorithm, protocol, pieces and rounds.
    """
    ranks, domain = len(placement.host), domain_ranks(fabric, placement)
    group = GroupShape(members=ranks, per_domain=domain, domain_gpus=max(domain, fabric.servers[0].nvlink_domain_gpus))
    if section.algorithm == "auto":
        found = _on_direct_network(section, group, fabric, placement, calibration)
        return _as_nccl(section, group, fabric, calibration) if found is None else found
    if section.protocol != "auto":
        return section, {}
    figures = calibrated_figures(fabric_figures(fabric), calibration)
    scales = {
        "network_efficiency": network_efficiency(calibration),
        "latency_scale": latency_scale(calibration),
    }
    name = ALGORITHMS.load(section.algorithm or "").name
    is_known = section.operation in OPERATIONS and ranks > 1
    ways = methods(section.operation, group, figures) if is_known else ()
    timed = [
        alone(section.operation, way, group, section.size_bytes, figures, **scales)
        for way in ways
        if way.algorithm == name
    ]
    if not timed:
        text = f"found 'auto', but {section.operation} by {name} has no closed form from which to choose a protocol"
        wanted = "wanted simple, ll128, ll or none"
        raise ConfigError("collective", [Mistake(path="collective.protocol", text=f"{text}; {wanted}", fix="simple")])
    protocol = min(timed, key=lambda one: one.time_ps).method.protocol
    text = f"auto took {protocol}, the fastest of {name} at {section.size_bytes:,} bytes by the closed form"
    return section.model_copy(update={"protocol": protocol}), _note("collective.protocol", text)


def _on_direct_network(
    section: CollectiveSection,
    group: GroupShape,
    fabric: Fabric,
    placement: Placement,
    calibration: Calibration | None,
) -> tuple[CollectiveSection, dict[str, Caveat]] | None:
    """The section with the fastest method on a torus, or over groups, by the closed forms.

    None where NCCL's tuner is to choose: on trees, among servers of several GPUs, and for operations without such a
    form.
    """
    if fabric.direct is None or group.per_domain > 1 or section.operation not in LOOPS:
        return None
    figures = calibrated_figures(fabric_figures(fabric), calibration)
    own = tuple(PROTOCOLS) if section.protocol in {"simple", "auto"} else (section.protocol,)
    known: dict[str, Any] = {"protocols": own, "latency_scale": latency_scale(calibration)}
    places = lattice_of(fabric, placement)
    members = group_ranks(fabric, placement)
    groups = group_rates(fabric, placement, members) if members > 1 else None
    if isinstance(places, LatticePlaces):
        rates = lattice_rates(fabric, placement)
        at, _ = chosen_on_lattice(section.operation, places.lattice, section.size_bytes, rates, group, figures, **known)
        name, keys, protocol = at.algorithm, at.options, at.protocol
        where = f"a box of {places.lattice.words}"
    elif groups is not None:
        over, _ = chosen_over_groups(section.operation, section.size_bytes, groups, group, figures, **known)
        name, keys, protocol = "hierarchical", over.options, over.protocol
        where = f"{plural(groups.groups, 'group')} of {plural(members, 'GPU')}"
    else:
        return None
    update = {"algorithm": name, "options": ALGORITHMS[name].options(**keys), "protocol": protocol, "chunks": 1}
    words = ", ".join([name, *(f"{key} {value}" for key, value in keys.items()), protocol])
    text = f"auto took {words} at {section.size_bytes:,} bytes, the fastest by the closed form on {where}"
    return section.model_copy(update=update), _note("collective.algorithm", text)


def _as_nccl(
    section: CollectiveSection, group: GroupShape, fabric: Fabric, calibration: Calibration | None
) -> tuple[CollectiveSection, dict[str, Caveat]]:
    """The section with the method of NCCL's tuner.

    A protocol of the section is kept.
    """
    own = None if section.protocol in {"simple", "auto", "none"} else section.protocol
    if section.operation not in OPERATIONS or group.members < 2:
        name = "direct" if section.operation == "send-receive" else "ring"
        protocol = "simple" if section.protocol == "auto" else section.protocol
        update = {"algorithm": name, "options": ALGORITHMS[name].options(), "protocol": protocol}
        text = f"auto took {name}: the choice of NCCL for {section.operation} is not modelled"
        return section.model_copy(update=update), _note("collective.algorithm", text)
    figures = calibrated_figures(fabric_figures(fabric), calibration)
    method = chosen_method(section.operation, group, section.size_bytes, figures, protocol=own)
    found = program(method, group, section.size_bytes, figures, own_channels=section.channels)
    name = found.method.algorithm
    inner = {} if found.method.inner is None else {"inner": found.method.inner}
    update = {
        "algorithm": name,
        "options": ALGORITHMS[name].options(**inner),
        "protocol": "none" if section.protocol == "none" else found.method.protocol,
    }
    if found.chunks is not None:
        update["chunks"] = found.chunks
    if found.least_chunk_bytes is not None:
        update["least_chunk_bytes"] = found.least_chunk_bytes
    if found.round_bytes is not None and section.round_bytes is None:
        update["round_bytes"] = found.round_bytes
    if section.protocol != "none":
        taken = latencies(method, section.operation, group, section.size_bytes, figures)
        holds = {"local_step_latency_ps": found.hold_ps}
        update |= {
            name: round(latency_scale(calibration) * getattr(taken, name)) + holds.get(name, 0)
            for name in _LATENCIES
            if getattr(section, name) is None
        }
    text = f"auto took {name}, {found.method.protocol} at {section.size_bytes:,} bytes, as NCCL's tuner does"
    text += "" if found.note is None else f"; {found.note}"
    uncertain = {} if section.protocol == "none" else software(method.protocol, method.algorithm).caveats
    return section.model_copy(update=update), _note("collective.algorithm", text) | uncertain


def _note(subject: str, text: str) -> dict[str, Caveat]:
    return caveats_by_subject([Caveat(subject=subject, kind="note", text=text)])


def _call(
    section: CollectiveSection,
    fabric: Fabric,
    placement: Placement,
    lattice: Lattice | None,
    calibration: Calibration | None,
) -> tuple[Call, dict[str, Caveat]]:
    ranks = len(placement.host)
    domain = domain_ranks(fabric, placement)
    unused = caveats_by_subject([NO_DOMAINS]) if domain == 1 and _shares_nvlink(fabric, placement) else {}
    given = {name: getattr(section, name) for name in _LATENCIES}
    known: dict[str, Any] = {name: own for name, own in given.items() if own is not None}
    caveats: dict[str, Caveat] = {}
    if section.protocol != "none":
        name = ALGORITHMS.load(section.algorithm or "").name
        inner = getattr(section.options, "inner", None)
        usual = software(section.protocol, "nvls-tree" if inner == "nvls" else name)
        figures = calibrated_figures(fabric_figures(fabric), calibration)
        group = GroupShape(members=ranks, per_domain=domain, domain_gpus=domain)
        method = Method(algorithm=name, protocol=section.protocol, inner=inner)
        taken = latencies(method, section.operation, group, section.size_bytes, figures)
        scale = latency_scale(calibration)
        known = {name: round(scale * getattr(taken, name)) for name in _LATENCIES} | known
        known["protocol_efficiency"] = usual.protocol_efficiency
        caveats = {key: caveat for key, caveat in usual.caveats.items() if not _is_given(key, given)}
        caveats |= collective_caveats(figures)
    usual_channels = 1 if lattice is not None else domain * placement.nics.shape[1]  # a lattice has lanes of its own
    call = Call(
        operation=section.operation,
        ranks=ranks,
        size_bytes=section.size_bytes,
        channels=usual_channels if section.channels is None else section.channels,
        chunks=section.chunks,
        least_chunk_bytes=section.least_chunk_bytes,
        round_bytes=section.round_bytes or 0,
        domain=domain,
        lattice=lattice,
        group=group_ranks(fabric, placement),
        options=section.options,
        root=section.root or 0,
        shift=section.shift,
        repeat=section.repeat,
        nic_columns=placement.nics.shape[1],
        **known,
    )
    placed = scattered(section.placement, "collective.placement")
    if unused and placed:
        text = "; ".join(one["collective.placement"].text for one in (placed, unused))
        placed = caveats_by_subject([replace(NO_DOMAINS, text=text)])
    return call, caveats | unused | placed


def _is_given(key: str, given: Mapping[str, int | None]) -> bool:
    """Whether a user's figure replaced a figure of the protocol."""
    return any(key.endswith(f"_{name}") and own is not None for name, own in given.items())


def domain_ranks(fabric: Fabric, placement: Placement) -> int:
    """Number of consecutive ranks in one NVLink domain.

    1 if domains are not whole blocks of ranks of equal length.

    Parameters
    ----------
    fabric : its servers
    placement : of ranks on them
    """
    domain = nvlink_domains(fabric, placement)
    if domain is None:
        return 1
    begins = np.flatnonzero(np.diff(domain, prepend=-1))
    lengths = np.diff(begins, append=len(domain))
    is_regular = len(np.unique(lengths)) == 1 and len(np.unique(domain)) == len(begins)
    return int(lengths[0]) if is_regular else 1


def nvlink_domains(fabric: Fabric, placement: Placement) -> NDArray[np.int64] | None:
    """NVLink domain of each rank, or None if a server has none.

    Parameters
    ----------
    fabric : its servers
    placement : of ranks on them

    Returns
    -------
    shape (ranks,), a number of each domain of the fabric
    """
    gpu = placement.gpu
    if gpu is None:
        return None
    node = fabric.hosts[placement.host]
    per_domain = np.array([fabric.server(int(where)).nvlink_domain_gpus for where in node], np.int64)
    if (per_domain < 2).any():
        return None
    return np.asarray(node * (int(gpu.max()) + 1) + gpu // per_domain, np.int64)


def _shares_nvlink(fabric: Fabric, placement: Placement) -> bool:
    domain = nvlink_domains(fabric, placement)
    return domain is not None and len(np.unique(domain)) < len(domain)
