"""The records of one policy, from the classes in its file.

The engine has a NumPy dtype, Python a plain object. A field is int64 or float64 (a bool is an int64 of 0 or 1), or a
small array of one of them. The plain object keeps
the types: a float field turns an int into a float, as the compiled step does; an int field refuses a float, which the
compiled step would truncate, and what does not fit int64, which would wrap. It remembers which line of which file wrote
a field or an element of an array last, so that an error can name it.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import operator
import struct
import sys
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, Literal

import numpy as np

from weftwork.policies.interface import NO_WINDOW_BYTES, OFF
from weftwork.policies.step_file import PARTS

__all__ = ["Field", "RecordLayout", "place_of", "prefix_fields", "state_fields"]

FieldType = Literal["int", "float"]
_INT64 = range(-(2**63), 2**63)
Writer = tuple[CodeType, int]  # code and line that wrote a value
_PREFIX_INITIAL = {"window_bytes": NO_WINDOW_BYTES, "timer_at_ps": OFF}


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One field of a record.

    ``size`` 0 is a scalar; ``initial`` is the value in a new record.
    """

    name: str
    type: FieldType
    size: int = 0
    initial: tuple[float, ...] = (0,)


class _Ints(list[int]):
    """An int64 array in plain Python.

    ``writers`` has the line that wrote each element last.
    """

    __slots__ = ("writers",)

    def __init__(self, values: Iterable[int]) -> None:
        super().__init__(values)
        self.writers: dict[int, Writer] = {}

    def __setitem__(self, index: Any, value: Any) -> None:  # noqa: ANN401 - as list's own
        list.__setitem__(self, index, _as_int(value))
        frame = sys._getframe(1)  # noqa: SLF001 - as in `_Record`
        self.writers[index % len(self)] = (frame.f_code, frame.f_lineno)


class _Floats(list[float]):
    """A float64 array in plain Python; similar to `_Ints`."""

    __slots__ = ("writers",)

    def __init__(self, values: Iterable[float]) -> None:
        super().__init__(values)
        self.writers: dict[int, Writer] = {}

    def __setitem__(self, index: Any, value: Any) -> None:  # noqa: ANN401 - as list's own
        list.__setitem__(self, index, float(value))
        frame = sys._getframe(1)  # noqa: SLF001 - as in `_Record`
        self.writers[index % len(self)] = (frame.f_code, frame.f_lineno)


def _as_int(value: Any) -> int:  # noqa: ANN401 - what it is, is the question
    if type(value) is not int:
        if isinstance(value, float):
            raise TypeError(f"an int field was given the float {value!r}; write int(...) or math.floor(...)")
        value = int(value)
    if value not in _INT64:
        raise OverflowError(f"{value} does not fit 64 bits")
    return typing.cast("int", value)


class _Record:
    """Base of the plain objects.

    Fields are in ``__slots__``; ``_writers`` has the line that wrote each field last.
    """

    __slots__ = ("_writers",)
    _writers: dict[str, Writer]
    _floats: frozenset[str] = frozenset()
    _arrays: frozenset[str] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401 - refuses what does not fit
        if name in self._arrays:
            raise TypeError(f"'{name}' is an array; write its elements")
        object.__setattr__(self, name, float(value) if name in self._floats else _as_int(value))
        frame = sys._getframe(1)  # noqa: SLF001 - the documented way to the caller's line
        self._writers[name] = (frame.f_code, frame.f_lineno)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__slots__ if name != "_writers")
        return f"{type(self).__name__}({fields})"


class _FastRecord:
    """Base of records that an engine fills for every packet.

    It converts nothing and remembers no lines.
    """

    __slots__ = ()
    __repr__ = _Record.__repr__


def _watched(name: str) -> property:
    slot = f"_{name}"

    def write(record: Any, value: Any) -> None:  # noqa: ANN401
        setattr(record, slot, _as_int(value))
        frame = sys._getframe(1)  # noqa: SLF001 - as in `_Record`
        record._writers[name] = (frame.f_code, frame.f_lineno)  # noqa: SLF001

    return property(operator.attrgetter(slot), write)


