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
from weftwork.base.folder import is_path
from weftwork.base.grammar import plural
from weftwork.spec.scenario.workload import usual_algorithm
from weftwork.study.prepare.calibrated import calibrated_figures, latency_scale, network_efficiency
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import ALGORITHMS, schedule
from weftwork.workload.collectives.closed_form import OPERATIONS, GroupShape, Method, alone, latencies, methods
from weftwork.workload.collectives.crossed import crossed
from weftwork.workload.collectives.fabric_lattice import LatticePlaces, NoLattice, in_order, lattice_of, lattice_rates
from weftwork.workload.collectives.figures import collective_caveats, collective_figures, path_latency_ps
from weftwork.workload.collectives.group_time import chosen_over_groups, group_ranks, group_rates
from weftwork.workload.collectives.lattice_streams import LOOPS
from weftwork.workload.collectives.lattice_time import chosen_on_lattice
from weftwork.workload.collectives.method_catalogue import latency_method, method_of
from weftwork.workload.collectives.program import program
from weftwork.workload.collectives.protocols import PROTOCOLS, software
from weftwork.workload.collectives.tuner import chosen_method
from weftwork.workload.placement import placed, scattered, with_nvlink_switches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from weftwork.base.findings import Findings
    from weftwork.spec.calibration import Calibration
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job, Placement
    from weftwork.spec.scenario.workload import CollectiveSection
    from weftwork.workload.collectives.figures import CollectiveFigures
    from weftwork.workload.collectives.lattice import Lattice

__all__ = ["collective_job", "domain_ranks", "fabric_figures", "method_used", "nvlink_domains"]

NO_DOMAINS: Final = Caveat(
    subject="collective.placement",
    kind="note",
    text="these ranks are not whole NVLink domains of equal size in rank order, so the algorithm knows no domain: every"
    " step has the software latency of a network step, and hierarchical has no step inside a domain",
)
_LATENCIES = ("base_latency_ps", "local_step_latency_ps", "step_latency_ps")


