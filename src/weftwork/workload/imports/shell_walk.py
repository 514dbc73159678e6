"""The order in which a script's commands come: branches, loops and functions, without running anything.

A condition on known variables is decided. A variable that nothing sets counts as not set, which is noted, unless the
script would end then. Branches of other conditions are read one beside the other, and their variables put together.
Leaves out: what a single command does (`weftwork.workload.imports.shell_commands`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from weftwork.workload.imports.schedulers import Allocation, read_directives
from weftwork.workload.imports.shell_conditions import is_match, test_words
from weftwork.workload.imports.shell_expansion import Expander, OutOfStepsError
from weftwork.workload.imports.shell_pieces import plain_text
from weftwork.workload.imports.shell_syntax import (
    Command,
    Script,
    ShellArithmetic,
    ShellCase,
    ShellFunction,
    ShellGroup,
    ShellIf,
    ShellLoop,
    ShellPipeline,
    ShellTest,
    Simple,
    read_commands,
)
from weftwork.workload.imports.shell_values import ShellState, ShellWord, mark, merge_states, without_value

__all__ = ["Assumption", "Output", "Status", "Walker"]

_DEEPEST: Final = 24  # chosen: a text in a text in a function that scripts of people do not reach
_MOST_ROUNDS: Final = 16  # chosen: settings that a script tries one after the other
_MOST_COMMANDS: Final = 20_000  # chosen: ten times what a long script that starts a job has
_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)\+?=")
_RANGE: Final = re.compile(r"\{(\d{1,6})\.\.(\d{1,6})\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """How a command ends.

    Attributes
    ----------
    truth : success or not; None if nobody knows
    unset : variables that decide it since nothing sets them
    is_command : a program, of which success is expected and not known
    line : of the command
    """

    truth: bool | None = True
    unset: frozenset[str] = frozenset()
    is_command: bool = False
    line: int = 1


@dataclass(kw_only=True, slots=True)
class Output:
    """Text that commands write; not known once a program writes into it."""

    text: str = ""
    is_known: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Assumption:
    """A variable, the line whose condition asks for it, and whether it is taken as set."""

    name: str
    line: int
    is_set: bool


@dataclass(kw_only=True)
class Walker(ABC):
    """Reads commands in their order.

    Attributes
    ----------
    fixed : values that stand whatever the script assigns
    allocation : what the scheduler gives
    commands : words of each program
    assumed : decisions of conditions, by variable
    passed_over : variables that branches set which are passed over, and the variable that decides, with its line
    added : words that a condition adds of which nobody knows whether it holds
    end_line : where the script ends itself, or None
    """

    fixed: dict[str, str]
    allocation: Allocation = field(default_factory=Allocation)
    commands: list[tuple[ShellWord, ...]] = field(default_factory=list)
    assumed: dict[str, Assumption] = field(default_factory=dict)
    added: list[ShellWord] = field(default_factory=list)
    passed_over: dict[str, tuple[str, int]] = field(default_factory=dict)
    end_line: int | None = None
    last_line: int = 1
    depth: int = 0
    steps: int = 0
    outputs: list[Output] = field(default_factory=lambda: [Output()])
    expander: Expander = field(init=False)

    def __post_init__(self) -> None:
        self.expander = Expander(fixed=self.fixed, outside=self.allocation.variables, capture=self.captured)

    @property
    def state(self) -> ShellState:
        """Variables at this place."""
        return self.expander.state

    @state.setter
    def state(self, state: ShellState) -> None:
        self.expander.state = state

    @abstractmethod
    def simple(self, command: Simple, standard_input: str | None) -> Status:
        """Read a command of words."""

    def text(self, text: str, *, line: int, is_file: bool = False) -> Status:
        """Read a text as a script, in the same state.

        Parameters
        ----------
        text, line : and the line of its first letter
        is_file : whether a scheduler may read its head
        """
        if self.depth >= _DEEPEST:
            return Status(truth=None, line=line)
        self.expander.spend(len(text))
        if is_file:
            directives = read_directives(text, line=line)
            if directives.counts:
                self.allocation = directives.over(self.allocation)
                self.expander.outside = {**self.expander.outside, **self.allocation.variables}
        self.depth += 1
        try:
            return self.script(read_commands(text, line=line))
        finally:
            self.depth -= 1

    def in_subshell(self, text: str, *, line: int, is_file: bool = False) -> Status:
        """Read a text as a script that keeps its variables to itself."""
        before = self.state
        self.state = before.copy()
        status = self.text(text, line=line, is_file=is_file)
        files, self.state = self.state.files, before
        self.state.files |= files
        return status

    def captured(self, text: str, line: int) -> str | None:
        """Output of a command inside a word, or None if nobody knows it."""
        known = self.allocation.output(text)
        if known is not None or self.depth >= _DEEPEST:
            return known
        self.outputs.append(Output())
        try:
            self.in_subshell(text, line=line)
        finally:
            output = self.outputs.pop()
        return output.text.rstrip("\n") if output.is_known else None

    def script(self, script: Script) -> Status:
        """Read commands up to the end, or up to one that ends the script."""
        status = Status()
        for chain in script:
            if self._is_over():
                break
            status = self._pipeline(chain.pipelines[0][1])
            for joint, pipeline in chain.pipelines[1:]:
                if self._is_over():
                    break
                status = self._joined(status, joint, pipeline)
        return status

    def _is_over(self) -> bool:
        return self.state.has_ended != ""

    def _joined(self, status: Status, joint: str, pipeline: ShellPipeline) -> Status:
        wanted = joint == "&&"
        truth = True if status.is_command and wanted and status.truth is None else status.truth
        if truth is wanted and status.unset and self._ends_script(pipeline.commands):
            self._require(status.unset, status.line)
            return Status(truth=not wanted, line=status.line)
        if truth is None:
            (after,) = self._branches([[pipeline]], may_pass=True)
            return Status(truth=None, line=after.line)
        self._note(status.unset, status.line)
        return self._pipeline(pipeline) if truth is wanted else status

    def _branches(self, branches: Sequence[Script | Sequence[ShellPipeline]], *, may_pass: bool) -> list[Status]:
        """Read branches of which nobody knows which one is taken."""
        base = self.state
        states = [base.copy()] if may_pass else []
        statuses = []
        self.expander.doubt += 1
        for branch in branches:
            self.state = base.copy()
            status = Status()
            for part in branch:
                status = self._pipeline(part) if isinstance(part, ShellPipeline) else self.script([part])
                if self.state.has_ended:
                    break
            statuses.append(status)
            states.append(self.state)
        self.expander.doubt -= 1
        self.state = merge_states(base, states, self.added)
        return statuses

    def _pipeline(self, pipeline: ShellPipeline) -> Status:
        self.steps += 1
        if self.steps > _MOST_COMMANDS:
            raise OutOfStepsError
        if len(pipeline.commands) == 1:
            status = self._command(pipeline.commands[0], None)
        else:
            status, standard_input = Status(), None
            for command in pipeline.commands[:-1]:
                self.outputs.append(Output())
                self._apart(command, standard_input)
                output = self.outputs.pop()
                standard_input = output.text if output.is_known else None
            status = self._apart(pipeline.commands[-1], standard_input)
        if not pipeline.is_negated or status.truth is None:
            return status
        return Status(truth=not status.truth, unset=status.unset, line=status.line)

    def _apart(self, command: Command, standard_input: str | None) -> Status:
        before = self.state
        self.state = before.copy()
        status = self._command(command, standard_input)
        files, self.state = self.state.files, before
        self.state.files |= files
        return status

    def _command(self, command: Command, standard_input: str | None) -> Status:
        match command:
            case Simple():
                return self.simple(command, standard_input)
            case ShellTest():
                return self._test(command)
            case ShellArithmetic():
                return self._arithmetic(command)
            case ShellGroup():
                return self._group(command)
            case ShellIf():
                return self._if(command)
            case ShellCase():
                return self._case(command)
            case ShellLoop():
                return self._loop(command)
            case ShellFunction():
                self.state.functions[command.name] = command
                return Status(line=command.line)

    def _group(self, command: ShellGroup) -> Status:
        target = next((one.target for one in command.redirections if one.operator in {">", ">>"}), None)
        before = self.state
        if command.is_subshell:
            self.state = before.copy()
        if target is not None:
            self.outputs.append(Output())
        status = self.script(command.body)
        if target is not None:
            output = self.outputs.pop()
            if output.is_known:
                self.state.files[self.expander.text(target)] = ShellWord(text=output.text, line=command.line)
        if command.is_subshell:
            files, self.state = self.state.files, before
            self.state.files |= files
        return status

    def judged(self, words: Sequence[str], line: int, *, is_double: bool) -> Status:
        """Judge a condition; where nothing sets a variable of it, as if it were empty."""
        truth = test_words(words, is_double=is_double)
        if truth is not None:
            return Status(truth=truth, line=line)
        settled, unset = self.settled(words)
        return Status(truth=test_words(settled, is_double=is_double), unset=unset, line=line)

    def settled(self, words: Iterable[str]) -> tuple[list[str], frozenset[str]]:
        """Words with variables that nothing sets taken as empty, and their names."""
        unset: set[str] = set()
        settled = []
        for word in words:
            text = word
            for name in without_value(word):
                if self.expander.is_unset(name):
                    unset.add(name)
                    text = text.replace(mark(name), "0" if name == "#" else "")
            settled.append(text)
        return settled, frozenset(unset)

    def _test(self, command: ShellTest) -> Status:
        words = [self.expander.text(word) for word in command.words]
        return self.judged(words, command.line, is_double=True)

    def _arithmetic(self, command: ShellArithmetic) -> Status:
        value = self.expander.number(command.text, command.line)
        if value is not None:
            return Status(truth=value != 0, line=command.line)
        unset = frozenset(
            name for name in re.findall(r"[A-Za-z_]\w*", command.text) if self.expander.is_unset(name)
        ) | ({"#"} if "$#" in command.text and self.expander.is_unset("#") else set())
        settled = re.sub(r"\$\{?(#|[A-Za-z_]\w*)\}?", r"\1", command.text)
        for name in unset:
            settled = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "0", settled)
        value = self.expander.number(settled, command.line) if "=" not in re.sub("[=!<>]=", "", settled) else None
        return Status(truth=None if value is None else value != 0, unset=unset, line=command.line)

    def _note(self, names: Iterable[str], line: int) -> None:
        for name in names:
            self.assumed.setdefault(name, Assumption(name=name, line=line, is_set=False))

    def _require(self, names: Iterable[str], line: int) -> None:
        for name in names:
            self.assumed[name] = Assumption(name=name, line=line, is_set=True)
            self.expander.required.add(name)

    def _ends_script(self, commands: Sequence[Command], depth: int = 0) -> bool:
        """Whether commands certainly end the script."""
        for command in commands:
            if isinstance(command, Simple) and command.words:
                name = plain_text(command.words[0])
                function = self.state.functions.get(name)
                if name in {"exit", "return"}:
                    return True
                if function is not None and depth < _DEEPEST and self._script_ends(function.body, depth + 1):
                    return True
            if isinstance(command, ShellGroup) and not command.is_subshell and depth < _DEEPEST:
                return self._script_ends(command.body, depth + 1)
        return False

    def _script_ends(self, script: Script, depth: int = 0) -> bool:
        return any(self._ends_script(chain.pipelines[0][1].commands, depth) for chain in script)

    def _if(self, command: ShellIf) -> Status:
        maybe: list[tuple[Script, frozenset[str]]] = []  # bodies that may be taken, or were passed over
        chosen, unset, line = command.otherwise, set[str](), command.line
        doubtful: list[Script] = []
        for condition, body in command.branches:
            status = self.script(condition)
            truth = None if status.is_command else status.truth
            line = status.line
            if truth is None:
                doubtful.append(body)
                continue
            unset |= status.unset
            if truth:
                chosen = body
                break
            maybe.append((body, status.unset))
        if unset and self._script_ends(chosen):  # nobody starts it like that
            self._require(unset, line)
            doubtful += [body for body, names in maybe if names]
            chosen = [] if chosen is command.otherwise else command.otherwise
            is_open = not doubtful
        else:
            self._note(unset, line)
            self._pass_over([body for body, names in maybe if names], unset, line)
            is_open = True
        return self._taken(doubtful, chosen, is_open=is_open)

    def _pass_over(self, bodies: Iterable[Script], unset: Iterable[str], line: int) -> None:
        """Note what branches would set if a variable had a value."""
        for name in sorted(unset):
            for body in bodies:
                for assigned in _assigned_names(body):
                    self.passed_over.setdefault(assigned, (name, line))

    def _taken(self, doubtful: list[Script], chosen: Script, *, is_open: bool) -> Status:
        """Read the branch that is taken, beside those that may be."""
        if not doubtful:
            return self.script(chosen)
        self._branches([*doubtful, *([chosen] if is_open else [])], may_pass=False)
        return Status(truth=None)

    def _case(self, command: ShellCase) -> Status:
        text = self.expander.text(command.word)
        arms = [([self.expander.text(pattern) for pattern in patterns], body) for patterns, body in command.arms]
        chosen, doubtful = _arms(text, arms)
        unset: frozenset[str] = frozenset()
        if doubtful:
            (settled,), unset = self.settled([text])
            if unset:
                others = [body for _, body in arms]
                chosen, doubtful = _arms(settled, arms)
                if chosen is not None and self._script_ends(chosen):
                    self._require(unset, command.line)
                    doubtful = [body for body in others if body is not chosen]
                    return self._taken(doubtful, [], is_open=not doubtful)
                if not doubtful:
                    self._note(unset, command.line)
                    self._pass_over([body for body in others if body is not chosen], unset, command.line)
        return self._taken(doubtful, chosen or [], is_open=True)

    def _loop(self, command: ShellLoop) -> Status:
        if command.keyword != "for":
            self._while(command)
        elif command.items is None:
            if command.name:
                self._unknown(command.name, command.line)
            self.script(command.body)
        else:
            items = [item for word in command.items for item in self.expander.words(word)]
            items = [one for item in items for one in _ranged(item)]
            is_known = len(items) <= _MOST_ROUNDS and not any(without_value(item.text) for item in items)
            for item in items if is_known else items[:1]:
                if command.name not in self.fixed:
                    self.state.put(command.name, [item])
                if not is_known:
                    self._unknown(command.name, command.line)
                self.script(command.body)
                if self._left():
                    break
        self._left()
        return Status(line=command.line)

    def _left(self) -> bool:
        """Whether ``break`` left the loop; the next round begins otherwise."""
        left = self.state.has_ended
        if left in {"break", "continue"}:
            self.state.has_ended = ""
        return left not in {"", "continue"}

    def _while(self, command: ShellLoop) -> None:
        for _ in range(_MOST_ROUNDS):
            status = self.script(command.condition)
            if self.state.has_ended:
                return
            truth = None if status.is_command or status.truth is None else status.truth is (command.keyword == "while")
            if truth is None:
                self._branches([command.body], may_pass=True)
                return
            self._note(status.unset, status.line)
            if not truth:
                return
            before = dict(self.state.values)
            self.script(command.body)
            if self._left() or self.state.values == before:
                return
        for name, held in self.state.values.items():
            if held != before.get(name):
                self._unknown(name, command.line)

    def _unknown(self, name: str, line: int) -> None:
        if name not in self.fixed:
            self.state.put(name, [ShellWord(text=mark(name), line=line, is_conditional=self.expander.doubt > 0)])


def _arms(text: str, arms: Sequence[tuple[list[str], Script]]) -> tuple[Script | None, list[Script]]:
    """The arm that is taken, and those in front of it that may be."""
    doubtful: list[Script] = []
    for patterns, body in arms:
        truths = [is_match(text, pattern) if pattern != "*" else True for pattern in patterns]
        if True in truths:
            return body, doubtful
        if None in truths:
            doubtful.append(body)
    return None, doubtful


def _assigned_names(script: Script) -> list[str]:
    """Variables that the commands of a branch set, outside of further branches."""
    commands = [command for chain in script for _, pipeline in chain.pipelines for command in pipeline.commands]
    words = [plain_text(word) for command in commands if isinstance(command, Simple) for word in command.words]
    return [match[1] for match in map(_ASSIGNED.match, words) if match is not None]


def _ranged(item: ShellWord) -> list[ShellWord]:
    """The numbers of ``{0..3}``."""
    match = _RANGE.fullmatch(item.text)
    if match is None:
        return [item]
    first, last = int(match[1]), int(match[2])
    step = 1 if first <= last else -1
    numbers = range(first, last + step, step)[: _MOST_ROUNDS + 1]
    return [ShellWord(text=str(number), line=item.line, is_conditional=item.is_conditional) for number in numbers]
