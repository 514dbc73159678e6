/// Who shares what: links, classes, the bottleneck of each class and the service counters that time its activities.
/// Leaves out: which rates are right (`sweep.hpp`, `filling.hpp`), and when to ask (`fluid.hpp`).
/// Invariants at rest: a class with activities has exactly one bottleneck among its links, is in that link's `own` and
/// in every one of its links' `all`; its rate is the level of its bottleneck; `load` and the pulls are the sums that
/// they say.
#pragma once
#include <span>
#include <utility>

#include "flow/records.hpp"

namespace weftwork::flow {

/// Service counters begin anew here, long before a double could not tell a thousandth of a byte any more.
inline constexpr double kCounterLimit = 0x1p40;

inline constexpr std::int32_t kFirstRoom = 16;  // chosen: classes on a link for which there is room at once

struct Sharing {
  Sharing(std::span<const double> capacity, double tolerance_)
      : tolerance(tolerance_), load(capacity.size()), links(capacity.size()), due(capacity.size()) {
    for (std::size_t link = 0; link < capacity.size(); ++link) {
      links[link].capacity = capacity[link];
      set_bounds(static_cast<std::int32_t>(link));
    }
  }

  double tolerance;
  double now_ps = 0;
  std::vector<LinkLoad> load;
  std::vector<LinkState> links;
  std::vector<std::int32_t> bottleneck;  // of each class; kNone: not known yet, or no activities
  std::vector<ClassState> classes;
  std::vector<Hop> arena;            // hops of all classes
  std::vector<std::int32_t> places;  // of the crossing of each hop in the list of its link
  std::vector<std::int32_t> used;    // links that any class crosses
  Tournament due;                    // next completion at each link
  std::int64_t epoch = 0;            // counts repairs
  std::vector<std::int32_t> opened;  // links whose service counter this repair has frozen
  std::int64_t live_classes = 0;     // classes with activities
  std::int64_t live_hops = 0;        // their crossings
  FluidStats stats;

  [[nodiscard]] std::int64_t activities(std::int32_t cls) const {
    return static_cast<std::int64_t>(classes[cls].finishes.size());
  }

  [[nodiscard]] double rate(std::int32_t cls) const {
    return bottleneck[cls] == kNone ? 0 : load[bottleneck[cls]].level;
  }
  [[nodiscard]] std::span<const Hop> hops(std::int32_t cls) const {
    return {arena.data() + classes[cls].first_hop, static_cast<std::size_t>(classes[cls].length)};
  }
  /// Load of a class on one of its links per unit of its rate.
  [[nodiscard]] double pull(std::int32_t cls, std::int32_t hop) const {
    return static_cast<double>(activities(cls)) * arena[classes[cls].first_hop + hop].weight;
  }

  [[nodiscard]] double service(std::int32_t link) const { return service(link, now_ps); }
  [[nodiscard]] double service(std::int32_t link, double at_ps) const {
    const double level = load[link].level;
    return links[link].served + (level < kInfinity ? level * (at_ps - links[link].since_ps) : 0);
  }
  [[nodiscard]] double class_service(std::int32_t cls, double at_ps) const {
    const std::int32_t link = bottleneck[cls];
    return classes[cls].offset + (link == kNone ? 0 : service(link, at_ps));
  }
  /// What each unit of weight of this class has carried since it became active.
  [[nodiscard]] double class_carried(std::int32_t cls, double at_ps) const {
    return static_cast<double>(activities(cls)) * class_service(cls, at_ps) - classes[cls].base;
  }

  /// Range of loads that leave the link alone.
  void set_bounds(std::int32_t link) {
    const LinkState& l = links[link];
    load[link].low = l.is_dirty || l.own.empty() ? -kInfinity : l.capacity * (1 - tolerance);
    load[link].high = l.is_dirty ? kInfinity : l.capacity * (1 + tolerance);
  }

  /// One activity more or less (`sign`), at the class's present rate; `finishes` has changed already.
  void change(std::int32_t cls, int sign) {
    const double step = sign * rate(cls);
    for (const Hop& hop : hops(cls)) {
      load[hop.link].load += step * hop.weight;
      links[hop.link].all_pull += sign * hop.weight;
    }
    if (bottleneck[cls] == kNone) return;
    const ClassState& c = classes[cls];
    LinkState& l = links[bottleneck[cls]];
    l.own_pull += sign * arena[c.first_hop + c.bottleneck_hop].weight;
    l.own[c.own_at].pull = pull(cls, c.bottleneck_hop);
  }

  /// The class gets its first activity: its links know of it from now on.
  void enlist(std::int32_t cls) {
    const ClassState& c = classes[cls];
    ++live_classes;
    live_hops += c.length;
    for (std::int32_t hop = 0; hop < c.length; ++hop) {
      const std::int32_t link = arena[c.first_hop + hop].link;
      LinkState& l = links[link];
      if (l.all.empty()) {
        l.used_at = static_cast<std::int32_t>(used.size());
        used.push_back(link);
        const auto room = static_cast<std::size_t>(std::min(l.declared, kFirstRoom));
        l.all.reserve(room);
        l.held_at.reserve(room);
      }
      places[c.first_hop + hop] = static_cast<std::int32_t>(l.all.size());
      l.all.push_back({cls, hop});
      l.held_at.push_back(kNone);
    }
  }

