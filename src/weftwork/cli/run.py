"""``weftwork run``: simulate a scenario and write its run folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weftwork.base.caveat import assumed_texts
from weftwork.base.errors import ConfigError, Mistake
from weftwork.cli.console import console
from weftwork.cli.leave import FAILED, INTERRUPTED
from weftwork.cli.progress import ProgressLine
from weftwork.cli.settings import overrides
from weftwork.report.answer import details, print_answer
from weftwork.report.captured import print_capture
from weftwork.report.three_lines import LABELS, labelled_lines, repair_text, three_lines
from weftwork.report.words import has_clock_ended
from weftwork.spec.endings import FAILED_ENDINGS
from weftwork.store.runs import finished
from weftwork.study.record.run import run_scenario
from weftwork.study.run.captured_link import DEFAULT_PACKETS, CapturedLink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.store.runs import Run
    from weftwork.study.answer.worlds import Extent

__all__ = ["print_run", "run", "run_document"]


def run(  # noqa: PLR0913 - the options, all by name
    file: Path,
    *,
    out: Path | None,
    name: str | None,
    seed: int | None,
    seeds: int,
    what_if: Extent,
    has_sources: bool,
    settings: Sequence[str] | None,
    user_code: bool,
    capture: str | None,
    capture_packets: int | None,
    suspects: Sequence[str],
    as_json: bool,
) -> int:
    """Run a scenario and print its result.

    Parameters
    ----------
    file : the scenario
    out : run folder
    name : of the run; None: the scenario's
    seed, seeds : first seed, and how many
    what_if : which other worlds are simulated, see `weftwork.study.run.execute.execute`
    has_sources : whether every caveat is written out
    settings : ``key=value`` texts of ``--set``
    user_code : False refuses every Python file of the user's own that the scenario names
    capture : link or port whose frames are written as pcapng; None: none
    capture_packets : the most that are kept; None: `DEFAULT_PACKETS`
    suspects : Python files of ``--suspect``
    as_json : one JSON object instead of words

    Returns
    -------
    exit code: 0; 1 where messages can never arrive, simulated time has ended or a queue pair has given up;
    130 after Ctrl-C, when the run folder
    holds what was done

    Raises
    ------
    ConfigError : with all mistakes
    """
    with ProgressLine() as line:
        result = run_scenario(
            file,
            out=out,
            name=name,
            seed=seed,
            seeds=seeds,
            what_if=what_if,
            overrides=overrides(settings),
            user_code=user_code,
            capture=_captured(file, capture, capture_packets),
            suspects=tuple(suspects),
            progress=line,
        )
    if as_json:
        typer.echo(json.dumps(run_document(result), indent=2))
    else:
        print_run(result, has_sources=has_sources)
    if result.ending.is_by_hand:
        return INTERRUPTED
    return FAILED if any(_is_stuck(part) for part in result.seeds or (result,)) else 0


def print_run(result: Run, *, has_sources: bool) -> None:
    """Print the answer of a run from its folder alone.

    Parameters
    ----------
    result : that was written
    has_sources : whether every caveat is written out
    """
    print_answer(result, console(), has_sources=has_sources)
    for part in result.seeds or (result,):
        print_capture(part, console())


def _captured(file: Path, capture: str | None, packets: int | None) -> CapturedLink | None:
    """The captured link; a limit alone is a mistake."""
    if capture is not None:
        return CapturedLink(name=capture, packets=DEFAULT_PACKETS if packets is None else packets)
    if packets is not None:
        text = "found a limit and no link to capture; give --capture LINK"
        raise ConfigError(str(file), [Mistake(path="--capture-packets", text=text)])
    return None


def _is_stuck(result: Run) -> bool:
    """Whether messages can never arrive.

    The clock has ended, or a queue pair has given up.
    """
    if has_clock_ended(result):
        return True
    return result.status in FAILED_ENDINGS or bool(result.summary.get("queue_pair_errors", {}).get("value"))


def run_document(result: Run) -> dict[str, object]:
    """A run as one JSON object."""
    return {
        "run": str(result.path),
        "status": result.status,
        "about": result.about,
        "finished": dict(zip(("runs", "of"), finished(result), strict=True)),
        "answer": result.answer.to_json(),
        "lines": dict(zip(LABELS, three_lines(result), strict=True)) | dict(labelled_lines(result)),
        "repair": repair_text(result.answer),
        "said": details(result),
        "what_ifs_stopped": result.provenance.get("what_ifs_stopped"),
        "assumed": list(assumed_texts(result.caveats)),
        "numbers": result.summary,
        **({"capture": result.provenance["capture"]} if "capture" in result.provenance else {}),
        "seeds": {str(part.provenance["seed"]): str(part.path) for part in result.seeds},
    }
