/// From a job to its graph. Source of the rules: weftwork.spec.job; docs/models/flow-engine-folding.md.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "flow/collective.hpp"

namespace weftwork::flow {

namespace detail {

/// Ranks of each group that some COLLECT names, and in which communicator a rank is.
class Communicators {
 public:
  explicit Communicators(const Job& job) : number_(job.rank_class.size(), -1) {}

  /// Append the communicators of one group rule; `uses` tells the programs that take part. `of_rank` then has the
  /// communicator of each rank, -1 for those of other programs.
  void append(const Job& job, const std::vector<char>& uses, std::int32_t rule, Graph& graph) {
    const GroupRule& group = graph.meaning.groups[static_cast<std::size_t>(rule)];
    const auto first = static_cast<std::int32_t>(graph.group.size());
    const auto ranks = job.rank_class.size();
    of_rank.assign(ranks, -1);
    std::vector<std::int64_t> sizes;
    bases_.clear();
    for (std::size_t r = 0; r < ranks; ++r) {
      if (uses[static_cast<std::size_t>(job.rank_class[r])] == 0) continue;
      const auto base = static_cast<std::size_t>(group.base(static_cast<std::int64_t>(r)));
      if (number_[base] < 0) {
        number_[base] = static_cast<std::int32_t>(sizes.size());
        bases_.push_back(base);
        sizes.push_back(0);
      }
      ++sizes[static_cast<std::size_t>(number_[base])];
      of_rank[r] = first + number_[base];
    }
    for (const std::size_t base : bases_) number_[base] = -1;
    std::vector<std::int64_t> next;
    next.reserve(sizes.size());
    for (const std::int64_t size : sizes) {
      next.push_back(graph.member_ptr.back());
      graph.member_ptr.push_back(graph.member_ptr.back() + size);
      graph.group.push_back(rule);
    }
    graph.members.resize(static_cast<std::size_t>(graph.member_ptr.back()));
    for (std::size_t r = 0; r < ranks; ++r)
      if (of_rank[r] >= 0)
        graph.members[static_cast<std::size_t>(next[static_cast<std::size_t>(of_rank[r] - first)]++)] =
            static_cast<std::int32_t>(r);
    if (group.is_ascending()) return;
    for (auto c = static_cast<std::size_t>(first); c < graph.group.size(); ++c)
      std::sort(graph.members.begin() + graph.member_ptr[c], graph.members.begin() + graph.member_ptr[c + 1],
                [&](std::int32_t a, std::int32_t b) { return group.coordinate(a) < group.coordinate(b); });
  }

  std::vector<std::int32_t> of_rank;

