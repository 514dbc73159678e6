"""The words of a shell script as pieces, each with its line.

A piece is text, a variable, arithmetic, or a command inside a word.
Source: POSIX.1-2017, Shell Command Language, sections 2.2, 2.3 and 2.6; arrays, ``$'...'`` and ``<( ... )`` as in the
GNU Bash manual, sections 3.1.2, 3.5.6 and 6.7.
Leaves out: what the pieces stand for (`weftwork.workload.imports.shell_expansion`), and the grammar of commands
(`weftwork.workload.imports.shell_syntax`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = ["Piece", "RawWord", "WordLexer", "document_word", "pieces_of", "plain_text"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_ARRAY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=\(")
_RUN: Final = re.compile(r"[^\s;|&()<>'\"\\`$]+")  # letters that mean themselves
_QUOTED_RUN: Final = re.compile(r"[^\"\\`$]+")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ENDS: Final = " \t\r\n;|&()<>"


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


def plain_text(word: RawWord) -> str:
    """Leading text of a word that is literal and not quoted."""
    text = ""
    for piece in word.pieces:
        if piece.kind != "text" or piece.is_quoted:
            break
        text += piece.text
    return text


def pieces_of(text: str, *, is_quoted: bool) -> list[Piece]:
    """Pieces of the text after ``:-`` in a variable.

    Blanks belong to the word there.
    """
    lexer = WordLexer(text=text)
    word = RawWord(line=1)
    while lexer.at < len(text):
        if text[lexer.at] in _ENDS:
            word.pieces.append(Piece(kind="text", text=text[lexer.at], is_quoted=is_quoted))
            lexer.step(1)
        else:
            lexer.piece(word, is_quoted=is_quoted)
    return word.pieces


def document_word(text: str, *, line: int, is_literal: bool) -> RawWord:
    """The text of a here-document as a word; quotes mean themselves in it."""
    word = RawWord(line=line)
    if is_literal:
        word.pieces.append(Piece(kind="text", text=text, is_quoted=True))
        return word
    lexer = WordLexer(text=text)
    while lexer.at < len(text):
        if text[lexer.at] == '"':
            word.pieces.append(Piece(kind="text", text='"', is_quoted=True))
            lexer.step(1)
        else:
            lexer.quoted_piece(word)
    return word


@dataclass(kw_only=True, slots=True)
class WordLexer:
    """A place in a script, and the words that begin there.

    Attributes
    ----------
    text : of the script; quotes and brackets that never end reach to its end
    at, line : of the next letter
    """

    text: str
    at: int = 0
    line: int = 1

    def step(self, count: int) -> None:
        """Go on by some letters."""
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at = min(self.at + count, len(self.text))

    def skip_to(self, letter: str) -> None:
        """Go on to a letter, or to the end."""
        stop = self.text.find(letter, self.at)
        self.at = len(self.text) if stop < 0 else stop

    def skip_blanks(self, *, newlines: bool = False) -> None:
        """Step over blanks, continued lines and comments."""
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter in " \t\r" or (letter == "\n" and newlines):
                self.step(1)
            elif letter == "\\" and self.text[self.at + 1 : self.at + 2] == "\n":
                self.step(2)
            elif letter == "#":
                self.skip_to("\n")
            else:
                return

    def word(self) -> RawWord:
        """Read a word; it has no piece where none begins."""
        word = RawWord(line=self.line)
        array = _ARRAY.match(self.text, self.at)
        if array:
            word.pieces.append(Piece(kind="text", text=array[0][:-1], is_quoted=False))
            self.step(len(array[0]))
            word.array = self._items()
            return word
        while self.at < len(self.text):
            if self.text[self.at : self.at + 2] in {"<(", ">("}:
                self._bracket(word, 2, "(", ")")
            elif self.text[self.at] in _ENDS:
                break
            elif self.text[self.at : self.at + 2] == "\\\n":
                self.step(2)
            else:
                self.piece(word, is_quoted=False)
        return word

    def _items(self) -> list[RawWord]:
        items: list[RawWord] = []
        while True:
            self.skip_blanks(newlines=True)
            if self.at >= len(self.text) or self.text[self.at] == ")":
                self.step(1)
                return items
            item = self.word()
            if not item.pieces:
                item.pieces.append(Piece(kind="text", text=self.text[self.at], is_quoted=False))
                self.step(1)
            items.append(item)

    def piece(self, word: RawWord, *, is_quoted: bool) -> None:
        """Read the next piece of a word."""
        letter = self.text[self.at]
        run = _RUN.match(self.text, self.at)
        if run:
            word.pieces.append(Piece(kind="text", text=run[0], is_quoted=is_quoted))
            self.step(len(run[0]))
        elif letter == "'" and not is_quoted:
            stop = self.text.find("'", self.at + 1)
            stop = len(self.text) if stop < 0 else stop
            word.pieces.append(Piece(kind="text", text=self.text[self.at + 1 : stop], is_quoted=True))
            self.step(stop + 1 - self.at)
        elif letter == '"':
            self._quoted(word)
        elif letter == "\\":
            word.pieces.append(Piece(kind="text", text=self.text[self.at + 1 : self.at + 2], is_quoted=True))
            self.step(2)
        elif letter == "`":
            self._backtick(word, is_quoted=is_quoted)
        elif letter == "$":
            self._dollar(word, is_quoted=is_quoted)
        else:
            word.pieces.append(Piece(kind="text", text=letter, is_quoted=is_quoted))
            self.step(1)

    def quoted_piece(self, word: RawWord) -> None:
        """Read the next piece between double quotes."""
        two = self.text[self.at : self.at + 2]
        run = _QUOTED_RUN.match(self.text, self.at)
        if run:
            word.pieces.append(Piece(kind="text", text=run[0], is_quoted=True))
            self.step(len(run[0]))
        elif two == "\\\n":
            self.step(2)
        elif two[0] == "\\" and two[1:] not in {"$", "`", '"', "\\"}:
            word.pieces.append(Piece(kind="text", text="\\", is_quoted=True))
            self.step(1)
        else:
            self.piece(word, is_quoted=True)

    def _quoted(self, word: RawWord) -> None:
        self.step(1)
        word.pieces.append(Piece(kind="text", text="", is_quoted=True))  # "" is a word too
        while self.at < len(self.text) and self.text[self.at] != '"':
            self.quoted_piece(word)
        self.step(1)

    def _backtick(self, word: RawWord, *, is_quoted: bool) -> None:
        stop = self.text.find("`", self.at + 1)
        stop = len(self.text) if stop < 0 else stop
        word.pieces.append(Piece(kind="command", text=self.text[self.at + 1 : stop], is_quoted=is_quoted))
        self.step(stop + 1 - self.at)

    def _dollar(self, word: RawWord, *, is_quoted: bool) -> None:
        rest = self.text[self.at : self.at + 3]
        if rest == "$((" and (stop := self.closing(self.at + 3, "(", ")")) < len(self.text):
            word.pieces.append(Piece(kind="arithmetic", text=self.text[self.at + 3 : stop], is_quoted=is_quoted))
            self.step(stop + 2 - self.at)
        elif rest[:2] == "$(":
            self._bracket(word, 2, "(", ")", is_quoted=is_quoted)
        elif rest[:2] == "${":
            stop = self.closing(self.at + 2, "{", "}")
            word.pieces.append(Piece(kind="variable", text=self.text[self.at + 2 : stop], is_quoted=is_quoted))
            self.step(stop + 1 - self.at)
        elif rest[:2] == "$'" and not is_quoted:
            self._escaped(word)
        elif rest[:2] == '$"' and not is_quoted:
            self.step(1)
        elif name := _NAME.match(self.text, self.at + 1):
            word.pieces.append(Piece(kind="variable", text=name[0], is_quoted=is_quoted))
            self.step(1 + len(name[0]))
        else:
            word.pieces.append(Piece(kind="text", text="$", is_quoted=is_quoted))
            self.step(1)

    def _bracket(self, word: RawWord, start: int, opens: str, closes: str, *, is_quoted: bool = False) -> None:
        stop = self.closing(self.at + start, opens, closes)
        text = self.text[self.at + start : stop]
        word.pieces.append(Piece(kind="command", text=text, is_quoted=is_quoted))
        self.step(stop + 1 - self.at)

    def _escaped(self, word: RawWord) -> None:
        """Read ``$'...'``, in which a backslash means what it means in C."""
        self.step(2)
        text = ""
        while self.at < len(self.text) and self.text[self.at] != "'":
            if self.text[self.at] == "\\" and self.at + 1 < len(self.text):
                self.step(1)
                text += _ESCAPES.get(self.text[self.at], self.text[self.at])
            else:
                text += self.text[self.at]
            self.step(1)
        self.step(1)
        word.pieces.append(Piece(kind="text", text=text, is_quoted=True))

    def closing(self, start: int, opens: str, closes: str) -> int:
        """Position of the bracket that closes the bracket before ``start``.

        Brackets between quotes do not count, unless the quotes never end.
        """
        depth, at, is_quoted = 1, start, False
        while at < len(self.text):
            letter = self.text[at]
            if letter == "\\":
                at += 1
            elif letter == "'" and not is_quoted and opens == "(":
                stop = self.text.find("'", at + 1)
                at = at if stop < 0 else stop
            elif letter == '"':
                is_quoted = not is_quoted
            elif letter in opens + closes and not (is_quoted and opens == "("):
                depth += 1 if letter == opens else -1
                if depth == 0:
                    return at
            at += 1
        return len(self.text)
