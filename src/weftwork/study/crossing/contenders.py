"""The contenders of a crossing.

They are controls with ECMP and with spraying, balancers with three controls, or all pairs.

Each pair runs as it has to: where a control or a balancer needs packets that switches cut, fabrics cut them; where a
control hears of congestion by losses, there is no PFC to prevent them; all others run under PFC. Every NIC recovers by
selective repeat, so that a difference between two balancers is not that of their recoveries.
Leaves out: variants of policies; the defaults of each take part.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weftwork.policies.interface import CongestionControl
from weftwork.policies.load import load, policy_names
from weftwork.policies.needed import Needed, needed
from weftwork.spec.crossing import BASE, Contender

__all__ = ["CONTROLS_WITH_ALL", "SPRAY", "Balancer", "balancers_of", "contender_of", "first_round", "transport_keys"]

CONTROLS_WITH_ALL: Final = ("dcqcn", "nscc", "swift")  # every balancer runs with each of them
ECMP: Final = "ecmp"
SPRAY: Final = "spray"
PLAIN: Final = (ECMP, SPRAY)  # balancers with which each control runs
_INTERVAL: Final = "100us"  # chosen: as long as switches take to reconverge


@dataclass(frozen=True, kw_only=True, slots=True)
class Balancer:
    """A choice at the NIC and one at the switch, named together."""

    name: str
    path_selection: str = ECMP
    port_selection: str = ECMP
    scheme: str = ""
    preset: str = ""  # of load balancing, where that is more than the two policies


def balancers_of(
    paths: tuple[str, ...], ports: tuple[str, ...], schemes: tuple[str, ...] = (), presets: tuple[str, ...] = ()
) -> tuple[Balancer, ...]:
    """The balancers of path and port selections.

    Each path selection has ECMP at the switch, and each port selection has ECMP at the NIC.

    Parameters
    ----------
    paths, ports : names or files; a name that both have is ``switch-<name>`` at the switch
    schemes : of central engineering, each ``planned-<name>``
    presets : of load balancing that are ECMP over several queue pairs

    Examples
    --------
    >>> [one.name for one in balancers_of(("ecmp", "spray"), ("ecmp", "spray", "least-loaded"))]
    ['ecmp', 'spray', 'least-loaded', 'switch-spray']
    """
    found = {_label(name): Balancer(name=_label(name), path_selection=name) for name in paths}
    taken = set(policy_names("path_selection")) | set(found)
    for name in sorted(ports):
        if name == ECMP:
            found.setdefault(ECMP, Balancer(name=ECMP))
            continue
        label = f"switch-{_label(name)}" if _label(name) in taken else _label(name)
        found[label] = Balancer(name=label, port_selection=name)
    for name in schemes:
        found[f"planned-{_label(name)}"] = Balancer(name=f"planned-{_label(name)}", scheme=name)
    for name in presets:
        found[name] = Balancer(name=name, preset=name)
    return tuple(found.values())


def _label(name: str) -> str:
    """A name of the catalogue as it is; a file by its stem."""
    return Path(name).stem if name.endswith(".py") else name


def contender_of(control: str, balancer: Balancer, origin: str) -> Contender:
    """A pair, with its requirements on switches and NICs.

    Raises
    ------
    ConfigError, CodeError : one of the policies is unknown or wrong
    """
    by_control = load("congestion_control", control, path="--control")
    policies = [
        by_control,
        load("path_selection", balancer.path_selection, path="--path-selection"),
        load("port_selection", balancer.port_selection, path="--port-selection"),
    ]
    needs = [needed(policy) for policy in policies]
    asked = {need for policy in policies for need in policy.plugin.needs}
    is_loss_based = isinstance(by_control.plugin, CongestionControl) and by_control.plugin.is_loss_based
    carried = "trimming" if "trimming" in asked else "drops" if is_loss_based else "PFC"
    return Contender(
        control=_label(control),
        balancer=balancer.name,
        path_selection=balancer.path_selection,
        port_selection=balancer.port_selection,
        scheme=balancer.scheme,
        preset=balancer.preset,
        carried=carried,
        switch=(*_joined(needs, "switch", carried), *(["pinned paths"] if balancer.scheme else [])),
        nic=(*_joined(needs, "nic", ""), *(["several queue pairs"] if balancer.preset else [])),
        origin=origin,
    )


def _joined(needs: list[Needed], side: str, first: str) -> tuple[str, ...]:
    words = [first] if first == "PFC" else []
    return tuple(dict.fromkeys([*words, *(word for one in needs for word in getattr(one, side))]))


def transport_keys(contender: Contender, control: str) -> dict[str, str]:
    """The keys of a scenario that a contender sets.

    Parameters
    ----------
    control : name or file of its congestion control
    """
    keys = {
        "transport.congestion_control": control,
        "transport.path_selection": contender.path_selection,
        "transport.port_selection": contender.port_selection,
        "transport.flow_control": "pfc" if contender.carried == "PFC" else "none",
    }
    if contender.preset:
        keys["transport.load_balancing"] = contender.preset
    if contender.scheme:
        keys["fabric.engineering"] = f"{{scheme: {contender.scheme}, interval: {_INTERVAL}}}"
    if contender.carried == "trimming":
        keys["transport.trimming"] = "true"
    if {"telemetry of each hop", "load of the path"} & set(contender.switch):
        keys["fabric.switch.telemetry"] = "true"
    return keys


def first_round(
    controls: tuple[str, ...], balancers: tuple[Balancer, ...], *, is_all: bool
) -> list[tuple[str, Balancer, str]]:
    """Control, balancer and origin of each pair of the first round.

    The base comes first.

    Parameters
    ----------
    controls : names or files
    balancers : that take part
    is_all : every control with every balancer
    """
    ecmp = Balancer(name=ECMP)
    pairs = [(BASE[0], ecmp, "controls")]
    if is_all:
        pairs += [(control, balancer, "all") for control in controls for balancer in balancers]
    else:
        spray = Balancer(name=SPRAY, path_selection=SPRAY)
        pairs += [(control, balancer, "controls") for control in controls for balancer in (ecmp, spray)]
        pairs += [(control, balancer, "balancers") for control in CONTROLS_WITH_ALL for balancer in balancers]
    found: dict[tuple[str, str], tuple[str, Balancer, str]] = {}
    for control, balancer, origin in pairs:
        found.setdefault((control, balancer.name), (control, balancer, origin))
    return list(found.values())
