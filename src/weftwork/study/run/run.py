"""Run a scenario: from a file to a run folder."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftwork.base.caveat import caveats_to_json
from weftwork.base.commit import commit
from weftwork.base.errors import ConfigError, Mistake, UsageError
from weftwork.base.memory import peak_memory_bytes
from weftwork.base.version import VERSION
from weftwork.spec.scenario.scenario import Scenario, dump
from weftwork.store.runs import Run, fresh_folder, new_folder, refuse_existing, write_run, write_run_set
from weftwork.study.answer.of_seeds import answer_of_seeds
from weftwork.study.answer.worlds import EXTENTS, Extent
from weftwork.study.prepare.calibrated import calibration_of
from weftwork.study.prepare.given_fabric import FILE as FABRIC_FILE
from weftwork.study.prepare.given_fabric import GivenFabric, placed, with_fabric
from weftwork.study.prepare.prepare import located, prepare, read_once, want_overrides
from weftwork.study.results.planned_paths import planned_origin, planned_pins
from weftwork.study.results.results import Results, results
from weftwork.study.run.captured_link import CapturedLink, capture_request, refuse_capture, written_capture
from weftwork.study.run.execute import Execution, Progress, execute
from weftwork.study.run.interrupts import Interrupt, interrupts
from weftwork.study.run.own_files import own_files
from weftwork.study.run.seeds import mean_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from weftwork.spec.calibration import Calibration
    from weftwork.spec.fabric import Fabric
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["MAX_SEED", "run_scenario"]

CALIBRATION_FILE = "calibration.toml"
MAX_SEED = 2**31 - 1  # as engine.seed allows


def run_scenario(  # noqa: PLR0913 - what can be asked of a run, all by name
    scenario: str | Path | Mapping[str, object] | Scenario,
    *,
    out: str | Path | None = None,
    seed: int | None = None,
    seeds: int = 1,
    what_if: Extent = "auto",
    overrides: Mapping[str, object] | None = None,
    fabric: Fabric | None = None,
    user_code: bool = True,
    capture: CapturedLink | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Run a scenario and write its run folder.

    The first Ctrl-C stops the run where it is; what it has is kept and marked as interrupted.

    Parameters
    ----------
    scenario : a file, a dict with its sections, or one that was read; files that a dict names are relative to the
        current folder
    out : folder to write, which must not exist; by default ``runs/<name>-<time>``
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
    _want_types(scenario, out, seed, seeds, what_if)
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
    first = scenario.engine.seed if seed is None else seed
    if seeds < 1:
        raise ConfigError(scenario.source, [Mistake(path="seeds", text=f"found {seeds}, wanted at least one")])
    if not 0 <= first <= MAX_SEED - (seeds - 1):
        text = f"found seeds {first} to {first + seeds - 1}, wanted all of them from 0 to {MAX_SEED}"
        raise ConfigError(scenario.source, [Mistake(path="engine.seed", text=text)])
    if capture is not None:
        refuse_capture(scenario, capture)
    folder = new_folder(scenario.name) if out is None else Path(out)
    refuse_existing(folder)
    if given is not None:
        scenario = placed(scenario, folder)
    with interrupts() as interrupt:
        if seeds == 1:
            return _run_one(_with_seed(scenario, first), folder, interrupt, progress, given, what_if, capture)
        return _run_several(scenario, range(first, first + seeds), folder, interrupt, progress, given, what_if, capture)


def _want_types(scenario: object, out: object, seed: object, seeds: object, what_if: object) -> None:
    """Refuse what a type checker would have refused, before it fails somewhere inside."""
    for name, value, is_right, wanted in (
        ("scenario", scenario, isinstance(scenario, (str, Path, Mapping, Scenario)), "a path, a dict or a Scenario"),
        ("out", out, out is None or isinstance(out, (str, Path)), "a path or None"),
        ("seed", seed, seed is None or type(seed) is int, "an int or None"),
        ("seeds", seeds, type(seeds) is int, "an int"),
        ("what_if", what_if, what_if in EXTENTS, " or ".join(EXTENTS)),
    ):
        if not is_right:
            raise UsageError(f"found {name}={ascii(value)[:60]}, wanted {wanted}")


def _with_seed(scenario: Scenario, seed: int) -> Scenario:
    if scenario.engine.seed == seed:
        return scenario
    return scenario.model_copy(update={"engine": scenario.engine.model_copy(update={"seed": seed})})


def _run_one(
    scenario: Scenario,
    folder: Path,
    interrupt: Interrupt,
    progress: Callable[[Progress], None] | None,
    given: GivenFabric | None,
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
        prepared = prepare(scenario, fabric=None if given is None else given.fabric)
        prepared_at_s = time.perf_counter()
        request = None if capture is None else capture_request(prepared, capture)
        execution = execute(prepared, on_progress, what_if=what_if, capture=request)
    except ConfigError as error:
        raise located(scenario, error) from error
    simulated_at_s = time.perf_counter()
    if interrupt.is_wanted and not execution.outcome.complete:  # the second Ctrl-C stops the engine itself
        execution = replace(execution, interrupted=True)
    found = _found(prepared, execution, interrupt)
    interrupt.keep()
    files: dict[str, str | Iterable[bytes]] = {} if given is None else {FABRIC_FILE: given.text}
    files |= planned_pins(prepared)
    calibration = calibration_of(scenario)
    files |= {} if calibration is None else {CALIBRATION_FILE: calibration.text}
    captured: dict[str, Any] = {}
    if capture is not None:
        captured["capture"], files[capture.file] = written_capture(prepared, execution.outcome, capture)
    provenance = _provenance(prepared, found.status) | {
        **_origin(given),
        **captured,
        **planned_origin(prepared),
        **_calibration_origin(calibration),
        "caveats": caveats_to_json(found.caveats),
        "digest": found.digest,
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
        scenario=dump(scenario),
        about=found.about,
        summary=found.summary,
        answer=found.answer,
        tables=found.tables,
        provenance=provenance,
        files=files,
    )


def _found(prepared: Prepared, execution: Execution, interrupt: Interrupt) -> Results:
    """What comes of a run; where somebody stops it, all but the goodput over weeks, which may take minutes."""
    weeks = prepared.scenario.reliability
    interrupt.keep(is_raised=weeks is not None)
    if weeks is None:
        return results(prepared, execution)
    if not execution.interrupted:
        try:
            return results(prepared, execution)
        except KeyboardInterrupt:
            interrupt.keep()
    scenario = prepared.scenario.model_copy(update={"reliability": None})
    return results(replace(prepared, scenario=scenario), replace(execution, interrupted=True))


def _calibration_origin(calibration: Calibration | None) -> dict[str, Any]:
    """Which constants a run had; their file is kept beside it, whatever becomes of the user's."""
    if calibration is None:
        return {}
    known = {
        "file": calibration.file,
        "hash": calibration.digest,
        "kept_as": CALIBRATION_FILE,
        "constants": dict(calibration.values),
        "fitted_on": {key: str(value) for key, value in calibration.fitted_on.items()},
    }
    return {"calibration": known}