class RecordLayout:
    """The fields of one record in their order, and its two forms.

    Parameters
    ----------
    name : of the plain class, for people
    fields : in the order of the record
    checked : whether the plain object converts, refuses and remembers lines as the module says
    watched : of a record that is not checked, the fields that are

    Attributes
    ----------
    dtype : of the record; a layout without fields gets one unused int64, since an empty record has no address
    """

    def __init__(
        self, name: str, fields: Iterable[Field], *, checked: bool = True, watched: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self.fields = tuple(fields)
        self.dtype = np.dtype([_column(field) for field in self.fields] or [("_unused", np.int64)])
        scalars = [field for field in self.fields if field.size == 0]
        base = _Record if checked else _FastRecord
        body: dict[str, Any] = {"__slots__": tuple(field.name for field in self.fields)}
        if checked:
            body["_floats"] = frozenset(field.name for field in scalars if field.type == "float")
            body["_arrays"] = frozenset(field.name for field in self.fields if field.size)
        if watched:
            body["__slots__"] = (*(f"_{n}" if n in watched else n for n in body["__slots__"]), "_writers")
            body |= {name: _watched(name) for name in watched}
        form = "".join(f"{max(f.size, 1)}{'d' if f.type == 'float' else 'q'}" for f in self.fields)
        self._struct = struct.Struct(f"={form or '8x'}")
        self._remembers = checked or bool(watched)
        self._class = type(name, (base,), body)
        # An engine makes a signal for every packet, so the slots' own writers are looked up once.
        writers = {
            f.name: getattr(self._class, f"_{f.name}" if f.name in watched else f.name).__set__ for f in self.fields
        }
        self._writers = writers
        plain = [(writers[f.name], _plain(f, f.initial)) for f in self.fields]
        self._scalars = [(write, value) for write, value in plain if not isinstance(value, list)]
        self._arrays = [
            (write, type(value) if checked else list, value) for write, value in plain if isinstance(value, list)
        ]

    @classmethod
    def of_dtype(cls, name: str, dtype: np.dtype[np.void], *, watched: tuple[str, ...] = ()) -> RecordLayout:
        """Layout of an interface record; its plain object is fast, not checked."""
        columns = [(n, dtype[n].base, dtype[n].shape) for n in dtype.names or ()]
        return cls(name, prefix_fields(columns), checked=False, watched=watched)

    def new(self) -> Any:  # noqa: ANN401 - the class is made here
        """A plain object with the initial values."""
        made: Any = self._class()
        if self._remembers:
            object.__setattr__(made, "_writers", {})
        for write, value in self._scalars:
            write(made, value)
        for write, make, values in self._arrays:
            write(made, make(values))
        return made

    def place(self, name: str) -> int:
        """Place of a field, or of its first element, in numbers of eight bytes.

        Parameters
        ----------
        name : of a field

        Raises
        ------
        KeyError : there is no such field
        """
        fields = self.dtype.fields
        if fields is None:
            raise KeyError(name)
        offset_bytes: int = fields[name][1]
        return offset_bytes // np.dtype(np.int64).itemsize

    def writer(self, name: str) -> Callable[[Any, Any], None]:
        """Function that writes a field of a plain object directly.

        It does not check the value or remember the line.
        """
        written: Callable[[Any, Any], None] = self._writers[name]
        return written

    @property
    def initial_bytes(self) -> bytes:
        """A record with the initial values."""
        return self.pack(self.new())

    def pack(self, record: Any) -> bytes:  # noqa: ANN401
        """The bytes of a plain object's record."""
        values: list[float] = []
        for field in self.fields:
            value = getattr(record, field.name)
            if field.size:
                values.extend(value)
            else:
                values.append(value)
        return self._struct.pack(*values)

    def unpack(self, data: bytes) -> Any:  # noqa: ANN401
        """The plain object of a record's bytes."""
        values = iter(self._struct.unpack(data))
        made = self.new()
        for field in self.fields:
            taken = tuple(itertools.islice(values, max(field.size, 1)))
            object.__setattr__(made, field.name, _plain(field, taken))
        return made


def _column(field: Field) -> tuple[str, type] | tuple[str, type, tuple[int]]:
    kind = np.float64 if field.type == "float" else np.int64
    return (field.name, kind, (field.size,)) if field.size else (field.name, kind)


def _plain(field: Field, values: Sequence[float]) -> object:
    if not field.size:
        return float(values[0]) if field.type == "float" else int(values[0])
    if field.type == "float":
        return _Floats(float(value) for value in values)
    return _Ints(int(value) for value in values)


def place_of(record: Any, name: str, index: int | None = None) -> tuple[str, int] | None:  # noqa: ANN401
    """File and line that last wrote a field or array element; None if none has.

    It works on checked records.
    """
    writers = record._writers if index is None else getattr(record, name).writers  # noqa: SLF001
    writer: Writer | None = writers.get(name if index is None else index)
    return None if writer is None else (writer[0].co_filename, writer[1])


def prefix_fields(columns: Iterable[tuple[Any, ...]]) -> tuple[Field, ...]:
    """Fields of the interface's tables, with initial values of an engine."""
    fields = []
    for name, kind, *shape in columns:
        size = shape[0][0] if shape and shape[0] else 0
        initial = (_PREFIX_INITIAL.get(name, 0),) * max(size, 1)
        fields.append(Field(name=name, type="float" if kind == np.float64 else "int", size=size, initial=initial))
    return tuple(fields)


def state_fields(owner: type, prefix: tuple[Field, ...]) -> tuple[Field, ...]:
    """Fields of the prefix, then annotated fields of a class, those of the parts that it inherits first.

    Raises
    ------
    TypeError : a field is not int, float, bool, list[int] or list[float]; or its default or its name is wrong
    """
    hints = typing.get_type_hints(owner)
    taken = {field.name for field in prefix}
    owners = [base for base in reversed(owner.__mro__[1:]) if base.__module__.startswith(f"{PARTS}.")] + [owner]
    fields = [_own_field(one, name, hints[name], taken) for one in owners for name in inspect.get_annotations(one)]
    twice = next((name for name, times in Counter(field.name for field in fields).items() if times > 1), None)
    if twice is not None:
        raise TypeError(f"'{owner.__name__}.{twice}': the name is that of a field of a part")
    return prefix + tuple(fields)


def _own_field(owner: type, name: str, hint: object, taken: set[str]) -> Field:
    if name in taken or name.startswith("_"):
        raise TypeError(f"'{owner.__name__}.{name}': the name is taken by Weftwork")
    default = owner.__dict__.get(name)
    if default is None and dataclasses.is_dataclass(owner):
        default = owner.__dataclass_fields__[name].default
    if hint in (int, float, bool):
        value = 0 if default is None else default
        if not isinstance(value, (int, float)) or (hint is not float and isinstance(value, float)):
            raise TypeError(f"'{owner.__name__}.{name}': the default {value!r} does not fit its type")
        return Field(name=name, type="float" if hint is float else "int", initial=(value,))
    if hint in (list[int], list[float]):
        if not isinstance(default, list) or not default:
            raise TypeError(f"'{owner.__name__}.{name}': an array needs its size, such as array(8)")
        return Field(
            name=name, type="float" if hint == list[float] else "int", size=len(default), initial=tuple(default)
        )
    raise TypeError(f"'{owner.__name__}.{name}': wanted int, float, bool, list[int] or list[float], found {hint!r}")
