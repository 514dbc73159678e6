"""The hardware catalogue: switches, NICs, servers, links and GPUs by name.

Rows are records of `weftwork.spec.device`. Every figure has its source in the TOML files beside this module. What is
unverified or chosen is told by `switch_caveats`, `nic_caveats` and `node_caveats`, which fabrics carry in
`Fabric.caveats`.
Leaves out: prices, and chips whose buffer is no shared memory.
"""

from __future__ import annotations

from pathlib import Path

from weftwork.base.catalogue import Catalogue, Row
from weftwork.base.caveat import Caveat
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.units import RATE, format_quantity
from weftwork.spec.device import Ecn, Nic, Server, Switch
from weftwork.spec.scenario.devices import NodeModel
from weftwork.spec.training import Gpu, ProductRates

__all__ = [
    "GPUS", "LINKS", "NICS", "SERVERS", "SWITCHES", "gpu", "gpu_caveats", "is_custom_nic",
    "max_ports", "nic", "nic_caveats", "node",
    "node_caveats", "nodes", "ports_at", "server_gpu", "switch", "switch_caveats",
]  # fmt: skip

_HERE = Path(__file__).parent
SWITCHES = Catalogue("switch", _HERE / "switches.toml")
NICS = Catalogue("NIC", _HERE / "nics.toml")
LINKS = Catalogue("link", _HERE / "links.toml")
GPUS = Catalogue("GPU", _HERE / "gpus.toml")
SERVERS = Catalogue("node", _HERE / "servers.toml")

_ECN = {"ecn_kmin_bytes": "kmin_bytes", "ecn_kmax_bytes": "kmax_bytes", "ecn_pmax": "pmax"}
_INFINIBAND = (
    "an InfiniBand switch, simulated as an Ethernet switch of its figures: frames of RoCEv2, a shared buffer,"
    " PFC and ECN in place of InfiniBand's packets, buffers per virtual lane and credits"
)
_PORTS = ("capacity_bps", "port_rate_bps", "max_ports")
_COMPUTING = {
    "bf16_dense_flops", "fp8_dense_flops", "fp4_dense_flops", "achieved_bf16_flops", "achieved_fp8_flops",
    "achieved_fp8_low_flops", "achieved_fp4_flops", "memory_bytes",
    "memory_copy_bandwidth_bps", "flash_attention_share", "scan_flops", "streaming_multiprocessors",
}  # fmt: skip
FP4_SHARE = 0.84  # chosen: four bits lose of eight what eight lose of sixteen, Software.fp8_efficiency
_NODE = ("nic", "nic_port_rate_bps", "rails", "gpu", "pod_link_rate_bps")  # of a node, beside its server
_NVLINK = ("nvlink_raw_rate_bps", "nvlink_efficiency")  # their product is what a message gets


def switch(name: str, *, port_rate_bps: int | None = None) -> Switch:
    """The record of a switch.

    Parameters
    ----------
    name : of the catalogue; ``plain`` has the defaults of the record
    port_rate_bps : of the links, which decides how many ports there are; by default the fastest port

    Raises
    ------
    ConfigError : no such switch, or no port as fast as that

    Examples
    --------
    >>> switch("tomahawk-5", port_rate_bps=400_000_000_000).radix
    128
    """
    row = SWITCHES.find(name, path="fabric.switch")
    fields = {key: row.value(key) for key in row.figures if key in Switch.model_fields}
    ecn = {_ECN[key]: row.value(key) for key in row.figures if key in _ECN}
    return Switch(name=name, radix=ports_at(name, port_rate_bps), ecn=Ecn(**ecn), **fields)


