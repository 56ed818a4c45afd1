// Which compiled paths this processor can run.
#pragma once
#include <string>
#include <vector>

#include "core.hpp"
#include "fit.hpp"
#include "sums.hpp"

namespace limes {

// The paths that this processor can run, the best first.
const std::vector<const Path*>& usable_paths();

// The path of that name, or null; an empty name means the best.
const Path* find_path(const std::string& name);

// The trainer of the path of that name, or null.
const FitPath* find_fit_path(const std::string& name);

// The sums of kernels of the path of that name, or null.
const SumsPath* find_sums_path(const std::string& name);

}  // namespace limes
