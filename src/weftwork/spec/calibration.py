"""Constants fitted to a user's measurements, as a file of a scenario.

A scenario names the file. TOML: ``version``, what it was fitted on and how well, a table of each constant, and joint
draws of the bootstrap, from which a run makes an interval. Leaves out: the fit (`weftwork.study.calibrate`), and what a
run makes of the constants (`weftwork.study.prepare.calibrated`).
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.file_forms import refuse_foreign
from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest_key
from weftwork.base.plain_file import read_plain

__all__ = ["CONSTANTS", "VERSION", "Calibration", "Constant", "parse_calibration", "read_calibration", "shown"]

VERSION: Final = 1
_MOST_BYTES: Final = 1 << 20  # chosen: a file of all constants with a thousand draws is smaller
_MOST_DRAWS: Final = 1_000
_SECTIONS: Final = ("version", "written", "fitted_on", "quality", "constants", "refused", "draws")
_TRAINING: Final = "training"
_COLLECTIVE: Final = "collective"


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant:
    """A constant that can be fitted.

    Attributes
    ----------
    name : with its unit
    unit : for people
    low, high : between which it is looked for, and may be
    workloads : sections of a scenario that it means something for
    key : of the scenario whose value goes before it; empty where there is none
    text : a sentence
    is_low_natural, is_high_natural : whether nothing can be beyond that end, so that it is a value like others
    """

    name: str
    unit: str
    low: float
    high: float
    workloads: tuple[str, ...]
    key: str
    text: str
    is_low_natural: bool = False
    is_high_natural: bool = False


# chosen: bounds are those of the keys, narrowed to what hardware and software can be
CONSTANTS: Final[dict[str, Constant]] = {
    made.name: made
    for made in (
        Constant(
            name="matmul_efficiency", unit="share", low=0.1, high=1.2, workloads=(_TRAINING,),
            key="training.software.matmul_efficiency",
            text="Share of the best measured matrix product that large products reach.",
        ),
        Constant(
            name="fp8_efficiency", unit="share", low=0.1, high=1.0, workloads=(_TRAINING,),
            key="training.software.fp8_efficiency",
            text="Factor of matmul_efficiency in FP8; its square in FP4.",
            is_high_natural=True,
        ),
        Constant(
            name="kernel_tail_us", unit="us", low=0.0, high=100.0, workloads=(_TRAINING,),
            key="training.software.kernel_tail",
            text="Time in which a kernel fills and empties the GPU.",
            is_low_natural=True,
        ),
        Constant(
            name="launch_us", unit="us", low=0.0, high=1_000.0, workloads=(_TRAINING,),
            key="training.software.launch",
            text="CPU time to launch one operation.",
            is_low_natural=True,
        ),
        Constant(
            name="collective_launch_us", unit="us", low=0.0, high=1_000.0, workloads=(_TRAINING, _COLLECTIVE), key="",
            text="Time of any collective besides the latencies of its protocol.",
            is_low_natural=True,
        ),
        Constant(
            name="network_efficiency", unit="share", low=0.1, high=1.0, workloads=(_TRAINING, _COLLECTIVE),
            key="training.software.network_efficiency",
            text="Share of a NIC that collectives reach, beyond headers.",
            is_high_natural=True,
        ),
        Constant(
            name="latency_scale", unit="ratio", low=0.05, high=50.0, workloads=(_TRAINING, _COLLECTIVE),
            key="training.software.latency_scale",
            text="Factor of all latencies of NCCL: launches, steps and ramps.",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """Constants by name, in the units of `CONSTANTS`.

    Attributes
    ----------
    file, digest : where it was read, and the SHA-256 of its text
    values : of the constants
    intervals : 5 % and 95 % of the bootstrap, of each
    draws : joint values of the bootstrap; every draw has all constants
    fitted_on : file, SHA-256 of its text, number of rows and kind of rows, as the file says; ``with`` and
        ``with_sha256``: rows of the calibration whose constants were held, in words and by their digests
    quality : mean absolute errors, as the file says
    refused : constants that were not fitted, with reasons
    text : of the file
    """

    file: str
    digest: str
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    draws: tuple[Mapping[str, float], ...]
    fitted_on: Mapping[str, Any]
    quality: Mapping[str, Any]
    refused: Mapping[str, str]
    text: str

    @property
    def words(self) -> str:
        """The data of the fit, in words."""
        earlier = f" and {self.fitted_on['with']}" if "with" in self.fitted_on else ""
        return f"{plural(self.fitted_on['rows'], 'row')} of {self.fitted_on['file']}{earlier}"

    @property
    def row_digests(self) -> frozenset[str]:
        """SHA-256 of the text of each file of rows that constants were fitted on."""
        return frozenset(f"{self.fitted_on.get('sha256', '')} {self.fitted_on.get('with_sha256', '')}".split())

    def constants_of(self, workload: str) -> str:
        """Constants that matter for ``training`` or ``collective``, in words."""
        used = (item for item in self.values.items() if workload in CONSTANTS[item[0]].workloads)
        return ", ".join(shown(name, value) for name, value in used)


def shown(name: str, value: float) -> str:
    """Format a constant for people.

    Examples
    --------
    >>> shown("launch_us", 31.25), shown("matmul_efficiency", 0.8333)
    ('launch 31.2 us', 'matmul_efficiency 0.833')
    """
    unit = CONSTANTS[name].unit
    return f"{name.removesuffix('_us')} {value:.3g} us" if unit == "us" else f"{name} {value:.3g}"


def read_calibration(path: Path) -> Calibration:
    """Read a file of constants.

    Parameters
    ----------
    path : that `weftwork calibrate` wrote, or somebody by hand

    Raises
    ------
    ConfigError : it cannot be read; with all its mistakes
    """
    try:
        raw = read_plain(path, _MOST_BYTES + 1)
        refuse_foreign(str(path), raw, "constants")
        text = raw.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not text in UTF-8"
        raise ConfigError(str(path), [Mistake(path="file", text=f"cannot be read: {reason}")]) from error
    return parse_calibration(text, str(path))


def parse_calibration(text: str, source: str) -> Calibration:
    """Read constants from text; as `read_calibration`.

    Parameters
    ----------
    text : TOML
    source : what errors call it
    """
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(source, [Mistake(path="file", text=f"is no TOML: {error}")]) from error
    findings = Findings(source=source)
    for key in tree:
        if key not in _SECTIONS:
            findings.wrong(key, f"unknown key; wanted {', '.join(_SECTIONS)}", nearest_key(key, _SECTIONS))
    version = tree.get("version")
    if version != VERSION or isinstance(version, bool):
        found = "missing" if version is None else f"found {version!r}"
        findings.wrong("version", f"{found}, wanted {VERSION}: fit again with this Weftwork")
    values, intervals = _constants(tree.get("constants"), findings)
    draws = _draws(tree.get("draws", {}), values, findings.reserved())
    fitted_on = _fitted_on(tree.get("fitted_on"), findings)
    for key in ("quality", "refused"):
        if not isinstance(tree.get(key, {}), dict):
            findings.wrong(key, f"found {tree[key]!r}, wanted a table")
    findings.refuse()
    return Calibration(
        file=source,
        digest=sha256(text.encode()).hexdigest(),
        values=values,
        intervals=intervals,
        draws=draws,
        fitted_on=fitted_on,
        quality=tree.get("quality", {}),
        refused={str(key): str(value) for key, value in tree.get("refused", {}).items()},
        text=text,
    )


def _constants(
    table: Any,  # noqa: ANN401 - of TOML
    findings: Findings,
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    if not isinstance(table, dict) or not table:
        text = f"missing, wanted a table of at least one of {', '.join(CONSTANTS)}"
        findings.wrong("constants", text)
        return {}, {}
    values: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    for name, given in table.items():
        path = f"constants.{name}"
        if name not in CONSTANTS:
            text = f"unknown constant; wanted {', '.join(CONSTANTS)}"
            findings.wrong(path, text, nearest_key(name, CONSTANTS))
            continue
        fields = given if isinstance(given, dict) else {"value": given}
        found: dict[str, Any] = {key: fields.get(key, fields.get("value")) for key in ("value", "low", "high")}
        of_constant = findings.reserved(path)
        for key, value in found.items():
            if (key in fields or key == "value") and not _is_within(name, value):
                of_constant.wrong(key if isinstance(given, dict) and key in fields else "", _beyond(name, value))
        if not of_constant.has_mistakes and not found["low"] <= found["value"] <= found["high"]:
            text = (
                f"found {found['value']} outside of {found['low']} to {found['high']}, wanted it between low and high"
            )
            of_constant.wrong("value", text)
        if not of_constant.has_mistakes:
            values[name] = float(found["value"])
            intervals[name] = (float(found["low"]), float(found["high"]))
    return values, intervals


def _draws(
    table: Any,  # noqa: ANN401 - of TOML
    values: Mapping[str, float],
    findings: Findings,
) -> tuple[dict[str, float], ...]:
    if not isinstance(table, dict):
        findings.wrong("draws", f"found {table!r}, wanted a table with a list of each constant")
        return ()
    for name in table:
        if name not in values:
            findings.wrong(f"draws.{name}", "is of no constant of this file", nearest_key(name, values))
    for name in values:
        if table and name not in table:
            findings.wrong(f"draws.{name}", "missing, wanted a list as long as those of the other constants")
    known = {name: found for name, found in table.items() if name in values}
    for name, found in known.items():
        if not isinstance(found, list) or not 0 < len(found) <= _MOST_DRAWS:
            findings.wrong(f"draws.{name}", f"wanted a list of 1 to {_MOST_DRAWS} numbers")
        else:
            wrong = next((value for value in found if not _is_within(name, value)), None)
            if wrong is not None:
                findings.wrong(f"draws.{name}", _beyond(name, wrong))
    if not findings.has_mistakes and len({len(found) for found in known.values()}) > 1:
        findings.wrong("draws", "lists are not equally long, wanted a value of each in every draw")
    if findings.has_mistakes or not known:
        return ()
    count = len(next(iter(known.values())))
    return tuple({name: float(found[at]) for name, found in known.items()} for at in range(count))


def _fitted_on(table: Any, findings: Findings) -> dict[str, Any]:  # noqa: ANN401 - of TOML
    if not isinstance(table, dict):
        findings.wrong("fitted_on", "missing, wanted a table with file and rows: where it comes from")
        return {}
    for key, kind, wanted in (
        ("file", str, "the name of a file"), ("rows", int, "a number of rows"),
        ("with", str, "rows of an earlier calibration in words"), ("with_sha256", str, "SHA-256 of files of rows"),
    ):  # fmt: skip
        if key.startswith("with") and key not in table:
            continue
        if not isinstance(table.get(key), kind) or isinstance(table.get(key), bool):
            findings.wrong(f"fitted_on.{key}", f"found {table.get(key)!r}, wanted {wanted}")
    return dict(table)


def _is_within(name: str, value: Any) -> bool:  # noqa: ANN401 - of TOML
    known = CONSTANTS[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    return known.low <= value <= known.high


def _beyond(name: str, value: Any) -> str:  # noqa: ANN401 - of TOML
    known = CONSTANTS[name]
    unit = "" if known.unit in {"share", "ratio"} else f" {known.unit}"
    found = "missing" if value is None else f"found {value!r}"
    return f"{found}, wanted a number from {known.low:g} to {known.high:g}{unit}"
