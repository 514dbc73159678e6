"""A relative of Megatron-LM: how its jobs are recognised and read as keys of a scenario.

A relative is one file of `weftwork.workload.imports.relatives`: a table of its arguments and a function that says what
they mean. Its arguments become arguments of Megatron-LM where both mean the same, keys of a scenario elsewhere, so that
sizes, batches and memory are judged in one place; every message is worded in the arguments of the job itself.
Leaves out: what an argument of Megatron-LM means (`weftwork.workload.imports.megatron`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final, Literal

from weftwork.base.errors import Mistake
from weftwork.base.nearest import nearest
from weftwork.spec.scenario.kinds import either
from weftwork.spec.training import Model
from weftwork.workload.imports.megatron_arguments import READ
from weftwork.workload.imports.megatron_keys import KeyValue, value_text
from weftwork.workload.imports.megatron_words import Given, Launch
from weftwork.workload.imports.settings import JobSetting, is_override
from weftwork.workload.imports.shell import ShellWord, without_value

__all__ = ["JobText", "Relative", "SettingReader", "Translation"]

_SLIP: Final = 0.88  # chosen: one or two wrong letters of a long name; other programs' arguments are farther away
_LIKE: Final = 0.75  # chosen: below it suggestions look random
_SHOWN: Final = 60  # chosen: letters of a wrong value that a message repeats
_MOST: Final = 2**40  # chosen: no size of a model or a batch is larger
_ARGUMENT: Final = re.compile(r"--[a-z][a-z0-9_-]*[a-z0-9]")
_OFF: Final = "nothing: it is off"
ANYWAY: Final = "says what a scenario has anyway"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobText:
    """A job as a file has it.

    Attributes
    ----------
    form : of the file
    settings : of a YAML or TOML file, or Hydra's overrides in a command
    program : name of the program that a script starts
    launch : the command of a script
    """

    form: Literal["script", "yaml", "toml"]
    settings: tuple[JobSetting, ...] = ()
    program: str = ""
    launch: Launch | None = None

    @property
    def strays(self) -> tuple[ShellWord, ...]:
        """Words of the command that are no setting."""
        words = () if self.launch is None else self.launch.strays
        return tuple(word for word in words if not is_override(word.text))

    def has(self, *names: str) -> bool:
        """Whether one of the settings, or a setting below it, is there."""
        return any(one.name == name or one.name.startswith(f"{name}.") for one in self.settings for name in names)


@dataclass(frozen=True, kw_only=True, slots=True)
class Relative:
    """A program for the training of models that is a relative of Megatron-LM.

    Attributes
    ----------
    title : as its authors write it
    form : what a file of its jobs is, in a few words
    source : repository and file of its arguments
    recognises : whether a file is a job of this program
    translate : reads the settings that need more than a name
    read : argument, and the argument of Megatron-LM with the same meaning (``!--x`` for its opposite), or the key of a
        scenario that `translate` sets
    ignored : argument, or beginning of arguments that ends with ``*``, and why it sets no key
    anyway : values of ignored arguments that say what a scenario has anyway
    refused : argument that the program refuses itself, and what is wanted
    names : argument of Megatron-LM that no single argument of the program stands for, and what messages call it
    """

    title: str
    form: str
    source: str
    recognises: Callable[[JobText], bool]
    translate: Callable[[SettingReader], None]
    read: Mapping[str, str]
    ignored: Mapping[str, str]
    anyway: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def reason(self, argument: str) -> str | None:
        """Why an argument sets no key; None if the table does not know it."""
        exact = self.ignored.get(argument)
        if exact is not None:
            return exact
        beginnings = [one for one in self.ignored if one.endswith("*") and argument.startswith(one[:-1])]
        return self.ignored[max(beginnings, key=len)] if beginnings else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Translation:
    """A relative's job in the terms of Megatron-LM and of a scenario.

    Attributes
    ----------
    title : of the program
    launch : arguments of Megatron-LM
    names : argument of Megatron-LM, and what the job calls it
    defaults : argument of Megatron-LM that no setting gives, and why it is assumed
    keys : key of a scenario, its value, and the setting that says it (None: assumed, with the reason)
    model : of the catalogue, where the job names it
    read, ignored, unknown : settings of the job, as of `weftwork.workload.imports.megatron.MegatronImport`
    """

    title: str
    launch: Launch
    names: Mapping[str, str]
    defaults: Mapping[str, str]
    keys: Mapping[str, tuple[KeyValue, JobSetting | None, str]]
    model: Model | None
    read: Mapping[str, str]
    ignored: Mapping[str, str]
    unknown: Mapping[str, str | None]

    def worded(self, text: str) -> str:
        """A text about arguments of Megatron-LM, in the words of the job."""
        found = _ARGUMENT.sub(lambda match: self.names.get(match[0], match[0]), text)
        return found.replace("Megatron-LM", self.title).replace("pretrain_gpt.py", self.title)


@dataclass(kw_only=True)
class SettingReader:
    """Reader of a relative's settings, one by one.

    Attributes
    ----------
    relative, job : of the file
    gpus : that the user says, or None
    settings : by name
    given, repeated : arguments of Megatron-LM by name, and earlier ones of the same name
    mistakes : all of them
    """

    relative: Relative
    job: JobText
    gpus: int | None = None
    settings: dict[str, JobSetting] = field(default_factory=dict)
    given: dict[str, Given] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    keys: dict[str, tuple[KeyValue, JobSetting | None, str]] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str | None] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    model: Model | None = None
    nodes: Given | None = None
    gpus_per_node: Given | None = None

    repeated: list[Given] = field(default_factory=list)

    def __post_init__(self) -> None:
        read = {
            target.lstrip("!"): name for name, target in reversed(tuple(self.relative.read.items())) if "--" in target
        }
        self.names = {**read, **self.relative.names}
        for one in self.job.settings:
            self._place(one)

    def _place(self, one: JobSetting) -> None:
        relative = self.relative
        reason = relative.reason(one.name)
        if one.name in relative.refused:
            self.wrong(one.name, relative.refused[one.name], line=one.line)
        elif one.name in relative.read:
            if one.is_null:
                self.read[one.name] = "nothing: it has no value"
            else:
                self.settings[one.name] = one
        elif reason is not None:
            is_same = one.is_null or one.text in relative.anyway.get(one.name, ())
            self.ignored[one.name] = ANYWAY if is_same and one.name in relative.anyway else reason
        else:
            self._not_known(one)

    def _not_known(self, one: JobSetting) -> None:
        known = [*relative_names(self.relative.read), *relative_names(self.relative.ignored)]
        near = nearest(one.name, known)
        likeness = 0.0 if near is None else SequenceMatcher(a=one.name, b=near).ratio()
        if near is not None and near in self.relative.read and likeness >= _SLIP:
            self.wrong(one.name, f"is no setting of {self.relative.title}", near, line=one.line)
            self.settings.setdefault(near, one)  # it was meant, so it is not missing
        else:
            self.unknown[one.name[:_SHOWN]] = near if likeness >= _LIKE else None

    # What the job says

    def wrong(self, name: str, text: str, fix: str | None = None, *, line: int | None = None) -> None:
        """Note a mistake at a setting."""
        if line is None and name in self.settings:
            line = self.settings[name].line
        plain = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
        self.mistakes.append(Mistake(path=name, text=plain, line=line, fix=fix))

    def has(self, *names: str) -> bool:
        """Whether one of the settings has a value."""
        return any(name in self.settings for name in names)

    def first(self, *names: str) -> str:
        """The first of the names that has a value, or the first name."""
        return next((name for name in names if name in self.settings), names[0])

    def text(self, name: str) -> str | None:
        """The single value of a setting; None if it is missing, or wrong."""
        one = self.settings.get(name)
        if one is None:
            return None
        missing = without_value(one.text)
        if missing:
            hint = f"; give --variable {missing[0]}=VALUE" if missing[0].isidentifier() else ""
            self.wrong(name, f"needs '{missing[0][:_SHOWN]}', which has no value without running the job{hint}")
            return None
        if one.texts is not None:
            self.wrong(name, "found a list or a section, wanted one value")
            return None
        return one.text

    def word(self, name: str, choices: Iterable[str] = ()) -> str | None:
        """One of the choices."""
        text, allowed = self.text(name), tuple(choices)
        if text is None or not allowed or text in allowed:
            return text
        self.wrong(name, f"found '{text[:_SHOWN]}', wanted {either(allowed)}", nearest(text, allowed))
        return None

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Whether a switch is on."""
        text = self.text(name)
        if text is None:
            return default
        switch = self.settings[name].switch
        if switch is None:
            self.wrong(name, f"found '{text[:_SHOWN]}', wanted true or false")
            return default
        return switch

    def whole(self, name: str, default: int | None = None, *, low: int = 1) -> int | None:
        """A whole number; ``default`` if the setting is missing or wrong."""
        text = self.text(name)
        if text is None:
            return default
        plain = text.replace("_", "")
        if not re.fullmatch(r"[0-9]{1,13}", plain) or not low <= int(plain) <= _MOST:
            self.wrong(name, f"found '{text[:_SHOWN]}', wanted a whole number from {low} on")
            return default
        return int(plain)

    @property
    def job_gpus(self) -> int | None:
        """GPUs of the job, as far as the user or the job says."""
        return self.gpus or Launch(given=(), nodes=self.nodes, gpus_per_node=self.gpus_per_node).gpus

    # What it becomes

    def give(self, argument: str, *values: str, by: str) -> None:
        """Give an argument of Megatron-LM, which the setting ``by`` says."""
        line = self.settings[by].line if by in self.settings else None
        self.given[argument] = Given(argument=argument, values=values, line=line)
        self.names[argument] = by
        self.defaults.pop(argument, None)

    def assume(self, argument: str, *values: str, reason: str) -> None:
        """Give an argument of Megatron-LM that no setting says, unless one does."""
        if argument not in self.given:
            self.given[argument] = Given(argument=argument, values=values, line=None)
            self.defaults[argument] = reason

    def key(self, key: str, value: KeyValue, *, by: str | None = None, text: str = "") -> None:
        """Set a key of a scenario, which the setting ``by`` says; ``text`` is the reason, or a note."""
        self.keys[key] = (value, self.settings[by] if by is not None else None, text)
        if by is not None:
            self.say(by, f"{key}: {value_text(value)}" + (f"; {text}" if text else ""))

    def say(self, name: str, text: str) -> None:
        """Tell what became of a setting."""
        before = f"{self.read[name]}; " if name in self.read else ""
        self.read[name] = before + text

    def same(self) -> None:
        """Give all arguments that have the same meaning in Megatron-LM."""
        for name, target in self.relative.read.items():
            argument = target.lstrip("!")
            if name not in self.settings or not argument.startswith("--") or argument in self.given:
                continue
            kind = READ[argument]
            if kind == "flag":
                is_on = self.flag(name) != target.startswith("!")
                if is_on:
                    self.give(argument, by=name)
                else:
                    self.say(name, _OFF)
            elif kind == "words":
                texts = self.settings[name].texts
                self.give(argument, *(texts if texts is not None else (self.settings[name].text,)), by=name)
            else:
                value = self.text(name)
                if value is not None:
                    self.give(argument, value.replace("_", "") if kind == "whole" else value, by=name)

    def translation(self) -> Translation:
        """All that was read."""
        self.relative.translate(self)
        launch = Launch(
            given=(*self.repeated, *self.given.values()),
            nodes=self.nodes,
            gpus_per_node=self.gpus_per_node,
            strays=self.job.strays,
        )
        for name in self.settings:
            is_server = any(one is not None and one.argument == name for one in (self.nodes, self.gpus_per_node))
            if name not in self.read and name not in self.names.values() and not is_server:
                self.read[name] = "nothing: another setting decides"
        return Translation(
            title=self.relative.title,
            launch=launch,
            names=self.names,
            defaults=self.defaults,
            keys=self.keys,
            model=self.model,
            read=self.read,
            ignored=self.ignored,
            unknown=self.unknown,
        )


def relative_names(table: Mapping[str, str]) -> list[str]:
    """Whole names of a table of arguments, without beginnings of names."""
    return [name for name in table if not name.endswith("*")]
