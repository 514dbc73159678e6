"""Named checks of the contract of a kind of suspect.

They hold for the catalogue and for a user's own file. The kind is asked about small runs of every kind of workload, and
what it suspects is left out of them.
Leaves out: whether the suspect is worth its place in an answer, which its cost in a real run shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml
from pydantic import BaseModel

from weftwork.base.errors import ConfigError
from weftwork.base.nearest import nearest
from weftwork.spec.scenario.kinds import PolicyChoiceKind
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.scenario import Scenario, rows
from weftwork.spec.scenario.written import dump
from weftwork.study.answer.suspect import Suspect
from weftwork.study.answer.suspects import SUSPICIONS, is_asked, made_by
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.results.measure import taken_ps
from weftwork.study.run.execute import execute

__all__ = [
    "SmallRun", "check_suspicion", "gain_findings", "kind_findings", "repeat_findings", "small_records", "small_runs",
    "suspectless_findings", "trace_findings", "word_findings",
]  # fmt: skip

_FABRIC: Final = {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "link_rate": "100Gbps"}
_SERVERS: Final = {"topology": "rail-optimized", "gpus": 16, "node": "dgx-h100", "switch": "tomahawk-5"}
_TRAINING: Final = {"model": "llama-3-8b", "tensor": 8, "micro_batch": 1, "global_batch": 4}
# One of every kind of workload and engine; chosen: as small as they can be
_DOCUMENTS: Final[Mapping[str, Mapping[str, object]]] = {
    "an incast on packets": {
        "fabric": _FABRIC, "traffic": {"pattern": "incast", "senders": 3, "size": "64KiB"},
    },
    "a permutation on flows with losses": {
        "fabric": {**_FABRIC, "loss": 0.001}, "traffic": {"pattern": "permutation", "size": "1MiB"},
        "engine": {"fidelity": "flow"},
    },
    "an all-reduce on packets": {
        "fabric": _FABRIC, "collective": {"operation": "all-reduce", "algorithm": "ring", "size": "64KiB"},
    },
    "an all-reduce on flows in a torus": {
        "fabric": {"topology": "torus", "shape": [4, 2], "link_rate": "100Gbps"},
        "collective": {"operation": "all-reduce", "algorithm": "ring", "size": "1MiB"},
        "engine": {"fidelity": "flow"},
    },
    "a training job on flows": {
        "fabric": _SERVERS, "training": {**_TRAINING, "data": 2}, "engine": {"fidelity": "flow"},
    },
    "two training jobs on flows": {
        "fabric": _SERVERS,
        "jobs": [{**_TRAINING, "name": name, "gpus": 8, "data": 1} for name in ("first", "second")],
        "engine": {"fidelity": "flow"},
    },
}  # fmt: skip
_PLACEHOLDER: Final = re.compile(r"\{[^}]*\}|%[sdfgr]\b|\b(None|nan|TOD[O]|FIXM[E])\b|<[a-z_ ]+>")
_PLACE: Final = re.compile(r"\.\d+(?=\.|$)")  # index of a list in a key
_ROUNDING: Final = 1e-3  # of the time; chosen: a bound of a tenth of a percent is given in three digits
_RECORDS: Final = ("scenario", "fabric", "job", "transport", "faults")  # of a prepared run, read by kinds of suspects


@dataclass(frozen=True, kw_only=True, slots=True)
class SmallRun:
    """A small run that has what a kind of suspect needs.

    Attributes
    ----------
    label : a name of the catalogue, or the path of a file
    kind : of suspect that it is asked for
    words : what runs, for people
    records : of the run
    digests : of its parts, before the kind was asked
    """

    label: str
    kind: Suspicion
    words: str
    records: RunRecords
    digests: Mapping[str, str]

    @classmethod
    def of(cls, label: str, words: str, records: RunRecords) -> SmallRun | None:
        """A run for a kind of suspect; None where it has not what the kind needs.

        Parameters
        ----------
        label : a name of the catalogue, or the path of a file
        words : what runs, for people
        records : of the run
        """
        kind = SUSPICIONS.load(label)
        if not is_asked(kind, records):
            return None
        return cls(label=label, kind=kind, words=words, records=records, digests=_digests(records))

    def suspects(self) -> list[Suspect]:
        """The suspects of the kind in this run.

        Raises
        ------
        CodeError : the file fails, or makes something else than suspects
        """
        return list(made_by(self.label, self.kind, self.records))


def check_suspicion(suspicion: str | Path, keys: Mapping[str, object] = {}) -> list[str]:
    """Ask a kind of suspect about small runs, and leave its suspects out.

    Parameters
    ----------
    suspicion : a name of the catalogue, or the path of your file
    keys : of the scenarios of the runs, dotted, such as ``{"fabric.cable_length": "2km"}``

    Returns
    -------
    what is wrong, a sentence each; empty if nothing is
    """
    label = str(suspicion)
    findings = list(kind_findings(label, keys))
    if findings:
        return findings
    has_suspect = False
    for run in small_runs(label, keys):
        words = list(word_findings(run))
        found = words or [*repeat_findings(run), *gain_findings(run), *trace_findings(run)]
        findings += [f"{run.words}: {text}" for text in found]
        has_suspect = has_suspect or bool(run.suspects())
    return findings if has_suspect else [*findings, *suspectless_findings(keys)]


def suspectless_findings(keys: Mapping[str, object]) -> Iterator[str]:
    """Yield that no small run has a suspect, so that nothing was left out.

    Parameters
    ----------
    keys : of the scenarios of the runs
    """
    said = ", ".join(f"{key}={value}" for key, value in keys.items()) or "the defaults"
    yield (
        f"no small run has a suspect with {said}: give keys with which a run has one,"
        " such as --set fabric.cable_length=2km"
    )


def kind_findings(label: str, keys: Mapping[str, object] = {}) -> Iterator[str]:
    """Yield mistakes in the record of a kind.

    Parameters
    ----------
    label : a name of the catalogue, or the path of a file
    keys : of the scenarios of small runs

    Raises
    ------
    ConfigError : no small run can have the keys
    """
    kind = SUSPICIONS.load(label)
    if not SUSPICIONS.text(label).strip():
        yield "the file has no docstring, whose first line says what is suspected"
    if all(text := list(_key_findings(kind.key, scenario)) for _, scenario in _scenarios(keys)):
        yield from text
    for name in kind.unless:
        if name not in SUSPICIONS:
            yield f"unless has '{name}', wanted a kind of suspect: {', '.join(SUSPICIONS)}"


def small_runs(label: str, keys: Mapping[str, object] = {}) -> Iterator[SmallRun]:
    """Yield small runs that have what a kind of suspect needs.

    Parameters
    ----------
    label : a name of the catalogue, or the path of a file
    keys : of their scenarios, dotted; a scenario that cannot have them is left out

    Raises
    ------
    ConfigError : none of the scenarios can have the keys
    """
    for words, records in small_records(keys):
        run = SmallRun.of(label, words, records)
        if run is not None:
            yield run


def small_records(keys: Mapping[str, object] = {}) -> Iterator[tuple[str, RunRecords]]:
    """Yield small runs that ended, one of each kind of workload and engine, with their words.

    Parameters
    ----------
    keys : of their scenarios, dotted; a scenario that cannot have them is left out

    Raises
    ------
    ConfigError : none of the scenarios can have the keys
    """
    for words, scenario in _scenarios(keys):
        prepared = prepare(scenario)
        execution = execute(prepared)
        if taken_ps(prepared, execution) is not None:
            yield words, RunRecords(prepared=prepared, execution=execution)


def _scenarios(keys: Mapping[str, object]) -> Iterator[tuple[str, Scenario]]:
    """The small scenarios that can have the keys, each with its words."""
    refused: ConfigError | None = None
    has_any = False
    for words, document in _DOCUMENTS.items():
        try:
            scenario = read_scenario({"schema": SCHEMA, **document}, dict(keys))
        except ConfigError as wrong:
            if not keys:
                raise
            refused = wrong
            continue
        has_any = True
        yield words, scenario
    if not has_any and refused is not None:
        raise refused


def word_findings(run: SmallRun) -> Iterator[str]:
    """Yield mistakes in the words and the key of each suspect of a run.

    Parameters
    ----------
    run : with or without suspects
    """
    scenario = run.records.prepared.scenario
    for suspect in run.suspects():
        line = f"{suspect.name} {suspect.text}"
        if (blank := _PLACEHOLDER.search(line)) is not None:
            yield f"the words '{line}' have the placeholder '{blank.group()}'"
        if suspect.name.strip().lower() in {"suspect", suspect.kind}:
            yield f"the name '{suspect.name}' does not say which {suspect.kind} it is"
        if suspect.text.startswith(suspect.name):
            yield f"the text '{suspect.text}' repeats the name, which stands before it"
        if suspect.key is not None:
            yield from _key_findings(suspect.key, scenario)
        share = suspect.bound_share
        if share is not None and not 0 <= share <= 1:
            yield f"bound_share of '{suspect.name}' is {share}, wanted a share from 0 to 1"


def repeat_findings(run: SmallRun) -> Iterator[str]:
    """Yield differences between the suspects of a run and those of the same run again.

    Parameters
    ----------
    run : with or without suspects
    """
    again = prepare(run.records.prepared.scenario)
    records = RunRecords(prepared=again, execution=execute(again))
    first, second, other = (
        [_told(suspect) for suspect in made_by(run.label, run.kind, each)]
        for each in (run.records, run.records, records)
    )
    if first != second:
        yield f"asked twice about one run, it says {_named(first)} and {_named(second)}"
    elif first != other:
        yield f"of the same scenario run again it says {_named(other)} in place of {_named(first)}"


def gain_findings(run: SmallRun) -> Iterator[str]:
    """Yield suspects that cannot be left out, or whose run without them gains more than their bound.

    Parameters
    ----------
    run : with or without suspects
    """
    prepared = run.records.prepared
    took = taken_ps(prepared, run.records.execution) or []
    for suspect in run.suspects():
        if suspect.change is None:
            if suspect.bound_share is None:
                yield f"'{suspect.name}' has neither a change nor a bound_share"
            continue
        try:
            other = suspect.change(prepared)
            if other is prepared:
                yield f"change of '{suspect.name}' returns the run itself, so that nothing is left out"
                continue
            without = taken_ps(other, execute(other))
        except ConfigError as wrong:
            yield f"the run without '{suspect.name}' is refused: {'; '.join(one.text for one in wrong.mistakes)}"
            continue
        if without is None:
            yield f"the run without '{suspect.name}' does not end"
            continue
        jobs = range(len(took)) if suspect.job is None else (suspect.job,)
        share = max((took[job] - without[job]) / max(1, took[job]) for job in jobs)
        if suspect.bound_share is not None and share > suspect.bound_share + _ROUNDING:
            bound = f"{suspect.bound_share:.1%}"
            yield f"the run without '{suspect.name}' gains {share:.1%}, above its bound_share of {bound}"


def trace_findings(run: SmallRun) -> Iterator[str]:
    """Yield parts of a run that differ after a kind was asked about it and its suspects were left out.

    Parameters
    ----------
    run : with or without suspects
    """
    for suspect in run.suspects():
        if suspect.change is not None:
            try:
                suspect.change(run.records.prepared)
            except ConfigError:  # which gain_findings tells
                continue
    after = _digests(run.records)
    changed = [name for name, digest in run.digests.items() if after[name] != digest]
    if changed:
        yield f"{' and '.join(changed)} of the run are changed; change a copy"


def _key_findings(key: str, scenario: Scenario) -> Iterator[str]:
    """That a key stands neither in the schema nor in a scenario with all its defaults."""
    path = _PLACE.sub("", key)
    known = {row.path: row for row in rows()}
    above = known.get(path.rpartition(".")[0])
    is_parameter = above is not None and isinstance(above.kind, PolicyChoiceKind)
    if path not in known and not is_parameter and not _is_written(key, scenario):
        near = nearest(path, known)
        fix = "" if near is None else f"; did you mean '{near}'?"
        yield f"key '{key}' is no key of a scenario{fix}"


def _is_written(key: str, scenario: Scenario) -> bool:
    """Whether a scenario with all its defaults has a key, such as that of a topology of a user's own."""
    node = yaml.safe_load(dump(scenario))
    for word in key.split("."):
        if isinstance(node, list) and word.isdigit() and int(word) < len(node):
            node = node[int(word)]
        elif isinstance(node, dict) and word in node:
            node = node[word]
        else:
            return False
    return True


