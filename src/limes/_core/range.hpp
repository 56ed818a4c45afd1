// How large the numbers of a row may be before a sum of the core could overflow.
#pragma once
#include <algorithm>
#include <cmath>

#include "plain.hpp"

namespace limes {

inline double sum_of_sizes(const double* numbers, size_t n, size_t step = 1) {
    double sum = 0;
    for (size_t k = 0; k < n; ++k) sum += std::abs(numbers[k * step]);
    return sum;
}

// The most that a number of a row, centred, is multiplied by on its way to a score or a value.
inline double largest_growth(const PlainModel& model) {
    double search = 1, growth = 1;
    for (size_t j = 0; j < (model.projection.empty() ? 0 : model.n_search); ++j)
        search = std::max(search, sum_of_sizes(&model.projection[j], model.n_features, model.n_search));
    for (const PlainMap& map : model.maps) {
        for (size_t i = 0; i < map.n_points; ++i)
            growth = std::max(growth, search * sum_of_sizes(&map.weights[i * model.n_search], model.n_search));
        for (size_t i = 0; i < map.n_points * map.n_values; ++i)
            growth = std::max(growth, sum_of_sizes(&map.functions[i * model.n_features], model.n_features));
        for (size_t i = 0; i < map.local.size(); i += model.n_search)
            growth = std::max(growth, search * sum_of_sizes(&map.local[i], model.n_search));
        for (size_t i = 0; i < map.base.size(); i += model.n_features)
            growth = std::max(growth, sum_of_sizes(&map.base[i], model.n_features));
    }
    return std::max(search, growth);
}

// The power of two that numbers may reach: twice that, centred, times the growth; a blend adds up
// differences of scores. As much is left for biases and offsets.
inline int find_range(const PlainModel& model, double largest) {
    size_t most_points = 1;
    for (const PlainMap& map : model.maps) most_points = std::max(most_points, map.n_points);
    const double n_blended = double(std::min(model.blend, most_points));
    const int lowest = -1000;  // numbers that large leave no room at all
    return std::max(lowest, std::ilogb(largest / (8 * (n_blended + 1)) / largest_growth(model)));
}

}  // namespace limes
