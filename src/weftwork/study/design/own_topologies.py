"""The topologies of a user's own that take part in a design.

The topology of the scenario takes part beside those of the catalogue where its file says what may vary of it; so does
each file that ``--only topology=./mine.py`` names.
Leaves out: what a topology says (`weftwork.spec.scenario.topology_growth.DesignSpace`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.folder import is_path
from weftwork.study.design.candidates import topology_word, unsearched
from weftwork.study.design.question import DesignQuestion

__all__ = ["OwnTopologies", "own_topologies", "with_whole_paths"]


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnTopologies:
    """The topologies of a user's own in a design.

    Attributes
    ----------
    files : that take part without being named by ``--only``
    note : why the scenario's own topology takes no part; empty where it does, or the scenario has none
    digests : of the text of every file that takes part, by its path
    """

    files: tuple[str, ...] = ()
    note: str = ""
    digests: Mapping[str, str]


def with_whole_paths(question: DesignQuestion) -> DesignQuestion:
    """The question with the whole path of each topology of the user's own that ``--only`` names.

    Raises
    ------
    ConfigError : the user's code must not run, or there is no such file
    """
    named = (question.only or {}).get("topology", ())
    files = [name for name in named if is_path(name)]
    if not files:
        return question
    mistakes = []
    for name in files:
        if not question.user_code:
            text = f"found '{name}', a Python file outside the package, which --no-user-code refuses"
            mistakes.append(Mistake(path="--only topology", text=text))
        elif not Path(name).is_file():
            mistakes.append(Mistake(path="--only topology", text=f"found '{name}', and there is no such file"))
    if mistakes:
        raise ConfigError("command line", mistakes)
    whole = [str(Path(name).resolve()) if is_path(name) else name for name in named]
    return replace(question, only={**(question.only or {}), "topology": whole})


def own_topologies(question: DesignQuestion, fabric: Mapping[str, Any]) -> OwnTopologies:
    """The topologies of the user's own that take part in a design.

    Parameters
    ----------
    question : with whole paths
    fabric : the section of the scenario, as the user wrote it

    Raises
    ------
    CodeError : the topology of the scenario is wrong; with file and line
    """
    named = tuple(name for name in (question.only or {}).get("topology", ()) if is_path(name))
    written = fabric.get("topology")
    file, note = None, ""
    if "topology" not in (question.only or {}) and isinstance(written, str) and is_path(written):
        file = str((question.file.parent / written).resolve())
        if not question.user_code:
            note = f"'{topology_word(file)}' is a Python file outside the package, which --no-user-code refuses"
        else:
            note = unsearched(file) or ""
    files = () if file is None or note else (file,)
    digests = {name: hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in (*named, *files)}
    return OwnTopologies(files=files, note=note, digests=digests)
