/// Common parts of the Python face. Only bindings*.cpp include nanobind.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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

/// Lets `elements` show the array of that name, by id.
template <typename I, typename T>
void borrow(IdSpan<I, const T>& elements, nb::handle arrays, const char* name) {
  elements = IdSpan<I, const T>(rows<T>(arrays, name));
}

template <typename T>
[[gnu::noinline]] T number(nb::handle row, const char* name) {
  return nb::cast<T>(row[name]);
}

/// A record of whole numbers out of a dictionary, field by field, by the names of its description.
template <Crossing T>
T named(nb::handle fields) {
  T record{};
  auto* bytes = reinterpret_cast<std::uint8_t*>(&record);
  for (const Field& each : Description<T>::kFields) {
    const auto value = number<std::int64_t>(fields, each.name);
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(bytes + each.offset, &value, sizeof(value));
  }
  return record;
}

using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

/// So many bytes, all 0, which belong to the array.
Bytes new_bytes(std::size_t count);

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
