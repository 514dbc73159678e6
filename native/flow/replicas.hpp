/// Replicas of a job: sets of ranks that meet others in large groups only, such as the pipelines that add their
/// gradients. Which of them are the slowest is guessed from rates at which everything is active.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "flow/graph.hpp"
#include "flow/ids.hpp"
#include "flow/job.hpp"
#include "flow/slots.hpp"
#include "rows/job.hpp"

namespace weftwork::flow {

/// Bytes that every slot of a program sends, or brings to a collective, in one run of the program.
inline IdVector<ProgramId, IdVector<SlotId, double>> slot_bytes(const Job& job, const Slots& meaning) {
  IdVector<ProgramId, IdVector<SlotId, double>> bytes;
  bytes.reserve(meaning.programs.size());
  for (const auto& program : meaning.programs) bytes.emplace_back(program.size(), 0.0);
  for (const StreamRow& stream : job.streams) {
    std::vector<double> times{1.0};
    for (OpId row(stream.first_op);; ++row) {
      const OpRow& op = job.ops[row];
      const auto code = static_cast<OpCode>(op.code);
      if (code == OpCode::kStop) break;
      if (code == OpCode::kLoop) times.push_back(times.back() * static_cast<double>(op.value));
      if (code == OpCode::kEnd) times.pop_back();
      if (meaning.op_slot[row].is_none()) continue;
      double each = 0.0;
      if (code == OpCode::kCollect)
        each = static_cast<double>(job.collect(op).amount_bytes);
      else if (code == OpCode::kSend)
        each = static_cast<double>(op.total_bytes) * static_cast<double>(op.copies) *
               (op.parts > 0 ? static_cast<double>(op.span) / static_cast<double>(op.parts) : 1.0);
      bytes[ProgramId(stream.rank_program)][meaning.op_slot[row]] += each * times.back();
    }
  }
  return bytes;
}

namespace detail {

/// Sets of ranks that are joined; the lowest member names a set.
class Sets {
 public:
  explicit Sets(std::size_t size) : parent_(size), count_(static_cast<std::int64_t>(size)) {
    for (const RankId rank : parent_.ids()) parent_[rank] = rank;
  }
  RankId find(RankId i) {
    while (parent_[i] != i) {
      RankId& parent = parent_[i];
      i = parent = parent_[parent];
    }
    return i;
  }
  void join(RankId a, RankId b) {
    a = find(a), b = find(b);
    if (a == b) return;
    parent_[std::max(a, b)] = std::min(a, b);
    --count_;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  IdVector<RankId, RankId> parent_;
  std::int64_t count_;
};

}  // namespace detail

/// The replica of each rank: ranks that exchange messages, or share a group, the smallest groups first, as long as at
/// least `least` replicas stay apart. Numbered by their lowest ranks.
inline IdVector<RankId, ReplicaId> replicas_of(const Graph& graph, std::int64_t least) {
  detail::Sets sets(graph.ranks().size());
  for (const ConnectionId c : graph.connections()) sets.join(graph.source[c], graph.destination[c]);
  IdVector<GroupId, std::size_t> members(graph.meaning.groups.size(), 0);  // of the largest group of each rule
  for (const CommunicatorId c : graph.communicators())
    members[graph.group[c]] = std::max(members[graph.group[c]], graph.members_of(c).size());
  std::vector<GroupId> order;
  for (const GroupId rule : members.ids()) order.push_back(rule);
  std::sort(order.begin(), order.end(),
            [&](GroupId a, GroupId b) { return std::tuple(members[a], a) < std::tuple(members[b], b); });
  for (const GroupId rule : order) {
    detail::Sets joined = sets;
    for (const CommunicatorId c : graph.communicators())
      if (graph.group[c] == rule)
        for (const RankId member : graph.members_of(c)) joined.join(graph.members_of(c)[0], member);
    if (joined.count() >= least) sets = std::move(joined);
  }
  IdVector<RankId, ReplicaId> replica(graph.ranks().size()), number(graph.ranks().size());
  ReplicaId next(0);
  for (const RankId r : replica.ids()) {
    const RankId root = sets.find(r);
    if (number[root].is_none()) {
      number[root] = next;
      ++next;
    }
    replica[r] = number[root];
  }
  return replica;
}

/// Which replicas are run, and for whom each stands.
struct Chosen {
  IdVector<RankId, ReplicaId> replica;
  IdVector<RankId, PartyId> party;  // ranks of one party are run as one of its replicas does
  IdVector<RankId, char> speaks;    // whether its replica is the one that is run
  std::int32_t parties = 0;
};

/// Run the slowest replicas each for itself, and of the others one for each of several parties of about as slow ones:
/// as many in all as have `slots` of their ranks together, a third of them slowest. A replica is as slow as the slowest
/// of its transfers at these rates, since what follows in its pipeline waits for that one.
inline Chosen choose_replicas(const Job& job, const Graph& graph, const IdVector<ActivityId, double>& rate,
                              const IdVector<RankId, ReplicaId>& replica, std::int64_t slots) {
  const auto bytes = slot_bytes(job, graph.meaning);
  IdVector<ActivityId, double> amount(graph.activities().size(), 0.0);
  for (const RankId r : graph.ranks()) {
    const auto own = graph.slots_of(r);
    const auto& sent = bytes[job.rank_program[r]];
    for (const SlotId k : own.ids())
      if (!own[k].is_none()) amount[own[k]] = std::max(amount[own[k]], sent[k]);
  }
  const std::size_t count = std::max_element(replica.begin(), replica.end())->index() + 1;
  IdVector<ReplicaId, double> slow(count, 0.0);
  for (const RankId r : graph.ranks())
    for (const ActivityId activity : graph.slots_of(r))
      if (!activity.is_none()) slow[replica[r]] = std::max(slow[replica[r]], amount[activity] / rate[activity]);
  std::vector<ReplicaId> order;
  order.reserve(count);
  for (const ReplicaId each : slow.ids()) order.push_back(each);
  std::sort(order.begin(), order.end(),
            [&](ReplicaId a, ReplicaId b) { return slow[a] > slow[b] || (!(slow[b] > slow[a]) && a < b); });
  const std::size_t each = std::max<std::size_t>(1, graph.slots.size() / count);
  const std::size_t parties =
      std::clamp<std::size_t>(static_cast<std::size_t>(slots) / each, 2, std::max<std::size_t>(count, 2));
  const std::size_t alone = parties >= count ? count : parties / 3;
  IdVector<ReplicaId, PartyId> party_of(count);
  IdVector<ReplicaId, char> speaks(count, 0);
  for (std::size_t i = 0; i < alone; ++i) {
    party_of[order[i]] = PartyId(i);
    speaks[order[i]] = 1;
  }
  for (std::size_t i = alone, group = 0; i < count; ++group) {
    const std::size_t end = alone + (count - alone) * (group + 1) / (parties - alone);
    if (end > i) speaks[order[i + (end - i) / 2]] = 1;
    for (; i < end; ++i) party_of[order[i]] = PartyId(alone + group);
  }
  const std::size_t ranks = graph.ranks().size();
  Chosen chosen{replica, IdVector<RankId, PartyId>(ranks), IdVector<RankId, char>(ranks),
                static_cast<std::int32_t>(std::min(parties, count))};
  for (const RankId r : graph.ranks()) {
    chosen.party[r] = party_of[replica[r]];
    chosen.speaks[r] = speaks[replica[r]];
  }
  return chosen;
}

}  // namespace weftwork::flow
