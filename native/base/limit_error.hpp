/// What an engine cannot carry.
#pragma once
#include <stdexcept>

namespace weftwork {

/// A limit of the engine that the input exceeds; the text goes to the user.
struct LimitError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace weftwork
