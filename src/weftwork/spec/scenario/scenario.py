"""A scenario: one file for fabric, transport and workload, fully resolved.

It is a frozen record. `load` finds all mistakes of a file at once, each with its path, line, what was found, what is
allowed and the nearest spelling.
`dump` writes the complete scenario, which `loads` reads back to an equal one. A run is a pure function of this record.
Leaves out: what needs the policies, the hardware catalogue or the built fabric; floors above use `Scenario.locate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, PrivateAttr

from weftwork.base.above import Shown
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.file_forms import refuse_folder, refuse_foreign
from weftwork.base.findings import Findings
from weftwork.base.fix import Fix
from weftwork.base.plain_file import read_plain
from weftwork.base.user_code import UserCode
from weftwork.spec.device import Record
from weftwork.spec.scenario.checks import check_workload, resolve_transport
from weftwork.spec.scenario.chosen import chooser_of
from weftwork.spec.scenario.devices import NodeModel, device_rows
from weftwork.spec.scenario.fabric import FabricSection
from weftwork.spec.scenario.fabric_checks import resolve_fabric
from weftwork.spec.scenario.faults import FaultSection, check_faults
from weftwork.spec.scenario.kinds import (
    Choice,
    DeviceKind,
    FileName,
    PolicyChoiceKind,
    Section,
    SectionList,
    Text,
    Whole,
    WrongValueError,
)
from weftwork.spec.scenario.migrations import OLDEST, SCHEMA, of_this_schema
from weftwork.spec.scenario.overrides import apply_override
from weftwork.spec.scenario.policies import ParameterCheck, known_policies
from weftwork.spec.scenario.python_tree import NO_LINE, mapping_tree
from weftwork.spec.scenario.reader import Places, Reader
from weftwork.spec.scenario.reliability import Reliability
from weftwork.spec.scenario.rows import KeyRow, applies, row, rows_of, selector
from weftwork.spec.scenario.training import PlanProposal, Straggler, TrainingJobSection, TrainingSection
from weftwork.spec.scenario.training_checks import (
    check_engine,
    check_jobs,
    check_stragglers,
    check_training,
    resolve_engine,
)
from weftwork.spec.scenario.transport import TransportCheck, TransportSection
from weftwork.spec.scenario.unknown_key import KnownKeys
from weftwork.spec.scenario.workload import CollectiveSection, EngineSection, TrafficSection
from weftwork.spec.scenario.workload_access import ONE_OF, ONE_WORKLOAD, WorkloadAccess
from weftwork.spec.scenario.yaml_tree import MAX_BYTES, Node, Scalar, read_tree, show
from weftwork.spec.scenario.yaml_tree import Mapping as Tree
from weftwork.spec.scenario.yaml_tree import Sequence as Items
from weftwork.spec.workloads import WORKLOADS

__all__ = ["LATER", "THE_DICT", "Scenario", "load", "load_mapping", "loads", "rows", "section_rows"]

THE_DICT = "the dict given"  # what errors call a scenario without a file

# Sections that are no part of one run.
LATER = {
    "import": "import comes with a later version; this one has collective, traffic, training and jobs",
    "sweep": "varies keys over many runs: run it by `weftwork sweep FILE`, or leave it out",
}


class Scenario(WorkloadAccess, Record, Shown):
    """All inputs of a run, resolved to numbers with units.

    These are bits per second, bytes, picoseconds, absolute paths, and all defaults.
    """

    schema_version: int = row(
        "schema",
        Whole(low=OLDEST, high=SCHEMA, unit="version"),
        default="required",
        text="Version of the language in which the file is written.",
        source="chosen: 3 is that of the first release",
    )
    name: str = row("name", Text(), absent="the name of the file", text="Name of the run.", source="chosen: the file's")
    fabric: FabricSection = row(
        "fabric", Section(model=FabricSection), text="Hosts, switches and links.", source="see its keys"
    )
    transport: TransportSection = row(
        "transport",
        Section(model=TransportSection),
        text="Packets, recovery, congestion control and load balancing.",
        source="see its keys",
    )
    collective: CollectiveSection | None = row(
        "collective",
        Section(model=CollectiveSection, optional=True),
        absent="another workload is given",
        text="Workload: one collective operation.",
        source="see its keys",
    )
    traffic: TrafficSection | None = row(
        "traffic",
        Section(model=TrafficSection, optional=True),
        absent="another workload is given",
        text="Workload: flows between hosts.",
        source="see its keys",
    )
    training: TrainingSection | None = row(
        "training",
        Section(model=TrainingSection, optional=True),
        absent="another workload is given",
        text="Workload: a training job.",
        source="see its keys",
    )
    jobs: tuple[TrainingJobSection, ...] = row(
        "jobs",
        SectionList(model=TrainingJobSection),
        text="Workload: several training jobs on one fabric, each with the keys of training.",
        source="see its keys",
    )
    stragglers: tuple[Straggler, ...] = row(
        "stragglers", SectionList(model=Straggler), text="GPUs that compute slower.", source="see its keys"
    )
    reliability: Reliability | None = row(
        "reliability",
        Section(model=Reliability, optional=True),
        absent="nothing is asked about weeks",
        text="Failure rates, for the goodput of training over weeks.",
        source="see its keys",
    )
    calibration: str | None = row(
        "calibration",
        FileName(endings=(".toml",)),
        absent="the constants of Weftwork",
        text="Constants that `weftwork calibrate` fitted on measurements of your own, for training jobs and"
        " collectives; a key that the scenario gives goes before them.",
        source="docs/models/calibration.md",
    )
    engine: EngineSection = row(
        "engine", Section(model=EngineSection), text="Engine, seed and recordings of the run.", source="see its keys"
    )
    faults: tuple[FaultSection, ...] = row(
        "faults",
        SectionList(model=FaultSection),
        text="Faults of links, switches and NICs.",
        source="see its keys",
    )

    _places: Places = PrivateAttr(default_factory=Places)
    _source: str = PrivateAttr(default="scenario")
    _notes: tuple[str, ...] = PrivateAttr(default=())

    @property
    def source(self) -> str:
        """File or name that the scenario was read from."""
        return self._source

    @property
    def notes(self) -> tuple[str, ...]:
        """Changes of a migration, one sentence each."""
        return self._notes

    def line_of(self, path: str) -> int | None:
        """Line of a key or its nearest section, or None.

        A key is written like ``fabric.radix``. None means that the file has neither.
        """
        return self._places.line_of(path)

    def is_set(self, path: str) -> bool:
        """Whether a key is set in the file or by an override.

        A key is written like ``fabric.radix``.
        """
        return path in self._places.lines and path not in self._places.removed

    def mistake(self, path: str, text: str, fix: Fix | None = None) -> Mistake:
        """Make a mistake at a key, with its line or the ``--set`` that brought it."""
        return self._places.mistake(path, text, fix)

    def locate(self, error: ConfigError) -> ConfigError:
        """Return the error with this scenario as source, and with line numbers.

        A mistake gets a line if its path is a key.
        """
        return ConfigError(
            self._source,
            [m if m.line is not None else self._places.mistake(m.path, m.text, m.fix) for m in error.mistakes],
            stage=error.stage,
        )

    def __eq__(self, other: object) -> bool:
        """Compare the described content.

        Lines, notes and the name of the file do not count.
        """
        return isinstance(other, Scenario) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # parameters of policies and devices are dicts


def load(  # noqa: PLR0913 - all but the first two by name
    path: Path,
    overrides: Mapping[str, object] | None = None,
    *,
    known: Mapping[str, Sequence[str]] | None = None,
    check_parameters: ParameterCheck | None = None,
    check_transport: TransportCheck | None = None,
    propose_plan: PlanProposal | None = None,
    nodes: Mapping[str, NodeModel] | None = None,
    user_code: UserCode = UserCode.RUN,
    later_files: frozenset[str] = frozenset(),
) -> Scenario:
    """Read a scenario from a file.

    Parameters
    ----------
    path : YAML in UTF-8
    overrides : dotted key to a value: YAML text, as ``--set key=text`` gives it, or a number, bool, list, dict or path
        of Python; ``null`` or None removes a key
    known : names that exist, by kind of policy (``congestion_control`` ...) and of device (``switch``, ``nic``,
        ``node``; not
        judged where absent); by default the policies that are installed
    check_parameters : judges the parameters of a policy; see `weftwork.spec.scenario.policies.ParameterCheck`
    check_transport : judges a transport with its policies; see `weftwork.spec.scenario.transport.TransportCheck`
    propose_plan : finds degrees of parallelism that all rules accept
    nodes : servers of the catalogue by name; without them what follows from one, such as ``hosts``, stays open
    user_code : which Python files that the file names are run
    later_files : keys whose files need not be there yet, since whoever calls will write them

    Raises
    ------
    ConfigError : with every mistake of the file and the overrides

    Source: the design's example; YAML 1.2.
    """
    source = str(path)
    refuse_folder(path, "scenario")
    try:
        raw = read_plain(path, MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a path"
        raise ConfigError(source, [Mistake(path="file", text=f"cannot be read: {reason}")]) from error
    refuse_foreign(source, raw, "scenario")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            source, [Mistake(path="file", text="not UTF-8 text; save the file as UTF-8", line=line)]
        ) from error
    return loads(
        text, source, overrides, directory=path.parent, name=path.stem, known=known, check_parameters=check_parameters,
        check_transport=check_transport, propose_plan=propose_plan, nodes=nodes, user_code=user_code,
        later_files=later_files,
    )  # fmt: skip


def loads(  # noqa: PLR0913 - what `load` takes, all by name
    text: str,
    source: str = "scenario",
    overrides: Mapping[str, object] | None = None,
    *,
    directory: Path | None = None,
    name: str = "scenario",
    known: Mapping[str, Sequence[str]] | None = None,
    check_parameters: ParameterCheck | None = None,
    check_transport: TransportCheck | None = None,
    propose_plan: PlanProposal | None = None,
    nodes: Mapping[str, NodeModel] | None = None,
    user_code: UserCode = UserCode.RUN,
    later_files: frozenset[str] = frozenset(),
) -> Scenario:
    """Read a scenario from text; as `load`.

    Parameters
    ----------
    text : YAML
    source : what errors call it
    directory : folder to which files in the scenario are relative; by default the current one
    name : of the scenario where the text gives none

    Examples
    --------
    >>> text = "{schema: 3, fabric: {radix: 4, link_rate: 100Gbps}, traffic: {pattern: permutation}}"
    >>> known = {"congestion_control": ["dcqcn"], "path_selection": ["ecmp"], "port_selection": ["ecmp"]}
    >>> scenario = loads(text, known=known)
    >>> scenario.fabric.hosts, scenario.fabric.link_rate_bps
    (16, 100000000000)
    """
    findings = Findings(source=source)
    root = read_tree(text, findings)
    if root is None and not findings.has_mistakes:
        findings.wrong("file", f"the file is empty, wanted `schema: {SCHEMA}` and its sections")
    if root is not None and not isinstance(root, Tree):
        text = f"found {show(root)}, wanted a mapping that begins with `schema: {SCHEMA}`"
        findings.wrong("file", text, line=root.line)
    if not isinstance(root, Tree):
        raise ConfigError(source, findings.mistakes)
    reader = Reader(
        known=known_policies() if known is None else known,
        directory=Path() if directory is None else directory,
        check_parameters=check_parameters,
        check_transport=check_transport,
        propose_plan=propose_plan,
        nodes=nodes or {},
        user_code=user_code,
        later_files=later_files,
        findings=findings,
    )
    return _read(root, reader, overrides, source, name)


def load_mapping(  # noqa: PLR0913 - what `load` takes, all by name
    given: Mapping[str, object],
    overrides: Mapping[str, object] | None = None,
    *,
    known: Mapping[str, Sequence[str]] | None = None,
    check_parameters: ParameterCheck | None = None,
    check_transport: TransportCheck | None = None,
    propose_plan: PlanProposal | None = None,
    nodes: Mapping[str, NodeModel] | None = None,
    user_code: UserCode = UserCode.RUN,
    later_files: frozenset[str] = frozenset(),
) -> Scenario:
    """Read a scenario from a dict; as `load`.

    Parameters
    ----------
    given : the sections, with values of Python; files are relative to the current folder, and without ``schema`` the
        newest holds

    Examples
    --------
    >>> known = {"congestion_control": ["dcqcn"], "path_selection": ["ecmp"], "port_selection": ["ecmp"]}
    >>> given = {"fabric": {"radix": 4, "link_rate": "100Gbps"}, "traffic": {"pattern": "permutation"}}
    >>> load_mapping(given, {"fabric.radix": 8}, known=known).fabric.hosts
    128
    """
    findings = Findings(source=THE_DICT)
    root, bad = mapping_tree(given, findings)
    if root.get("schema") is None:
        root = root.put("schema", Scalar(text=str(SCHEMA), line=NO_LINE))
    reader = Reader(
        known=known_policies() if known is None else known,
        directory=Path(),
        check_parameters=check_parameters,
        check_transport=check_transport,
        propose_plan=propose_plan,
        nodes=nodes or {},
        user_code=user_code,
        later_files=later_files,
        folder_words="the current folder",
        places=Places(whole="scenario"),
        findings=findings,
        bad=bad,
    )
    return _read(root, reader, overrides, THE_DICT, "scenario")


def _read(root: Tree, reader: Reader, overrides: Mapping[str, object] | None, source: str, name: str) -> Scenario:
    for key, value in (overrides or {}).items():
        root = apply_override(root, key, value, reader.findings)
    root, notes = of_this_schema(root, reader, source)
    reader.paths = partial(_known_keys, root)
    scenario = _resolve(reader.section(_fabric_from_file(root), "", Scenario, LATER), root, reader, name)
    reader.findings.refuse("reading")
    scenario._places, scenario._source, scenario._notes = reader.places, source, notes  # noqa: SLF001 - private to the pair of us
    return scenario


def _fabric_from_file(root: Tree) -> Tree:
    """Set ``topology: file`` if a fabric file is given without a topology."""
    fabric = root.get("fabric")
    if fabric is None or not isinstance(fabric.node, Tree) or fabric.node.get("topology") is not None:
        return root
    file = fabric.node.get("file")
    if file is None or (isinstance(file.node, Scalar) and file.node.value is None):
        return root
    node = fabric.node.put("topology", Scalar(text="file", line=file.line))
    entries = tuple(
        entry if entry.key != "fabric" else type(entry)(key="fabric", node=node, line=fabric.line)
        for entry in root.entries
    )
    return Tree(entries=entries, line=root.line)


def _is_there(root: Tree, key: str) -> bool:
    """Whether a key is in the file.

    A key that ``--set key=null`` removed from a file without it is not.
    """
    entry = root.get(key)
    return entry is not None and not (
        isinstance(entry.node, Scalar) and entry.node.value is None and entry.line is None
    )


def _resolve(draft: Any, root: Tree, reader: Reader, name: str) -> Scenario:  # noqa: ANN401 - not valid before it is checked
    if root.get("fabric") is None:
        reader.wrong("fabric", "missing, wanted a mapping such as {topology: fat-tree, tiers: 3, radix: 8}")
    given = [key for key in WORKLOADS if _is_there(root, key)]
    if not given and not any(root.get(key) for key in LATER):
        reader.wrong("file", ONE_WORKLOAD)
    for key in given[1:]:
        reader.wrong(key, f"a second workload beside {given[0]}, wanted {ONE_OF}")
    fabric = resolve_fabric(draft.fabric, reader) if reader.is_sound("fabric") else draft.fabric
    transport = resolve_transport(draft.transport, reader, has_traffic=draft.traffic is not None)
    workload = draft.collective if draft.collective is not None else draft.traffic
    if workload is not None and reader.is_sound(given[0] if given else "file"):
        workload = check_workload(workload, fabric, transport, reader)
    training, jobs = draft.training, draft.jobs
    if training is not None and reader.is_sound("training"):
        training = check_training(training, fabric, reader)
    if "jobs" in given and reader.is_sound("jobs"):
        jobs = check_jobs(jobs, fabric, reader)
    is_training = training is not None or bool(jobs)
    engine = resolve_engine(draft.engine, is_training=is_training)
    if jobs:
        check_engine(engine, reader)
    check_stragglers(draft.stragglers, fabric, reader, is_training=is_training)
    if draft.reliability is not None and not is_training and reader.is_sound(*(given or ("file",))):
        reader.wrong("reliability", "is about training jobs, and the scenario has none")
    if draft.calibration is not None and draft.traffic is not None and reader.is_sound("calibration", "traffic"):
        reader.wrong("calibration", "is about training jobs and collectives, and the scenario has traffic")
    check_faults(draft.faults, engine, reader)
    return Scenario.model_construct(
        schema_version=draft.schema_version,
        name=draft.name if draft.name is not None else name,
        fabric=fabric,
        transport=transport,
        collective=workload if isinstance(workload, CollectiveSection) else None,
        traffic=workload if isinstance(workload, TrafficSection) else None,
        training=training,
        jobs=jobs,
        stragglers=draft.stragglers,
        reliability=draft.reliability,
        calibration=draft.calibration,
        engine=engine,
        faults=draft.faults,
    )


@cache
def rows() -> tuple[KeyRow, ...]:
    """List the row of every section and key, each with its ``path``.

    The path is dotted. An item of a list has its list's path: ``faults.at``. A key that several choices have, each in a
    sense of its own, has a row for each.
    """
    return tuple(_rows_below(rows_of(Scenario).values(), ""))


@cache
def section_rows() -> tuple[KeyRow, ...]:
    """List those of `rows` that the sections have whatever is chosen; no file of a catalogue is imported for them."""
    return tuple(_rows_below(rows_of(Scenario).values(), "", has_choices=False))


def _known_keys(root: Tree) -> KnownKeys:
    """Every key with its allowed words; numbers, names of files and the like have none."""
    found: dict[str, tuple[str, ...]] = {}
    for one in rows():
        words = one.kind.options if isinstance(one.kind, Choice) else ()
        found[one.path] = (*found.get(one.path, ()), *words)
    lists = {one.path for one in rows() if isinstance(one.kind, SectionList)}
    return KnownKeys(words=found, lists=lists, suits=partial(_suits, root))


def _suits(root: Tree, path: str, place: str, value: object) -> bool:
    """Whether a key takes a node of the file, beside what stands there."""
    return any(one.path == path and _is_meant(root, one, place) and _reads(one.kind, value) for one in rows())


def _is_meant(root: Tree, described: KeyRow, place: str) -> bool:
    """Whether a key means something with the choice that decides about it."""
    deciding = selector(described)
    if deciding is None:
        return True
    node: Node | None = root
    for part in [*place.split(".")[:-1], deciding]:
        node = _inside(node, part)
    if isinstance(node, Scalar) and node.value is not None:
        return applies(described, node.value)
    section = described.path.rpartition(".")[0]
    rule = next((one for one in rows() if one.path == f"{section}.{deciding}"), None)
    return rule is not None and applies(described, rule.default)


def _inside(node: Node | None, part: str) -> Node | None:
    if isinstance(node, Items) and part.isdecimal() and int(part) < len(node.items):
        return node.items[int(part)]
    entry = node.get(part) if isinstance(node, Tree) else None
    return None if entry is None else entry.node


def _reads(kind: Any, value: Any) -> bool:  # noqa: ANN401 - one of many kinds, and a node
    match kind:
        case Section():
            return isinstance(value, Tree)
        case SectionList():
            return isinstance(value, Items)
        case PolicyChoiceKind() | DeviceKind():
            return isinstance(value, Tree | Scalar)
    try:
        kind.read(value)
    except WrongValueError:
        return False
    return True


def _rows_below(described: Iterable[KeyRow], path: str, *, has_choices: bool = True) -> Iterator[KeyRow]:
    for one in described:
        at = f"{path}.{one.key}" if path else one.key
        yield replace(one, path=at)
        if isinstance(one.kind, Section | SectionList):
            inside = _rows_inside(one.kind.model, has_choices=has_choices)
            yield from _rows_below(inside, at, has_choices=has_choices)
        elif isinstance(one.kind, DeviceKind):
            head = _MODEL if one.kind.head == "model" else _PRESET
            yield from _rows_below([head, *device_rows(one.kind.record).values()], at)


def _rows_inside(model: type[BaseModel], *, has_choices: bool) -> Iterator[KeyRow]:
    """Rows of a section, with its choices' rows behind the choosing key."""
    chooser = chooser_of(model) if has_choices else None
    for one in (rows_of(model) or device_rows(model)).values():
        yield one
        if chooser is not None and one.field == chooser.name:
            yield from chooser.rows()


_MODEL = KeyRow(
    key="model",
    field="model",
    kind=Text(),
    default="plain",
    source="chosen: no vendor's",
    text="Device of the hardware catalogue that gives the figures which are not set here.",
)

_PRESET = KeyRow(
    key="name",
    field="name",
    kind=Text(),
    default="plain",
    source="chosen: nobody's",
    text="Preset of the catalogue that gives the figures which are not set here.",
)
