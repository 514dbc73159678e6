/// Common parts of the Python face. Only bindings*.cpp include nanobind.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "bindings_records.hpp"

namespace nb = nanobind;

namespace weftwork::python {

/// A column of numbers, borrowed; a TypeError where the array has another type or is not contiguous.
template <typename T>
  requires std::is_arithmetic_v<T>
std::span<const T> rows(nb::handle plan, const char* name) {
  using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  Column array;
  if (!nb::try_cast<Column>(plan[name], array, false))
    throw nb::type_error((std::string("'") + name + "' has another type or shape than the engine's").c_str());
  return {array.data(), array.shape(0)};
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
  const auto array = nb::cast<nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(plan[name]);
  if (array.shape(0) % sizeof(T) != 0) throw nb::value_error("an array has rows of another size than the engine's");
  return {reinterpret_cast<const T*>(array.data()), array.shape(0) / sizeof(T)};
}

/// Lets `column` show the array of that name, by id.
template <typename I, typename T>
void borrow(IdSpan<I, const T>& column, nb::handle arrays, const char* name) {
  column = IdSpan<I, const T>(rows<T>(arrays, name));
}

template <typename T>
T number(nb::handle row, const char* name) {
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

/// A new one-dimensional byte array of `count` rows of `T`, filled by `fill(row, index)`.
template <typename T, typename Fill>
  requires Crossing<T> || std::is_same_v<T, double>
nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> table(std::size_t count, Fill&& fill) {
  auto owner = std::make_unique<std::vector<T>>(count);
  for (std::size_t i = 0; i < count; ++i) fill((*owner)[i], i);
  auto* data = reinterpret_cast<std::uint8_t*>(owner->data());
  const std::size_t bytes = count * sizeof(T);
  nb::capsule capsule(owner.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return {data, {bytes}, capsule};
}

/// The whole flow engine (bindings_flow_engine.cpp).
void bind_flow_engine(nb::module_& module);

}  // namespace weftwork::python
