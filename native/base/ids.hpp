/// Typed ids: the place of a thing among its kind, and arrays that take no other kind's. A wrong index does not
/// compile. An id is laid out as an int32, so that a column of int32 from Python may be borrowed as ids.
#pragma once
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace weftwork {

/// Place of a thing of one kind. `none()` is -1.
template <typename Kind>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;
  template <std::integral Whole>
  constexpr explicit Id(Whole place) : value(static_cast<std::int32_t>(place)) {}

  [[nodiscard]] static constexpr Id none() { return Id(); }
  [[nodiscard]] constexpr bool is_none() const { return value < 0; }
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  constexpr Id& operator++() {
    ++value;
    return *this;
  }
  friend constexpr Id operator+(Id id, std::int32_t steps) { return Id(id.value + steps); }
  friend constexpr std::int32_t operator-(Id a, Id b) { return a.value - b.value; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using NodeId = Id<struct NodeKind>;            // a switch or a server
using PortId = Id<struct PortKind>;            // of the fabric, by node
using RankId = Id<struct RankKind>;            // of the job
using StreamId = Id<struct StreamKind>;        // one program that runs on a rank
using MessageId = Id<struct MessageKind>;      // in the order of posting
using QueuePairId = Id<struct QueuePairKind>;  // in the order of opening
using LaneId = Id<struct LaneKind>;            // messages of one (source, destination, channel)

static_assert(sizeof(PortId) == sizeof(std::int32_t) && std::is_trivially_copyable_v<PortId> &&
              std::is_standard_layout_v<PortId>);

/// The ids from `first` up to, not including, `end`.
template <typename I>
auto id_range(I first, I end) {
  return std::views::iota(first.value, end.value) | std::views::transform([](std::int32_t place) { return I(place); });
}

/// Elements that are borrowed, by id.
template <typename I, typename T>
class IdSpan {
 public:
  constexpr IdSpan() = default;
  constexpr explicit IdSpan(std::span<T> items) : items_(items) {}

  [[nodiscard]] constexpr T& operator[](I id) const { return items_[id.index()]; }
  [[nodiscard]] constexpr std::size_t size() const { return items_.size(); }
  [[nodiscard]] constexpr bool empty() const { return items_.empty(); }
  [[nodiscard]] constexpr auto begin() const { return items_.begin(); }
  [[nodiscard]] constexpr auto end() const { return items_.end(); }
  [[nodiscard]] auto ids() const { return id_range(I(0), I(items_.size())); }
  [[nodiscard]] constexpr std::span<T> items() const { return items_; }

 private:
  std::span<T> items_;
};

/// Elements that are owned, by id.
template <typename I, typename T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t count, const T& item = T()) : items_(count, item) {}

  [[nodiscard]] decltype(auto) operator[](I id) { return items_[id.index()]; }
  [[nodiscard]] decltype(auto) operator[](I id) const { return items_[id.index()]; }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] auto begin() { return items_.begin(); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() { return items_.end(); }
  [[nodiscard]] auto end() const { return items_.end(); }
  [[nodiscard]] decltype(auto) back() { return items_.back(); }
  [[nodiscard]] auto ids() const { return id_range(I(0), next_id()); }
  /// The id that the next element gets.
  [[nodiscard]] I next_id() const { return I(items_.size()); }
  void reserve(std::size_t count) { items_.reserve(count); }
  void resize(std::size_t count) { items_.resize(count); }
  void resize(std::size_t count, const T& item) { items_.resize(count, item); }
  void assign(std::size_t count, const T& item) { items_.assign(count, item); }
  void push_back(T item) { items_.push_back(std::move(item)); }
  template <typename... Arguments>
  decltype(auto) emplace_back(Arguments&&... arguments) {
    return items_.emplace_back(std::forward<Arguments>(arguments)...);
  }
  [[nodiscard]] std::vector<T>& items() { return items_; }
  [[nodiscard]] const std::vector<T>& items() const { return items_; }

 private:
  std::vector<T> items_;
};

}  // namespace weftwork

template <typename Kind>
struct std::hash<weftwork::Id<Kind>> {
  std::size_t operator()(weftwork::Id<Kind> id) const noexcept { return id.index(); }
};
