"""Complete scenarios with the best values, ready for `weftwork run`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from weftwork.spec.scenario.written import dump
from weftwork.study.prepare.prepare import read_scenario

if TYPE_CHECKING:
    from weftwork.spec.tuning import TuneResult
    from weftwork.study.tune.question import TuneQuestion

__all__ = ["tuned_files"]


def tuned_files(result: TuneResult, question: TuneQuestion, overrides: Mapping[str, str]) -> dict[str, str]:
    """Write out each scenario with the best values.

    Parameters
    ----------
    result, question : of the tuning
    overrides : settings that all its runs shared

    Returns
    -------
    name of a file to a scenario as YAML
    """
    settings = {**overrides, **result.trials[result.best].values}
    return {
        one.tuned: dump(read_scenario(file, settings, user_code=question.user_code))
        for one, file in zip(result.scenarios, question.files, strict=True)
    }
