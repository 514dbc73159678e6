/// The state of one run of the flow engine: plain structs in arrays by stream, by connection and by message.
/// Naming rule: instants are `..._at_ps`, durations `..._ps`.
#pragma once
#include <cstdint>
#include <memory>
#include <queue>
#include <unordered_map>
#include <vector>

#include "base/programs.hpp"
#include "base/waits.hpp"
#include "flow/bins.hpp"
#include "flow/fold.hpp"
#include "flow/input.hpp"
#include "flow/links.hpp"
#include "flow/message_path.hpp"
#include "flow/network.hpp"
#include "flow/records.hpp"
#include "flow/router.hpp"
#include "flow/rows.hpp"

namespace weftwork::flow {

class Fluid;  // flow/fluid.hpp

enum class Spent : std::int64_t { kComputing, kWaiting, kCommunicating };

/// What the end of an operation was due to: what the time before it went to.
struct Cause {
  std::int32_t label = -1;
  bool is_transfer = false;
  Ps began_at_ps = 0;  // of the transfer: before, nothing was in progress
};

struct StreamState : StreamProgress {
  ActorId actor;
  std::int32_t number = 0;  // among the streams of the actor
  Ps since_ps = 0;          // when it was blocked
  Cause cause;              // of what completed last
};

struct Message {
  std::int64_t size_bytes = 0, ordinal = 0;
  Ps posted_at_ps = 0, began_at_ps = -1, delivered_at_ps = -1, acked_at_ps = -1;
  LaneId lane;
  StreamId stream;
  MessageId next;  // of the lane
  std::int32_t label = -1, left = 0;
  std::int32_t op = 0;  // that posted it
};

/// How a flow in progress divides itself under adaptive routing.
struct Adapted {
  double rate = 0.0;   // bytes per ps that it offers to its path; 0: it has ended
  double share = 0.0;  // that detours
};

/// Messages of one (source, destination, channel), one after the other.
struct Lane {
  PathId detour;                     // of adaptive routing; none: there is no other way
  Adapted adapted;                   // of the head
  VariableId variable;               // of both ways
  RankId source{0}, destination{0};  // or representatives of actors
  std::int64_t channel = 0;
  std::int32_t column = 0;
  PortId source_port, destination_port;
  bool inside = false, peer_rail = false;
  bool queued = false;          // inside a server: known to its egress
  std::int64_t sent_bytes = 0;  // inside a server: of the head
  ConnectionCell folded;        // of the network
  PathId path;                  // unless folded
  MessageId head, tail;
  std::int64_t messages = 0, packets = 0;
  std::int64_t claimed = 0, delivered = 0;
  std::vector<Claim> claims;  // in order
};

/// A path that messages share, with its variable of the fluid.
struct SharedPath {
  MessagePath path;
  VariableId variable;
  double packets = 0;  // that went over it whole
  std::vector<double> tier_weight;
  std::vector<ConstraintHop> hops;  // each link once; under adaptive routing alone
};

/// A rank's port inside its server: lanes in the order in which they were opened, and whose turn it is.
struct Egress {
  std::vector<LaneId> lanes;
  std::size_t next = 0;
  bool busy = false;
};

struct CollectiveCall {
  OperationCell operation;
  std::int32_t posted = 0, left = 0;
  OpId row;
  Ps posted_at_ps = 0, complete_at_ps = 0, ready_at_ps = 0, began_at_ps = -1;
  ActorId actor;  // who posted first
  std::vector<StreamId> streams;
};

struct Communicating {  // a communicator at work
  std::vector<CollectiveCall> calls;
  std::int64_t head = 0;  // the call that runs, or is to run next
  bool running = false;
  std::unordered_map<ActorId, std::int64_t> posted;  // calls
};

enum class Event : std::uint8_t { kFlowEnds, kDelivery, kAck, kEgress, kCallBegins, kCallEnds, kNotify, kStream };

struct AgendaRow {
  Ps at_ps;
  std::uint64_t order;
  Event event;
  std::int64_t what, detail;
  bool operator<(const AgendaRow& other) const {  // for a heap with the earliest on top
    return at_ps != other.at_ps ? at_ps > other.at_ps : order > other.order;
  }
};

/// What the network's activities are in one epoch: see flow/epochs.hpp.
struct Epoch {
  IdVector<ActivityCell, Ps> latency_ps;                    // empty: there is one epoch, and the network tells it
  IdVector<ActivityCell, std::vector<double>> tier_weight;  // bytes by tier for each unit of amount; see done_of
  IdVector<ActivityCell, std::vector<double>> detour_tier_weight;  // under adaptive routing, of detours
};

/// What a run is made on; a second run of the same input takes it over.
struct Ground {
  std::unique_ptr<Folded> folded;           // where the job is run by cells, or has whole collectives
  IdVector<LinkCell, LinkId> link_of_cell;  // where no links are folded
  std::vector<Epoch> epochs;                // of the network
  std::vector<Graph> detours;               // by epoch, of the same activities by their detours; adaptive routing alone
  std::vector<std::int32_t> epoch_begins;   // by instant: the epoch that it begins, or -1
  std::int32_t copy = 0;                    // links of an epoch: how far its copies are from those of the one before
  IdVector<LinkCell, std::int32_t> epoch_of_cell;  // where there are several
};

struct State {
  Input in;
  Ground ground;
  bool is_ideal = false;                  // the network takes no time
  Links links;                            // capacities that hold now, a link of the fabric by itself
  std::int32_t epoch = 0;                 // of the ground's, that holds now
  IdVector<PortId, double> bundle_links;  // how many links a port stands for now
  std::unique_ptr<Router> router;
  const Network* network = nullptr;  // of the ground; null: lanes open as messages are posted
  std::unique_ptr<Fluid> fluid;
  IdVector<ActivityCell, VariableId> variable_of_activity;
  IdVector<ActivityCell, char> is_companion_busy;
  IdVector<ActivityCell, Adapted> adapted;        // of the network, under adaptive routing
  IdVector<LinkId, double> offered;               // bytes per ps, by flows in progress; adaptive routing alone
  IdVector<LinkId, std::int32_t> choice_of_link;  // scratch of flow/adaptive.hpp, -1 between calls

