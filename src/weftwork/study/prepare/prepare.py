"""From a scenario to the input of its engine.

Only this module knows the builder, pattern and policy of each word.

Every mistake comes back with its line in the user's file.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import CodeError, ConfigError, EngineError, Mistake, UsageError
from weftwork.base.findings import Findings
from weftwork.base.user_code import UserCode
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.requirements import (
    check_reordering,
    note_host_delays,
    note_pauses,
    note_reordering,
    note_unfilled,
)
from weftwork.hardware.catalogue import GPUS, NICS, SERVERS, SWITCHES, nodes
from weftwork.policies.load import load, policy_names
from weftwork.spec.fabric import Fabric
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.scenario.policies import POLICY_KINDS
from weftwork.spec.scenario.scenario import Scenario, load_mapping
from weftwork.spec.scenario.scenario import load as load_scenario
from weftwork.spec.scenario.scenario import rows as scenario_rows
from weftwork.study.prepare.bent_routes import note_bent_routes
from weftwork.study.prepare.calibrated import (
    calibrated_transport,
    calibration_of,
    network_efficiency,
)
from weftwork.study.prepare.engine_settings import policies_of, transport_of
from weftwork.study.prepare.engineering import check_engineering, note_engineering, planned_paths
from weftwork.study.prepare.estimate import amounts_asked, amounts_of, refuse_amounts
from weftwork.study.prepare.faults import occurrences
from weftwork.study.prepare.forwarding import refuse_forwarding
from weftwork.study.prepare.ignored_keys import note_ignored_fields, note_ignored_keys
from weftwork.study.prepare.job_volume import volume
from weftwork.study.prepare.lowered import folds, lowered
from weftwork.study.prepare.other_routing import with_fitting_routing
from weftwork.study.prepare.prepared import Prepared
from weftwork.study.prepare.queue_pairs import with_queue_pairs
from weftwork.study.prepare.recipe_defaults import with_recipes
from weftwork.study.prepare.recording import recording
from weftwork.study.prepare.rewiring import rewirings
from weftwork.study.prepare.routing import check_pinned, routing_of
from weftwork.study.prepare.routing_steps import refuse_cycles, with_routing_step
from weftwork.study.prepare.shared_parts import shared_fabric, shared_jobs
from weftwork.study.prepare.training import proposed_plan
from weftwork.study.prepare.unjoined import refuse_unjoined
from weftwork.study.prepare.workload import ROADS
from weftwork.topology.build import fabric_of_section
from weftwork.workload.models.catalogue import ABSENT, MODELS
from weftwork.workload.models.software import SOFTWARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.job import Placement
    from weftwork.spec.scenario.policies import ParameterValue, PolicyKind
    from weftwork.spec.scenario.transport import TransportSection
    from weftwork.spec.transport import Transport

__all__ = [
    "check_parameters",
    "check_transport",
    "fabric_of_scenario",
    "known_names",
    "located",
    "prepare",
    "prepare_like",
    "read_once",
    "read_scenario",
    "topology_of_scenario",
    "want_overrides",
    "want_scenario",
]

# what the stage ``parts`` judges, in the order in which mistakes are told
PARTS: Final = ("jobs", "reordering", "rewirings", "faults", "routing", "pins", "engineering", "recording")
SPRAYED_REORDER_THRESHOLD_PACKETS: Final = 128  # chosen: as the row transport.reorder_threshold says


def known_names() -> dict[str, Sequence[str]]:
    """Names of policies and devices that a scenario may use, by kind."""
    policies: dict[str, Sequence[str]] = {kind: list(policy_names(kind)) for kind in POLICY_KINDS}
    devices = {"switch": list(SWITCHES), "nic": list(NICS), "node": list(SERVERS), "gpu": list(GPUS)}
    models = {"model": list(MODELS), "absent model": list(ABSENT)}
    return {**policies, **devices, **models, "software": list(SOFTWARE)}


def check_parameters(kind: str, name_or_path: str, parameters: Mapping[str, ParameterValue]) -> Sequence[Mistake]:
    """Find mistakes in the parameters of a policy.

    The path of a mistake is the name of its parameter.
    """
    try:
        load(kind, name_or_path, parameters, path=kind)
    except ConfigError as error:
        return [Mistake(path=m.path.removeprefix(f"{kind}."), text=m.text, fix=m.fix) for m in error.mistakes]
    return []


def check_transport(section: TransportSection) -> Sequence[Mistake]:
    """Find selections that reorder packets for a receiver without reordering."""
    if section.force:
        return []
    kinds: tuple[PolicyKind, ...] = ("path_selection", "port_selection")
    try:
        chosen = [load(kind, getattr(section, kind).label) for kind in kinds]
        findings = Findings()
        check_reordering(transport_of(section), chosen, findings)
    except CodeError:  # `prepare` meets it again and tells its file and line, when all keys are right
        return []
    return findings.mistakes


def read_scenario(
    scenario: str | Path | Mapping[str, object],
    overrides: Mapping[str, object] | None = None,
    *,
    user_code: bool = True,
    later_files: frozenset[str] = frozenset(),
) -> Scenario:
    """Read a scenario with all installed policies and devices.

    Parameters
    ----------
    scenario : a file, or a dict with its sections; files that a dict names are relative to the current folder
    overrides : dotted key to a value: a number, bool, None, list, dict or path of Python, or YAML text as ``--set``
        takes it; None removes the key, a dict replaces the whole value, and a dotted key changes one key in it
    user_code : whether it may name Python files, which are then run; False refuses each one outside the package, so
        that nothing of the scenario's author is run now or later
    later_files : keys whose files need not be there yet, since whoever calls will write them

    Raises
    ------
    ConfigError : with all mistakes
    CodeError : a Python file of the user's own is wrong (`PolicyError`: a policy)
    UsageError : an argument has another type

    Examples
    --------
    >>> read_scenario({"fabric": {"radix": 4}, "traffic": {"pattern": "permutation"}}, {"engine.seed": 2}).engine.seed
    2
    """
    return _read(scenario, overrides, UserCode.RUN if user_code else UserCode.REFUSED, later_files)


def fabric_of_scenario(
    path: str | Path | Mapping[str, object],
    overrides: Mapping[str, object] | None = None,
    *,
    user_code: bool = True,
) -> Fabric:
    """Build the fabric of a scenario.

    Of its Python files only the topology is run.

    Parameters
    ----------
    path : a scenario, a file or a dict
    overrides : as in `read_scenario`; keys that may belong to an unread file are not judged
    user_code : False refuses every Python file outside the package that the scenario names

    Raises
    ------
    ConfigError : with all mistakes, and their lines where the file has lines
    CodeError : the topology of the user's own is wrong; with file and line
    """
    scenario = _read(path, overrides, UserCode.TOPOLOGY if user_code else UserCode.REFUSED)
    try:
        folder = Path() if isinstance(path, Mapping) else Path(path).parent
        return fabric_of_section(scenario.fabric, directory=folder)
    except ConfigError as wrong:
        raise scenario.locate(wrong) from wrong


def topology_of_scenario(
    path: str | Path | Mapping[str, object],
    overrides: Mapping[str, object] | None = None,
    *,
    user_code: bool = True,
) -> str | None:
    """Read the name, or the file, of the topology of a scenario; None where its fabric is a file.

    Parameters
    ----------
    path, overrides, user_code : as in `fabric_of_scenario`

    Raises
    ------
    ConfigError : with all mistakes, and their lines where the file has lines
    """
    section = _read(path, overrides, UserCode.TOPOLOGY if user_code else UserCode.REFUSED).fabric
    return section.topology if section.file is None else None


def _read(
    given: str | Path | Mapping[str, object],
    overrides: Mapping[str, object] | None,
    user_code: UserCode,
    later_files: frozenset[str] = frozenset(),
) -> Scenario:
    want_scenario(given)
    want_overrides(overrides)
    load = partial(load_mapping, given) if isinstance(given, Mapping) else partial(load_scenario, Path(given))
    scenario = load(
        overrides,
        known=known_names(),
        check_parameters=check_parameters,
        check_transport=check_transport,
        propose_plan=proposed_plan,
        nodes=nodes(),
        user_code=user_code,
        later_files=later_files,
    )
    return with_recipes(scenario) if scenario.trainings else scenario


def read_once(
    scenario: Scenario | str | Path | Mapping[str, object],
    overrides: Mapping[str, object] | None,
    *,
    user_code: bool = True,
) -> Scenario:
    """Read a scenario, unless it was read already.

    Raises
    ------
    ConfigError : with all mistakes, or overrides for a scenario that was read
    CodeError : a Python file of the user's own is wrong (`PolicyError`: a policy)
    UsageError : an argument has another type
    """
    if not isinstance(scenario, Scenario):
        return read_scenario(scenario, overrides, user_code=user_code)
    if overrides:
        text = "overrides are for a file or a dict; a scenario that was read is changed with model_copy"
        raise ConfigError(scenario.source, [Mistake(path="overrides", text=text)])
    return scenario


def want_scenario(given: object) -> None:
    """Refuse what is no scenario, before it fails somewhere inside.

    Raises
    ------
    UsageError : neither a path nor a mapping
    """
    if not isinstance(given, (str, Path, Mapping)):
        read = ", which is read already" if isinstance(given, Scenario) else ""
        raise UsageError(f"found scenario={ascii(given)[:60]}{read}, wanted a path or a dict")


def want_overrides(overrides: object) -> None:
    """Refuse what are no overrides; their values are judged where they are read.

    Raises
    ------
    UsageError : no mapping, or a key that is not text
    """
    if overrides is not None and not (
        isinstance(overrides, Mapping) and all(isinstance(key, str) for key in overrides)
    ):
        found = ascii(overrides)[:60]
        raise UsageError(f"found overrides={found}, wanted a mapping of dotted keys to values")


def prepare(
    scenario: Scenario | str | Path | Mapping[str, object],
    overrides: Mapping[str, object] | None = None,
    *,
    fabric: Fabric | None = None,
    placement: Placement | None = None,
) -> Prepared:
    """Build all parts of a run, and lower them for its engine.

    The parts are fabric, jobs, transport and policies.

    Parameters
    ----------
    scenario : that was read, or a file or a dict, which is read first
    overrides : as in `read_scenario`, for a file or a dict
    fabric : built in Python, in place of the scenario's; what was resolved from the scenario's own, such as the number
        of senders of an incast, stays
    placement : of the ranks of the section ``training``, in place of the scenario's; None: as the scenario says

    Raises
    ------
    ConfigError : with all reasons why this cannot run, with lines where the scenario came from a file
    CodeError : a Python file of the user's own is wrong (`PolicyError`: a policy)
    """
    scenario = read_once(scenario, overrides)
    try:
        return _prepare(scenario, fabric, placement, None)
    except ConfigError as error:
        raise located(scenario, error) from error


def prepare_like(similar: Prepared, scenario: Scenario, fabric: Fabric) -> Prepared:
    """Build all parts of a run that differs little from a prepared one.

    Programs, and the table of their operations, are taken from there where they would be written alike.

    Parameters
    ----------
    similar : the prepared run
    scenario : that was read
    fabric : in place of the scenario's

    Raises
    ------
    ConfigError, CodeError : as `prepare`
    """
    try:
        return _prepare(scenario, fabric, None, similar)
    except ConfigError as error:
        raise located(scenario, error) from error


def located(scenario: Scenario, error: ConfigError) -> ConfigError:
    """Add line numbers to an error about keys of the scenario.

    An error about another file keeps its own source and lines.
    """
    sections = {one.path.partition(".")[0] for one in scenario_rows()}
    is_mine = all(mistake.line is None and mistake.path.split(".")[0] in sections for mistake in error.mistakes)
    return scenario.locate(error) if is_mine or error.source == scenario.source else error


def _check_fidelity(scenario: Scenario, findings: Findings) -> None:
    """Find an engine that is not there, which only a scenario made in Python can name."""
    name, names = scenario.engine.fidelity, list(FIDELITIES)
    if name not in names:
        findings.wrong("engine.fidelity", f"found '{name}', wanted {', '.join(names[:-1])} or {names[-1]}")


def _prepare(
    scenario: Scenario, fabric: Fabric | None, placement: Placement | None, similar: Prepared | None
) -> Prepared:
    findings = Findings(source=scenario.source)
    with findings.stage("fidelity"):
        _check_fidelity(scenario, findings)
    if fabric is None:
        refuse_amounts(scenario, amounts_asked(scenario))
        fabric = shared_fabric(scenario)
    refuse_forwarding(scenario, fabric)
    transport = transport_of(scenario.transport)
    if scenario.workload_kind.calibrates_transport:
        transport = calibrated_transport(transport, network_efficiency(calibration_of(scenario)))
    job, sent, series, taken = None, None, None, None
    with findings.stage("parts"):
        parts = {part: findings.reserved() for part in PARTS}
        fabric, changes = rewirings(scenario, fabric, parts["rewirings"])
        policies = with_routing_step(scenario, fabric, transport, policies_of(scenario), parts["routing"])
        chosen = (policies["path_selection"], policies["port_selection"])
        jobs = shared_jobs(scenario, fabric, parts["jobs"], placement, similar.jobs if similar else ())
        note_ignored_keys(scenario, fabric, findings, moves=_moves(chosen), reorders=_reorders(chosen))
        note_ignored_fields(scenario, transport, findings)
        if not parts["jobs"].has_mistakes:
            job = ROADS[scenario.workload_kind.name].make_job(scenario, fabric, jobs, findings)
            job = with_queue_pairs(scenario, job, policies, findings)
            sent = None if folds(scenario) else volume(job)
            taken = refuse_amounts(scenario, amounts_of(scenario, fabric, job, sent))
            series = recording(scenario, fabric, job, policies, parts["recording"])
        if not scenario.transport.force:
            check_reordering(transport, chosen, parts["reordering"])
        transport = _reordering(scenario, transport, chosen)
        faults = occurrences(scenario, fabric, parts["faults"], changes)
        check_pinned(scenario, fabric, job, parts["pins"])
        check_engineering(scenario, policies, parts["engineering"])
    if job is None or taken is None:
        raise EngineError("no stage has refused a scenario without a job")
    planned = planned_paths(scenario, fabric, job, transport, faults)
    try:
        engine_input = lowered(
            scenario,
            fabric=fabric,
            job=job,
            transport=transport,
            policies=policies,
            faults=faults,
            findings=findings,
            planned=planned,
            known=None if similar is None or similar.job is not job else similar.engine_input,
        )
    except ConfigError as error:
        raise with_fitting_routing(error, scenario, fabric) from error
    refuse_unjoined(scenario, fabric, job)
    findings.note_each(fabric.caveats.values())
    note_engineering(planned, findings)
    note_bent_routes(scenario, fabric, engine_input.transport, faults, findings)
    refuse_cycles(scenario, fabric, engine_input, routing_of(scenario, fabric, findings, planned), faults, findings)
    if isinstance(engine_input, PacketInput):
        note_pauses(fabric, engine_input.transport, int(engine_input.class_lossless.sum()), findings)
        note_reordering(transport, chosen, findings)
        note_host_delays(fabric, transport, policies.values(), findings)
        note_unfilled(policies.values(), findings)
    return Prepared(
        scenario=scenario,
        fabric=fabric,
        jobs=tuple(jobs),
        job=job,
        transport=engine_input.transport,
        policies=policies,
        faults=tuple(sorted(faults, key=lambda occurrence: occurrence.at_ps)),
        volume=sent,
        estimate=taken,
        series=series,
        engine_input=engine_input,
        notes=findings.notes,
        planned=planned,
    )


def _moves(chosen: tuple[LoadedPolicy, LoadedPolicy]) -> bool:
    return getattr(chosen[0].plugin, "reorders", "never") != "never"


def _reorders(chosen: tuple[LoadedPolicy, LoadedPolicy]) -> bool:
    return any(getattr(policy.plugin, "reorders", "never") == "always" for policy in chosen)


def _reordering(scenario: Scenario, transport: Transport, chosen: tuple[LoadedPolicy, LoadedPolicy]) -> Transport:
    """The transport with a default reorder threshold under selective repeat.

    The default depends on whether packets overtake each other.
    """
    if transport.recovery != "selective-repeat" or scenario.transport.reorder_threshold_packets is not None:
        return transport
    if not _reorders(chosen):
        return transport
    return transport.model_copy(update={"reorder_threshold_packets": SPRAYED_REORDER_THRESHOLD_PACKETS})
