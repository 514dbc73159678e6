"""Named checks of a transport's contract.

They hold for the catalogue and for a user's own file.
Leaves out: whether its packets are what the standard says; `weftwork.wire` and its tests know that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weftwork.base.errors import CodeError, ConfigError
from weftwork.spec.scenario.choice import PatternInput
from weftwork.spec.scenario.choices import PATTERNS, TRANSPORTS
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.transport import TransportSection
from weftwork.spec.transport import Transport
from weftwork.testing.choices import key_findings, offer_findings, read
from weftwork.testing.runs import finished
from weftwork.topology.build import fabric_of_section

__all__ = ["check_transport", "sent_findings", "transport_document"]

_FABRIC = {"topology": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2}


def check_transport(transport: str | Path, keys: Mapping[str, object] = {}) -> list[str]:
    """Read the keys, resolve the transport, and send a permutation.

    It is among four hosts.

    Parameters
    ----------
    transport : a name of the catalogue, or the path of your file
    keys : of the section ``transport`` besides, as a scenario has them, such as ``{"mtu": 1024}``

    Returns
    -------
    what is wrong, a sentence each; empty if nothing is
    """
    label = str(transport)
    document = transport_document(label, keys)
    findings = list(offer_findings(TRANSPORTS, label, TransportSection))
    findings = findings or list(key_findings(TRANSPORTS, label, "transport", document))
    return findings or list(sent_findings(label, document))


def transport_document(label: str, keys: Mapping[str, object]) -> dict[str, Any]:
    """Return a scenario with a permutation of four hosts over a transport."""
    return {
        "schema": SCHEMA,
        "fabric": _FABRIC,
        "transport": {"protocol": label, **keys},
        "traffic": {"pattern": "permutation", "size": "20KB"},
    }


def sent_findings(label: str, document: Mapping[str, object]) -> Iterator[str]:
    """Yield mistakes in the record for the engines, and in its run."""
    scenario = read(document)
    section = scenario.transport
    try:
        with TRANSPORTS.blaming(label):
            built = TRANSPORTS.load(label).build(section, section.options)
        made = TRANSPORTS.want(label, built, Transport, "build")
    except (CodeError, ConfigError) as wrong:
        yield f"there is no transport: {wrong}"
        return
    kept = {name: (getattr(made, name), getattr(section, name))
            for name in ("mtu_bytes", "data_priority", "control_priority", "recovery", "ack_every")}  # fmt: skip
    for name, (found, wanted) in kept.items():
        if found != wanted:
            yield f"{name} is {found}, and the scenario says {wanted}"
    if scenario.traffic is None:
        raise AssertionError("the document has a section traffic")
    given = PatternInput(hosts=4, host_rate_bps=1, seed=1, priority=-1, queue_pairs=1)
    job = PATTERNS["permutation"].job(scenario.traffic.options, given)
    yield from finished(fabric_of_section(scenario.fabric, directory=Path.cwd()), job, made)
