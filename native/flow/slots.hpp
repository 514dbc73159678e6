/// What the SEND, RECEIVE and COLLECT rows of each program mean, once for each meaning, and whom they name.
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
  std::vector<std::int32_t> shapes;  // of its collectives, in Slots::shapes

  /// The coordinate of a rank, the first axis changing fastest.
  [[nodiscard]] std::int64_t coordinate(std::int64_t rank) const {
    std::int64_t found = 0, scale = 1;
    for (const AxisRow& axis : axes) {
      found += (rank - first_rank) / axis.stride % axis.size * scale;
      scale *= axis.size;
    }
    return found;
  }
  /// The same number for all ranks of one group.
  [[nodiscard]] std::int64_t base(std::int64_t rank) const {
    std::int64_t found = rank;
    for (const AxisRow& axis : axes) found -= (rank - first_rank) / axis.stride % axis.size * axis.stride;
    return found;
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
};

enum class SlotKind : std::uint8_t { kSend, kReceive, kCollect };

struct Slot {
  SlotKind kind;
  bool is_later;                        // its peer depends on a loop counter
  OpRow op;                             // SEND, RECEIVE: the first row of this meaning
  std::int32_t group = -1, shape = -1;  // COLLECT
};

/// A group on whose coordinate the size of some message depends.
struct SizeRule {
  std::int64_t stride, size, members;
};

struct Slots {
  std::vector<std::int32_t> op_slot;         // by row of Job::ops, -1 for rows that are no communication
  std::vector<std::vector<Slot>> programs;   // slots of each program
  std::vector<std::vector<SizeRule>> sizes;  // of each program
  std::vector<GroupRule> groups;
  std::vector<Shape> shapes;
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

  void describe(const OpRow& op, std::int64_t first_rank, Slot& slot) {
    const CollectRow& row = job_.collects[static_cast<std::size_t>(op.value)];
    const auto axes = job_.axes.subspan(static_cast<std::size_t>(row.first_axis), static_cast<std::size_t>(row.axes));
    std::vector<std::int64_t> key{op.channel, first_rank};
    for (const AxisRow& axis : axes) key.insert(key.end(), {axis.stride, axis.size});
    const auto group = groups_.try_emplace(key, static_cast<std::int32_t>(slots_.groups.size()));
    if (group.second) slots_.groups.push_back({op.channel, first_rank, {axes.begin(), axes.end()}, {}});
    const auto shape =
        shapes_.try_emplace({row.pattern, bits_of(row.local_efficiency), bits_of(row.network_efficiency),
                             row.pattern == static_cast<std::int64_t>(Pattern::kRing) ? 0 : bits_of(row.network_share)},
                            static_cast<std::int32_t>(slots_.shapes.size()));
    if (shape.second)
      slots_.shapes.push_back(
          {static_cast<Pattern>(row.pattern), row.local_efficiency, row.network_efficiency, row.network_share});
    slot.group = group.first->second;
    slot.shape = shape.first->second;
    auto& known = slots_.groups[static_cast<std::size_t>(slot.group)].shapes;
    if (std::find(known.begin(), known.end(), slot.shape) == known.end()) known.push_back(slot.shape);
  }

 private:
  const Job& job_;
  Slots& slots_;
  std::map<std::vector<std::int64_t>, std::int32_t> groups_, shapes_;
};

}  // namespace detail

/// The slots of every program. Rows of one program with the same peer, channel and NIC, or the same collective of one
/// group, share a slot.
inline Slots slots_of(const Job& job) {
  Slots slots;
  slots.op_slot.assign(job.ops.size(), -1);
  detail::CollectiveRules collectives(job, slots);
  for (const StreamRow& stream : job.streams)
    slots.programs.resize(std::max(slots.programs.size(), static_cast<std::size_t>(stream.rank_class) + 1));
  slots.sizes.resize(slots.programs.size());
  std::vector<std::map<std::vector<std::int64_t>, std::int32_t>> known(slots.programs.size());
  for (const StreamRow& stream : job.streams) {
    const auto program = static_cast<std::size_t>(stream.rank_class);
    std::int64_t depth = 0;
    for (auto row = static_cast<std::size_t>(stream.first_op);
         job.ops[row].code != static_cast<std::int64_t>(OpCode::kStop); ++row) {
      const OpRow& op = job.ops[row];
      if (op.code == static_cast<std::int64_t>(OpCode::kLoop)) ++depth;
      if (op.code == static_cast<std::int64_t>(OpCode::kEnd)) --depth;
      const bool sends = op.code == static_cast<std::int64_t>(OpCode::kSend);
      const bool receives = op.code == static_cast<std::int64_t>(OpCode::kReceive);
      if (!sends && !receives && op.code != static_cast<std::int64_t>(OpCode::kCollect)) continue;
      Slot slot{sends ? SlotKind::kSend : receives ? SlotKind::kReceive : SlotKind::kCollect, false, op};
      std::vector<std::int64_t> key{op.code};
      if (slot.kind == SlotKind::kCollect) {
        collectives.describe(op, job.first_rank(stream.rank_class), slot);
        key.insert(key.end(), {slot.group, slot.shape});
      } else {
        const auto rule = static_cast<PeerRule>(op.rule);
        slot.is_later = depth > 0 && op.step != 0 && (rule == PeerRule::kShift || rule == PeerRule::kXor);
        slots.has_later = slots.has_later || slot.is_later;
        key.insert(key.end(), {op.rule, op.stride, op.size, op.members, op.shift, slot.is_later ? op.step : 0, op.table,
                               op.channel, op.nic, op.peer_rail});
      }
      const auto found = known[program].try_emplace(key, static_cast<std::int32_t>(slots.programs[program].size()));
      if (found.second) slots.programs[program].push_back(slot);
      slots.op_slot[row] = found.first->second;
      if (!sends || op.parts <= 0 || op.total_bytes % op.parts == 0) continue;
      for (std::int64_t k = 0; k < op.digits; ++k) {  // the longer parts are somebody's: coordinates tell ranks apart
        const DigitRow& digit = job.digits[static_cast<std::size_t>(op.first_digit + k)];
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

inline JobTables tables_of(const Job& job) {
  return {job.tables, job.digits, job.rank_class.size()};
}

/// The other rank of a SEND or RECEIVE at loop counter `i`, or -1 for nobody: jobs that share a fabric count from their
/// own first rank.
inline std::int64_t peer_of(const Job& job, const OpRow& op, std::int64_t rank, std::int64_t i) {
  const std::int64_t first = job.first_rank(job.rank_class[static_cast<std::size_t>(rank)]);
  const std::int64_t peer = peer_rank(tables_of(job), op, rank - first, i);
  return peer < 0 ? -1 : peer + first;
}

}  // namespace weftwork::flow
