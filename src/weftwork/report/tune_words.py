"""A tuning in words: gain, noise, the parameter behind it, and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.report.words import amount, label, sentence
from weftwork.spec.numbers import headline_noun
from weftwork.spec.verdicts import verdict_text

if TYPE_CHECKING:
    from weftwork.spec.tuning import SeedEstimate, TuneParameter, TuneResult, TuneTrial

__all__ = [
    "gain_words", "loss_words", "most_important", "objective_name", "parameter_names", "range_words", "score_words",
    "trial_words", "tune_verdict", "tune_warnings", "tuned_comment",
]  # fmt: skip

_SAID: Final = 0.995  # of the gain: a parameter that brings more of it brings all


def objective_name(result: TuneResult) -> str:
    """The objective of a tuning in words.

    An expression stays as it is.
    """
    if noun := headline_noun(result.objective):
        return noun
    return label(result.objective) if result.objective.isidentifier() else result.objective


def tune_verdict(result: TuneResult) -> list[str]:
    """The verdict in sentences, the most important first."""
    if result.best == 0:
        return _nothing(result)
    if result.gain is None:
        return [f"Trial {result.best} is best on the seeds of the search, but not judged on fresh seeds: {result.why}."]
    seeds = plural(len(result.fresh_seeds), "fresh seed")
    what = objective_name(result)
    name = f"The objective, {what}," if " " in result.objective else sentence(what)
    said = [f"{name} {_from_to(result)}: {gain_words(result, result.gain)}, over {seeds}."]
    if result.gain.mean <= 0:
        said.append("So the best trial of the search is no better on fresh seeds: keep the values of the file.")
        return said
    if result.gain.is_clear is False:
        said.append("This may be noise: the interval includes zero. Give more seeds with --fresh to find out.")
    return [*said, *_parts(result)]


def _nothing(result: TuneResult) -> list[str]:
    what, trials = objective_name(result), plural(len(result.trials) - 1, "trial")
    if not result.finalists:
        return [verdict_text("tune.none-better", trials=trials, objective=what)]
    better = plural(len(result.finalists), "trial looks", "trials look")
    text = f"The values of the file are best, by {what}: {better} better only on the seeds of the search,"
    return [f"{text} so the difference was noise."]


def _from_to(result: TuneResult) -> str:
    """The objective before and after; several scenarios each by name."""
    told = [
        f"from {amount(one.before, result.unit or 'number')} to {amount(one.after, result.unit or 'number')}"
        for one in result.scenarios
    ]
    if len(told) == 1:
        return f"goes {told[0]}"
    return "goes " + "; ".join(f"in {one.name} {text}" for one, text in zip(result.scenarios, told, strict=True))


def gain_words(result: TuneResult, gain: SeedEstimate) -> str:
    """A gain with its interval, such as ``21 % less (95 % interval 18 % to 24 %)``."""
    better, worse = ("more", "less") if result.is_larger_better else ("less", "more")
    side = better if gain.mean >= 0 else worse
    unit = _unit_of_gain(result)
    text = f"{amount(abs(gain.mean), unit)} {side}"
    if len(result.scenarios) > 1:
        text += " on geometric average"
    if gain.low is None or gain.high is None:
        return f"{text} (one seed: the noise is unknown)"
    factor = 1.0 if gain.mean >= 0 else -1.0
    low, high = sorted((factor * gain.low, factor * gain.high))
    return f"{text} (95 % interval {amount(low, unit)} to {amount(high, unit)})"


def _unit_of_gain(result: TuneResult) -> str:
    return "share" if result.is_gain_ratio else result.unit or "number"


def most_important(result: TuneResult) -> TuneParameter | None:
    """The parameter whose old value loses most.

    None if no parameter clearly loses anything.
    """
    known = [(one.loss.mean, one) for one in result.parameters if one.loss is not None and one.loss.mean > 0]
    clear = [(loss, one) for loss, one in known if one.loss is not None and one.loss.is_clear is not False]
    return max(clear, key=lambda pair: pair[0])[1] if clear else None


def _parts(result: TuneResult) -> list[str]:
    """The parameters that brought the gain, and those without effect."""
    first = most_important(result)
    said = []
    if first is not None and first.loss is not None:
        share = first.share_of_gain
        part = ""
        if share is not None:
            part = ", all of the gain" if share >= _SAID else f", {amount(share, 'share')} of the gain"
        said.append(
            f"{first.key} matters most ({first.before} to {first.best}): with only its old value the objective is"
            f" {amount(first.loss.mean, _unit_of_gain(result))} worse{part}."
        )
    idle = [one.key for one in result.parameters if one.loss is not None and one.loss.is_clear is False]
    if idle and first is not None:
        said.append(f"{_listed(idle)} could keep the old value: setting it back alone has no clear effect.")
    return said


def _listed(keys: list[str]) -> str:
    leaves = [key.rpartition(".")[2] for key in keys]
    return leaves[0] if len(leaves) == 1 else f"Each of {', '.join(leaves)}"


def tune_warnings(result: TuneResult) -> list[str]:
    """Warnings that a reader must not overlook."""
    said = []
    if result.gain is not None and result.gain.is_clear is None:
        said.append("With one fresh seed the noise is unknown; --fresh 5 measures it.")
    said += [
        f"{one.key} = {one.best} lies at the {one.end} end of its range, {one.low} to {one.high}; a wider one may be"
        f" better: --parameter '{one.key}=LOW..HIGH'"
        for one in result.parameters
        if one.end
    ]
    several = len(result.scenarios) > 1
    for other in result.others:
        where = f"{other.scenario}: " if several else ""
        said.append(
            f"{where}{label(other.name)} got worse: from {amount(other.before, other.unit)} to"
            f" {amount(other.after, other.unit)}"
        )
    failed = [one for one in result.trials if one.score is None]
    if failed:
        said.append(
            f"{plural(len(failed), 'trial has', 'trials have')} no result to judge, such as trial {failed[0].number}:"
            f" {failed[0].reason or failed[0].status}"
        )
    said += [f"{one.key} was not judged alone: {one.why}" for one in result.parameters if one.why]
    if result.unread:
        names = ", ".join(key.rpartition(".")[2] for key in result.unread)
        said.append(
            f"Not tuned, since no range follows from the present values: {names}; --parameter KEY=LOW..HIGH sets one"
        )
    return [*said, *(f"assumed: {text}" for text in result.assumed)]


def parameter_names(result: TuneResult) -> dict[str, str]:
    """The last name of each parameter.

    Two parameters with the same last name keep their whole key.
    """
    leaves = [one.key.rpartition(".")[2] for one in result.parameters]
    return {
        one.key: leaf if leaves.count(leaf) == 1 else one.key
        for one, leaf in zip(result.parameters, leaves, strict=True)
    }


def range_words(one: TuneParameter) -> str:
    """The range of a parameter, or its words."""
    return ", ".join(one.choices) if one.choices else f"{one.low} to {one.high}"


def loss_words(result: TuneResult, one: TuneParameter) -> str:
    """Loss of the objective with the old value of one parameter.

    Empty if the parameter keeps its value.
    """
    if one.loss is None:
        return "not judged" if one.why else ""
    unit = _unit_of_gain(result)
    text = amount(one.loss.mean, unit)
    if one.loss.low is None or one.loss.high is None:
        return text
    return f"{text} ({amount(one.loss.low, unit)} to {amount(one.loss.high, unit)})"


def score_words(result: TuneResult, one: TuneTrial) -> str:
    """The score of a trial in words.

    It is relative to the values of the file, or in the unit of the objective.
    """
    if one.score is None:
        return "-"
    return amount(one.score, "ratio" if result.is_ratio else result.unit or "number")


def trial_words(result: TuneResult, one: TuneTrial) -> str:
    """A trial in words, by its number and what it was."""
    if one.number == 0:
        return "0, the values of the file"
    return f"{one.number}, the best" if one.number == result.best else str(one.number)


def tuned_comment(result: TuneResult, file: str) -> str:
    """Comment above a tuned scenario, as lines of YAML."""
    lines = [f"Made by weftwork tune from {file}, {plural(len(result.trials), 'trial')}.", *tune_verdict(result)]
    changed = [one for one in result.parameters if one.best != one.before]
    lines += ["Changed:"] if changed else ["Nothing is changed."]
    lines += [f"  {one.key}: {one.best}   (before: {one.before})" for one in changed]
    return "".join(f"# {' '.join(line.split()) if not line.startswith(' ') else line}\n" for line in lines)
