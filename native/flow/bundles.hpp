/// Bundles: links that carry the same share of every flow when switches split evenly over all shortest paths.
/// Switches get colours until those of one colour see the same: as many links of the same rate and delay to each other
/// colour, where every attachment has a colour of its own. Distances to an attachment, candidates and fractions are
/// then equal for all switches of a colour, so that the links from one colour to another are one bundle, exactly. In a
/// symmetric folded Clos the colours are the sets S(1) = {leaf}, S(i + 1) = parents of S(i); a fabric without symmetry
/// has bundles of one link.
/// Source: equitable partitions, Godsil and Royle, Algebraic Graph Theory, 2001, section 9.3.
#pragma once
#include <algorithm>
#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "flow/tiers.hpp"

namespace weftwork::flow {

/// Links from the switches of one colour to those of another.
struct Bundle {
  std::int32_t link;      // the lowest port of all
  std::int32_t node;      // a switch at the far end
  std::int32_t colour;    // of the switches at the far end
  std::int32_t child;     // class of the far end where that lies below, see Tiers; -1: it lies above
  std::int32_t per_node;  // links of one switch
  std::int64_t rate_bps, delay_ps;
};

class Bundles {
 public:
  void make(const FabricView& fabric, const Tiers& tiers) {
    refine(fabric, tiers);
    collect(fabric, tiers);
  }

  [[nodiscard]] std::int32_t colour(std::int32_t switch_index) const {
    return colour_[static_cast<std::size_t>(switch_index)];
  }
  [[nodiscard]] std::int32_t colours() const { return static_cast<std::int32_t>(size_.size()); }
  /// Switches of a colour.
  [[nodiscard]] std::int32_t size(std::int32_t colour) const { return size_[static_cast<std::size_t>(colour)]; }
  [[nodiscard]] std::span<const Bundle> of(std::int32_t colour) const {
    const auto c = static_cast<std::size_t>(colour);
    return {bundles_.data() + ptr_[c], static_cast<std::size_t>(ptr_[c + 1] - ptr_[c])};
  }
  /// Bundles upwards.
  [[nodiscard]] std::span<const Bundle> up(std::int32_t colour) const {
    const auto c = static_cast<std::size_t>(colour);
    return {bundles_.data() + up_[c], static_cast<std::size_t>(ptr_[c + 1] - up_[c])};
  }
  /// Bundles downwards to a class.
  [[nodiscard]] std::span<const Bundle> down(std::int32_t colour, std::int32_t child) const {
    const auto c = static_cast<std::size_t>(colour);
    const Bundle* begin = bundles_.data() + ptr_[c];
    const Bundle* end = bundles_.data() + up_[c];
    const std::int64_t guess = begin == end ? 0 : child - begin->child;
    const auto below = [](const Bundle& b, std::int32_t wanted) { return b.child < wanted; };
    const Bundle* first = guess >= 0 && guess < end - begin && begin[guess].child == child &&
                                  (guess == 0 || begin[guess - 1].child != child)
                              ? begin + guess
                              : std::lower_bound(begin, end, child, below);
    const Bundle* last = first;
    while (last != end && last->child == child) ++last;
    return {first, static_cast<std::size_t>(last - first)};
  }
  /// By port: the port that stands for its bundle; a port in no bundle stands for itself.
  [[nodiscard]] const std::vector<std::int32_t>& representatives() const { return representative_; }

 private:
  void refine(const FabricView& fabric, const Tiers& tiers) {
    const auto count = static_cast<std::size_t>(tiers.switches());
    colour_.assign(count, 0);
    std::vector<std::uint64_t> hash(count);
    for (std::size_t s = 0; s < count; ++s) {
      const std::int32_t node = tiers.switch_node(static_cast<std::int32_t>(s));
      hash[s] =
          mix(static_cast<std::uint64_t>(tiers.attachment(node)) + 1, static_cast<std::uint64_t>(fabric.tier(node)), 1);
    }
    for (std::int32_t colours = rename(hash), before = -1; colours != before;) {
      before = colours;
      for (std::size_t s = 0; s < count; ++s) {
        const std::int32_t node = tiers.switch_node(static_cast<std::int32_t>(s));
        std::uint64_t sum = mix(static_cast<std::uint64_t>(colour_[s]), 0, 2);
        for (std::int32_t p = fabric.first(node); p < fabric.end(node); ++p) {
          if (!tiers.is_live(p)) continue;
          const std::int32_t next = fabric.next(p);
          if (!fabric.is_switch(next)) continue;
          const auto far = static_cast<std::size_t>(fabric.peer(p));
          const auto own = static_cast<std::size_t>(p);
          const auto rate = static_cast<std::uint64_t>(fabric.port_rate_bps[own]);
          const auto delays = static_cast<std::uint64_t>(fabric.port_delay_ps[own]) * 0x9E3779B97F4A7C15ULL +
                              static_cast<std::uint64_t>(fabric.port_delay_ps[far]);
          sum += mix(static_cast<std::uint64_t>(colour(tiers.index_of(next))) + 3, rate, delays);
        }
        hash[s] = sum;
      }
      colours = rename(hash);
    }
  }

