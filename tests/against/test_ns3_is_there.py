"""ns-3 from the extra `bench` runs on this machine: its clock moves and an event happens when it is due.

Source: ns-3 manual, "Events and Simulator"; the package `ns3` on PyPI. Leaves out: any comparison with Weft.
"""

import subprocess
import sys
from importlib.util import find_spec

import pytest

SCRIPT = """
from ns import ns
ns.Simulator.Stop(ns.MicroSeconds(3))
ns.Simulator.Run()
print("stopped at", ns.Simulator.Now().GetPicoSeconds(), "ps")
"""


@pytest.mark.extra
def test_the_clock_of_ns3_moves() -> None:
    if find_spec("ns") is None:
        pytest.skip("ns-3 comes with the extra 'bench'")
    # In a process of its own: ns-3 keeps its clock in a global.
    found = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert "stopped at 3000000 ps" in found.stdout, found.stderr
