/// A table of next hops, read by id: to which group of ports a node sends what goes to an attachment.
#pragma once
#include "base/wiring.hpp"
#include "packet/ids.hpp"

namespace weftwork {

/// Members of a group that are up: places in `State::way_ports` and `State::candidates`.
struct Ways {
  CandidateId first;
  std::int32_t count = 0;
};

class Routes {
 public:
  static constexpr GroupId kUnreachable{-1};
  static constexpr GroupId kAttached{-2};  // the destination hangs on this very node

  Routes(const RouteTable& table, std::size_t nodes)
      : groups_(table.group_of),
        seconds_(table.second_of),
        distances_(table.distance),
        attachments_(table.group_of.size() / nodes),
        first_(table.group_ptr),
        ports_({reinterpret_cast<const PortId*>(table.group_ports.data()), table.group_ports.size()}),
        weights_(table.group_weights) {}

  [[nodiscard]] GroupId group(NodeId node, AttachmentId attachment) const {
    return GroupId(groups_[place(node, attachment)]);
  }
  /// The group of ports that are on no shortest path; unreachable where there are none, or nobody asks.
  [[nodiscard]] GroupId second(NodeId node, AttachmentId attachment) const {
    return seconds_.empty() ? kUnreachable : GroupId(seconds_[place(node, attachment)]);
  }
  /// Hops over switches; only where somebody asks.
  [[nodiscard]] std::int64_t distance(NodeId node, AttachmentId attachment) const {
    return distances_[place(node, attachment)];
  }
  [[nodiscard]] std::size_t attachments() const { return attachments_; }
  [[nodiscard]] std::size_t groups() const { return first_.size() - 1; }
  [[nodiscard]] CandidateId first(GroupId group) const { return CandidateId(first_[group]); }
  [[nodiscard]] IdRange<CandidateId> candidates() const { return ports_.ids(); }
  [[nodiscard]] PortId port(CandidateId candidate) const { return ports_[candidate]; }
  [[nodiscard]] std::int32_t weight(CandidateId candidate) const { return weights_[candidate]; }

 private:
  [[nodiscard]] std::size_t place(NodeId node, AttachmentId attachment) const {
    return node.index() * attachments_ + attachment.index();
  }

  std::span<const std::int32_t> groups_, seconds_;  // by node, then attachment
  std::span<const std::int16_t> distances_;         // the same
  std::size_t attachments_;
  IdSpan<GroupId, const std::int64_t> first_;  // candidate of each group; one more at the end
  IdSpan<CandidateId, const PortId> ports_;
  IdSpan<CandidateId, const std::int32_t> weights_;
};

}  // namespace weftwork
