// Where the groups of a large map lie, and how far its scores can be from a squared distance.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "plain.hpp"

namespace limes {

struct GroupShapes {
    size_t n_groups = 0;
    std::vector<std::vector<size_t>> members;  // of each group, in the order of their index
    std::vector<double> centers, biases, radii;
    std::vector<double> origin, inverse_scale;
    double residual = 0;  // largest distance of a bias from what the metric makes of its point
    double largest = 0;   // largest magnitude that goes into a score, the row apart
    double longest = 0;   // longest point, scaled

    // `shift`: how far the rounding of the centre moves the rows.
    GroupShapes(const PlainMap& map, size_t n_terms, const std::vector<double>& shift)
        : origin(map.origin), n_terms_(n_terms) {
        for (int32_t group : map.groups) n_groups = std::max(n_groups, size_t(group) + 1);
        members.resize(n_groups);
        for (size_t i = 0; i < map.n_points; ++i) members[size_t(map.groups[i])].push_back(i);
        for (size_t k = 0; k < n_terms; ++k) {
            origin[k] += shift[k];
            inverse_scale.push_back(map.squares[k] > 0 ? 1 / std::sqrt(map.squares[k]) : 0.0);
        }
        measure_residual(map);
        centers.assign(n_groups * n_terms, 0.0);
        for (size_t g = 0; g < n_groups; ++g) place_group(map, g);
        for (size_t i = 0; i < map.n_points; ++i) note_size(map, &map.weights[i * n_terms], map.biases[i]);
    }

private:
    double half_square(const PlainMap& map, const double* w) const {
        double sum = 0;
        for (size_t k = 0; k < n_terms_; ++k) sum += 0.5 * map.squares[k] * w[k] * w[k];
        return sum;
    }

    void measure_residual(const PlainMap& map) {
        for (size_t i = 0; i < map.n_points; ++i) {
            const double* w = &map.weights[i * n_terms_];
            double bias = map.constant + half_square(map, w);
            for (size_t k = 0; k < n_terms_; ++k) bias -= map.origin[k] * w[k];
            residual = std::max(residual, std::abs(bias - map.biases[i]));
        }
    }

    void place_group(const PlainMap& map, size_t g) {
        double* center = &centers[g * n_terms_];
        for (size_t i : members[g])
            for (size_t k = 0; k < n_terms_; ++k)
                center[k] += map.weights[i * n_terms_ + k] / double(members[g].size());
        double bias = map.constant + half_square(map, center), radius = 0;
        for (size_t k = 0; k < n_terms_; ++k) bias -= origin[k] * center[k];
        for (size_t i : members[g]) {
            std::vector<double> gap(n_terms_);
            for (size_t k = 0; k < n_terms_; ++k) gap[k] = map.weights[i * n_terms_ + k] - center[k];
            radius = std::max(radius, std::sqrt(2 * half_square(map, gap.data())));
        }
        biases.push_back(bias);
        radii.push_back(radius * (1 + 1e-6));  // above it even when rounded to float32
        note_size(map, center, bias);
    }

    void note_size(const PlainMap& map, const double* w, double bias) {
        double moved = 0;
        for (size_t k = 0; k < n_terms_; ++k) moved += std::abs(origin[k] * w[k]);
        largest = std::max(largest, std::abs(bias) + 2 * moved + std::abs(map.constant));
        longest = std::max(longest, std::sqrt(2 * half_square(map, w)));
    }

    size_t n_terms_;
};

}  // namespace limes
