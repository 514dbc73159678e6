"""Named checks of a traffic pattern's contract.

They hold for the catalogue and for a user's own file. The job runs on the reference engine, on fabrics of a few hosts.
Leaves out: whether the pattern is like any real one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weftwork.base.errors import CodeError, ConfigError
from weftwork.base.grammar import plural
from weftwork.spec.job import Job
from weftwork.spec.scenario.choice import PatternInput
from weftwork.spec.scenario.choices import PATTERNS
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.workload import TrafficSection
from weftwork.spec.transport import Transport
from weftwork.testing.choices import key_findings, offer_findings, read
from weftwork.testing.runs import finished
from weftwork.topology.build import fabric_of_section

__all__ = ["check_pattern", "job_findings", "pattern_document"]

_RATE_BPS = 400_000_000_000  # of a plain host's link


def check_pattern(
    pattern: str | Path, keys: Mapping[str, object] = {}, *, hosts: Sequence[int] = (2, 5, 8)
) -> list[str]:
    """Read the keys, make the job and run it, for each number of hosts.

    Parameters
    ----------
    pattern : a name of the catalogue, or the path of your file
    keys : of the section ``traffic`` besides, as a scenario has them, such as ``{"size": "64KiB"}``
    hosts : of the fabrics

    Returns
    -------
    what is wrong, a sentence each; empty if nothing is
    """
    label = str(pattern)
    findings = list(offer_findings(PATTERNS, label, TrafficSection))
    for count in hosts if not findings else ():
        document = pattern_document(label, keys, count)
        found = list(key_findings(PATTERNS, label, "traffic", document)) or list(job_findings(label, document, count))
        findings += [f"with {plural(count, 'host')}: {text}" for text in found]
    return findings


def pattern_document(label: str, keys: Mapping[str, object], hosts: int) -> dict[str, Any]:
    """Return a scenario with a pattern on this many hosts."""
    shape = {"topology": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": -(-hosts // 2), "hosts": hosts}
    return {"schema": SCHEMA, "fabric": shape, "traffic": {"pattern": label, **keys}}


def job_findings(label: str, document: Mapping[str, object], hosts: int) -> Iterator[str]:
    """Yield mistakes in the job of a scenario, and in its run."""
    scenario = read(document)
    given = PatternInput(hosts=hosts, host_rate_bps=hosts * _RATE_BPS, seed=1, priority=-1, queue_pairs=1)
    try:
        with PATTERNS.blaming(label):
            made = [PATTERNS.load(label).job(scenario.traffic_section.options, given) for _ in range(2)]
        job, again = (PATTERNS.want(label, one, Job, "job") for one in made)
    except (CodeError, ConfigError) as wrong:
        yield f"there is no job: {wrong}"
        return
    if job.programs != again.programs or job.rank_program.tolist() != again.rank_program.tolist():
        yield "made twice from one seed, the jobs differ"
    if job.ranks != hosts:
        yield f"the job has {plural(job.ranks, 'rank')}, wanted one for each host"
        return
    fabric = fabric_of_section(scenario.fabric, directory=Path.cwd())
    yield from finished(fabric, job, Transport())
