"""Run a scenario: from a file to a run folder."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftwork.base.caveat import caveats_to_json
from weftwork.base.commit import commit
from weftwork.base.errors import ConfigError, Mistake, UsageError
from weftwork.base.memory import peak_memory_bytes
from weftwork.base.version import VERSION
from weftwork.engine.digest import DIGEST_VERSION
from weftwork.spec.endings import CUT_BY_HAND, ending_of_all
from weftwork.spec.scenario.scenario import Scenario
from weftwork.store.folder_lock import held
from weftwork.store.runs import (
    Run,
    fresh_folder,
    new_folder,
    refuse_existing,
    write_beside,
    write_files,
    write_run,
    write_run_set,
)
from weftwork.study.answer.asking import AskedExecution
from weftwork.study.answer.of_seeds import answer_of_seeds
from weftwork.study.answer.suspects import own_suspicions
from weftwork.study.answer.worlds import EXTENTS, Extent
from weftwork.study.prepare.calibrated import calibration_of
from weftwork.study.prepare.given_fabric import FILE as FABRIC_FILE
from weftwork.study.prepare.given_fabric import GivenFabric, with_fabric
from weftwork.study.prepare.prepare import located, prepare, read_once, want_overrides
from weftwork.study.record.interrupts import Interrupt, interrupts
from weftwork.study.record.kept_files import FILES, KeptFiles, kept_files
from weftwork.study.record.road import Results, execute, results
from weftwork.study.results.planned_paths import planned_origin, planned_pins
from weftwork.study.results.seeds import mean_numbers
from weftwork.study.run.captured_link import CapturedLink, capture_request, refuse_capture, written_capture
from weftwork.study.run.execute import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from weftwork.spec.calibration import Calibration
    from weftwork.spec.fabric import Fabric
    from weftwork.study.answer.suspicion import Suspicion
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["MAX_SEED", "run_beside", "run_scenario"]

MAX_SEED = 2**31 - 1  # as engine.seed allows
_COMMON = ("weftwork", "commit", "schema", "engine", "policies", "caveats", "machine")  # of all seeds of a run
_LONGEST_NAME = 60  # chosen: the name of the folder holds all of it


def run_scenario(  # noqa: PLR0913 - what can be asked of a run, all by name
    scenario: str | Path | Mapping[str, object] | Scenario,
    *,
    out: str | Path | None = None,
    name: str | None = None,
    seed: int | None = None,
    seeds: int = 1,
    what_if: Extent = "auto",
    overrides: Mapping[str, object] | None = None,
    fabric: Fabric | None = None,
    user_code: bool = True,
    capture: CapturedLink | None = None,
    suspects: Sequence[str | Path] = (),
    progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Run a scenario and write its run folder.

    The first Ctrl-C stops the run where it is; what it has is kept and marked as interrupted.

    Parameters
    ----------
    scenario : a file, a dict with its sections, or one that was read; files that a dict names are relative to the
        current folder
    out : folder to write, which must not exist; by default ``runs/<name>-<time>``
    name : of the run, in place of the scenario's; `weftwork.open_run` finds a run in ``runs`` by it
    seed : in place of the scenario's
    seeds : how many runs, with this seed and those that follow; the result then holds means and 95 % intervals
    what_if : which other worlds are simulated besides, without a suspect or with what one could buy: ``auto``: those
        that cost less than the run itself; ``all``; ``none``
    overrides : for a file or a dict; dotted key to a value: a number, bool, None, list, dict or path of Python, or YAML
        text as ``--set`` takes it; None removes the key, a dict replaces the whole value, and a dotted key changes one
        key in it
    fabric : built in Python, in place of the whole section of a file or dict; it is kept as ``fabric.json`` in the
        run folder, and ``fabric`` of the provenance says so
    user_code : whether a file may name Python files, which are then run; False refuses each one outside the package
    capture : a link whose frames are written as pcapng into the run folder; of several seeds, into that of each
    suspects : Python files of your own, each with a kind of suspect; each suspect is simulated, unless ``what_if`` is
        ``none``, and has a line in the answer
    progress : called about ten times a second

    Returns
    -------
    the run, with its summary and tables

    Raises
    ------
    ConfigError : with all mistakes of the scenario, or where the folder cannot be written
    CodeError : a Python file of the user's own is wrong (`PolicyError`: a policy)
    UsageError : an argument has another type
    """
    _want_types(scenario, out, name, seed, seeds, what_if, suspects)
    want_overrides(overrides)
    if isinstance(scenario, Scenario) and not user_code:
        raise UsageError("user_code=False is for a file: a scenario that was read has run its Python files already")
    given: GivenFabric | None = None
    if fabric is not None:
        if isinstance(scenario, Scenario):
            raise UsageError("a fabric takes the place of a section in a file: pass the scenario's file")
        scenario, given = with_fabric(scenario, fabric, overrides, user_code=user_code)
    else:
        scenario = read_once(scenario, overrides, user_code=user_code)
    suspicions = own_suspicions([str(file) for file in suspects], user_code=user_code)
    first = scenario.engine.seed if seed is None else seed
    if seeds < 1:
        raise ConfigError(scenario.source, [Mistake(path="seeds", text=f"found {seeds}, wanted at least one")])
    if not 0 <= first <= MAX_SEED - (seeds - 1):
        text = f"found seeds {first} to {first + seeds - 1}, wanted all of them from 0 to {MAX_SEED}"
        raise ConfigError(scenario.source, [Mistake(path="engine.seed", text=text)])
    if capture is not None:
        refuse_capture(scenario, capture)
    if name is not None:
        scenario = _named(scenario, name)
    folder = new_folder(scenario.name) if out is None else Path(out)
    refuse_existing(folder)
    without = frozenset() if given is None else frozenset({"fabric.file"})
    files = kept_files(scenario, without=without, besides=_besides(suspicions))
    own = _Own(files=files, fabric=given, name=name, suspicions=suspicions)
    with interrupts() as interrupt:
        if seeds == 1:
            return _run_one(_with_seed(scenario, first), folder, interrupt, progress, own, what_if, capture)
        return _run_several(scenario, range(first, first + seeds), folder, interrupt, progress, own, what_if, capture)


