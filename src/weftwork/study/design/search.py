"""Find the fabrics to build.

Candidates are enumerated, pruned by closed forms and run on the flow engine; the result is their front.

Candidates that are left run as the points of a pool, each once, into the folder of the design, so that an interrupted
design goes on where it ended. Costs are those of the bill, time is that of the run, divided by the share of the time
that counts where the scenario says how often parts fail.
Leaves out: what is written and printed (`weftwork.study.design.words`), packets (`weftwork.study.plan.confirm`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from weftwork.base.caveat import assumed_texts
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.base.plain_file import read_plain
from weftwork.base.version import VERSION
from weftwork.hardware import catalogue
from weftwork.hardware.prices import price_book
from weftwork.spec.scenario.written import dump
from weftwork.spec.scenario.yaml_tree import MAX_BYTES, plain_value, read_tree, write_tree
from weftwork.spec.study_ends import StudyEndName
from weftwork.spec.training import HEADROOM
from weftwork.store.sweeps import RUNS, sweep_folder
from weftwork.study.design.built import Built, FabricAsked, build, overrides_of
from weftwork.study.design.candidates import candidates, choices_of
from weftwork.study.design.front import beaten_by, front, knee
from weftwork.study.design.judge import are_placed
from weftwork.study.design.judged_runs import JudgedRuns, RunTools, judged_runs
from weftwork.study.design.own_topologies import OwnTopologies, own_topologies, with_whole_paths
from weftwork.study.design.prune import Pruned, prune
from weftwork.study.design.question import DesignJob, DesignQuestion
from weftwork.study.plan.search import Known, search
from weftwork.study.plan.space import SEARCHED
from weftwork.study.pool.pool import workers_for
from weftwork.study.pool.side_by_side import worker_processes
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.prepare.recipe_defaults import recipe_caveats
from weftwork.study.prepare.training import assumed_sequence
from weftwork.study.record.interrupts import interrupts
from weftwork.workload.models.huggingface import model_of

if TYPE_CHECKING:
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.design.judge import ChosenCandidate
    from weftwork.study.design.kinds import NamedKind
    from weftwork.study.design.runs import Ran
    from weftwork.study.design.worth import ClusterMoney

__all__ = ["Design", "DesignQuestion", "design", "fabric_named"]

KEPT: Final = (  # keys of the user's ``fabric`` that all candidates have
    "hash", "loss", "corruption", "reconvergence_delay", "failover_delay", "routing", "paths", "engineering",
    "floor_plan", "link_delay", "cable_length", "host_link_delay",
)  # fmt: skip
NODE: Final = "dgx-h100"  # chosen: where a file names none, as `weftwork plan` is asked in most of its examples
PLAN_KEYS: Final = frozenset(SEARCHED) | {"placement"}
_BUILT_BYTES: Final = 400_000_000  # chosen: a fabric of 65,536 hosts with its bill
_PLAN_FILE: Final = "plan.yaml"
_ALWAYS: Final = frozenset({"schema", "name", "engine.fidelity"})  # keys of a scenario that is written

Told = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Design:
    """The result of a design.

    Attributes
    ----------
    question : what was asked
    folder : that holds it
    name, node, gpus : of the job, the server and how many
    counted : candidates before pruning
    pruned : those that did not run
    ran : those that were left, with their times
    front, knee : names, by cost
    end : ``done``, or how it was ended before
    plan : keys of ``training`` that a search has found; empty where the file has its plan
    chosen_anew : keys of the file's ``fabric`` that the candidates do not keep
    number : what the time is of, such as ``iteration_ps``
    kept : runs that were there before
    assumed : what the job leaves open, and times depend on
    overlap : share of each communication of a training job that may hide behind computing, of those that it has
    money : of the whole cluster; None: the price book knows only networks
    choice : the candidate to take
    kinds : topologies that the user has named, side by side
    placed_key : key of the placement that was varied; empty: none
    work : of an iteration or of the job, with its unit
    not_searched : why a topology of the user's own takes no part; empty where it does, or there is none
    """

    question: DesignQuestion
    folder: Path
    name: str
    node: str
    gpus: int
    counted: int
    pruned: tuple[Pruned, ...]
    ran: tuple[Ran, ...]
    front: tuple[str, ...]
    knee: str | None
    end: StudyEndName
    plan: Mapping[str, Any]
    number: str
    chosen_anew: tuple[str, ...] = ()
    kept: int = 0
    assumed: tuple[str, ...] = ()
    overlap: tuple[tuple[str, float], ...] = ()
    money: ClusterMoney | None = None
    choice: ChosenCandidate
    kinds: tuple[NamedKind, ...] = ()
    placed_key: str = ""
    work: tuple[float, str] = (1.0, "job")
    not_searched: str = ""

    @property
    def is_placed(self) -> bool:
        """Whether the choice goes by runs as a scheduler places ranks: all that should run so have."""
        return are_placed([one for one in self.ran if one.placed])

    def of(self, name: str) -> Ran:
        """The candidate with a name.

        Raises
        ------
        KeyError : it did not run
        """
        return {one.name: one for one in self.ran}[name]


def design(
    question: DesignQuestion, folder: Path, *, workers: int | None = None, progress: Told | None = None
) -> Design:
    """Find the fabrics that no other fabric beats in money, power and time.

    Parameters
    ----------
    question : what is asked
    folder : new, or with this same design, which goes on
    workers : processes side by side; by default a core for each, as far as memory holds
    progress : told what is done, how much of it and of how many

    Raises
    ------
    ConfigError : with all mistakes; or nothing can be built
    """
    told = progress or (lambda _what, _done, _of: None)
    book = price_book(question.prices)
    question = with_whole_paths(question)
    raw = _raw(question)
    node, fields = _node(raw)
    own = own_topologies(question, raw["fabric"])
    choices = choices_of(node, book, question.only or {}, own.files)
    claim = _claim(question, node, own)
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    with sweep_folder(folder, claim, "design") as runs, _nothing_left(folder, made), interrupts() as interrupt:
        interrupt.keep(is_raised=True)
        job = _job(question, raw, node, fields, folder, told)
        asked = [
            FabricAsked(
                candidate=one, file=question.file, settings=job.settings, book=book, user_code=question.user_code
            )
            for one in candidates(node, job.gpus, choices, book, job.common, fields)
        ]
        if not asked:
            raise _none("no combination of the allowed values makes a fabric; give fewer --only")
        found = _built(asked, workers, told)
        left, pruned = prune(found, question.limits, (question.only or {}).get("topology", ()))
        if not left:
            raise _none(_why_none(pruned))
        times = judged_runs(question, job, left, pruned, RunTools(runs=runs, workers=workers, told=told, book=book))
    return replace(_judged(question, folder, job, (len(asked), pruned), times), not_searched=own.note)


@contextmanager
def _nothing_left(folder: Path, made: Sequence[Path]) -> Iterator[None]:
    """Remove the folders that a refused question made, if they are empty."""
    try:
        yield
    except ConfigError:
        own = {"design.json", "design.lock", RUNS}
        if {one.name for one in folder.iterdir()} <= own and not any((folder / RUNS).iterdir()):
            (folder / RUNS).rmdir()
            for name in ("design.json", "design.lock"):
                (folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # another design has begun beside it
                for one in made:
                    one.rmdir()
        raise


def fabric_named(found: Design, name: str) -> str:
    """The scenario of a candidate as YAML for ``weftwork run``.

    Parameters
    ----------
    found : the design
    name : of a candidate that was left
    """
    question = found.question
    settings = _beside_fabric(question) | {f"training.{key}": json.dumps(value) for key, value in found.plan.items()}
    overrides = overrides_of(found.of(name).built.candidate, settings)
    scenario = read_scenario(question.file, overrides, user_code=question.user_code)
    return dump(scenario, is_kept=lambda path: path in _ALWAYS or scenario.is_set(path))


def _beside_fabric(question: DesignQuestion) -> dict[str, str]:
    """The settings of ``--set`` for the job, without those for the fabric."""
    return {key: text for key, text in (question.settings or {}).items() if not key.startswith("fabric.")}


def _raw(question: DesignQuestion) -> dict[str, Any]:
    """The tree of the file with the fabric settings of ``--set``.

    Mistakes in it are reported by its reader.
    """
    source = str(question.file)
    try:
        text = read_plain(question.file, MAX_BYTES + 1).decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(source, [Mistake(path="file", text="there is no such file")]) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is no UTF-8 text"
        raise ConfigError(source, [Mistake(path="file", text=f"cannot be read: {reason}")]) from error
    findings = Findings(source=source)
    root = read_tree(text, findings)
    if root is None:
        findings.refuse()
    tree = None if root is None else plain_value(root)
    if not isinstance(tree, dict):
        raise ConfigError(source, [Mistake(path="file", text="found no mapping, wanted a scenario")])
    fabric = tree.get("fabric")
    tree["fabric"] = dict(fabric) if isinstance(fabric, dict) else {}
    for key, text in (question.settings or {}).items():
        if key.startswith("fabric."):
            node = read_tree(text, Findings())  # what is wrong with it, the scenario says
            _set(tree["fabric"], key.split(".")[1:], text if node is None else plain_value(node))
    return tree


def _set(tree: dict[str, Any], path: Sequence[str], value: object) -> None:
    """Set a key of nested mappings."""
    key, *rest = path
    if not rest:
        tree[key] = value
        return
    below = tree.get(key)
    tree[key] = dict(below) if isinstance(below, dict) else {} if below is None else {"model": below}
    _set(tree[key], rest, value)


def _node(raw: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name of the server, and the user's own fields of it.

    A design chooses its NIC ports.
    """
    node = raw["fabric"].get("node", NODE)
    fields = dict(node) if isinstance(node, dict) else {"model": node}
    name = str(fields.pop("model", NODE))
    if name not in catalogue.nodes():
        text = f"found '{name}', wanted a server that `weftwork list node` prints"
        raise ConfigError(
            "fabric", [Mistake(path="fabric.node", text=text, fix=nearest(name, list(catalogue.nodes())))]
        )
    odd = sorted(fields.keys() & {"nic_ports", "gpus"})
    if odd:
        text = "follows from the candidate; leave it out (--only planes and --only link_rate limit the candidates)"
        raise ConfigError("fabric", [Mistake(path=f"fabric.node.{key}", text=text) for key in odd])
    return name, fields


