"""Settings and columns of a flow run: fabric, job, routes, and what is asked of the run.

Source: docs/models/flow-engine.md; `weftwork.engine.flow.run`, `weftwork.engine.flow.paths` and
`weftwork.engine.flow.folding` fill them.
"""

from __future__ import annotations

from typing import Final

from weftwork.engine.flow.flow_input import FOLDING, FlowInput, Mode, Variant
from weftwork.engine.flow.route_rule import RouteRule
from weftwork.engine.rows.declare import ArrayField, Enum, Header, Input, RowField, flag, members_of, real, whole
from weftwork.engine.rows.transport import LOSS_RULES

__all__ = [
    "FLOW_FABRIC",
    "FLOW_FOLD",
    "FLOW_JOB",
    "FLOW_LAYER",
    "FLOW_LAYERS",
    "FLOW_ROUTER",
    "FLOW_RUN",
    "FLUID_RUN",
    "HEADER",
    "ROUTE_RULE",
]  # fmt: skip

_MODE: Final = RowField(name="mode", type="int64", identity="Mode", text="how messages choose their paths")
_FOLDING: Final = RowField(name="folding", type="int64", identity="Folding", text="of ranks that are alike")

FLOW_FABRIC: Final = Input(
    struct="FabricRows",
    space="flow",
    text="What a router reads of a fabric. N nodes, P ports.",
    members=members_of(FlowInput, "fabric"),
)
FLOW_JOB: Final = Input(
    struct="JobRows",
    space="flow",
    text="A job of R ranks.",
    members=members_of(FlowInput, "job"),
)
ROUTE_RULE: Final = Input(
    struct="RouteRuleRows",
    space="flow",
    text="The rule of routes, and the detours; arrays are empty where no route depends on them.",
    members=members_of(RouteRule),
)
FLOW_LAYER: Final = Input(
    struct="LayerTable",
    space="flow",
    text="Ways over the links of one table of routes. N nodes, A attachments.",
    members=(
        ArrayField(name="next_port", item="int32", text="(layers, N, A), -1 where the shortest paths hold"),
        ArrayField(name="layer_of", item="int32", text="(A, A, ways), -1 for the shortest paths"),
        whole("ways", "of each pair of attachments"),
        whole("pinned_ways", "how many of the ways, the first ones, are pinned"),
    ),
)
FLOW_LAYERS: Final = Input(
    struct="LayersRows",
    space="flow",
    text="Layers of routes besides their tables.",
    members=(
        ArrayField(name="node_attachment", item="int32", by="NodeId", text="(N,), attachment that a node is, or -1"),
        whole("attachments", "how many there are"),
        flag("spreads_ways", "every flow takes all ways of its pair of attachments alike, not one by its entropy"),
    ),
)
FLOW_RUN: Final = Input(
    struct="FlowInputRows",
    space="flow",
    text="What crosses of weftwork.engine.flow.flow_input.FlowInput besides fabric, job and routes.",
    members=(
        *members_of(FlowInput),
        ArrayField(
            name="port_loss", item="float64", by="PortId", text="(P,), of a packet; empty: nothing is ever lost"
        ),
        ArrayField(name="loss_rules", item="", rows=LOSS_RULES, text="(1,), what losses cost"),
        _FOLDING,
        whole("tiers", "how many there are"),
        whole("tier_bins", "bins of time of the traffic by tiers, at most"),
        whole("timeline_bins", "bins of time of the timeline of ports, at most; 0: none"),
        flag("has_details", "segments and activities are recorded"),
    ),
)
FLOW_ROUTER: Final = Input(
    struct="RouterRows",
    space="flow",
    text="What a router reads besides fabric, layers and rule.",
    members=(
        _MODE,
        whole("most_steps", "links that a search for destinations may look at, where those that are up form no tiers"),
    ),
)
FLOW_FOLD: Final = Input(
    struct="FoldRows",
    space="flow",
    text="What folding reads besides fabric, job and routes.",
    members=(
        _MODE,
        _FOLDING,
        whole("cell_limit", "cells of activities above which `auto` takes the core"),
        whole("core_slots", "operations of all ranks of the replicas that run in a core"),
        whole("core_few", "kinds of no more activities are kept whole", type="int32"),
        ArrayField(
            name="link_fate",
            item="uint64",
            by="LinkId",
            text="equal where capacities change alike over the run; empty: none changes",
        ),
        real("wire_factor", "bytes on a link for each byte of payload"),
        ArrayField(name="host_rate_bps", item="int64", by="PortId", text="(P,), of the host interface; 0: none"),
    ),
)
FLUID_RUN: Final = Input(
    struct="FluidInput",
    space="flow",
    text="A run of the fluid solver whose starts are known beforehand. V variables, S starts in order of time.",
    members=(
        ArrayField(name="capacity", item="float64", text="by constraint"),
        ArrayField(name="variable_ptr", item="int64", text="(V + 1,), where the hops of each variable begin"),
        ArrayField(name="hop_constraint", item="int32", holds="ConstraintId", text="of each hop"),
        ArrayField(name="hop_weight", item="float64", text="of each hop"),
        ArrayField(name="start_at_ps", item="float64", text="(S,), when"),
        ArrayField(name="start_variable", item="int32", holds="VariableId", text="(S,), of which"),
        ArrayField(name="start_amount", item="float64", text="(S,), of what"),
        real("tolerance", "of a share, relative"),
        whole("check_every", "events between two comparisons with textbook filling; 0: none"),
    ),
)
HEADER: Final = Header(
    name="flow_run",
    text="A flow run as its engine takes it.",
    includes=("base/ids.hpp", "flow/ids.hpp", "rows/fabric.hpp", "rows/job.hpp", "rows/transport.hpp"),
    parts=(
        Enum.of(Mode, name="Mode", text="Path choice of messages.", space="flow"),
        Enum.of_words(FOLDING, name="Folding", text="Folding of ranks that are alike.", space="flow"),
        Enum.of(Variant, name="Variant", text="Questions that a run of an input can answer.", space="flow"),
        FLOW_FABRIC,
        FLOW_JOB,
        ROUTE_RULE,
        FLOW_LAYER,
        FLOW_LAYERS,
        FLOW_RUN,
        FLOW_ROUTER,
        FLOW_FOLD,
        FLUID_RUN,
    ),
)
