/// Hops of a collective as one activity: rings and all-to-all. Source: weftwork.spec.job.Collect; the rails that a ring
/// takes are those of docs/models/collectives.md.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/failover.hpp"
#include "base/ids.hpp"
#include "flow/graph.hpp"
#include "flow/hop_finder.hpp"
#include "flow/ids.hpp"
#include "flow/job.hpp"
#include "flow/router.hpp"
#include "flow/slots.hpp"
#include "rows/flow_outcome.hpp"
#include "rows/job.hpp"

namespace weftwork::flow {

/// What one collective does to the network.
struct Crossed {
  std::int64_t latency_ps = 0;  // of its longest path
  std::int64_t flows = 0;       // over the fabric
};

/// The NVLink domain (of a server's GPUs without NVLink together) and the server of each rank.
class Places {
 public:
  explicit Places(const Job& job) {
    domain_.resize(job.rank_count());
    server_.resize(job.rank_count());
    for (const RankId rank : job.ranks()) {
      const std::int64_t host = job.rank_host[rank].value;
      server_[rank] = servers_.try_emplace(host, servers_.size()).first->second;
      domain_[rank] =
          domains_.try_emplace(host << 20U | (job.rank_gpu[rank].nvlink_domain + 1), domains_.size()).first->second;
    }
  }
  [[nodiscard]] DomainId domain(RankId rank) const { return domain_[rank]; }
  [[nodiscard]] ServerId server(RankId rank) const { return server_[rank]; }
  [[nodiscard]] std::size_t domains() const { return domains_.size(); }
  [[nodiscard]] std::size_t servers() const { return servers_.size(); }

 private:
  std::unordered_map<std::int64_t, DomainId> domains_;
  std::unordered_map<std::int64_t, ServerId> servers_;
  IdVector<RankId, DomainId> domain_;
  IdVector<RankId, ServerId> server_;
};

/// Members of one group, those of a domain (or of a server) together, in the order of their coordinates. `I` is the id
/// of the domains (or servers).
template <typename I>
class Parts {
 public:
  /// Split `members` by `place(rank)`, of which there are `places`.
  template <typename Place>
  void split(std::span<const RankId> members, std::size_t places, Place&& place) {
    if (part_.size() < places) part_.assign(places, -1);
    first_.clear();
    used_.clear();
    for (const RankId rank : members) {
      std::int32_t& part = part_[place(rank)];
      if (part < 0) {
        part = static_cast<std::int32_t>(used_.size());
        used_.push_back(place(rank));
        first_.push_back(0);
      }
      ++first_[part];
    }
    std::int32_t sum = 0;
    for (std::int32_t& first : first_) sum += std::exchange(first, sum);
    first_.push_back(sum);
    ranks_.resize(members.size());
    std::vector<std::int32_t>& next = next_;
    next.assign(first_.begin(), first_.end());
    for (const RankId rank : members) ranks_[next[part_[place(rank)]]++] = rank;
    for (const I name : used_) part_[name] = -1;
  }
  [[nodiscard]] std::size_t size() const { return used_.size(); }
  [[nodiscard]] std::span<const RankId> operator[](std::size_t part) const {
    return {ranks_.data() + first_[part], ranks_.data() + first_[part + 1]};
  }

 private:
  IdVector<I, std::int32_t> part_;  // -1 between calls
  std::vector<I> used_;
  std::vector<std::int32_t> first_, next_;
  std::vector<RankId> ranks_;
};

template <PathFinder Router>
class Collectives {
 public:
  Collectives(HopFinder<Router>& finder, Gather& gather) : finder_(finder), gather_(gather), places_(finder.job) {}

