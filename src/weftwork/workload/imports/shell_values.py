"""What a script knows at one place: words, variables, functions, and texts that it wrote into files.

A part without a value stands in a word as a mark. Where branches meet of which nobody knows which one is taken, their
variables are put together.
Leaves out: how the values come about (`weftwork.workload.imports.shell`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from weftwork.workload.imports.shell_syntax import ShellFunction

__all__ = ["MOST_LETTERS", "ShellState", "ShellWord", "mark", "merge_states", "without_value"]

_MARK: Final = re.compile("\0([^\1]*)\1")
MOST_LETTERS: Final = 1_000_000  # chosen: four times a scenario; a variable that doubles itself stops there


@dataclass(frozen=True, kw_only=True, slots=True)
class ShellWord:
    """A word of a command.

    Attributes
    ----------
    text : with variables replaced by what they hold; what has no value stands in it as a mark, see `without_value`
    line : in the script, counted from 1
    is_conditional : whether it depends on a condition that nobody knows
    """

    text: str
    line: int
    is_conditional: bool = False


def mark(name: str) -> str:
    """Placeholder for a part without a value.

    It has no blank, so that the word stays a single word.
    """
    return "\0" + re.sub(r"\s", "\2", re.sub("[\0\1]", "", name)) + "\1"


def without_value(text: str) -> tuple[str, ...]:
    """Name the parts of a word that have no value.

    They are variables, commands, and variables that differ from branch to branch.

    Examples
    --------
    >>> from weftwork.workload.imports.shell import read_shell
    >>> script = read_shell("train --layers $LAYERS")
    >>> without_value(script.commands[0][2].text)
    ('LAYERS',)
    """
    return tuple(name.replace("\2", " ") for name in _MARK.findall(text))


@dataclass(kw_only=True, slots=True)
class ShellState:
    """Everything that a command can change.

    Attributes
    ----------
    values : of a variable: its word, or the words of an array; ``NAME[key]`` is an item of a table
    arrays : names that hold arrays
    functions : by name
    files : text that the script wrote into a file, and the line of its first letter
    arguments : ``$1`` and so on; None for those of the script, which nobody knows
    has_ended : ``exit``, ``return``, ``break`` or ``continue``, if no command comes after it
    """

    values: dict[str, tuple[ShellWord, ...]] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)
    functions: dict[str, ShellFunction] = field(default_factory=dict)
    files: dict[str, ShellWord] = field(default_factory=dict)
    arguments: tuple[ShellWord, ...] | None = None
    has_ended: str = ""

    def copy(self) -> ShellState:
        """A state that changes by itself."""
        return replace(
            self, values=dict(self.values), arrays=set(self.arrays), functions=dict(self.functions),
            files=dict(self.files),
        )  # fmt: skip

    def put(self, name: str, words: Sequence[ShellWord], *, is_array: bool = False) -> None:
        """Set a variable."""
        self.values[name] = tuple(words)
        (self.arrays.add if is_array else self.arrays.discard)(name)


def merge_states(base: ShellState, states: Sequence[ShellState], added: list[ShellWord] | None = None) -> ShellState:
    """State after branches of which nobody knows which one is taken.

    Words that a branch adds to a variable stay and count as conditional; a variable with one value in one branch and
    another one in another branch has none.

    Parameters
    ----------
    base : before the branches
    states : after each branch; ``base`` itself is among them where all branches may be passed over
    added : receives the words that only some branches add
    """
    going = [state for state in states if not state.has_ended]
    if not going:
        merged = base.copy()
        merged.has_ended = states[0].has_ended if states else ""
        return merged
    if len(going) == 1:
        return going[0]
    merged = base.copy()
    merged.arguments = going[0].arguments
    for state in going:
        merged.functions |= state.functions
        merged.files |= state.files
        merged.arrays |= state.arrays
    for name in dict.fromkeys(name for state in going for name in state.values):
        held = [state.values.get(name, ()) for state in going]
        before = base.values.get(name, ())
        merged.values[name] = _merged(
            name, before, held, [] if added is None else added, is_array=name in merged.arrays
        )
    return merged


def _merged(
    name: str,
    before: tuple[ShellWord, ...],
    held: Sequence[tuple[ShellWord, ...]],
    added: list[ShellWord],
    *,
    is_array: bool,
) -> tuple[ShellWord, ...]:
    texts = {tuple(word.text for word in words) for words in held}
    if len(texts) == 1:
        return held[0]
    line = next(word.line for words in [*held, before] for word in words) if any([*held, before]) else 1
    if is_array:
        start = tuple(word.text for word in before)
        if any(tuple(word.text for word in words[: len(start)]) != start for words in held):
            return (ShellWord(text=mark(name), line=line, is_conditional=True),)
        more = [replace(word, is_conditional=True) for words in held for word in words[len(start) :]]
        added += more
        return (*before, *more)
    text = "".join(word.text for word in before)
    tails = [words[0].text.removeprefix(text) if words else "" for words in held]
    if all(not words or words[0].text.startswith(text) for words in held) and _adds(text, tails):
        parts = list(dict.fromkeys(tail for tail in tails if tail))
        # a branch that sets an empty text differs from one that sets nothing, and adds nothing
        line = next((word.line for words in held for word in words if word.text != text), line)
        added += [ShellWord(text=tail, line=line) for tail in parts]
        return (ShellWord(text=(text + "".join(parts))[:MOST_LETTERS], line=line, is_conditional=True),)
    value = mark(name)  # one value in one branch and another one in another: nobody knows
    return (ShellWord(text=value, line=line, is_conditional=True),)


def _adds(text: str, tails: Sequence[str]) -> bool:
    """Whether branches only add words to a text, and not letters to its last word."""
    if not text:  # several texts in place of none are a choice
        return len({tail for tail in tails if tail.strip()}) == 1 or all(_is_option(tail) for tail in tails)
    return all(not tail or tail[0].isspace() or text[-1].isspace() for tail in tails)


def _is_option(tail: str) -> bool:
    return not tail or (tail[0].isspace() and tail.lstrip().startswith("--"))
