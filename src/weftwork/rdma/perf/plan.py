"""The plan of a measurement: what the client asks for, and what the server insists on.

The client sends its whole plan to the server. An option that was given to the server too has to agree with the plan.
Source: linux-rdma/perftest, man/perftest.1 (options and defaults).
Leaves out: the exchange itself, see `letters`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake, PeerError
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.rdma.perf.operation import PerfVerb
from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.rdma.verbs import ATOMIC_BYTES, QpType

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ALL_SIZES",
    "ATOMICS",
    "CONNECTIONS",
    "ONLY_BY_CONNECTIONS",
    "OPTIONS",
    "PerfPlan",
    "disagreements",
    "make_plan",
]

ALL_SIZES: Final = tuple(1 << power for power in range(1, 24))  # man perftest, -a: from 2 to 2^23
ATOMICS: Final = ("fetch-add", "cmp-swap")
CONNECTIONS: Final = ("RC", "UC", "UD")
ONLY_BY_CONNECTIONS: Final = frozenset({"iwarp"})  # wires whose queue pairs have no numbers that a peer can name
_MOST_BYTES: Final = 1 << 30  # chosen: memory that a client may have the server register
_MOST_MESSAGES: Final = 100_000_000  # MAX_ITER of perftest_parameters.h
_MOST_QPS: Final = 1024  # chosen: a quarter of the queue pairs of a device
_MOST_DEPTH: Final = 16_384  # `NicLimits.max_qp_wr`
_MOST_INLINE: Final = 1024  # `NicLimits.max_inline_data`
_MOST_READS: Final = 128  # `NicLimits.max_qp_rd_atom`
_CM_READS: Final = 16  # `ConnParam.initiator_depth`
CM_RECEIVES: Final = 256  # that an `RdmaConnection` may have posted
_MOST_S: Final = 86_400.0  # chosen: a day
_SMALL_BYTES: Final = 8192  # perftest moderates completions up to this size (MSG_SIZE_CQ_MOD_LIMIT)
_MODERATION: Final = 100  # DEF_CQ_MOD of perftest_parameters.h
# Types of values in a letter, by the type of the key.
_IN_LETTERS: Final[dict[str, tuple[type, ...]]] = {
    "PerfVerb": (str,),
    "bool": (bool,),
    "float": (int, float),
    "int": (int,),
    "str": (str,),
    "tuple[int, ...]": (list,),
}
_FEWEST: Final = 5  # MIN_ITER of perftest_parameters.h


_SERVICES: Final = {
    PerfVerb.WRITE: ("RC", "UC"),
    PerfVerb.READ: ("RC",),
    PerfVerb.SEND: ("RC", "UC", "UD"),
    PerfVerb.ATOMIC: ("RC",),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PerfPlan:
    """A whole plan.

    Parameters
    ----------
    verb : operation
    latency : measure latency instead of bandwidth
    sizes : of messages in bytes, one after the other
    iterations : messages of each queue pair and size; with a duration they do not count
    duration_s : seconds of each size, or 0
    connection : RC, UC or UD
    qps : number of queue pairs at each end
    tx_depth, rx_depth : requests and receives that are posted at most
    path_mtu : payload of a full packet in bytes, or 0 for the largest that fits
    bidirectional : both ends send
    inline_bytes : largest message that is copied as it is posted
    cq_moderation : a completion for each so many requests; 0 chooses by size
    outstanding : READs and atomics in flight of a queue pair
    atomic : fetch-add or cmp-swap
    rdma_cm : the connection manager joins the queue pairs, instead of numbers in letters
    """

    verb: PerfVerb
    latency: bool
    sizes: tuple[int, ...]
    iterations: int
    duration_s: float
    connection: str
    qps: int
    tx_depth: int
    rx_depth: int
    path_mtu: int
    bidirectional: bool
    inline_bytes: int
    cq_moderation: int
    outstanding: int
    atomic: str
    rdma_cm: bool

    @property
    def qp_type(self) -> QpType:
        """Type of the queue pairs."""
        return QpType[self.connection]

    @property
    def halves(self) -> bool:
        """Whether a latency is half a round trip, as perftest counts for WRITE and SEND."""
        return self.verb in {PerfVerb.WRITE, PerfVerb.SEND}

    def moderation(self, size_bytes: int) -> int:
        """Requests for each completion, for one size."""
        wanted = self.cq_moderation or (_MODERATION if size_bytes <= _SMALL_BYTES else 1)
        return min(wanted, max(1, self.tx_depth // 2))

    def encode(self) -> dict[str, Any]:
        """The plan for a letter."""
        return {**asdict(self), "sizes": list(self.sizes)}

    @classmethod
    def decode(cls, letter: object) -> PerfPlan:
        """Read a plan of a peer; PeerError for anything else."""
        if not isinstance(letter, dict) or set(letter) != {field.name for field in fields(cls)}:
            raise PeerError(
                "the plan of the client has other keys than this version knows; use one version at both ends"
            )
        for field in fields(cls):
            value, kinds = letter[field.name], _IN_LETTERS[str(field.type)]
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                raise PeerError(f"the plan of the client: found {value!r} for {field.name}, wanted {field.type}")
        sizes = letter["sizes"]
        if letter["verb"] not in set(PerfVerb) or not all(type(size) is int for size in sizes):
            raise PeerError("the plan of the client: found an unknown operation or a size that is no number")
        return cls(**{**letter, "verb": PerfVerb(letter["verb"]), "sizes": tuple(sizes)})


# Option of the command and its key of the plan, for messages.
OPTIONS: Final = {
    "verb": "VERB",
    "latency": "--latency",
    "sizes": "--size",
    "iterations": "--iterations",
    "duration_s": "--duration",
    "connection": "--connection",
    "qps": "--qps",
    "tx_depth": "--tx-depth",
    "rx_depth": "--rx-depth",
    "path_mtu": "--mtu",
    "bidirectional": "--bidirectional",
    "inline_bytes": "--inline",
    "cq_moderation": "--cq-mod",
    "outstanding": "--outstanding",
    "atomic": "--atomic-type",
    "rdma_cm": "--rdma-cm",
}


def make_plan(verb: PerfVerb, given: Mapping[str, Any]) -> PerfPlan:
    """Complete the options of a client by the defaults of perftest.

    Parameters
    ----------
    verb : operation
    given : keys of `PerfPlan` that the user has given

    Raises
    ------
    ConfigError : with all mistakes
    """
    latency = bool(given.get("latency", False))
    is_write = verb is PerfVerb.WRITE and not latency
    default_bytes = ATOMIC_BYTES if verb is PerfVerb.ATOMIC else 2 if latency else 65_536
    chosen: dict[str, Any] = {
        "latency": latency,
        "sizes": (default_bytes,),
        "iterations": 5000 if is_write else 1000,
        "duration_s": 0.0,
        "connection": "RC",
        "qps": 1,
        "tx_depth": 1 if latency else 128,
        "rx_depth": CM_RECEIVES if given.get("rdma_cm") else 512,
        "path_mtu": 0,
        "bidirectional": False,
        "inline_bytes": 0,
        "cq_moderation": 0,
        "outstanding": _CM_READS,
        "atomic": ATOMICS[0],
        "rdma_cm": False,
        **given,
    }
    plan = PerfPlan(verb=verb, **chosen)
    mistakes = mistakes_of(plan)
    if mistakes:
        raise ConfigError(f"weftwork rdma perf {verb}", mistakes)
    return plan


def mistakes_of(plan: PerfPlan) -> list[Mistake]:
    """All that is wrong with a plan."""
    found: list[Mistake] = []

    def wrong(key: str, text: str, fix: str | None = None) -> None:
        found.append(Mistake(path=OPTIONS[key], text=text, fix=fix))

    if plan.connection not in CONNECTIONS:
        text = f"found {plan.connection!r}, wanted {', '.join(CONNECTIONS)}"
        wrong("connection", text, nearest(plan.connection.upper(), CONNECTIONS))
    elif plan.connection not in _SERVICES[plan.verb]:
        allowed = " or ".join(_SERVICES[plan.verb])
        wrong("connection", f"found {plan.connection}, which has no {plan.verb}; wanted {allowed}")
    if plan.atomic not in ATOMICS:
        wrong("atomic", f"found {plan.atomic!r}, wanted {' or '.join(ATOMICS)}", nearest(plan.atomic, ATOMICS))
    if plan.path_mtu and plan.path_mtu not in PATH_MTUS_BYTES:
        wrong("path_mtu", f"found {plan.path_mtu}, wanted one of {', '.join(map(str, PATH_MTUS_BYTES))}")
    if plan.latency and plan.bidirectional:
        wrong("bidirectional", "found it with --latency, wanted it to measure bandwidth")
    if plan.latency and plan.qps != 1:
        wrong("qps", f"found {plan.qps} with --latency, wanted 1")
    if plan.verb is PerfVerb.ATOMIC and plan.sizes != (ATOMIC_BYTES,):
        wrong("sizes", f"found another size, wanted {ATOMIC_BYTES} bytes, the size of every atomic")
    if plan.rdma_cm and plan.connection != "RC":
        wrong("connection", f"found {plan.connection} with --rdma-cm, wanted RC")
    if plan.rdma_cm and (plan.path_mtu or plan.outstanding != _CM_READS):
        for key in ("path_mtu",) * bool(plan.path_mtu) + ("outstanding",) * (plan.outstanding != _CM_READS):
            wrong(key, "found it with --rdma-cm, wanted none: the connection manager agrees on it")
    for key, least, most in (
        *(("iterations", _FEWEST, _MOST_MESSAGES), ("duration_s", 0.0, _MOST_S), ("qps", 1, _MOST_QPS)),
        *(
            ("tx_depth", 1, _MOST_DEPTH),
            ("rx_depth", 1, CM_RECEIVES if plan.rdma_cm else _MOST_DEPTH),
            ("inline_bytes", 0, _MOST_INLINE),
        ),
        *(("cq_moderation", 0, plan.tx_depth), ("outstanding", 1, _MOST_READS)),
    ):
        value = getattr(plan, key)
        if not least <= value <= most:
            wrong(key, f"found {value}, wanted {least} to {most}")
    if not plan.sizes or min(plan.sizes) < 1:
        wrong("sizes", "found no byte, wanted at least 1")
    elif 2 * plan.qps * max(plan.sizes) > _MOST_BYTES:
        each = f"{plural(plan.qps, 'queue pair')} with two buffers of {max(plan.sizes)} bytes"
        wrong("sizes", f"found {each}, wanted at most {_MOST_BYTES} bytes at each end")
    return found


def disagreements(wanted: Mapping[str, Any], plan: PerfPlan) -> list[str]:
    """Options of the server that the plan of the client contradicts, in words.

    Parameters
    ----------
    wanted : keys of `PerfPlan` that were given to the server
    plan : of the client
    """
    return [
        f"{OPTIONS[key]}: the server wants {_shown(value)}, the client {_shown(getattr(plan, key))}"
        for key, value in wanted.items()
        if value != getattr(plan, key)
    ]


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return f"{value[0]} to {value[-1]}" if len(value) > 1 else str(value[0])
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
