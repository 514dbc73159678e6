/// What is known of records and inputs that cross between Python and the core, filled by rows/descriptions.hpp and
/// rows/members.hpp. Leaves out: how arrays are made of them, which the bindings do.
#pragma once
#include <cstddef>
#include <type_traits>

#include "base/ids.hpp"

namespace weftwork::python {

/// One field of a record; `count` elements of `kind` (NumPy's letter: b, i, u, f) and `bytes` each.
struct Field {
  const char* name;
  std::size_t offset;
  char kind;
  std::size_t bytes, count;
};

/// A field that NumPy has at `kExpected` bytes from the begin of its row.
template <typename T, std::size_t kOffset, std::size_t kExpected>
constexpr Field field(const char* name) {
  using Item = std::remove_extent_t<T>;
  static_assert(std::is_arithmetic_v<Item> || kIsId<Item>,
                "a field that crosses is a number, an id or an array of them");
  static_assert(kOffset == kExpected, "NumPy lays the record out in another way");
  constexpr bool kIsSigned = std::is_signed_v<Item> || kIsId<Item>;
  const char kind = std::is_floating_point_v<Item> ? 'f' : std::is_same_v<Item, bool> ? 'b' : kIsSigned ? 'i' : 'u';
  return {name, kOffset, kind, sizeof(Item), sizeof(T) / sizeof(Item)};
}

/// What is known of a record. A record without a specialisation does not cross.
template <typename Record>
struct Description;

template <typename T>
concept Described = requires { Description<T>::kFields; };

/// What is known of an input, which crosses as a dictionary, member by member.
template <typename Input>
struct Members;

template <typename T>
concept ByName = requires { Members<T>::kInput; };

#define WEFTWORK_FIELD(Record, name, expected) field<decltype(Record::name), offsetof(Record, name), expected>(#name)

}  // namespace weftwork::python