def run_beside(scenario: Scenario, folder: Path, *, what_if: Extent, suspects: Sequence[str] = ()) -> Run:
    """Run a point of a sweep.

    The user's files exist once, beside the folders of all points.

    Parameters
    ----------
    scenario : that was read
    folder : to write, which must not exist
    what_if, suspects : as of `run_scenario`

    Raises
    ------
    ConfigError, CodeError : as `run_scenario`
    """
    refuse_existing(folder)
    suspicions = own_suspicions(suspects)
    files = kept_files(scenario, besides=_besides(suspicions), is_shared=True)
    own = _Own(files=files, fabric=None, name=None, is_beside=True, suspicions=suspicions)
    write_beside(folder.parent / FILES, own.files.contents())
    with interrupts() as interrupt:
        return _run_one(scenario, folder, interrupt, None, own, what_if, None)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Own:
    """The user's own files of a run folder.

    Attributes
    ----------
    files : that the scenario names
    fabric : built in Python; None: none
    name : of the run, where it was given; None: none
    is_beside : whether the files lie beside the folder and not in it
    suspicions : kinds of suspects, by file
    """

    files: KeptFiles
    fabric: GivenFabric | None
    name: str | None
    is_beside: bool = False
    suspicions: Mapping[str, Suspicion] = field(default_factory=dict)

    def beside(self) -> _Own:
        """The same files for a folder beside which they lie."""
        return replace(self, files=replace(self.files, root=f"../{FILES}"), is_beside=True)

    def scenario_text(self, scenario: Scenario) -> str:
        """The scenario, its files named from the run folder."""
        place = f"../{FABRIC_FILE}" if self.is_beside else FABRIC_FILE
        return self.files.scenario_text(scenario, {} if self.fabric is None else {"fabric.file": place})

    def contents(self) -> dict[str, bytes]:
        """The files by their names in the folder."""
        found = {f"{FILES}/{name}": content for name, content in self.files.contents().items()}
        return found | ({} if self.fabric is None else {FABRIC_FILE: self.fabric.text.encode()})

    def origin(self) -> dict[str, Any]:
        """The provenance of the user's files."""
        return {
            **({} if self.name is None else {"name": self.name}),
            **({} if self.fabric is None else {"fabric": f"given in Python, kept as {FABRIC_FILE}"}),
            "files": self.files.provenance(),
        }


def _besides(suspicions: Iterable[str]) -> dict[str, str]:
    """Files of suspects, by their keys in the provenance."""
    return {f"suspects.{place}": file for place, file in enumerate(suspicions)}


def _named(scenario: Scenario, name: str) -> Scenario:
    """The scenario under another name."""
    if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
        text = f"found {ascii(name)[:60]}, wanted 1 to {_LONGEST_NAME} printable characters such as my-run"
        raise ConfigError(scenario.source, [Mistake(path="--name", text=text)])
    return scenario.model_copy(update={"name": name})