def _origin(given: GivenFabric | None) -> dict[str, str]:
    return {} if given is None else {"fabric": f"given in Python, kept as {FABRIC_FILE}"}


def _run_several(
    scenario: Scenario,
    seeds: range,
    folder: Path,
    interrupt: Interrupt,
    progress: Callable[[Progress], None] | None,
    given: GivenFabric | None,
    what_if: Extent,
    capture: CapturedLink | None,
) -> Run:
    started = datetime.now(UTC)
    clock = time.perf_counter()
    runs: list[Run] = []

    def write_set(where: Path) -> None:
        statuses = [run.status for run in runs]
        status = "interrupted" if len(runs) < len(seeds) else next((s for s in statuses if s != "complete"), "complete")
        whole = [run for run in runs if run.status != "interrupted"] or runs
        common = runs[0].provenance
        provenance = {
            **{
                key: common[key]
                for key in (
                    "weftwork",
                    "commit",
                    "schema",
                    "engine",
                    "policies",
                    "files",
                    "caveats",
                    "notes",
                    "machine",
                )
            },
            **({"calibration": common["calibration"]} if "calibration" in common else {}),
            **_origin(given),
            "status": status,
            "seeds": [run.provenance["seed"] for run in whole],
            "seeds_wanted": len(seeds),
            "started": started.isoformat(timespec="seconds"),
            "wall_s": round(time.perf_counter() - clock, 6),
        }
        numbers = mean_numbers([run.summary for run in whole])
        answers = [run.answer for run in whole if run.answer is not None]
        write_run_set(
            where,
            scenario=dump(scenario),
            about=runs[0].about,
            numbers=numbers,
            answer=answer_of_seeds(answers, numbers),
            provenance=provenance,
        )

    def run(place: int, where: Path) -> Run:
        told = _part(progress, place, len(seeds))
        return _run_one(
            _with_seed(scenario, seeds[place]), where / f"seed-{seeds[place]}", interrupt, told, given, what_if, capture
        )

    with fresh_folder(folder) as fresh:
        runs.append(run(0, fresh))
        if given is not None:
            (fresh / FABRIC_FILE).write_text(given.text, encoding="utf-8")
        write_set(fresh)
    runs[0] = Run(folder / runs[0].path.name)
    try:
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
        "files": own_files(scenario),
        "notes": list(scenario.notes),
        "machine": {
            "system": platform.platform(),
            "processor": platform.machine(),
            "python": platform.python_version(),
        },
    }