  IdVector<StreamId, StreamState> streams;
  IdVector<ActorId, StreamId> first_stream;  // (A + 1)
  std::vector<std::int64_t> tokens;          // by actor and token
  std::vector<Cause> token_causes;
  IdVector<MessageId, Message> messages;
  std::vector<MessageId> free_messages;  // of folded runs, which keep none
  IdVector<LaneId, Lane> lanes;
  std::unordered_map<std::uint64_t, LaneId> lane_of_flow;
  IdVector<PathId, SharedPath> paths;
  std::unordered_map<std::uint64_t, std::vector<PathId>> paths_of_key;
  IdVector<CommunicatorCell, Communicating> communicators;
  std::unordered_map<ServerPortId, Egress> egresses;
  std::unordered_map<ServerPortId, Ps> ingress_free_ps;

  std::priority_queue<AgendaRow> agenda;
  std::uint64_t order = 0;
  Ps now_ps = 0, end_ps = 0;
  std::int64_t open_work = 0, events = 0, solves = 0;
  std::int64_t delivered_bytes = 0;
  std::size_t next_instant = 0;
  IdVector<PortId, char> is_down, down_at_failover;
  IdVector<PortId, double> carried_bytes, seen_bytes;  // by former bundles; what was told already, by bundle
  std::vector<std::int64_t> finished;

