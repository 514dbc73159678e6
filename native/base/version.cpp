#include "base/version.hpp"

namespace weftwork {

std::string_view version() noexcept {
  return WEFTWORK_VERSION;
}

}  // namespace weftwork