def ports_at(name: str, port_rate_bps: int | None = None) -> int:
    """Ports of a switch at a rate; 0 means any number.

    It is 0 if the row has no capacity.

    Parameters
    ----------
    name : of the catalogue
    port_rate_bps : of every port; by default the fastest

    Raises
    ------
    ConfigError : no such switch, or no port as fast as that
    """
    row = SWITCHES.find(name, path="fabric.switch")
    if "capacity_bps" not in row.figures:
        return 0
    fastest = int(row.value("port_rate_bps"))
    rate = port_rate_bps or fastest
    if rate > fastest:
        wanted = format_quantity(RATE, fastest)
        text = f"links of {format_quantity(RATE, rate)} do not fit '{name}', whose fastest port has {wanted}"
        raise ConfigError("fabric", [Mistake(path="fabric.switch", text=text)])
    return min(int(row.value("capacity_bps")) // rate, max_ports(name))


def max_ports(name: str) -> int:
    """Most ports of a switch at any rate; 0 means any number.

    It is 0 if the row does not say.

    Raises
    ------
    ConfigError : no such switch
    """
    row = SWITCHES.find(name, path="fabric.switch")
    return int(row.value("max_ports")) if "max_ports" in row.figures else 0


def nic(name: str) -> Nic:
    """The record of a NIC; ``plain`` has the defaults of the record.

    Raises
    ------
    ConfigError : no such NIC
    """
    row = NICS.find(name, path="fabric.nic")
    return Nic(name=name, **{key: row.value(key) for key in row.figures if key in Nic.model_fields})


def nic_rates_bps() -> dict[str, int]:
    """The rate that each NIC is sold with, of all its ports, by name; those without a figure are left out."""
    return {name: int(row.value("rate_bps")) for name, row in NICS.items() if "rate_bps" in row.figures}


def nic_for_rate(rate_bps: int, *, like: str = "") -> str | None:
    """The slowest NIC that is sold with a rate, or with more; None without one.

    Parameters
    ----------
    rate_bps : of all its ports
    like : a NIC, of whose family others come first, such as connectx-7
    """
    family = like.partition("-")[0]
    fast = [
        (name.partition("-")[0] != family, rate, name) for name, rate in nic_rates_bps().items() if rate >= rate_bps
    ]
    return min(fast)[2] if fast else None


def is_custom_nic(node_name: str, nic_name: str) -> bool:
    """Whether a server of the catalogue is sold with another NIC: the one that its row names, with a source.

    Examples
    --------
    >>> [is_custom_nic("dgx-b200", name) for name in ("connectx-7", "connectx-8")], is_custom_nic("plain", "plain")
    ([False, True], False)
    """
    row = SERVERS.get(node_name)
    if row is None or "nic" not in row.figures:
        return False
    return bool(row.value("nic") != nic_name)


def node(name: str) -> NodeModel:
    """A server with its NIC, port rate and rails.

    Raises
    ------
    ConfigError : no such server

    Examples
    --------
    >>> node("dgx-h100").server.gpus, node("dgx-h100").nic, node("p5").server.nic_ports
    (8, 'connectx-7', 32)
    """
    row = SERVERS.find(name, path="fabric.node")
    fields = {key: row.value(key) for key in row.figures if key in Server.model_fields}
    if "nvlink_raw_rate_bps" in row.figures:
        fields["nvlink_rate_bps"] = round(row.value("nvlink_raw_rate_bps") * row.value("nvlink_efficiency"))
    return NodeModel(
        server=Server(name=name, **fields),
        **{key: row.value(key) for key in _NODE if key in row.figures},
    )


def nodes() -> dict[str, NodeModel]:
    """All servers of the catalogue by name."""
    return {name: node(name) for name in SERVERS}


def server_gpu(name: str) -> str | None:
    """The GPU of a server, of the catalogue; None for a server that has none or is not of the catalogue.

    Parameters
    ----------
    name : of the server

    Examples
    --------
    >>> server_gpu("dgx-h100"), server_gpu("plain")
    ('h100', None)
    """
    row = SERVERS.get(name)
    return None if row is None or "gpu" not in row.figures else str(row.value("gpu"))


def gpu(
    name: str, *, path: str = "training.gpu", rates: ProductRates = "best-shape", sustained_rate: float | None = None
) -> Gpu:
    """The record of a GPU: rates of computing, reading and writing.

    Parameters
    ----------
    name : of the catalogue
    path : of the key that holds the name, for the error
    rates : of dense products: of the best shape of a benchmark, or the median of many shapes times what training keeps
    sustained_rate : what training keeps of a measured rate, in each format; None: the shares of the GPU's row

    Raises
    ------
    ConfigError : no such GPU, or nobody has timed products of many shapes on it

    Examples
    --------
    >>> round(gpu("gb300").achieved_share, 3), gpu("a100").streaming_multiprocessors
    (0.725, 108)
    """
    row = GPUS.find(name, path=path)
    peak, fp8_peak = row.value("bf16_dense_flops"), row.value("fp8_dense_flops")
    achieved = row.value("achieved_bf16_flops") / peak
    fp8, fp8_low = (
        row.value(key) / fp8_peak if key in row.figures else None
        for key in ("achieved_fp8_flops", "achieved_fp8_low_flops")
    )
    has_fp4 = "achieved_fp4_flops" in row.figures
    fp4 = row.value("achieved_fp4_flops") / row.value("fp4_dense_flops") if has_fp4 else FP4_SHARE * (fp8 or achieved)
    if rates == "measured":
        if "burst_bf16_flops" not in row.figures:
            timed = sorted(other for other in GPUS if "burst_bf16_flops" in GPUS[other].figures)
            text = f"found 'measured', but nobody has published times of products on '{name}'; {', '.join(timed)} have"
            raise ConfigError(
                "training", [Mistake(path=f"{path.rpartition('.')[0]}.rates", text=text, fix="best-shape")]
            )
        achieved, fp8, fp4 = (
            kept / row.value(f"{format_}_dense_flops") for format_, kept in _sustained(row, sustained_rate).items()
        )
        fp8_low = None
    return Gpu(
        name=name,
        bf16_flops=peak,
        fp8_flops=fp8_peak,
        fp4_flops=row.value("fp4_dense_flops"),
        achieved_share=achieved,
        achieved_fp8_share=fp8 or achieved,
        achieved_fp4_share=fp4,
        achieved_fp8_low_share=fp8_low or fp8 or achieved,
        memory_bytes=row.value("memory_bytes"),
        memory_copy_bytes_per_s=row.value("memory_copy_bandwidth_bps") / 8,
        flash_attention_share=row.value("flash_attention_share"),
        scan_flops=row.value("scan_flops"),
        streaming_multiprocessors=row.value("streaming_multiprocessors"),
    )


def _sustained(row: Row, sustained_rate: float | None) -> dict[str, float]:
    """Rates of products that training keeps, FLOP/s; a format that a GPU lacks runs as the next larger one."""
    rates: dict[str, float] = {}
    flops = 0.0
    for format_ in ("bf16", "fp8", "fp4"):
        if f"burst_{format_}_flops" in row.figures:
            share = row.value(f"sustained_{format_}_share") if sustained_rate is None else sustained_rate
            flops = row.value(f"burst_{format_}_flops") * share
        rates[format_] = flops
    return rates


def gpu_caveats(
    name: str, *, rates: ProductRates = "best-shape", sustained_rate: float | None = None
) -> dict[str, Caveat]:
    """Caveats of a GPU's computing figures, by ``name.key``.

    They are unverified or chosen figures, those of the rates of products that are used; empty for an unknown name.
    """
    if rates == "best-shape":
        return _caveats(GPUS, name, _COMPUTING)
    used = {key for key in _COMPUTING if not key.startswith("achieved_")}
    used |= {f"burst_{format_}_flops" for format_ in ("bf16", "fp8", "fp4")}
    if sustained_rate is None:
        used |= {f"sustained_{format_}_share" for format_ in ("bf16", "fp8", "fp4")}
    return _caveats(GPUS, name, used)


def switch_caveats(name: str) -> dict[str, Caveat]:
    """Caveats of a switch's figures in a fabric, by ``name.key``.

    They are unverified or chosen figures; empty for an unknown name. For a switch of InfiniBand also, by ``name``, that
    it is simulated as an Ethernet switch.
    """
    found = _caveats(SWITCHES, name, {*Switch.model_fields, *_ECN, *_PORTS})
    row = SWITCHES.get(name)
    if row is None or "InfiniBand" not in row.title:
        return found
    return {name: Caveat(subject=name, kind="approximate", text=_INFINIBAND), **found}


def nic_caveats(name: str) -> dict[str, Caveat]:
    """Caveats of a NIC's figures in a fabric, by ``name.key``.

    They are unverified or chosen figures; empty for an unknown name.
    """
    return _caveats(NICS, name, set(Nic.model_fields))


def node_caveats(name: str) -> dict[str, Caveat]:
    """Caveats of a server, by ``name.key``.

    They are unverified or chosen figures; empty for plain and unknown names. For a server whose GPUs are linked
    pairwise also, by ``name``, that any two of them get the rate of all links of a GPU.
    """
    if name == "plain":
        return {}
    used = {*Server.model_fields, *_NVLINK, "nic_port_rate_bps", "rails", "pod_link_rate_bps"}
    found = _caveats(SERVERS, name, used)
    row = SERVERS.get(name)
    if row is None or "pair_rate_bps" not in row.figures:
        return found
    text = (
        f"its GPUs are linked pairwise, {row.figures['pair_rate_bps'].text} between two of them; simulated as if a"
        " switch joined them, so that groups of fewer GPUs than the server has are too fast"
    )
    return {name: Caveat(subject=name, kind="approximate", text=text), **found}


def _caveats(catalogue: Catalogue, name: str, used: set[str]) -> dict[str, Caveat]:
    row = catalogue.get(name)
    caveats = row.caveats() if row is not None else {}
    return {key: caveat for key, caveat in caveats.items() if key.removeprefix(f"{name}.") in used}
