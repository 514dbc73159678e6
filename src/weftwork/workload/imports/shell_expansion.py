"""Words of the shell with values in place of variables.

Source: POSIX.1-2017, Shell Command Language, sections 2.6.2 to 2.6.5; arrays, ``${NAME/a/b}``, ``${NAME:1:2}``,
``${NAME^^}`` and ``${!NAME}`` as in the GNU Bash manual, section 3.5.3.
Leaves out: names of files for patterns, and ``~``.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from weftwork.workload.imports.shell_arithmetic import calculate
from weftwork.workload.imports.shell_pieces import Piece, RawWord, pieces_of
from weftwork.workload.imports.shell_values import MOST_LETTERS, ShellState, ShellWord, mark, without_value

__all__ = ["Expander", "OutOfStepsError"]

_PARAMETER: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])(?:\[([^\]]*)\])?(.*)", re.DOTALL)
_DEFAULT: Final = re.compile(r":?([-=?+])(.*)", re.DOTALL)
_SLICE: Final = re.compile(r":\s*(-?[0-9]{1,6})(?::\s*([0-9]{1,6}))?")
_DEEPEST: Final = 32  # chosen: a default inside a default inside a default is not written by hand
_MOST_WORK: Final = 20_000_000  # chosen: letters; a script of the allowed length that does no harm needs a tenth
_LONGEST_CUT: Final = 4_000  # chosen: letters of a text from which a pattern cuts
Capture = Callable[[str, int], str | None]


class OutOfStepsError(Exception):
    """The script makes more work than a script that starts a job."""


@dataclass(kw_only=True)
class Expander:
    """Put values into words.

    Attributes
    ----------
    fixed : values that stand whatever the script assigns
    outside : values of the scheduler, which the script may assign anew
    state : of the script at this place
    capture : output of a command inside a word, or None if nobody knows it
    doubt : number of conditions around this place that nobody knows
    work : letters so far
    required : variables without which the script would end
    has_unread : whether another file was read that may set variables
    """

    fixed: Mapping[str, str]
    outside: Mapping[str, str]
    capture: Capture
    state: ShellState = field(default_factory=ShellState)
    doubt: int = 0
    work: int = 0
    depth: int = 0
    required: set[str] = field(default_factory=set)
    has_unread: bool = False

    def spend(self, letters: int) -> None:
        """Count work, which has an end."""
        self.work += letters + 1
        if self.work > _MOST_WORK:
            raise OutOfStepsError

    def text(self, word: RawWord) -> str:
        """Value of a word whose blanks stay."""
        return "".join(value.text for value in self.words(word, is_whole=True))

    def words(self, word: RawWord, *, is_whole: bool = False) -> Iterator[ShellWord]:
        """Expand a word into words; a single one if ``is_whole``.

        The single word keeps its blanks.
        """
        if not is_whole and _is_list(word) and not any(self._values(piece, word.line) for piece in word.pieces[1:]):
            return  # `"$@"` without arguments is no word
        expanded: list[ShellWord] = []
        open_word: ShellWord | None = None
        for piece in word.pieces:
            values = self._values(piece, word.line)
            self.spend(sum(len(value.text) for value in values))
            is_kept = is_whole or piece.is_quoted or piece.kind == "text"
            parts = [(value, True) for value in values] if is_kept else list(_split(values))
            for index, (value, joins) in enumerate(parts):
                if open_word is not None and not is_whole and (index > 0 or not joins):
                    expanded.append(open_word)
                    open_word = None
                open_word = _joined(open_word, value, " " if is_whole and index > 0 else "")
            if not is_kept and values and values[-1].text[-1:].isspace() and open_word is not None:
                expanded.append(open_word)
                open_word = None
        if open_word is not None:
            expanded.append(open_word)
        for value in expanded:
            flag = value.is_conditional or self.doubt > 0
            yield ShellWord(text=value.text[:MOST_LETTERS], line=value.line, is_conditional=flag)

    def is_unset(self, name: str) -> bool:
        """Whether nothing in the script or outside of it gives a variable or argument a value."""
        if name == "#" or name.isdigit():
            return self.state.arguments is None and name not in self.required
        return (
            name.isidentifier()
            and name not in self.required
            and self._held(name) is None
            and not _is_from_outside(name)
        )

    def number(self, text: str, line: int) -> int | None:
        """Value of an expression, and its assignments."""
        plain = "".join(
            value.text
            for piece in pieces_of(text, is_quoted=True)
            for value in (self._values(piece, line))
        )  # fmt: skip
        if without_value(plain):
            return None
        assigned: dict[str, int | None] = {}
        value = calculate(plain, self._whole, assigned)
        for name, result in assigned.items():
            if name not in self.fixed:
                shown = mark(name) if result is None else str(result)
                self.state.put(name, [ShellWord(text=shown, line=line, is_conditional=self.doubt > 0)])
        return value

    def _whole(self, name: str, depth: int = 0) -> int | None:
        held = self._held(name)
        text = held[0].text.strip() if held else ""
        if re.fullmatch(r"-?[0-9]{1,18}", text):
            return int(text)
        is_name = text.isidentifier() and text != name and depth < 3  # chosen: a name of a name of a name
        return self._whole(text, depth + 1) if is_name else None

    def _held(self, name: str) -> tuple[ShellWord, ...] | None:
        if name in self.fixed:
            return (ShellWord(text=self.fixed[name], line=1),)
        held = self.state.values.get(name)
        if held is None and name in self.outside:
            return (ShellWord(text=self.outside[name], line=1),)
        return held

    def _values(self, piece: Piece, line: int) -> list[ShellWord]:
        """Values of a piece: one word, or the words of an array."""
        if piece.kind == "text":
            return [ShellWord(text=piece.text, line=line)]
        self.depth += 1
        try:
            if self.depth > _DEEPEST:
                return [ShellWord(text=mark(f"${{{piece.text}}}"), line=line)]
            if piece.kind == "arithmetic":
                number = self.number(piece.text, line)
                return [ShellWord(text=mark(f"$(({piece.text}))") if number is None else str(number), line=line)]
            if piece.kind == "command":
                output = self.capture(piece.text, line)
                return [ShellWord(text=mark(f"$({piece.text})") if output is None else output, line=line)]
            return self._variable(piece, line)
        finally:
            self.depth -= 1

    def _variable(self, piece: Piece, line: int) -> list[ShellWord]:
        shown = mark(f"${{{piece.text}}}")
        text = piece.text
        counts = len(text) > 1 and text[0] == "#" and text[1] not in ":-=?+%/#"
        is_indirect = len(text) > 1 and text[0] == "!" and text[1] not in ":-=?+%/#"
        parameter = _PARAMETER.fullmatch(text[1:] if counts or is_indirect else text)
        if parameter is None:
            return [ShellWord(text=shown, line=line)]
        name, index, operator = parameter[1], parameter[2], parameter[3]
        if is_indirect:
            held = self._held(name)
            if held is None or not held[0].text.isidentifier():
                return [ShellWord(text=shown, line=line)]
            name = held[0].text
        values = self._looked_up(name, index, line)
        if counts:
            return [ShellWord(text=_length(name, index, values, shown), line=line)]
        if default := _DEFAULT.fullmatch(operator):
            return self._defaulted(name, values, default[1], pieces_of(default[2], is_quoted=piece.is_quoted), line)
        if values is None:
            return [
                ShellWord(
                    text=shown if operator else mark(name if index in {None, "@", "*"} else piece.text), line=line
                )
            ]
        if not operator:
            return values
        return [replace(value, text=self._edited(value.text, operator, shown, line)) for value in values]

    def _looked_up(self, name: str, index: str | None, line: int) -> list[ShellWord] | None:
        """Values of a variable; None if it has none."""
        if name in {"@", "*"}:
            return list(self.state.arguments or ())  # of a script that is not started there are none
        if name == "#":
            known = self.state.arguments
            return None if known is None else [ShellWord(text=str(len(known)), line=line)]
        if name.isdigit():
            known, place = self.state.arguments, int(name[:6])
            if known is None or not place:
                return None
            return [known[place - 1]] if place <= len(known) else []
        if index is not None and index not in {"@", "*"}:
            return self._item(name, index, line)
        held = self._held(name)
        if held is None and index and not self.has_unread:
            return []  # an array that only a branch makes that is not taken
        if held is None or (not held and name not in self.state.arrays):
            return None
        if name not in self.state.arrays or name in self.fixed:
            place = held[0].line if " " in held[0].text else line  # many words stand where they are written
            return [replace(held[0], line=place)]
        return list(held if index else held[:1])

    def _item(self, name: str, index: str, line: int) -> list[ShellWord] | None:
        key = "".join(value.text for piece in pieces_of(index, is_quoted=True) for value in self._values(piece, line))
        if f"{name}[{key}]" in self.state.values:
            return list(self.state.values[f"{name}[{key}]"])
        number = self.number(key, line) if not without_value(key) and len(key) < 20 else None
        held = self.state.values.get(name, ())
        if number is None or name not in self.state.arrays or any(without_value(word.text) for word in held):
            return None
        return [held[number]] if -len(held) <= number < len(held) else []

    def _defaulted(
        self, name: str, values: list[ShellWord] | None, operator: str, default: list[Piece], line: int
    ) -> list[ShellWord]:
        is_empty = not values or not any(value.text for value in values)
        if operator == "+":
            if values is None and not self.is_unset(name):
                return [ShellWord(text=mark(name), line=line)]
            return [] if is_empty else self._inner(default, line)
        if not is_empty:
            return values or []
        if operator == "?":
            return [ShellWord(text=mark(name), line=line)]
        inner = self._inner(default, line)
        if operator == "=" and name not in self.fixed:
            self.state.put(name, inner)
        return inner

    def _inner(self, pieces: list[Piece], line: int) -> list[ShellWord]:
        values = [value for piece in pieces for value in self._values(piece, line)]
        self.spend(sum(len(value.text) for value in values))
        flag = any(value.is_conditional for value in values)
        return [ShellWord(text="".join(value.text for value in values), line=line, is_conditional=flag)]

    def _edited(self, text: str, operator: str, shown: str, line: int) -> str:
        """Text behind ``%``, ``#``, ``/``, ``:``, ``^`` or ``,``."""
        if without_value(text) or len(text) > _LONGEST_CUT:
            return shown
        if operator in {"^^", ",,", "^", ","}:
            edit = str.upper if operator[0] == "^" else str.lower
            return edit(text) if len(operator) == 2 else edit(text[:1]) + text[1:]
        if part := _SLICE.fullmatch(operator):
            start = max(int(part[1]), -len(text))
            rest = text[start:]
            return rest if part[2] is None else rest[: int(part[2])]
        argument = operator.lstrip("%#/")
        values = [value.text for piece in pieces_of(argument, is_quoted=True) for value in self._values(piece, line)]
        argument = "".join(values)
        if without_value(argument) or not operator.startswith(("%", "#", "/")):
            return shown
        return _cut(text, operator, argument, shown)


