"""The words of a shell script as pieces, each with its line.

A piece is text, a variable, arithmetic, or a command inside a word.
Source: POSIX.1-2017, Shell Command Language, sections 2.2, 2.3 and 2.6; arrays as in the GNU Bash manual, section 6.7.
Leaves out: what the pieces stand for (`weftwork.workload.imports.shell`), and process substitution.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = ["Piece", "RawCommand", "RawWord", "pieces_of", "split_commands"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_HEREDOC: Final = re.compile(r"<<(-?)\s*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\2")
_ARRAY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=\(")


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A part of a word.

    Attributes
    ----------
    kind : what it is; of a ``variable`` the text is what stands between the braces
    is_quoted : whether blanks in what it stands for part no words
    """

    kind: Literal["text", "variable", "arithmetic", "command"]
    text: str
    is_quoted: bool


@dataclass(kw_only=True, slots=True)
class RawWord:
    """A word before variables are expanded.

    ``array`` holds the items of ``NAME=( ... )``.
    """

    line: int
    pieces: list[Piece] = field(default_factory=list)
    array: list[RawWord] | None = None


@dataclass(kw_only=True, slots=True)
class RawCommand:
    """Words up to the end of a command.

    ``joint`` is the text in front of it, such as ``&&``.
    """

    words: list[RawWord]
    joint: str


def split_commands(text: str) -> list[RawCommand]:
    """Split a script into commands.

    Parameters
    ----------
    text : of the script; quotes and brackets that never end reach to its end
    """
    return _Lexer(text=text).commands()


def pieces_of(text: str, *, is_quoted: bool) -> list[Piece]:
    """Pieces of the text after ``:-`` in a variable.

    Blanks belong to the word there.
    """
    lexer = _Lexer(text=text)
    word = RawWord(line=1)
    while lexer.at < len(text):
        if text[lexer.at].isspace():
            word.pieces.append(Piece(kind="text", text=text[lexer.at], is_quoted=is_quoted))
            lexer.at += 1
        else:
            lexer.piece(word, is_quoted=is_quoted)
    return word.pieces


