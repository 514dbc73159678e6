"""A policy's file: imported and checked, without values of its parameters.

The same file is checked once in a process, however many scenarios and what-ifs name it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Final, cast

from weftwork.base.errors import PolicyError
from weftwork.base.record_call import check_record_call
from weftwork.base.user_code import TOO_DEEP, imported, line_of_constant, parsed
from weftwork.policies.check import Checked, RecordsType, RecordType, Type, check_imports, check_step
from weftwork.policies.interface import (
    CANDIDATE_DTYPE,
    CONGESTION_CONTROL_PREFIX,
    PATH_SELECTION_PREFIX,
    PORT_SIGNAL_DTYPE,
    RECEIVER_PREFIX,
    SIGNAL_DTYPE,
    WRITTEN_BY_PORT_SELECTION,
    CongestionControl,
    PathSelection,
    Plugin,
    PortSelection,
)  # fmt: skip
from weftwork.policies.layout import RecordLayout, prefix_fields, state_fields
from weftwork.policies.parameters import parameter_layout, parameter_rows
from weftwork.policies.plugin_types import wrong_field
from weftwork.policies.step_file import StepFile, parts_of
from weftwork.spec.scenario.policies import PolicyKind

__all__ = ["CANDIDATE", "KINDS", "PORT_SIGNAL", "SIGNAL", "PolicyFile", "checked_file"]

KINDS: Final[Mapping[PolicyKind, type]] = MappingProxyType(
    {"congestion_control": CongestionControl, "path_selection": PathSelection, "port_selection": PortSelection}
)
_PREFIX: Final = {
    "congestion_control": prefix_fields(CONGESTION_CONTROL_PREFIX),
    "path_selection": prefix_fields(PATH_SELECTION_PREFIX),
    "port_selection": (),
}
SIGNAL: Final = RecordLayout.of_dtype("Signal", SIGNAL_DTYPE)
PORT_SIGNAL: Final = RecordLayout.of_dtype("PortSignal", PORT_SIGNAL_DTYPE, watched=WRITTEN_BY_PORT_SELECTION)
CANDIDATE: Final = RecordLayout.of_dtype("Candidate", CANDIDATE_DTYPE)


class PolicyFile:
    """One file, imported and checked.

    Parameters
    ----------
    kind : of the policy
    path, source : the file and its text

    Attributes
    ----------
    steps : the file as `StepFile`
    parts : those that it imports
    plugin, rows : its ``PLUGIN``, and its parameters
    state, receiver, shared, port_state : layouts of its states; the last three None where it has none
    checked : functions of the file that its steps need, fields that they read or write, kinds of signals that they name

    Raises
    ------
    PolicyError : the file is wrong; with file and line
    """

    def __init__(self, kind: PolicyKind, path: Path, source: str) -> None:
        self.kind = kind
        self.path = path
        shown = str(path)
        self.source = source
        tree = parsed(path, self.source, PolicyError)
        check_imports(shown, tree)
        check_record_call(path, tree, "PLUGIN", KINDS.values(), PolicyError)
        self.parts = parts_of(tree)
        self.module = imported(path, self.source, PolicyError)
        self.steps = StepFile(path=shown, text=source, tree=tree, namespace=vars(self.module))
        self.plugin = _plugin(kind, shown, tree, self.module)
        try:
            self.rows = parameter_rows(self.plugin.params)
            self.state = RecordLayout("State", state_fields(self.plugin.state, _PREFIX[kind]))
            self.receiver = self.shared = self.port_state = None
            if isinstance(self.plugin, PortSelection) and self.plugin.port_state is not None:
                self.port_state = RecordLayout("PortState", state_fields(self.plugin.port_state, ()))
            if isinstance(self.plugin, CongestionControl) and self.plugin.receive is not None:
                if self.plugin.receiver_state is not None:
                    owner = self.plugin.receiver_state
                    self.receiver = RecordLayout("ReceiverState", state_fields(owner, prefix_fields(RECEIVER_PREFIX)))
                if self.plugin.shared_state is not None:
                    self.shared = RecordLayout("SharedState", state_fields(self.plugin.shared_state, ()))
        except (TypeError, NameError) as error:
            raise PolicyError(shown, _line_of_class(tree, str(error)), str(error)) from error
        try:
            self.checked = self._checked_steps(shown, tree)
        except RecursionError as error:
            raise PolicyError(shown, line_of_constant(tree, "PLUGIN"), TOO_DEEP) from error

    def _checked_steps(self, shown: str, tree: ast.Module) -> Checked:
        params = RecordType(layout=parameter_layout(self.rows, {row.name: row.default for row in self.rows}))
        state = RecordType(layout=self.state, writable=None)
        signal: Type = RecordType(layout=SIGNAL)
        arguments: tuple[Type, ...] = (params, state, signal)
        if self.kind == "port_selection":
            signal = RecordType(layout=PORT_SIGNAL, writable=frozenset(WRITTEN_BY_PORT_SELECTION))
            rows = () if self.port_state is None else (RecordsType(layout=self.port_state, writable=None),)
            arguments = (params, state, *rows, signal, RecordsType(layout=CANDIDATE))
        steps: list[tuple[Any, tuple[Type, ...]]] = [(self.plugin.step, arguments)]
        if isinstance(self.plugin, CongestionControl) and self.plugin.receive is not None:
            if self.receiver is None:
                raise PolicyError(shown, line_of_constant(tree, "PLUGIN"), "'receive' needs a 'receiver_state'")
            own = RecordType(layout=self.receiver, writable=None)
            shared = None if self.shared is None else RecordType(layout=self.shared, writable=None)
            steps.append((self.plugin.receive, (params, own, shared, signal)))
        checked = Checked()
        for step, types in steps:
            name = getattr(step, "__name__", "")
            if name not in self.steps.functions or getattr(self.module, name, None) is not step:
                raise PolicyError(
                    shown, line_of_constant(tree, "PLUGIN"), "a step is a function at the top of the file"
                )
            of_step = check_step(self.steps, name, types)
            checked.functions |= of_step.functions
            checked.part_functions |= of_step.part_functions
            checked.fields |= of_step.fields
            checked.kinds |= of_step.kinds
        return checked


@lru_cache(maxsize=64)  # chosen: more files than a sweep names
def checked_file(kind: PolicyKind, path: Path, source: str) -> PolicyFile:
    """A file of this text, checked once in a process.

    A run and its what-ifs name the same files many times.
    """
    return PolicyFile(kind, path, source)


def _plugin(kind: PolicyKind, shown: str, tree: ast.Module, module: ModuleType) -> Plugin:
    plugin = getattr(module, "PLUGIN", None)
    wanted = KINDS[kind].__name__
    if plugin is None:
        raise PolicyError(shown, 1, f"the file offers no PLUGIN = {wanted}(...)")
    if not isinstance(plugin, KINDS[kind]):
        found = type(plugin).__name__
        raise PolicyError(
            shown, line_of_constant(tree, "PLUGIN"), f"PLUGIN is a {found}, wanted a {wanted} for a {kind}"
        )
    wrong = wrong_field(cast("Plugin", plugin))
    if wrong is not None:
        raise PolicyError(shown, line_of_constant(tree, "PLUGIN"), wrong)
    return cast("Plugin", plugin)


def _line_of_class(tree: ast.Module, message: str) -> int:
    """Line of the field that a message names, else of the plug-in.

    A field is named 'Class.field'.
    """
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef):
            for node in owner.body:
                if isinstance(node, ast.AnnAssign) and f"'{owner.name}.{ast.unparse(node.target)}'" in message:
                    return node.lineno
    return line_of_constant(tree, "PLUGIN")