  std::vector<SegmentRow> segments;
  IdVector<ActorId, std::int64_t> last_segment;  // -1: none
  std::vector<ActivityRow> activities;
  std::vector<MilestoneRow> milestones;
  IdVector<ActivityCell, double> done;  // of a folded network: amount; see done_of
  Bins tier_bytes{0, 0}, tier_flows{0, 0}, port_bytes{0, 0};

  /// Whether a constraint is a cell of links.
  [[nodiscard]] bool has_link_cells() const { return network != nullptr && ground.link_of_cell.empty(); }
  /// The constraint that a link is in an epoch, or none where nothing crosses it then.
  [[nodiscard]] ConstraintId constraint_of(LinkId link, std::int32_t in_epoch) const {
    return ConstraintId(has_link_cells() ? network->link_cell[link + in_epoch * ground.copy].value : link.value);
  }
  /// How many copies of its links the network has as constraints of their own.
  [[nodiscard]] std::int32_t link_copies() const {
    return has_link_cells() ? static_cast<std::int32_t>(ground.epochs.size()) : 1;
  }
  /// Of an activity of the network now.
  [[nodiscard]] Ps latency_ps(ActivityCell activity) const {
    if (!adapted.empty() && adapted[activity].share > 0.0)
      return ground.detours[static_cast<std::size_t>(epoch)].latency_ps[ActivityId(activity.value)];
    const Epoch& now = ground.epochs[static_cast<std::size_t>(epoch)];
    return now.latency_ps.empty() ? network->latency_ps[activity] : now.latency_ps[activity];
  }
  /// Of what `done_of` names, now.
  [[nodiscard]] std::vector<double> tier_weight_of(ActivityCell done_cell) const {
    const Epoch& now = ground.epochs[static_cast<std::size_t>(epoch)];
    const double share = adapted.empty() ? 0.0 : adapted[done_cell].share;
    std::vector<double> weight = now.tier_weight[done_cell];
    if (share > 0.0) mix_tiers(weight, now.detour_tier_weight[done_cell], share);
    return weight;
  }
  /// Let a share of what `weight` tells go by detours.
  static void mix_tiers(std::vector<double>& weight, std::span<const double> detour, double share) {
    for (std::size_t tier = 0; tier < weight.size(); ++tier)
      weight[tier] = (1.0 - share) * weight[tier] + share * detour[tier];
  }
  /// Hops of an activity of the network now, as the fluid has them.
  void hops_now(ActivityCell activity, std::vector<ConstraintHop>& hops) const {
    hops.clear();
    for (const CellHop& hop : network->hops_of(activity)) {
      if (!ground.epoch_of_cell.empty() && ground.epoch_of_cell[hop.link] != epoch) continue;
      hops.push_back(
          {ConstraintId(has_link_cells() ? hop.link.value : ground.link_of_cell[hop.link].value), hop.weight});
    }
  }
  void push(Ps at_ps, Event event, std::int64_t what, std::int64_t detail = 0) {
    agenda.push({at_ps, order++, event, what, detail});
  }
  template <typename Kind>
  void push(Ps at_ps, Event event, Id<Kind> what, std::int64_t detail = 0) {
    push(at_ps, event, std::int64_t{what.value}, detail);
  }
  [[nodiscard]] auto actors() const { return id_range(ActorId(0), first_stream.next_id() + -1); }
  [[nodiscard]] RankId rank_of(ActorId actor) const {
    return network != nullptr ? network->actor_rank[actor] : RankId(actor.value);
  }
  [[nodiscard]] ProgramId program_of(ActorId actor) const {
    return network != nullptr ? network->actor_program[actor] : in.job.rank_program[rank_of(actor)];
  }
  [[nodiscard]] std::int64_t ranks_of(ActorId actor) const {
    return network != nullptr ? network->actor_ranks[actor] : 1;
  }
  [[nodiscard]] double factor_of(ActorId actor) const {
    return network != nullptr ? network->actor_factor[actor] : in.job.factor(rank_of(actor));
  }
};

}  // namespace weftwork::flow
