"""``weftwork topology FILE --without ...``: the question and its answer.

The answer is in words or as JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from weftwork.base.errors import ConfigError, Mistake
from weftwork.cli.progress import ProgressLine
from weftwork.cli.topology_loss import loss_record, print_job_loss, print_loss
from weftwork.cli.topology_random import SeedsLine, print_random, random_record
from weftwork.topology.from_file import FABRIC_FILES
from weftwork.topology.random_loss import SEEDS, measure_random, random_part
from weftwork.topology.without import find_lost, measure_loss

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from weftwork.spec.fabric import Fabric
    from weftwork.topology.random_loss import RandomPart

__all__ = ["LossQuestion", "asked_loss", "tell_loss"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LossQuestion:
    """The question about a loss.

    Attributes
    ----------
    names : all that ``--without`` has
    certain : of them, what is one loss
    chance : what is drawn for many seeds; None: nothing
    seeds : how many
    has_iteration : whether the job is run before and after
    """

    names: tuple[str, ...]
    certain: tuple[str, ...]
    chance: RandomPart | None
    seeds: int
    has_iteration: bool


def asked_loss(file: Path, without: Sequence[str], *, seeds: int | None, has_iteration: bool) -> LossQuestion:
    """Read the options.

    Parameters
    ----------
    file : scenario or fabric
    without : names of what is lost, see `weftwork.topology.lost_names`
    seeds : of a random loss without a seed; None: `weftwork.topology.random_loss.SEEDS`
    has_iteration : whether the job is run before and after

    Raises
    ------
    ConfigError : options that do not go together
    """
    certain: list[str] = []
    chances: list[RandomPart] = []
    for name in without:
        part = random_part(name)
        if part is None or part.seed is not None:
            certain.append(name)
        else:
            chances.append(part)
    mistakes = []
    if len(chances) > 1:
        text = f"found {' and '.join(part.text for part in chances)}, wanted one; give the others a seed (@17)"
        mistakes.append(Mistake(path="--without", text=text))
    if seeds is not None and not chances:
        mistakes.append(Mistake(path="--seeds", text="found no random loss, wanted one such as --without random:2%"))
    if has_iteration and chances:
        text = f"found a loss for each seed, wanted a single loss, such as --without {chances[0].text}@17"
        mistakes.append(Mistake(path="--iteration", text=text))
    elif has_iteration and not certain:
        mistakes.append(Mistake(path="--iteration", text="found no loss, wanted --without"))
    if has_iteration and file.suffix in FABRIC_FILES:
        text = f"found '{file.name}', which is a fabric without a job, wanted a scenario"
        mistakes.append(Mistake(path="--iteration", text=text))
    if mistakes:
        raise ConfigError("command line", mistakes)
    return LossQuestion(
        names=tuple(without),
        certain=tuple(certain),
        chance=chances[0] if chances else None,
        seeds=SEEDS if seeds is None else seeds,
        has_iteration=has_iteration,
    )


def tell_loss(
    asked: LossQuestion,
    fabric: Fabric,
    file: Path,
    out: Console,
    *,
    as_json: bool,
    overrides: Mapping[str, str] | None,
    user_code: bool,
) -> None:
    """Find the effect of a loss, and print it.

    Parameters
    ----------
    asked : from `asked_loss`
    fabric : of ``file``
    file, overrides, user_code : for the job, as `weftwork.study.loss.job_without`
    out : for words
    as_json : one JSON object instead

    Raises
    ------
    ConfigError : names that the fabric does not have; a job that the flow engine cannot run
    """
    common = {"name": fabric.name, "without": list(asked.names)}
    if asked.chance is not None:
        with SeedsLine() as seeds_line:
            drawn = measure_random(
                fabric,
                asked.chance,
                seeds=asked.seeds,
                lost_links=find_lost(fabric, asked.certain)[1],
                on_progress=seeds_line,
            )
        if as_json:
            typer.echo(json.dumps({**common, **random_record(drawn)}, indent=2))
        else:
            print_random(out, fabric, drawn, asked.certain)
        return
    loss = measure_loss(fabric, asked.names)
    job = None
    if asked.has_iteration:
        from weftwork.study.loss import job_without  # brings engines

        with ProgressLine() as line:
            job = job_without(file, asked.names, overrides=overrides, user_code=user_code, on_progress=line)
    if as_json:
        typer.echo(json.dumps({**common, **loss_record(loss, job)}, indent=2))
        return
    print_loss(out, fabric, loss)
    if job is not None:
        print_job_loss(out, job)
