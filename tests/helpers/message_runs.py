"""Runs of messages whose numbers are worth computing again: pauses and marks, drops, and one that was stopped.

Their last bins of time are short, rates differ between tiers, and sizes between messages.
"""

from __future__ import annotations

from pathlib import Path

from weftwork.store.runs import Run
from weftwork.study.run.run import run_scenario

GAP_BYTES = 20  # between frames: IEEE 802.3, preamble and delimiter 8, gap 12
STOPPED_PS = 303_000_000
_SIZES = "size_bytes,cumulative_percent\n0,0\n9000,20\n90000,45\n900000,85\n1500000,100\n"
_FABRIC = "topology: leaf-spine, leaves: 3, spines: 2, hosts_per_leaf: 4, link_rate: 100Gbps, fabric_rate: 50Gbps"
_ECN = "ecn: {kmin: 30KB, kmax: 60KB, pmax: 0.5}"
MESSAGE_RUNS = {
    "paused": f"""schema: 3
fabric: {{{_FABRIC}, switch: {{buffer: 1MB, {_ECN}}}}}
transport: {{timeout: 400us, congestion_control: {{name: dcqcn, variant: paper}}}}
traffic: {{pattern: poisson, load: 0.6, flows: 70, sizes: s.csv}}
engine: {{seed: 3, record: {{flows: [1, 5], ports: [leaf0->spine1], every: 7us}}}}
faults: [{{at: 150us, link: leaf0-spine1, event: down}}, {{at: 400us, link: leaf0-spine1, event: up}}]
""",
    "dropped": f"""schema: 3
fabric: {{{_FABRIC}, switch: {{buffer: 300KB}}}}
transport: {{congestion_control: fixed-window, flow_control: none, timeout: 200us}}
traffic: {{pattern: poisson, load: 0.8, flows: 60, sizes: s.csv}}
engine: {{seed: 5}}
faults: [{{at: 90us, link: leaf1-spine1, event: down}}]
""",
    "stopped": f"""schema: 3
fabric: {{{_FABRIC}, switch: {{buffer: 1MB, ecn: {{kmin: 400KB, kmax: 1.6MB}}}}}}
transport: {{congestion_control: fixed-window}}
traffic: {{pattern: poisson, load: 0.6, flows: 60, sizes: s.csv}}
engine: {{seed: 4, until: {STOPPED_PS}ps}}
""",
}


def message_run(folder: Path, kind: str, *, seeds: int = 1, **settings: str) -> Run:
    """Run one of `MESSAGE_RUNS`, with other keys by their dotted names with ``__`` for the dot."""
    (folder / "s.csv").write_text(_SIZES, encoding="utf-8")
    (folder / f"{kind}.yaml").write_text(MESSAGE_RUNS[kind], encoding="utf-8")
    overrides = {name.replace("__", "."): text for name, text in settings.items()}
    return run_scenario(folder / f"{kind}.yaml", out=folder / kind, overrides=overrides, seeds=seeds)
