// Written by `python -m weftwork.engine.rows` from its declarations; change those.
// clang-format off
/// A flow run as its engine takes it.
#pragma once
#include <cstdint>
#include <span>

#include "base/ids.hpp"
#include "flow/ids.hpp"
#include "rows/fabric.hpp"
#include "rows/job.hpp"
#include "rows/transport.hpp"

namespace weftwork::flow {

/// Path choice of messages.
enum class Mode : std::int64_t {
  kSpray = 0,
  kHashed = 1,
  kDeterministic = 2,
  kWeighted = 3,
};

/// Folding of ranks that are alike.
enum class Folding : std::int64_t {
  kAuto = 0,
  kNever = 1,
  kExact = 2,
  kCore = 3,
};

/// Questions that a run of an input can answer.
enum class Variant : std::int64_t {
  kPlain = 0,
  kIdeal = 1,
  kFastest = 2,
  kSlowest = 3,
};

/// What a router reads of a fabric. N nodes, P ports.
struct FabricRows {
  /// (N,), HOST or SWITCH of weftwork.spec.fabric
  IdSpan<NodeId, const std::int8_t> node_kind;
  /// (N,), 0: hosts
  IdSpan<NodeId, const std::int8_t> node_tier;
  /// (N,), row of the NICs or switches
  IdSpan<NodeId, const DeviceId> node_device;
  /// (N + 1,), first port of each node; ports of a node are contiguous
  IdSpan<NodeId, const std::int64_t> port_base;
  /// (P,), node of each port
  IdSpan<PortId, const NodeId> port_node;
  /// (P,), far end of each port; -1 without a link
  IdSpan<PortId, const PortId> port_peer;
  /// (P,), of the direction that leaves the port [bit/s]
  IdSpan<PortId, const std::int64_t> port_rate_bps;
  /// (P,), of the direction that leaves the port [ps]
  IdSpan<PortId, const std::int64_t> port_delay_ps;
  /// settings of switches
  IdSpan<DeviceId, const SwitchRow> switches;
};

/// A job of R ranks.
struct JobRows {
  /// of the run
  std::uint64_t seed = 0;
  /// operations of the job's programs
  IdSpan<OpId, const OpRow> ops;
  /// streams of the programs, ordered by program
  std::span<const StreamRow> streams;
  /// peers and coordinates of ranks that operations look up
  std::span<const std::int64_t> tables;
  /// terms of the numbers of parts
  std::span<const DigitRow> digits;
  /// collectives; the value of a COLLECT is a row
  IdSpan<CollectId, const CollectRow> collects;
  /// axes of their grids
  std::span<const AxisRow> axes;
  /// (R,), program of each rank
  IdSpan<RankId, const ProgramId> rank_program;
  /// by program, the rank from which its peers and groups count; empty: 0
  IdSpan<ProgramId, const std::int64_t> program_first_rank;
  /// (R,), node of each rank
  IdSpan<RankId, const NodeId> rank_host;
  /// (R, K), NIC ports of each rank, the usual one first
  std::span<const PortId> rank_ports;
  /// (R,), ports of each rank inside its server
  IdSpan<RankId, const GpuRow> rank_gpu;
  /// (R,), how many times longer a rank computes; empty: 1
  IdSpan<RankId, const double> rank_factor;
  /// queue pairs whose entropy is given
  std::span<const PinRow> pins;
};

/// The rule of routes, and the detours; arrays are empty where no route depends on them.
struct RouteRuleRows {
  /// as weftwork.spec.routing.Routing
  bool up_down = false;
  /// as weftwork.spec.routing.Routing
  bool dimension_order = false;
  /// as weftwork.spec.routing.Routing
  bool fewest_global_hops = false;
  /// (P,), dimension of each port's link
  IdSpan<PortId, const std::int8_t> port_dimension;
  /// the dimension of links between groups; -2: there are none
  std::int64_t global_dimension = 0;
  /// (A,), attachments that a detour may go by, those of a group one after the other
  std::span<const std::int32_t> detour_order;
  /// (groups + 1,), where each group of the detour order begins
  std::span<const std::int64_t> detour_base;
  /// (A,), group of each attachment
  std::span<const std::int32_t> detour_group;
  /// detours avoid the group of the destination too; else only the source's
  bool detour_by_group = false;
  /// flows divide themselves between shortest paths and detours, in place of detouring whole
  bool adapts = false;
  /// (N,), group of each switch, where detours turn at the first switch of a group
  IdSpan<NodeId, const std::int32_t> node_group;
};

/// Ways over the links of one table of routes. N nodes, A attachments.
struct LayerTable {
  /// (layers, N, A), -1 where the shortest paths hold
  std::span<const std::int32_t> next_port;
  /// (A, A, ways), -1 for the shortest paths
  std::span<const std::int32_t> layer_of;
  /// of each pair of attachments
  std::int64_t ways = 0;
  /// how many of the ways, the first ones, are pinned
  std::int64_t pinned_ways = 0;
};

/// Layers of routes besides their tables.
struct LayersRows {
  /// (N,), attachment that a node is, or -1
  IdSpan<NodeId, const std::int32_t> node_attachment;
  /// how many there are
  std::int64_t attachments = 0;
  /// every flow takes all ways of its pair of attachments alike, not one by its entropy
  bool spreads_ways = false;
};

/// What crosses of weftwork.engine.flow.flow_input.FlowInput besides fabric, job and routes.
struct FlowInputRows {
  /// the run ends before the first event at or after it [ps]
  std::int64_t until_ps = 0;
  /// how messages choose their paths
  Mode mode = {};
  /// load of a link that is left unsettled, as a share of its capacity
  double tolerance = 0;
  /// settings of NICs
  IdSpan<DeviceId, const NicRow> nics;
  /// (tables, P), 1: the link of the port is up as far as the table of routes knows; ROUTES takes one of them
  std::span<const std::uint8_t> live;
  /// changes of the fabric, ordered by time and then as they are applied
  std::span<const InstantRow> instants;
  /// of a rank
  std::int64_t tokens = 0;
  /// (P,), tier of each port's link
  IdSpan<PortId, const std::int32_t> tier_of_port;
  /// (P,), of a packet; empty: nothing is ever lost
  IdSpan<PortId, const double> port_loss;
  /// (1,), what losses cost
  std::span<const LossRules> loss_rules;
  /// of ranks that are alike
  Folding folding = {};
  /// how many there are
  std::int64_t tiers = 0;
  /// bins of time of the traffic by tiers, at most
  std::int64_t tier_bins = 0;
  /// bins of time of the timeline of ports, at most; 0: none
  std::int64_t timeline_bins = 0;
  /// segments and activities are recorded
  bool has_details = false;
};

/// What a router reads besides fabric, layers and rule.
struct RouterRows {
  /// how messages choose their paths
  Mode mode = {};
  /// links that a search for destinations may look at, where those that are up form no tiers
  std::int64_t most_steps = 0;
};

/// What folding reads besides fabric, job and routes.
struct FoldRows {
  /// how messages choose their paths
  Mode mode = {};
  /// of ranks that are alike
  Folding folding = {};
  /// cells of activities above which `auto` takes the core
  std::int64_t cell_limit = 0;
  /// operations of all ranks of the replicas that run in a core
  std::int64_t core_slots = 0;
  /// kinds of no more activities are kept whole
  std::int32_t core_few = 0;
  /// equal where capacities change alike over the run; empty: none changes
  IdSpan<LinkId, const std::uint64_t> link_fate;
  /// bytes on a link for each byte of payload
  double wire_factor = 0;
  /// (P,), of the host interface; 0: none [bit/s]
  IdSpan<PortId, const std::int64_t> host_rate_bps;
};

/// A run of the fluid solver whose starts are known beforehand. V variables, S starts in order of time.
struct FluidInput {
  /// by constraint
  std::span<const double> capacity;
  /// (V + 1,), where the hops of each variable begin
  std::span<const std::int64_t> variable_ptr;
  /// of each hop
  std::span<const ConstraintId> hop_constraint;
  /// of each hop
  std::span<const double> hop_weight;
  /// (S,), when [ps]
  std::span<const double> start_at_ps;
  /// (S,), of which
  std::span<const VariableId> start_variable;
  /// (S,), of what
  std::span<const double> start_amount;
  /// of a share, relative
  double tolerance = 0;
  /// events between two comparisons with textbook filling; 0: none
  std::int64_t check_every = 0;
};

}  // namespace weftwork::flow
