/// The state of one run of the flow engine: plain structs in arrays by stream, by connection and by message.
/// Naming rule: instants are `..._at_ps`, durations `..._ps`.
#pragma once
#include <cstdint>
#include <memory>
#include <queue>
#include <unordered_map>
#include <vector>

#include "base/programs.hpp"
#include "flow/bins.hpp"
#include "flow/fluid.hpp"
#include "flow/fold.hpp"
#include "flow/input.hpp"
#include "flow/links.hpp"
#include "flow/network.hpp"
#include "flow/routed.hpp"
#include "flow/ways.hpp"

namespace weftwork::flow {

enum class Spent : std::int64_t { kComputing, kWaiting, kCommunicating };

/// What the end of an operation was due to: what the time before it went to.
struct Cause {
  std::int32_t label = -1;
  bool is_transfer = false;
  Ps began_at_ps = 0;  // of the transfer: before, nothing was under way
};

struct Stream : StreamProgress {
  std::int32_t actor = 0, number = 0;
  Ps since_ps = 0;  // when it was blocked
  Cause cause;      // of what completed last
};

struct Message {
  std::int64_t size_bytes = 0, ordinal = 0;
  Ps posted_at_ps = 0, began_at_ps = -1, delivered_at_ps = -1, acked_at_ps = -1;
  std::int32_t connection = -1, stream = -1, label = -1, next = -1, left = 0;
};

/// Messages of one (source, destination, channel), one after the other.
struct Lane {
  std::int64_t source = 0, destination = 0;  // ranks, or representatives of actors
  std::int64_t channel = 0;
  std::int32_t column = 0, source_port = -1, destination_port = -1;
  bool inside = false, peer_rail = false;
  bool queued = false;          // inside a server: known to its egress
  std::int64_t sent_bytes = 0;  // inside a server: of the head
  std::int32_t folded = -1;     // of Network::connections
  std::int32_t way = -1;        // of State::ways, unless folded
  std::int32_t head = -1, tail = -1;
  std::int64_t messages = 0, packets = 0;
  std::int64_t claimed = 0, delivered = 0;
  std::vector<std::int32_t> claims;  // streams, in order
};

/// A path that messages share, with its variable of the fluid.
struct SharedWay {
  Way way;
  VariableId variable;
  double packets = 0;  // that went over it whole
  std::vector<double> tier_weight;
};

/// A rank's port inside its server: lanes in the order in which they were opened, and whose turn it is.
struct Egress {
  std::vector<std::int32_t> lanes;
  std::size_t next = 0;
  bool busy = false;
};

struct Call {
  std::int32_t operation = -1, posted = 0, left = 0;
  std::int64_t row = -1;  // of Job::ops
  Ps posted_at_ps = 0, complete_at_ps = 0, ready_at_ps = 0, began_at_ps = -1;
  std::int32_t actor = -1;  // who posted first
  std::vector<std::int32_t> streams;
};

struct Communicating {  // a communicator at work
  std::vector<Call> calls;
  std::int64_t head = 0;  // the call that runs, or is to run next
  bool running = false;
  std::unordered_map<std::int32_t, std::int64_t> posted;  // calls by actor
};

struct SegmentRow {  // SEGMENT_DTYPE
  std::int64_t actor, label, code, start_ps, end_ps;
};

struct ActivityRow {  // ACTIVITY_DTYPE
  std::int64_t label, channel, pattern, actor, ranks, instances, flows, operation, size_bytes, posted_ps, start_ps,
      end_ps;
};

struct MarkRow {  // FLOW_MARK_DTYPE
  std::int64_t actor, name, at_ps;
};

enum class Event : std::uint8_t { kFlowEnds, kDelivery, kAck, kEgress, kCallBegins, kCallEnds, kSignal, kStream };

struct AgendaRow {
  Ps at_ps;
  std::uint64_t order;
  Event event;
  std::int64_t what, detail;
  bool operator<(const AgendaRow& other) const {  // for a heap with the earliest on top
    return at_ps != other.at_ps ? at_ps > other.at_ps : order > other.order;
  }
};

/// What a run is made on; a second run of the same plan takes it over.
struct Ground {
  std::unique_ptr<Folded> folded;                // where the job is run by classes, or has whole collectives
  std::vector<std::int32_t> link_of_class;       // of the network, where no links are folded
  std::vector<double> bundle_links;              // by port: how many links it stands for
  std::vector<std::vector<double>> tier_weight;  // by activity of the network: bytes by tier for each unit of amount
};

/// Bytes by tier for each unit of amount, of instances together; flows on those tiers.
struct Traffic {
  std::span<const double> tier_bytes;
  double flows = 0;
};

struct State {
  Input in;
  Ground ground;
  bool is_ideal = false;  // the network takes no time
  Links links;            // capacities that hold now, a link of the fabric by itself
  std::unique_ptr<Router> router;
  const Network* network = nullptr;  // of the ground; null: lanes open as messages are posted
  std::unique_ptr<Fluid> fluid;
  std::vector<VariableId> variable_of_activity;  // of the network
  std::vector<char> is_companion_busy;           // by activity

