"""Switches, NICs and servers as engines see them: numbers with units.

They are independent of any product. The hardware catalogue fills these records; a user may set every field under
``fabric.switch``, ``fabric.nic`` and ``fabric.node``.
Leaves out: cells (a packet takes its exact size), multicast, per-port speeds of a product (links carry their rate), the
CPUs and the memory of a server.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "ECN_RATE_BPS", "KMAX_BYTES", "KMIN_BYTES", "PRIORITIES", "Ecn", "HashFunction", "Nic", "Record", "Scheduling",
    "Server", "Switch",
]  # fmt: skip

PRIORITIES = 8  # IEEE 802.1Q, priority code point: three bits
# alibaba-edu/High-Precision-Congestion-Control, simulation/run.py: 100 and 400 KB x link rate / 25 Gb/s, KB = 1,000 B
KMIN_BYTES = 100_000
KMAX_BYTES = 400_000
ECN_RATE_BPS = 25_000_000_000

# Seed and offset of a switch by its tier, where nobody sets them. SONiC sets both by role (sonic-net/sonic-buildimage,
# switch.json.j2): ToR 0, leaf 10, spine 25, fabric spine 40, upper spine 50, and offset 10 for the leaf alone.
_ROLE_SEEDS: Final = (0, 10, 25, 40, 50)
_ROLE_OFFSETS: Final = (0, 10, 20, 5, 15)  # chosen from the third tier on: SONiC's 0 would take the ToR's bits again
_ROLE_OFFSETS_OF_16_BITS: Final = (0, 5, 10, 2, 7)  # chosen: half of them, so that bits are left
_SHORT_DIGESTS: Final = {"crc16-ccitt": 16}  # bits of a digest that has fewer than 32


class Record(BaseModel):
    """A frozen record that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Ecn(Record):
    """ECN marking thresholds of a switch.

    The probability of a mark is p = pmax (q - kmin) / (kmax - kmin), and 1 from kmax on. ``q`` is the length of the
    packet's egress queue: before it is added (``at="enqueue"``) or what stays behind it when it leaves
    (``at="dequeue"``). A threshold that is not given follows the rate of each port, in proportion.
    """

    kmin_bytes: int | None = Field(default=None, ge=0)
    kmax_bytes: int | None = Field(default=None, ge=0)
    pmax: float = Field(default=0.2, ge=0, le=1)
    at: Literal["enqueue", "dequeue"] = "enqueue"

    def thresholds_bytes(self, rate_bps: int) -> tuple[int, int]:
        """Kmin and kmax of a port.

        Values that are not given are `KMIN_BYTES` and `KMAX_BYTES` x rate / `ECN_RATE_BPS`.

        Parameters
        ----------
        rate_bps : nominal rate of the port's link; a fault that degrades the link does not move a switch's settings

        Examples
        --------
        >>> Ecn().thresholds_bytes(400_000_000_000), Ecn(kmin_bytes=5_000).thresholds_bytes(100_000_000_000)
        ((1600000, 6400000), (5000, 1600000))
        """
        kmin = KMIN_BYTES * rate_bps // ECN_RATE_BPS if self.kmin_bytes is None else self.kmin_bytes
        kmax = KMAX_BYTES * rate_bps // ECN_RATE_BPS if self.kmax_bytes is None else self.kmax_bytes
        return kmin, kmax


class HashFunction(Record):
    """The hash by which a switch spreads flows.

    Member = (H(fields, seed) >> offset) mod live members. A CRC is affine: another seed only XORs a constant into every
    hash and does not cure polarisation; another offset, polynomial or field set does. ``mix`` is not affine. A seed or
    an offset of None follows from the tier of the switch (`on_tier`), so that tiers look at different bits.
    """

    algorithm: Literal["crc32", "crc32c", "crc16-ccitt", "xor", "mix"] = "crc32"
    seed: int | None = Field(default=None, ge=0, lt=2**32)
    offset: int | None = Field(default=None, ge=0, le=24)
    fields: tuple[Literal["src_ip", "dst_ip", "protocol", "src_port", "dst_port", "in_port", "destination_qp"], ...] = (
        "src_ip",
        "dst_ip",
        "protocol",
        "src_port",
        "dst_port",
    )

    @property
    def bits(self) -> int:
        """Width of the digest in bits."""
        return _SHORT_DIGESTS.get(self.algorithm, 32)

    def on_tier(self, tier: int) -> HashFunction:
        """Return the function with a tier's seed and offset as defaults.

        Parameters
        ----------
        tier : 1 for leaves and so on upwards; above the fifth, as the fifth

        Examples
        --------
        >>> spine = HashFunction(seed=3).on_tier(2)
        >>> spine.seed, spine.offset
        (3, 10)
        """
        role = min(max(tier, 1), len(_ROLE_SEEDS)) - 1
        offsets = _ROLE_OFFSETS if self.bits == 32 else _ROLE_OFFSETS_OF_16_BITS
        seed = _ROLE_SEEDS[role] if self.seed is None else self.seed
        return self.model_copy(update={"seed": seed, "offset": offsets[role] if self.offset is None else self.offset})


