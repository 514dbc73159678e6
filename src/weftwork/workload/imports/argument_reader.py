"""Read argument values by kind, and collect mistakes.

Leaves out: what an argument means for a scenario (`weftwork.workload.imports.megatron`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import Mistake
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.spec.scenario.kinds import either
from weftwork.workload.imports.megatron_arguments import ANYWAY, IGNORED, READ, REFUSED
from weftwork.workload.imports.shell import without_value

if TYPE_CHECKING:
    from weftwork.base.fix import Fix
    from weftwork.workload.imports.megatron_words import Given, Launch

__all__ = ["ArgumentReader"]

_MOST: Final = 2**40  # chosen: no size of a model or a batch is larger
_SLIP: Final = 0.88  # chosen: one or two wrong letters of a long name; other programs' arguments are farther away
_RATIOS: Final = ("--hybrid-attention-ratio", "--hybrid-mlp-ratio")
_PATTERN: Final = "--hybrid-override-pattern says it layer by layer"
_ANYWAY: Final = "says what a scenario has anyway"
_LIKE: Final = 0.75  # chosen: below it suggestions look random
_SHOWN: Final = 60  # chosen: letters of a wrong value that a message repeats


@dataclass(kw_only=True)
class ArgumentReader:
    """Reader of arguments, one by one.

    Parameters
    ----------
    launch : where they come from
    is_whole : whether an argument that Megatron-LM requires is missed

    Attributes
    ----------
    given : those that a scenario may have keys for, by name
    ignored, unknown : the others: why, and the nearest one that is known
    mistakes : all of them
    """

    launch: Launch
    is_whole: bool = True
    given: dict[str, Given] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str | None] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def __post_init__(self) -> None:
        for one in self.launch.given:
            if one.argument in READ:
                self._note(one)
            elif one.argument in REFUSED and not (one.argument in _RATIOS and self._has_pattern()):
                self.wrong(one.argument, REFUSED[one.argument], line=one.line)
            elif one.argument in IGNORED or one.argument in _RATIOS:
                is_same = len(one.values) == 1 and one.values[0] in ANYWAY.get(one.argument, ())
                self.ignored[one.argument] = _ANYWAY if is_same else IGNORED.get(one.argument, _PATTERN)
            else:
                self._not_known(one)
        behind_switches = [
            value for one in self.launch.given if READ.get(one.argument) == "flag" for value in one.values
        ]
        for text in [*(word.text for word in self.launch.strays), *behind_switches]:
            missing = without_value(text)
            if missing or text not in behind_switches:
                self.unknown.setdefault((f"${missing[0]}" if missing else text)[:_SHOWN], None)

    def _has_pattern(self) -> bool:
        return any(one.argument == "--hybrid-override-pattern" for one in self.launch.given)

    @property
    def hint(self) -> str:
        """Hint at a variable that may hold the missing argument.

        The variable holds words of the command, and has no value.
        """
        names = [name[1:] for name in self.unknown if name.startswith("$") and name[1:].isidentifier()]
        if not names:
            return ""
        return (
            f"; it may be in ${names[0]}, which has no value without running the script: give --variable {names[0]}=..."
        )

    def _note(self, one: Given) -> None:
        old = self.given.get(one.argument)
        if one.argument == "--tokenizer-type" and old is not None and old.values != one.values:
            del self.given[one.argument]  # mock data have another tokenizer; --vocab-size decides, if it is there
            self.ignored[one.argument] = "found with several values"
            return
        if old is not None and old.values != one.values and (old.is_conditional or one.is_conditional):
            found = f"found '{_shown(old)}' in line {old.line} and '{_shown(one)}' here, one value under a condition"
            self.wrong(one.argument, f"{found}; wanted one value, since the script is not run", line=one.line)
        self.given[one.argument] = one

    def _not_known(self, one: Given) -> None:
        plain = one.argument.replace("_", "-")
        near = nearest(plain, [*READ, *IGNORED])
        likeness = 0.0 if near is None else SequenceMatcher(a=plain, b=near).ratio()
        if near is not None and near in READ and likeness >= _SLIP:
            self.wrong(one.argument, "is no argument of Megatron-LM", near, line=one.line)
            self.given.setdefault(near, one)  # it was meant, so it is not missing
        else:
            self.unknown[one.argument[:_SHOWN]] = near if likeness >= _LIKE else None

    def wrong(self, argument: str, text: str, fix: Fix | None = None, *, line: int | None = None) -> None:
        """Note a mistake at an argument."""
        if line is None and argument in self.given:
            line = self.given[argument].line
        self.mistakes.append(Mistake(path=argument, text=text, line=line, fix=fix))

    def has(self, *arguments: str) -> bool:
        """Whether one of the arguments is given."""
        return any(argument in self.given for argument in arguments)

    def _variables(self, name: str) -> str:
        """Options that give a variable its value."""
        option = f"--variable {name}=VALUE"
        deciding, line = self.launch.deciding.get(name, ("", 0))
        return f"--variable {deciding}=VALUE, by which line {line} sets it, or {option}" if deciding else option

    def flag(self, argument: str) -> bool:
        """Whether a switch is on."""
        one = self.given.get(argument)
        if one is None:
            return False
        values = [value for value in one.values if not without_value(value)]
        if values:
            self.wrong(argument, f"found '{values[0][:_SHOWN]}' after it, wanted nothing: the argument is a switch")
        return True

    def whole(self, argument: str, default: int | None = None, *, low: int = 1) -> int | None:
        """A whole number; ``default`` if the argument is missing or wrong."""
        text = self.word(argument)
        if text is None:
            return default
        if not re.fullmatch(r"[0-9]{1,13}", text) or not low <= int(text) <= _MOST:
            self.wrong(argument, f"found '{text[:_SHOWN]}', wanted a whole number from {low} on")
            return default
        return int(text)

    def needed(self, argument: str, instead: int = 1) -> int:
        """A required whole number; ``instead`` if it is missing.

        Reading then goes on.
        """
        if argument not in self.given:
            self.wrong(argument, f"missing, wanted a whole number{self.hint}")
        return self.whole(argument, instead) or instead

    def share(self, argument: str, default: float) -> float:
        """A number from 0 to 1."""
        text = self.word(argument)
        if text is None:
            return default
        if not re.fullmatch(r"[0-9]{0,9}\.?[0-9]{0,18}(e-?[0-9]{1,3})?", text) or not re.search("[0-9]", text):
            self.wrong(argument, f"found '{text[:_SHOWN]}', wanted a number from 0 to 1")
            return default
        value = float(text) if text[0] != "e" else -1.0
        if not 0 <= value <= 1:
            self.wrong(argument, f"found '{text[:_SHOWN]}', wanted a number from 0 to 1")
            return default
        return value

    def word(self, argument: str, choices: tuple[str, ...] = ()) -> str | None:
        """The single value of an argument; None if missing or wrong."""
        one = self.given.get(argument)
        if one is None:
            return None
        missing = [name for value in one.values for name in without_value(value)]
        if missing:
            text = f"needs '{missing[0][:_SHOWN]}', which has no value without running the script"
            is_name = missing[0].isidentifier()
            self.wrong(argument, f"{text}; give {self._variables(missing[0])}" if is_name else text)
            return None
        if len(one.values) != 1:
            self.wrong(argument, f"found {plural(len(one.values), 'value')}, wanted one")
            return None
        value = one.values[0]
        if choices and value not in choices:
            self.wrong(argument, f"found '{value[:_SHOWN]}', wanted {either(choices)}", nearest(value, choices))
            return None
        return value


def _shown(one: Given) -> str:
    return " ".join(one.values)[:_SHOWN]
