"""Read shell scripts without running them.

Plain assignments are put into the words of each command. A script that starts a training job is mostly assignments,
arrays and one command at the end. Those are followed; whatever would have to be run, such as ``$(nvidia-smi -L)``, has
no value, and a word that needs it says so.
Source: POSIX.1-2017, Shell Command Language, section 2.6; ``NAME+=( ... )`` as in the GNU Bash manual, section 6.7.
Leaves out: loops, functions and tests. An assignment below ``if`` counts as if it were reached, and its words know it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weftwork.workload.imports.shell_pieces import Piece, RawCommand, RawWord, pieces_of, split_commands

__all__ = ["ShellScript", "ShellWord", "read_shell", "without_value"]

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_PARAMETER: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])(\[[@*]\])?(?::?([-=?])(.*))?", re.DOTALL)
_OPENS: Final = frozenset({"if", "for", "while", "until", "case", "select", "function", "{"})
_CLOSES: Final = frozenset({"fi", "done", "esac", "}"})
_KEYWORDS: Final = _OPENS | _CLOSES | {"then", "else", "elif", "do", "!", "time"}
_BEFORE: Final = frozenset({"export", "declare", "local", "readonly", "typeset", "env"})
_MARK: Final = re.compile("\0([^\1]*)\1")
_DEEPEST: Final = 32  # chosen: a default inside a default inside a default is not written by hand
_MOST_LETTERS: Final = 1_000_000  # chosen: four times a scenario; a variable that doubles itself stops there


@dataclass(frozen=True, kw_only=True, slots=True)
class ShellWord:
    """A word of a command.

    Attributes
    ----------
    text : with variables replaced by what they hold; what has no value stands in it as a mark, see `without_value`
    line : in the script, counted from 1
    is_conditional : whether it stands below ``if``, behind ``&&``, or in a variable that was set there
    """

    text: str
    line: int
    is_conditional: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ShellScript:
    """Commands of a script, and its final variables.

    Both are in the order of the script.
    """

    commands: tuple[tuple[ShellWord, ...], ...]
    variables: Mapping[str, tuple[ShellWord, ...]]


def without_value(text: str) -> tuple[str, ...]:
    """Name the parts of a word that have no value.

    They are variables, commands, and variables that differ from branch to branch.

    Examples
    --------
    >>> script = read_shell("train --layers $LAYERS")
    >>> without_value(script.commands[0][2].text)
    ('LAYERS',)
    """
    return tuple(found.replace("\2", " ") for found in _MARK.findall(text))


def read_shell(text: str, variables: Mapping[str, str] | None = None) -> ShellScript:
    r"""Read a script without running it.

    Parameters
    ----------
    text : of the script, or one command line
    variables : values that stand whatever the script assigns

    Examples
    --------
    >>> script = read_shell('TP=8; ARGS=(--tp ${TP} "--cp=$((TP / 4))")\ntrain "${ARGS[@]}"')
    >>> [word.text for word in script.commands[-1]]
    ['train', '--tp', '8', '--cp=2']
    """
    shell = _Shell(fixed=dict(variables or {}))
    commands = []
    for raw in split_commands(text):
        found = shell.command(raw)
        if found:
            commands.append(found)
    held = {name: variable for name, variable in shell.held.items() if name not in shell.fixed}
    return ShellScript(commands=tuple(commands), variables=held)


@dataclass(kw_only=True)
class _Shell:
    fixed: dict[str, str]
    held: dict[str, tuple[ShellWord, ...]] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)
    depth: int = 0

    def command(self, raw: RawCommand) -> tuple[ShellWord, ...]:
        """Apply the assignments of a command, and return its other words."""
        words = self._without_keywords(raw.words)
        is_conditional = self.depth > 0 or raw.joint in {"&&", "||"}
        first = 0
        while first < len(words):
            plain = _plain(words[first])
            if _ASSIGNMENT.match(plain):
                self._assign(words[first], is_conditional=is_conditional)
            elif plain not in _BEFORE and not (first and plain.startswith("-") and _plain(words[0]) in _BEFORE):
                break
            first += 1
        return tuple(one for word in words[first:] for one in self._expand(word, is_conditional=self.depth > 0))

    def _without_keywords(self, words: Sequence[RawWord]) -> Sequence[RawWord]:
        while words and (word := _plain(words[0])) in _KEYWORDS:
            self.depth += (word in _OPENS) - (word in _CLOSES)
            self.depth = max(self.depth, 0)
            words = words[1:]
            if word in {"for", "case", "select", "function"}:
                return []
        return words

    def _assign(self, word: RawWord, *, is_conditional: bool) -> None:
        match = _ASSIGNMENT.match(_plain(word))
        if match is None:
            return
        name, adds = match[1], bool(match[2])
        if word.array is not None:
            items = [one for item in word.array for one in self._expand(item, is_conditional=is_conditional)]
            before = self.held.get(name, ()) if adds else ()
            self.arrays.add(name)
            self.held[name] = (*before, *items)
            return
        rest = RawWord(line=word.line, pieces=_behind(word.pieces, match.end()))
        value = "".join(one.text for one in self._expand(rest, is_conditional=is_conditional, is_whole=True))
        old = self.held.get(name)
        if adds and old:
            value = (old[0].text + value)[:_MOST_LETTERS]
        elif is_conditional and old and old[0].text != value and not _names(rest, name):
            value = _mark(name)  # one value in one branch and another one in another: nobody knows
        self.arrays.discard(name)
        self.held[name] = (ShellWord(text=value, line=word.line, is_conditional=is_conditional),)

    def _expand(self, word: RawWord, *, is_conditional: bool, is_whole: bool = False) -> Iterator[ShellWord]:
        """Expand a word into words; a single one if ``is_whole``.

        The single word keeps its blanks.
        """
        found: list[ShellWord] = []
        open_word: ShellWord | None = None
        for piece in word.pieces:
            values = self._values(piece, word.line)
            is_kept = is_whole or piece.is_quoted or piece.kind == "text"
            parts = [(one, True) for one in values] if is_kept else list(_split(values))
            for index, (value, joins) in enumerate(parts):
                if open_word is not None and not is_whole and (index > 0 or not joins):
                    found.append(open_word)
                    open_word = None
                open_word = _joined(open_word, value, " " if is_whole and index > 0 else "")
            if not is_kept and values and values[-1].text[-1:].isspace() and open_word is not None:
                found.append(open_word)
                open_word = None
        if open_word is not None:
            found.append(open_word)
        for one in found:
            flag = one.is_conditional or is_conditional
            yield ShellWord(text=one.text[:_MOST_LETTERS], line=one.line, is_conditional=flag)

    def _values(self, piece: Piece, line: int, depth: int = 0) -> list[ShellWord]:
        """Values of a piece: one word, or the words of an array."""
        if piece.kind == "text":
            return [ShellWord(text=piece.text, line=line)]
        if piece.kind == "arithmetic":
            return [ShellWord(text=self._number(piece.text), line=line)]
        parameter = _PARAMETER.fullmatch(piece.text) if piece.kind == "variable" else None
        if parameter is None:
            shown = f"$({piece.text})" if piece.kind == "command" else f"${{{piece.text}}}"
            return [ShellWord(text=_mark(shown), line=line)]
        name, every, operator, default = parameter.groups()
        if name in self.fixed:
            return [ShellWord(text=self.fixed[name], line=line)]
        if name in {"@", "*"}:
            return []  # the words behind the script's name, which a file does not have
        held = self.held.get(name)
        if held is None or (operator and not any(one.text for one in held)):
            if operator in {"-", "="} and depth < _DEEPEST:
                inner = pieces_of(default, is_quoted=piece.is_quoted)
                values = [self._values(one, line, depth + 1) for one in inner]
                return [ShellWord(text="".join(one.text for value in values for one in value), line=line)]
            return [] if held == () else [ShellWord(text=_mark(name), line=line)]
        if name not in self.arrays:
            place = held[0].line if " " in held[0].text else line  # many words stand where they are written
            return [ShellWord(text=held[0].text, line=place, is_conditional=held[0].is_conditional)]
        return list(held if every else held[:1])

    def _number(self, text: str) -> str:
        """Value of an expression, or a mark without a value."""
        named = re.sub(r"\$\{?([A-Za-z_]\w*)\}?", r"\1", text).replace("/", "//").strip()
        try:
            value = self._evaluate(ast.parse(named, mode="eval").body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            value = None
        return _mark(f"$(({text}))") if value is None else str(value)

    def _evaluate(self, node: ast.expr) -> int | None:
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return value
            case ast.Name(id=name):
                held = self.fixed.get(name) or "".join(one.text for one in self.held.get(name, ())[:1])
                return int(held) if re.fullmatch(r"-?[0-9]{1,18}", held) else None
            case ast.BinOp(left=left, op=operator, right=right):
                first, second = self._evaluate(left), self._evaluate(right)
                return None if first is None or second is None else _calculated(operator, first, second)
        return None


def _mark(name: str) -> str:
    """Placeholder for a part without a value.

    It has no blank, so that the word stays a single word.
    """
    return "\0" + re.sub(r"\s", "\2", re.sub("[\0\1]", "", name)) + "\1"


def _calculated(operator: ast.operator, first: int, second: int) -> int | None:
    match operator:
        case ast.Add():
            return first + second
        case ast.Sub():
            return first - second
        case ast.Mult():
            return first * second
        case ast.FloorDiv() if second > 0:
            return first // second
        case ast.Mod() if second > 0:
            return first % second
    return None


def _names(word: RawWord, name: str) -> bool:
    """Whether a word contains a variable, as in ``A="$A --more"``.

    Such a word adds to the variable.
    """
    return any(piece.kind == "variable" and piece.text == name for piece in word.pieces)


def _plain(word: RawWord) -> str:
    """Leading text of a word that is literal and not quoted."""
    found = ""
    for piece in word.pieces:
        if piece.kind != "text" or piece.is_quoted:
            break
        found += piece.text
    return found


def _behind(pieces: list[Piece], letters: int) -> list[Piece]:
    """The pieces without a literal prefix."""
    for index, piece in enumerate(pieces):
        if letters < len(piece.text):
            return [Piece(kind=piece.kind, text=piece.text[letters:], is_quoted=piece.is_quoted), *pieces[index + 1 :]]
        letters -= len(piece.text)
        if not letters:
            return pieces[index + 1 :]
    return []


def _split(values: list[ShellWord]) -> Iterator[tuple[ShellWord, bool]]:
    """Split words at blanks, and note which continue the previous piece."""
    for index, value in enumerate(values):
        for place, text in enumerate(value.text.split()):
            joins = index == 0 and place == 0 and not value.text[0].isspace()
            yield ShellWord(text=text, line=value.line, is_conditional=value.is_conditional), joins


def _joined(first: ShellWord | None, second: ShellWord, between: str) -> ShellWord:
    if first is None:
        return second
    flag = first.is_conditional or second.is_conditional
    return ShellWord(text=first.text + between + second.text, line=first.line, is_conditional=flag)
