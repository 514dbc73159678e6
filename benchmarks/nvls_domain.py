"""CPU time of a collective through an NVLink switch, by the GPUs of the domain, and by what is done.

    python benchmarks/nvls_domain.py 18 36 72

One all-reduce of 512 MiB by NVLS in one domain of GB200, on the flow engine, as ``weftwork collective`` runs it.
Messages grow with the square of the domain: every GPU sends a slice for every GPU. Nothing may grow faster
(`tests/runs/workload/test_work_of_nvls.py` counts).
Leaves out: packets, which do not cross an NVLink switch, and several domains.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise
from pathlib import Path

from weftwork.study.prepare.prepare import prepare
from weftwork.study.record.collective import collective_scenario
from weftwork.study.record.road import execute, results
from weftwork.topology.build import fabric_of_section

SIZE = "512MiB"


def main(gpus: int) -> None:
    """Measure one domain and print a row.

    Parameters
    ----------
    gpus : of the domain
    """
    node = {"model": "gb200-nvl72", "gpus": gpus, "nic_ports": gpus, "nvlink_domain_gpus": gpus}
    tree = {
        "fabric": {"topology": "rail-optimized", "gpus": gpus, "node": node, "switch": "tomahawk-5"},
        "collective": {"operation": "all-reduce", "algorithm": "nvls", "gpus": gpus, "size": SIZE},
        "engine": {"fidelity": "flow"},
    }
    overrides = {key: json.dumps(value) for key, value in tree.items()}
    scenario = collective_scenario({}, file=None, overrides=overrides)
    fabric = fabric_of_section(scenario.fabric, directory=Path())
    marks_s = [time.process_time()]
    prepared = prepare(scenario, fabric=fabric)
    marks_s.append(time.process_time())
    execution = execute(prepared, lambda _: None)
    marks_s.append(time.process_time())
    results(prepared, execution)
    marks_s.append(time.process_time())
    parts = [after - before for before, after in pairwise(marks_s)]
    messages = len(execution.outcome.messages)
    words = ", ".join(f"{name} {part:.2f} s" for name, part in zip(("prepare", "run", "results"), parts, strict=True))
    print(f"{gpus} GPUs: {messages:,} messages, {sum(parts):.2f} s of CPU: {words}")


if __name__ == "__main__":
    for word in sys.argv[1:] or ("18", "36", "72"):
        main(int(word))
