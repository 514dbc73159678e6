/// How the graph of a job is made; flow/build.hpp says of what.
#include "flow/build.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "flow/collective.hpp"
#include "flow/routed.hpp"

namespace weftwork::flow {

namespace {

std::int64_t bits_of(double value) {
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

/// Ranks of each group that some COLLECT names, and in which communicator a rank is.
class Communicators {
 public:
  explicit Communicators(const Job& job) : number_(job.rank_count(), CommunicatorId::none()) {}

  /// Append the communicators of one group rule; `uses` tells the programs that take part. `of_rank` then has the
  /// communicator of each rank, none for those of other programs.
  void append(const Job& job, const IdVector<ProgramId, char>& uses, GroupId rule, Graph& graph) {
    const GroupRule& group = graph.meaning.groups[rule];
    const CommunicatorId first = graph.group.next_id();
    of_rank.assign(job.rank_count(), CommunicatorId::none());
    std::vector<std::int64_t> sizes;
    bases_.clear();
    for (const RankId r : job.ranks()) {
      if (uses[job.rank_program[r]] == 0) continue;
      const RankId base = group.base(r);
      if (number_[base].is_none()) {
        number_[base] = CommunicatorId(first.index() + sizes.size());
        bases_.push_back(base);
        sizes.push_back(0);
      }
      ++sizes[number_[base] - first];
      of_rank[r] = number_[base];
    }
    for (const RankId base : bases_) number_[base] = CommunicatorId::none();
    std::vector<std::int64_t> next;
    next.reserve(sizes.size());
    for (const std::int64_t size : sizes) {
      next.push_back(graph.member_ptr.back());
      graph.member_ptr.push_back(graph.member_ptr.back() + size);
      graph.group.push_back(rule);
    }
    graph.members.resize(static_cast<std::size_t>(graph.member_ptr.back()));
    for (const RankId r : job.ranks())
      if (!of_rank[r].is_none()) graph.members[next[of_rank[r] - first]++] = r;
    if (group.is_ascending()) return;
    for (const CommunicatorId c : id_range(first, graph.group.next_id()))
      std::sort(graph.members.begin() + graph.member_ptr[c], graph.members.begin() + graph.member_ptr[c + 1],
                [&](RankId a, RankId b) { return group.coordinate(a) < group.coordinate(b); });
  }

  IdVector<RankId, CommunicatorId> of_rank;

 private:
  IdVector<RankId, CommunicatorId> number_;  // by base; none between calls
  std::vector<RankId> bases_;
};

/// Connections of all ranks in order; the slots of their SEND rows.
template <PathFinder Router>
void build_connections(HopFinder<Router>& finder, Gather& gather, Graph& graph) {
  struct Sent {
    RankId peer;
    std::int64_t channel;
    SlotId slot;
  };
  const Job& job = finder.job;
  std::vector<Sent> sent;
  graph.first_connection.reserve(job.rank_count() + 1);
  graph.first_connection.push_back(ConnectionId(0));
  std::size_t most = 0;  // exact room for connections, generous for hops: what is not touched costs nothing
  for (const ProgramId program : job.rank_program)
    for (const Slot& slot : graph.meaning.programs[program]) most += slot.kind == SlotKind::kSend ? 1 : 0;
  graph.source.reserve(most);
  graph.destination.reserve(most);
  graph.channel.reserve(most);
  graph.hops.reserve(8 * most);  // two ports and two tiers up and down, a host interface, one to spare
  for (const RankId rank : job.ranks()) {
    const auto& program = graph.meaning.programs[job.rank_program[rank]];
    const IdSpan<SlotId, ActivityId> slots = graph.slots_of(rank);
    sent.clear();
    for (const SlotId k : program.ids()) {
      if (program[k].kind == SlotKind::kCollect || !program[k].is_later) {
        if (program[k].kind != SlotKind::kSend) continue;
        const RankId peer = peer_of(job, program[k].op, rank, 0);
        if (!peer.is_none()) sent.push_back({peer, program[k].op.channel, k});
      } else {
        slots[k] = ActivityId(kLater);
      }
    }
    std::sort(sent.begin(), sent.end(), [](const Sent& a, const Sent& b) {
      return std::tie(a.peer, a.channel, a.slot) < std::tie(b.peer, b.channel, b.slot);
    });
    for (std::size_t i = 0; i < sent.size(); ++i) {
      if (i == 0 || sent[i].peer != sent[i - 1].peer || sent[i].channel != sent[i - 1].channel) {
        const OpRow& op = program[sent[i].slot].op;  // the first row decides
        const std::int64_t latency_ps = finder.connection(rank, sent[i].peer, op, gather);
        gather.close(graph, latency_ps);
        graph.source.push_back(rank);
        graph.destination.push_back(sent[i].peer);
        graph.channel.push_back(static_cast<std::int32_t>(op.channel));
      }
      slots[sent[i].slot] = graph.activity_of(graph.source.next_id() + -1);
    }
    graph.first_connection.push_back(graph.source.next_id());
  }
}

/// The slots of RECEIVE rows. What nobody sends comes over a connection without a sender's SEND, for ever.
void match_receives(const Job& job, Gather& gather, Graph& graph) {
  for (const RankId rank : job.ranks()) {
    const auto& program = graph.meaning.programs[job.rank_program[rank]];
    for (const SlotId k : program.ids()) {
      if (program[k].kind != SlotKind::kReceive || program[k].is_later) continue;
      const OpRow& op = program[k].op;
      const RankId peer = peer_of(job, op, rank, 0);
      if (peer.is_none()) continue;
      ActivityId& slot = graph.slots_of(rank)[k];
      const auto begin = graph.destination.begin();
      const auto last = begin + graph.first_connection[peer + 1].value;
      const auto found = std::lower_bound(begin + graph.first_connection[peer].value, last, rank);
      ConnectionId connection(found - begin);
      const ConnectionId end(last - begin);
      while (connection < end && graph.destination[connection] == rank && graph.channel[connection] != op.channel)
        ++connection;
      if (connection < end && graph.destination[connection] == rank) {
        slot = graph.activity_of(connection);
      } else if (graph.meaning.has_later) {
        slot = ActivityId(kLater);
      } else {
        slot = graph.activity_of(graph.source.next_id());
        gather.close(graph, 0);
        graph.source.push_back(peer);
        graph.destination.push_back(rank);
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
  for (const GroupId rule : meaning.groups.ids()) {
    IdVector<ProgramId, char> uses(meaning.programs.size(), 0);
    for (const ProgramId p : uses.ids())
      for (const Slot& slot : meaning.programs[p])
        if (slot.kind == SlotKind::kCollect && slot.group == rule) uses[p] = 1;
    const CommunicatorId first = graph.group.next_id();
    communicators.append(job, uses, rule, graph);
    const auto& shapes = meaning.groups[rule].shapes;
    const ActivityId first_activity = graph.latency_ps.next_id();
    for (const CommunicatorId c : id_range(first, graph.group.next_id()))
      for (const ShapeId shape : shapes) {
        const Crossed crossed =
            collectives.add(graph.members_of(c), meaning.shapes[shape], meaning.groups[rule].channel);
        gather.close(graph, crossed.latency_ps);
        graph.communicator.push_back(c);
        graph.shape.push_back(shape);
        graph.flows.push_back(crossed.flows);
      }
    const auto shape_count = static_cast<std::int32_t>(shapes.size());
    for (const RankId rank : job.ranks()) {
      if (communicators.of_rank[rank].is_none()) continue;
      const auto& program = meaning.programs[job.rank_program[rank]];
      const ActivityId first_of_rank = first_activity + (communicators.of_rank[rank] - first) * shape_count;
      for (const SlotId k : program.ids()) {
        if (program[k].kind != SlotKind::kCollect || program[k].group != rule) continue;
        const auto shape = std::find(shapes.begin(), shapes.end(), program[k].shape) - shapes.begin();
        graph.slots_of(rank)[k] = first_of_rank + static_cast<std::int32_t>(shape);
      }
    }
  }
}

}  // namespace

Slots slots_of(const Job& job) {
  Slots slots;
  slots.op_slot.assign(job.ops.size(), SlotId::none());
  CollectiveRules collectives(job, slots);
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

Graph build_graph(const Job& job, const Links& links, const Router& router, Wire wire, const Outage& outage,
                  const Lossy* lossy) {
  Graph graph;
  graph.meaning = slots_of(job);
  graph.slot_ptr.reserve(job.rank_count() + 1);
  for (const ProgramId program : job.rank_program)
    graph.slot_ptr.push_back(graph.slot_ptr.back() + static_cast<std::int64_t>(graph.meaning.programs[program].size()));
  graph.slots.assign(static_cast<std::size_t>(graph.slot_ptr.back()), ActivityId(kSkipped));
  const Routed routed(router);
  HopFinder<Routed> finder(job, links, routed, wire, outage, lossy);
  Gather gather(links.capacity.size() + 1);  // with the link that is never up
  build_connections(finder, gather, graph);
  match_receives(job, gather, graph);
  build_collectives(finder, gather, graph);
  return graph;
}

}  // namespace weftwork::flow
