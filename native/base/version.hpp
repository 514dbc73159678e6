/// The version of Weftwork that this core was built as.
/// Source: src/weftwork/base/version.py, passed in by CMake.
/// Leaves out: the version of Python and of nanobind, which the core does not know.
#pragma once

#include <string_view>

namespace weftwork {

/// Such as "0.1.0". Python compares it with its own, so that a stale build is noticed.
[[nodiscard]] std::string_view version() noexcept;

}  // namespace weftwork
