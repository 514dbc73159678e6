"""Hash of each switch of a fabric.

Seed and offset follow from the tier; a user may set others for some switches. `docs/models/packet-engine.md`, section
Hash, has the rule. There is one device for each way in which a kind of
switch hashes, so that the engines need no table of their own.
Leaves out: the digest itself (`weftwork.engine.hashing`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.spec.device import HashFunction, Switch
from weftwork.spec.fabric import SWITCH, Fabric
from weftwork.spec.scenario.devices import hash_mistakes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.spec.scenario.hashes import HashSection

__all__ = ["hashed_by_tier", "with_hashes"]

_TIER = re.compile(r"tier(?P<number>[1-9][0-9]{0,2})")


def hashed_by_tier(fabric: Fabric) -> tuple[tuple[Switch, ...], NDArray[np.int32]]:
    """Give every switch seed and offset of its tier as defaults.

    Parameters
    ----------
    fabric : whose devices exist; a device that no switch uses is taken for a leaf's

    Returns
    -------
    switches, node_device : as `Fabric` has them; every hash has a seed and an offset
    """
    if all(None not in (switch.hash.seed, switch.hash.offset) for switch in fabric.switches):
        return fabric.switches, fabric.node_device.astype(np.int32)
    nodes = np.flatnonzero(fabric.node_kind == SWITCH)
    pairs = np.stack([fabric.node_device[nodes], fabric.node_tier[nodes]])
    used, pair_of_node = np.unique(pairs, axis=1, return_inverse=True)
    unused = sorted(set(range(len(fabric.switches))) - set(used[0].tolist()))
    kinds = [(device, tier) for device, tier in used.T.tolist()] + [(device, 1) for device in unused]
    order = sorted(range(len(kinds)), key=lambda kind: kinds[kind])
    hashed = [(device, fabric.switches[device].hash.on_tier(tier)) for device, tier in (kinds[k] for k in order)]
    number_of = np.empty(len(kinds), np.int64)
    number_of[order] = np.arange(len(kinds))
    return _joined(fabric, nodes, number_of[pair_of_node.ravel()], hashed)


def with_hashes(fabric: Fabric, entries: Sequence[HashSection]) -> Fabric:
    """Apply the entries of ``fabric.hash`` to the switches.

    Of two entries about the same switch, one that names it counts more than one about its word, and that more than one
    about its tier, field by field. A field that no entry sets stays as it was.

    Parameters
    ----------
    fabric : from `assemble`
    entries : each about some of its switches

    Raises
    ------
    ConfigError : an entry about switches that the fabric does not have, or with an offset beyond the digest
    """
    if not entries:
        return fabric
    nodes = np.flatnonzero(fabric.node_kind == SWITCH)
    place = {node: number for number, node in enumerate(nodes.tolist())}
    words = [fabric.node_names[node].rstrip("0123456789") for node in place]
    names = {fabric.node_names[node] for node in place}
    mistakes: list[Mistake] = []
    ranked: list[tuple[int, NDArray[np.bool_], HashSection, int]] = []
    for index, entry in enumerate(entries):
        rank, chosen = _chosen(fabric, nodes, words, names, entry.switches)
        if not chosen.any():
            known = list(dict.fromkeys([*words, *(f"tier{tier}" for tier in np.unique(fabric.node_tier[nodes]))]))
            text = f"found '{entry.switches}', wanted the name of a switch, or {', '.join(known[:9])}"
            mistakes.append(Mistake(path=f"fabric.hash.{index}.switches", text=text,
                                    fix=nearest(entry.switches, [*known, *names])))  # fmt: skip
        ranked.append((rank, chosen, entry, index))
    _refuse(mistakes)
    kind = np.arange(len(nodes))
    hashed: list[tuple[int, HashFunction]] = []
    number: dict[tuple[int, tuple[int, ...]], int] = {}
    ranked.sort(key=lambda one: one[0])
    devices = fabric.node_device[nodes].tolist()
    hits = np.stack([chosen for _, chosen, _, _ in ranked], axis=1)
    for at, device in enumerate(devices):
        applied = tuple(np.flatnonzero(hits[at]).tolist())
        if (device, applied) not in number:
            function = fabric.switches[device].hash
            for which in applied:
                _, _, entry, index = ranked[which]
                function = function.model_copy(update=entry.settings())
                mistakes += [Mistake(path=f"fabric.hash.{index}.{key}", text=text)
                             for key, text in hash_mistakes(function)]  # fmt: skip
            number[device, applied] = len(hashed)
            hashed.append((device, function))
        kind[at] = number[device, applied]
    _refuse(mistakes)
    switches, node_device = _joined(fabric, nodes, kind, hashed)
    return replace(fabric, switches=switches, node_device=node_device)


def _chosen(
    fabric: Fabric, nodes: NDArray[np.int64], words: Sequence[str], names: set[str], wanted: str
) -> tuple[int, NDArray[np.bool_]]:
    """Rank of a text's match, and the matching ``nodes``.

    Rank 0 is a tier, 1 a word, 2 a name.
    """
    if wanted in names:
        return 2, nodes == fabric.node(wanted)
    if wanted in words:
        return 1, np.array([word == wanted for word in words], np.bool_)
    match = _TIER.fullmatch(wanted)
    return 0, fabric.node_tier[nodes] == (-1 if match is None else int(match["number"]))


def _refuse(mistakes: list[Mistake]) -> None:
    if mistakes:
        raise ConfigError("fabric", list(dict.fromkeys(mistakes)))


def _joined(
    fabric: Fabric, nodes: NDArray[np.int64], kind: NDArray[np.int64], hashed: Sequence[tuple[int, HashFunction]]
) -> tuple[tuple[Switch, ...], NDArray[np.int32]]:
    """Devices, and the device of every node, where ``nodes`` are of ``kind``.

    A kind is an old device and its present hash.
    """
    switches: dict[Switch, int] = {}
    number = np.array(
        [switches.setdefault(fabric.switches[device].model_copy(update={"hash": function}), len(switches))
         for device, function in hashed], np.int32,
    )  # fmt: skip
    node_device = fabric.node_device.astype(np.int32)
    node_device[nodes] = number[kind]
    return tuple(switches), node_device
