"""The commands of a shell script as a tree: lists, pipelines, branches, loops and functions.

Source: POSIX.1-2017, Shell Command Language, sections 2.4, 2.7, 2.9 and 2.10; ``[[ ... ]]``, ``(( ... ))``, ``&>`` and
``|&`` as in the GNU Bash manual, sections 3.2 and 3.6.
Leaves out: ``select`` and ``coproc``. A script that is no script of the shell is read as far as it goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Final

from weftwork.workload.imports.shell_pieces import Piece, RawWord, WordLexer, document_word, plain_text

__all__ = [
    "Chain",
    "Command",
    "Redirection",
    "Script",
    "ShellArithmetic",
    "ShellCase",
    "ShellFunction",
    "ShellGroup",
    "ShellIf",
    "ShellLoop",
    "ShellPipeline",
    "ShellTest",
    "Simple",
    "read_commands",
]  # fmt: skip

_HEREDOC: Final = re.compile(r"<<(-?)[ \t]*(['\"]?)\\?([A-Za-z_][A-Za-z0-9_]*)\2")
_REDIRECTION: Final = re.compile(r"(\d*)(<<<|&>>|&>|>>|>&|<&|<>|>\||>|<)")
_EMPTY_BRACKETS: Final = re.compile(r"\(\s*\)")
_WORD: Final = re.compile(r"[A-Za-z{}!\[]+")
_BARE: Final = re.compile(r"[A-Za-z0-9_:.-]+$")
_DEEPEST: Final = 40  # chosen: nobody writes forty brackets in brackets


@dataclass(kw_only=True, slots=True)
class Redirection:
    """Where a command reads or writes; of ``<<EOF`` the target is the text."""

    operator: str
    stream: str
    target: RawWord


@dataclass(kw_only=True, slots=True)
class Simple:
    """A command of words, with its assignments in front."""

    line: int
    words: list[RawWord]
    redirections: list[Redirection]


@dataclass(kw_only=True, slots=True)
class ShellTest:
    """``[[ ... ]]``: words and operators."""

    line: int
    words: list[RawWord]


@dataclass(kw_only=True, slots=True)
class ShellArithmetic:
    """``(( ... ))``."""

    line: int
    text: str


@dataclass(kw_only=True, slots=True)
class ShellGroup:
    """``{ ...; }``, or ``( ... )`` with variables of its own."""

    line: int
    body: Script
    is_subshell: bool
    redirections: list[Redirection] = field(default_factory=list)


@dataclass(kw_only=True, slots=True)
class ShellIf:
    """Branches as pairs of condition and body, and what else happens."""

    line: int
    branches: list[tuple[Script, Script]]
    otherwise: Script


@dataclass(kw_only=True, slots=True)
class ShellCase:
    """A word, and arms as pairs of patterns and body."""

    line: int
    word: RawWord
    arms: list[tuple[list[RawWord], Script]]


@dataclass(kw_only=True, slots=True)
class ShellLoop:
    """``for``, ``while`` or ``until``.

    ``items`` is None for a ``for`` over the arguments of the script, and for one that counts.
    """

    line: int
    keyword: str
    name: str
    items: list[RawWord] | None
    condition: Script
    body: Script


@dataclass(kw_only=True, slots=True)
class ShellFunction:
    """A definition."""

    line: int
    name: str
    body: Script


Command = Simple | ShellTest | ShellArithmetic | ShellGroup | ShellIf | ShellCase | ShellLoop | ShellFunction


@dataclass(kw_only=True, slots=True)
class ShellPipeline:
    """Commands, each of which reads what the one before it writes."""

    commands: list[Command]
    is_negated: bool


@dataclass(kw_only=True, slots=True)
class Chain:
    """Pipelines with what joins each to the one before it: nothing, ``&&`` or ``||``."""

    pipelines: list[tuple[str, ShellPipeline]]


Script = list[Chain]


def read_commands(text: str, *, line: int = 1) -> Script:
    """Read a script as a tree.

    Parameters
    ----------
    text : quotes, brackets and branches that never end reach to its end
    line : of its first letter
    """
    parser = _Parser(words=WordLexer(text=text, line=line))
    script: Script = []
    while parser.words.at < len(text):
        before = parser.words.at
        script += parser.script(())
        if parser.words.at == before:
            parser.words.step(1)  # a bracket or a keyword that closes nothing
        parser.skip_closing()
    return script


@dataclass(kw_only=True, slots=True)
class _Parser:
    words: WordLexer
    depth: int = 0
    documents: list[tuple[str, bool, bool, Redirection]] = field(default_factory=list)

    @property
    def _rest(self) -> str:
        return self.words.text[self.words.at : self.words.at + 3]

    def script(self, ends: Container[str]) -> Script:
        """Commands up to a keyword or bracket of ``ends``, which stays to be read."""
        script: Script = []
        while True:
            self._skip_separators()
            if self.words.at >= len(self.words.text) or self._rest[0] == ")" or self._rest[:2] == ";;":
                return script
            if self._keyword() in ends or self._keyword() in _CLOSERS:
                return script
            before = self.words.at
            chain = self._chain()
            if chain.pipelines:
                script.append(chain)
            if self.words.at == before:
                self.words.step(1)

    def skip_closing(self) -> None:
        """Step over a keyword that closes nothing."""
        keyword = self._keyword()
        if keyword in _CLOSERS:
            self.words.step(len(keyword))

    def _skip_separators(self) -> None:
        while True:
            self.words.skip_blanks()
            rest = self._rest
            if rest[:1] == "\n":
                self._newline()
            elif rest[:1] in {";", "&"} and rest[:2] not in {";;", "&>"}:
                self.words.step(1)
            else:
                return

    def _newline(self) -> None:
        self.words.step(1)
        for end, is_indented, is_literal, redirection in self.documents:
            line, lines = self.words.line, []
            while self.words.at < len(self.words.text):
                stop = self.words.text.find("\n", self.words.at)
                stop = len(self.words.text) if stop < 0 else stop
                row = self.words.text[self.words.at : stop].removesuffix("\r")
                row = row.lstrip("\t") if is_indented else row
                self.words.step(stop + 1 - self.words.at)
                if row == end:
                    break
                lines.append(row + "\n")
            redirection.target = document_word("".join(lines), line=line, is_literal=is_literal)
        self.documents = []

    def _keyword(self) -> str:
        """The next word, if it is bare; it stays to be read."""
        match = _WORD.match(self.words.text, self.words.at)
        if match is None or self.words.text[match.end() : match.end() + 1] not in _BEHIND_KEYWORD:
            return ""
        return match[0]

    def _accept(self, *keywords: str) -> str:
        """Read one of the keywords, if it comes next."""
        self._skip_separators()
        keyword = self._keyword()
        if keyword not in keywords:
            return ""
        self.words.step(len(keyword))
        return keyword

    def _chain(self) -> Chain:
        chain = Chain(pipelines=[])
        joint = ""
        while True:
            pipeline = self._pipeline()
            if pipeline.commands:
                chain.pipelines.append((joint, pipeline))
            self.words.skip_blanks()
            joint = self._rest[:2]
            if joint not in {"&&", "||"}:
                return chain
            self.words.step(2)
            self._skip_newlines()

    def _skip_newlines(self) -> None:
        self.words.skip_blanks()
        while self._rest[:1] == "\n":
            self._newline()
            self.words.skip_blanks()

    def _pipeline(self) -> ShellPipeline:
        pipeline = ShellPipeline(commands=[], is_negated=False)
        self.words.skip_blanks()
        while (keyword := self._keyword()) in {"!", "time"}:
            self.words.step(len(keyword))
            self.words.skip_blanks()
            pipeline.is_negated ^= keyword == "!"
        while True:
            command = self._command()
            if command is not None:
                pipeline.commands.append(command)
            self.words.skip_blanks()
            rest = self._rest
            if rest[:1] != "|" or rest[:2] == "||":
                return pipeline
            self.words.step(2 if rest[:2] == "|&" else 1)
            self._skip_newlines()

    def _command(self) -> Command | None:
        self.words.skip_blanks()
        if self.depth >= _DEEPEST:
            return self._simple()
        self.depth += 1
        try:
            return self._compound() or self._simple()
        finally:
            self.depth -= 1

    def _compound(self) -> Command | None:
        line, keyword, rest = self.words.line, self._keyword(), self._rest
        if rest[:2] == "((" and (text := self._double_bracket()) is not None:
            return ShellArithmetic(line=line, text=text)
        if rest[:1] == "(":
            self.words.step(1)
            body = self.script(())
            if self._rest[:1] == ")":
                self.words.step(1)
            return ShellGroup(line=line, body=body, is_subshell=True, redirections=self._redirections())
        reads: dict[str, Callable[[int], Command]] = {
            "{": self._braces,
            "if": self._if,
            "case": self._case,
            "for": self._for,
            "while": self._while,
            "until": self._while,
            "function": self._function,
            "[[": self._test,
        }
        return reads[keyword](line) if keyword in reads else None

    def _double_bracket(self) -> str | None:
        stop = self.words.closing(self.words.at + 2, "(", ")")
        if self.words.text[stop : stop + 2] != "))":
            return None
        text = self.words.text[self.words.at + 2 : stop]
        self.words.step(stop + 2 - self.words.at)
        return text

    def _braces(self, line: int) -> ShellGroup:
        self.words.step(1)
        body = self.script(("}",))
        self._accept("}")
        return ShellGroup(line=line, body=body, is_subshell=False, redirections=self._redirections())

    def _redirections(self) -> list[Redirection]:
        redirections: list[Redirection] = []
        self.words.skip_blanks()
        while self._redirection(redirections):
            self.words.skip_blanks()
        return redirections

    def _if(self, line: int) -> ShellIf:
        branches = []
        self.words.step(2)
        keyword = "if"
        while keyword in {"if", "elif"}:
            condition = self.script(("then",))
            self._accept("then")
            branches.append((condition, self.script(("elif", "else", "fi"))))
            keyword = self._accept("elif", "else", "fi")
        otherwise = self.script(("fi",)) if keyword == "else" else []
        if keyword == "else":
            self._accept("fi")
        self._redirections()
        return ShellIf(line=line, branches=branches, otherwise=otherwise)

    def _case(self, line: int) -> ShellCase:
        self.words.step(4)
        self.words.skip_blanks()
        word = self.words.word()
        self._accept("in")
        arms = []
        while not self._accept("esac") and self.words.at < len(self.words.text):
            before = self.words.at
            patterns = self._patterns()
            body = self.script(("esac",))
            arms.append((patterns, body))
            self._step_over_arm()
            if self.words.at == before:
                self.words.step(1)
        self._redirections()
        return ShellCase(line=line, word=word, arms=arms)

    def _patterns(self) -> list[RawWord]:
        patterns = []
        while self.words.at < len(self.words.text):
            self.words.skip_blanks()
            if self._rest[:1] in {"(", "|"}:
                self.words.step(1)
                continue
            if self._rest[:1] == ")":
                self.words.step(1)
                break
            pattern = self.words.word()
            if not pattern.pieces:
                break
            patterns.append(pattern)
        return patterns

    def _step_over_arm(self) -> None:
        self._skip_separators()
        if self._rest[:2] == ";;":
            self.words.step(3 if self._rest == ";;&" else 2)
        elif self._rest[:1] == ")":
            self.words.step(1)

    def _for(self, line: int) -> ShellLoop:
        self.words.step(3)
        self.words.skip_blanks()
        name, counts = "", False
        items: list[RawWord] | None = None
        if self._rest[:2] == "((" and (text := self._double_bracket()) is not None:
            counted = re.match(r"\s*([A-Za-z_]\w*)", text)
            name, counts = counted[1] if counted else "", True
        else:
            name = plain_text(self.words.word())
        if not counts and self._accept("in"):
            items = self._simple_words()
        condition: Script = []
        body = self._body()
        return ShellLoop(line=line, keyword="for", name=name, items=items, condition=condition, body=body)

    def _simple_words(self) -> list[RawWord]:
        words: list[RawWord] = []
        while True:
            self.words.skip_blanks()
            word = self.words.word()
            if not word.pieces:
                return words
            words.append(word)

    def _body(self) -> Script:
        if self._accept("{"):  # an old form of `for`
            body = self.script(("}",))
            self._accept("}")
            return body
        self._accept("do")
        body = self.script(("done",))
        self._accept("done")
        self._redirections()
        return body

    def _while(self, line: int) -> ShellLoop:
        keyword = self._accept("while", "until")
        condition = self.script(("do",))
        return ShellLoop(line=line, keyword=keyword, name="", items=None, condition=condition, body=self._body())

    def _function(self, line: int) -> ShellFunction:
        self.words.step(len("function"))
        self.words.skip_blanks()
        name = plain_text(self.words.word())
        self.words.skip_blanks()
        if self._rest[:2] == "()":
            self.words.step(2)
        return self._defined(name, line)

    def _defined(self, name: str, line: int) -> ShellFunction:
        self._skip_newlines()
        body = self._command()
        script = [] if body is None else [Chain(pipelines=[("", ShellPipeline(commands=[body], is_negated=False))])]
        return ShellFunction(line=line, name=name, body=script)

    def _test(self, line: int) -> ShellTest:
        self.words.step(2)
        words: list[RawWord] = []
        while self.words.at < len(self.words.text):
            self.words.skip_blanks(newlines=True)
            if self._keyword() == "" and self._rest[:2] == "]]":
                self.words.step(2)
                break
            is_expression = bool(words) and plain_text(words[-1]) == "=~"
            words.append(self._expression() if is_expression else self._operand())
        self._redirections()
        return ShellTest(line=line, words=[word for word in words if word.pieces])

    def _operand(self) -> RawWord:
        two = self._rest[:2]
        if two in {"&&", "||"}:
            return self._letters(2)
        if two[:1] in {"(", ")", "<", ">", ";", "|", "&"}:
            return self._letters(1)
        return self.words.word()

    def _letters(self, count: int) -> RawWord:
        text = self.words.text[self.words.at : self.words.at + count]
        word = RawWord(line=self.words.line, pieces=[Piece(kind="text", text=text, is_quoted=False)])
        self.words.step(count)
        return word

    def _expression(self) -> RawWord:
        """A regular expression, which ends at a blank."""
        word = RawWord(line=self.words.line)
        while self.words.at < len(self.words.text) and not self._rest[0].isspace():
            if self._rest[0] in "()|<>;&":
                word.pieces.append(Piece(kind="text", text=self._rest[0], is_quoted=False))
                self.words.step(1)
            else:
                self.words.piece(word, is_quoted=False)
        return word

    def _simple(self) -> Command | None:
        command = Simple(line=self.words.line, words=[], redirections=[])
        while self.words.at < len(self.words.text):
            self.words.skip_blanks()
            if self._redirection(command.redirections):
                continue
            word = self.words.word()
            if not word.pieces:
                if len(command.words) == 1 and self._is_definition(command.words[0]):
                    self.words.skip_to(")")
                    self.words.step(1)
                    return self._defined(plain_text(command.words[0]), command.line)
                break
            command.words.append(word)
        return command if command.words or command.redirections else None

    def _is_definition(self, word: RawWord) -> bool:
        return bool(_BARE.match(plain_text(word)) and _EMPTY_BRACKETS.match(self.words.text, self.words.at))

    def _redirection(self, redirections: list[Redirection]) -> bool:
        """Read ``>``, ``2>&1`` or ``<<EOF`` with its target, if one comes next."""
        nothing = RawWord(line=self.words.line)
        document = _HEREDOC.match(self.words.text, self.words.at)
        if document and self._rest != "<<<":
            self.words.step(len(document[0]))
            redirection = Redirection(operator="<<", stream="", target=nothing)
            is_literal = bool(document[2]) or "\\" in document[0]
            self.documents.append((document[3], bool(document[1]), is_literal, redirection))
            redirections.append(redirection)
            return True
        match = _REDIRECTION.match(self.words.text, self.words.at)
        if match is None or self.words.text[match.start(2) : match.start(2) + 2] in {"<(", ">("}:
            return False
        self.words.step(len(match[0]))
        self.words.skip_blanks()
        target = self.words.word()
        redirections.append(Redirection(operator=match[2], stream=match[1], target=target))
        return True


_CLOSERS: Final = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}"})
_BEHIND_KEYWORD: Final = frozenset({"", " ", "\t", "\r", "\n", ";", "(", ")", "&", "|", "<", ">"})