def _job(
    question: DesignQuestion, raw: Mapping[str, Any], node: str, fields: Mapping[str, Any], folder: Path, told: Told
) -> DesignJob:
    """The job of a file, with the best plan if it has none."""
    gpus = question.gpus or raw["fabric"].get("gpus")
    if not isinstance(gpus, int) or isinstance(gpus, bool) or gpus < 1:
        text = "is missing, and the file has no fabric.gpus; give it, such as --gpus 16384"
        raise ConfigError("command line", [Mistake(path="--gpus", text=text)])
    common = {key: raw["fabric"][key] for key in KEPT if key in raw["fabric"]}
    settings = _beside_fabric(question)
    server = {"model": node, **fields}
    first = {**common, "topology": "rail-optimized", "gpus": gpus, "node": server, "switch": "tomahawk-5"}
    overrides = {**settings, "fabric": json.dumps(first), "engine.fidelity": "flow"}
    try:
        scenario = read_scenario(question.file, overrides, user_code=question.user_code)
    except ConfigError as error:
        raise ConfigError(error.source, [_where_given(one, question) for one in error.mistakes]) from error
    given = raw.get("training")
    keys = {key.removeprefix("training.") for key in settings if key.startswith("training.")}
    if isinstance(given, dict):
        keys |= {key for key, value in given.items() if value is not None}
    has_plan = not scenario.workload_kind.is_single_job or bool(PLAN_KEYS & keys)
    plan: dict[str, Any] = {}
    if not has_plan:
        plan = _planned(scenario, folder, told)
        settings |= {f"training.{key}": json.dumps(value) for key, value in plan.items()}
        overrides = {**settings, "fabric": json.dumps(first), "engine.fidelity": "flow"}
        scenario = read_scenario(question.file, overrides, user_code=question.user_code)
    return DesignJob(
        node=node, gpus=gpus, common=common, settings=settings, scenario=scenario, plan=plan,
        chosen_anew=tuple(sorted(raw["fabric"].keys() - {*KEPT, "gpus", "node"})),
    )  # fmt: skip


