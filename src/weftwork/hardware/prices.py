"""Read a shipped price book by name, or a user's file.

TOML: ``version``, ``title``, and tables ``[[switch]]``, ``[[nic]]``, ``[[module]]``, ``[[medium]]``, ``[[optical]]``,
``[[appliance]]``, ``[[server]]``, and one table ``[cluster]``.
A number stands for itself, a list of three for low, typical and high; rates and lengths are text with units.
Leaves out: what the rows mean (`weftwork.hardware.price_rows`) and the bill that is made of them
(`weftwork.topology.bill`).
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.fix import Fix
from weftwork.base.nearest import nearest, nearest_key
from weftwork.base.plain_file import read_plain
from weftwork.base.units import LENGTH, RATE, QuantityKind, UnitError, parse_quantity
from weftwork.hardware.price_rows import Between, ClusterPrices, Linear, PriceBook, PriceRow, Range, RowKind

__all__ = ["DEFAULT", "SHIPPED", "VERSION", "parse_prices", "price_book", "shipped_text"]

VERSION: Final = 1
DEFAULT: Final = "street-2025"
SHIPPED: Final = {
    DEFAULT: "prices.toml",
    "deepseek-2025": "prices_deepseek_2025.toml",
    "slim-fly-2014": "prices_slim_fly_2014.toml",
}
_HERE: Final = Path(__file__).parent
_MOST_BYTES: Final = 1 << 20  # chosen: a book of several thousand rows is smaller
_KINDS: Final = get_args(RowKind)
_MARKS: Final = ("name", "source", "date", "verified", "power_source", "power_verified")
_PRICE: Final = {
    "price_usd": "fixed",
    "price_per_port_usd": "per_port",
    "price_per_m_usd": "per_m",
    "price_per_gbps_usd": "per_gbps",
    "price_per_gbps_m_usd": "per_gbps_m",
    "price_per_gpu_usd": "per_gpu",
}
_POWER: Final = {
    "power_w": "fixed",
    "power_per_port_w": "per_port",
    "power_per_m_w": "per_m",
    "power_per_gbps_w": "per_gbps",
    "power_per_gbps_m_w": "per_gbps_m",
    "power_per_gpu_w": "per_gpu",
}
_TERMS: Final = {  # of each kind of row, since a switch has no length and a cable no ports
    "switch": ("fixed", "per_port", "per_gbps"),
    "nic": ("fixed", "per_port", "per_gbps"),
    "module": ("fixed", "per_gbps"),
    "medium": ("fixed", "per_m", "per_gbps", "per_gbps_m"),
    "optical": ("fixed", "per_port"),
    "appliance": ("fixed",),
    "server": ("fixed", "per_gpu"),
}
_OWN: Final = {
    "switch": ("models", "rates", "cage_rate"),
    "nic": ("models", "nodes", "rates", "cage_rate", "card_rate"),
    "module": ("medium", "rates"),
    "medium": ("rates", "reach", "between", "modules"),
    "optical": ("models",),
    "appliance": ("models",),
    "server": ("models",),
}
_CLUSTER: Final = ("life_years", "electricity_usd_per_kwh", "power_usage_effectiveness", "source", "date", "verified")
_REQUIRED: Final = {"module": ("medium", "rates"), "medium": ("modules",), "appliance": ("models",)}
_TABLE: Final = re.compile(r"\s*\[{1,2}\s*([A-Za-z_-]+)\s*\]")
_KEY: Final = re.compile(r"\s*([A-Za-z0-9_-]+)\s*=")
_AT_LINE: Final = re.compile(r"at line (\d+)")


def price_book(which: str | Path | None = None) -> PriceBook:
    """A price book by name or path; by default today's prices.

    Raises
    ------
    ConfigError : there is no such book, or it cannot be read; with all its mistakes

    Examples
    --------
    >>> price_book("deepseek-2025").switch("plain", 400_000_000_000).price.fixed.typical
    21500.0
    """
    name = DEFAULT if which is None else str(which)
    if name in SHIPPED:
        return parse_prices(shipped_text(name), name)
    try:
        raw = read_plain(Path(name), _MOST_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except FileNotFoundError as error:
        wanted = f"found '{name}', which is no file, wanted {', '.join(SHIPPED)}, or a file such as ./prices.toml"
        raise ConfigError("--prices", [Mistake(path="prices", text=wanted, fix=nearest(name, SHIPPED))]) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not text in UTF-8"
        raise ConfigError(name, [Mistake(path="file", text=f"cannot be read: {reason}")]) from error
    if len(raw) > _MOST_BYTES:
        raise ConfigError(name, [Mistake(path="file", text=f"wanted at most {_MOST_BYTES:,} bytes")])
    return parse_prices(text, name)


def shipped_text(name: str) -> str:
    """The text of a shipped price book; KeyError for an unknown name.

    Users start their own book with it.
    """
    return (_HERE / SHIPPED[name]).read_text(encoding="utf-8")


def parse_prices(text: str, source: str) -> PriceBook:
    """Read a price book from text.

    Parameters
    ----------
    text : TOML
    source : name of the book, or of its file, for messages

    Raises
    ------
    ConfigError : with all mistakes and their lines
    """
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = _AT_LINE.search(str(error))
        at = int(line[1]) if line else None
        raise ConfigError(source, [Mistake(path="file", text=f"is no TOML: {error}", line=at)]) from error
    reader = _BookReader(lines=_lines_of(text))
    rows = reader.rows(tree)
    cluster = reader.cluster(tree.get("cluster"))
    if reader.mistakes:
        raise ConfigError(source, reader.mistakes)
    return PriceBook(name=source, title=tree["title"], rows=tuple(rows), cluster=cluster)


@dataclass(kw_only=True)
class _BookPlace:
    """The place of a row, for messages."""

    kind: str
    number: int

    def path(self, key: str = "") -> str:
        table = self.kind if self.kind == "cluster" else f"{self.kind}[{self.number}]"  # there is one cluster
        return table + (f".{key}" if key else "")


@dataclass(kw_only=True)
class _BookReader:
    """Reads the tables of a book and collects mistakes."""

    lines: Mapping[tuple[str, int, str], int]
    mistakes: list[Mistake] = field(default_factory=list)

    def rows(self, tree: Mapping[str, Any]) -> list[PriceRow]:
        known = ("version", "title", "cluster", *_KINDS)
        for key in tree:
            if key not in known:
                line = self.lines.get((key, 0, "")) or self.lines.get(("", 0, key))
                text = f"unknown key; wanted {', '.join(known)}"
                self.mistakes.append(Mistake(path=key, text=text, line=line, fix=nearest_key(key, known)))
        version = tree.get("version")
        if version != VERSION or isinstance(version, bool):
            self._top("version", version, f"wanted {VERSION}")
        if not isinstance(tree.get("title"), str):
            self._top("title", tree.get("title"), "wanted a sentence that says what the prices are")
        found: list[tuple[_BookPlace, PriceRow]] = []
        for kind in _KINDS:
            tables = tree.get(kind, [])
            if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
                self._top(kind, tables, f"wanted tables [[{kind}]]")
                continue
            for number, table in enumerate(tables):
                place = _BookPlace(kind=kind, number=number)
                if (row := self._row(place, table)) is not None:
                    found.append((place, row))
        if not self.mistakes:
            self._relations(found)
        return [row for _, row in found]

    def cluster(self, table: Any) -> ClusterPrices | None:  # noqa: ANN401 - of TOML
        """Read the table of the whole cluster, which may be missing."""
        if table is None:
            return None
        if not isinstance(table, dict):
            self._top("cluster", table, "wanted one table [cluster]")
            return None
        place = _BookPlace(kind="cluster", number=0)
        before = len(self.mistakes)
        for key in table.keys() - set(_CLUSTER):
            text = f"unknown key of a cluster; wanted {', '.join(_CLUSTER)}"
            self._wrong(place, key, text, fix=nearest_key(key, _CLUSTER))
        for key in _CLUSTER:
            if key not in table:
                self._wrong(place, key, "missing")
        fields = {key: self._field(place, key, table[key], _CLUSTER_READERS[key]) for key in _CLUSTER if key in table}
        return None if len(self.mistakes) > before else ClusterPrices(**fields)

    def _row(self, place: _BookPlace, table: Mapping[str, Any]) -> PriceRow | None:
        before = len(self.mistakes)
        kind = place.kind
        price_keys = {key: term for key, term in _PRICE.items() if term in _TERMS[kind]}
        power_keys = {key: term for key, term in _POWER.items() if term in _TERMS[kind]}
        known = (*_MARKS, *_OWN[kind], *price_keys, *power_keys)
        for key in table:
            if key not in known:
                text = f"unknown key of {'an' if kind[0] in 'ao' else 'a'} {kind}; wanted {', '.join(known)}"
                self._wrong(place, key, text, fix=nearest_key(key, known))
        for key in ("name", "source", "date", "verified", *_REQUIRED.get(kind, ())):
            if key not in table:
                self._wrong(place, key, "missing")
        fields: dict[str, Any] = {
            key: self._field(place, key, table[key], read)
            for key, read in _READERS.items()
            if key in table and key in known
        }
        price = self._linear(place, table, price_keys)
        power = self._linear(place, table, power_keys)
        if len(self.mistakes) > before:
            return None
        renamed = {"rates": "rates_bps", "cage_rate": "cage_bps", "card_rate": "card_bps", "reach": "reach_m"}
        named = {renamed.get(key, key): value for key, value in fields.items()}
        named.setdefault("power_source", named["source"])
        named.setdefault("power_verified", named["verified"])
        return PriceRow(kind=kind, price=price, power=power, **named)  # type: ignore[arg-type]  # a kind of `_KINDS`

    def _linear(self, place: _BookPlace, table: Mapping[str, Any], keys: Mapping[str, str]) -> Linear | None:
        is_signed = place.kind == "switch"  # what a formula of ports takes off
        terms = {
            term: self._field(place, key, table[key], _signed_range if is_signed and key == "price_usd" else _range)
            for key, term in keys.items()
            if key in table
        }
        return Linear(**terms) if terms and None not in terms.values() else None

    def _field(self, place: _BookPlace, key: str, value: Any, read: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - of TOML
        try:
            return read(value)
        except _WrongError as wrong:
            self._wrong(place, key, wrong.text, fix=wrong.fix)
        except UnitError as wrong:
            self._wrong(place, key, wrong.text, fix=wrong.fix)
        return None

    def _relations(self, found: list[tuple[_BookPlace, PriceRow]]) -> None:
        """Check that modules have media, and that such media have modules.

        A medium takes the modules.
        """
        media = {row.name: row for _, row in found if row.kind == "medium"}
        served = {row.medium for _, row in found if row.kind == "module"}
        for place, row in found:
            if row.kind == "module" and row.medium not in media:
                names = ", ".join(media) or "none in the book"
                text = f"found '{row.medium}', wanted the name of a medium: {names}"
                self._wrong(place, "medium", text, fix=nearest(row.medium, media))
            elif row.kind == "module" and not media[row.medium].modules:
                self._wrong(place, "medium", f"'{row.medium}' takes no modules: its modules are false")
            elif row.kind == "medium" and row.modules and row.name not in served:
                self._wrong(place, "modules", f"found true, but no [[module]] has medium = '{row.name}'")
        if not found:
            text = f"has no rows, wanted at least one of {', '.join(f'[[{kind}]]' for kind in _KINDS)}"
            self.mistakes.append(Mistake(path="file", text=text))

    def _wrong(self, place: _BookPlace, key: str, text: str, *, fix: Fix | None = None) -> None:
        header = self.lines.get((place.kind, place.number, ""))
        line = self.lines.get((place.kind, place.number, key), header)
        self.mistakes.append(Mistake(path=place.path(key), text=text, line=line, fix=fix))

    def _top(self, key: str, value: Any, wanted: str) -> None:  # noqa: ANN401 - of TOML
        found = "missing" if value is None else f"found {value!r}"
        line = self.lines.get(("", 0, key))
        self.mistakes.append(Mistake(path=key, text=f"{found}, {wanted}", line=line))


class _WrongError(Exception):
    """A value of a row is wrong."""

    def __init__(self, text: str, fix: Fix | None = None) -> None:
        self.text = text
        self.fix = fix
        super().__init__(text, fix)


def _text(value: Any) -> str:  # noqa: ANN401 - of TOML
    if not isinstance(value, str) or not value.strip():
        raise _WrongError(f"found {value!r}, wanted text")
    return value


def _texts(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - of TOML
    if not isinstance(value, list) or not value:
        raise _WrongError(f"found {value!r}, wanted a list of names; leave the key out where the row is for all")
    return tuple(_text(one) for one in value)


def _flag(value: Any) -> bool:  # noqa: ANN401 - of TOML
    if not isinstance(value, bool):
        raise _WrongError(f"found {value!r}, wanted true or false")
    return value


def _quantity(kind: QuantityKind, value: Any) -> float:  # noqa: ANN401 - of TOML
    if not isinstance(value, str):
        raise _WrongError(f"found {value!r}, wanted {kind.wanted}")
    found = parse_quantity(kind, value)
    if found <= 0:
        raise _WrongError(f"found '{value}', wanted more than 0")
    return found


def _rate(value: Any) -> int:  # noqa: ANN401 - of TOML
    return int(_quantity(RATE, value))


def _rates(value: Any) -> tuple[int, ...]:  # noqa: ANN401 - of TOML
    if not isinstance(value, list) or not value:
        raise _WrongError(f"found {value!r}, wanted a list of rates such as ['400Gbps']")
    return tuple(_rate(one) for one in value)


def _reach(value: Any) -> float:  # noqa: ANN401 - of TOML
    return _quantity(LENGTH, value)


def _between(value: Any) -> Between:  # noqa: ANN401 - of TOML
    if value not in get_args(Between):
        wanted = " or ".join(get_args(Between))
        raise _WrongError(f"found {value!r}, wanted {wanted}", nearest(str(value), get_args(Between)))
    return value  # type: ignore[no-any-return]  # one of the two, as was checked


def _range(value: Any) -> Range:  # noqa: ANN401 - of TOML
    found = _signed_range(value)
    if found.low < 0:
        raise _WrongError(f"found {value!r}, wanted 0 or more")
    return found


def _signed_range(value: Any) -> Range:  # noqa: ANN401 - of TOML
    numbers = value if isinstance(value, list) else [value] * 3
    wanted = "wanted a number, or a list of three: low, typical, high"
    if len(numbers) != 3:
        raise _WrongError(f"found {value!r}, {wanted}")
    for one in numbers:
        if isinstance(one, bool) or not isinstance(one, int | float) or not abs(one) < math.inf:
            raise _WrongError(f"found {value!r}, {wanted}")
    low, typical, high = (float(one) for one in numbers)
    if not low <= typical <= high:
        raise _WrongError(f"found {value!r}, wanted low, typical, high in ascending order", str(sorted(numbers)))
    return Range(low=low, typical=typical, high=high)


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "name": _text, "source": _text, "date": lambda value: _text(str(value)), "verified": _flag,
    "power_source": _text, "power_verified": _flag, "models": _texts, "nodes": _texts, "rates": _rates,
    "cage_rate": _rate, "card_rate": _rate, "medium": _text, "reach": _reach, "between": _between, "modules": _flag,
}  # fmt: skip


def _above(least: float) -> Callable[[Any], float]:
    """Read a number that is at least, or for 0 above, a bound."""

    def read(value: Any) -> float:  # noqa: ANN401 - of TOML
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
        if not is_number or value < least or value <= 0:
            raise _WrongError(f"found {value!r}, wanted a number {f'of at least {least:g}' if least else 'above 0'}")
        return float(value)

    return read


_CLUSTER_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "life_years": _above(0), "electricity_usd_per_kwh": _range, "power_usage_effectiveness": _above(1),
    "source": _text, "date": lambda value: _text(str(value)), "verified": _flag,
}  # fmt: skip


def _lines_of(text: str) -> dict[tuple[str, int, str], int]:
    """Line of each ``[[table]]`` and key, by kind and table number.

    The line of the table is under an empty key.
    """
    lines: dict[tuple[str, int, str], int] = {}
    counts: dict[str, int] = {}
    place = ("", 0)
    for number, line in enumerate(text.splitlines(), start=1):
        if table := _TABLE.match(line):
            kind = table[1]
            place = (kind, counts.get(kind, 0))
            counts[kind] = place[1] + 1
            lines[(*place, "")] = number
        elif key := _KEY.match(line):
            lines.setdefault((*place, key[1]), number)
    return lines
