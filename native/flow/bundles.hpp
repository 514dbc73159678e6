/// Bundles: links that carry the same share of every flow when switches split evenly over all candidates.
/// Switches get colours until those of one colour see the same: as many links of the same rate and delay to each other
/// colour, where every attachment has a colour of its own. Distances to an attachment, candidates and fractions are
/// then equal for all switches of a colour, so that the links from one colour to another are one bundle, exactly. In a
/// symmetric folded Clos the colours are the sets S(1) = {leaf}, S(i + 1) = parents of S(i); a fabric without symmetry
/// has bundles of one link, and so has one where some flows keep to ways of their own.
/// Source: equitable partitions, Godsil and Royle, Algebraic Graph Theory, 2001, section 9.3.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/random.hpp"
#include "flow/fabric_view.hpp"
#include "flow/ids.hpp"
#include "flow/tiers.hpp"

namespace weftwork::flow {

/// Links from the switches of one colour to those of another.
struct Bundle {
  PortId port;            // the lowest of all
  NodeId node;            // a switch at the far end
  ColourId colour;        // of the switches at the far end
  PodId child;            // of the far end where that lies below, see Tiers; none: it lies above
  std::int32_t per_node;  // links of one switch
  std::int64_t rate_bps, delay_ps;
  std::int8_t dimension;  // -1 where no route depends on it
};

/// What tells switches and links apart besides rates and delays; borrowed, empty where no route depends on it.
struct BundleTraits {
  IdSpan<PortId, const std::int8_t> dimension;    // of each port's link
  IdSpan<NodeId, const std::int32_t> node_group;  // in which detours turn
};

class Bundles {
 public:
  /// `alike`: whether flows split evenly wherever they go; else every link is a bundle. `traits`: what routes depend on
  /// besides the links.
  void make(const FabricView& fabric, const Tiers& tiers, bool alike = true, BundleTraits traits = {}) {
    traits_ = traits;
    if (alike) {
      refine(fabric, tiers);
    } else {
      colour_.assign(tiers.switch_count(), ColourId(0));
      for (const SwitchId s : tiers.switches()) colour_[s] = ColourId(s.value);
    }
    collect(fabric, tiers, alike);
  }

  [[nodiscard]] ColourId colour(SwitchId index) const { return colour_[index]; }
  [[nodiscard]] std::size_t colours() const { return size_.size(); }
  /// Switches of a colour.
  [[nodiscard]] std::int32_t size(ColourId colour) const { return size_[colour]; }
  [[nodiscard]] std::span<const Bundle> of(ColourId colour) const {
    return {bundles_.items().data() + ptr_[colour], bundles_.items().data() + ptr_[colour + 1]};
  }
  /// Bundles upwards.
  [[nodiscard]] std::span<const Bundle> up(ColourId colour) const {
    return {bundles_.items().data() + up_[colour], bundles_.items().data() + ptr_[colour + 1]};
  }
  /// Bundles downwards to a pod.
  [[nodiscard]] std::span<const Bundle> down(ColourId colour, PodId child) const {
    const Bundle* begin = bundles_.items().data() + ptr_[colour];
    const Bundle* end = bundles_.items().data() + up_[colour];
    const std::int64_t guess = begin == end ? 0 : child - begin->child;
    const auto below = [](const Bundle& b, PodId wanted) { return b.child < wanted; };
    const Bundle* first = guess >= 0 && guess < end - begin && begin[guess].child == child &&
                                  (guess == 0 || begin[guess - 1].child != child)
                              ? begin + guess
                              : std::lower_bound(begin, end, child, below);
    const Bundle* last = first;
    while (last != end && last->child == child) ++last;
    return {first, static_cast<std::size_t>(last - first)};
  }
  /// By port: the port that stands for its bundle; a port in no bundle stands for itself.
  [[nodiscard]] const IdVector<PortId, PortId>& representatives() const { return representative_; }

 private:
  void refine(const FabricView& fabric, const Tiers& tiers) {
    colour_.assign(tiers.switch_count(), ColourId(0));
    IdVector<SwitchId, std::uint64_t> hash(tiers.switch_count());
    for (const SwitchId s : tiers.switches()) {
      const NodeId node = tiers.node_of(s);
      hash[s] = mix(static_cast<std::uint64_t>(tiers.attachment(node).value) + 1,
                    static_cast<std::uint64_t>(fabric.tier(node)), 1);
      if (!traits_.node_group.empty())
        hash[s] = mix(hash[s], static_cast<std::uint64_t>(traits_.node_group[node]) + 1, 3);
    }
    for (std::size_t colours = rename(hash), before = 0; colours != before;) {
      before = colours;
      for (const SwitchId s : tiers.switches()) {
        const NodeId node = tiers.node_of(s);
        std::uint64_t sum = mix(static_cast<std::uint64_t>(colour_[s].value), 0, 2);
        for (const PortId p : fabric.ports_of(node)) {
          if (!tiers.is_live(p)) continue;
          const NodeId next = fabric.next(p);
          if (!fabric.is_switch(next)) continue;
          const PortId far = fabric.peer(p);
          const auto rate = static_cast<std::uint64_t>(fabric.port_rate_bps[p]) +
                            (static_cast<std::uint64_t>(dimension(p) + 2) << 56U);
          const auto delays = static_cast<std::uint64_t>(fabric.port_delay_ps[p]) * 0x9E3779B97F4A7C15ULL +
                              static_cast<std::uint64_t>(fabric.port_delay_ps[far]);
          sum += mix(static_cast<std::uint64_t>(colour(tiers.switch_of(next)).value) + 3, rate, delays);
        }
        hash[s] = sum;
      }
      colours = rename(hash);
    }
  }