  /// The class leaves its links, with what it takes there; what it has carried stays in their books. Its own counter
  /// goes on from where it is, for the activities that it still has.
  void delist(std::int32_t cls) {
    ClassState& c = classes[cls];
    const auto count = static_cast<double>(activities(cls));
    const double carried = class_carried(cls, now_ps);
    const double service = class_service(cls, now_ps);
    const double taken = count * rate(cls);
    detach(cls);
    --live_classes;
    live_hops -= c.length;
    for (std::int32_t hop = 0; hop < c.length; ++hop) {
      const auto [link, weight] = arena[c.first_hop + hop];
      LinkState& l = links[link];
      l.carried_units += weight * carried;
      const std::int32_t place = places[c.first_hop + hop];
      const Crossing last = l.all.back();
      l.all[place] = last;
      places[classes[last.cls].first_hop + last.hop] = place;
      l.all.pop_back();
      l.held_at[place] = l.held_at.back();
      l.held_at.pop_back();
      load[link].load -= taken * weight;
      l.all_pull -= count * weight;
      if (l.all.empty()) retire(link);
    }
    ++c.generation;
    c.offset = count > 0 ? service : 0;
    c.base = count * c.offset;
  }

  /// Freeze the service counter of a link: once in each repair, before its level or its own classes change.
  void open(std::int32_t link) {
    LinkState& l = links[link];
    if (l.epoch == epoch) return;
    l.epoch = epoch;
    opened.push_back(link);
    l.served = l.own.empty() ? 0 : service(link);
    l.since_ps = now_ps;
    if (l.served <= kCounterLimit) return;
    for (const Own& own : l.own) classes[own.cls].offset += l.served;
    for (Due& entry : l.due) entry.at -= l.served;
    l.served = 0;
  }

  /// Make hop `hop` of a class its bottleneck. Both links must be open.
  void attach(std::int32_t cls, std::int32_t hop) {
    ClassState& c = classes[cls];
    const std::int32_t link = arena[c.first_hop + hop].link;
    const std::int32_t before = bottleneck[cls];
    if (before == link) return;
    ++stats.moves;
    const double service = c.offset + (before == kNone ? 0 : links[before].served);
    detach(cls);
    LinkState& l = links[link];
    if (l.own.empty()) {
      const std::size_t room = std::min<std::size_t>(l.all.size(), kFirstRoom);
      l.own.reserve(room);
      l.due.reserve(room);
    }
    bottleneck[cls] = link;
    c.bottleneck_hop = hop;
    c.offset = service - l.served;
    c.own_at = static_cast<std::int32_t>(l.own.size());
    l.own.push_back(own_row(cls));
    l.own_pull += l.own.back().pull;
    for (std::int32_t i = 0; i < c.length; ++i)
      links[arena[c.first_hop + i].link].held_at[places[c.first_hop + i]] = link;
    set_bounds(link);
    post(cls);
  }

  /// Put the next completion of the class on the agenda of its bottleneck; the entry before is stale then.
  void post(std::int32_t cls) {
    ClassState& c = classes[cls];
    LinkState& l = links[bottleneck[cls]];
    if (l.due.size() > 4 * l.own.size() + 64) {
      std::erase_if(l.due, [&](const Due& entry) { return classes[entry.cls].generation != entry.generation; });
      std::make_heap(l.due.begin(), l.due.end());
    }
    l.due.push_back({c.finishes.front().at - c.offset, cls, ++c.generation});
    std::push_heap(l.due.begin(), l.due.end());
  }

  /// Drop stale entries from the top of a link's agenda; false if nothing is left.
  bool has_due(std::int32_t link) {
    std::vector<Due>& heap = links[link].due;
    while (!heap.empty() && classes[heap.front().cls].generation != heap.front().generation) pop_due(link);
    return !heap.empty();
  }
  void pop_due(std::int32_t link) {
    std::pop_heap(links[link].due.begin(), links[link].due.end());
    links[link].due.pop_back();
  }

  /// Tell the tournament when the next activity ends that has its bottleneck at this link.
  void retime(std::int32_t link) {
    double at_ps = kInfinity;
    if (has_due(link)) {
      const LinkState& l = links[link];
      const double rest = l.due.front().at - l.served;
      if (rest <= 0)
        at_ps = now_ps;               // the counter may have stood still since long
      else if (load[link].level > 0)  // else it stalls
        at_ps = std::max(now_ps, l.since_ps + rest / load[link].level);
    }
    due.set(link, at_ps);
  }

  /// A link that is nobody's bottleneck any more has no level.
  void drop_level(std::int32_t link) {
    if (!links[link].own.empty() || load[link].level == kInfinity) return;
    open(link);
    load[link].level = kInfinity;
  }

 private:
  [[nodiscard]] Own own_row(std::int32_t cls) const {
    const ClassState& c = classes[cls];
    Own own{pull(cls, c.bottleneck_hop), cls, {}};
    own.other.fill(Own::kEnd);
    if (!c.is_narrow) {
      own.other[0] = Own::kElsewhere;
      return own;
    }
    std::size_t count = 0;
    for (std::int32_t hop = 0; hop < c.length; ++hop)
      if (hop != c.bottleneck_hop) own.other[count++] = arena[c.first_hop + hop].link;
    return own;
  }

  void detach(std::int32_t cls) {
    const std::int32_t link = bottleneck[cls];
    if (link == kNone) return;
    LinkState& l = links[link];
    const std::int32_t place = classes[cls].own_at;
    l.own_pull -= l.own[place].pull;
    l.own[place] = l.own.back();
    classes[l.own[place].cls].own_at = place;
    l.own.pop_back();
    if (l.own.empty()) l.own_pull = 0;
    set_bounds(link);
    bottleneck[cls] = kNone;
  }

  /// Nobody crosses the link any more: what rounding has left in its sums goes.
  void retire(std::int32_t link) {
    LinkState& l = links[link];
    load[link].load = 0;
    load[link].level = kInfinity;
    l.all_pull = 0;
    used[l.used_at] = used.back();
    links[used[l.used_at]].used_at = l.used_at;
    used.pop_back();
    l.used_at = kNone;
  }
};

}  // namespace weftwork::flow
