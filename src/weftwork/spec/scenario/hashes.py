"""The entries of ``fabric.hash``: different hashes for some switches.

Other switches use ``fabric.switch.hash``.
Leaves out: which switches there are; the floor that builds the fabric applies the entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.spec.device import HashFunction, Record
from weftwork.spec.scenario.devices import device_rows, hash_mistakes
from weftwork.spec.scenario.kinds import Kind, Text
from weftwork.spec.scenario.rows import REQUIRED, row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.scenario.reader import Reader

__all__ = ["SETTINGS", "HashSection", "check_hashes"]

_ROWS = device_rows(HashFunction)
_ABSENT = "as fabric.switch.hash says"


def _kind(field: str) -> Kind:
    return _ROWS[field].kind


class HashSection(Record):
    """Hash of the switches with one name or in one tier."""

    switches: str = row(
        "switches",
        Text(),
        default=REQUIRED,
        text="One switch by its name, such as `leaf3`; all with that word before a number, such as `leaf`; or a whole"
        " tier, such as `tier2`.",
        source="chosen: the user does",
    )
    algorithm: str | None = row(
        "algorithm", _kind("algorithm"), absent=_ABSENT, text=_ROWS["algorithm"].text, source=_ROWS["algorithm"].source
    )
    seed: int | None = row("seed", _kind("seed"), absent=_ABSENT, text=_ROWS["seed"].text, source=_ROWS["seed"].source)
    offset: int | None = row(
        "offset", _kind("offset"), absent=_ABSENT, text=_ROWS["offset"].text, source=_ROWS["offset"].source
    )
    fields: tuple[str, ...] | None = row(
        "fields", _kind("fields"), absent=_ABSENT, text=_ROWS["fields"].text, source=_ROWS["fields"].source
    )

    def settings(self) -> dict[str, object]:
        """The fields of `HashFunction` that this entry sets."""
        return {key: value for key in SETTINGS if (value := getattr(self, key)) is not None}


SETTINGS = tuple(HashFunction.model_fields)


def check_hashes(entries: Sequence[HashSection], reader: Reader) -> None:
    """Check each entry, and that no two entries cover the same switch."""
    seen: dict[str, int] = {}
    for index, entry in enumerate(entries):
        path = f"fabric.hash.{index}"
        if not reader.is_sound(path) or any(bad.startswith(f"{path}.") for bad in reader.bad):
            continue
        if not entry.settings():
            reader.wrong(path, f"sets nothing, wanted one or more of {', '.join(SETTINGS)}")
        if (first := seen.setdefault(entry.switches, index)) != index:
            text = f"found '{entry.switches}', which fabric.hash.{first} has already; put both into one entry"
            reader.wrong(f"{path}.switches", text)
        for key, text in hash_mistakes(HashFunction.model_validate(entry.settings())):
            reader.wrong(f"{path}.{key}", text)
