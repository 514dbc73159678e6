"""What it costs that all switches hash alike: a permutation on a fat tree of three tiers, by hash, NIC and engine.

    python benchmarks/polarisation.py [--radix 16] [--size 1MB]

The table of docs/models/load-balancing.md is what this prints. Leaves out: congestion control and loss, which would
hide what the hash alone does.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any, Final

from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.road import execute, results

__all__ = ["HASHES", "NICS", "main", "measure", "scenario"]

HASHES: Final = {
    "equal": "the same function everywhere",
    "seeds": "seeds of the roles alone",
    "default": "the default: seeds and offsets by tier",
    "independent": "independent in each switch",
}
NICS: Final = ("spray", "oblivious", "ecmp")  # path selection
_OF_ALL: Final[dict[str, dict[str, Any]]] = {"equal": {"seed": 0, "offset": 0}, "seeds": {"offset": 0}}


def scenario(hashing: str, nic: str, fidelity: str = "packet", *, radix: int = 16, size: str = "1MB") -> dict[str, Any]:
    """The scenario of a row.

    Parameters
    ----------
    hashing : of `HASHES`
    nic : path selection
    fidelity : ``packet``, ``flow`` or ``reference``
    radix, size : of the fat tree, radix^3 / 4 hosts, and of every message
    """
    fabric: dict[str, Any] = {"topology": "fat-tree", "tiers": 3, "radix": radix, "link_rate": "400Gbps"}
    if hashing in _OF_ALL:
        fabric["switch"] = {"hash": _OF_ALL[hashing]}
    if hashing == "independent":
        half = radix // 2
        names = [f"{word}{number}" for word, count in (("leaf", radix * half), ("agg", radix * half), ("core", half**2))
                 for number in range(count)]  # fmt: skip
        fabric["hash"] = [{"switches": name, "algorithm": "mix", "seed": seed, "offset": 0}
                          for seed, name in enumerate(names)]  # fmt: skip
    return {
        "schema": 3,
        "name": f"polarisation-{hashing}",
        "fabric": fabric,
        "transport": {
            "congestion_control": "none",
            "path_selection": nic,
            "port_selection": "ecmp",
            "recovery": "selective-repeat",
        },
        "traffic": {"pattern": "permutation", "size": size},
        "engine": {"fidelity": fidelity, "seed": 1},
    }


def measure(hashing: str, nic: str, fidelity: str = "packet", *, radix: int = 16, size: str = "1MB") -> float:
    """Time of the last byte in us; the parameters are those of `scenario`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scenario.yaml"
        file.write_text(json.dumps(scenario(hashing, nic, fidelity, radix=radix, size=size)), encoding="utf-8")
        prepared = prepare(read_scenario(file))
    found = results(prepared, execute(prepared, what_if="none"))
    if found.status != "complete":
        raise SystemExit(f"{hashing}, {nic}, {fidelity}: not everything was delivered")
    return float(found.tables["flows"]["delivered_ps"].to_numpy().max()) / 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--radix", type=int, default=16)
    parser.add_argument("--size", default="1MB")
    chosen = parser.parse_args()
    cases = [(nic, "packet") for nic in NICS] + [("ecmp", "flow")]
    took = {(one, *case): measure(one, *case, radix=chosen.radix, size=chosen.size) for one in HASHES for case in cases}
    for one, words in HASHES.items():
        cells = [f"{took[one, *case]:,.1f} us | {took[one, *case] / took['independent', *case]:.2f}" for case in cases]
        print(f"| {words} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
