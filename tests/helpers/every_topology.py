"""Small fabrics of every topology of the catalogue, as keys of a scenario's section ``fabric``.

Leaves out: topologies of a user's own.
"""

from __future__ import annotations

from typing import Any

__all__ = ["FABRICS", "USUAL"]

# a new file of the catalogue is tried with this, until it has examples of its own
USUAL: tuple[dict[str, Any], ...] = ({"radix": 8, "hosts": 8},)
FABRICS: dict[str, tuple[dict[str, Any], ...]] = {
    "fat-tree": ({"radix": 4}, {"tiers": 2, "radix": 8, "hosts": 9}, {"radix": 32, "node": "dgx-h100", "hosts": 5}),
    "leaf-spine": (
        {"leaves": 4, "spines": 2, "hosts_per_leaf": 3},
        {"hosts": 40, "radix": 16},
        {"hosts": 36, "radix": 16, "oversubscription": {"leaf": 3}},
        {"leaves": 4, "spines": 2, "hosts_per_leaf": 8, "node": {"nic_ports": 2}, "dual_homed": True},
    ),
    "rail-optimized": (
        {"gpus": 64, "node": "dgx-h100", "radix": 32},
        {"gpus": 128, "node": "dgx-h100", "switch": "tomahawk-5", "pods": 4, "nodes_per_pod": 4, "spines": 8},
    ),
    "rail-only": ({"gpus": 64, "node": "dgx-h100", "radix": 4}, {"gpus": 64, "node": "dgx-h100", "radix": 64}),
    "superpod": ({"scalable_units": 1, "nodes_per_unit": 4}, {"gpus": 96, "nodes_per_unit": 8, "core_groups": "rails"}),
    "multi-plane": ({"hosts": 8, "node": {"gpus": 4, "nic_ports": 8}, "radix": 64},),
    "hpn": ({"segments": 2, "nodes_per_segment": 2, "segments_per_pod": 1, "aggregations": 4},),
    "meta-24k": ({"pods": 2, "racks_per_pod": 2},),
    "three-tier": ({"hosts": 96, "radix": 64, "oversubscription": {"access": 3}},),
    "dragonfly": (
        {"radix": 7},
        {"radix": 8, "hosts": 9, "node": {"gpus": 4, "nic_ports": 4}, "arrangement": "circulant"},
    ),
    "torus": ({}, {"shape": [2, 3, 1, 4], "hosts_per_switch": 2, "node": {"gpus": 4, "nic_ports": 2}}),
    "mesh": ({}, {"shape": [2, 3, 1, 4], "hosts": 9}),
    "twisted-torus": ({}, {"shape": [4, 2, 4]}, {"shape": [2, 4], "hosts_per_switch": 3}),
    "dragonfly-plus": ({"radix": 5}, {"radix": 8, "hosts": 9, "node": {"gpus": 4, "nic_ports": 4}, "groups": 4}),
    "hyperx": ({"sides": (3, 4)}, {"sides": (2, 2, 3), "links_per_dimension": (1, 2, 1), "hosts": 9}),
    "flattened-butterfly": ({"ary": 3}, {"stages": 2, "radix": 9, "hosts": 9}),
    "tpu-pod": (
        {"slice": [4, 4, 8], "twisted": True, "failed_cubes": ["cube0"]},
        {"slice": [2, 2, 4], "hosts": 9},
        {"cubes": 4, "optical_switches": False, "failed_cubes": [0]},
    ),
    "slim-fly": ({"q": 4}, {"radix": 8, "hosts": 9, "node": {"gpus": 4, "nic_ports": 4}}),
    "jellyfish": (
        {"switches": 6, "network_ports": 3},
        {"radix": 9, "hosts": 9, "node": {"gpus": 4, "nic_ports": 4}, "seed": 7},
    ),
    "xpander": (
        {"lifts": (2, 2), "network_ports": 3},
        {"radix": 9, "hosts": 9, "node": {"gpus": 4, "nic_ports": 4}, "seed": 7},
    ),
    "bcube": (
        {"hosts_per_switch": 3},
        {"hosts_per_switch": 3, "levels": 3, "node": {"nic_ports": 3}, "hosts": 11},
        {"hosts_per_switch": 5, "node": {"nic_ports": 1}},
    ),
    "pgft": ({}, {"children": (2, 4, 2), "parents": (1, 2, 2), "cables": (1, 1, 2), "hosts": 9}),
}