def _want_types(
    scenario: object, out: object, name: object, seed: object, seeds: object, what_if: object, suspects: object
) -> None:
    """Refuse arguments of wrong types, before they fail inside."""
    for key, value, is_right, wanted in (
        ("scenario", scenario, isinstance(scenario, (str, Path, Mapping, Scenario)), "a path, a dict or a Scenario"),
        ("out", out, out is None or isinstance(out, (str, Path)), "a path or None"),
        ("name", name, name is None or isinstance(name, str), "text or None"),
        ("seed", seed, seed is None or type(seed) is int, "an int or None"),
        ("seeds", seeds, type(seeds) is int, "an int"),
        ("what_if", what_if, what_if in EXTENTS, " or ".join(EXTENTS)),
        ("suspects", suspects, _are_paths(suspects), "a list of paths"),
    ):
        if not is_right:
            raise UsageError(f"found {key}={ascii(value)[:60]}, wanted {wanted}")


def _are_paths(suspects: object) -> bool:
    """Whether an argument is a list or a tuple of paths."""
    return isinstance(suspects, (list, tuple)) and all(isinstance(file, (str, Path)) for file in suspects)


def _with_seed(scenario: Scenario, seed: int) -> Scenario:
    if scenario.engine.seed == seed:
        return scenario
    return scenario.model_copy(update={"engine": scenario.engine.model_copy(update={"seed": seed})})


def _run_one(
    scenario: Scenario,
    folder: Path,
    interrupt: Interrupt,
    progress: Callable[[Progress], None] | None,
    own: _Own,
    what_if: Extent,
    capture: CapturedLink | None,
) -> Run:
    started = datetime.now(UTC)
    clock = time.perf_counter()

    def on_progress(now: Progress) -> None:
        interrupt.keep()
        if progress is not None:
            progress(now)
        interrupt.check()

    try:
        prepared = prepare(scenario, fabric=None if own.fabric is None else own.fabric.fabric)
        prepared_at_s = time.perf_counter()
        request = None if capture is None else capture_request(prepared, capture)
        execution = execute(prepared, on_progress, what_if=what_if, capture=request, suspicions=own.suspicions)
    except ConfigError as error:
        raise located(scenario, error) from error
    simulated_at_s = time.perf_counter()
    if interrupt.is_wanted and not execution.outcome.complete:  # the second Ctrl-C stops the engine itself
        execution = replace(execution, interrupted=True)
    found = _found(prepared, execution, interrupt)
    interrupt.keep()
    kept = {} if own.is_beside else own.contents()
    files: dict[str, str | Iterable[bytes]] = {name: [content] for name, content in kept.items()}
    files |= planned_pins(prepared)
    calibration = calibration_of(scenario)
    captured: dict[str, Any] = {}
    if capture is not None:
        captured["capture"], files[capture.file] = written_capture(prepared, execution.outcome, capture)
    stopped: dict[str, Any] = {}
    if execution.left_worlds:
        made = len(execution.worlds)
        wanted = made + len(execution.refused) + execution.left_worlds
        stopped["what_ifs_stopped"] = {"made": made, "wanted": wanted, "lacks_goodput": bool(scenario.reliability)}
    provenance = _provenance(prepared, found.status) | {
        **own.origin(),
        **stopped,
        "notes": [*scenario.notes, *own.files.notes()],
        **captured,
        **planned_origin(prepared),
        **_calibration_origin(calibration, own.files),
        "caveats": caveats_to_json(found.caveats),
        "digest": found.digest,
        "digest_version": DIGEST_VERSION,
        "started": started.isoformat(timespec="seconds"),
        "set_up_s": round(prepared_at_s - clock, 6),
        "engine_s": round(simulated_at_s - prepared_at_s, 6),
        "wall_s": round(time.perf_counter() - clock, 6),
        "estimate": {
            "memory_bytes": prepared.estimate.memory_bytes,
            "work": prepared.estimate.work,
            "unit": prepared.estimate.unit,
        },
        "peak_memory_bytes": peak_memory_bytes(),
    }
    return write_run(
        folder,
        scenario=own.scenario_text(scenario),
        about=found.about,
        summary=found.summary,
        answer=found.answer,
        tables=found.tables,
        provenance=provenance,
        files=files,
    )


