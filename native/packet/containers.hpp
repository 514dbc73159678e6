/// Containers of the state: elements that never move, and a queue that grows.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "base/ids.hpp"

namespace weftwork {

/// Elements by id that never move, so that a reference survives growth.
template <typename I, typename T>
class StableVector {
 public:
  T& operator[](I id) { return blocks_[id.index() >> kShift][id.index() & kMask]; }
  const T& operator[](I id) const { return blocks_[id.index() >> kShift][id.index() & kMask]; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] IdRange<I> ids() const { return {I(0), next_id()}; }
  /// The id that the next element gets.
  [[nodiscard]] I next_id() const { return I(size_); }
  T& emplace() {
    if ((size_ & kMask) == 0 && (size_ >> kShift) == blocks_.size())
      blocks_.push_back(std::make_unique<T[]>(kMask + 1));
    const I id = next_id();
    size_ += 1;
    return (*this)[id];
  }

 private:
  static constexpr std::size_t kShift = 8;
  static constexpr std::size_t kMask = (1U << kShift) - 1;
  std::vector<std::unique_ptr<T[]>> blocks_;
  std::size_t size_ = 0;
};

/// First in, first out, without a fixed size.
template <typename T>
struct Fifo {
  std::vector<T> items;
  std::size_t head = 0;

  [[nodiscard]] bool empty() const { return head == items.size(); }
  [[nodiscard]] std::size_t size() const { return items.size() - head; }
  T& front() { return items[head]; }
  void push(const T& item) { items.push_back(item); }
  void pop() {
    if (++head == items.size()) {
      clear();
    } else if (head >= 64 && 2 * head >= items.size()) {
      items.erase(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(head));
      head = 0;
    }
  }
  void clear() {
    items.clear();
    head = 0;
  }
};

}  // namespace weftwork
