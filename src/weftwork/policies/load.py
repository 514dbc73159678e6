"""Load a policy by name or file, with its parameters.

Catalogue and users' files share this way in. The folder is the catalogue; nothing registers itself. Numba is imported
only when a compiled step is asked for.
"""

from __future__ import annotations

import ast
import math
import traceback
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from weftwork.base.errors import ConfigError, Mistake, PolicyError, UsageError
from weftwork.base.findings import Findings
from weftwork.base.nearest import nearest
from weftwork.base.user_code import text_digest, text_of
from weftwork.policies.compile import Compiled, EntryPoint, compile_entries
from weftwork.policies.interface import OFF, CongestionControl, Kind, PortSelection
from weftwork.policies.layout import RecordLayout, place_of
from weftwork.policies.parameters import parameter_layout, resolve
from weftwork.policies.policy_file import CANDIDATE, KINDS, PORT_SIGNAL, SIGNAL, PolicyFile, checked_file
from weftwork.policies.standing_timers import due_timers, refuse_standing
from weftwork.spec.scenario.policies import PolicyKind

if TYPE_CHECKING:
    from weftwork.policies.step_file import StepFile

__all__ = ["KINDS", "CatalogueEntry", "LoadedPolicy", "catalogue", "load", "policy_names"]

_SHIPPED: Final = Path(__file__).parent
_OFFER_CHOICE, _OFFER_CHANNEL, _OFFER_WORD, _OFFER_VIA = (
    PORT_SIGNAL.writer(name) for name in ("choice", "virtual_channel", "word", "via")
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogueEntry:
    """One catalogue name.

    ``text`` is the first line of the file, ``source`` is the source that its plug-in cites.
    """

    name: str
    path: Path
    text: str
    source: str


def policy_names(kind: str) -> tuple[str, ...]:
    """Names of Weftwork's policies of one kind; reads no file.

    Parameters
    ----------
    kind : ``congestion_control``, ``path_selection`` or ``port_selection``
    """
    return tuple(_files(_kind(kind)))


def catalogue(kind: str) -> tuple[CatalogueEntry, ...]:
    """Weftwork's policies of one kind, by name.

    It reads the files and imports none.

    Parameters
    ----------
    kind : ``congestion_control``, ``path_selection`` or ``port_selection``
    """
    entries = []
    for name, path in _files(_kind(kind)).items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        text = (ast.get_docstring(tree) or "").split("\n", 1)[0]
        entries.append(CatalogueEntry(name=name, path=path, text=text, source=_cited(tree)))
    return tuple(entries)


def load(
    kind: str,
    name_or_path: str | Path,
    parameters: Mapping[str, Any] = MappingProxyType({}),
    variant: str | None = None,
    *,
    path: str | None = None,
) -> LoadedPolicy:
    """Load a policy, check its steps and resolve its parameters.

    Parameters
    ----------
    kind : ``congestion_control``, ``path_selection`` or ``port_selection``
    name_or_path : a name of the catalogue, or the path of a Python file (it ends in ``.py`` or holds a ``/``)
    parameters : name to number or text with a unit; ``variant`` among them is taken as the next argument
    variant : a named set of parameters of the policy; ``parameters`` override it
    path : dotted path of the scenario's key, for messages; by default the kind

    Raises
    ------
    ConfigError : unknown name, parameter or variant, a value out of range, or no such file; with all mistakes
    PolicyError : the file is wrong; with file and line
    """
    wanted = _kind(kind)
    key = path if path is not None else wanted
    file = _find(wanted, name_or_path, key)
    policy_file = checked_file(wanted, file, text_of(file, PolicyError))
    given = dict(parameters)
    chosen = given.pop("variant", None) if variant is None else variant
    findings = Findings(source=str(name_or_path))
    named: Mapping[str, Any] = {}
    if chosen is not None and chosen not in policy_file.plugin.variants:
        names = ", ".join(policy_file.plugin.variants) or "none"
        fix = nearest(str(chosen), policy_file.plugin.variants)
        findings.wrong(f"{key}.variant", f"found {chosen!r}, wanted {names}", fix)
    elif chosen is not None:
        named = policy_file.plugin.variants[chosen]
    values = resolve(policy_file.rows, {**named, **given}, key, findings)
    findings.refuse()
    return LoadedPolicy(policy_file, values)


class LoadedPolicy:
    """A policy with its parameters, ready for either engine.

    Attributes
    ----------
    kind, name : ``name`` is the catalogue's, or the file's without ``.py``
    source_path, source_text : the file
    plugin : its ``PLUGIN``
    rows : its parameters, for documentation
    values : parameter to number
    state, receiver, shared, port_state : layouts of its states; the last three None where it has none
    params : plain object of the parameters
    """

    def __init__(self, file: PolicyFile, values: Mapping[str, float]) -> None:
        self._file = file
        self.kind: PolicyKind = file.kind
        self.name = file.path.stem.replace("_", "-")
        self.source_path = file.path
        self.source_text = file.source
        self.plugin = file.plugin
        self.rows = file.rows
        self.values = MappingProxyType(dict(values))
        self.state = file.state
        self.receiver = file.receiver
        self.shared = file.shared
        self.port_state = file.port_state
        self._params = parameter_layout(file.rows, values)
        self.params = self._params.new()

    def offering(self, name: str, **changes: Any) -> LoadedPolicy:  # noqa: ANN401 - fields of the plug-in
        """The same policy with some declarations of its plug-in changed.

        Parameters
        ----------
        name : that it is called by
        changes : fields of the plug-in, such as ``virtual_channels``
        """
        other = copy(self)
        other.name = name
        other.plugin = replace(self.plugin, **changes)
        return other

    @property
    def is_shipped(self) -> bool:
        """Whether it is a file of Weftwork, and not of the user."""
        return self.source_path.is_relative_to(_SHIPPED)

    @property
    def params_dtype(self) -> np.dtype[np.void]:
        """NumPy type of the parameter record."""
        return self._params.dtype

    @property
    def params_bytes(self) -> bytes:
        """The record of the parameters."""
        return self._params.initial_bytes

    @property
    def state_dtype(self) -> np.dtype[np.void]:
        """NumPy type of the state of a sender, path or switch."""
        return self.state.dtype

    @property
    def initial_state_bytes(self) -> bytes:
        """A new state as a record."""
        return self.state.initial_bytes

    def new_state(self) -> Any:  # noqa: ANN401 - the class is the policy's
        """A new state as a plain object: prefix fields, then policy fields."""
        return self.state.new()

    def new_receiver_state(self) -> Any:  # noqa: ANN401
        """A new receiver's state; None for a policy without ``receive``."""
        return None if self.receiver is None else self.receiver.new()

    def new_shared_state(self) -> Any:  # noqa: ANN401
        """A new record shared by queue pairs of one receiving NIC, or None."""
        return None if self.shared is None else self.shared.new()

    def new_port_states(self, ports: int) -> list[Any] | None:
        """New records of the ports of one switch; None for a policy without them."""
        return None if self.port_state is None else [self.port_state.new() for _ in range(ports)]

    @staticmethod
    def new_signal() -> Any:  # noqa: ANN401
        """A plain signal, all 0, for congestion control or path selection."""
        return SIGNAL.new()

    @staticmethod
    def new_port_signal() -> Any:  # noqa: ANN401
        """A plain signal for a port selection, all 0.

        Its packet goes to its destination at once.
        """
        signal = PORT_SIGNAL.new()
        signal.via = OFF
        return signal

    @staticmethod
    def offer(signal: Any, *, virtual_channel: int, word: int, via: int) -> None:  # noqa: ANN401
        """Write the changeable fields into a port selection's signal.

        The choice is 0.
        """
        _OFFER_CHOICE(signal, 0)
        _OFFER_CHANNEL(signal, virtual_channel)
        _OFFER_WORD(signal, word)
        _OFFER_VIA(signal, via)

    @staticmethod
    def new_candidates(count: int) -> list[Any]:
        """Plain candidates of a port selection."""
        return [CANDIDATE.new() for _ in range(count)]

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the file, the parts that it imports and the parameters, for provenance."""
        parts = (part.text for part in self._file.parts)
        return text_digest(self.kind, self.source_text, *parts, repr(sorted(self.values.items())))

    @property
    def fields(self) -> AbstractSet[tuple[str, str]]:
        """Fields that the steps read or write: name of the record (``Signal``, ``State``), and of the field."""
        return self._file.checked.fields

    @property
    def kinds(self) -> AbstractSet[Kind]:
        """Kinds of signals that the steps name."""
        return self._file.checked.kinds

    @property
    def step_file(self) -> StepFile:
        """The file with its syntax tree, for what is found by reading it."""
        return self._file.steps

    @property
    def signal_layout(self) -> RecordLayout:
        """Layout of the signal that the step takes."""
        return PORT_SIGNAL if self.kind == "port_selection" else SIGNAL

    @property
    def candidate_layout(self) -> RecordLayout:
        """Layout of one candidate of a port selection."""
        return CANDIDATE

    def compile(self) -> Compiled:
        """Compile the steps of sender and receiver, or take them from the cache.

        Raises
        ------
        PolicyError : Numba refuses the step; with file and line
        ConfigError : the cache folder cannot be written
        """
        return self._compiled

    @cached_property
    def _compiled(self) -> Compiled:
        signal = self.signal_layout.dtype
        params = self._params.dtype
        if self.kind == "port_selection":
            rows = None if self.port_state is None else self.port_state.dtype
            entry = EntryPoint(
                name=self.plugin.step.__name__,
                arguments=(params, self.state.dtype, rows, signal, CANDIDATE.dtype),
                lengths=((2, "ports"), (4, "candidates")),
                signal=3,
                left_out=(2,) if rows is None else (),
            )
            entries = [entry]
        else:
            entries = [EntryPoint(name=self.plugin.step.__name__, arguments=(params, self.state.dtype, signal))]
        if self.receiver is not None:
            shared = None if self.shared is None else self.shared.dtype
            receive = cast("CongestionControl", self.plugin).receive
            name = getattr(receive, "__name__", "receive")
            entries.append(EntryPoint(name=name, arguments=(params, self.receiver.dtype, shared, signal)))
        return compile_entries(self._file.steps, self._file.checked, tuple(entries))

    # Calls in plain Python, with the errors of the file's author.

    def call_step(
        self,
        state: Any,  # noqa: ANN401
        signal: Any,  # noqa: ANN401
        candidates: Any = None,  # noqa: ANN401
        ports: Any = None,  # noqa: ANN401
        *,
        via_changes: int = 0,
    ) -> None:
        """Call the step as plain Python and check its results.

        Parameters
        ----------
        state, signal : its records
        candidates : of a port selection
        ports : records of the ports of the switch, for a port selection with a ``port_state``
        via_changes : how often it has changed ``via`` of this packet at this switch: once, it may only set it OFF;
            twice, it may not change it

        Raises
        ------
        PolicyError : it raised, or wrote what no engine can obey; with file and line
        """
        rows = () if ports is None else (ports,)
        told = () if candidates is None else (candidates,)
        via_before = OFF if candidates is None else signal.via
        self._call(self.plugin.step, (self.params, state, *rows, signal, *told))
        if self.kind == "congestion_control":
            self._want_control(state)
        elif self.kind == "path_selection":
            self._want(state, "entropy", 0 <= state.entropy <= 65535, "wanted 0 to 65535")
        else:
            self._want_choice(signal, via_before, via_changes)

    def _want_control(self, state: Any) -> None:  # noqa: ANN401
        """Refuse values that no sender can obey."""
        asks = state.timeout_ps | state.segment_bytes | state.request_bytes  # below 0 where one of them is
        if not (0 < state.rate_bps < math.inf and 0 <= state.window_bytes < math.inf and asks >= 0):
            self._want(state, "rate_bps", 0 < state.rate_bps < math.inf, "wanted a finite rate above 0")
            self._want(state, "window_bytes", 0 <= state.window_bytes < math.inf, "wanted a finite window from 0 on")
            for name in ("timeout_ps", "segment_bytes", "request_bytes"):
                self._want(state, name, getattr(state, name) >= 0, "wanted 0 or more")

    def _want_choice(self, signal: Any, via_before: int, via_changes: int) -> None:  # noqa: ANN401
        """Refuse values that no switch can obey."""
        channels = cast("PortSelection", self.plugin).virtual_channels
        choice, held, via = signal.choice, signal.virtual_channel, signal.via
        keeps = via_changes == 0 or via_before == via or (via_changes == 1 and via == OFF)
        if 0 <= choice < signal.candidates and 0 <= held < channels and OFF <= via < signal.edges and keeps:
            return
        last = signal.candidates - 1
        self._want(signal, "choice", 0 <= choice <= last, f"wanted 0 to {last}, the last candidate")
        most = channels - 1
        self._want(signal, "virtual_channel", 0 <= held <= most, f"wanted 0 to {most}, the last one of PLUGIN")
        edges = signal.edges - 1
        self._want(signal, "via", OFF <= via <= edges, f"wanted OFF or 0 to {edges}, the last edge")
        kept = f"wanted {via_before}, since the step has set it in an earlier call for this packet"
        if via_changes == 1:
            kept = f"wanted {via_before} or OFF, since the step has set it in its first call for this packet"
        self._want(signal, "via", keeps, kept)

    def call_receive(self, state: Any, shared: Any, signal: Any) -> None:  # noqa: ANN401
        """Call the receiver's step as `call_step` calls the sender's."""
        before = state.credit_bytes
        receive = cast("CongestionControl", self.plugin).receive
        if receive is None:
            raise UsageError(f"{self.name} has no receiver's step")
        self._call(receive, (self.params, state, shared, signal))
        granted = f"wanted at least {before}, the credit granted before; it counts all credit"
        self._want(state, "credit_bytes", state.credit_bytes >= before, granted)

    def replay(
        self,
        state_bytes: bytes,
        signal_bytes: bytes,
        *,
        candidate_bytes: bytes = b"",
        port_bytes: bytes = b"",
        shared_bytes: bytes | None = None,
        receiver: bool = False,
        via_changes: int = 0,
        stands_still: bool = False,
    ) -> None:
        """Repeat a failed compiled call in plain Python.

        It uses copies of its records from before the call.

        Parameters
        ----------
        state_bytes, signal_bytes : records before the call; with ``receiver`` the state is the receiver's
        candidate_bytes, port_bytes : the arrays of candidates and of the ports' records, for a port selection
        shared_bytes : the shared record, where the policy has one
        via_changes : as of `call_step`
        stands_still : whether the call set a timer to its instant once more than `MOST_FIRINGS` allows

        Raises
        ------
        PolicyError : always where plain Python fails too; with file and line. A return means that the compiled step and
            the Python one differ: an error of Weftwork, or integers that left 64 bits
        """
        signal = self.signal_layout.unpack(signal_bytes)
        layout = self.receiver if receiver else self.state
        if layout is None:
            raise UsageError(f"{self.name} has no receiver's step")
        state = layout.unpack(state_bytes)
        due = due_timers(state, signal.now_ps) if stands_still else frozenset()
        if receiver:
            shared = None if self.shared is None or shared_bytes is None else self.shared.unpack(shared_bytes)
            self.call_receive(state, shared, signal)
            if stands_still:
                self.refuse_standing(state, due, signal.now_ps)
            return
        candidates = _rows(CANDIDATE, candidate_bytes) if self.kind == "port_selection" else None
        ports = None if self.port_state is None else _rows(self.port_state, port_bytes)
        self.call_step(state, signal, candidates, ports, via_changes=via_changes)
        if stands_still:
            self.refuse_standing(state, due, signal.now_ps)

    def refuse_standing(self, state: Any, before: AbstractSet[int], now_ps: int) -> None:  # noqa: ANN401
        """Refuse timers that are set to the present or the past.

        See `standing_timers`.
        """
        refuse_standing(str(self.source_path), state, before, now_ps)

    def _call(self, step: Any, arguments: tuple[Any, ...]) -> None:  # noqa: ANN401
        try:
            step(*arguments)
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, NameError) as error:
            # The last line of the policy and its parts: below it lies only the record that refused a value.
            files = {self._file.steps.path, *(part.path for part in self._file.parts)}
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
            place = (frames[-1].filename, frames[-1].lineno or 1) if frames else None
            raise self._error(place, f"{type(error).__name__}: {error}") from error

    def _want(self, record: Any, name: str, holds: bool, wanted: str) -> None:  # noqa: ANN401, FBT001
        if not holds:
            raise self._error(place_of(record, name), f"{name} became {getattr(record, name)!r}, {wanted}")

    def _error(self, place: tuple[str, int] | None, text: str) -> PolicyError:
        return PolicyError(*(place or (str(self.source_path), self.plugin.step.__code__.co_firstlineno)), text)


def _rows(layout: RecordLayout, data: bytes) -> list[Any]:
    """The bytes of an array of records as plain objects."""
    size = layout.dtype.itemsize
    return [layout.unpack(data[at : at + size]) for at in range(0, len(data), size)]


def _kind(kind: str) -> PolicyKind:
    wanted = kind.replace("-", "_")
    if wanted not in KINDS:
        raise UsageError(f"found the kind {kind!r}, wanted {', '.join(KINDS)}")
    return cast("PolicyKind", wanted)


def _files(kind: PolicyKind) -> dict[str, Path]:
    folder = Path(__file__).parent / kind
    files = (file for file in sorted(folder.glob("*.py")) if file.stem != "__init__")
    return {file.stem.replace("_", "-"): file for file in files}


def _find(kind: PolicyKind, name_or_path: str | Path, key: str) -> Path:
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(".py") or "/" in text:
        file = Path(name_or_path)
        if file.is_file():
            return file.resolve()
        raise ConfigError(text, [Mistake(path=key, text=f"there is no file '{text}'")])
    files = _files(kind)
    name = text.replace("_", "-")
    if name not in files:
        wanted = f"found '{text}', wanted {', '.join(files)} or the path of a file"
        raise ConfigError(text, [Mistake(path=key, text=wanted, fix=nearest(text, files))])
    return files[name]


def _cited(tree: ast.Module) -> str:
    """Text of ``PLUGIN``'s ``source``, read without an import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "source" and isinstance(node.value, ast.Constant):
            owner = next(p for p in ast.walk(tree) if isinstance(p, ast.Call) and node in p.keywords)
            if isinstance(owner.func, ast.Name) and owner.func.id in {k.__name__ for k in KINDS.values()}:
                return str(node.value.value)
    return ""