  /// Add the hops of one byte of `amount_bytes` of a collective of `members`.
  Crossed add(std::span<const RankId> members, const Shape& shape, std::int64_t channel) {
    crossed_ = {};
    channel_ = channel;
    queue_pairs_ = finder_.router.blindness() == Blindness::kFlow ? shape.queue_pairs : 1;
    local_ = 1.0 / shape.local_efficiency;
    network_ = 1.0 / shape.network_efficiency;
    if (members.size() > 1) {
      domains_.split(members, places_.domains(), [this](RankId rank) { return places_.domain(rank); });
      if (shape.pattern == Pattern::kRing)
        ring(members);
      else
        all_to_all(members, shape.network_share);
    }
    return crossed_;
  }

 private:
  void note(std::int64_t latency_ps) { crossed_.latency_ps = std::max(crossed_.latency_ps, latency_ps); }

  /// The most common number of members of a domain, the larger of equals.
  [[nodiscard]] std::size_t rings() const {
    std::vector<std::size_t> times;
    for (std::size_t d = 0; d < domains_.size(); ++d) {
      times.resize(std::max(times.size(), domains_[d].size() + 1), 0);
      ++times[domains_[d].size()];
    }
    std::size_t most = 0;
    for (std::size_t size = 1; size < times.size(); ++size)
      if (times[size] >= times[most]) most = size;
    return most;
  }

  void ring(std::span<const RankId> members) {
    const std::size_t m = domains_.size() == 1 ? members.size() : rings();
    const double each = 1.0 / static_cast<double>(m);
    for (std::size_t d = 0; d < domains_.size(); ++d) {
      const auto own = domains_[d];
      const std::size_t c = own.size();
      if (c == 1) continue;
      // ring j comes to member j mod c and leaves from the one before it, having passed all; alone, it goes round
      const auto comes_to = [&](std::size_t i) { return domains_.size() == 1 || i >= m ? 0 : (m - i + c - 1) / c; };
      for (std::size_t i = 0; i < c; ++i) {
        const std::size_t next = (i + 1) % c;
        note(edge(own[i], own[next], static_cast<double>(m - comes_to(next)) * each * local_));
      }
    }
    if (domains_.size() == 1) return;
    const std::size_t columns = finder_.job.columns();
    for (std::size_t d = 0; d < domains_.size(); ++d) {
      const auto own = domains_[d], other = domains_[(d + 1) % domains_.size()];
      for (std::size_t j = 0; j < m; ++j) {
        const RankId last = own[(j + own.size() - 1) % own.size()], door = own[j % own.size()];
        const RankId next = other[j % other.size()];
        if (finder_.share_host(last, next)) {
          note(finder_.inside(last, next, each * local_, gather_));
          continue;
        }
        for (std::size_t k = 0; k < columns; ++k) {
          across(last, next, finder_.own_ports(door, next, k), each * network_ / static_cast<double>(columns));
          ++crossed_.flows;
        }
      }
    }
  }

  /// One edge inside a domain: the same link pair whatever its weight, also none.
  std::int64_t edge(RankId source, RankId destination, double weight) {
    return weight > 0.0 ? finder_.inside(source, destination, weight, gather_) : 0;
  }

  void all_to_all(std::span<const RankId> members, double share) {
    const double part = 1.0 / static_cast<double>(members.size());
    servers_.split(members, places_.servers(), [this](RankId rank) { return places_.server(rank); });
    for (std::size_t s = 0; s < servers_.size(); ++s) all_inside(servers_[s], part * local_);
    const std::size_t columns = finder_.job.columns();
    const double weight = part * share * network_ / static_cast<double>(columns);
    if (weight <= 0.0) return;
    for (std::size_t s = 0; s < servers_.size(); ++s)
      for (std::size_t t = 0; t < servers_.size(); ++t)
        if (t != s)
          for (const RankId destination : servers_[t])
            for (std::size_t k = 0; k < columns; ++k) towards(servers_[s], destination, k, weight);
    for (const Middle& middle : middles_) between(middle, weight);
    middles_.clear();
    middle_of_.clear();
  }

