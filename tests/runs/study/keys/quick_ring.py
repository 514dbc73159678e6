"""A ring that says of itself that it takes no time, so that `auto` takes it wherever it may.

Source: none. Leaves out: the truth.
"""

from weftwork.workload.collectives.algorithm import Algorithm
from weftwork.workload.collectives.algorithms.ring import ALGORITHM as RING
from weftwork.workload.collectives.method import TimedMethod
from weftwork.workload.collectives.method_bytes import MethodBytes

METHOD = TimedMethod(source="none", bytes_of=lambda _: MethodBytes(network_bytes=1), figures="ring")
ALGORITHM = Algorithm(
    name="quick-ring", operations=RING.operations, traffic=RING.traffic, chain=RING.chain, source="none", method=METHOD
)