 private:
  std::vector<std::int32_t> number_;  // by base; -1 between calls
  std::vector<std::size_t> bases_;
};

/// Connections of all ranks in order; the slots of their SEND rows.
template <PathFinder Router>
void build_connections(HopFinder<Router>& finder, Gather& gather, Graph& graph) {
  struct Sent {
    std::int64_t peer, channel;
    std::int32_t slot;
  };
  const Job& job = finder.job;
  std::vector<Sent> sent;
  graph.connection_ptr.assign(1, 0);
  graph.connection_ptr.reserve(job.rank_class.size() + 1);
  std::size_t most = 0;  // exact room for connections, generous for hops: what is not touched costs nothing
  for (const std::int32_t program : job.rank_class)
    for (const Slot& slot : graph.meaning.programs[static_cast<std::size_t>(program)])
      most += slot.kind == SlotKind::kSend ? 1 : 0;
  graph.source.reserve(most);
  graph.destination.reserve(most);
  graph.channel.reserve(most);
  graph.hops.reserve(8 * most);  // two ports and two tiers up and down, a host interface, one to spare
  for (std::size_t r = 0; r < job.rank_class.size(); ++r) {
    const auto& program = graph.meaning.programs[static_cast<std::size_t>(job.rank_class[r])];
    std::int32_t* slots = graph.slots.data() + graph.slot_ptr[r];
    const auto rank = static_cast<std::int64_t>(r);
    sent.clear();
    for (std::size_t k = 0; k < program.size(); ++k) {
      if (program[k].kind == SlotKind::kCollect || !program[k].is_later) {
        if (program[k].kind != SlotKind::kSend) continue;
        const std::int64_t peer = peer_of(job, program[k].op, rank, 0);
        if (peer >= 0) sent.push_back({peer, program[k].op.channel, static_cast<std::int32_t>(k)});
      } else {
        slots[k] = kLater;
      }
    }
    std::sort(sent.begin(), sent.end(), [](const Sent& a, const Sent& b) {
      return std::tie(a.peer, a.channel, a.slot) < std::tie(b.peer, b.channel, b.slot);
    });
    for (std::size_t i = 0; i < sent.size(); ++i) {
      if (i == 0 || sent[i].peer != sent[i - 1].peer || sent[i].channel != sent[i - 1].channel) {
        const OpRow& op = program[static_cast<std::size_t>(sent[i].slot)].op;  // the first row decides
        const std::int64_t latency_ps = finder.connection(rank, sent[i].peer, op, gather);
        gather.close(graph, latency_ps);
        graph.source.push_back(static_cast<std::int32_t>(r));
        graph.destination.push_back(static_cast<std::int32_t>(sent[i].peer));
        graph.channel.push_back(static_cast<std::int32_t>(op.channel));
      }
      slots[sent[i].slot] = static_cast<std::int32_t>(graph.source.size() - 1);
    }
    graph.connection_ptr.push_back(static_cast<std::int64_t>(graph.source.size()));
  }
}

/// The slots of RECEIVE rows. What nobody sends comes over a connection without a sender's SEND, for ever.
inline void match_receives(const Job& job, Gather& gather, Graph& graph) {
  for (std::size_t r = 0; r < job.rank_class.size(); ++r) {
    const auto& program = graph.meaning.programs[static_cast<std::size_t>(job.rank_class[r])];
    for (std::size_t k = 0; k < program.size(); ++k) {
      if (program[k].kind != SlotKind::kReceive || program[k].is_later) continue;
      const OpRow& op = program[k].op;
      const std::int64_t peer = peer_of(job, op, static_cast<std::int64_t>(r), 0);
      if (peer < 0) continue;
      std::int32_t& slot = graph.slots[static_cast<std::size_t>(graph.slot_ptr[r]) + k];
      const auto first = graph.destination.begin() + graph.connection_ptr[static_cast<std::size_t>(peer)];
      const auto last = graph.destination.begin() + graph.connection_ptr[static_cast<std::size_t>(peer) + 1];
      auto found = std::lower_bound(first, last, static_cast<std::int32_t>(r));
      while (found != last && std::cmp_equal(*found, r) &&
             graph.channel[static_cast<std::size_t>(found - graph.destination.begin())] != op.channel)
        ++found;
      if (found != last && std::cmp_equal(*found, r)) {
        slot = static_cast<std::int32_t>(found - graph.destination.begin());
      } else if (graph.meaning.has_later) {
        slot = kLater;
      } else {
        slot = static_cast<std::int32_t>(graph.source.size());
        gather.close(graph, 0);
        graph.source.push_back(static_cast<std::int32_t>(peer));
        graph.destination.push_back(static_cast<std::int32_t>(r));
        graph.channel.push_back(static_cast<std::int32_t>(op.channel));
      }
    }
  }
}

template <PathFinder Router>
void build_collectives(HopFinder<Router>& finder, Gather& gather, Graph& graph) {
  const Job& job = finder.job;
  if (graph.meaning.groups.empty()) return;
  Communicators communicators(job);
  Collectives<Router> collectives(finder, gather);
  const Slots& meaning = graph.meaning;
  for (std::size_t rule = 0; rule < meaning.groups.size(); ++rule) {
    std::vector<char> uses(meaning.programs.size(), 0);
    for (std::size_t p = 0; p < uses.size(); ++p)
      for (const Slot& slot : meaning.programs[p])
        if (slot.kind == SlotKind::kCollect && std::cmp_equal(slot.group, rule)) uses[p] = 1;
    const std::size_t first = graph.group.size();
    communicators.append(job, uses, static_cast<std::int32_t>(rule), graph);
    const auto& shapes = meaning.groups[rule].shapes;
    const auto first_activity = static_cast<std::int64_t>(graph.activities());
    for (std::size_t c = first; c < graph.group.size(); ++c)
      for (const std::int32_t shape : shapes) {
        const Crossed crossed = collectives.add(graph.members_of(c), meaning.shapes[static_cast<std::size_t>(shape)],
                                                meaning.groups[rule].channel);
        gather.close(graph, crossed.latency_ps);
        graph.communicator.push_back(static_cast<std::int32_t>(c));
        graph.shape.push_back(shape);
        graph.flows.push_back(crossed.flows);
      }
    for (std::size_t r = 0; r < job.rank_class.size(); ++r) {
      if (communicators.of_rank[r] < 0) continue;
      const auto& program = meaning.programs[static_cast<std::size_t>(job.rank_class[r])];
      for (std::size_t k = 0; k < program.size(); ++k) {
        if (program[k].kind != SlotKind::kCollect || std::cmp_not_equal(program[k].group, rule)) continue;
        const auto shape = std::find(shapes.begin(), shapes.end(), program[k].shape) - shapes.begin();
        graph.slots[static_cast<std::size_t>(graph.slot_ptr[r]) + k] = static_cast<std::int32_t>(
            first_activity +
            (communicators.of_rank[r] - static_cast<std::int64_t>(first)) * static_cast<std::int64_t>(shapes.size()) +
            shape);
      }
    }
  }
}

}  // namespace detail

/// The graph of a job on a fabric. Throws NoPath where two ranks that talk are not joined.
template <PathFinder Router>
Graph build_graph(const Job& job, const Links& links, const Router& router, Wire wire) {
  Graph graph;
  graph.meaning = slots_of(job);
  graph.slot_ptr.reserve(job.rank_class.size() + 1);
  for (const std::int32_t program : job.rank_class)
    graph.slot_ptr.push_back(
        graph.slot_ptr.back() +
        static_cast<std::int64_t>(graph.meaning.programs[static_cast<std::size_t>(program)].size()));
  graph.slots.assign(static_cast<std::size_t>(graph.slot_ptr.back()), kSkipped);
  HopFinder<Router> finder(job, links, router, wire);
  Gather gather(links.capacity.size());
  detail::build_connections(finder, gather, graph);
  detail::match_receives(job, gather, graph);
  detail::build_collectives(finder, gather, graph);
  return graph;
}

}  // namespace weftwork::flow
