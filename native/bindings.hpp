/// Common parts of the Python face. Only bindings*.cpp include nanobind.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/crossing.hpp"
#include "base/ids.hpp"
#include "base/record_bytes.hpp"
#include "bindings_records.hpp"

namespace nb = nanobind;

namespace weftwork::python {

/// A column, borrowed, and its length; a TypeError where the array has another type or is not contiguous.
std::pair<const void*, std::size_t> column(nb::handle plan, const char* name, nb::dlpack::dtype type);

/// The same of numbers of one type.
template <typename T>
  requires std::is_arithmetic_v<T>
std::span<const T> rows(nb::handle plan, const char* name) {
  const auto [data, count] = column(plan, name, nb::dtype<T>());
  return {static_cast<const T*>(data), count};
}

/// A column of int32, borrowed as ids.
template <typename I>
  requires kIsId<I>
std::span<const I> rows(nb::handle plan, const char* name) {
  const std::span<const std::int32_t> places = rows<std::int32_t>(plan, name);
  return {reinterpret_cast<const I*>(places.data()), places.size()};
}

/// Rows of a structured array, borrowed as bytes; the Python side views them as bytes of the described dtype.
template <Crossing T>
std::span<const T> rows(nb::handle plan, const char* name) {
  const std::span<const std::uint8_t> bytes = rows<std::uint8_t>(plan, name);
  if (bytes.size() % sizeof(T) != 0) throw nb::value_error("an array has rows of another size than the engine's");
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <typename T>
[[gnu::noinline]] T number(nb::handle row, const char* name) {
  return nb::cast<T>(row[name]);
}

/// A member of an input: a number, an id or a code.
template <typename T>
void read(T& value, nb::handle input, const char* name) {
  if constexpr (kIsId<T> || std::is_enum_v<T>)
    value = static_cast<T>(number<std::int32_t>(input, name));
  else
    value = number<T>(input, name);
}

/// A member of an input: a column, borrowed.
template <typename T>
void read(std::span<const T>& elements, nb::handle input, const char* name) {
  elements = rows<T>(input, name);
}
template <typename I, typename T>
void read(IdSpan<I, const T>& elements, nb::handle input, const char* name) {
  elements = IdSpan<I, const T>(rows<T>(input, name));
}

/// A member of an input: the bytes of a record, borrowed; a ValueError where the core would read beyond them.
template <typename Begins>
void read(RecordBytes<Begins>& bytes, nb::handle input, const char* name) {
  bytes = {rows<std::uint8_t>(input, name)};
  if (!bytes.fits(bytes.size()))
    throw nb::value_error((std::string("'") + name + "' is shorter than what the engine reads of it").c_str());
}

/// Members out of a dictionary, by the names of their declaration.
template <ByName T>
void fill(T& input, nb::handle from) {
  Members<T>::each(input, [&](const char* name, auto& member) { read(member, from, name); });
}

/// An input out of a dictionary.
template <ByName T>
T named(nb::handle from) {
  T input{};
  fill(input, from);
  return input;
}

using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

/// So many bytes, all 0, which belong to the array.
Bytes new_bytes(std::size_t count);

/// The bytes of rows, which the array takes over.
template <Crossing T>
Bytes taken(std::vector<T>&& rows) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  auto owner = std::make_unique<std::vector<T>>(std::move(rows));
  auto* const data = reinterpret_cast<std::uint8_t*>(owner->data());
  const std::size_t count = owner->size() * sizeof(T);
  nb::capsule capsule(owner.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return {data, {count}, capsule};
}

/// A new one-dimensional byte array of `count` rows of `T`, filled by `fill(row, index)`.
template <typename T, typename Fill>
  requires Crossing<T> || std::is_same_v<T, double>
Bytes table(std::size_t count, Fill&& fill) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  Bytes bytes = new_bytes(count * sizeof(T));
  T* const first = reinterpret_cast<T*>(bytes.data());
  for (std::size_t i = 0; i < count; ++i) fill(first[i], i);
  return bytes;
}

/// The whole flow engine (bindings_flow_engine.cpp).
void bind_flow_engine(nb::module_& module);

}  // namespace weftwork::python
