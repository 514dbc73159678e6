"""Shell completion of names of the catalogue and keys of a scenario.

Leaves out: files, which the shell completes itself; values behind ``--set KEY=``, since bash takes ``=`` for the end of
a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["controls", "keys", "kinds", "models", "nodes", "operations", "path_selections", "port_selections",
           "set_keys", "templates", "trainers"]  # fmt: skip


def kinds(incomplete: str) -> list[str]:
    """Kinds of ``weftwork list``."""
    from weftwork.cli.list import KINDS

    return _begun(incomplete, KINDS)


def templates(incomplete: str) -> list[str]:
    """Kinds of ``weftwork new``."""
    from weftwork.cli.new import RECIPE, TEMPLATES

    return _begun(incomplete, [*(kind.replace("_", "-") for kind in TEMPLATES), RECIPE])


def models(incomplete: str) -> list[str]:
    """Models of the catalogue."""
    from weftwork.workload.models.catalogue import MODELS

    return _begun(incomplete, MODELS)


def nodes(incomplete: str) -> list[str]:
    """Servers of the catalogue."""
    from weftwork.hardware.catalogue import SERVERS

    return _begun(incomplete, SERVERS)


def trainers(incomplete: str) -> list[str]:
    """Trainers that plans can be for."""
    from weftwork.study.plan.trainers import ANY, TRAINERS

    return _begun(incomplete, [*TRAINERS, ANY])


def operations(incomplete: str) -> list[str]:
    """Collective operations."""
    from weftwork.spec.scenario.workload import OPERATIONS

    return _begun(incomplete, OPERATIONS)


def _policies(kind: str) -> Callable[[str], list[str]]:
    def found(incomplete: str) -> list[str]:
        from weftwork.policies.load import policy_names

        return _begun(incomplete, policy_names(kind))

    found.__doc__ = f"Names of policies of the kind {kind}."
    return found


controls = _policies("congestion_control")
path_selections = _policies("path_selection")
port_selections = _policies("port_selection")


def keys(incomplete: str) -> list[str]:
    """Keys of a scenario.

    Sections come first; keys of a section follow its dot.
    """
    from weftwork.spec.scenario.scenario import rows

    depth = incomplete.count(".")
    return _begun(incomplete, dict.fromkeys(one.path for one in rows() if one.path.count(".") == depth))


def set_keys(incomplete: str) -> list[str]:
    """Keys of a scenario for ``--set``.

    A key that takes a value ends in ``=``.
    """
    from weftwork.spec.scenario.scenario import rows

    around = {one.path.rpartition(".")[0] for one in rows()}
    return [key if key in around else f"{key}=" for key in keys(incomplete)]


def _begun(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