def _is_list(word: RawWord) -> bool:
    """Whether a word is `"$@"` or `"${NAME[@]}"` alone."""
    if len(word.pieces) != 2 or word.pieces[0] != Piece(kind="text", text="", is_quoted=True):
        return False
    return word.pieces[1].kind == "variable" and (word.pieces[1].text == "@" or word.pieces[1].text.endswith("[@]"))


def _length(name: str, index: str | None, values: list[ShellWord] | None, shown: str) -> str:
    if values is None or any(without_value(value.text) for value in values):
        return shown
    return str(len(values) if index in {"@", "*"} or name in {"@", "*"} else len("".join(v.text for v in values)))


def _cut(text: str, operator: str, argument: str, shown: str) -> str:
    """``${NAME%tail}``, ``${NAME##head}`` and ``${NAME/old/new}``."""
    if operator[0] == "/":
        old, _, new = argument.partition("/")
        if not old or any(letter in old for letter in "*?["):
            return shown
        return text.replace(old, new) if operator.startswith("//") else text.replace(old, new, 1)
    try:
        pattern = re.compile(fnmatch.translate(argument))
    except re.error:
        return shown
    is_long = operator[:2] in {"%%", "##"}
    lengths = range(len(text), -1, -1) if is_long else range(len(text) + 1)
    if len(text) > 500 or len(argument) > 100:  # chosen: paths and names are shorter
        return shown
    for length in lengths:
        part = text[len(text) - length :] if operator[0] == "%" else text[:length]
        if pattern.match(part):
            return text[: len(text) - length] if operator[0] == "%" else text[length:]
    return text