@dataclass(kw_only=True, slots=True)
class _Lexer:
    text: str
    at: int = 0
    line: int = 1
    heredocs: list[tuple[str, bool]] = field(default_factory=list)

    def commands(self) -> list[RawCommand]:
        found: list[RawCommand] = []
        joint = "\n"
        while self.at < len(self.text):
            words = self._words(until=None)
            if words:
                found.append(RawCommand(words=words, joint=joint))
            joint = self._joint()
        return found

    def _joint(self) -> str:
        """Step over the separator that ends a command."""
        if self.at >= len(self.text):
            return ""
        two = self.text[self.at : self.at + 2]
        joint = two if two in {"&&", "||", ";;"} else two[:1]
        self._step(len(joint))
        if joint == "\n":
            self._skip_heredocs()
        return joint

    def _words(self, until: str | None) -> list[RawWord]:
        """Words up to the end of a command, or of an array.

        ``until`` is the bracket of the array.
        """
        words: list[RawWord] = []
        is_target = False  # of a redirection: the next word is a file
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == "\\" and self.text[self.at + 1 : self.at + 2] == "\n":
                self._step(2)
            elif letter == "#":
                self._skip_to("\n")
            elif letter in " \t\r" or (letter == "\n" and until):
                self._step(1)
            elif letter == until or (not until and letter in "\n;|&()" and not self._is_redirection()):
                break
            elif letter in "<>" or self._is_redirection():
                is_target = self._redirection(words)
            else:
                word = self._word()
                if not is_target:
                    words.append(word)
                is_target = False
        return words

    def _is_redirection(self) -> bool:
        return self.text[self.at : self.at + 2] == "&>"

    def _redirection(self, words: list[RawWord]) -> bool:
        """Step over ``>``, ``2>&1`` or ``<<EOF``; return whether a file follows."""
        before = self.text[self.at - 1 : self.at]
        if words and before.isdigit() and words[-1].pieces and words[-1].pieces[-1].text.isdigit():
            words.pop()  # the number of the stream
        heredoc = _HEREDOC.match(self.text, self.at)
        if heredoc:
            self.heredocs.append((heredoc[3], heredoc[1] == "-"))
            self._step(len(heredoc[0]))
            return False
        while self.text[self.at : self.at + 1] in {"<", ">", "&"}:
            self._step(1)
        return True

    def _skip_heredocs(self) -> None:
        for end, is_indented in self.heredocs:
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                self._step(stop + 1 - self.at)
                if (line.lstrip("\t") if is_indented else line) == end:
                    break
        self.heredocs = []

    def _word(self) -> RawWord:
        word = RawWord(line=self.line)
        array = _ARRAY.match(self.text, self.at)
        if array:
            word.pieces.append(Piece(kind="text", text=array[0][:-1], is_quoted=False))
            self._step(len(array[0]))
            word.array = self._words(until=")")
            self._step(1)
            return word
        while self.at < len(self.text) and self.text[self.at] not in " \t\r\n;|&()<>":
            if self.text[self.at : self.at + 2] == "\\\n":
                self._step(2)
            else:
                self.piece(word, is_quoted=False)
        if not word.pieces and self.at < len(self.text) and self.text[self.at] in ";|&()":  # inside an array
            word.pieces.append(Piece(kind="text", text=self.text[self.at], is_quoted=False))
            self._step(1)
        return word

    def piece(self, word: RawWord, *, is_quoted: bool) -> None:
        """Read the next piece of a word."""
        letter = self.text[self.at]
        if letter == "'" and not is_quoted:
            stop = self.text.find("'", self.at + 1)
            stop = len(self.text) if stop < 0 else stop
            word.pieces.append(Piece(kind="text", text=self.text[self.at + 1 : stop], is_quoted=True))
            self._step(stop + 1 - self.at)
        elif letter == '"':
            self._quoted(word)
        elif letter == "\\":
            word.pieces.append(Piece(kind="text", text=self.text[self.at + 1 : self.at + 2], is_quoted=True))
            self._step(2)
        elif letter == "`":
            stop = self.text.find("`", self.at + 1)
            stop = len(self.text) if stop < 0 else stop
            word.pieces.append(Piece(kind="command", text=self.text[self.at + 1 : stop], is_quoted=is_quoted))
            self._step(stop + 1 - self.at)
        elif letter == "$":
            self._dollar(word, is_quoted=is_quoted)
        else:
            word.pieces.append(Piece(kind="text", text=letter, is_quoted=is_quoted))
            self._step(1)

    def _quoted(self, word: RawWord) -> None:
        self._step(1)
        word.pieces.append(Piece(kind="text", text="", is_quoted=True))  # "" is a word too
        while self.at < len(self.text) and self.text[self.at] != '"':
            two = self.text[self.at : self.at + 2]
            if two == "\\\n":
                self._step(2)
            elif two[0] == "\\" and two[1:] not in {"$", "`", '"', "\\"}:
                word.pieces.append(Piece(kind="text", text="\\", is_quoted=True))
                self._step(1)
            else:
                self.piece(word, is_quoted=True)
        self._step(1)

    def _dollar(self, word: RawWord, *, is_quoted: bool) -> None:
        rest = self.text[self.at : self.at + 3]
        kind: Literal["variable", "arithmetic", "command"]
        if rest == "$((":
            kind, start, stop, end = "arithmetic", 3, self._closing(self.at + 3, "(", ")"), 2
        elif rest[:2] == "$(":
            kind, start, stop, end = "command", 2, self._closing(self.at + 2, "(", ")"), 1
        elif rest[:2] == "${":
            kind, start, stop, end = "variable", 2, self._closing(self.at + 2, "{", "}"), 1
        else:
            name = _NAME.match(self.text, self.at + 1)
            if name is None:
                word.pieces.append(Piece(kind="text", text="$", is_quoted=is_quoted))
                self._step(1)
                return
            kind, start, stop, end = "variable", 1, name.end(), 0
        word.pieces.append(Piece(kind=kind, text=self.text[self.at + start : stop], is_quoted=is_quoted))
        self._step(stop + end - self.at)

    def _closing(self, start: int, opens: str, closes: str) -> int:
        """Position of the bracket that closes the bracket before ``start``."""
        depth = 1
        for at in range(start, len(self.text)):
            depth += (self.text[at] == opens) - (self.text[at] == closes)
            if depth == 0:
                return at
        return len(self.text)

    def _skip_to(self, letter: str) -> None:
        stop = self.text.find(letter, self.at)
        self.at = len(self.text) if stop < 0 else stop

    def _step(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at = min(self.at + count, len(self.text))
