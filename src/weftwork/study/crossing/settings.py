"""The settings of a crossing: four workloads, with and without a failing link.

All run on 64 NIC ports at 400 Gb/s.

The scenarios lie in ``workloads``. All have eight leaves with eight NIC ports each, and eight spines, so that nothing
is oversubscribed and whatever is slower than alone comes of control and balance.
Leaves out: other fabrics, other rates.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.spec.crossing import Setting

__all__ = ["HOSTS", "WORKLOADS", "overrides_of", "scenario_file", "settings_of"]

HOSTS: Final = 64  # NIC ports of each fabric
# workload -> number of the summary that decides, its unit, and its name in words
WORKLOADS: Final = {
    "all-reduce": ("collective_duration_ps", "ps", "time of a ring all-reduce of 32 MiB"),
    "all-to-all": ("collective_duration_ps", "ps", "time of an all-to-all of 32 MiB"),
    "training": ("iteration_ps", "ps", "time of an iteration of a small model with experts"),
    "mixed": ("slowdown_p99", "ratio", "p99 slowdown beside an all-reduce and an incast"),
}
# chosen: every workload is under way then, and none of them is near its end
_FAULT: Final = "[{at: 100us, link: leaf0-spine0, event: down}]"


def settings_of(workloads: tuple[str, ...] = (), *, faults: tuple[bool, ...] = (False, True)) -> tuple[Setting, ...]:
    """The settings of some workloads.

    Parameters
    ----------
    workloads : names; none: all of them
    faults : whether a link fails, each in turn

    Raises
    ------
    ConfigError : there is no such workload
    """
    wrong = [
        Mistake(path="--workload", text=f"found '{name}', wanted {', '.join(WORKLOADS)}", fix=nearest(name, WORKLOADS))
        for name in workloads
        if name not in WORKLOADS
    ]
    if wrong:
        raise ConfigError("command line", wrong)
    return tuple(
        Setting(workload=name, is_failed=is_failed, objective=objective, unit=unit, text=text)
        for name, (objective, unit, text) in WORKLOADS.items()
        if not workloads or name in workloads
        for is_failed in faults
    )


def scenario_file(setting: Setting) -> Path:
    """The installed scenario of a setting's workload."""
    with as_file(files("weftwork.study.crossing") / "workloads" / f"{setting.workload}.yaml") as path:
        return path


def overrides_of(setting: Setting) -> dict[str, str]:
    """The changes of the setting to that scenario."""
    return {"faults": _FAULT} if setting.is_failed else {}