  void all_inside(std::span<const RankId> own, double each) {
    if (own.size() == 1) return;
    const DomainId domain = places_.domain(own[0]);
    if (std::all_of(own.begin(), own.end(), [&](RankId rank) { return places_.domain(rank) == domain; })) {
      const double others = static_cast<double>(own.size() - 1);  // as many edges of a cycle as pairs would make
      for (std::size_t i = 0; i < own.size(); ++i)
        note(finder_.inside(own[i], own[(i + 1) % own.size()], others * each, gather_));
      return;
    }
    for (const RankId source : own)
      for (const RankId destination : own)
        if (source != destination) note(finder_.inside(source, destination, each, gather_));
  }

  /// All members of one server send to one of another.
  void towards(std::span<const RankId> sources, RankId destination, std::size_t column, double weight) {
    const PortPair ports = finder_.rail_ports(sources[0], destination, column);
    const auto [from, to] = ports;
    const auto count = static_cast<double>(sources.size());
    crossed_.flows += static_cast<std::int64_t>(sources.size());
    const bool is_one_port = sources.size() == 1 || !finder_.router.rail_port(from, to).is_none();
    const bool is_direct = finder_.router.entry(to) == from;  // a cable between two servers: nothing lies between
    const bool is_alike = is_one_port && !is_direct && finder_.lossy == nullptr;  // what is lost differs by path
    const Blindness blindness = is_alike ? finder_.router.blindness() : Blindness::kFlow;
    if (blindness == Blindness::kLeaves) {
      const auto key = static_cast<std::uint64_t>(finder_.router.leaf(from).value) << 32U |
                       static_cast<std::uint32_t>(finder_.router.leaf(to).value);
      const auto found = middle_of_.try_emplace(key, middles_.size());
      if (found.second) middles_.push_back({from, to, 0.0});
      middles_[found.first->second].count += count;
      gather_.add(link_of(from), count * weight * finder_.wire.link);
      gather_.add(link_of(finder_.router.entry(to)), count * weight * finder_.wire.link);
      if (finder_.links.has_host_interface(to))
        gather_.add(finder_.links.host_interface(to), count * weight * finder_.wire.host);
    } else if (blindness == Blindness::kDestination) {
      across(sources[0], destination, ports, count * weight);
    } else {
      for (const RankId source : sources)
        across(source, destination, finder_.rail_ports(source, destination, column), weight);
    }
  }

  /// What one rank sends another over the network, an equal part of it on each queue pair, which has a path of its own.
  void across(RankId source, RankId destination, PortPair ports, double weight) {
    const double each = weight / static_cast<double>(queue_pairs_);
    for (std::int64_t i = 0; i < queue_pairs_; ++i)
      note(finder_.across(source, destination, channel_ * queue_pairs_ + i, ports, each, gather_));
  }

  /// Pairs of one leaf and another: they share all hops but the first and the last.
  struct Middle {
    PortId from, to;  // ports of one of the pairs
    double count;
  };

  void between(const Middle& middle, double weight) {
    path_.clear();
    const std::int64_t latency_ps = finder_.router.path(middle.from, middle.to, 0, 0, 0, path_);
    if (latency_ps < 0) {
      finder_.nowhere({middle.from, middle.to}, gather_);
      return;
    }
    note(latency_ps);
    for (std::size_t i = 1; i + 1 < path_.size(); ++i)
      gather_.add(path_[i].link, middle.count * weight * path_[i].weight * finder_.wire.link);
  }

  HopFinder<Router>& finder_;
  Gather& gather_;
  Places places_;
  Parts<DomainId> domains_;
  Parts<ServerId> servers_;
  std::vector<Middle> middles_;
  std::unordered_map<std::uint64_t, std::size_t> middle_of_;  // by the two leaves
  std::vector<Hop> path_;
  Crossed crossed_;
  std::int64_t channel_ = 0, queue_pairs_ = 1;
  double local_ = 1.0, network_ = 1.0;
};

}  // namespace weftwork::flow
