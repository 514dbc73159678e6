"""Choice of the next places to try.

A small interface, with Optuna's tree of Parzen estimators behind it.

A sampler sees each number as a place from 0 to 1 and each choice as a number from 0 on. It is asked for a batch before
any of the batch is told, so that what it proposes depends neither on how many runs go side by side nor on who ends
first. Source: Bergstra et al., Algorithms for hyper-parameter optimization, NeurIPS 2011; Watanabe, arXiv:2304.11127,
for what Optuna does.
Leaves out: what a place means (`weftwork.study.tune.parameters`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from weftwork.base.errors import ConfigError, Mistake

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

    from weftwork.study.tune.parameters import TuneSpace

__all__ = ["Sampler", "TreeSampler", "refuse_without_optuna"]

SEED: Final = 1  # chosen: any; the same for all, so that a tuning is a function of its question


class Sampler(Protocol):
    """A sampler proposes places and takes their scores; less is better."""

    @property
    def label(self) -> str:
        """Name and version.

        A tuning continues only with the same sampler.
        """

    def ask(self) -> tuple[int, Mapping[str, float]]:
        """Propose places by key, with the number for the answer."""

    def tell(self, asked: int, score: float | None) -> None:
        """Take the score of a proposal; None if it has none."""

    def add(self, places: Mapping[str, float], score: float) -> None:
        """Take the score of places that the sampler did not choose."""


def refuse_without_optuna() -> None:
    """Say how to install Optuna, if it is missing.

    Raises
    ------
    ConfigError : with what to do
    """
    if importlib.util.find_spec("optuna") is None:
        text = "Optuna, which chooses the values, is not installed; install it with: pip install 'weftwork[plan]'"
        raise ConfigError("weftwork tune", [Mistake(path="optuna", text=text)])


class TreeSampler:
    """Optuna's TPE, one Parzen estimator for each parameter.

    Trials in progress count as bad (constant liar).

    Parameters
    ----------
    space : of the tuning
    seed : of every draw
    """

    def __init__(self, space: TuneSpace, seed: int = SEED) -> None:
        import optuna
        from optuna.distributions import CategoricalDistribution, FloatDistribution

        self._optuna = optuna
        self._choices = {one.key: bool(one.choices) for one in space.keys}
        self._distributions: dict[str, BaseDistribution] = {
            one.key: CategoricalDistribution(tuple(range(len(one.choices))))
            if one.choices
            else FloatDistribution(0.0, 1.0)
            for one in space.keys
        }
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        self._study = optuna.create_study(direction="minimize", sampler=sampler)
        self._under_way: dict[int, Any] = {}

    @property
    def label(self) -> str:
        """Name and version."""
        return f"Optuna {self._optuna.__version__}, TPE"

    def ask(self) -> tuple[int, Mapping[str, float]]:
        """Propose places by key."""
        trial = self._study.ask(self._distributions)
        self._under_way[trial.number] = trial
        return trial.number, {key: float(trial.params[key]) for key in self._distributions}

    def tell(self, asked: int, score: float | None) -> None:
        """Take a score.

        A trial without one counts as worse than all others.
        """
        trial = self._under_way.pop(asked)
        if score is None:
            self._study.tell(trial, state=self._optuna.trial.TrialState.PRUNED)
        else:
            self._study.tell(trial, score)

    def add(self, places: Mapping[str, float], score: float) -> None:
        """Take the score of the values of the file."""
        params = {key: int(place) if self._choices[key] else place for key, place in places.items()}
        made = self._optuna.trial.create_trial(params=params, distributions=self._distributions, value=score)
        self._study.add_trial(made)
