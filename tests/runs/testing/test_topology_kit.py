"""The kit of topologies tells what a size that is told has to do with what is built."""

from pathlib import Path

from weftwork.testing.topologies import check_topology

KEYS = {"leaves": 2, "spines": 2, "hosts_per_leaf": 3}
OWN = """\
'''A leaf-spine that counts one link too many.'''
from dataclasses import replace

from weftwork.topology.shapes import leaf_spine


def size(keys, parts):
    told = leaf_spine.TOPOLOGY.size(keys, parts)
    return replace(told, links=told.links + MORE)


TOPOLOGY = replace(leaf_spine.TOPOLOGY, size=size)
"""


def test_a_size_that_is_not_what_is_built_is_found(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text(OWN.replace("MORE", "0"), encoding="utf-8")
    assert check_topology(own, KEYS) == []
    wrong = tmp_path / "wrong.py"
    wrong.write_text(OWN.replace("MORE", "1"), encoding="utf-8")
    (finding,) = check_topology(wrong, KEYS)
    assert finding == (
        "size says FabricSize(hosts=6, switches=4, links=11, leaves=2), and build makes"
        " FabricSize(hosts=6, switches=4, links=10, leaves=2)"
    )
