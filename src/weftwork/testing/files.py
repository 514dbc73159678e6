"""Run a user's own file through the kit of its kind.

The report has each action, its expectation, and the result. The kind follows from the constant that the file offers.
All checks are made, so that all failures are found at once; only what a failure makes meaningless is left out, and
said.
Leaves out: the rules by which a file is loaded; a file that breaks these raises.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import CodeError, ConfigError, PolicyError
from weftwork.base.grammar import plural
from weftwork.base.record_call import check_record_call
from weftwork.base.user_code import imported, line_of_constant, parsed, text_of
from weftwork.policies.check import check_imports
from weftwork.policies.load import KINDS as POLICIES
from weftwork.policies.load import LoadedPolicy, load
from weftwork.spec.scenario.choices import ALGORITHMS, PATTERNS, TOPOLOGIES, TRANSPORTS
from weftwork.spec.scenario.fabric import FabricSection
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.transport import TransportSection
from weftwork.spec.scenario.workload import CollectiveSection, TrafficSection
from weftwork.study.answer.suspects import SUSPICIONS
from weftwork.testing.checks import CHECKS
from weftwork.testing.choices import key_findings, offer_findings, read
from weftwork.testing.collectives import check_collective
from weftwork.testing.congestion_control import check_congestion_control, network_findings
from weftwork.testing.lattices import torus_box
from weftwork.testing.network import Bottleneck, Uplinks, Usage, uplink_findings
from weftwork.testing.path_selection import check_path_selection
from weftwork.testing.patterns import job_findings, pattern_document
from weftwork.testing.port_selection import check_port_selection
from weftwork.testing.steps import BREAKS
from weftwork.testing.suspicions import (
    gain_findings,
    kind_findings,
    repeat_findings,
    small_runs,
    suspectless_findings,
    trace_findings,
    word_findings,
)
from weftwork.testing.topologies import built_findings
from weftwork.testing.transports import sent_findings, transport_document
from weftwork.topology.build import fabric_of_section
from weftwork.workload.collectives.call import Call

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.testing.steps import Finding
    from weftwork.workload.collectives.algorithm import Algorithm

__all__ = ["CONSTANTS", "Failure", "FileReport", "check_file", "kind_of"]

CONSTANTS: Final = {"PLUGIN": "", "ALGORITHM": "collective", "TOPOLOGY": "topology", "PATTERN": "traffic",
                    "TRANSPORT": "transport", "SUSPICION": "suspect"}  # fmt: skip
_MOST_ALIKE: Final = 3  # chosen: as many failures of one check are written out; the others are counted
_POLICY_CHECKS: Final = {
    "congestion_control": (
        "declares_what_comes", "compiled_equals_plain", "no_signal_breaks_the_step", "timers_move_on",
        "rate_within_line_rate", "window_within_bounds", "no_reaction_to_old_news", "same_signals_same_answers",
        "only_differences_of_time_count",
    ),
    "path_selection": (
        "declares_what_comes", "compiled_equals_plain", "no_signal_breaks_the_step", "timers_move_on",
        "same_signals_same_answers", "keeps_its_path", "spreads_as_declared",
    ),
    "port_selection": (
        "declares_what_comes", "compiled_equals_plain", "no_packet_breaks_the_step", "same_signals_same_answers",
        "keeps_its_path", "uses_every_candidate", "spreads_as_declared",
    ),
}  # fmt: skip
_NETWORK_CHECKS: Final = {
    "congestion_control": (
        "runs_in_a_network", "one_flow_fills_the_link", "two_flows_share_the_link", "two_flows_fill_the_link"
    ),
    "path_selection": ("runs_in_a_network", "uses_every_uplink", "leaves_dead_uplinks", "everything_arrives"),
    "port_selection": ("runs_in_a_network", "uses_every_uplink", "leaves_dead_uplinks", "everything_arrives"),
}  # fmt: skip
# Ranks and GPUs of a server; then channels, chunks and bytes that nothing divides, and fewer bytes than ranks.
_SHAPES: Final = ((2, 1), (2, 2), (3, 1), (5, 1), (8, 1), (8, 4), (8, 8), (12, 4), (16, 8), (33, 1))
_LOADS: Final = ((1, 1, 1_000_003), (3, 2, 100_003), (4, 3, 5))
_HOSTS: Final = (2, 5, 8, 16, 64)  # of the fabrics of a pattern, of which the first that it does not refuse are taken
_SIZES: Final = 3
# What a transport is tried with, besides the defaults; it may refuse them.
_RULES: Final[tuple[dict[str, object], ...]] = (
    {}, {"mtu": 1024}, {"flow_control": "none"}, {"recovery": "selective-repeat"}
)  # fmt: skip

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """One violation of a kind's contract.

    Attributes
    ----------
    check : its name
    done, wanted : what was done, and what was expected
    came : what came instead
    case : with which keys or call; empty where there is one case only
    """

    check: str
    done: str
    wanted: str
    came: str
    case: str = ""


@dataclass(kw_only=True, slots=True)
class FileReport:
    """Findings of a kit.

    Attributes
    ----------
    file : that was held to it
    kind : as ``weftwork list`` names it
    checks : names of the checks that were made
    failures : all of them; of many alike the first three
    more : by check, failures that are not among these
    left_out : checks that were not made, since the file failed before, or None
    messages : of the run with two flows, for a congestion control
    usages : of the uplinks with all of them up and with one down, for a path or port selection
    fabric : of a topology
    """

    file: Path
    kind: str
    checks: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    more: dict[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    messages: NDArray[np.void] | None = None
    usages: list[Usage] = field(default_factory=list)
    fabric: Fabric | None = None

    def note(self, check: str, case: str, texts: Callable[..., Iterable[str]], *given: Any) -> bool:  # noqa: ANN401
        """Make a check and keep its findings; return whether there were none.

        Parameters
        ----------
        check : its name
        case : with which keys or call
        texts, given : a function and its arguments, which returns sentences; a `CodeError` that it raises is one, too
        """
        if check not in self.checks:
            self.checks.append(check)
        try:
            found = list(texts(*given))
        except CodeError as wrong:
            found = [str(wrong)]
        for text in found:
            if sum(failure.check == check for failure in self.failures) < _MOST_ALIKE:
                words = CHECKS[check]
                self.failures.append(Failure(check=check, done=words.done, wanted=words.wanted, came=text, case=case))
            else:
                self.more[check] = self.more.get(check, 0) + 1
        return not found


def check_file(path: Path, settings: Mapping[str, Any] = {}, *, progress: Progress = lambda _: None) -> FileReport:
    """Run the file and apply the kit of its kind.

    Parameters
    ----------
    path : a Python file, which runs with all rights of the user
    settings : parameters of a policy or keys of a choice, in place of their defaults
    progress : is told what is done next

    Raises
    ------
    CodeError : the file cannot be read or loaded, or offers nothing that Weftwork knows; with its line
    ConfigError : a parameter in ``settings`` is wrong
    """
    file = path.resolve()
    kind = kind_of(file)
    report = FileReport(file=file, kind=kind)
    if kind in POLICIES:
        _policy(report, load(kind, file, settings), progress)
    else:
        _CHOICES[kind](report, str(file), settings, progress)
    return report


def kind_of(file: Path) -> str:
    """Run a file and return its kind, as ``weftwork list`` names it.

    Raises
    ------
    CodeError : it cannot be read, is not Python, raises, or offers none of the constants, or several
    """
    source = text_of(file)
    tree = parsed(file, source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if "PLUGIN" in names:
        check_imports(str(file), tree)
        check_record_call(file, tree, "PLUGIN", POLICIES.values(), PolicyError)
    for folder in (ALGORITHMS, PATTERNS, TOPOLOGIES, TRANSPORTS, SUSPICIONS):
        folder.check_fields(file, tree)
    module = imported(file, source)
    offered = [name for name in CONSTANTS if hasattr(module, name)]
    if len(offered) != 1:
        found = " and ".join(offered) or "none of them"
        raise CodeError(str(file), 1, f"a file offers one of {', '.join(CONSTANTS)}; found {found}")
    if offered[0] != "PLUGIN":
        return CONSTANTS[offered[0]]
    kind = next((kind for kind, record in POLICIES.items() if isinstance(module.PLUGIN, record)), None)
    if kind is None:
        wanted = ", ".join(record.__name__ for record in POLICIES.values())
        found = type(module.PLUGIN).__name__
        raise PolicyError(str(file), line_of_constant(tree, "PLUGIN"), f"PLUGIN is a {found}, wanted one of {wanted}")
    return kind


def _policy(report: FileReport, policy: LoadedPolicy, progress: Progress) -> None:
    kits: dict[str, Callable[[LoadedPolicy], tuple[Finding, ...]]] = {
        "congestion_control": check_congestion_control,
        "path_selection": check_path_selection,
        "port_selection": check_port_selection,
    }
    progress("signals drawn at random")
    found = {finding.check: finding.text.splitlines() for finding in kits[report.kind](policy)}
    for check in _POLICY_CHECKS[report.kind]:
        report.note(check, "", found.get, check, [])
    runs, *others = _NETWORK_CHECKS[report.kind]
    if not BREAKS.isdisjoint(found):
        report.left_out = (runs, *others)
        return
    progress("a small network")
    in_network: dict[str, list[str]] = {}
    if not report.note(runs, "", _ran, report, policy, in_network):
        report.left_out = tuple(others)
        return
    for check in others:
        report.note(check, "", in_network.get, check, [])


def _ran(report: FileReport, policy: LoadedPolicy, in_network: dict[str, list[str]]) -> Iterable[str]:
    """Run a policy in its network, and add findings to ``in_network``.

    They are kept by check.
    """

    def bottleneck(policy: LoadedPolicy, flows: int) -> tuple[float, ...]:
        network = Bottleneck()
        report.messages = network.messages(policy, flows)
        return network.shares(report.messages, flows)

    def uplinks(policy: LoadedPolicy, *, dead: int | None = None) -> Usage:
        report.usages.append(Uplinks()(policy, dead=dead))
        return report.usages[-1]

    is_control = report.kind == "congestion_control"
    for finding in network_findings(policy, bottleneck) if is_control else uplink_findings(policy, uplinks):
        in_network.setdefault(finding.check, []).append(finding.text)
    return ()


def _topology(report: FileReport, label: str, settings: Mapping[str, Any], progress: Progress) -> None:
    def document(**more: Any) -> dict[str, Any]:  # noqa: ANN401 - values of keys
        fabric = {"topology": label, **settings, **more}
        return {"schema": SCHEMA, "fabric": fabric, "traffic": {"pattern": "permutation"}}

    progress("a fabric")
    whole = document()
    if not (
        report.note("describes_itself", "", offer_findings, TOPOLOGIES, label, FabricSection)
        and report.note("reads_its_keys", "", key_findings, TOPOLOGIES, label, "fabric", whole)
        and report.note("builds_a_fabric", "", built_findings, whole)
    ):
        return
    report.fabric = fabric_of_section(read(whole).fabric, directory=Path.cwd())
    fewer = {"hosts": len(report.fabric.hosts) - 1}
    for more in (fewer, {"node": {"gpus": 2, "nic_ports": 2}}):
        other = document(**{key: value for key, value in more.items() if key not in settings})
        if not _is_refused(other):
            report.note("builds_a_fabric", _words(more), built_findings, other)


def _traffic(report: FileReport, label: str, settings: Mapping[str, Any], progress: Progress) -> None:
    if not report.note("describes_itself", "", offer_findings, PATTERNS, label, TrafficSection):
        return
    documents = {count: pattern_document(label, settings, count) for count in _HOSTS}
    possible = [count for count, document in documents.items() if not _is_refused(document)]
    for count in (possible or list(documents))[:_SIZES]:
        case, document = plural(count, "host"), documents[count]
        progress(case)
        if report.note("reads_its_keys", case, key_findings, PATTERNS, label, "traffic", document):
            report.note("makes_a_job", case, job_findings, label, document, count)


def _transport(report: FileReport, label: str, settings: Mapping[str, Any], progress: Progress) -> None:
    if not report.note("describes_itself", "", offer_findings, TRANSPORTS, label, TransportSection):
        return
    for more in _RULES:
        document = transport_document(label, {**more, **settings})
        if more and _is_refused(document):
            continue
        progress(_words(more) or "the keys")
        if report.note("reads_its_keys", _words(more), key_findings, TRANSPORTS, label, "transport", document):
            report.note("carries_messages", _words(more), sent_findings, label, document)


def _suspect(report: FileReport, label: str, settings: Mapping[str, Any], progress: Progress) -> None:
    progress("the record")
    if not report.note("names_its_key", "", kind_findings, label, settings):
        return
    has_suspect = False
    for run in small_runs(label, settings):
        progress(run.words)
        if report.note("suspects_in_words", run.words, word_findings, run):
            report.note("same_run_same_suspects", run.words, repeat_findings, run)
            report.note("bound_holds", run.words, gain_findings, run)
            report.note("leaves_the_run_as_it_was", run.words, trace_findings, run)
            has_suspect = has_suspect or bool(run.suspects())
    if has_suspect:
        report.note("has_a_suspect", "", list)
    elif not report.failures:
        report.note("has_a_suspect", "", suspectless_findings, settings)


def _collective(report: FileReport, label: str, settings: Mapping[str, Any], progress: Progress) -> None:
    if not report.note("describes_itself", "", offer_findings, ALGORITHMS, label, CollectiveSection):
        return
    algorithm: Algorithm = ALGORITHMS.load(label)
    for operation in algorithm.operations:
        progress(operation)
        workload = {"algorithm": label, "operation": operation, "size": "1MiB", **settings}
        document = {"schema": SCHEMA, "fabric": {"radix": 4}, "collective": workload}
        if not report.note("reads_its_keys", operation, key_findings, ALGORITHMS, label, "collective", document):
            continue
        section = read(document).collective_section
        calls = [call for call in _calls(operation, section.options) if _is_possible(algorithm, label, call)]
        refused = [] if calls else [f"it refuses {operation} for every number of ranks that was tried"]
        report.note("does_what_it_offers", operation, refused.copy)
        for number, call in enumerate(calls):
            case = (
                f"{operation} of {call.size_bytes:,} B among {plural(call.ranks, 'GPU')}, {call.domain} in each server;"
                f" channels: {call.channels}, chunks: {call.chunks}"
            )
            report.note("computes_the_collective", case, _computed, algorithm, label, call, number)


def _calls(operation: str, options: Any) -> Iterator[Call]:  # noqa: ANN401 - keys of the user's own
    for ranks, domain in _SHAPES:
        for channels, chunks, size_bytes in _LOADS if ranks <= 8 else _LOADS[:1]:
            yield Call(
                operation=operation, ranks=ranks, size_bytes=size_bytes, channels=channels, chunks=chunks,
                domain=domain, lattice=torus_box(ranks) if domain == 1 else None, options=options,
                root=ranks * 2 // 3, nic_columns=2, step_latency_ps=2_000_000,
                local_step_latency_ps=600_000, base_latency_ps=7_000_000, protocol_efficiency=15 / 16,
            )  # fmt: skip


def _is_possible(algorithm: Algorithm, label: str, call: Call) -> bool:
    try:
        with ALGORITHMS.blaming(label):
            algorithm.check(call)
    except ConfigError:
        return False
    return True


def _computed(algorithm: Algorithm, label: str, call: Call, seed: int) -> list[str]:
    with ALGORITHMS.blaming(label):
        return check_collective(algorithm, call, seeds=(seed,), full=call.chunks == 2)


def _is_refused(document: Mapping[str, Any]) -> bool:
    """Whether a scenario is refused.

    A file may refuse scenarios that it cannot build.
    """
    try:
        read(document)
    except ConfigError:
        return True
    except CodeError:  # told where the keys are read
        return False
    return False


def _words(more: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in more.items())


_CHOICES: Final = {
    "collective": _collective, "suspect": _suspect, "topology": _topology, "traffic": _traffic,
    "transport": _transport,
}  # fmt: skip
