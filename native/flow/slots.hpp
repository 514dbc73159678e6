/// Meanings of the SEND, RECEIVE and COLLECT rows of each program, once each, and their peers.
/// Source of the rules: weftwork.spec.job.Peer and docs/models/packet-engine.md, "Peers and sizes".
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <vector>

#include "flow/job.hpp"

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

namespace detail {

inline std::int64_t bits_of(double value) {
  return std::bit_cast<std::int64_t>(value);
}

/// Numbers of a collective's group rule and shape.
class CollectiveRules {
 public:
  CollectiveRules(const Job& job, Slots& slots) : job_(job), slots_(slots) {}

  void describe(const OpRow& op, RankId first_rank, Slot& slot) {
    const CollectRow& row = job_.collect(op);
    const auto axes = job_.axes.subspan(static_cast<std::size_t>(row.first_axis), static_cast<std::size_t>(row.axes));
    std::vector<std::int64_t> key{op.channel, first_rank.value};
    for (const AxisRow& axis : axes) key.insert(key.end(), {axis.stride, axis.size});
    const auto group = groups_.try_emplace(key, slots_.groups.next_id());
    if (group.second) slots_.groups.push_back({op.channel, first_rank.value, {axes.begin(), axes.end()}, {}});
    const auto shape = shapes_.try_emplace(
        {row.pattern, bits_of(row.local_efficiency), bits_of(row.network_efficiency),
         row.pattern == static_cast<std::int64_t>(Pattern::kRing) ? 0 : bits_of(row.network_share), row.queue_pairs},
        slots_.shapes.next_id());
    if (shape.second)
      slots_.shapes.push_back({static_cast<Pattern>(row.pattern), row.local_efficiency, row.network_efficiency,
                               row.network_share, row.queue_pairs});
    slot.group = group.first->second;
    slot.shape = shape.first->second;
    auto& known = slots_.groups[slot.group].shapes;
    if (std::find(known.begin(), known.end(), slot.shape) == known.end()) known.push_back(slot.shape);
  }

 private:
  const Job& job_;
  Slots& slots_;
  std::map<std::vector<std::int64_t>, GroupId> groups_;
  std::map<std::vector<std::int64_t>, ShapeId> shapes_;
};

}  // namespace detail

/// The slots of every program. Rows of one program with the same peer, channel and NIC, or the same collective of one
/// group, share a slot.
inline Slots slots_of(const Job& job) {
  Slots slots;
  slots.op_slot.assign(job.ops.size(), SlotId::none());
  detail::CollectiveRules collectives(job, slots);
  std::size_t programs = 0;
  for (const StreamRow& stream : job.streams)
    programs = std::max(programs, static_cast<std::size_t>(stream.rank_program) + 1);
  for (const ProgramId program : job.rank_program)  // which may have no stream
    programs = std::max(programs, program.index() + 1);
  slots.programs.resize(programs);
  slots.sizes.resize(slots.programs.size());
  IdVector<ProgramId, std::map<std::vector<std::int64_t>, SlotId>> known(slots.programs.size());
  for (const StreamRow& stream : job.streams) {
    const ProgramId program(stream.rank_program);
    std::int64_t depth = 0;
    for (OpId row(stream.first_op); job.ops[row].code != static_cast<std::int64_t>(OpCode::kStop); ++row) {
      const OpRow& op = job.ops[row];
      if (op.code == static_cast<std::int64_t>(OpCode::kLoop)) ++depth;
      if (op.code == static_cast<std::int64_t>(OpCode::kEnd)) --depth;
      const bool sends = op.code == static_cast<std::int64_t>(OpCode::kSend);
      const bool receives = op.code == static_cast<std::int64_t>(OpCode::kReceive);
      if (!sends && !receives && op.code != static_cast<std::int64_t>(OpCode::kCollect)) continue;
      Slot slot{sends ? SlotKind::kSend : receives ? SlotKind::kReceive : SlotKind::kCollect, false, op, {}, {}};
      std::vector<std::int64_t> key{op.code};
      if (slot.kind == SlotKind::kCollect) {
        collectives.describe(op, job.first_rank(program), slot);
        key.insert(key.end(), {slot.group.value, slot.shape.value});
      } else {
        const auto rule = static_cast<PeerRule>(op.rule);
        slot.is_later = depth > 0 && op.step != 0 && (rule == PeerRule::kShift || rule == PeerRule::kXor);
        slots.has_later = slots.has_later || slot.is_later;
        key.insert(key.end(), {op.rule, op.stride, op.size, op.members, op.shift, slot.is_later ? op.step : 0, op.table,
                               op.channel, op.nic, op.peer_rail});
      }
      const auto found = known[program].try_emplace(key, slots.programs[program].next_id());
      if (found.second) slots.programs[program].push_back(slot);
      slots.op_slot[row] = found.first->second;
      if (!sends || op.parts <= 0 || op.total_bytes % op.parts == 0) continue;
      for (std::int64_t k = 0; k < op.digits; ++k) {  // the longer parts are somebody's: coordinates tell ranks apart
        const DigitRow& digit = job.digits[op.first_digit + k];
        const auto same = [&](const SizeRule& s) {
          return s.stride == digit.stride && s.size == digit.size && s.members == digit.members;
        };
        auto& sizes = slots.sizes[program];
        if (std::none_of(sizes.begin(), sizes.end(), same)) sizes.push_back({digit.stride, digit.size, digit.members});
      }
    }
  }
  return slots;
}

/// The other rank of a SEND or RECEIVE at loop counter `i`, or none: jobs that share a fabric count from their
/// own first rank.
inline RankId peer_of(const Job& job, const OpRow& op, RankId rank, std::int64_t i) {
  const RankId first = job.first_rank(job.rank_program[rank]);
  const std::int64_t peer = peer_rank(job.job_tables(), op, rank - first, i);
  return peer < 0 ? RankId::none() : RankId(peer + first.value);
}

}  // namespace weftwork::flow
