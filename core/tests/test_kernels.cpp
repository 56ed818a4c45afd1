// The kernel without Python, on maps of small integers whose scores are exact: for processors that
// only an emulator runs here. Built from this file and kernel.cpp; see `make check-arm64`.
#include <cstdio>
#include <random>
#include <vector>

#include "packed.hpp"

namespace limes {
extern const Path path_generic;
}

using namespace limes;

struct Case {
    PlainModel model;
    std::vector<double> rows;
    size_t n_rows;
};

static Case draw_case(std::mt19937& random, size_t n_points, size_t n_features, size_t blend) {
    std::uniform_int_distribution<int> digit(-3, 3);
    const auto numbers = [&](size_t n) {
        std::vector<double> drawn(n);
        for (double& number : drawn) number = digit(random);
        return drawn;
    };
    Case drawn;
    drawn.n_rows = 61;
    drawn.rows = numbers(drawn.n_rows * n_features);
    drawn.model.n_features = drawn.model.n_search = n_features;
    drawn.model.blend = blend;
    drawn.model.center = numbers(n_features);
    PlainMap map;
    map.n_points = n_points;
    map.n_values = 2;
    map.weights = numbers(n_points * n_features);
    map.functions = numbers(n_points * 2 * n_features);
    map.offsets = numbers(n_points * 2);
    map.origin.assign(n_features, 0.0);
    map.squares.assign(n_features, 1.0);
    for (size_t i = 0; i < n_points; ++i) {
        double bias = 0;
        for (size_t k = 0; k < n_features; ++k)
            bias += 0.5 * map.weights[i * n_features + k] * map.weights[i * n_features + k];
        map.biases.push_back(bias);
        if (n_points >= 200) map.groups.push_back(int32_t(map.weights[i * n_features] + 3));
    }
    drawn.model.maps.push_back(map);
    return drawn;
}

static size_t nearest(const Case& drawn, size_t row) {
    const PlainMap& map = drawn.model.maps[0];
    const size_t n = drawn.model.n_features;
    size_t best = 0;
    double least = 1e300;
    for (size_t i = 0; i < map.n_points; ++i) {
        double score = map.biases[i];
        for (size_t k = 0; k < n; ++k)
            score -= (drawn.rows[row * n + k] - drawn.model.center[k]) * map.weights[i * n + k];
        if (score < least) least = score, best = i;
    }
    return best;
}

static double value(const Case& drawn, size_t row, size_t point, size_t number) {
    const PlainMap& map = drawn.model.maps[0];
    const size_t n = drawn.model.n_features, place = point * map.n_values + number;
    double sum = map.offsets[place];
    for (size_t k = 0; k < n; ++k)
        sum += map.functions[place * n + k] * (drawn.rows[row * n + k] - drawn.model.center[k]);
    return sum;
}

template <class Real>
static size_t count_errors(const Case& drawn, const Kernel<Real>& kernel) {
    const PackedModel<Real> packed(drawn.model, kernel.layout);
    const ptrdiff_t width = ptrdiff_t(drawn.model.n_features * sizeof(double));
    const Rows rows{reinterpret_cast<const char*>(drawn.rows.data()), drawn.n_rows, width,
                    sizeof(double), true};
    std::vector<int32_t> found(drawn.n_rows);
    std::vector<Real> values(drawn.n_rows * 2);
    Job<Real> search{&packed.model(), rows, Task::nearest, 0, nullptr, 0, nullptr, found.data()};
    Job<Real> decide{&packed.model(), rows, Task::decide, 0, nullptr, 0, values.data(), nullptr};
    kernel.run(search, 0, drawn.n_rows, Aligned<Real>(kernel.scratch(search)).get());
    kernel.run(decide, 0, drawn.n_rows, Aligned<Real>(kernel.scratch(decide)).get());
    size_t errors = 0;
    for (size_t r = 0; r < drawn.n_rows; ++r) {
        const size_t best = nearest(drawn, r);
        errors += size_t(found[r]) != best;
        if (drawn.model.blend > 1) continue;
        for (size_t c = 0; c < 2; ++c) errors += values[r * 2 + c] != value(drawn, r, best, c);
    }
    return errors;
}

int main() {
    std::mt19937 random(1);
    size_t errors = 0, cases = 0;
    for (size_t n_points : {1, 2, 5, 33, 100, 300})
        for (size_t n_features : {1, 2, 3, 8, 17, 300})
            for (size_t blend : {1, 3}) {
                const Case drawn = draw_case(random, n_points, n_features, blend);
                errors += count_errors(drawn, path_generic.single);
                errors += count_errors(drawn, path_generic.twice);
                cases += 2;
            }
    std::printf("%zu maps, %zu errors\n", cases, errors);
    return errors != 0;
}
