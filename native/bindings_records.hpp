/// Records between Python and the core, as the core knows them. The declarations are in weftwork.engine.rows; `rows`
/// and `table` take no other record, and a test holds what the module exports to the declarations.
#pragma once
#include <tuple>
#include <type_traits>

#include "base/crossing.hpp"
#include "rows/descriptions.hpp"
#include "rows/members.hpp"

namespace weftwork::python {

template <typename T, typename List>
inline constexpr bool kIsAmong = false;
template <typename T, typename... Each>
inline constexpr bool kIsAmong<T, std::tuple<Each...>> = (std::is_same_v<T, Each> || ...);

/// A record that is described and exported.
template <typename T>
concept Crossing = Described<T> && kIsAmong<T, Records>;

}  // namespace weftwork::python