_OUTSIDE: Final = re.compile(
    r"(SLURM|SBATCH|PBS|LSB|LSF|OMPI|PMI|PMIX|MPI|CUDA|NVIDIA|KUBERNETES|TORCHELASTIC|PALS|FLUX)_\w+"
    r"|(GLOBAL_|LOCAL_|NODE_|GROUP_)?RANK|(LOCAL_|GROUP_)?WORLD_SIZE|MASTER_(ADDR|PORT)|HOME|USER|HOSTNAME|PATH|PWD"
    r"|OLDPWD|SHELL|RANDOM|SECONDS|TMPDIR|UID|EUID|PPID|LD_LIBRARY_PATH|BASH\w*|FUNCNAME|LINENO|OPTARG|OPTIND|NCPUS"
    r"|VC_\w+|PET_\w+|NSLOTS|TERM|LANG|LOGNAME|SCRATCH|CONDA_\w+|VIRTUAL_ENV"
)


def _is_from_outside(name: str) -> bool:
    """Whether a shell, a scheduler or a launcher sets a variable."""
    return _OUTSIDE.fullmatch(name) is not None


def _split(values: list[ShellWord]) -> Iterator[tuple[ShellWord, bool]]:
    """Split words at blanks, and note which continue the previous piece."""
    for index, value in enumerate(values):
        for place, text in enumerate(value.text.split()):
            joins = index == 0 and place == 0 and not value.text[0].isspace()
            yield replace(value, text=text), joins


def _joined(first: ShellWord | None, second: ShellWord, between: str) -> ShellWord:
    if first is None:
        return second
    flag = first.is_conditional or second.is_conditional
    return ShellWord(text=first.text + between + second.text, line=first.line, is_conditional=flag)
