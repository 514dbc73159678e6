/// Meanings of the SEND, RECEIVE and COLLECT rows of each program, once each, and their peers.
/// Source of the rules: weftwork.spec.job.Peer and docs/models/packet-engine.md, "Peers and sizes".
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "base/job.hpp"
#include "flow/ids.hpp"
#include "flow/job.hpp"
#include "rows/job.hpp"

namespace weftwork::flow {

/// Ranks that may meet in a communicator: those whose programs use one Grid of one job on one channel.
struct GroupRule {
  std::int64_t channel, first_rank;
  std::vector<AxisRow> axes;
  std::vector<ShapeId> shapes;  // of its collectives

  /// The coordinate of a rank, the first axis changing fastest.
  [[nodiscard]] std::int64_t coordinate(RankId rank) const {
    std::int64_t found = 0, scale = 1;
    for (const AxisRow& axis : axes) {
      found += (rank.value - first_rank) / axis.stride % axis.size * scale;
      scale *= axis.size;
    }
    return found;
  }
  /// The rank at the origin of a rank's group: the same for all of the group.
  [[nodiscard]] RankId base(RankId rank) const {
    std::int64_t found = rank.value;
    for (const AxisRow& axis : axes) found -= (rank.value - first_rank) / axis.stride % axis.size * axis.stride;
    return RankId(found);
  }
  /// Whether members in the order of their ranks are in the order of their coordinates.
  [[nodiscard]] bool is_ascending() const {
    return std::is_sorted(axes.begin(), axes.end(),
                          [](const AxisRow& a, const AxisRow& b) { return a.stride < b.stride; });
  }
};

/// How a collective puts its bytes on links, whatever their number.
struct Shape {
  Pattern pattern;
  double local_efficiency, network_efficiency, network_share;
  std::int64_t queue_pairs;
};

enum class SlotKind : std::uint8_t { kSend, kReceive, kCollect };

struct Slot {
  SlotKind kind;
  bool is_later;  // its peer depends on a loop counter
  OpRow op;       // SEND, RECEIVE: the first row of this meaning
  GroupId group;  // COLLECT
  ShapeId shape;  // COLLECT
};

/// A group on whose coordinate the size of some message depends.
struct SizeRule {
  std::int64_t stride, size, members;
};

struct Slots {
  IdVector<OpId, SlotId> op_slot;  // none for rows that are no communication
  IdVector<ProgramId, IdVector<SlotId, Slot>> programs;
  IdVector<ProgramId, std::vector<SizeRule>> sizes;
  IdVector<GroupId, GroupRule> groups;
  IdVector<ShapeId, Shape> shapes;
  bool has_later = false;
};

/// The other rank of a SEND or RECEIVE at loop counter `i`, or none: jobs that share a fabric count from their
/// own first rank.
inline RankId peer_of(const Job& job, const OpRow& op, RankId rank, std::int64_t i) {
  const RankId first = job.first_rank(job.rank_program[rank]);
  const std::int64_t peer = peer_rank(job.job_tables(), op, rank - first, i);
  return peer < 0 ? RankId::none() : RankId(peer + first.value);
}

}  // namespace weftwork::flow
