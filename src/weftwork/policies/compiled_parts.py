"""Functions of parts as compiled steps call them.

A part is compiled as a policy's own functions are, with the arithmetic of `weftwork.policies.arithmetic` in place of
Python's. Each policy has compiled functions of its own: Numba takes a state that begins with the fields of another one
for the same, and would call what it has compiled for that policy.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

import numba

from weftwork.policies import arithmetic
from weftwork.policies.step_file import arithmetic_name, is_part_function, part_file

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["CompiledParts"]


class CompiledParts:
    """The parts of one policy.

    Parameters
    ----------
    needed : full name of the part, and name, of each function that the policy's steps call; only these are prepared
    """

    def __init__(self, needed: Collection[tuple[str, str]]) -> None:
        self._needed = frozenset(needed)
        self._globals: dict[str, dict[str, Any]] = {}

    def function(self, module: str, name: str) -> Any:  # noqa: ANN401 - Numba's class has no public name
        """A function of a part, to be called by compiled code.

        Parameters
        ----------
        module : full name of the part
        name : of the function
        """
        if module not in self._globals:
            self._globals[module] = self._compiled(module)
        return self._globals[module][name]

    def _compiled(self, module: str) -> dict[str, Any]:
        """Globals of a part in which every needed function is a compiled one."""
        file = part_file(module)
        own = {(module, name) for name in file.functions}
        made = dict(file.namespace)
        for name, value in file.namespace.items():
            replaced = arithmetic_name(value)
            if replaced is not None:
                made[name] = getattr(arithmetic, replaced) if replaced else arithmetic
            elif is_part_function(value) and (value.__module__, value.__name__) in self._needed - own:
                made[name] = self.function(value.__module__, value.__name__)
        made["int"] = arithmetic.integer
        options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **arithmetic.OPTIONS}
        compiler = numba.njit(**options)
        for _, name in sorted(own & self._needed):
            made[name] = compiler(FunctionType(file.namespace[name].__code__, made, name))
        return made