  /// Colours from hashes, numbered in the order of the switches; how many there are.
  std::size_t rename(const IdVector<SwitchId, std::uint64_t>& hash) {
    std::unordered_map<std::uint64_t, ColourId> number;
    for (const SwitchId s : hash.ids()) colour_[s] = number.try_emplace(hash[s], ColourId(number.size())).first->second;
    return number.size();
  }

  /// Of a port's link, or -1.
  [[nodiscard]] std::int8_t dimension(PortId port) const {
    return traits_.dimension.empty() ? std::int8_t{-1} : traits_.dimension[port];
  }

  using Key =
      std::tuple<ColourId, std::int64_t, std::int64_t, std::int8_t>;  // colour at the far end, rate, delay, dimension

  [[nodiscard]] Key key_of(const FabricView& fabric, const Tiers& tiers, PortId port) const {
    return {colour(tiers.switch_of(fabric.next(port))), fabric.port_rate_bps[port], fabric.port_delay_ps[port],
            dimension(port)};
  }

  void collect(const FabricView& fabric, const Tiers& tiers, bool alike) {
    IdVector<ColourId, NodeId> first;  // switch of each colour, which stands for all
    size_.assign(0, 0);
    for (const SwitchId s : tiers.switches()) {
      if (colour_[s] == size_.next_id()) {
        first.push_back(tiers.node_of(s));
        size_.push_back(0);
      }
      size_[colour_[s]] += 1;
    }
    bundles_.items().clear();
    up_.assign(0, 0);
    ptr_.assign(1, 0);
    IdVector<ColourId, std::vector<std::pair<Key, BundleId>>> found(size_.size());
    for (const ColourId c : size_.ids()) {
      const NodeId node = first[c];
      std::vector<std::pair<Key, PortId>> ports;
      for (const PortId p : fabric.ports_of(node))
        if (tiers.is_live(p) && fabric.is_switch(fabric.next(p))) ports.emplace_back(key_of(fabric, tiers, p), p);
      std::sort(ports.begin(), ports.end());
      std::vector<std::pair<Bundle, std::size_t>> placed;  // with the order in which they were found
      for (std::size_t i = 0, j = 0; i < ports.size(); i = j) {
        for (j = i; j < ports.size() && ports[j].first == ports[i].first && (alike || j == i);) ++j;
        const NodeId next = fabric.next(ports[i].second);
        const bool below = fabric.tier(next) < fabric.tier(node);
        const Bundle bundle{alike ? PortId::none() : ports[i].second,
                            next,
                            colour(tiers.switch_of(next)),
                            below ? std::max(tiers.pod_of(next), PodId(0)) : PodId::none(),
                            static_cast<std::int32_t>(j - i),
                            std::get<1>(ports[i].first),
                            std::get<2>(ports[i].first),
                            std::get<3>(ports[i].first)};
        placed.emplace_back(bundle, placed.size());
      }
      std::sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) {
        return std::tuple(a.first.child.is_none(), a.first.child, a.second) <
               std::tuple(b.first.child.is_none(), b.first.child, b.second);
      });
      std::vector<Bundle> own;
      own.reserve(placed.size());
      for (const auto& [bundle, number] : placed) own.push_back(bundle);
      for (const Bundle& bundle : own) {
        found[c].emplace_back(Key{bundle.colour, bundle.rate_bps, bundle.delay_ps, bundle.dimension},
                              bundles_.next_id());
        bundles_.push_back(bundle);
      }
      std::sort(found[c].begin(), found[c].end());
      const auto down = std::count_if(own.begin(), own.end(), [](const Bundle& b) { return !b.child.is_none(); });
      up_.push_back(ptr_.back() + down);
      ptr_.push_back(static_cast<std::int64_t>(bundles_.size()));
    }
    representative_.resize(fabric.port_node.size());
    for (const PortId p : fabric.ports()) {
      const NodeId node = fabric.owner(p);
      representative_[p] = p;
      if (!alike || !tiers.is_live(p) || !fabric.is_switch(node) || !fabric.is_switch(fabric.next(p))) continue;
      const auto& own = found[colour(tiers.switch_of(node))];
      const auto at = std::lower_bound(own.begin(), own.end(), std::pair(key_of(fabric, tiers, p), BundleId::none()));
      PortId& lowest = bundles_[at->second].port;
      if (lowest.is_none()) lowest = p;
      representative_[p] = lowest;
    }
  }

  BundleTraits traits_;
  IdVector<SwitchId, ColourId> colour_;
  IdVector<ColourId, std::int32_t> size_;
  IdVector<BundleId, Bundle> bundles_;  // by colour: downwards by pod, then upwards
  IdVector<ColourId, std::int64_t> ptr_, up_;
  IdVector<PortId, PortId> representative_;
};

}  // namespace weftwork::flow
