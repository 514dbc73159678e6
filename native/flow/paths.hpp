/// Which links a flow between two NIC ports crosses, and how long its bytes take over them.
///   spray          every switch splits evenly over all its candidates; hops are bundles of links that carry alike
///   hashed         one path: the ports that the packet engine's ECMP takes for the same flow
///   deterministic  one path: the destination alone chooses, so that what goes to a host comes down one path
/// Source: docs/models/packet-engine.md, "Routes" and "Hash"; d-mod-k: Zahavi, J. Parallel Distrib. Comput. 2012,
/// Fat-tree routing and node ordering; topology/digits.py does the same. Meaning: docs/models/flow-engine-paths.md.
/// Leaves out: adaptive routing, unequal weights, and what a packet queues for.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "flow/bundles.hpp"
#include "flow/hop.hpp"
#include "flow/search.hpp"
#include "flow/tiers.hpp"
#include "packet/hashing.hpp"

namespace weftwork::flow {

enum class Mode : std::uint8_t { kSpray, kHashed, kDeterministic };

/// What a path is besides its hops.
struct Path {
  bool reachable = false;
  std::int32_t links = 0;  // crossed, one after the other
  std::int64_t latency_ps =
      0;  // delays of its ports; of several paths the longest, since a message is there with its last byte
  double rate_bps = 0;  // that its links could carry for it alone
};

/// Routes of a fabric over the links that are up. Not thread-safe: `path` keeps scratch. Both the constructor and `use`
/// throw LimitError where a fabric without tiers is too large to be searched.
class Router {
 public:
  Router(const FabricView& fabric, Mode mode, std::int64_t most_steps = Search::kMostSteps)
      : fabric_(fabric), mode_(mode), tiers_(fabric), search_(most_steps) {
    if (mode_ == Mode::kDeterministic) number_destinations();
    renew();
  }

  /// From now on, routes over these links alone: `live` by port, not 0 where the link is up, alike at both its ends.
  void use(std::span<const std::uint8_t> live) {
    tiers_.use(live);
    renew();
  }

  /// Append the hops from one NIC port to another, two different ones: the sending port, links between switches, the
  /// port towards the destination. Routes decide alone whether a destination is reached: that the link of a NIC port
  /// itself is down is for its capacity to say. Nothing is appended where there is no path.
  void path(std::int32_t source_port, std::int32_t destination_port, std::uint16_t entropy,
            std::uint32_t destination_qp, std::vector<Hop>& hops, Path& about) const {
    about = {true, 0, 0, std::numeric_limits<double>::infinity()};
    const std::size_t begin = hops.size();
    const std::int32_t node = fabric_.next(source_port);
    add(source_port, 1.0, hops, about);
    if (!fabric_.is_switch(node)) {
      about.reachable = fabric_.peer(source_port) == destination_port;
    } else if (const std::int32_t goal = fabric_.next(destination_port); !fabric_.is_switch(goal)) {
      about.reachable = false;
    } else {
      about.reachable = mode_ == Mode::kSpray
                            ? spread(node, goal, hops, about)
                            : walk({source_port, destination_port, entropy, destination_qp}, goal, hops, about);
      if (about.reachable) add(fabric_.peer(destination_port), 1.0, hops, about);
    }
    if (about.reachable) return;
    hops.resize(begin);
    about = {};
  }

  [[nodiscard]] Mode mode() const { return mode_; }
  [[nodiscard]] const FabricView& fabric() const { return fabric_; }
  /// By port: the link that stands for its bundle in hops; all links of a bundle carry the same. Itself where the
  /// mode has no bundles. Changes with `use`.
  [[nodiscard]] std::int32_t bundle_of_port(std::int32_t port) const {
    return mode_ == Mode::kSpray ? bundles_.representatives()[static_cast<std::size_t>(port)] : port;
  }
  /// Ports by bundle: those of the bundle that `link` stands for, ascending.
  void members(std::int32_t link, std::vector<std::int32_t>& ports) const {
    for (std::int32_t p = link; p < fabric_.ports(); ++p)
      if (bundle_of_port(p) == link) ports.push_back(p);
  }

 private:
  struct Flow {
    std::int32_t source_port, destination_port;
    std::uint16_t entropy;
    std::uint32_t destination_qp;
  };

