// Nearest points, values and blends on every SIMD level, against a definition in double precision.
// Numbers are small integers, so that scores are exact and ties are common.
#include <algorithm>
#include <limits>
#include <random>

#include "check.hpp"
#include "maps.hpp"
#include "simd_dispatch.hpp"

using namespace limes;

struct Shape {
    size_t n_points, n_features, n_search, n_values, blend;
};

static ModelArrays random_model(std::mt19937& random, const Shape& shape) {
    std::uniform_int_distribution<int> digit(-3, 3);
    const auto numbers = [&](size_t n) {
        std::vector<double> drawn(n);
        for (double& number : drawn) number = digit(random);
        return drawn;
    };
    ModelArrays model;
    model.n_features = shape.n_features;
    model.n_search = shape.n_search;
    model.blend = shape.blend;
    model.center = numbers(shape.n_features);
    if (shape.n_search < shape.n_features)
        model.projection = numbers(shape.n_features * shape.n_search);
    MapArrays map;
    map.n_points = shape.n_points;
    map.n_values = shape.n_values;
    map.points = numbers(shape.n_points * shape.n_search);
    map.offsets = numbers(shape.n_points * shape.n_values);
    map.slopes = numbers(shape.n_points * shape.n_values * shape.n_features);
    for (size_t i = 0; i < shape.n_points; ++i) {
        double square = 0;
        for (size_t k = 0; k < shape.n_search; ++k)
            square += map.points[i * shape.n_search + k] * map.points[i * shape.n_search + k];
        map.biases.push_back(0.5 * square);
    }
    if (shape.n_points >= 200 && shape.blend == 1) {  // groups by the first term of a point
        map.origin.assign(shape.n_search, 0.0);
        map.squares.assign(shape.n_search, 1.0);
        for (size_t i = 0; i < shape.n_points; ++i)
            map.groups.push_back(int32_t(map.points[i * shape.n_search]) + 3);
    }
    model.maps.push_back(map);
    return model;
}

// Slopes of all points = base + local @ projection', which the core evaluates in two parts.
static void factor_slopes(std::mt19937& random, ModelArrays& model) {
    std::uniform_int_distribution<int> digit(-2, 2);
    MapArrays& map = model.maps[0];
    map.base_slopes.resize(map.n_values * model.n_features);
    map.local_slopes.resize(map.n_points * map.n_values * model.n_search);
    for (double& number : map.base_slopes) number = digit(random);
    for (double& number : map.local_slopes) number = digit(random);
    for (size_t i = 0; i < map.n_points * map.n_values; ++i)
        for (size_t k = 0; k < model.n_features; ++k) {
            double slope = map.base_slopes[i % map.n_values * model.n_features + k];
            for (size_t j = 0; j < model.n_search; ++j)
                slope += map.local_slopes[i * model.n_search + j] *
                         model.projection[k * model.n_search + j];
            map.slopes[i * model.n_features + k] = slope;
        }
}

struct Expected {
    size_t nearest;
    std::vector<double> values;
};

static Expected define(const ModelArrays& model, const double* row) {
    const MapArrays& map = model.maps[0];
    const size_t d = model.n_features, s = model.n_search;
    std::vector<double> centred(d), search(s, 0.0), scores(map.biases);
    for (size_t k = 0; k < d; ++k) centred[k] = row[k] - model.center[k];
    for (size_t j = 0; j < s; ++j)
        for (size_t k = 0; k < d; ++k)
            search[j] += model.projection.empty() ? (j == k) * centred[k]
                                                  : centred[k] * model.projection[k * s + j];
    for (size_t i = 0; i < map.n_points; ++i)
        for (size_t j = 0; j < s; ++j) scores[i] -= search[j] * map.points[i * s + j];
    const size_t nearest = size_t(std::min_element(scores.begin(), scores.end()) - scores.begin());
    // The weight of a point is the difference between its score and that of the (k + 1)-th.
    std::vector<double> weights(map.n_points, 0.0), sorted(scores);
    std::sort(sorted.begin(), sorted.end());
    const size_t k = std::min(model.blend, std::max<size_t>(map.n_points, 2) - 1);
    double total = 0;
    if (k == 1) {
        total = weights[nearest] = 1;
    } else {
        for (size_t i = 0; i < map.n_points; ++i)
            total += weights[i] = std::max(0.0, sorted[k] - scores[i]);
        for (size_t i = 0, n = 0; sorted[0] == sorted[k] && n < k; ++i)  // all equally near
            if (scores[i] == sorted[k]) total += weights[i] = 1, ++n;
    }
    Expected expected{nearest, std::vector<double>(map.n_values, 0.0)};
    for (size_t i = 0; i < map.n_points; ++i)
        for (size_t c = 0; c < map.n_values; ++c) {
            double value = map.offsets[i * map.n_values + c];
            for (size_t j = 0; j < d; ++j)
                value += map.slopes[(i * map.n_values + c) * d + j] * centred[j];
            expected.values[c] += weights[i] / total * value;
        }
    return expected;
}

