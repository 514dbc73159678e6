/// What routes follow from in a fabric of tiers, without a table for each destination: which leaves lie below a switch.
/// A fabric is tiered where links between switches join neighbouring tiers, servers hang on tier 1, two switches of one
/// tier have the same leaves below them or none in common, and all parents of a switch reach the same tiers above. Then
/// the shortest paths go straight up until the leaf is below and straight down, and every port upwards is a candidate.
/// Source: folded Clos as Al-Fares et al., SIGCOMM 2008, doi:10.1145/1402958.1402967; topology/routing.py finds the
/// same candidates by search, and tests/property/test_flow_paths.py holds the two together.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "packet/input.hpp"

namespace weftwork::flow {

/// What a router reads of a fabric; borrowed. N nodes, P ports, as in weftwork.engine.plan.
struct FabricView {
  std::span<const std::int8_t> node_kind;  // (N), 0: host, 1: switch
  std::span<const std::int8_t> node_tier;
  std::span<const std::int32_t> node_device;                   // of a switch: row of `switches`
  std::span<const std::int64_t> port_base;                     // (N + 1)
  std::span<const std::int32_t> port_node, port_peer;          // (P)
  std::span<const std::int64_t> port_rate_bps, port_delay_ps;  // (P), of the direction that leaves the port
  std::span<const SwitchRow> switches;

  [[nodiscard]] std::int32_t nodes() const { return static_cast<std::int32_t>(node_kind.size()); }
  [[nodiscard]] std::int32_t ports() const { return static_cast<std::int32_t>(port_node.size()); }
  [[nodiscard]] bool is_switch(std::int32_t node) const { return node_kind[static_cast<std::size_t>(node)] != 0; }
  [[nodiscard]] std::int32_t tier(std::int32_t node) const { return node_tier[static_cast<std::size_t>(node)]; }
  [[nodiscard]] std::int32_t first(std::int32_t node) const {
    return static_cast<std::int32_t>(port_base[static_cast<std::size_t>(node)]);
  }
  [[nodiscard]] std::int32_t end(std::int32_t node) const { return first(node + 1); }
  [[nodiscard]] std::int32_t owner(std::int32_t port) const { return port_node[static_cast<std::size_t>(port)]; }
  [[nodiscard]] std::int32_t peer(std::int32_t port) const { return port_peer[static_cast<std::size_t>(port)]; }
  [[nodiscard]] std::int32_t next(std::int32_t port) const { return owner(peer(port)); }  // node at the other end
};

/// Candidate ports, ascending.
using Candidates = std::span<const std::int32_t>;

class Tiers {
 public:
  explicit Tiers(const FabricView& fabric) : fabric_(fabric) {
    number_switches();
    is_tiered_ = find_classes() && same_reach();
    if (is_tiered_) make_chains();
    live_.assign(fabric_.port_node.size(), 1);
    use_live();
  }

  /// Follow other links: `live` by port, alike at both ends of a link.
  void use(std::span<const std::uint8_t> live) {
    live_.assign(live.begin(), live.end());
    use_live();
  }

  [[nodiscard]] bool is_live(std::int32_t port) const { return live_[static_cast<std::size_t>(port)] != 0; }
  /// Attachments: the switches at which hosts hang, ascending, as in topology/routing.py.
  [[nodiscard]] std::int32_t attachments() const { return static_cast<std::int32_t>(attach_node_.size()); }
  [[nodiscard]] std::int32_t attachment(std::int32_t node) const { return of_node(attach_of_, node); }
  [[nodiscard]] std::int32_t switches() const { return static_cast<std::int32_t>(switch_node_.size()); }
  [[nodiscard]] std::int32_t switch_node(std::int32_t index) const {
    return switch_node_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] std::int32_t index_of(std::int32_t node) const { return of_node(index_, node); }
  /// Whether `candidates` knows this destination; else a search has to (it is not below its parents alone).
  [[nodiscard]] bool knows(std::int32_t attachment) const {
    return is_tiered_ && searched_[static_cast<std::size_t>(attachment)] == 0;
  }
  /// Destinations that `candidates` does not know.
  [[nodiscard]] std::int64_t unknown() const { return unknown_; }
  /// Whether the leaf is below the switch.
  [[nodiscard]] bool is_above(std::int32_t node, std::int32_t attachment) const {
    return chain(attachment, fabric_.tier(node)) == class_of(node);
  }
  [[nodiscard]] std::int32_t class_of(std::int32_t node) const { return of_node(class_, node); }
  /// The class that has the leaf below it in a tier, -1: none.
  [[nodiscard]] std::int32_t chain(std::int32_t attachment, std::int32_t tier) const {
    return chain_[static_cast<std::size_t>(attachment) * static_cast<std::size_t>(tiers_) +
                  static_cast<std::size_t>(tier - 1)];
  }

