/// The network of the executor: actors, connections, communicators, and activities on links.
/// Unfolded, an actor is a rank and a link is a link; folded, both are cells of equal ones (flow/fold.hpp); in the
/// critical core an actor is a cell of ranks in lockstep (flow/core.hpp). The executor need not know which.
/// Meaning: docs/models/flow-engine-folding.md.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "flow/ids.hpp"

namespace weftwork::flow {

// Slots of the graph and of the network: this rank's peer is nobody, the operation does nothing; the peer depends on a
// loop counter (only where not folded).
inline constexpr std::int32_t kSkipped = -1;
inline constexpr std::int32_t kLater = -2;

/// Messages of one (source, destination, channel): one after the other, in order.
/// Its activities are `first_activity` and the next `activities - 1`. A message starts them all, each with its size as
/// amount, and is delivered when all have ended, each its own latency after its transfer. The next `companions` start
/// with it too, those that are not still in flight, but nobody waits for them: they are what others send meanwhile.
struct Connection {
  ActorId source, destination;
  ActivityCell first_activity;
  std::int32_t activities;
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
  CommunicatorCell communicator;
  ActivityCell first_activity;
  std::int32_t activities;
  std::int64_t flows;
  std::int32_t companions = 0;  // as of a connection
};

/// The activities that a connection or an operation starts and waits for.
template <typename Row>
auto waited_for(const Row& row) {
  return id_range(row.first_activity, row.first_activity + row.activities);
}

/// Those that nobody waits for.
template <typename Row>
auto companions_of(const Row& row) {
  const ActivityCell first = row.first_activity + row.activities;
  return id_range(first, first + row.companions);
}

/// A cell of links that an activity crosses.
struct CellHop {
  LinkCell link;
  double weight;
};

struct Network {
  // Cells of links: bytes per ps. `link_cell` has the cell of every link of the graph (ports, then the links inside
  // servers, see flow/links.hpp), none where no activity crosses it; `link_count` how many links a cell has. What a
  // link carries is what its cell carries.
  IdVector<LinkCell, double> capacity;
  IdVector<LinkId, LinkCell> link_cell;
  IdVector<LinkCell, std::int32_t> link_count;

  // Cells of activities, hops in compressed rows. No hops: done at once. Latency: of the longest path.
  IdVector<ActivityCell, std::int64_t> hop_ptr{1};
  std::vector<CellHop> hops;
  IdVector<ActivityCell, std::int64_t> latency_ps;
  IdVector<ActivityCell, std::int64_t> activity_instances;

  // Actors: a representative rank, its program, how many ranks it stands for, how many times longer it computes.
  IdVector<ActorId, RankId> actor_rank;
  IdVector<ActorId, ProgramId> actor_program;
  IdVector<ActorId, std::int64_t> actor_ranks;
  IdVector<ActorId, double> actor_factor;
  IdVector<RankId, ActorId> rank_actor;

  // What the SEND, RECEIVE and COLLECT rows of a program mean to an actor. Rows of one meaning share a slot: `op_slot`
  // (none for other rows). The slots of actor a begin at slots[slot_ptr[a]]: a connection, or for COLLECT an operation;
  // kSkipped, kLater.
  IdVector<OpId, SlotId> op_slot;
  IdVector<ActorId, std::int64_t> slot_ptr{1};
  std::vector<std::int32_t> slots;

  IdVector<ConnectionCell, Connection> connections;
  IdVector<CommunicatorCell, Communicator> communicators;
  std::vector<ActorId> participants;
  IdVector<OperationCell, Operation> operations;

  bool folded = false;
  bool approximate = false;  // a critical core; only then has anything more than one activity

  [[nodiscard]] auto activities() const { return latency_ps.ids(); }
  [[nodiscard]] auto actors() const { return actor_rank.ids(); }
  [[nodiscard]] std::span<const CellHop> hops_of(ActivityCell activity) const {
    return {hops.data() + hop_ptr[activity], hops.data() + hop_ptr[activity + 1]};
  }
  /// Of a SEND or RECEIVE; kSkipped, kLater.
  [[nodiscard]] ConnectionCell connection(ActorId actor, OpId row) const { return ConnectionCell(slot(actor, row)); }
  /// Of a COLLECT; kSkipped.
  [[nodiscard]] OperationCell operation(ActorId actor, OpId row) const { return OperationCell(slot(actor, row)); }

 private:
  [[nodiscard]] std::int32_t slot(ActorId actor, OpId row) const { return slots[slot_ptr[actor] + op_slot[row].value]; }
};

}  // namespace weftwork::flow
