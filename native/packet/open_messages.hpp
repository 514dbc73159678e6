/// Incomplete messages of a queue pair at a receiver that delivers out of order: missing packets of each. Source:
/// docs/models/packet-engine.md, "Order".
/// Leaves out: which RECEIVE a delivered message completes (job).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/containers.hpp"
#include "packet/ids.hpp"

namespace weftwork {

/// Invariant: holds the messages from the first one that is not whole to the last one that was added, in their order.
class OpenMessages {
 public:
  /// The first packet number behind all messages.
  [[nodiscard]] std::int64_t end() const { return end_; }

  /// The next message has the packets up to `end`.
  void add(MessageId id, std::int64_t end) {
    must_hold(end > end_, Invariant::message_delivered_once, "message end before", id, end, end_);
    open_.push({id, end, end - end_});
    must_hold(open_.front().missing > 0, Invariant::message_delivered_once, "message end whole", id, end, whole_);
    end_ = end;
  }

  /// Packet `seq` of one of the messages has arrived for the first time. Returns its message if that is whole now.
  MessageId arrive(std::int64_t seq) {
    const auto first = open_.items.begin() + static_cast<std::ptrdiff_t>(open_.head);
    const auto found = std::upper_bound(first, open_.items.end(), seq,
                                        [](std::int64_t number, const Open& each) { return number < each.end; });
    must_hold(found != open_.items.end() && found->missing > 0, Invariant::message_delivered_once, "seq end whole", seq,
              end_, whole_);
    found->missing -= 1;
    if (found->missing > 0) return MessageId::none();
    const MessageId id = found->id;
    while (!open_.empty() && open_.front().missing == 0) {
      open_.pop();
      whole_ += 1;
    }
    return id;
  }

  /// Whether the message of this ordinal is whole.
  [[nodiscard]] bool is_whole(std::int64_t ordinal) const {
    if (ordinal < whole_) return true;
    const auto place = static_cast<std::size_t>(ordinal - whole_);
    return place < open_.size() && open_.items[open_.head + place].missing == 0;
  }

 private:
  struct Open {
    MessageId id;
    std::int64_t end;  // packet number
    std::int64_t missing;
  };
  Fifo<Open> open_;
  std::int64_t whole_ = 0;  // messages before these
  std::int64_t end_ = 0;
};

}  // namespace weftwork
