/// Detours by an intermediate switch: Valiant's routing, where each packet draws its own intermediate, or each queue
/// pair keeps one. Every packet's share is alike, so that a flow spreads evenly over all intermediates. Between groups
/// a detour ends at the first switch of the intermediate's group.
///
/// Source: Valiant, SIAM Journal on Computing 11(2), 1982, doi:10.1137/0211027; docs/models/flow-engine-paths.md,
/// "Detours". Who may be an intermediate: paths/detours.hpp.
/// Leaves out: intermediates that no path reaches, which packets would still draw.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/limit_error.hpp"
#include "flow/bundles.hpp"
#include "flow/fabric_view.hpp"
#include "flow/ids.hpp"
#include "flow/rule.hpp"
#include "flow/search.hpp"
#include "flow/spreading.hpp"
#include "flow/tiers.hpp"
#include "rows/flow_outcome.hpp"

namespace weftwork::flow {

/// What a flow crosses between two switches, by its detours.
struct DetourPath {
  bool is_detour = false, is_reachable = false;
  std::vector<Hop> hops;                // links crossed first, then second, and so on
  std::vector<std::size_t> stage_ends;  // where the links of each number end
  std::int64_t latency_ps = 0;          // of the longest path
  std::int32_t links = 0;
};

/// Detours of all pairs of switches, found on request and kept. Not thread-safe.
class DetourPaths {
 public:
  static constexpr std::size_t kMostKept = 1 << 25;       // chosen: hops that are kept, 512 MiB
  static constexpr std::int64_t kMostTold = 250'000'000;  // chosen: hops of all flows, 4 GB where each is kept

  explicit DetourPaths(const DetourRule& rule) : rule_(rule) {}

  [[nodiscard]] const DetourRule& rule() const { return rule_; }

  /// Forget everything: links have changed.
  void reset(const FabricView& fabric, const Bundles& bundles) {
    kept_.clear();
    kept_hops_ = 0;
    legs_source_ = NodeId::none();
    now_.reset(bundles.colours());
    next_.reset(bundles.colours());
    sum_.assign(fabric.port_node.size(), 0.0);
  }

  /// `by_stage`: else all hops are one stage, each link once. The result holds until the next call. Throws LimitError
  /// where the flows of a run cross too many links.
  const DetourPath& between(const FabricView& fabric, const Tiers& tiers, const Bundles& bundles, Search& search,
                            NodeId from, NodeId to, bool by_stage) {
    const std::uint64_t key =
        (std::uint64_t{static_cast<std::uint32_t>(from.value)} << 32U | static_cast<std::uint32_t>(to.value)) * 2 +
        (by_stage ? 1 : 0);
    if (kept_hops_ > kMostKept) {
      kept_.clear();
      kept_hops_ = 0;
    }
    const auto [at, is_new] = kept_.try_emplace(key);
    if (is_new) {
      find(fabric, tiers, bundles, search, from, to, by_stage, at->second);
      kept_hops_ += at->second.hops.size();
    }
    told_ += static_cast<std::int64_t>(at->second.hops.size());
    if (told_ > kMostTold)
      throw LimitError("flows that detour by every other switch cross more than " +
                       std::to_string(kMostTold / 1'000'000) +
                       " million links in all; take fabric.routing: minimal, fewer flows or a smaller fabric");
    return at->second;
  }

 private:
  /// What leaves a switch for the intermediates of one group, one unit for each: by number of links crossed.
  struct Leg {
    std::int64_t intermediates = 0;
    std::vector<std::vector<Hop>> crossed;    // by the links before: links and units
    std::vector<std::vector<Spread>> turned;  // by the links before: where detours end
  };

  [[nodiscard]] std::size_t group_of(AttachmentId attachment) const {
    return static_cast<std::size_t>(rule_.among.group[attachment.index()]);
  }

  /// The legs from a switch, group by group.
  void find_legs(const FabricView& fabric, const Tiers& tiers, const Bundles& bundles, Search& search, NodeId from) {
    if (legs_source_ == from) return;
    legs_source_ = from;
    const std::size_t groups = rule_.among.base.size() - 1, own = group_of(tiers.attachment(from));
    legs_.assign(groups, {});
    for (std::size_t group = 0; group < groups; ++group) {
      if (group == own) continue;
      Leg& leg = legs_[group];
      for (std::int64_t at = rule_.among.base[group]; at < rule_.among.base[group + 1]; ++at) {
        const AttachmentId via(rule_.among.order[static_cast<std::size_t>(at)]);
        leg.intermediates += add_leg(fabric, tiers, bundles, search, from, tiers.node_of(via), leg) ? 1 : 0;
      }
      for (std::vector<Hop>& hops : leg.crossed) merge(hops);
    }
  }