  /// What has come to the switches of a colour.
  struct Share {
    std::int32_t colour, node;
    double fraction;
    std::int64_t latency_ps;
  };

  void renew() {
    search_.reset(fabric_, tiers_);
    if (mode_ == Mode::kSpray) bundles_.make(fabric_, tiers_);
  }

  void add(std::int32_t link, double weight, std::vector<Hop>& hops, Path& about) const {
    hops.push_back({link, weight});
    about.links += 1;
    about.latency_ps += fabric_.port_delay_ps[static_cast<std::size_t>(link)];
    about.rate_bps =
        std::min(about.rate_bps, static_cast<double>(fabric_.port_rate_bps[static_cast<std::size_t>(link)]) / weight);
  }

  /// Candidates of a switch for a destination, as topology/routing.py lists them.
  [[nodiscard]] Candidates candidates(std::int32_t node, std::int32_t goal, std::int32_t attachment) const {
    if (tiers_.knows(attachment)) return tiers_.candidates(node, attachment);
    const auto& distance = search_.to(fabric_, tiers_, attachment, goal);
    const std::int32_t own = distance[static_cast<std::size_t>(tiers_.index_of(node))];
    found_.clear();
    if (own != Search::kNowhere)
      for (std::int32_t p = fabric_.first(node); p < fabric_.end(node); ++p)
        if (const std::int32_t next = fabric_.next(p);
            tiers_.is_live(p) && fabric_.is_switch(next) &&
            distance[static_cast<std::size_t>(tiers_.index_of(next))] == own - 1)
          found_.push_back(p);
    return found_;
  }

  bool walk(const Flow& flow, std::int32_t goal, std::vector<Hop>& hops, Path& about) const {
    const std::int32_t attachment = tiers_.attachment(goal);
    hashed_device_ = -1;
    for (std::int32_t ingress = fabric_.peer(flow.source_port); fabric_.owner(ingress) != goal;) {
      const std::int32_t node = fabric_.owner(ingress);
      const Candidates ports = candidates(node, goal, attachment);
      if (ports.empty()) return false;
      const std::int32_t port = ports.size() == 1 ? ports.front() : ports[choice(flow, node, ingress, ports)];
      add(port, 1.0, hops, about);
      ingress = fabric_.peer(port);
    }
    return true;
  }

  [[nodiscard]] std::size_t choice(const Flow& flow, std::int32_t node, std::int32_t ingress, Candidates ports) const {
    if (mode_ == Mode::kDeterministic) {
      const std::int32_t lower = std::min(fabric_.tier(node), fabric_.tier(fabric_.next(ports.front())));
      const std::int64_t stride = stride_[static_cast<std::size_t>(std::max(lower, 0))];
      return static_cast<std::size_t>(number_[static_cast<std::size_t>(flow.destination_port)] / stride) % ports.size();
    }
    const std::int32_t device = fabric_.node_device[static_cast<std::size_t>(node)];
    const SwitchRow& row = fabric_.switches[static_cast<std::size_t>(device)];
    const auto fields = static_cast<std::uint32_t>(row.hash_fields);
    if (device != hashed_device_ || (fields & kInPort) != 0) {
      const HashInput input{kFirstAddress + static_cast<std::uint32_t>(flow.source_port),
                            kFirstAddress + static_cast<std::uint32_t>(flow.destination_port), flow.entropy,
                            static_cast<std::uint16_t>(ingress - fabric_.first(node)), flow.destination_qp};
      const auto algorithm = static_cast<HashAlgorithm>(row.hash_algorithm);
      const auto seed = static_cast<std::uint32_t>(row.hash_seed);
      hash_ = digest(algorithm, seed, field_bytes(fields, input));
      if (algorithm == HashAlgorithm::kMix) hash_ = static_cast<std::uint32_t>(mix(hash_, seed, 0) >> 32U);
      hash_ >>= static_cast<unsigned>(row.hash_offset);
      hashed_device_ = device;
    }
    return hash_ % ports.size();
  }

