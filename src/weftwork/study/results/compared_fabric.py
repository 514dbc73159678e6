"""The fabric of a run in a comparison: built again from its scenario, counted and priced.

No Python file that the scenario names is run and no fabric file is read; such fabrics are thus not priced.
Leaves out: faults, which take away what was bought all the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import yaml

from weftwork.base.errors import ConfigError
from weftwork.spec.comparison import ComparedFabric, Spread
from weftwork.spec.fabric import HOST
from weftwork.study.prepare.prepare import fabric_of_scenario
from weftwork.topology.bill import bill
from weftwork.topology.oversubscription import exact_ratio, oversubscription_by_tier, ratio_text
from weftwork.topology.picture import tier_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from weftwork.hardware.price_rows import PriceBook, Range
    from weftwork.spec.fabric import Fabric
    from weftwork.store.runs import Run
    from weftwork.topology.bill import BillRow

__all__ = ["FabricsOfRuns", "asked_ratio"]

_KEPT: Final = {"schema", "name", "fabric"}  # sections of a scenario that say which fabric it has
_ANY_WORK: Final = {"traffic": "{pattern: permutation}"}  # a scenario needs a workload, and the fabric none
_NEAR: Final = 1e-3  # chosen: as the generators take a ratio for the ratio that was asked for


class FabricsOfRuns:
    """Builds and prices the fabrics of runs, each different fabric once.

    Parameters
    ----------
    book : prices and watts
    """

    def __init__(self, book: PriceBook) -> None:
        self._book = book
        self._known: dict[str, ComparedFabric | str] = {}

    def of(self, run: Run, scenario: Mapping[str, Any]) -> ComparedFabric | str:
        """The fabric of a run, or why it cannot be rebuilt.

        Parameters
        ----------
        run : written
        scenario : of the run, as YAML gives it
        """
        key = yaml.safe_dump(scenario.get("fabric"))
        if (scenario.get("fabric") or {}).get("file") is not None:
            return "fabric.file: a comparison reads nothing outside the folders of the runs"
        if key not in self._known:
            others = {section: "null" for section in scenario if section not in _KEPT}
            try:
                fabric = fabric_of_scenario(run.path / "scenario.yaml", others | _ANY_WORK, user_code=False)
                self._known[key] = self._placed(self._told(fabric, scenario["fabric"]))
            except ConfigError as wrong:
                first = wrong.mistakes[0]
                self._known[key] = f"{first.path}: {first.text}"
        return self._known[key]

    def _placed(self, fabric: ComparedFabric) -> ComparedFabric:
        """The fabric with its number.

        An equal fabric has the same number; other keys of its switches do not change it.
        """
        others = [one for one in self._known.values() if isinstance(one, ComparedFabric)]
        place = next((one.place for one in others if replace(one, place=fabric.place) == fabric), None)
        return replace(fabric, place=1 + max((one.place for one in others), default=-1) if place is None else place)

    def _told(self, fabric: Fabric, section: Mapping[str, Any]) -> ComparedFabric:
        found = bill(fabric, self._book)
        words = tier_words(fabric)
        tiers, counts = np.unique(fabric.node_tier[fabric.node_kind != HOST], return_counts=True)
        by_tier = oversubscription_by_tier(fabric)
        return ComparedFabric(
            place=0,
            gpus=fabric.gpus,
            links=len(fabric.links),
            switches_by_tier=tuple(
                (words[tier][count > 1], count) for tier, count in zip(tiers.tolist(), counts.tolist(), strict=True)
            ),
            switch_models=tuple((row.item, row.count) for row in found.of_kind("switch")),
            oversubscription=_ratios(by_tier, words),
            asked_oversubscription=asked_ratio(section.get("oversubscription"), by_tier, words),
            price_usd=None if found.not_priced or not found.rows else _spread(found.price_usd),
            power_w=None if found.not_powered or not found.rows else _spread(found.power_w),
            not_priced=_parts(found.not_priced),
            power_unknown=_parts(found.not_powered),
            unverified_money_share=found.unverified_money_share,
            unverified_power_share=found.unverified_power_share,
        )


def _spread(value: Range) -> Spread:
    return Spread(low=value.low, typical=value.typical, high=value.high)


def _parts(rows: Iterable[BillRow]) -> tuple[str, ...]:
    return tuple(f"{row.count:,} x {row.item}" for row in rows)


def _ratios(by_tier: Mapping[int, float], words: Mapping[int, tuple[str, str]]) -> str:
    """The realised ratios, one for all tiers or each by tier."""
    texts = {tier: ratio_text(ratio) for tier, ratio in by_tier.items()}
    if len(set(texts.values())) <= 1:
        return next(iter(texts.values()), "")
    return ", ".join(f"{words[tier][0]} {text}" for tier, text in texts.items())


def asked_ratio(wanted: Any, by_tier: Mapping[int, float], words: Mapping[int, tuple[str, str]]) -> str:  # noqa: ANN401 - of YAML
    """The scenario's ratio if the fabric has another.

    Empty if they agree or the scenario has none.

    Parameters
    ----------
    wanted : ``fabric.oversubscription`` as YAML gives it: a number, that of the leaves, or a mapping by tier
    by_tier : realised ratios, from the lowest tier up
    words : names of the tiers, one and several

    Examples
    --------
    >>> tiers = {1: ("leaf", "leaves"), 2: ("spine", "spines")}
    >>> asked_ratio(2, {1: 2.0, 2: 1.0}, tiers), asked_ratio({"spine": 3}, {1: 2.0, 2: 2.5}, tiers)
    ('', 'spine 3:1')
    """
    if wanted is None or not by_tier:
        return ""
    names = {words[tier][0]: ratio for tier, ratio in by_tier.items()}
    asked = wanted if isinstance(wanted, dict) else {next(iter(names)): wanted}  # one number is that of the leaves
    others = {
        name: exact_ratio(ratio)
        for name, ratio in asked.items()
        if name in names and abs(names[name] - float(exact_ratio(ratio))) > _NEAR * names[name]
    }
    return ", ".join(
        ratio_text(ratio) if not isinstance(wanted, dict) else f"{name} {ratio_text(ratio)}"
        for name, ratio in others.items()
    )