  /// One unit to an intermediate; false where no path leads there.
  bool add_leg(const FabricView& fabric, const Tiers& tiers, const Bundles& bundles, Search& search, NodeId from,
               NodeId via, Leg& leg) {
    const Towards towards(fabric, tiers, bundles, search, via, closer_);
    now_.clear();
    now_.add({bundles.colour(tiers.switch_of(from)), from, 1.0, 0});
    for (std::size_t level = 0; !now_.empty(); ++level) {
      if (leg.crossed.size() <= level) leg.crossed.emplace_back();
      if (leg.turned.size() <= level + 1) leg.turned.resize(level + 2);
      next_.clear();
      for (const Spread& spread : now_) {
        const bool goes_on = towards.pass(spread, next_, [&](const Bundle& bundle, double weight) {
          leg.crossed[level].push_back({link_of(bundle.port), weight});
        });
        if (!goes_on) return false;  // only at the first switch: no part of the way is known then
      }
      now_.clear();
      for (const Spread& spread : next_) {
        if (rule_.turns(spread.node, via))
          leg.turned[level + 1].push_back(spread);
        else
          now_.add(spread);
      }
    }
    return true;
  }

  /// Equal links once.
  void merge(std::vector<Hop>& hops) {
    touched_.clear();
    for (const Hop& hop : hops) {
      double& sum = sum_[PortId(hop.link.value)];
      if (sum == 0.0) touched_.push_back(hop.link);
      sum += hop.weight;
    }
    hops.clear();
    for (const LinkId link : touched_) hops.push_back({link, std::exchange(sum_[PortId(link.value)], 0.0)});
  }

  void find(const FabricView& fabric, const Tiers& tiers, const Bundles& bundles, Search& search, NodeId from,
            NodeId to, bool by_stage, DetourPath& found) {
    const std::size_t first = group_of(tiers.attachment(from)), last = group_of(tiers.attachment(to));
    if (first == last) return;
    find_legs(fabric, tiers, bundles, search, from);
    std::int64_t intermediates = 0;
    std::size_t levels = 0;
    for (std::size_t group = 0; group < legs_.size(); ++group) {
      if (group == first || (rule_.among.by_group && group == last)) continue;
      intermediates += legs_[group].intermediates;
      levels = std::max(levels, legs_[group].turned.size());
    }
    if (intermediates == 0) return;
    found.is_detour = true;
    const double share = 1.0 / static_cast<double>(intermediates);
    const Towards towards(fabric, tiers, bundles, search, to, closer_);
    std::vector<Hop> hops;
    now_.clear();
    for (std::size_t level = 0;; ++level) {
      hops.clear();
      for (std::size_t group = 0; group < legs_.size(); ++group) {
        if (group == first || (rule_.among.by_group && group == last)) continue;
        const Leg& leg = legs_[group];
        if (level < leg.turned.size())
          for (const Spread& spread : leg.turned[level])
            now_.add({spread.colour, spread.node, spread.fraction * share, spread.latency_ps});
        if (level < leg.crossed.size())
          for (const Hop& hop : leg.crossed[level]) hops.push_back({hop.link, hop.weight * share});
      }
      next_.clear();
      for (const Spread& spread : now_) {
        if (spread.node == to) {
          found.latency_ps = std::max(found.latency_ps, spread.latency_ps);
          continue;
        }
        const bool goes_on = towards.pass(spread, next_, [&](const Bundle& bundle, double weight) {
          hops.push_back({link_of(bundle.port), weight});
        });
        if (!goes_on) return;
      }
      now_.swap(next_);
      if (hops.empty() && level >= levels) break;
      if (hops.empty()) continue;
      merge(hops);
      found.hops.insert(found.hops.end(), hops.begin(), hops.end());
      found.stage_ends.push_back(found.hops.size());
      found.links = static_cast<std::int32_t>(level) + 1;
    }
    found.is_reachable = true;
    if (by_stage) return;
    merge(found.hops);
    found.stage_ends.assign(1, found.hops.size());
  }

  DetourRule rule_;
  std::unordered_map<std::uint64_t, DetourPath> kept_;
  std::size_t kept_hops_ = 0;
  std::int64_t told_ = 0;
  NodeId legs_source_;
  std::vector<Leg> legs_;  // by group, from `legs_source_`
  SpreadLevel now_, next_;
  std::vector<Bundle> closer_;
  IdVector<PortId, double> sum_;  // 0 between calls
  std::vector<LinkId> touched_;
};

}  // namespace weftwork::flow