def _told(suspect: Suspect) -> dict[str, object]:
    """All of a suspect but its function."""
    return {field.name: getattr(suspect, field.name) for field in fields(suspect) if field.name != "change"}


def _named(told: list[dict[str, object]]) -> str:
    return ", ".join(f"'{suspect['name']} {suspect['text']}'" for suspect in told) or "nothing"


def _digests(records: RunRecords) -> dict[str, str]:
    """A digest of each part of a run, by its name."""
    parts = {f"prepared.{name}": getattr(records.prepared, name) for name in _RECORDS}
    parts["execution.outcome"] = records.execution.outcome
    return {name: sha256(b"".join(_contents(part))).hexdigest() for name, part in parts.items()}


def _contents(part: Any) -> Iterator[bytes]:  # noqa: ANN401 - whatever a record holds
    if isinstance(part, np.ndarray):
        yield f"{part.dtype}{part.shape}".encode()
        yield part.tobytes()
    elif is_dataclass(part) and not isinstance(part, type):
        for field in fields(part):
            yield field.name.encode()
            yield from _contents(getattr(part, field.name))
    elif isinstance(part, BaseModel):
        for name in type(part).model_fields:
            yield name.encode()
            yield from _contents(getattr(part, name))
    elif isinstance(part, Mapping):
        for key, value in part.items():
            yield repr(key).encode()
            yield from _contents(value)
    elif isinstance(part, (list, tuple)):
        for value in part:
            yield from _contents(value)
    else:
        yield repr(part).encode()