  std::vector<Stream> streams;
  std::vector<std::int32_t> first_stream;  // by actor
  std::vector<std::int64_t> tokens;        // by actor and token
  std::vector<Cause> token_causes;
  std::vector<Message> messages;
  std::vector<std::int32_t> free_messages;  // of folded runs, which keep none
  std::vector<Lane> lanes;
  std::unordered_map<std::uint64_t, std::int32_t> lane_of_flow;
  std::vector<SharedWay> ways;
  std::unordered_map<std::uint64_t, std::vector<std::int32_t>> ways_of_key;
  std::vector<Communicating> communicators;
  std::unordered_map<std::int64_t, Egress> egresses;
  std::unordered_map<std::int64_t, Ps> ingress_free_ps;

  std::priority_queue<AgendaRow> agenda;
  std::uint64_t order = 0;
  Ps now_ps = 0, end_ps = 0;
  std::int64_t open_work = 0, events = 0, solves = 0;
  std::int64_t delivered_bytes = 0, posted_bytes = 0;
  std::size_t next_instant = 0;
  std::vector<bool> is_down, down_at_failover;    // by port
  std::vector<double> carried_bytes, seen_bytes;  // by port: of former bundles; by link of the fluid: told already
  std::vector<std::int64_t> finished;

  std::vector<SegmentRow> segments;
  std::vector<std::int64_t> last_segment;  // by actor, -1: none
  std::vector<ActivityRow> activities;
  std::vector<MarkRow> marks;
  std::vector<double> done;  // of a folded network: amount by class of activities
  Bins tier_bytes{0, 0}, tier_flows{0, 0}, port_bytes{0, 0};

  /// Whether a constraint is a class of links.
  [[nodiscard]] bool has_link_classes() const { return network != nullptr && ground.link_of_class.empty(); }
  /// The constraint that a link is, or none where nothing crosses it.
  [[nodiscard]] ConstraintId constraint_of(std::int32_t link) const {
    return ConstraintId(has_link_classes() ? network->link_class[static_cast<std::size_t>(link)] : link);
  }
  void push(Ps at_ps, Event event, std::int64_t what, std::int64_t detail = 0) {
    agenda.push({at_ps, order++, event, what, detail});
  }
  [[nodiscard]] std::int32_t actors() const { return static_cast<std::int32_t>(first_stream.size()) - 1; }
  [[nodiscard]] std::int64_t rank_of(std::int32_t actor) const {
    return network != nullptr ? network->actor_rank[static_cast<std::size_t>(actor)] : actor;
  }
  [[nodiscard]] std::int32_t program_of(std::int32_t actor) const {
    return network != nullptr ? network->actor_program[static_cast<std::size_t>(actor)]
                              : in.job.rank_class[static_cast<std::size_t>(actor)];
  }
  [[nodiscard]] std::int64_t ranks_of(std::int32_t actor) const {
    return network != nullptr ? network->actor_ranks[static_cast<std::size_t>(actor)] : 1;
  }
  [[nodiscard]] double factor_of(std::int32_t actor) const {
    if (network != nullptr) return network->actor_factor[static_cast<std::size_t>(actor)];
    return in.job.rank_factor.empty() ? 1.0 : in.job.rank_factor[static_cast<std::size_t>(actor)];
  }
};

}  // namespace weftwork::flow
