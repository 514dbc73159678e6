"""The suspects of a run: those of every kind whose needs the run meets, the likeliest kind first.

Kinds are the files of `weftwork.study.answer.suspicions`, and files of a user's own (`docs/models/answer.md`, section
Suspects).
Leaves out: what each suspect cost (`weftwork.study.answer.answer`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.folder import Folder
from weftwork.base.grammar import plural
from weftwork.base.user_code import is_in_package
from weftwork.study.answer.suspect import Suspect
from weftwork.study.answer.suspicion import NEEDS, RunRecords, Suspicion
from weftwork.study.prepare.prepared import Prepared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from weftwork.study.run.execute import Execution

__all__ = ["OPTION", "SUSPICIONS", "is_asked", "made_by", "own_suspicions", "suspects"]

OPTION: Final = "--suspect"  # of the command, which names files of a user's own

SUSPICIONS: Final = Folder(
    "suspect", package="weftwork.study.answer.suspicions", constant="SUSPICION", record=Suspicion
)


def own_suspicions(files: Sequence[str], *, user_code: bool = True) -> dict[str, Suspicion]:
    """Load kinds of suspects from files of a user's own.

    Parameters
    ----------
    files : paths of Python files
    user_code : False refuses each file outside the package

    Returns
    -------
    kinds by absolute path, which is their label

    Raises
    ------
    ConfigError : there is no such file, it is named twice, or no file of a user's own may be run
    CodeError : a file offers no kind of suspect, or is wrong; with its line
    """
    mistakes: list[Mistake] = []
    paths: dict[str, None] = {}
    for text in files:
        path = Path(text).absolute()
        if not text.endswith(".py") or not path.is_file():
            mistakes.append(Mistake(path=OPTION, text=f"found '{text}', wanted a Python file such as ./suspect.py"))
        elif not user_code and not is_in_package(path):
            refused = f"found '{text}', a Python file outside the package, which --no-user-code refuses"
            mistakes.append(Mistake(path=OPTION, text=refused))
        elif str(path) in paths:
            mistakes.append(Mistake(path=OPTION, text=f"found '{text}' twice, wanted each file once"))
        paths[str(path)] = None
    if mistakes:
        raise ConfigError("command line", mistakes)
    kinds = {label: SUSPICIONS.load(label) for label in paths}
    for label, kind in kinds.items():
        for name in kind.unless:
            if name not in SUSPICIONS:
                raise SUSPICIONS.wrong(label, f"unless has '{name}', wanted a kind of suspect: {', '.join(SUSPICIONS)}")
    return kinds


def suspects(prepared: Prepared, execution: Execution, own: Mapping[str, Suspicion] | None = None) -> list[Suspect]:
    """List the suspects of a finished run, the likeliest first.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    own : kinds of a user's own, of `own_suspicions`; None: none

    Raises
    ------
    CodeError : a file of a user's own fails, or makes something else than suspects
    """
    records = RunRecords(prepared=prepared, execution=execution)
    placed: list[tuple[int, int, Suspect]] = []
    suspected: set[str] = set()
    kinds = {**SUSPICIONS, **(own or {})}
    for label, kind in sorted(kinds.items(), key=lambda item: item[1].rank):
        if not suspected.isdisjoint(kind.unless) or not is_asked(kind, records):
            continue
        for suspect in made_by(label, kind, records):
            suspected.add(label)
            job = -1 if suspect.job is None else suspect.job
            placed.append((kind.rank, job, replace(suspect, standing=suspect.standing or kind.standing)))
    every = [suspect for _, _, suspect in sorted(placed, key=lambda entry: entry[:2])]
    _refuse_alike(every)
    return every


def is_asked(kind: Suspicion, records: RunRecords) -> bool:
    """Whether a run has all that a kind of suspect needs.

    Parameters
    ----------
    kind : of suspect
    records : of the run
    """
    return all(NEEDS[need](records) for need in kind.needs)


def made_by(label: str, kind: Suspicion, records: RunRecords) -> Iterable[Suspect]:
    """The suspects of one kind in a run that has what the kind needs.

    Parameters
    ----------
    label : name of the kind in the catalogue, or the path of a user's own file
    kind : of suspect
    records : of the run

    Raises
    ------
    CodeError : a file of a user's own fails, or makes something else than suspects
    """
    return kind.suspects(records) if label in SUSPICIONS else _of_file(label, kind, records)


def _of_file(label: str, kind: Suspicion, records: RunRecords) -> Iterator[Suspect]:
    """The suspects of a file of a user's own, whose errors name the file."""
    jobs = len(records.prepared.jobs)
    with SUSPICIONS.blaming(label):
        made = tuple(kind.suspects(records))
    for suspect in made:
        SUSPICIONS.want(label, suspect, Suspect, "suspects")
        if not (suspect.name.isprintable() and suspect.text.isprintable()):
            raise SUSPICIONS.wrong(label, f"name and text of suspect {suspect.name!r} are not one line each")
        if suspect.job is not None and suspect.job not in range(jobs):
            text = f"suspect '{suspect.name}' is of job {suspect.job!r}; the run has {plural(jobs, 'job')}"
            raise SUSPICIONS.wrong(label, text)
        change = None if suspect.change is None else _blamed(label, suspect.change)
        yield replace(suspect, file=label, change=change)


def _blamed(label: str, change: Callable[[Prepared], Prepared]) -> Callable[[Prepared], Prepared]:
    """A change of a user's own, whose errors name its file."""

    def without(prepared: Prepared) -> Prepared:
        with SUSPICIONS.blaming(label):
            other = change(prepared)
        return SUSPICIONS.want(label, other, Prepared, "change")

    return without


def _refuse_alike(every: Sequence[Suspect]) -> None:
    """Refuse a suspect of a user's own with the kind and the name of another, since costs go by both."""
    labels = [suspect.label for suspect in every]
    for suspect in every:
        if suspect.file is not None and labels.count(suspect.label) > 1:
            text = f"the run has another {suspect.kind} called '{suspect.name}': give the suspect a name of its own"
            raise SUSPICIONS.wrong(suspect.file, text)