def _found(prepared: Prepared, execution: AskedExecution, interrupt: Interrupt) -> Results:
    """The results of a run.

    A run that was stopped, also in its what-ifs, lacks the goodput over weeks, which may take minutes.
    """
    weeks = prepared.scenario.reliability
    interrupt.keep(is_raised=weeks is not None)
    if weeks is None:
        return results(prepared, execution)
    is_stopped = execution.interrupted
    if not is_stopped and not execution.left_worlds:
        try:
            return results(prepared, execution)
        except KeyboardInterrupt:
            interrupt.keep()
            is_stopped = True
    scenario = prepared.scenario.model_copy(update={"reliability": None})
    return results(replace(prepared, scenario=scenario), replace(execution, interrupted=is_stopped))


def _calibration_origin(calibration: Calibration | None, files: KeptFiles) -> dict[str, Any]:
    """Constants of a run, and its copy of their file."""
    if calibration is None:
        return {}
    known = {
        "file": calibration.file,
        "hash": calibration.digest,
        "kept_as": files.provenance()["calibration"]["kept_as"],
        "constants": dict(calibration.values),
        "fitted_on": {key: str(value) for key, value in calibration.fitted_on.items()},
    }
    return {"calibration": known}


def _run_several(
    scenario: Scenario,
    seeds: range,
    folder: Path,
    interrupt: Interrupt,
    progress: Callable[[Progress], None] | None,
    own: _Own,
    what_if: Extent,
    capture: CapturedLink | None,
) -> Run:
    started = datetime.now(UTC)
    clock = time.perf_counter()
    runs: list[Run] = []
    calibration = calibration_of(scenario)

    def write_set(where: Path) -> None:
        status = CUT_BY_HAND if len(runs) < len(seeds) else ending_of_all(run.status for run in runs)
        whole = [run for run in runs if not run.ending.is_by_hand] or runs
        common = runs[0].provenance
        provenance = {
            **{key: common[key] for key in _COMMON},
            # a file may change during a later seed
            "notes": list(dict.fromkeys(note for run in runs for note in run.provenance["notes"])),
            **({} if calibration is None else _calibration_origin(calibration, own.files)),
            **own.origin(),
            "status": status,
            "seeds": [run.provenance["seed"] for run in whole],
            "seeds_wanted": len(seeds),
            "started": started.isoformat(timespec="seconds"),
            "wall_s": round(time.perf_counter() - clock, 6),
        }
        numbers = mean_numbers([run.summary for run in whole])
        answers = [run.answer for run in whole]
        write_run_set(
            where,
            scenario=own.scenario_text(scenario),
            about=runs[0].about,
            numbers=numbers,
            answer=answer_of_seeds(answers, numbers),
            provenance=provenance,
        )

    def run(place: int, where: Path) -> Run:
        told = _part(progress, place, len(seeds))
        return _run_one(
            _with_seed(scenario, seeds[place]),
            where / f"seed-{seeds[place]}",
            interrupt,
            told,
            own.beside(),
            what_if,
            capture,
        )

    with fresh_folder(folder) as fresh:
        runs.append(run(0, fresh))
        write_files(fresh, own.contents())
        write_set(fresh)
    runs[0] = Run(folder / runs[0].path.name)
    try:
        with held(folder):
            for place in range(1, len(seeds)):
                if interrupt.is_wanted:
                    break
                interrupt.let_go()
                runs.append(run(place, folder))
                write_set(folder)
    except KeyboardInterrupt:
        if interrupt.is_wanted:
            raise  # the second Ctrl-C; the seeds that have finished are there
        interrupt.is_wanted = True
    return Run(folder)


def _part(progress: Callable[[Progress], None] | None, place: int, count: int) -> Callable[[Progress], None] | None:
    """Progress of one seed as a part of all of them."""
    if progress is None:
        return None

    def told(now: Progress) -> None:
        share = None if now.share is None else (place + now.share) / count
        progress(replace(now, share=share))

    return told


def _provenance(prepared: Prepared, status: str) -> dict[str, Any]:
    scenario = prepared.scenario
    return {
        "weftwork": VERSION,
        "commit": None if (known := commit()) is None else known.described,
        "schema": scenario.schema_version,
        "status": status,
        "seed": scenario.engine.seed,
        "engine": scenario.engine.fidelity,
        "policies": {
            kind: {"name": policy.name, "hash": policy.hash, "parameters": dict(policy.values)}
            for kind, policy in prepared.policies.items()
        },
        "machine": {
            "system": platform.platform(),
            "processor": platform.machine(),
            "python": platform.python_version(),
        },
    }