  /// Ports of a switch on a shortest path to an attachment that is `known`; empty: no path.
  [[nodiscard]] Candidates candidates(std::int32_t node, std::int32_t attachment) const {
    const auto s = static_cast<std::size_t>(index_of(node));
    if (!is_above(node, attachment)) return slice(up_begin_[s], row_begin_[s + 1]);
    const std::int32_t child = chain(attachment, fabric_.tier(node) - 1);
    const std::int64_t first = group_ptr_[s];
    const std::int64_t count = group_ptr_[s + 1] - first;
    if (count == 0) return {};
    std::int64_t at = child - group_class_[static_cast<std::size_t>(first)];  // classes mostly follow each other
    if (at < 0 || at >= count || group_class_[static_cast<std::size_t>(first + at)] != child) {
      const auto begin = group_class_.begin() + first;
      at = std::lower_bound(begin, begin + count, child) - begin;
      if (at == count || group_class_[static_cast<std::size_t>(first + at)] != child) return {};
    }
    const std::int32_t begin = group_begin_[static_cast<std::size_t>(first + at)];
    return slice(begin, at + 1 < count ? group_begin_[static_cast<std::size_t>(first + at + 1)] : up_begin_[s]);
  }

 private:
  [[nodiscard]] static std::int32_t of_node(const std::vector<std::int32_t>& values, std::int32_t node) {
    return values[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] Candidates slice(std::int32_t begin, std::int32_t end) const {
    return {row_.data() + begin, static_cast<std::size_t>(end - begin)};
  }

  void number_switches() {
    const auto nodes = static_cast<std::size_t>(fabric_.nodes());
    index_.assign(nodes, -1);
    attach_of_.assign(nodes, -1);
    std::vector<char> attaches(nodes, 0);
    for (std::int32_t node = 0; node < fabric_.nodes(); ++node) {
      if (fabric_.is_switch(node)) {
        index_[static_cast<std::size_t>(node)] = switches();
        switch_node_.push_back(node);
        tiers_ = std::max(tiers_, fabric_.tier(node));
      } else {
        for (std::int32_t p = fabric_.first(node); p < fabric_.end(node); ++p)
          attaches[static_cast<std::size_t>(fabric_.next(p))] = 1;
      }
    }
    for (std::int32_t node = 0; node < fabric_.nodes(); ++node)
      if (attaches[static_cast<std::size_t>(node)] != 0 && fabric_.is_switch(node)) {
        attach_of_[static_cast<std::size_t>(node)] = attachments();
        attach_node_.push_back(node);
      }
  }

  template <typename Visit>
  void each_switch_port(std::int32_t node, Visit&& visit) const {
    for (std::int32_t p = fabric_.first(node); p < fabric_.end(node); ++p)
      if (const std::int32_t next = fabric_.next(p); fabric_.is_switch(next)) visit(p, next);
  }

  /// Classes by tier: switches with the same leaves below them. False where the fabric is not tiered.
  bool find_classes() {
    class_.assign(static_cast<std::size_t>(fabric_.nodes()), -1);
    by_tier_.assign(static_cast<std::size_t>(tiers_) + 1, {});
    for (const std::int32_t node : switch_node_) {
      const std::int32_t tier = fabric_.tier(node);
      if (tier < 1 || (attachment(node) >= 0 && tier != 1)) return false;
      bool neighbours = true;
      each_switch_port(node, [&](std::int32_t, std::int32_t next) {
        neighbours = neighbours && (fabric_.tier(next) == tier + 1 || fabric_.tier(next) == tier - 1);
      });
      if (!neighbours) return false;
      by_tier_[static_cast<std::size_t>(tier)].push_back(node);
    }
    parent_class_.assign(static_cast<std::size_t>(tiers_) + 1, {});
    std::int32_t below = 0;  // classes of the tier below
    for (std::int32_t tier = 1; tier <= tiers_; ++tier) {
      auto& owner = parent_class_[static_cast<std::size_t>(tier - 1)];
      owner.assign(static_cast<std::size_t>(below), -1);
      std::int32_t classes = 0;
      if (tier == 1) {  // attachments first, in their order
        classes = attachments();
        for (std::int32_t a = 0; a < classes; ++a)
          class_[static_cast<std::size_t>(attach_node_[static_cast<std::size_t>(a)])] = a;
      }
      std::vector<std::int32_t> size(static_cast<std::size_t>(classes), 0);
      std::vector<std::int32_t> children;
      for (const std::int32_t node : by_tier_[static_cast<std::size_t>(tier)]) {
        if (class_of(node) >= 0) continue;
        children.clear();
        each_switch_port(node, [&](std::int32_t, std::int32_t next) {
          if (fabric_.tier(next) < tier) children.push_back(class_of(next));
        });
        std::sort(children.begin(), children.end());
        children.erase(std::unique(children.begin(), children.end()), children.end());
        const auto count = static_cast<std::int32_t>(children.size());
        const std::int32_t known = children.empty() ? -1 : owner[static_cast<std::size_t>(children.front())];
        for (const std::int32_t child : children)
          if (owner[static_cast<std::size_t>(child)] != known) return false;
        if (known >= 0 && size[static_cast<std::size_t>(known)] != count) return false;
        const std::int32_t own = known >= 0 ? known : classes++;  // nothing below: a class of its own
        if (known < 0) size.push_back(count);
        for (const std::int32_t child : children) owner[static_cast<std::size_t>(child)] = own;
        class_[static_cast<std::size_t>(node)] = own;
      }
      below = classes;
    }
    parent_class_[static_cast<std::size_t>(tiers_)].assign(static_cast<std::size_t>(below), -1);
    return true;
  }

  /// Tiers that each switch reaches by links upwards, a bit each; false where parents of a switch differ in that, or
  /// where live links reach less than all links do.
  bool same_reach() {
    const bool all = live_.empty();
    if (tiers_ > 31) return false;
    std::vector<std::uint32_t> reach(static_cast<std::size_t>(fabric_.nodes()), 0);
    if (all) full_reach_.assign(reach.size(), 0);
    bool same = true;
    for (std::int32_t tier = tiers_; tier >= 1; --tier)
      for (const std::int32_t node : by_tier_[static_cast<std::size_t>(tier)]) {
        bool first = true;
        std::uint32_t& own = reach[static_cast<std::size_t>(node)];
        each_switch_port(node, [&](std::int32_t p, std::int32_t next) {
          if (fabric_.tier(next) < tier || !(all || is_live(p))) return;
          const std::uint32_t through =
              reach[static_cast<std::size_t>(next)] | 1U << static_cast<unsigned>(fabric_.tier(next));
          same = same && (first || own == through) && (all || through == full_reach_[static_cast<std::size_t>(node)]);
          own |= through;
          first = false;
        });
      }
    if (all) full_reach_ = std::move(reach);
    return same;
  }

  void make_chains() {
    chain_.assign(static_cast<std::size_t>(attachments()) * static_cast<std::size_t>(tiers_), -1);
    for (std::int32_t a = 0; a < attachments(); ++a) {
      std::int32_t own = a;
      for (std::int32_t tier = 1; tier <= tiers_ && own >= 0; ++tier) {
        chain_[static_cast<std::size_t>(a) * static_cast<std::size_t>(tiers_) + static_cast<std::size_t>(tier - 1)] =
            own;
        own = parent_class_[static_cast<std::size_t>(tier)][static_cast<std::size_t>(own)];
      }
    }
  }

  /// Rows of ports of every switch over the live links, and the destinations that they do not lead to as before.
  void use_live() {
    searched_.assign(static_cast<std::size_t>(attachments()), is_tiered_ && same_reach() ? 0 : 1);
    unknown_ = searched_.empty() || searched_.front() == 0 ? 0 : attachments();
    if (!is_tiered_) return;
    row_.clear();
    row_begin_.assign(1, 0);
    up_begin_.clear();
    group_ptr_.assign(1, 0);
    group_class_.clear();
    group_begin_.clear();
    std::vector<std::vector<char>> hit(static_cast<std::size_t>(tiers_) + 1);  // classes below a dead link, by tier
    for (std::int32_t tier = 1; tier <= tiers_; ++tier)
      hit[static_cast<std::size_t>(tier)].assign(parent_class_[static_cast<std::size_t>(tier)].size(), 0);
    std::vector<std::pair<std::int32_t, std::int32_t>> down;  // class, port
    for (const std::int32_t node : switch_node_) {
      const std::int32_t tier = fabric_.tier(node);
      down.clear();
      each_switch_port(node, [&](std::int32_t p, std::int32_t next) {
        if (fabric_.tier(next) > tier) return;
        if (is_live(p))
          down.emplace_back(class_of(next), p);
        else
          hit[static_cast<std::size_t>(tier - 1)][static_cast<std::size_t>(class_of(next))] = 1;
      });
      if (!std::is_sorted(down.begin(), down.end())) std::sort(down.begin(), down.end());
      for (const auto& [child, port] : down) {
        if (std::cmp_equal(group_ptr_.back(), group_class_.size()) || group_class_.back() != child) {
          group_class_.push_back(child);
          group_begin_.push_back(static_cast<std::int32_t>(row_.size()));
        }
        row_.push_back(port);
      }
      group_ptr_.push_back(static_cast<std::int64_t>(group_class_.size()));
      up_begin_.push_back(static_cast<std::int32_t>(row_.size()));
      each_switch_port(node, [&](std::int32_t p, std::int32_t next) {
        if (fabric_.tier(next) > tier && is_live(p)) row_.push_back(p);
      });
      row_begin_.push_back(static_cast<std::int32_t>(row_.size()));
    }
    for (std::int32_t a = 0; a < attachments() && unknown_ < attachments(); ++a)
      for (std::int32_t tier = 1; tier <= tiers_; ++tier)
        if (const std::int32_t own = chain(a, tier);
            own >= 0 && hit[static_cast<std::size_t>(tier)][static_cast<std::size_t>(own)] != 0) {
          searched_[static_cast<std::size_t>(a)] = 1;
          ++unknown_;
          break;
        }
  }

  FabricView fabric_;
  std::vector<std::int32_t> index_, switch_node_;      // number of a switch among the switches, and back
  std::vector<std::int32_t> attach_of_, attach_node_;  // attachment of a node, and back
  std::int32_t tiers_ = 0;
  bool is_tiered_ = false;
  std::vector<std::vector<std::int32_t>> by_tier_;
  std::vector<std::int32_t> class_;                      // by node, numbered within its tier
  std::vector<std::vector<std::int32_t>> parent_class_;  // by tier and class: the class above
  std::vector<std::int32_t> chain_;                      // by attachment and tier
  std::vector<std::uint32_t> full_reach_;                // by node
  std::vector<std::uint8_t> live_;                       // by port
  std::vector<std::uint8_t> searched_;                   // by attachment
  std::int64_t unknown_ = 0;
  // By switch: ports downwards in groups by class, then ports upwards; ascending within each.
  std::vector<std::int32_t> row_, row_begin_, up_begin_;
  std::vector<std::int64_t> group_ptr_;
  std::vector<std::int32_t> group_class_, group_begin_;
};

}  // namespace weftwork::flow
