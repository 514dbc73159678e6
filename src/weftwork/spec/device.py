"""Switches, NICs and servers as engines see them: numbers with units.

They are independent of any product. The hardware catalogue fills these records; a user may set every field under
``fabric.switch``, ``fabric.nic`` and ``fabric.node``.
Leaves out: cells (a packet takes its exact size), multicast, per-port speeds of a product (links carry their rate), the
CPUs and the memory of a server.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from weftwork.spec.scenario.effects import ALWAYS, NO_PRIORITIES, NO_QUEUES, Effect

__all__ = [
    "ECN_RATE_BPS", "KMAX_BYTES", "KMIN_BYTES", "PRIORITIES", "Ecn", "HashFunction",
    "Nic", "Record", "Scheduling", "Server", "Switch", "row",
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


def row(
    *,
    default: object,
    text: str,
    source: str,
    absent: str = "",
    effect: Effect = ALWAYS,
    **bounds: float,
) -> Any:  # noqa: ANN401 - as pydantic's own
    """Declare a field of a device, from which the key of a user is made, with its help and its page.

    Parameters
    ----------
    default : in the unit of the field's name; None: `absent` says what holds
    text : meaning, one sentence
    source : of the default
    absent : what holds where the field is left out and has no default
    effect : the runs in which the field has one; by default all
    bounds : ``ge``, ``gt``, ``le`` and ``lt`` of the value
    """
    extra: dict[str, Any] = {"text": text, "source": source, "absent": absent, "effect": effect}
    return Field(default=default, json_schema_extra=extra, **bounds)  # type: ignore[call-overload]


class Record(BaseModel):
    """A frozen record that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Ecn(Record):
    """ECN marking thresholds of a switch.

    The probability of a mark is p = pmax (q - kmin) / (kmax - kmin), and 1 from kmax on. ``q`` is the length of the
    packet's egress queue: before it is added (``at="enqueue"``) or what stays behind it when it leaves
    (``at="dequeue"``). A threshold that is not given follows the rate of each port, in proportion.
    """

    kmin_bytes: int | None = row(
        default=None,
        ge=0,
        text="Queue length up to which nothing is marked.",
        source="alibaba-edu/High-Precision-Congestion-Control, simulation/run.py: 100 KB x C/25G",
        absent="100 KB x rate of the port / 25 Gb/s",
        effect=Effect(flows=NO_QUEUES),
    )
    kmax_bytes: int | None = row(
        default=None,
        ge=0,
        text="Queue length from which everything is marked.",
        source="alibaba-edu/High-Precision-Congestion-Control, simulation/run.py: 400 KB x C/25G",
        absent="400 KB x rate of the port / 25 Gb/s",
        effect=Effect(flows=NO_QUEUES),
    )
    pmax: float = row(
        default=0.2,
        ge=0,
        le=1,
        text="Probability of a mark just below kmax.",
        source="alibaba-edu/High-Precision-Congestion-Control, run.py: 0.2",
        effect=Effect(flows=NO_QUEUES),
    )
    at: Literal["enqueue", "dequeue"] = row(
        default="enqueue",
        text="Whether the queue is looked at when a packet comes or when it leaves.",
        source="chosen: most silicon marks at enqueue",
        effect=Effect(flows=NO_QUEUES),
    )

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

    algorithm: Literal["crc32", "crc32c", "crc16-ccitt", "xor", "mix"] = row(
        default="crc32",
        text="Polynomial or function; crc and xor are affine, mix is not.",
        source="chosen: CRC-32 is offered by all",
    )
    seed: int | None = row(
        default=None,
        ge=0,
        lt=2**32,
        text="Start value of the hash.",
        source="sonic-net/sonic-buildimage, switch.json.j2: seeds of roles",
        absent="by the switch's tier: 0, 10, 25, 40, 50",
    )
    offset: int | None = row(
        default=None,
        ge=0,
        le=24,
        text="First bit of the hash that is used.",
        source="sonic-net/sonic-buildimage, switch.json.j2: 0 and 10 on the lower two tiers; chosen: 20 on the third",
        absent="by the switch's tier: 0, 10, 20, 5, 15; half of that for crc16-ccitt",
    )
    fields: tuple[Literal["src_ip", "dst_ip", "protocol", "src_port", "dst_port", "in_port", "destination_qp"], ...] = (
        row(
            default=("src_ip", "dst_ip", "protocol", "src_port", "dst_port"),
            text="Header fields that are hashed.",
            source="the usual five; sonic-net/SONiC, hash design",
        )
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

    weights: tuple[int, int, int, int, int, int, int, int] = row(
        default=(16, 16, 16, 16, 16, 16, 0, 0),
        text="Weight of each priority, 0 to 7, in deficit round robin; 0 makes a queue strict.",
        source="chosen: equal weights, control traffic strict",
        effect=Effect(flows=NO_PRIORITIES),
    )


class Switch(Record):
    """A shared-buffer switch."""

    name: str = "plain"
    radix: int = row(
        default=0,
        ge=0,
        text="Ports of the switch; 0 means as many as it has links.",
        source="chosen: the fabric decides",
    )
    forwarding_latency_ps: int = row(
        default=500_000,
        ge=0,
        text="Fixed time from the last bit in to the packet's place in the egress queue.",
        source="chosen: a round figure for a switch that stores and forwards",
    )
    buffer_bytes: int = row(
        default=64_000_000,
        gt=0,
        text="Packet memory that all ports share.",
        source="chosen: sonic-net/sonic-buildimage ships pools from 11 MB (7060CX) to 166 MB (7060X6)",
        effect=Effect(flows=NO_QUEUES),
    )
    reserve_bytes: int = row(
        default=4_096,
        ge=0,
        text="Memory that each port and priority in use has to itself.",
        source="alibaba-edu/High-Precision-Congestion-Control, switch-mmu.cc: 4 KiB",
        effect=Effect(flows=NO_QUEUES, needs=("shared buffers",)),
    )
    headroom_bytes: int | None = row(
        default=None,
        ge=0,
        text="Room per port and lossless priority for what arrives after Xoff; left out, it follows from cable and "
        "rate.",
        source="IEEE 802.1Q, buffer requirements for priority-based flow control",
        absent="from cable and rate",
        effect=Effect(flows=NO_QUEUES, needs=("pauses",)),
    )
    alpha: float = row(
        default=0.125,
        gt=0,
        text="A lossless ingress queue sends Xoff above alpha x free shared bytes.",
        source="alibaba-edu/High-Precision-Congestion-Control, switch-mmu.cc: shift 3, 1/8",
        effect=Effect(flows=NO_QUEUES, needs=("pauses",)),
    )
    xon_offset_bytes: int = row(
        default=8_320,
        ge=0,
        text="Xon is sent when a queue is that far below its Xoff threshold.",
        source="chosen: two frames of 4,160 B",
        effect=Effect(flows=NO_QUEUES, needs=("pauses",)),
    )
    egress_alpha: float = row(
        default=1.0,
        gt=0,
        text="A lossy egress queue drops above egress_alpha x free shared bytes.",
        source="Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998, doi:10.1109/90.664262: 1",
        effect=Effect(flows=NO_QUEUES, needs=("shared buffers",)),
    )
    pause_quanta: int = row(
        default=65_535,
        ge=1,
        le=65_535,
        text="Length of a pause in units of 512 bit times.",
        source="IEEE 802.3, annex 31B; chosen: the largest",
        effect=Effect(flows=NO_QUEUES, needs=("pauses",)),
    )
    ecn: Ecn = row(default=Ecn(), text="ECN marking of the switch.", source="see its keys")
    hash: HashFunction = row(
        default=HashFunction(), text="The hash by which the switch spreads flows.", source="see its keys"
    )
    scheduling: Scheduling = row(
        default=Scheduling(), text="Scheduling of the eight queues of an egress port.", source="see its keys"
    )
    telemetry: bool = row(
        default=False,
        text="Whether the switch stamps queue, bytes, rate and time into packets (INT).",
        source="chosen: few switches do",
        effect=Effect(flows="have no congestion control that would read it"),
    )


class Nic(Record):
    """A NIC port and the host interface behind it.

    ``pcie_rate_bps`` 0 means that the host is never the bottleneck.
    """

    name: str = "plain"
    receive_latency_ps: int = row(
        default=0,
        ge=0,
        text="Fixed time from the last bit in to the NIC's handling of the packet.",
        source="chosen: none",
    )
    pcie_rate_bps: int = row(
        default=0,
        ge=0,
        text="Rate of the host interface; 0bps means that the host is never the bottleneck.",
        source="chosen: none",
    )
    pcie_latency_ps: int = row(default=0, ge=0, text="Latency of the host interface.", source="chosen: none")
    receive_buffer_bytes: int = row(
        default=2_000_000,
        gt=0,
        text="Memory of the NIC for packets that wait for the host interface.",
        source="chosen: 2 MB",
        effect=Effect(flows=NO_QUEUES, needs=("host interface",)),
    )
    xoff_bytes: int = row(
        default=1_000_000,
        gt=0,
        text="Fill of the receive buffer above which the NIC sends Xoff.",
        source="chosen: half of the receive buffer",
        effect=Effect(flows=NO_QUEUES, needs=("host interface", "pauses")),
    )
    xon_bytes: int = row(
        default=900_000,
        ge=0,
        text="Fill of the receive buffer below which the NIC sends Xon.",
        source="chosen: 100 KB below Xoff",
        effect=Effect(flows=NO_QUEUES, needs=("host interface", "pauses")),
    )
    pause_quanta: int = row(
        default=65_535,
        ge=1,
        le=65_535,
        text="Length of a pause in units of 512 bit times.",
        source="IEEE 802.3, annex 31B; chosen: the largest",
        effect=Effect(flows=NO_QUEUES, needs=("host interface", "pauses")),
    )

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
    gpus: int = row(default=1, ge=1, text="GPUs of a server.", source="chosen: the host of most papers has one")
    nic_ports: int = row(
        default=1,
        ge=1,
        text="Links from a server to the fabric: a multiple of its GPUs, or a divisor of their number.",
        source="chosen: one NIC port",
    )
    nvlink_domain_gpus: int = row(
        default=0, ge=0, text="GPUs that NVLink joins, a divisor of gpus; 0 means no NVLink.", source="chosen: none"
    )
    nvlink_rate_bps: int = row(
        default=0,
        ge=0,
        text="Rate of a message between two GPUs of an NVLink domain, in one direction.",
        source="chosen: none without NVLink",
    )
    nvlink_latency_ps: int = row(
        default=0, ge=0, text="Latency from GPU to GPU over NVLink, without software.", source="chosen: none"
    )
    nvls: bool = row(
        default=False,
        text="Whether the NVLink switch reduces and multicasts (NVLink SHARP).",
        source="chosen: none without NVLink",
    )
    pcie_rate_bps: int = row(
        default=504_000_000_000,
        gt=0,
        text="Rate of a GPU's PCIe, one direction, between GPUs that NVLink does not join.",
        source="stas00/ml-engineering, compute/accelerator/README.md: PCIe 5 x16, 63 GB/s",
    )
    pcie_latency_ps: int = row(
        default=0, ge=0, text="Latency from GPU to GPU over PCIe, without software.", source="chosen: none"
    )
    host_rate_bps: int | None = row(
        default=None,
        gt=0,
        text="Rate between a GPU and the memory of its host, one direction, over PCIe or NVLink-C2C.",
        source="chosen: what PCIe has",
        absent="that of pcie_rate",
        effect=Effect(needs=("offloaded layers",)),
    )
    slice_bytes: int = row(
        default=524_288,
        gt=0,
        text="Piece in which messages inside a server take turns on a port.",
        source="chosen: a slice of NCCL's buffers",
    )

    @property
    def host_link_bps(self) -> int:
        """Rate between a GPU and the memory of its host, one direction."""
        return self.pcie_rate_bps if self.host_rate_bps is None else self.host_rate_bps
