// Fitting a map to its source: what the binding and the compiled paths share.
#pragma once
#include <cstddef>
#include <cstdint>

namespace limes {

// A map in training, and the rows that it is fitted to. The value of output c at a row x is
//   base_levels[c] + base_slopes[c].x + sum_j w_j (levels[j][c] + slopes[j][c].(z - anchor_j) / radius)
// over the n_blended points nearest to z, with the weights of a blend. z is where x is searched from:
// x itself, or few projections of a wide x, which then have local functions of as few slopes, and are
// fitted too.
struct FitJob {
    size_t n_rows, n_features, n_search, n_outputs, n_points, n_blended;
    const float* rows;     // [row][n_features]
    const float* targets;  // [row][n_outputs]: probabilities
    const float* weights;  // [row]
    const float* anchors;  // [point][n_search]
    float inverse_radius;
    float* components;  // [n_search][n_features], fitted; or null
    float* points;      // [point][n_search]
    float* slopes;      // [point][output][n_search]
    float* levels;      // [point][output]
    float* base_slopes;
    float* base_levels;
    size_t n_epochs, n_batch;
    float local_rate, point_rate, base_rate, component_rate, decay;
    uint64_t seed;
};

// Number of float that a job needs beside its arrays.
using FitRoom = size_t (*)(const FitJob&);
// Fit in place; return the mean loss of the last epoch.
using Fit = double (*)(const FitJob&, float* room, uint32_t* order);

struct FitPath {
    const char* name;
    FitRoom room;
    Fit fit;
};

}  // namespace limes
