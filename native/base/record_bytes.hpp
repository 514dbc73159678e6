/// Bytes of a record whose fields its owner declares, such as the state of a policy: eight bytes a number.
/// `Begins` is the record of whose fields it has the first ones, or void where the core reads none of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace weftwork {

template <typename Begins = void>
struct RecordBytes : std::span<const std::uint8_t> {
  /// Whether so many bytes are such a record. None are no record, which not every policy has.
  static constexpr bool fits(std::size_t bytes) {
    if constexpr (std::is_void_v<Begins>)
      return bytes % sizeof(std::int64_t) == 0;
    else
      return bytes % sizeof(std::int64_t) == 0 && (bytes == 0 || bytes >= sizeof(Begins));
  }
};

}  // namespace weftwork
