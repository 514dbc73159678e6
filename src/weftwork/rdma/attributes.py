"""Attributes of a queue pair: which change of the state sets them, and which values they have.

Source: IBTA vol. 1, 11.2.5.2 (modify queue pair) and table 91; qp_state_table in Linux
drivers/infiniband/core/verbs.c.
Leaves out: path migration, rate limits.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weftwork.base.errors import UsageError
from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.rdma.verbs import AccessFlags, QpAttr, QpState, QpType
from weftwork.wire.fields import check_fits

__all__ = ["ATTRIBUTES", "ATTRIBUTE_BITS", "ChangedAttributes", "check_attributes", "check_rights"]

_S = QpState
# Bits of the numbers among the attributes: IBTA vol. 1, 9.2 (BTH), 9.6.3 (DETH), 12.7 (of connections).
ATTRIBUTE_BITS: Final = {
    "dest_qp_num": 24,
    "rq_psn": 24,
    "sq_psn": 24,
    "pkey": 16,
    "qkey": 32,
    "min_rnr_timer": 5,
    "timeout": 5,
    "retry_cnt": 3,
    "rnr_retry": 3,
}
_KNOWN_RIGHTS: Final = sum(AccessFlags)


class ChangedAttributes(NamedTuple):
    """Attributes of a change of the state, by their names in `QpAttr`.

    Parameters
    ----------
    needed : that the change sets
    allowed : that it may set beside
    """

    needed: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()


_RIGHTS: Final = frozenset({"pkey", "qp_access_flags"})
_PATH: Final = frozenset({"remote_address", "path_mtu", "dest_qp_num", "rq_psn"})
_QKEY: Final = frozenset({"qkey"})
_KEYS: Final = frozenset({"pkey", "qkey"})
_OF_CONNECTED: Final = ChangedAttributes(allowed=frozenset({"qp_access_flags"}))
_OF_RELIABLE: Final = ChangedAttributes(allowed=frozenset({"qp_access_flags", "min_rnr_timer"}))
_OF_DATAGRAMS: Final = ChangedAttributes(allowed=_QKEY)
_WHILE_SENDING: Final = {QpType.RC: _OF_RELIABLE, QpType.UC: _OF_CONNECTED, QpType.UD: _OF_DATAGRAMS}
# The attributes of each change by type: qp_state_table in Linux drivers/infiniband/core/verbs.c. There a change that is
# not in this table takes no attribute. The partition key is that of the index.
ATTRIBUTES: Final[dict[tuple[QpState, QpState], dict[QpType, ChangedAttributes]]] = {
    (_S.RESET, _S.INIT): {
        QpType.RC: ChangedAttributes(needed=_RIGHTS),
        QpType.UC: ChangedAttributes(needed=_RIGHTS),
        QpType.UD: ChangedAttributes(needed=_KEYS),
    },
    (_S.INIT, _S.INIT): {
        QpType.RC: ChangedAttributes(allowed=_RIGHTS),
        QpType.UC: ChangedAttributes(allowed=_RIGHTS),
        QpType.UD: ChangedAttributes(allowed=_KEYS),
    },
    (_S.INIT, _S.RTR): {
        QpType.RC: ChangedAttributes(_PATH | {"max_dest_rd_atomic", "min_rnr_timer"}, _RIGHTS),
        QpType.UC: ChangedAttributes(_PATH, _RIGHTS),
        QpType.UD: ChangedAttributes(allowed=_KEYS),
    },
    (_S.RTR, _S.RTS): {
        QpType.RC: ChangedAttributes(
            frozenset({"timeout", "retry_cnt", "rnr_retry", "sq_psn", "max_rd_atomic"}), _OF_RELIABLE.allowed
        ),
        QpType.UC: ChangedAttributes(frozenset({"sq_psn"}), _OF_CONNECTED.allowed),
        QpType.UD: ChangedAttributes(frozenset({"sq_psn"}), _QKEY),
    },
    (_S.RTS, _S.RTS): _WHILE_SENDING,
    (_S.SQD, _S.RTS): _WHILE_SENDING,
    (_S.SQD, _S.SQD): {
        QpType.RC: ChangedAttributes(
            allowed=_OF_RELIABLE.allowed
            | {"remote_address", "timeout", "retry_cnt", "rnr_retry", "max_rd_atomic", "max_dest_rd_atomic", "pkey"}
        ),
        QpType.UC: ChangedAttributes(allowed=_RIGHTS | {"remote_address"}),
        QpType.UD: ChangedAttributes(allowed=_KEYS),
    },
    (_S.SQE, _S.RTS): {QpType.UC: _OF_CONNECTED, QpType.UD: _OF_DATAGRAMS},
}
# Changes that may set the attributes of later ones too, so that a record can be given whole.
_SET_AHEAD: Final = frozenset(
    {(before, _S.RESET) for before in _S} | {(_S.RESET, _S.INIT), (_S.INIT, _S.INIT), (_S.INIT, _S.RTR)}
)
# Attributes that a type has, in the order of the table.
_OF_TYPE: Final = {
    qp_type: tuple(
        dict.fromkeys(name for row in ATTRIBUTES.values() for names in row.get(qp_type, ()) for name in sorted(names))
    )
    for qp_type in QpType
}


def check_attributes(
    attr: QpAttr, before: QpAttr, qp_type: QpType, change: tuple[QpState, QpState], max_rd_atomic: int
) -> None:
    """Refuse attributes that a change of the state cannot set, or that no packet can carry.

    Parameters
    ----------
    attr, before : wanted, and as they are
    qp_type : of the queue pair
    change : the states before and after
    max_rd_atomic : limit of the NIC on READs and atomics in flight

    Raises
    ------
    UsageError : names the attribute, what was found, and what is wanted
    """
    _check_changes(attr, before, qp_type, change)
    if attr.selective_repeat and qp_type is not QpType.RC:
        raise UsageError(f"selective_repeat: found it for {qp_type.name}, wanted RC")
    if attr.path_mtu not in PATH_MTUS_BYTES:
        raise UsageError(f"path_mtu: found {attr.path_mtu}, wanted one of {', '.join(map(str, PATH_MTUS_BYTES))}")
    for name, bits in ATTRIBUTE_BITS.items():
        check_fits(name, getattr(attr, name), bits)
    for name in ("max_rd_atomic", "max_dest_rd_atomic"):
        if not 0 <= getattr(attr, name) <= max_rd_atomic:
            raise UsageError(f"{name}: found {getattr(attr, name)}, wanted 0 to {max_rd_atomic}")
    check_rights("qp_access_flags", attr.qp_access_flags)


def _check_changes(attr: QpAttr, before: QpAttr, qp_type: QpType, change: tuple[QpState, QpState]) -> None:
    if change in _SET_AHEAD:
        return
    if attr.selective_repeat != before.selective_repeat:
        raise UsageError("selective_repeat: found a change of a connected queue pair, wanted it by RTR")
    needed, allowed = ATTRIBUTES.get(change, {}).get(qp_type, ChangedAttributes())
    may_change = needed | allowed
    for name in _OF_TYPE[qp_type]:
        if name not in may_change and getattr(attr, name) != getattr(before, name):
            names = ", ".join(sorted(may_change)) or "none"
            way = f"from {change[0].name} to {change[1].name}"
            raise UsageError(
                f"{name}: found {getattr(attr, name)!r}, wanted {getattr(before, name)!r} as it was: "
                f"{way} a queue pair of type {qp_type.name} changes {names}"
            )


def check_rights(name: str, rights: AccessFlags) -> None:
    """Refuse bits that are no rights (ib_check_mr_access in Linux ib_verbs.h)."""
    unknown = int(rights) & ~_KNOWN_RIGHTS
    if unknown:
        raise UsageError(f"{name}: found the unknown bits {unknown:#x}, wanted members of AccessFlags")