  /// Colours from hashes, numbered in the order of the switches; how many there are.
  std::int32_t rename(const std::vector<std::uint64_t>& hash) {
    std::unordered_map<std::uint64_t, std::int32_t> number;
    for (std::size_t s = 0; s < hash.size(); ++s)
      colour_[s] = number.try_emplace(hash[s], static_cast<std::int32_t>(number.size())).first->second;
    return static_cast<std::int32_t>(number.size());
  }

  using Key = std::tuple<std::int32_t, std::int64_t, std::int64_t>;  // colour at the far end, rate, delay

  [[nodiscard]] Key key_of(const FabricView& fabric, const Tiers& tiers, std::int32_t port) const {
    const auto p = static_cast<std::size_t>(port);
    return {colour(tiers.index_of(fabric.next(port))), fabric.port_rate_bps[p], fabric.port_delay_ps[p]};
  }

  void collect(const FabricView& fabric, const Tiers& tiers) {
    const auto count = static_cast<std::size_t>(tiers.switches());
    std::vector<std::int32_t> first;  // by colour: its first switch, which stands for all
    size_.clear();
    for (std::size_t s = 0; s < count; ++s) {
      if (static_cast<std::size_t>(colour_[s]) == size_.size()) {
        first.push_back(tiers.switch_node(static_cast<std::int32_t>(s)));
        size_.push_back(0);
      }
      size_[static_cast<std::size_t>(colour_[s])] += 1;
    }
    bundles_.clear();
    up_.clear();
    ptr_.assign(1, 0);
    std::vector<std::vector<std::pair<Key, std::int32_t>>> found(size_.size());  // by colour: key, bundle
    for (std::size_t c = 0; c < size_.size(); ++c) {
      const std::int32_t node = first[c];
      std::vector<std::pair<Key, std::int32_t>> ports;
      for (std::int32_t p = fabric.first(node); p < fabric.end(node); ++p)
        if (tiers.is_live(p) && fabric.is_switch(fabric.next(p))) ports.emplace_back(key_of(fabric, tiers, p), p);
      std::sort(ports.begin(), ports.end());
      std::vector<std::pair<Bundle, std::size_t>> placed;  // with the order in which they were found
      for (std::size_t i = 0, j = 0; i < ports.size(); i = j) {
        for (j = i; j < ports.size() && ports[j].first == ports[i].first;) ++j;
        const std::int32_t next = fabric.next(ports[i].second);
        const bool below = fabric.tier(next) < fabric.tier(node);
        const Bundle bundle{-1,
                            next,
                            colour(tiers.index_of(next)),
                            below ? std::max(tiers.class_of(next), 0) : -1,
                            static_cast<std::int32_t>(j - i),
                            std::get<1>(ports[i].first),
                            std::get<2>(ports[i].first)};
        placed.emplace_back(bundle, placed.size());
      }
      std::sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) {
        return std::tuple(a.first.child < 0, a.first.child, a.second) <
               std::tuple(b.first.child < 0, b.first.child, b.second);
      });
      std::vector<Bundle> own;
      own.reserve(placed.size());
      for (const auto& [bundle, number] : placed) own.push_back(bundle);
      for (const Bundle& bundle : own) {
        found[c].emplace_back(Key{bundle.colour, bundle.rate_bps, bundle.delay_ps},
                              static_cast<std::int32_t>(bundles_.size()));
        bundles_.push_back(bundle);
      }
      std::sort(found[c].begin(), found[c].end());
      const auto down = std::count_if(own.begin(), own.end(), [](const Bundle& b) { return b.child >= 0; });
      up_.push_back(ptr_.back() + down);
      ptr_.push_back(static_cast<std::int64_t>(bundles_.size()));
    }
    representative_.resize(static_cast<std::size_t>(fabric.ports()));
    for (std::int32_t p = 0; p < fabric.ports(); ++p) {
      const std::int32_t node = fabric.owner(p);
      representative_[static_cast<std::size_t>(p)] = p;
      if (!tiers.is_live(p) || !fabric.is_switch(node) || !fabric.is_switch(fabric.next(p))) continue;
      const auto& own = found[static_cast<std::size_t>(colour(tiers.index_of(node)))];
      const auto at = std::lower_bound(own.begin(), own.end(), std::pair(key_of(fabric, tiers, p), std::int32_t{-1}));
      std::int32_t& link = bundles_[static_cast<std::size_t>(at->second)].link;
      if (link < 0) link = p;
      representative_[static_cast<std::size_t>(p)] = link;
    }
  }

  std::vector<std::int32_t> colour_;  // by number of the switch
  std::vector<std::int32_t> size_;    // by colour
  std::vector<Bundle> bundles_;       // by colour: downwards by class, then upwards
  std::vector<std::int64_t> ptr_, up_;
  std::vector<std::int32_t> representative_;
};

}  // namespace weftwork::flow
