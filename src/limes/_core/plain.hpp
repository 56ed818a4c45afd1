// Maps as Python gives them: float64, the shapes already checked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace limes {

struct PlainMap {
    size_t n_points = 0, n_values = 0;
    std::vector<double> weights;    // (n_points, n_search)
    std::vector<double> biases;     // (n_points)
    std::vector<double> functions;  // (n_points, n_values, n_features)
    std::vector<double> offsets;    // (n_points, n_values)
    std::vector<double> base;       // (n_values, n_features), or empty: functions = base + local,
    std::vector<double> local;      // (n_points, n_values, n_search)   of the projected row
    std::vector<int32_t> groups;    // (n_points): the group of each point, or empty
    std::vector<double> origin;     // (n_search): see Groups; in it, bias = constant
    std::vector<double> squares;    // (n_search)    - origin . w + sum squares w^2 / 2
    double constant = 0;
};

struct PlainModel {
    size_t n_features = 0, n_search = 0, blend = 1;
    std::vector<double> center;
    std::vector<double> projection;  // (n_features, n_search), or empty
    std::vector<PlainMap> maps;
    std::vector<int32_t> pairs;  // (n_maps, 2), or empty
};

}  // namespace limes