def _where_given(mistake: Mistake, question: DesignQuestion) -> Mistake:
    """A mistake of a fabric key at the user's place.

    The fabric was set from the keys of the file.
    """
    key = mistake.path.removeprefix("--set ")
    if key == mistake.path or not key.startswith("fabric."):
        return mistake
    if key == "fabric.gpus" and question.gpus is not None:
        return replace(mistake, path="--gpus")
    is_set = any(key == one or key.startswith(f"{one}.") for one in question.settings or {})
    return mistake if is_set else replace(mistake, path=key)


def _planned(scenario: Scenario, folder: Path, told: Told) -> dict[str, Any]:
    """The best plan for a job on a non-blocking fabric.

    A plan in the folder of the design is used again.
    """
    file = folder / _PLAN_FILE
    if file.is_file():
        return dict(yaml.safe_load(file.read_text(encoding="utf-8")))
    found = search(scenario, headroom=HEADROOM, known=Known(told=lambda what, done, of: told(f"plan.{what}", done, of)))
    keys = {key: value for key, value in found.best[0].candidate.keys.items() if value is not None}
    file.write_text(write_tree(keys), encoding="utf-8")
    return keys


def _built(asked: Sequence[FabricAsked], workers: int | None, told: Told) -> list[Built]:
    """Build every candidate, side by side."""
    count = workers_for(len(asked), _BUILT_BYTES) if workers is None else workers
    found: list[Built] = []
    with worker_processes(count if len(asked) > 20 else 1) as processes:
        for one in processes.answers(build, asked):
            found.append(one)
            if len(found) % 10 == 0 or len(found) == len(asked):
                told("building", len(found), len(asked))
    return found


