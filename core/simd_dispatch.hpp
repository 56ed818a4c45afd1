// Choice of the SIMD level at run time.
#pragma once
#include <string>
#include <vector>

#include "types.hpp"

namespace limes {

// The levels that this processor can run, the fastest first.
const std::vector<const SimdLevel*>& usable_levels();

// The level of that name; an empty name means the fastest. Throws std::invalid_argument.
const SimdLevel& choose_level(const std::string& name);

}  // namespace limes