  bool spread(std::int32_t node, std::int32_t goal, std::vector<Hop>& hops, Path& about) const {
    const std::int32_t attachment = tiers_.attachment(goal);
    const bool known = tiers_.knows(attachment);
    const std::vector<std::int16_t>* distance = known ? nullptr : &search_.to(fabric_, tiers_, attachment, goal);
    shares_.assign(1, {bundles_.colour(tiers_.index_of(node)), node, 1.0, about.latency_ps});
    while (shares_.front().node != goal) {
      next_.clear();
      for (const Share& share : shares_) {
        std::span<const Bundle> ways;
        if (!known) {
          ways = closer(share, *distance);
        } else if (tiers_.is_above(share.node, attachment)) {
          ways = bundles_.down(share.colour, tiers_.chain(attachment, fabric_.tier(share.node) - 1));
        } else {
          ways = bundles_.up(share.colour);
        }
        std::int64_t links = 0;
        for (const Bundle& way : ways) links += way.per_node;
        if (links == 0) return false;
        const double weight =
            share.fraction / (static_cast<double>(bundles_.size(share.colour)) * static_cast<double>(links));
        for (const Bundle& way : ways) {
          hops.push_back({way.link, weight});
          about.rate_bps = std::min(about.rate_bps, static_cast<double>(way.rate_bps) / weight);
          const double fraction = share.fraction * static_cast<double>(way.per_node) / static_cast<double>(links);
          const std::int64_t latency_ps = share.latency_ps + way.delay_ps;
          const auto same =
              std::find_if(next_.begin(), next_.end(), [&](const Share& other) { return other.colour == way.colour; });
          if (same == next_.end()) {
            next_.push_back({way.colour, way.node, fraction, latency_ps});
          } else {
            same->fraction += fraction;
            same->latency_ps = std::max(same->latency_ps, latency_ps);
          }
        }
      }
      shares_.swap(next_);
      about.links += 1;
    }
    about.latency_ps = shares_.front().latency_ps;
    return true;
  }

  /// Bundles of a colour towards what is closer to the destination.
  [[nodiscard]] std::span<const Bundle> closer(const Share& share, const std::vector<std::int16_t>& distance) const {
    ways_.clear();
    const std::int32_t own = distance[static_cast<std::size_t>(tiers_.index_of(share.node))];
    if (own != Search::kNowhere)
      for (const Bundle& way : bundles_.of(share.colour))
        if (distance[static_cast<std::size_t>(tiers_.index_of(way.node))] == own - 1) ways_.push_back(way);
    return ways_;
  }

  /// Number every NIC port leaf by leaf, in the order of the leaf's ports; and for each tier the product of the largest
  /// numbers of ports upwards below it: the digits of a number then choose the ports of one tier after the other.
  void number_destinations() {
    number_.assign(static_cast<std::size_t>(fabric_.ports()), 0);
    std::int64_t next_number = 0;
    std::int32_t highest = 0;
    for (std::int32_t s = 0; s < tiers_.switches(); ++s)
      highest = std::max(highest, fabric_.tier(tiers_.switch_node(s)));
    std::vector<std::int64_t> width(static_cast<std::size_t>(highest) + 1, 1);
    for (std::int32_t s = 0; s < tiers_.switches(); ++s) {
      const std::int32_t node = tiers_.switch_node(s);
      std::int64_t up = 0;
      for (std::int32_t p = fabric_.first(node); p < fabric_.end(node); ++p) {
        const std::int32_t next = fabric_.next(p);
        if (!fabric_.is_switch(next)) number_[static_cast<std::size_t>(fabric_.peer(p))] = next_number++;
        up += fabric_.is_switch(next) && fabric_.tier(next) > fabric_.tier(node) ? 1 : 0;
      }
      std::int64_t& most = width[static_cast<std::size_t>(std::max(fabric_.tier(node), 0))];
      most = std::max(most, up);
    }
    stride_.assign(width.size(), 1);
    for (std::size_t tier = 2; tier < width.size(); ++tier) stride_[tier] = stride_[tier - 1] * width[tier - 1];
  }

  FabricView fabric_;
  Mode mode_;
  Tiers tiers_;
  Bundles bundles_;
  std::vector<std::int64_t> number_;  // by NIC port; deterministic only
  std::vector<std::int64_t> stride_;  // by tier
  mutable Search search_;
  mutable std::vector<std::int32_t> found_;
  mutable std::vector<Bundle> ways_;
  mutable std::vector<Share> shares_, next_;
  mutable std::int32_t hashed_device_ = -1;
  mutable std::uint32_t hash_ = 0;
};

}  // namespace weftwork::flow