def _judged(
    question: DesignQuestion, folder: Path, job: DesignJob, built: tuple[int, Sequence[Pruned]], times: JudgedRuns
) -> Design:
    """The front, its knee, and the better candidate of each loser.

    The front is in money, power and time, packed, and the knee in money and time.
    """
    costs = {one.name: one.costs for one in times.ran if one.time_ps is not None}
    names = front(costs)
    best = {name: costs[name] for name in names}
    ran = [
        one if one.time_ps is None or one.name in best else replace(one, beaten_by=beaten_by(one.costs, best))
        for one in times.ran
    ]
    plane = {name: (price_usd, time_ps) for name, (price_usd, _, time_ps) in best.items()}
    return Design(
        question=question,
        folder=folder,
        name=job.scenario.name,
        node=job.node,
        gpus=job.gpus,
        counted=built[0],
        pruned=tuple(built[1]),
        ran=tuple(ran),
        front=tuple(names),
        knee=knee({name: plane[name] for name in front(plane)}),
        end=times.end,
        plan=job.plan,
        number=times.number,
        chosen_anew=job.chosen_anew,
        kept=times.kept,
        assumed=_assumed(job.scenario),
        overlap=_overlap(job.scenario),
        money=times.money,
        choice=times.choice,
        kinds=tuple(times.kinds),
        placed_key=times.placed_key,
        work=_work(job.scenario),
    )


def _work(scenario: Scenario) -> tuple[float, str]:
    """Work of an iteration, or of the whole job, and its unit."""
    if not scenario.workload_kind.is_single_job:
        return 1.0, "job"
    section = scenario.training_section
    plan = section.parallelism(model_of(section.model))
    return float(plan.global_batch * plan.sequence), "token"


def _assumed(scenario: Scenario) -> tuple[str, ...]:
    """What the model of a training job leaves open; fabrics are made here and leave nothing open."""
    if not scenario.workload_kind.is_single_job:
        return ()
    section = scenario.training_section
    open_keys = {**assumed_sequence(section, model_of(section.model)), **recipe_caveats(section, "training")}
    return assumed_texts(open_keys.values())


def _overlap(scenario: Scenario) -> tuple[tuple[str, float], ...]:
    """The shares of communication that may hide, of the degrees of the plan."""
    if not scenario.workload_kind.is_single_job:
        return ()
    section = scenario.training_section
    plan = section.parallelism(model_of(section.model))
    degrees = ("tensor", "context", "expert", "pipeline", "data")
    return tuple((name, getattr(plan.overlap, name)) for name in degrees if getattr(plan, name) > 1)


def _claim(question: DesignQuestion, node: str, own: OwnTopologies) -> dict[str, Any]:
    """The identity of a design: version, file, prices, and question."""
    prices = question.prices
    book = Path(prices).read_bytes() if prices is not None and Path(prices).is_file() else str(prices).encode()
    asked = {
        "weftwork": VERSION,
        "file": str(question.file),
        "text": hashlib.sha256(question.file.read_bytes()).hexdigest() if question.file.is_file() else "",
        "prices": hashlib.sha256(book).hexdigest(),
        "node": node,
        "gpus": question.gpus,
        "only": {key: list(values) for key, values in (question.only or {}).items()},
        "settings": dict(question.settings or {}),
        **({"own_topologies": dict(own.digests)} if own.digests else {}),
    }
    return {**asked, "digest": hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()}


def _none(text: str) -> ConfigError:
    return ConfigError("design", [Mistake(path="design", text=text)])


def _why_none(pruned: Sequence[Pruned]) -> str:
    counts: dict[str, int] = {}
    for one in pruned:
        counts[one.reason] = counts.get(one.reason, 0) + 1
    told = "; ".join(f"{count:,} because {reason}" for reason, count in sorted(counts.items(), key=lambda it: -it[1]))
    gone = plural(len(pruned), "candidate was", "candidates were")
    return f"no candidate is left; {gone} pruned: {told}"
