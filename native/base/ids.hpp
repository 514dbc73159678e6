/// Typed ids: the place of a thing among its kind, and arrays and sets that take no other kind's. A wrong index does
/// not compile. An id is laid out as an int32, so that a column of int32 from Python may be borrowed as ids.
#pragma once
#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
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
  friend constexpr Id operator-(Id id, std::int32_t steps) { return Id(id.value - steps); }
  friend constexpr std::int32_t operator-(Id a, Id b) { return a.value - b.value; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

template <typename T>
inline constexpr bool kIsId = false;
template <typename Kind>
inline constexpr bool kIsId<Id<Kind>> = true;

using NodeId = Id<struct NodeKind>;              // a switch or a server
using PortId = Id<struct PortKind>;              // of the fabric, by node
using SwitchId = Id<struct SwitchKind>;          // of the switches alone, by node
using DeviceId = Id<struct DeviceKind>;          // settings that switches, or NICs, share
using AttachmentId = Id<struct AttachmentKind>;  // of the nodes at which hosts hang, by node
using RankId = Id<struct RankKind>;              // of the job
using ProgramId = Id<struct ProgramKind>;        // that ranks run
using StreamId = Id<struct StreamKind>;          // one program that runs on a rank
using OpId = Id<struct OpKind>;                  // an operation of a program
using MessageId = Id<struct MessageKind>;        // in the order of posting
using QueuePairId = Id<struct QueuePairKind>;    // in the order of opening
using LaneId = Id<struct LaneKind>;              // messages of one (source, destination, channel)

static_assert(sizeof(PortId) == sizeof(std::int32_t) && std::is_trivially_copyable_v<PortId> &&
              std::is_standard_layout_v<PortId>);

/// The ids from `first` up to, not including, `end`.
template <typename I>
class IdRange {
 public:
  class Iterator {
   public:
    using value_type = I;
    using difference_type = std::ptrdiff_t;

    constexpr Iterator() = default;
    constexpr explicit Iterator(I id) : id_(id) {}
    constexpr I operator*() const { return id_; }
    constexpr Iterator& operator++() {
      ++id_;
      return *this;
    }
    constexpr Iterator operator++(int) {
      const Iterator before = *this;
      ++id_;
      return before;
    }
    friend constexpr bool operator==(Iterator, Iterator) = default;

   private:
    I id_;
  };

  constexpr IdRange(I first, I end) : first_(first), end_(end < first ? first : end) {}

  [[nodiscard]] constexpr Iterator begin() const { return Iterator(first_); }
  [[nodiscard]] constexpr Iterator end() const { return Iterator(end_); }
  [[nodiscard]] constexpr std::size_t size() const { return static_cast<std::size_t>(end_ - first_); }

 private:
  I first_, end_;
};

template <typename I>
constexpr IdRange<I> id_range(I first, I end) {
  return {first, end};
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
  [[nodiscard]] constexpr IdRange<I> ids() const { return {I(0), I(items_.size())}; }
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
  [[nodiscard]] IdRange<I> ids() const { return {I(0), next_id()}; }
  [[nodiscard]] I id_of(const T& item) const { return I(&item - items_.data()); }
  /// The id that the next element gets.
  [[nodiscard]] I next_id() const { return I(items_.size()); }
  void reserve(std::size_t count) { items_.reserve(count); }
  void resize(std::size_t count) { items_.resize(count); }
  void resize(std::size_t count, const T& item) { items_.resize(count, item); }
  void assign(std::size_t count, const T& item) { items_.assign(count, item); }
  void assign(std::span<const T> items) { items_.assign(items.begin(), items.end()); }
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

/// Place of the lowest one of `bits`, which are word `word` of a bitmap.
constexpr std::size_t lowest_place(std::size_t word, std::uint64_t bits) {
  return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
}

/// A set of ids: one bit each.
template <typename I>
class IdBitmap {
 public:
  void resize(std::size_t count) { words_.resize((count + 63) / 64, 0); }
  void set(I id) { words_[id.index() / 64] |= bit(id); }
  void clear(I id) { words_[id.index() / 64] &= ~bit(id); }

  /// Call `visit(id)` for each id of the set, ascending, until it returns true; whether it has.
  template <typename Visit>
  bool any(Visit&& visit) const {
    for (std::size_t word = 0; word < words_.size(); ++word)
      if (visit_word(word, words_[word], visit)) return true;
    return false;
  }

  /// The same from `turn` on, then from the first id up to it. The caller may take out the id that it is at.
  template <typename Visit>
  bool any_from(I turn, Visit&& visit) const {
    const std::size_t words = words_.size();
    if (words == 0) return false;
    const std::size_t first = turn.index() / 64;
    const std::uint64_t before = bit(turn) - 1;  // ids of the first word that come last
    for (std::size_t step = 0; step <= words; ++step) {
      const std::size_t word = first + step < words ? first + step : first + step - words;
      std::uint64_t bits = words_[word];
      if (step == 0) bits &= ~before;
      if (step == words) bits &= before;
      if (visit_word(word, bits, visit)) return true;
    }
    return false;
  }

 private:
  static std::uint64_t bit(I id) { return std::uint64_t{1} << (id.index() % 64); }

  template <typename Visit>
  static bool visit_word(std::size_t word, std::uint64_t bits, Visit& visit) {
    for (; bits != 0; bits &= bits - 1)
      if (visit(I(lowest_place(word, bits)))) return true;
    return false;
  }

  std::vector<std::uint64_t> words_;
};

namespace detail {

template <typename Array, typename Index>
concept IndexedBy = requires(Array& array, Index index) { array[index]; };

}  // namespace detail

// A wrong index does not compile: neither the id of another kind nor a bare number.
static_assert(detail::IndexedBy<IdVector<PortId, int>, PortId>);
static_assert(!detail::IndexedBy<IdVector<PortId, int>, NodeId>);
static_assert(!detail::IndexedBy<IdVector<PortId, int>, std::size_t>);
static_assert(!detail::IndexedBy<IdVector<PortId, int>, std::int32_t>);
static_assert(detail::IndexedBy<IdSpan<NodeId, const int>, NodeId>);
static_assert(!detail::IndexedBy<IdSpan<NodeId, const int>, PortId>);
static_assert(!detail::IndexedBy<IdSpan<NodeId, const int>, std::int32_t>);
static_assert(!std::convertible_to<PortId, NodeId> && !std::convertible_to<PortId, std::int32_t> &&
              !std::convertible_to<std::int32_t, PortId> && !std::constructible_from<NodeId, PortId>);
static_assert(!std::equality_comparable_with<PortId, NodeId>);

}  // namespace weftwork

template <typename Kind>
struct std::hash<weftwork::Id<Kind>> {
  std::size_t operator()(weftwork::Id<Kind> id) const noexcept { return id.index(); }
};
