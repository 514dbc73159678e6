/// Replicas of a job: sets of ranks that meet others in large groups only, such as the pipelines that add their
/// gradients. Which of them are the slowest is guessed from rates at which everything is active.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "flow/graph.hpp"

namespace weftwork::flow {

/// Bytes that every slot of a program sends, or brings to a collective, in one run of the program.
inline std::vector<std::vector<double>> slot_bytes(const Job& job, const Slots& meaning) {
  std::vector<std::vector<double>> bytes;
  bytes.reserve(meaning.programs.size());
  for (const auto& program : meaning.programs) bytes.emplace_back(program.size(), 0.0);
  for (const StreamRow& stream : job.streams) {
    std::vector<double> times{1.0};
    for (auto row = static_cast<std::size_t>(stream.first_op);; ++row) {
      const OpRow& op = job.ops[row];
      const auto code = static_cast<OpCode>(op.code);
      if (code == OpCode::kStop) break;
      if (code == OpCode::kLoop) times.push_back(times.back() * static_cast<double>(op.value));
      if (code == OpCode::kEnd) times.pop_back();
      if (meaning.op_slot[row] < 0) continue;
      double each = 0.0;
      if (code == OpCode::kCollect)
        each = static_cast<double>(job.collects[static_cast<std::size_t>(op.value)].amount_bytes);
      else if (code == OpCode::kSend)
        each = static_cast<double>(op.total_bytes) * static_cast<double>(op.copies) *
               (op.parts > 0 ? static_cast<double>(op.span) / static_cast<double>(op.parts) : 1.0);
      bytes[static_cast<std::size_t>(stream.rank_class)][static_cast<std::size_t>(meaning.op_slot[row])] +=
          each * times.back();
    }
  }
  return bytes;
}

namespace detail {

/// Sets that are joined; the lowest member names a set.
class Sets {
 public:
  explicit Sets(std::size_t size) : parent_(size), count_(static_cast<std::int64_t>(size)) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  std::int32_t find(std::int32_t i) {
    while (parent_[static_cast<std::size_t>(i)] != i) {
      std::int32_t& parent = parent_[static_cast<std::size_t>(i)];
      i = parent = parent_[static_cast<std::size_t>(parent)];
    }
    return i;
  }
  void join(std::int32_t a, std::int32_t b) {
    a = find(a), b = find(b);
    if (a == b) return;
    parent_[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    --count_;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  std::vector<std::int32_t> parent_;
  std::int64_t count_;
};

}  // namespace detail

/// The replica of each rank: ranks that exchange messages, or share a group, the smallest groups first, as long as at
/// least `least` replicas stay apart. Numbered by their lowest ranks.
inline std::vector<std::int32_t> replicas_of(const Graph& graph, std::int64_t least) {
  detail::Sets sets(graph.ranks());
  for (std::size_t c = 0; c < graph.connections(); ++c) sets.join(graph.source[c], graph.destination[c]);
  std::vector<std::size_t> members(graph.meaning.groups.size(), 0);  // of the largest group of each rule
  for (std::size_t c = 0; c < graph.communicators(); ++c)
    members[static_cast<std::size_t>(graph.group[c])] =
        std::max(members[static_cast<std::size_t>(graph.group[c])], graph.members_of(c).size());
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return std::tuple(members[a], a) < std::tuple(members[b], b); });
  for (const std::size_t rule : order) {
    detail::Sets joined = sets;
    for (std::size_t c = 0; c < graph.communicators(); ++c)
      if (std::cmp_equal(graph.group[c], rule))
        for (const std::int32_t member : graph.members_of(c)) joined.join(graph.members_of(c)[0], member);
    if (joined.count() >= least) sets = std::move(joined);
  }
  std::vector<std::int32_t> replica(graph.ranks()), number(graph.ranks(), -1);
  std::int32_t count = 0;
  for (std::size_t r = 0; r < replica.size(); ++r) {
    const auto root = static_cast<std::size_t>(sets.find(static_cast<std::int32_t>(r)));
    if (number[root] < 0) number[root] = count++;
    replica[r] = number[root];
  }
  return replica;
}

/// Which replicas are run, and for whom each stands.
struct Chosen {
  std::vector<std::int32_t> replica;  // by rank
  std::vector<std::int32_t> party;    // by rank: ranks of one party are run as one of its replicas does
  std::vector<char> speaks;           // by rank: whether its replica is the one that is run
  std::int32_t parties = 0;
};

/// Run the slowest replicas each for itself, and of the others one for each of several parties of about as slow ones:
/// as many in all as have `slots` of their ranks together, a third of them slowest. A replica is as slow as the slowest
/// of its transfers at these rates, since what follows in its pipeline waits for that one.
inline Chosen choose_replicas(const Job& job, const Graph& graph, std::span<const double> rate,
                              std::span<const std::int32_t> replica, std::int64_t slots) {
  const auto bytes = slot_bytes(job, graph.meaning);
  std::vector<double> amount(graph.activities(), 0.0);
  for (std::size_t r = 0; r < graph.ranks(); ++r) {
    const auto own = graph.slots_of(r);
    const auto& sent = bytes[static_cast<std::size_t>(job.rank_class[r])];
    for (std::size_t k = 0; k < own.size(); ++k)
      if (own[k] >= 0) {
        double& most = amount[static_cast<std::size_t>(own[k])];
        most = std::max(most, sent[k]);
      }
  }
  const auto count = static_cast<std::size_t>(*std::max_element(replica.begin(), replica.end())) + 1;
  std::vector<double> slow(count, 0.0);
  for (std::size_t r = 0; r < graph.ranks(); ++r)
    for (const std::int32_t slot : graph.slots_of(r))
      if (slot >= 0) {
        double& most = slow[static_cast<std::size_t>(replica[r])];
        most = std::max(most, amount[static_cast<std::size_t>(slot)] / rate[static_cast<std::size_t>(slot)]);
      }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return slow[a] > slow[b] || (!(slow[b] > slow[a]) && a < b); });
  const std::size_t each = std::max<std::size_t>(1, graph.slots.size() / count);
  const std::size_t parties =
      std::clamp<std::size_t>(static_cast<std::size_t>(slots) / each, 2, std::max<std::size_t>(count, 2));
  const std::size_t alone = parties >= count ? count : parties / 3;
  std::vector<std::int32_t> party_of(count, 0);
  std::vector<char> speaks(count, 0);
  for (std::size_t i = 0; i < alone; ++i) {
    party_of[order[i]] = static_cast<std::int32_t>(i);
    speaks[order[i]] = 1;
  }
  for (std::size_t i = alone, group = 0; i < count; ++group) {
    const std::size_t end = alone + (count - alone) * (group + 1) / (parties - alone);
    if (end > i) speaks[order[i + (end - i) / 2]] = 1;
    for (; i < end; ++i) party_of[order[i]] = static_cast<std::int32_t>(alone + group);
  }
  Chosen chosen{{replica.begin(), replica.end()},
                std::vector<std::int32_t>(graph.ranks()),
                std::vector<char>(graph.ranks()),
                static_cast<std::int32_t>(std::min(parties, count))};
  for (std::size_t r = 0; r < graph.ranks(); ++r) {
    chosen.party[r] = party_of[static_cast<std::size_t>(replica[r])];
    chosen.speaks[r] = speaks[static_cast<std::size_t>(replica[r])];
  }
  return chosen;
}

}  // namespace weftwork::flow
