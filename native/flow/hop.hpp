/// One link that an activity crosses.
#pragma once
#include <cstdint>

namespace weftwork::flow {

/// An activity puts `weight` bytes on `link` for each byte (unit of service) that it gets done.
struct Hop {
  std::int32_t link;
  double weight;
};

}  // namespace weftwork::flow