static void check_model(const ModelArrays& model, const std::vector<double>& numbers,
                        bool is_double, const SimdLevel& level) {
    const Maps maps(model, is_double, level);
    const size_t d = model.n_features, q = model.maps[0].n_values;
    const Rows rows = rows_of(numbers, d);
    std::vector<int32_t> nearest(rows.count);
    std::vector<double> values;
    maps.visit([&](const auto& packed) {
        using Real = typename std::decay_t<decltype(packed)>::Real;
        std::vector<Real> found(rows.count * q), single(q);
        packed.nearest(rows, 0, nearest.data(), 1);
        packed.decide(rows, found.data(), 2);
        packed.decide({rows.data, 1, 0, sizeof(double), true}, single.data(), 1);
        for (size_t c = 0; c < q; ++c) CHECK(single[c] == found[c]);
        const std::vector<int32_t> selected(rows.count, 0);
        std::vector<Real> some(rows.count * q);
        packed.decide_selected(rows, selected.data(), 1, some.data(), 1);
        CHECK(some == found);
        values.assign(found.begin(), found.end());
    });
    for (size_t r = 0; r < rows.count; ++r) {
        const Expected expected = define(model, numbers.data() + r * d);
        CHECK(size_t(nearest[r]) == expected.nearest);
        const double tolerance = is_double ? 1e-11 : 2e-4;
        for (size_t c = 0; c < q; ++c)
            CHECK_CLOSE(values[r * q + c], expected.values[c], tolerance);
    }
}

static void test_maps_agree_with_their_definition(const SimdLevel& level) {
    std::mt19937 random(1);
    std::uniform_int_distribution<int> digit(-3, 3);
    for (size_t n_points : {1, 2, 5, 33, 100, 300})
        for (size_t n_features : {1, 2, 3, 17, 70})
            for (size_t blend : {1, 3, 20})
                for (bool is_projected : {false, true}) {
                    const size_t n_search = is_projected ? (n_features + 1) / 2 : n_features;
                    if (is_projected && n_search == n_features) continue;
                    const size_t n_values = 1 + random() % 5;
                    ModelArrays model =
                        random_model(random, {n_points, n_features, n_search, n_values, blend});
                    if (is_projected && blend == 3) factor_slopes(random, model);
                    std::vector<double> numbers(61 * n_features);
                    for (double& number : numbers) number = digit(random);
                    check_model(model, numbers, false, level);
                    check_model(model, numbers, true, level);
                }
}

static void test_strides_do_not_matter(const SimdLevel& level) {
    std::mt19937 random(2);
    const ModelArrays model = random_model(random, {20, 3, 3, 2, 3});
    const Maps maps(model, false, level);
    std::vector<float> by_row(3 * 50), by_column(3 * 50);
    for (size_t r = 0; r < 50; ++r)
        for (size_t k = 0; k < 3; ++k)
            by_row[r * 3 + k] = by_column[k * 50 + 49 - r] = float(int(random() % 9));
    const Rows plain{reinterpret_cast<char*>(by_row.data()), 50, 12, 4, false};
    const Rows reversed{reinterpret_cast<char*>(by_column.data() + 49), 50, -4, 200, false};
    std::vector<float> first(100), second(100);
    maps.packed(float()).decide(plain, first.data(), 1);
    maps.packed(float()).decide(reversed, second.data(), 1);
    CHECK(first == second);
}

static void test_a_nan_gives_point_0_and_no_value(const SimdLevel& level) {
    std::mt19937 random(3);
    const Maps maps(random_model(random, {20, 2, 2, 1, 1}), true, level);
    const std::vector<double> numbers = {std::numeric_limits<double>::quiet_NaN(), 1};
    int32_t nearest = -1;
    double value = 0;
    maps.packed(double()).nearest(rows_of(numbers, 2), 0, &nearest, 1);
    maps.packed(double()).decide(rows_of(numbers, 2), &value, 1);
    CHECK(nearest == 0 && std::isnan(value));
}

#if defined(__x86_64__) && !defined(_WIN32)
static bool is_usable(const std::string& name) {
    for (const SimdLevel* level : usable_levels())
        if (level->name == name) return true;
    return false;
}

static void test_levels_are_those_that_the_compiler_finds() {
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    CHECK(is_usable("avx2") == has_avx2);
    CHECK(is_usable("avx512") == (has_avx2 && has_avx512));
}
#else
static void test_levels_are_those_that_the_compiler_finds() {}
#endif

int main() {
    test_levels_are_those_that_the_compiler_finds();
    for (const SimdLevel* level : usable_levels()) {
        test_maps_agree_with_their_definition(*level);
        test_strides_do_not_matter(*level);
        test_a_nan_gives_point_0_and_no_value(*level);
    }
    return report();
}
