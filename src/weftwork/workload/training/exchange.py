"""Bytes that tokens bring to their experts.

A token is copied for each expert, or once for each rank and domain. NCCL's all-to-all sends a token to each of its k
experts. DeepEP and HybridEP send it once to each rank that has one of them: over NVLink in the sender's own domain, and
once to each other domain by a NIC, from where it goes on over NVLink. Experts are chosen evenly, so that a given one of
n ranks has one of a token's k experts with probability
1 - (1 - 1 / n)^k.
Source: deepseek-ai/DeepEP, README.md (forwarding from the NVLink domain to the RDMA domain); its branch hybrid-ep.
Leaves out: routing that limits the domains of a token; experts of a token that differ for sure, which k of many are.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ExchangeShares", "deduplicated"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExchangeShares:
    """Bytes over NVLink and NICs, relative to a copying all-to-all.

    The all-to-all copies a token for each expert.
    """

    local: float = 1.0
    network: float = 1.0


def deduplicated(*, members: int, per_domain: int, smallest_domain: int, chosen: int) -> ExchangeShares:
    """Shares if a token is copied once per rank and remote domain.

    Parameters
    ----------
    members : ranks that have the experts
    per_domain, smallest_domain : of them in an NVLink domain, where most and where fewest are
    chosen : experts of a token

    Examples
    --------
    >>> shares = deduplicated(members=8, per_domain=8, smallest_domain=8, chosen=8)
    >>> round(shares.local, 3), shares.network
    (0.656, 1.0)
    """
    chosen = max(chosen, 1)
    far = members - per_domain
    is_wanted = 1 - (1 - 1 / members) ** chosen  # of one rank
    own, forwarded = (per_domain - 1) * is_wanted, far * (1 - 1 / smallest_domain) * is_wanted
    copies = chosen / members  # that one rank gets of a token
    part = smallest_domain / members
    return ExchangeShares(
        local=(own + forwarded) / (copies * (per_domain - 1)) if per_domain > 1 else 1.0,
        network=min(1.0, (1 - (1 - part) ** chosen) / (chosen * part)) if far else 1.0,
    )
