/// What routing says beside next hops: the virtual channel behind a port, and the intermediate switches of detours.
/// Source: docs/models/packet-engine.md, "Route". Leaves out: who asks for them (packet/port_selection.hpp,
/// flow/detours.hpp).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weftwork {

/// The next virtual channel by kind of the link that a packet has come by and of that by which it leaves.
struct ChannelRule {
  std::span<const std::int8_t> next;  // by turn (0: the way goes on, 1: a new part begins), kind in, channel, kind out
  std::int64_t kinds = 0;             // of links between switches; of kinds in the first is that of hosts

  [[nodiscard]] std::int64_t channel(std::int64_t turn, std::int64_t in, std::int64_t held, std::int64_t out,
                                     std::int64_t channels) const {
    return next[static_cast<std::size_t>(((turn * (kinds + 1) + in + 1) * channels + held) * kinds + out)];
  }
};

/// Attachments that a detour may go by, group by group.
struct Detours {
  std::span<const std::int32_t> order;  // attachments, those of a group one after the other
  std::span<const std::int64_t> base;   // where each group begins; one more at the end
  std::span<const std::int32_t> group;  // by attachment
  std::span<const std::int32_t> node;   // by attachment
  bool by_group = false;                // detours avoid the group of the destination too

  /// The attachment number `draw` of those that a detour may go by; -1: there is no detour, since the ends are in one
  /// group, no attachment is left, or the destination's own is drawn.
  [[nodiscard]] std::int64_t pick(std::int64_t from, std::int64_t to, std::int64_t draw) const {
    const auto first = static_cast<std::size_t>(group[static_cast<std::size_t>(from)]);
    const auto last = static_cast<std::size_t>(group[static_cast<std::size_t>(to)]);
    if (first == last) return -1;
    const std::size_t low = by_group ? std::min(first, last) : first;
    const std::int64_t skipped = base[low + 1] - base[low];
    const std::size_t high = std::max(first, last);
    const std::int64_t skipped_too = by_group ? base[high + 1] - base[high] : 0;
    const std::int64_t left = static_cast<std::int64_t>(order.size()) - skipped - skipped_too;
    if (left <= 0) return -1;
    std::int64_t place = draw % left;
    if (place >= base[low]) place += skipped;
    if (by_group && place >= base[high]) place += skipped_too;
    const std::int32_t drawn = order[static_cast<std::size_t>(place)];
    return drawn == to ? -1 : drawn;
  }
};

}  // namespace weftwork
