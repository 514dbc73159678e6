"""Heads of attention that context ranks exchange (Ulysses), and their values of a token.

Each of c context ranks has all heads of its tensor rank for a part of the tokens. An all-to-all before attention gives
it a part of the heads for all tokens, another one behind attention gives the tokens back. Keys and values of grouped
queries have fewer heads: where there are fewer than ranks, each is sent to all ranks whose queries need it.
Source: Jacobs et al., arXiv:2309.14509, section 3 (of h values a token 3 h before attention and h behind it, on each
rank for its own tokens); copies of key and value heads: Bekman et al., arXiv:2506.13996, section 3.2.1.
Leaves out: uneven parts of heads; all-to-all inside servers with a ring between them (``a2a+p2p`` of Megatron-LM).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weftwork.base.grammar import plural

if TYPE_CHECKING:
    from weftwork.spec.training import Model, Parallelism

__all__ = ["ExchangedValues", "exchanged_values", "head_misfit"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExchangedValues:
    """Values of a token that a tensor rank exchanges in one layer, in one direction of pass.

    Attributes
    ----------
    query, key, value : before attention, with the copies of keys and values
    result : of attention
    """

    query: int
    key: int
    value: int
    result: int

    @property
    def total(self) -> int:
        """Values of all four."""
        return self.query + self.key + self.value + self.result


def exchanged_values(model: Model, plan: Parallelism) -> ExchangedValues:
    """Values of a token that a tensor rank exchanges in one layer with attention.

    Examples
    --------
    >>> from weftwork.spec.training import Parallelism
    >>> from weftwork.workload.models.catalogue import model
    >>> plan = Parallelism(tensor=4, context=4, context_exchange="all-to-all")
    >>> exchanged_values(model("llama-3-70b"), plan)  # 16 of 64 query heads, 2 of 8 key heads for 4 ranks
    ExchangedValues(query=2048, key=512, value=512, result=2048)
    """
    heads, latent = model.heads // plan.tensor, model.latent_attention
    if latent is not None:  # keys and values are unpacked for every head
        key = latent.no_position_dim + latent.rope_dim
        of_values = heads * latent.value_dim
        return ExchangedValues(query=heads * key, key=heads * key, value=of_values, result=of_values)
    queries, keys = (count * model.head_dim for count in (heads, max(_key_heads(model, plan), plan.context)))
    return ExchangedValues(query=queries, key=keys, value=keys, result=queries)


def head_misfit(model: Model, plan: Parallelism) -> str | None:
    """Why context ranks cannot share the heads of a tensor rank; None where they can."""
    if not plan.exchanges_heads or model.heads % plan.tensor:
        return None
    heads, keys = model.heads // plan.tensor, _key_heads(model, plan)
    if heads % plan.context:
        return (
            f"found {plan.context}, wanted a divisor of the {plural(heads, 'head')} of a tensor rank: with"
            " context_exchange all-to-all each context rank has whole heads"
        )
    if keys % plan.context and plan.context % keys:
        return (
            f"found {plan.context}, wanted a divisor or a multiple of the {plural(keys, 'key head')} of a tensor rank:"
            " with context_exchange all-to-all each context rank has whole heads"
        )
    return None


def _key_heads(model: Model, plan: Parallelism) -> int:
    """Heads of keys, as of values, on a tensor rank."""
    return (model.heads if model.latent_attention is not None else model.key_value_heads) // plan.tensor or 1
