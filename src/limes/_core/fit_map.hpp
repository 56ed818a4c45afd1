// Fitting a map to its source: the face that Python sees.
#pragma once
#include <nanobind/nanobind.h>

#include <array>
#include <string>

namespace limes {

// Fit a map in place; every array is float32 and plain; `components` may be None.
// Return the mean loss of the last epoch.
double fit_map(nanobind::handle rows, nanobind::handle targets,
               nanobind::handle weights, nanobind::handle anchors, nanobind::handle components,
               nanobind::handle points, nanobind::handle slopes, nanobind::handle levels,
               nanobind::handle base_slopes, nanobind::handle base_levels, size_t n_blended,
               float radius, size_t n_epochs, size_t n_batch, std::array<float, 4> rates,
               float decay, uint64_t seed, const std::string& cpu);

}  // namespace limes
