"""A crossing in words: winner, price, base, near-equals and failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.grammar import plural
from weftwork.report.words import amount, sentence
from weftwork.spec.verdicts import verdict_text

if TYPE_CHECKING:
    from weftwork.spec.crossing import Contender, CrossingCell, CrossingResult, Standing

__all__ = ["change_words", "crossing_verdict", "price_words", "standing_words", "took_words"]


def change_words(ratio: float) -> str:
    """A ratio of times as a change, such as ``-42 %``.

    A time beyond twice the base is a factor, such as ``3.4x``.
    """
    return f"{ratio:.3g}x" if ratio > 2 else f"{100 * (ratio - 1):+.0f} %"


def standing_words(standing: Standing) -> str:
    """A standing with its interval, such as ``0.58 (0.55 to 0.61)``.

    With one seed there is no interval.
    """
    if standing.low is None or standing.high is None:
        return f"{standing.ratio:.2f}"
    return f"{standing.ratio:.2f} ({standing.low:.2f} to {standing.high:.2f})"


def price_words(result: CrossingResult, place: int) -> str:
    """Requirements of a contender on switches and NICs, and its largest use.

    A sentence without a full stop.
    """
    contender = result.contenders[place]
    parts = [f"switches: {_listed(contender.switch)}; NICs: {_listed(contender.nic)}"]
    cells = [result.cell(place, setting) for setting in range(len(result.settings))]
    if early := max((cell.prices.get("reorder_buffer_bytes", 0.0) for cell in cells), default=0.0):
        parts.append(f"up to {amount(early, 'B')} of early packets at a NIC port")
    if pauses := sum(cell.prices.get("pauses", 0.0) for cell in cells):
        parts.append(f"{plural(round(pauses), 'pause')} over {plural(len(cells), 'setting')}")
    return ", ".join(parts)


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(words) or "nothing"


def crossing_verdict(result: CrossingResult) -> list[str]:
    """The verdict in sentences, the most important first."""
    base = result.contenders[result.base]
    if not result.standings:
        return ["No contender has a result in every setting.", *_failures(result)]
    best = result.standings[0]
    winner = result.contenders[best.contender]
    said = []
    if best.contender == result.base:
        said.append(verdict_text("cross.base-is-best", base=base.name))
    else:
        noise = (
            "; one seed cannot show the noise"
            if result.seeds == 1
            else "; the difference is within the noise of the seeds"
        )
        clear = "" if best.differs else noise
        said.append(
            f"{winner.name} is the best of {plural(len(result.contenders), 'contender')}: on average"
            f" {standing_words(best)} times what {base.name} takes{clear}."
        )
        said.append(f"Its price: {price_words(result, best.contender)}.")
    alike = [result.contenders[one.contender].name for one in result.standings if one.is_as_good][1:]
    if alike:
        shown = ", ".join(alike[:8]) + (f" and {len(alike) - 8:,} more" if len(alike) > 8 else "")
        said.append(f"{plural(len(alike), 'other does', 'others do')} not clearly differ from it: {shown}.")
    said += _cheapest(result, best)
    if result.crossed:
        by_place = {one.contender: one for one in result.standings}
        named = [f"{result.contenders[one].name} {standing_words(by_place[one])}" for one in result.crossed]
        said.append(f"Best pairs of the three best controls and the three best balancers: {'; '.join(named)}.")
    said += _by_setting(result)
    return [*said, *_failures(result)]


def _cheapest(result: CrossingResult, best: Standing) -> list[str]:
    """The best contender whose receivers keep no early packets."""
    for standing in result.standings:
        contender = result.contenders[standing.contender]
        if "keeps early packets" not in contender.nic and "selective repeat" not in contender.nic:
            if standing.contender in {best.contender, result.base}:
                return []
            price = price_words(result, standing.contender)
            return [f"Best contender with packets in order: {contender.name}, {standing_words(standing)}; {price}."]
    return []


def _by_setting(result: CrossingResult) -> list[str]:
    """The winner of each setting, and the number of near-equals."""
    said = []
    for number, setting in enumerate(result.settings):
        cells = [result.cell(place, number) for place in range(len(result.contenders))]
        best = next((cell for cell in cells if cell.is_best), None)
        if best is None:
            said.append(f"{sentence(setting.name)}: no contender has a result.")
            continue
        alike = sum(cell.is_as_good for cell in cells) - 1
        others = f"; {plural(alike, 'other does', 'others do')} not clearly differ from it" if alike else ""
        said.append(
            f"{sentence(setting.name)}: {result.contenders[best.contender].name}, {took_words(result, best)}{others}."
        )
    return said


def took_words(result: CrossingResult, cell: CrossingCell) -> str:
    """The average time of a cell, and its change against the base."""
    setting = result.settings[cell.setting]
    mean = sum(cell.values) / len(cell.values)
    against = "" if cell.ratio is None else f" ({change_words(cell.ratio)})"
    return f"{amount(mean, setting.unit)}{against}"


def _failures(result: CrossingResult) -> list[str]:
    """Contenders without a standing, each with its first reason."""
    found: dict[str, list[str]] = {}
    for cell in result.cells:
        if cell.reason:
            found.setdefault(cell.reason, []).append(_where(result, cell, result.contenders[cell.contender]))
    return [f"Without a result: {', '.join(where[:4])}{_more(where)}: {reason}." for reason, where in found.items()]


def _where(result: CrossingResult, cell: CrossingCell, contender: Contender) -> str:
    return f"{contender.name} ({result.settings[cell.setting].name})"


def _more(where: list[str]) -> str:
    return f" and {len(where) - 4:,} more" if len(where) > 4 else ""