class Scheduling(Record):
    """Scheduling of the eight queues of an egress port.

    Strict queues come first, the highest number first, then the weighted queues. A queue with ``weight`` 0 is strict;
    others share what is left by deficit round robin, quantum = weight x 1,024 B.
    """

    weights: tuple[int, int, int, int, int, int, int, int] = (16, 16, 16, 16, 16, 16, 0, 0)


class Switch(Record):
    """A shared-buffer switch."""

    name: str = "plain"
    radix: int = Field(default=0, ge=0)  # 0: as many ports as it has links
    forwarding_latency_ps: int = Field(default=500_000, ge=0)
    buffer_bytes: int = Field(default=64_000_000, gt=0)
    reserve_bytes: int = Field(default=4_096, ge=0)  # per port and priority in use
    headroom_bytes: int | None = Field(default=None, ge=0)  # per port and lossless priority; None: from cable and rate
    alpha: float = Field(default=0.125, gt=0)  # Xoff above alpha x free shared bytes
    xon_offset_bytes: int = Field(default=8_320, ge=0)  # Xon that much below the threshold
    egress_alpha: float = Field(default=1.0, gt=0)  # lossy queues are dropped above egress_alpha x free shared bytes
    pause_quanta: int = Field(default=65_535, ge=1, le=65_535)  # of 512 bit times each, IEEE 802.3 annex 31B
    ecn: Ecn = Ecn()
    hash: HashFunction = HashFunction()
    scheduling: Scheduling = Scheduling()
    telemetry: bool = False  # stamps queue, bytes, rate and time into packets (INT)


class Nic(Record):
    """A NIC port and the host interface behind it.

    ``pcie_rate_bps`` 0 means that the host is never the bottleneck.
    """

    name: str = "plain"
    receive_latency_ps: int = Field(default=0, ge=0)
    pcie_rate_bps: int = Field(default=0, ge=0)
    pcie_latency_ps: int = Field(default=0, ge=0)
    receive_buffer_bytes: int = Field(default=2_000_000, gt=0)
    xoff_bytes: int = Field(default=1_000_000, gt=0)
    xon_bytes: int = Field(default=900_000, ge=0)
    pause_quanta: int = Field(default=65_535, ge=1, le=65_535)

    @property
    def has_host_interface(self) -> bool:
        """Whether packets queue between the port and the host."""
        return self.pcie_rate_bps > 0 or self.pcie_latency_ps > 0


class Server(Record):
    """A server: its GPUs, the links between them, and its NIC ports.

    GPU ``g`` belongs to NVLink domain ``g // nvlink_domain_gpus``. With at least as many NIC ports as GPUs, GPU ``g``
    uses the ports ``g k`` to ``g k + k - 1``, ``k = nic_ports // gpus``; with fewer, port ``g nic_ports // gpus``.
    """

    name: str = "plain"
    gpus: int = Field(default=1, ge=1)
    nic_ports: int = Field(default=1, ge=1)  # links to the fabric; a multiple of gpus, or a divisor of it
    nvlink_domain_gpus: int = Field(default=0, ge=0)  # GPUs of one NVLink domain, a divisor of gpus; 0: no NVLink
    nvlink_rate_bps: int = Field(default=0, ge=0)  # what a message gets, of one GPU, one direction
    nvlink_latency_ps: int = Field(default=0, ge=0)  # from GPU to GPU
    nvls: bool = False  # the NVLink switch reduces and multicasts
    pcie_rate_bps: int = Field(default=504_000_000_000, gt=0)  # of one GPU, one direction, where there is no NVLink
    pcie_latency_ps: int = Field(default=0, ge=0)  # from GPU to GPU
    slice_bytes: int = Field(default=524_288, gt=0)  # in which messages take turns; chosen: a slice of NCCL's buffers
