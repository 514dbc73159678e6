/// What always holds in a run: a list of invariants, each with a name and a sentence, and the one way to assert them.
/// An assertion stays on in releases. Where one fails, the run ends with a text that names the invariant; the process
/// goes on. Source: docs/dev/invariants.md says where each is asserted and which planted mistake it notices.
/// Leaves out: what a user can make wrong, which is refused before the run, and limits (base/limit_error.hpp).
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/ids.hpp"

namespace weftwork {

/// The list: ROW(name, sentence).
#define WEFTWORK_INVARIANTS(ROW)                                                                                       \
  ROW(time_never_runs_back, "nothing is set to, or handled at, an instant before what was handled at the same place")  \
  ROW(packet_arrives_at_its_instant, "a packet is handled at the instant of its record, in the window that holds it")  \
  ROW(line_carries_one_frame_at_a_time, "a frame leaves by a port that is up and whose last frame has left")           \
  ROW(frame_fits_its_record, "a frame has 1 to 65,535 bytes, and a packet that is cut gets no longer")                 \
  ROW(reader_stays_behind_the_writer, "who reads a stream of packets never passes the place where the next is put")    \
  ROW(pool_returns_each_block_once, "each block of the pool of packets belongs to one stream, or is free")             \
  ROW(packets_conserved, "packets that came to a node have left it, were dropped or taken, or are held by it")         \
  ROW(queue_holds_what_it_counts, "a queue counts the bytes of the packets that wait in it, and none if it is empty")  \
  ROW(queue_within_its_buffer, "what a switch holds fits its buffer: the shared part, the headroom, or a lane's room") \
  ROW(bytes_conserved_at_a_switch, "what a switch holds for its ingresses is what waits in its queues")                \
  ROW(route_leads_out_of_its_switch, "a packet leaves a switch by a port and a class that this switch has")            \
  ROW(pause_only_where_lossless, "only a class without loss is paused, and none where links give credit")              \
  ROW(pause_is_counted_once, "a switch lists each ingress that it has paused once, and counts those that it lists")    \
  ROW(credits_never_negative, "a link sends no more than it has credit for, and is given back no more than its room")  \
  ROW(receive_buffer_never_overflows, "a host interface holds at most its buffer, and nothing when it is empty")       \
  ROW(packet_numbers_in_order, "of a queue pair, acknowledged <= next <= highest sent <= posted")                      \
  ROW(only_sent_packets_arrive, "a receiver expects, keeps and acknowledges only packets that were sent")              \
  ROW(in_flight_bytes_are_sent_minus_acknowledged, "bytes in flight are those sent, less acknowledged, kept and lost") \
  ROW(packet_sent_within_the_window, "a new packet is posted data, and its window has room or nothing is in flight")   \
  ROW(packet_is_kept_or_lost, "a packet that is not in flight is kept by the receiver or lost, and not both")          \
  ROW(early_packets_within_the_window, "a receiver keeps packets only beyond a gap and within its window")             \
  ROW(message_delivered_once, "a message is posted, then delivered once and whole, then acknowledged once")            \
  ROW(timer_fires_when_it_is_set, "a timer fires when it ends, and not when it is off")                                \
  ROW(slot_has_its_queue_pair, "a slot of a NIC port has a queue pair that sends there, and counts it as ready once")  \
  ROW(stream_step_in_order, "a stream that goes on has an operation left, and none of what it posted ends twice")      \
  ROW(receive_takes_one_message, "a receive that was posted takes one message that was delivered")                     \
  ROW(work_is_counted_once, "open work is the streams that have not ended and the messages without acknowledgement")   \
  ROW(server_link_sends_every_slice, "a link inside a server carries a slice at a time, and each byte once")           \
  ROW(recordings_in_order_of_time, "what is recorded at one place is in the order of time")

enum class Invariant : std::uint8_t {
#define WEFTWORK_ROW(name, sentence) name,
  WEFTWORK_INVARIANTS(WEFTWORK_ROW)
#undef WEFTWORK_ROW
};

struct InvariantRow {
  std::string_view name, sentence;
};

/// By `Invariant`.
inline constexpr auto kInvariants = std::to_array<InvariantRow>({
#define WEFTWORK_ROW(name, sentence) {#name, sentence},
    WEFTWORK_INVARIANTS(WEFTWORK_ROW)
#undef WEFTWORK_ROW
});

/// An invariant does not hold, which is a fault of Weftwork: its name and sentence, and the numbers at fault.
struct BrokenInvariant : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

/// Names of the numbers of an assertion, as many as there are numbers, with a space between two; checked by the
/// compiler.
template <std::size_t count>
struct FactNames {
  const char* text;

  consteval FactNames(const char* names)
      : text(names) {  // NOLINT(google-explicit-constructor,hicpp-explicit-conversions)
    std::size_t words = names[0] == '\0' ? 0 : 1;
    for (const char* letter = names; *letter != '\0'; ++letter)
      if (*letter == ' ') ++words;
    if (words != count) throw std::invalid_argument("an assertion has another number of names than of numbers");
  }
};

template <typename Kind>
constexpr std::int64_t fact(Id<Kind> id) {
  return id.value;
}
template <typename T>
  requires std::integral<T> || std::is_enum_v<T>
constexpr std::int64_t fact(T value) {
  return static_cast<std::int64_t>(value);
}

/// The failing side.
template <std::same_as<std::int64_t>... Facts>
[[noreturn, gnu::cold, gnu::noinline]] void broken(Invariant invariant, const char* names, Facts... facts) {
  const InvariantRow& row = kInvariants[static_cast<std::size_t>(invariant)];
  std::string text(row.name);
  text += ": ";
  text += row.sentence;
  const char* separator = "; ";
  [[maybe_unused]] const auto add = [&](std::int64_t value) {
    text += separator;
    separator = ", ";
    for (; *names != '\0' && *names != ' '; ++names) text += *names;
    if (*names == ' ') ++names;
    text += ' ' + std::to_string(value);
  };
  (add(facts), ...);
  throw BrokenInvariant(text);
}

}  // namespace detail

/// A condition as a value, so that a checker takes it as it is written.
[[gnu::always_inline]] constexpr bool holds(bool condition) {
  return condition;
}

/// An invariant does not hold: the run ends with its text. `names` are those of the numbers that tell where and how.
template <typename... Facts>
[[noreturn, gnu::cold, gnu::noinline]] void break_off(Invariant invariant,
                                                      std::type_identity_t<detail::FactNames<sizeof...(Facts)>> names,
                                                      Facts... facts) {
  detail::broken(invariant, names.text, detail::fact(facts)...);
}

}  // namespace weftwork

/// Assert an invariant: must_hold(condition, Invariant::name, "names of numbers", numbers...). A macro, so that the
/// numbers are read where the assertion fails and nowhere else: a function would read them before it asks.
#define must_hold(condition, ...)                   \
  do {                                              \
    if (!::weftwork::holds(condition)) [[unlikely]] \
      ::weftwork::break_off(__VA_ARGS__);           \
  } while (false)
