"""Checks between keys of a scenario.

Contradictions are mistakes; values that follow from other keys are filled in. Each check is skipped where a key that it
reads is itself wrong, so that one mistake is told once.
Leaves out: the fabric (`weftwork.spec.scenario.fabric_checks`), and what only the built fabric knows, such as names of
links; the floor that builds it uses `Scenario.locate`.
"""

from __future__ import annotations

from weftwork.spec.scenario.choice import LONELY
from weftwork.spec.scenario.choices import ALGORITHMS, PATTERNS, TRANSPORTS
from weftwork.spec.scenario.fabric import FabricSection
from weftwork.spec.scenario.findings import Read, asked
from weftwork.spec.scenario.policies import POLICY_KINDS, PRESETS, QUEUE_PAIR_PRESETS, PolicyChoice
from weftwork.spec.scenario.reader import Reader
from weftwork.spec.scenario.transport import TransportSection
from weftwork.spec.scenario.workload import CollectiveSection, TrafficSection, usual_algorithm

__all__ = ["check_workload", "resolve_transport"]

REORDER_WINDOW_PACKETS = 1024  # chosen: 4 MiB, above the BDP of 400 Gb/s x 50 us


def resolve_transport(transport: TransportSection, reader: Reader, *, has_traffic: bool) -> TransportSection:
    """Check a transport and fill in the values of its preset.

    Traffic uses queue pairs alternately by default.
    """
    known: dict[str, PolicyChoice | int | str] = {}
    queue_pairs, use = QUEUE_PAIR_PRESETS.get(transport.load_balancing, (1, "in-turn" if has_traffic else "split"))
    for key, value in {"queue_pairs": queue_pairs, "queue_pair_use": use}.items():
        given = getattr(transport, key)
        known[key] = value if given is None else given
    keeps = transport.reorder_tolerant or transport.recovery == "selective-repeat"
    if transport.reorder_window_packets is None and keeps:
        known["reorder_window_packets"] = REORDER_WINDOW_PACKETS
    elif (
        transport.reorder_window_packets is not None
        and not keeps
        and reader.is_sound("transport.recovery", "transport.reorder_tolerant", "transport.reorder_window")
    ):
        reader.wrong(
            "transport.reorder_window",
            f"means nothing with reorder_tolerant false and recovery {transport.recovery}, only with true or"
            " selective-repeat",
        )
    is_wrong = transport.trimming and transport.recovery != "selective-repeat"
    if is_wrong and reader.is_sound("transport.trimming", "transport.recovery"):
        text = f"recovery {transport.recovery} does not send cut packets again; wanted recovery: selective-repeat"
        reader.wrong(reader.which("transport.trimming", "transport.recovery"), text)
    preset = PRESETS[transport.load_balancing]
    for kind, name in zip(("path_selection", "port_selection"), preset, strict=True):
        chosen = getattr(transport, kind)
        if chosen is None:
            chosen = PolicyChoice(name=name)
            if name not in reader.known.get(kind, ()) and reader.is_sound("transport.load_balancing"):
                reader.wrong(
                    "transport.load_balancing",
                    f"found '{transport.load_balancing}', but the {kind} '{name}' is not installed",
                )
        known[kind] = chosen
    data, control = transport.data_priority, transport.control_priority
    if data == control and reader.is_sound("transport.data_priority", "transport.control_priority"):
        reader.wrong(
            reader.which("transport.control_priority", "transport.data_priority"),
            f"data and control have the same priority, {data}; ACKs would wait behind the data that they release",
        )
    resolved = transport.model_copy(update=known)
    _check_policies(resolved, reader)
    if reader.is_sound("transport", "transport.protocol"):
        found = Read(reader=reader, section="transport")
        asked(
            TRANSPORTS, transport.protocol, reader, "transport.protocol",
            lambda kind: kind.check(resolved, resolved.options, found),
        )  # fmt: skip
    return resolved


def _check_policies(transport: TransportSection, reader: Reader) -> None:
    """Ask the policy loader how policies and transport affect each other."""
    check, policies = reader.check_transport, {f"transport.{kind}": getattr(transport, kind) for kind in POLICY_KINDS}
    keys = ("load_balancing", "recovery", "reorder_tolerant", "force")
    if check is None or not reader.is_sound("transport.protocol", *policies, *(f"transport.{key}" for key in keys)):
        return
    if not all(reader.runs(path, choice.label) for path, choice in policies.items()):
        return
    found = asked(TRANSPORTS, transport.protocol, reader, "transport.protocol", lambda _: check(transport))
    for mistake in found or ():
        path = mistake.path if mistake.path in reader.places.lines else "transport.load_balancing"
        reader.wrong(path, mistake.text, mistake.fix)


def check_workload(
    workload: CollectiveSection | TrafficSection, fabric: FabricSection, transport: TransportSection, reader: Reader
) -> CollectiveSection | TrafficSection:
    """Check a workload against the fabric and fill in derived values."""
    hosts = (
        fabric.hosts
        if reader.is_sound(
            "fabric.hosts", "fabric.gpus", "fabric.topology", "fabric.radix", "fabric.leaves", "fabric.node"
        )
        else None
    )
    if isinstance(workload, CollectiveSection):
        return _check_collective(workload, fabric, reader)
    if workload.priority == transport.control_priority and reader.is_sound(
        "traffic.priority", "transport.control_priority"
    ):
        reader.wrong(
            "traffic.priority",
            f"found {workload.priority}, which is transport.control_priority; ACKs would wait behind the data",
        )
    if hosts == 1:
        reader.wrong("traffic", LONELY)
        return workload
    if not reader.is_sound("traffic", "traffic.pattern"):
        return workload
    found = Read(reader=reader, section="traffic")
    options = asked(
        PATTERNS, workload.pattern, reader, "traffic.pattern",
        lambda pattern: PATTERNS.want(
            workload.pattern, pattern.resolve(workload.options, hosts, found), pattern.keys, "resolve"
        ),
    )  # fmt: skip
    return workload if options is None else workload.model_copy(update={"options": options})


def _check_collective(workload: CollectiveSection, fabric: FabricSection, reader: Reader) -> CollectiveSection:
    """Check GPUs, root and shift against each other.

    Values that depend on the fabric's servers are checked later, when the servers are known.
    """
    gpus = workload.gpus
    known = reader.is_sound("fabric.gpus", "fabric.hosts", "fabric.topology", "fabric.radix", "fabric.leaves")
    if gpus is None and known:
        gpus = fabric.gpus
    if gpus is not None and known and fabric.gpus is not None and gpus > fabric.gpus:
        text = f"found {gpus:,}, wanted at most {fabric.gpus:,}, the GPUs of the fabric"
        reader.wrong("collective.gpus", text, str(fabric.gpus) if fabric.gpus > 1 else None)
    elif gpus == 1:
        reader.wrong("collective.gpus", "one GPU has nobody to talk to; wanted a fabric of at least two GPUs")
    for key, value in (("root", workload.root), ("shift", workload.shift)):
        is_meant = workload.operation in (("broadcast", "reduce") if key == "root" else ("send-receive",))
        if gpus is not None and is_meant and value is not None and value >= gpus:
            wanted = "a rank" if key == "root" else "ranks"
            reader.wrong(f"collective.{key}", f"found {value:,}, wanted {wanted} from 0 to {gpus - 1:,}")
    if workload.algorithm is None and reader.is_sound("collective.algorithm"):
        usual = usual_algorithm(workload.operation)
        workload = workload.model_copy(update={"algorithm": usual, "options": ALGORITHMS[usual].options()})
    return workload.model_copy(update={"gpus": gpus})