def collective_job(
    section: CollectiveSection,
    fabric: Fabric,
    findings: Findings,
    *,
    seed: int,
    calibration: Calibration | None = None,
) -> Job:
    """Make the job of a collective.

    Parameters
    ----------
    section : of a scenario that has been checked
    fabric : whose GPUs take part
    findings : take notes on its software, its placement, and the choices of ``auto``
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
    placement = placed(fabric, ranks, section, seed=seed)
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
    findings.note_each([*caveats.values(), *chosen.values()])
    return found.job(placement)


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
        placement = placed(fabric, ranks, section, seed=seed)
        section = _with_method(section, fabric, placement, calibration)[0]
    return ALGORITHMS.load(section.algorithm or "").name, section.protocol


def fabric_figures(fabric: Fabric, placement: Placement) -> CollectiveFigures:
    """Figures of collectives of a job on a fabric, with the server and the NIC of its first host.

    Parameters
    ----------
    fabric, placement : of the job
    """
    node, path = int(fabric.hosts[0]), crossed(fabric, placement)
    return collective_figures(
        fabric.servers[0],
        nic_port_rate_bps=path.port_bps,
        nic=fabric.nics[fabric.node_device[node]].name,
        network_latency_ps=path_latency_ps(path),
    )


def _with_method(
    section: CollectiveSection, fabric: Fabric, placement: Placement, calibration: Calibration | None
) -> tuple[CollectiveSection, dict[str, Caveat]]:
    """The section with the choices of ``auto``, and notes on them.

    ``auto`` chooses algorithm, protocol, pieces and rounds.
    """
    ranks, domain = len(placement.host), domain_ranks(fabric, placement)
    group = GroupShape(members=ranks, per_domain=domain, domain_gpus=max(domain, fabric.servers[0].nvlink_domain_gpus))
    if section.algorithm == "auto":
        with ALGORITHMS.blaming(section.candidate or ""):
            found = _on_direct_network(section, group, fabric, placement, calibration)
            return _as_nccl(section, group, fabric, placement, calibration) if found is None else found
    if section.protocol != "auto":
        return section, {}
    figures = calibrated_figures(fabric_figures(fabric, placement), calibration)
    scales = {
        "network_efficiency": network_efficiency(calibration),
        "latency_scale": latency_scale(calibration),
    }
    name = ALGORITHMS.load(section.algorithm or "").name
    is_known = section.operation in OPERATIONS and ranks > 1
    ways = _ways(section, group, figures) if is_known else []
    with ALGORITHMS.blaming(section.algorithm or ""):
        timed = [alone(section.operation, way, group, section.size_bytes, figures, **scales) for way in ways]
    if not timed:
        text = f"found 'auto', but {section.operation} by {name} has no closed form from which to choose a protocol"
        wanted = "wanted simple, ll128, ll or none"
        raise ConfigError("collective", [Mistake(path="collective.protocol", text=f"{text}; {wanted}", fix="simple")])
    protocol = min(timed, key=lambda one: one.time_ps).method.protocol
    text = f"auto took {protocol}, the fastest of {name} at {section.size_bytes:,} bytes by the closed form"
    return section.model_copy(update={"protocol": protocol}), _note("collective.protocol", text)


def _ways(section: CollectiveSection, group: GroupShape, figures: CollectiveFigures) -> list[Method]:
    """The methods of an algorithm among whose protocols ``auto`` chooses."""
    label = section.algorithm or ""
    if not is_path(label):
        return [way for way in methods(section.operation, group, figures) if way.algorithm == label]
    timed = method_of(label)
    if timed is None or section.operation not in ALGORITHMS.load(label).operations:
        return []
    protocols = PROTOCOLS if timed.has_all_protocols else ("simple",)
    return [Method(algorithm=label, protocol=protocol) for protocol in protocols]


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
    figures = calibrated_figures(fabric_figures(fabric, placement), calibration)
    own = tuple(PROTOCOLS) if section.protocol in {"simple", "auto"} else (section.protocol,)
    known: dict[str, Any] = {"protocols": own, "latency_scale": latency_scale(calibration)}
    places = lattice_of(fabric, placement)
    members = group_ranks(fabric, placement)
    groups = group_rates(fabric, placement, members) if members > 1 else None
    if isinstance(places, LatticePlaces):
        rates = lattice_rates(fabric, placement)
        own_files, passed_by = _candidates(section, "on_lattice")
        known["own"] = own_files
        at, _ = chosen_on_lattice(section.operation, places.lattice, section.size_bytes, rates, group, figures, **known)
        name, keys, protocol = at.algorithm, at.options, at.protocol
        where = f"a box of {places.lattice.words}"
    elif groups is not None:
        own_files, passed_by = _candidates(section, "over_groups")
        known["own"] = own_files
        over, _ = chosen_over_groups(section.operation, section.size_bytes, groups, group, figures, **known)
        name, keys, protocol = over.algorithm, dict(over.options), over.protocol
        where = f"{plural(groups.groups, 'group')} of {plural(members, 'GPU')}"
    else:
        return None
    offer = ALGORITHMS.load(name)
    update = {"algorithm": name, "options": offer.options(**keys), "protocol": protocol, "chunks": 1}
    words = ", ".join([offer.name, *(f"{key} {value}" for key, value in keys.items()), protocol])
    text = f"auto took {words} at {section.size_bytes:,} bytes, the fastest by the closed form on {where}{passed_by}"
    return section.model_copy(update=update), _note("collective.algorithm", text)


def _candidates(section: CollectiveSection, form: str) -> tuple[tuple[str, ...], str]:
    """The algorithm of a user's own among which ``auto`` chooses, if it can be judged, and words if it cannot.

    Parameters
    ----------
    section : of the scenario
    form : the field of an algorithm that says how its time is estimated here
    """
    if section.candidate is None:
        return (), ""
    offer = ALGORITHMS.load(section.candidate)
    if section.operation not in offer.operations:
        return (), f"; {offer.name} was not judged: it does no {section.operation}"
    if getattr(offer, form) is None:
        return (), f"; {offer.name} was not judged: it offers no {form}, which says how its time is estimated"
    return (section.candidate,), ""


def _own_on_tree(
    section: CollectiveSection,
    taken: Method,
    group: GroupShape,
    figures: CollectiveFigures,
    calibration: Calibration | None,
) -> tuple[Method | None, str]:
    """The method of a user's own where it is faster than NCCL's choice by the closed form, and words about both.

    Parameters
    ----------
    section : of the scenario
    taken : NCCL's choice
    group, figures : of the job
    calibration : constants of the user's own; None: none
    """
    files, passed_by = _candidates(section, "method")
    if not files:
        return None, passed_by
    scales = {"network_efficiency": network_efficiency(calibration), "latency_scale": latency_scale(calibration)}
    own = _ways(section.model_copy(update={"algorithm": files[0]}), group, figures)
    if section.protocol not in {"simple", "auto", "none"}:
        own = [way for way in own if way.protocol == section.protocol]
    name = ALGORITHMS.load(files[0]).name
    if not own:
        return None, f"; {name} was not judged: it has no protocol {section.protocol}"
    known, *timed = (
        alone(section.operation, way, group, section.size_bytes, figures, **scales) for way in (taken, *own)
    )
    best = min(timed, key=lambda one: one.time_ps)
    of_own, of_nccl = (f"{one.time_ps / 1e6:.4g} us" for one in (best, known))
    if best.time_ps < known.time_ps:
        return best.method, f" by the closed form, {of_own} against {of_nccl} of {taken.algorithm}, which NCCL takes"
    return None, f"; {name} would take {of_own} by the closed form, against {of_nccl}"


def _as_nccl(
    section: CollectiveSection,
    group: GroupShape,
    fabric: Fabric,
    placement: Placement,
    calibration: Calibration | None,
) -> tuple[CollectiveSection, dict[str, Caveat]]:
    """The section with the method of NCCL's tuner.

    A protocol of the section is kept.
    """
    own = None if section.protocol in {"simple", "auto", "none"} else section.protocol
    if section.operation not in OPERATIONS or group.members < 2:
        name = usual_algorithm(section.operation)
        protocol = "simple" if section.protocol == "auto" else section.protocol
        update = {"algorithm": name, "options": ALGORITHMS[name].options(), "protocol": protocol}
        text = f"auto took {name}: the choice of NCCL for {section.operation} is not modelled"
        text += "" if section.candidate is None else "; an algorithm of your own was not judged"
        return section.model_copy(update=update), _note("collective.algorithm", text)
    figures = calibrated_figures(fabric_figures(fabric, placement), calibration)
    method = chosen_method(section.operation, group, section.size_bytes, figures, protocol=own)
    own_method, words = _own_on_tree(section, method, group, figures, calibration)
    if own_method is not None:
        offer = ALGORITHMS.load(own_method.algorithm)
        protocol = "none" if section.protocol == "none" else own_method.protocol
        update = {"algorithm": own_method.algorithm, "options": offer.options(), "protocol": protocol}
        text = f"auto took {offer.name}, {own_method.protocol} at {section.size_bytes:,} bytes{words}"
        return section.model_copy(update=update), _note("collective.algorithm", text)
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
    text = f"auto took {name}, {found.method.protocol} at {section.size_bytes:,} bytes, as NCCL's tuner does{words}"
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
        inner = getattr(section.options, "inner", None)
        method = Method(algorithm=section.algorithm or "", protocol=section.protocol, inner=inner)
        usual = software(section.protocol, latency_method(method))
        figures = calibrated_figures(fabric_figures(fabric, placement), calibration)
        group = GroupShape(members=ranks, per_domain=domain, domain_gpus=domain)
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
    alone = scattered(section.placement, "collective.placement")
    if unused and alone:
        text = "; ".join(one["collective.placement"].text for one in (alone, unused))
        alone = caveats_by_subject([replace(NO_DOMAINS, text=text)])
    return call, caveats | unused | alone


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
