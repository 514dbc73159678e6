/// What the executor runs: actors, their connections and communicators, and the activities that share links.
/// Unfolded, an actor is a rank and a link is a link; folded, both are classes of equal ones (flow/fold.hpp); in the
/// critical core an actor is a class of ranks in lockstep (flow/core.hpp). The executor need not know which.
/// Meaning: docs/models/flow-engine-folding.md.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flow/hop.hpp"

namespace weftwork::flow {

inline constexpr std::int32_t kSkipped = -1;  // slots: this rank's peer is nobody, the operation does nothing
inline constexpr std::int32_t kLater = -2;    // slots: the peer depends on a loop counter (only where not folded)

/// Messages of one (source, destination, channel): one after the other, in order.
/// Its activities are `first_activity` and the next `activities - 1`. A message starts them all, each with its size as
/// amount, and is delivered when all have ended, each its own latency after its transfer. The next `companions` start
/// with it too, those that are not under way still, but nobody waits for them: they are what others send meanwhile.
struct Connection {
  std::int32_t source, destination;  // actors
  std::int32_t first_activity, activities;
  std::int64_t channel;
  std::int64_t instances;  // connections of the job that this one stands for
  std::int32_t companions = 0;
};

/// The members of one group on one channel: calls go one after the other. A call begins when every participant has
/// posted it; participants are the distinct actors among the members.
struct Communicator {
  std::int32_t first_participant, participants;  // in Network::participants
  std::int32_t members;
  std::int64_t channel;
  std::int64_t instances;
};

/// What COLLECT rows of one pattern, efficiencies and network share do in one communicator: a call starts its
/// activities, each with the row's amount_bytes, and ends when all have ended. `flows` of the network carry one
/// instance of it, NVLink and PCIe not counted.
struct Operation {
  std::int32_t communicator;
  std::int32_t first_activity, activities;
  std::int64_t flows;
  std::int32_t companions = 0;  // as of a connection
};

struct Network {
  // Links (classes): bytes per ps. `link_class` has the class of every link of the graph (ports, then the links inside
  // servers, see flow/links.hpp), -1 where no activity crosses it; `link_count` how many links a class has. What a link
  // carries is what its class carries.
  std::vector<double> capacity;
  std::vector<std::int32_t> link_class;
  std::vector<std::int32_t> link_count;

  // Activities (classes), hops in compressed rows. No hops: done at once. Latency: of the longest path.
  std::vector<std::int64_t> hop_ptr{0};
  std::vector<Hop> hops;
  std::vector<std::int64_t> latency_ps;
  std::vector<std::int64_t> activity_instances;

  // Actors: a representative rank, its program, how many ranks it stands for, how many times longer it computes.
  std::vector<std::int32_t> actor_rank, actor_program;
  std::vector<std::int64_t> actor_ranks;
  std::vector<double> actor_factor;
  std::vector<std::int32_t> rank_actor;  // by rank

  // What the SEND, RECEIVE and COLLECT rows of a program mean to an actor. Rows of one meaning share a slot:
  // `op_slot` by row of the operations' table (-1 for other rows); the slots of actor a are
  // slots[slot_ptr[a] + op_slot[row]]: a connection, or for COLLECT an operation; kSkipped, kLater.
  std::vector<std::int32_t> op_slot;
  std::vector<std::int64_t> slot_ptr{0};
  std::vector<std::int32_t> slots;

  std::vector<Connection> connections;
  std::vector<Communicator> communicators;
  std::vector<std::int32_t> participants;
  std::vector<Operation> operations;

  bool folded = false;
  bool approximate = false;  // a critical core; only then has anything more than one activity

  [[nodiscard]] std::int32_t activities() const { return static_cast<std::int32_t>(latency_ps.size()); }
  [[nodiscard]] std::int32_t actors() const { return static_cast<std::int32_t>(actor_rank.size()); }
  [[nodiscard]] std::span<const Hop> hops_of(std::int32_t activity) const {
    const auto a = static_cast<std::size_t>(activity);
    return std::span(hops).subspan(static_cast<std::size_t>(hop_ptr[a]),
                                   static_cast<std::size_t>(hop_ptr[a + 1] - hop_ptr[a]));
  }
  [[nodiscard]] std::int32_t slot(std::int32_t actor, std::int64_t row) const {
    return slots[static_cast<std::size_t>(slot_ptr[static_cast<std::size_t>(actor)] +
                                          op_slot[static_cast<std::size_t>(row)])];
  }
};

}  // namespace weftwork::flow
