// Written by `python -m weftwork.engine.rows` from its declarations; change those.
// clang-format off
/// Results of a flow run, and paths.
#pragma once
#include <cstdint>
#include <span>

#include "flow/ids.hpp"

namespace weftwork::python {

/// What ran: a rank, or the one that stands for ranks that are alike.
struct ActorRow {
  /// that ran
  std::int64_t rank;
  /// that are alike
  std::int64_t ranks;
  /// that they run
  std::int64_t program;
};

/// Traffic of a tier in a bin of time.
struct TierRow {
  /// begin of the bin [ps]
  std::int64_t start_ps;
  /// end of the bin [ps]
  std::int64_t at_ps;
  /// index of the tier's name
  std::int64_t tier;
  /// headers and gaps included [byte]
  double bytes;
  /// mean number in progress; inside servers of ranks that communicate
  double flows;
};

/// Packets of a connection at an egress port.
struct LaneRow {
  /// rank
  std::int64_t source;
  /// rank
  std::int64_t destination;
  /// of the job
  std::int64_t channel;
  /// egress
  std::int64_t port;
  /// of the connection
  std::int64_t packets;
};

/// What a path is besides its hops.
struct RouteRow {
  /// 0: no path; the rest is then 0 and there are no hops
  std::int64_t reachable;
  /// crossed one after the other
  std::int64_t links;
  /// of several paths the longest [ps]
  std::int64_t latency_ps;
  /// that the path carries for one flow alone [bit/s]
  double rate_bps;
};

/// A flow whose path is asked for.
struct FlowEndsRow {
  /// NIC_ROW port
  std::int64_t source_port;
  /// NIC_ROW port
  std::int64_t destination_port;
  /// that switches hash
  std::int64_t entropy;
  /// that switches hash
  std::int64_t destination_qp;
  /// that draws its detour
  std::int64_t queue_pair_hash;
};

/// How far a flow run has come.
struct FlowProgressRow {
  /// instant that was reached [ps]
  std::int64_t simulated_ps;
  /// of the last completion [ps]
  std::int64_t end_ps;
  /// of the run
  std::int64_t events;
  /// new shares
  std::int64_t solves;
  /// payload [byte]
  std::int64_t delivered_bytes;
};

/// What a job was folded to; all 0 where every message was posted by itself.
struct FoldedRow {
  /// of the job
  std::int64_t ranks;
  /// that run
  std::int64_t actors;
  /// of the job
  std::int64_t activities;
  /// of activities that are alike
  std::int64_t activity_cells;
  /// of the fabric and inside servers
  std::int64_t links;
  /// of links that are alike
  std::int64_t link_cells;
  /// activities of the critical core
  std::int64_t kept;
  /// of refinement
  std::int64_t rounds;
};

/// How a whole run of the fluid solver went.
struct FluidReportRow {
  /// of the comparisons with textbook filling, relative
  double worst_rate_error;
  /// of the thread, from the first start to the last completion
  double cpu_s;
  /// activities at one time
  std::int64_t most_alive;
  /// repairs after starts, ends and changes of one instant
  std::int64_t events;
  /// of which by filling from scratch
  std::int64_t full;
  /// constraints brought to a new share
  std::int64_t links;
  /// of variables that a repair changed
  std::int64_t rates;
  /// variables that got another bottleneck
  std::int64_t moves;
};

}  // namespace weftwork::python

namespace weftwork::flow {

/// What went over a port.
struct Carried {
  /// headers and gaps included [byte]
  double bytes;
  /// a fraction where a message was spread
  double packets;
};

/// A milestone that an actor has passed.
struct MilestoneRow {
  /// that passed it
  std::int64_t actor;
  /// index of its name
  std::int64_t name;
  /// when [ps]
  std::int64_t at_ps;
};

/// Uses of an actor's time.
enum class Spent : std::int64_t {
  kComputing = 0,
  kWaiting = 1,
  kCommunicating = 2,
};

/// Time of an actor's first stream.
struct SegmentRow {
  /// whose time it is
  std::int64_t actor;
  /// index of a label, -1: none
  std::int64_t label;
  /// index into SPENT
  std::int64_t code;
  /// begin [ps]
  std::int64_t start_ps;
  /// end [ps]
  std::int64_t end_ps;
};

/// A whole collective, or a message that has a label.
struct ActivityRow {
  /// index of a label
  std::int64_t label;
  /// of the job
  std::int64_t channel;
  /// index into PATTERNS, -1: a message
  std::int64_t pattern;
  /// who posted first
  std::int64_t actor;
  /// members
  std::int64_t ranks;
  /// how many alike are folded into it
  std::int64_t instances;
  /// of the network, of one instance
  std::int64_t flows;
  /// index of the operation's name, -1: a message
  std::int64_t operation;
  /// of the collective or message [byte]
  std::int64_t size_bytes;
  /// when the first member came [ps]
  std::int64_t posted_ps;
  /// begin [ps]
  std::int64_t start_ps;
  /// end [ps]
  std::int64_t end_ps;
};

/// One link that an activity crosses.
struct Hop {
  /// that is crossed: the port that sends on it, or the port that stands for a bundle
  LinkId link;
  /// bytes on the link for each byte (unit of service) of the activity
  double weight;
};

}  // namespace weftwork::flow
