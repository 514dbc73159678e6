"""What single commands do to a script's variables, texts and files, as far as nothing has to be run.

``eval``, ``sh -c``, ``source`` and here-documents are read as the scripts that they are; ``echo``, ``cat``, ``seq`` and
``expr`` say what they write.
Source: POSIX.1-2017, Shell and Utilities; GNU Bash manual, chapter 4, for ``declare``, ``read`` and ``printf -v``.
Leaves out: programs of all other names. Nobody knows their output; their success is expected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Final

from weftwork.workload.imports.shell_pieces import Piece, RawWord, plain_text
from weftwork.workload.imports.shell_syntax import Redirection, Simple
from weftwork.workload.imports.shell_values import MOST_LETTERS, ShellWord, mark, without_value
from weftwork.workload.imports.shell_walk import Output, Status, Walker

__all__ = ["TALKERS", "CommandWalker"]

# Commands that only show words, so that arguments in them start nothing.
TALKERS: Final = frozenset({"echo", "printf", "cat", "tee", "grep", "egrep", "sed", "awk", "logger", "print", "test",
                            "[", ":", "true", "head", "tail", "log", "expr", "seq", "export"})  # fmt: skip
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]]*\])?(\+?)=")
_DECLARES: Final = frozenset({"export", "declare", "local", "readonly", "typeset"})
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh"})
_SUBMITS: Final = frozenset({"sbatch", "qsub", "bsub"})
_PROGRAM: Final = re.compile(r"\.py(?![\w.])")
_MOST_NUMBERS: Final = 64  # chosen: of `seq`
_FORMAT: Final = re.compile(r"%(?:%|-?[0-9]*([sd]))")


@dataclass(kw_only=True)
class CommandWalker(Walker):
    """Reads commands of words.

    Attributes
    ----------
    prefix : words around a text that is read as a script, such as those of ``srun``
    unread : files that the script reads as well, and their lines
    called : functions that were called
    """

    prefix: tuple[ShellWord, ...] = ()
    unread: dict[str, int] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)

    def simple(self, command: Simple, standard_input: str | None) -> Status:
        """Read a command of words."""
        words, declares = self._assigned(command.words)
        texts = tuple(word for raw in words for word in self._expanded(raw, words))
        for redirection in command.redirections:
            if redirection.operator in {"<<", "<<<"}:
                standard_input = self.expander.text(redirection.target)
            elif redirection.operator == "<":
                name = self.expander.text(redirection.target)
                standard_input = self.state.files[name].text if name in self.state.files else None
        if not texts or declares:
            return Status(line=command.line)
        self.outputs[-1].text = self.outputs[-1].text[:MOST_LETTERS]
        goes_on = not command.redirections
        if not goes_on:
            self.outputs.append(Output())
        place = next((one.target.line for one in command.redirections if one.operator == "<<"), command.line)
        status = self._called(texts, words, standard_input, command.line, place)
        if not goes_on:
            self._written(command.redirections)
        return status

    def _expanded(self, raw: RawWord, words: Sequence[RawWord]) -> list[ShellWord]:
        expanded = list(self.expander.words(raw))
        is_test = plain_text(words[0]) in {"[", "test"}
        if is_test and all(piece.kind == "variable" and not piece.is_quoted for piece in raw.pieces):
            return [word for word in expanded if word.text]  # `[ -n $NOTHING ]` has two words
        return expanded

    def _written(self, redirections: Sequence[Redirection]) -> None:
        """Move what a command wrote to where it is redirected."""
        output = self.outputs.pop()
        files = [one for one in redirections if one.operator in _INTO_FILES and one.stream in {"", "1"}]
        for redirection in files:
            name = self.expander.text(redirection.target)
            self._into_file(name, output.text if output.is_known else None, adds=">>" in redirection.operator,
                            line=redirection.target.line)  # fmt: skip
        to_errors = any(one.operator == ">&" and one.stream in {"", "1"} for one in redirections)
        if not files and not to_errors:
            self.outputs[-1].text += output.text
            self.outputs[-1].is_known &= output.is_known

    def _into_file(self, name: str, text: str | None, *, adds: bool, line: int) -> None:
        before = self.state.files.get(name)
        if text is None or name.startswith("/dev/"):
            self.state.files.pop(name, None)
        elif adds and before is not None:
            self.state.files[name] = replace(before, text=(before.text + text)[:MOST_LETTERS])
        else:
            self.state.files[name] = ShellWord(text=text, line=line)

    def _assigned(self, raws: Sequence[RawWord]) -> tuple[Sequence[RawWord], bool]:
        """Apply the assignments in front of a command; return its other words, and whether it only declares."""
        first, is_before, declares = 0, False, False
        while first < len(raws):
            plain = plain_text(raws[first])
            if _ASSIGNMENT.match(plain):
                self._assign(raws[first])
            elif plain in _DECLARES or plain == "env":
                is_before, declares = True, declares or plain in _DECLARES
            elif not (is_before and plain.startswith("-")):
                break
            first += 1
        return raws[first:], declares

    def _assign(self, raw: RawWord) -> None:
        match = _ASSIGNMENT.match(plain_text(raw))
        if match is None or match[1] in self.fixed:
            return
        name, adds, state = match[1], bool(match[3]), self.state
        if raw.array is not None:
            items = [one for item in raw.array for one in self.expander.words(item)]
            keyed = [re.fullmatch(r"\[([^\]]*)\]=(.*)", item.text, re.DOTALL) for item in items]
            if items and all(keyed):
                for item, pair in zip(items, keyed, strict=True):
                    if pair is not None:
                        state.put(f"{name}[{pair[1]}]", [replace(item, text=pair[2])])
                return
            before = state.values.get(name, ()) if adds else ()
            state.put(name, (*before, *items), is_array=True)
            return
        rest = RawWord(line=raw.line, pieces=_behind(raw.pieces, match.end()))
        values = list(self.expander.words(rest, is_whole=True))
        value = "".join(one.text for one in values)
        flag = any(one.is_conditional for one in values) or self.expander.doubt > 0
        if match[2]:
            name += match[2]
        old = state.values.get(name)
        if adds and old and name in state.arrays:
            state.put(name, [*old, ShellWord(text=value, line=raw.line, is_conditional=flag)], is_array=True)
            return
        if adds and old:
            value, flag = (old[0].text + value)[:MOST_LETTERS], flag or old[0].is_conditional
        state.put(name, [ShellWord(text=value, line=raw.line, is_conditional=flag)])

    def _called(
        self, words: tuple[ShellWord, ...], raws: Sequence[RawWord], standard_input: str | None, line: int, place: int
    ) -> Status:
        name = PurePosixPath(words[0].text).name
        texts = [word.text for word in words[1:]]
        if words[0].text in self.state.functions:
            return self._function(words, raws)
        if name in _TESTS:
            inner = texts[:-1] if name == "[" and texts[-1:] == ["]"] else texts
            return self.judged(inner, line, is_double=False)
        if name in {"true", ":", "false"}:
            return Status(truth=name != "false", line=line)
        if name == "eval":
            text = " ".join(texts[1:] if texts[:1] == ["--"] else texts)
            return self.text(text, line=words[1].line if texts else line)
        if name in {"exit", "return", "break", "continue"}:
            self.state.has_ended = name
            if name == "exit" and self.depth <= 1 and not self.expander.doubt:
                self.end_line = line
            return Status(line=line)
        if name in _SETTERS:
            return self._set(name, words, raws, standard_input, line)
        if name in _WRITERS or (name == "cat" and not any(text.startswith("-") for text in texts)):
            return self._write(name, words, standard_input, line)
        return self._script_of(words, standard_input, line, place)

    def _function(self, words: tuple[ShellWord, ...], raws: Sequence[RawWord]) -> Status:
        name, before = words[0].text, self.state.arguments
        self.called.add(name)
        if self.depth >= 20:  # chosen: functions that call themselves end there
            return Status(truth=None, line=words[0].line)
        passes_on = before is None and any(piece.text in {"@", "*"} for raw in raws for piece in raw.pieces)
        self.state.arguments = None if passes_on and len(words) == 1 else words[1:]
        self.depth += 1
        status = self.script(self.state.functions[name].body)
        self.depth -= 1
        self.state.arguments = before
        if self.state.has_ended == "return":
            self.state.has_ended = ""
            status = Status(truth=None, line=status.line)
        return status

    def _set(
        self, name: str, words: tuple[ShellWord, ...], raws: Sequence[RawWord], standard_input: str | None, line: int
    ) -> Status:
        texts = [word.text for word in words[1:]]
        names = [text for text in texts if text.isidentifier() and text not in self.fixed]
        if name == "let":
            for text in texts:
                self.expander.number(text, line)
        elif name == "unset":
            for one in names:
                self.state.values.pop(one, None)
        elif name == "shift":
            count = int(texts[0]) if texts and re.fullmatch("[0-9]{1,4}", texts[0]) else 1
            self.state.arguments = self.state.arguments and self.state.arguments[count:]
        elif name == "set" and ("--" in texts or (texts and not texts[0].startswith(("-", "+")))):
            self.state.arguments = words[texts.index("--") + 2 if "--" in texts else 1 :]
        elif name in {"read", "mapfile", "readarray", "getopts"}:
            self._read(name, texts, names, standard_input, raws[0].line)
        return Status(truth=None if name in {"read", "getopts"} else True, line=line)

    def _read(self, name: str, texts: list[str], names: list[str], standard_input: str | None, line: int) -> None:
        flag = self.expander.doubt > 0
        if name == "getopts":
            names = [*texts[1:2], "OPTARG"]
        if standard_input is None or name == "getopts":
            for one in names if name in {"read", "getopts"} else names[-1:]:
                self.state.put(one, [ShellWord(text=mark(one), line=line, is_conditional=flag)])
            return
        if name != "read":
            rows = standard_input.splitlines()
            items = [ShellWord(text=row, line=line, is_conditional=flag) for row in rows]
            for one in names[-1:]:
                self.state.put(one, items, is_array=True)
            return
        is_whole = "-d" in texts or any(re.fullmatch("-[a-z]*d", text) for text in texts)
        row = standard_input if is_whole else standard_input.partition("\n")[0]
        is_list = any(re.fullmatch("-[a-z]*a", text) for text in texts)
        if is_list and names:
            items = [ShellWord(text=part, line=line, is_conditional=flag) for part in row.split()]
            self.state.put(names[-1], items, is_array=True)
            return
        parts = row.strip().split(maxsplit=max(len(names) - 1, 0)) if len(names) > 1 else [row.strip()]
        for one, part in zip(names, [*parts, *[""] * len(names)], strict=False):
            self.state.put(one, [ShellWord(text=part, line=line, is_conditional=flag)])

    def _write(self, name: str, words: tuple[ShellWord, ...], standard_input: str | None, line: int) -> Status:
        texts = [word.text for word in words[1:]]
        text = self._written_text(name, texts, standard_input)
        if name == "printf" and texts[:1] == ["-v"] and len(texts) > 2:
            shown = _formatted(texts[2:])
            value = mark(texts[1]) if shown is None else shown
            if texts[1] not in self.fixed:
                self.state.put(texts[1], [ShellWord(text=value, line=line, is_conditional=self.expander.doubt > 0)])
            return Status(line=line)
        if name == "tee":
            for path in (text for text in texts if not text.startswith("-")):
                self._into_file(path, standard_input, adds="-a" in texts, line=line)
        output = self.outputs[-1]
        output.text = (output.text + (text or ""))[:MOST_LETTERS]
        output.is_known &= text is not None
        if name in TALKERS:
            self._record(words)
        return Status(line=line)

    def _written_text(self, name: str, texts: list[str], standard_input: str | None) -> str | None:
        match name:
            case "echo":
                options = [text for text in texts[:2] if re.fullmatch("-[neE]+", text)]
                return " ".join(texts[len(options) :]) + ("" if any("n" in one for one in options) else "\n")
            case "printf":
                return _formatted(texts)
            case "tee":
                return standard_input
            case "cat":
                parts = [self.state.files.get(text) for text in texts]
                known = [part.text for part in parts if part is not None]
                return standard_input if not texts else "".join(known) if len(known) == len(parts) else None
            case "seq":
                numbers = [int(text) for text in texts if re.fullmatch("-?[0-9]{1,6}", text)]
                if len(numbers) != len(texts) or not 1 <= len(numbers) <= 3 or (len(numbers) == 3 and not numbers[1]):
                    return None
                first, step, last = ([1, 1, *numbers], [numbers[0], 1, *numbers[1:]], numbers)[len(numbers) - 1]
                row = range(first, last + (1 if step > 0 else -1), step)
                return "".join(f"{number}\n" for number in row) if len(row) <= _MOST_NUMBERS else None
            case "expr":
                return self._calculated(" ".join(texts))
            case "bc":
                return self._calculated((standard_input or "").strip()) if standard_input else None
            case _:  # basename and dirname
                if not texts or without_value(texts[0]):
                    return None
                path = PurePosixPath(texts[0])
                base = path.name.removesuffix(texts[1]) if len(texts) > 1 else path.name
                return (base if name == "basename" else str(path.parent)) + "\n"

    def _calculated(self, text: str) -> str | None:
        number = None if "." in text or "=" in text else self.expander.number(text, 1)
        return None if number is None else f"{number}\n"

    def _script_of(self, words: tuple[ShellWord, ...], standard_input: str | None, line: int, place: int) -> Status:
        """Read a text or a file that a command runs as a script; else note the command."""
        names = [PurePosixPath(word.text).name for word in words]
        files = self.state.files
        if names[0] in {"source", "."} and len(words) > 1:
            held = files.get(words[1].text)
            if held is not None:
                return self.text(held.text, line=held.line)
            self.unread.setdefault(words[1].text, line)
            self.expander.has_unread = True
            return Status(truth=True, line=line)
        programs = [index for index, word in enumerate(words) if re.search(r"\.py$", word.text)]
        before = words[: programs[0]] if programs else words
        for index, name in enumerate(names[: len(before)]):
            behind = words[index + 1 :]
            if name in _SHELLS:
                return self._shell(words[: index + 1], behind, standard_input, line, place)
            if name in _SUBMITS:
                return self._submitted(words[: index + 1], behind, standard_input, line, place)
            if (held := files.get(words[index].text)) is not None and (index == 0 or name.endswith(".sh")):
                return self._inside(words[:index], held, behind, is_file=True)
        if not programs:
            for index, word in enumerate(words):
                text = word.text.removeprefix("--wrap=")
                if _PROGRAM.search(text) and re.search(r"\s", text) and names[0] not in TALKERS:
                    return self._inside(words[:index], replace(word, text=text), ())
        if names[0] == "exec" and len(words) > 1 and self.depth <= 1 and not self.expander.doubt:
            self.state.has_ended = "exit"
        self._record(words)
        self.outputs[-1].is_known = False
        return Status(truth=None, is_command=True, line=line)

    def _shell(
        self, before: tuple[ShellWord, ...], behind: tuple[ShellWord, ...], standard_input: str | None, line: int,
        place: int,
    ) -> Status:  # fmt: skip
        """Read ``sh -c TEXT``, ``sh FILE``, or a script that comes by a pipe."""
        options = 0
        while options < len(behind) and behind[options].text.startswith(("-", "+")):
            is_text = re.fullmatch("-[a-zA-Z]*c", behind[options].text) is not None
            options += 1
            if is_text and options < len(behind):
                return self._inside((*before, *behind[:options]), behind[options], behind[options + 2 :])
        if options < len(behind):
            held = self.state.files.get(behind[options].text)
            if held is not None:
                return self._inside(before, held, behind[options + 1 :], is_file=True)
            if behind[options].text.endswith((".sh", ".bash", ".slurm", ".sbatch")):
                self.unread.setdefault(behind[options].text, line)
        elif standard_input is not None:
            text = ShellWord(text=standard_input, line=place)
            return self._inside(before, text, ())
        self._record((*before, *behind))
        self.outputs[-1].is_known = False
        return Status(truth=None, is_command=True, line=line)

    def _submitted(
        self, before: tuple[ShellWord, ...], behind: tuple[ShellWord, ...], standard_input: str | None, line: int,
        place: int,
    ) -> Status:  # fmt: skip
        """Read what ``sbatch`` and its like run: a file, a here-document, or ``--wrap``."""
        for index, word in enumerate(behind):
            is_wrap = word.text == "--wrap" and index + 1 < len(behind)
            if is_wrap or word.text.startswith("--wrap="):
                text = behind[index + 1] if is_wrap else replace(word, text=word.text.removeprefix("--wrap="))
                return self._inside((*before, *behind[:index]), text, ())
            if (held := self.state.files.get(word.text)) is not None:
                return self._inside((*before, *behind[:index]), held, behind[index + 1 :], is_file=True)
        if standard_input is not None:
            return self._inside((*before, *behind), ShellWord(text=standard_input, line=place), (), is_file=True)
        for word in behind[-1:]:
            self.unread.setdefault(word.text, line)
        self._record((*before, *behind))
        return Status(truth=None, is_command=True, line=line)

    def _inside(
        self, before: tuple[ShellWord, ...], text: ShellWord, arguments: tuple[ShellWord, ...], *, is_file: bool = False
    ) -> Status:
        """Read a text as a script behind the words that start it."""
        outer, outer_arguments = self.prefix, self.state.arguments
        self.prefix = (*outer, *before)
        self.state.arguments = arguments or outer_arguments
        self.in_subshell(text.text, line=text.line, is_file=is_file)
        self.prefix, self.state.arguments = outer, outer_arguments
        self.outputs[-1].is_known = False
        return Status(truth=None, is_command=True, line=text.line)

    def _record(self, words: tuple[ShellWord, ...]) -> None:
        """Note a command, with its lines inside the script."""
        if self.prefix and PurePosixPath(words[0].text).name in TALKERS:
            return
        self.commands.append(
            tuple(replace(word, line=min(word.line, self.last_line)) for word in (*self.prefix, *words))
        )


_TESTS: Final = frozenset({"[", "test"})
_INTO_FILES: Final = frozenset({">", ">>", ">|", "&>", "&>>"})
_SETTERS: Final = frozenset({"let", "unset", "shift", "set", "read", "mapfile", "readarray", "getopts"})
_WRITERS: Final = frozenset({"echo", "printf", "tee", "seq", "expr", "bc", "basename", "dirname"})


def _behind(pieces: list[Piece], letters: int) -> list[Piece]:
    """The pieces without a literal prefix."""
    for index, piece in enumerate(pieces):
        if letters < len(piece.text):
            return [replace(piece, text=piece.text[letters:]), *pieces[index + 1 :]]
        letters -= len(piece.text)
        if not letters:
            return pieces[index + 1 :]
    return []


def _formatted(texts: Sequence[str]) -> str | None:
    """Text of ``printf``; None for a format that is more than words and numbers."""
    if not texts:
        return None
    values = list(texts[1:])
    form = texts[0].replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\n")
    if _FORMAT.sub("", form).count("%"):
        return None
    shown = _FORMAT.sub(lambda part: "%" if part[1] is None else values.pop(0) if values else "", form)
    return shown + "".join(f"{value}\n" for value in values) if values else shown
