// Parameters, gradients, scratch memory and matrix products of the trainer.
//
// Never included together with simd.hpp: the trainer is compiled with other floating-point flags
// and has vector types of its own.
#pragma once
#include <math.h>
#include <string.h>

#include "types.hpp"

namespace limes {
namespace {

constexpr size_t vector_width = 8;  // floats of a vector; narrower processors use two for one
// Shape of a tile of a matrix product.
constexpr size_t tile_rows = 4, tile_vectors = 2, tile_columns = tile_vectors * vector_width;
// Decay rates of Adam's two averages and its epsilon (Kingma & Ba 2015). The paper's second rate is
// 0.999; 0.99 averages over about 100 steps. Not measured.
constexpr float beta1 = 0.9f, beta2 = 0.99f, epsilon = 1e-8f;

// Parameters with the gradient of a batch and Adam's two averages.
struct ParameterGroup {
    float *values, *gradient, *mean, *square;
    size_t size;
    float rate, weight_decay;
    // `first`, `second`: Adam's bias corrections.
    void step(float rate_factor, float first, float second) {
        const float step_size = rate * rate_factor / first, scale = 1 / second;
        const float shrink = 1 - rate * rate_factor * weight_decay;
        for (size_t i = 0; i < size; ++i) {
            const float g = gradient[i];
            mean[i] = beta1 * mean[i] + (1 - beta1) * g;
            square[i] = beta2 * square[i] + (1 - beta2) * g * g;
            values[i] =
                shrink * values[i] - step_size * mean[i] / (sqrtf(square[i] * scale) + epsilon);
            gradient[i] = 0;
        }
    }
    // A part of the parameters, with its own rate.
    ParameterGroup part(size_t first, size_t n, float other_rate) const {
        return {values + first, gradient + first, mean + first, square + first, n,
                other_rate,     weight_decay};
    }
};

// The functions of all features (components, then base slopes) are one matrix, since all are
// multiplied with the same rows. Outputs are the innermost dimension of local functions, padded, so
// that the functions of a point are contiguous.
struct Workspace {
    const TrainJob& job;
    float* memory;  // zero; null: only the size is computed
    size_t size = 0;
    size_t n_features, n_outputs, n_near;  // padded, padded, and one more than are blended
    size_t n_components, n_feature_functions, n_points;  // components; with base functions; padded
    ParameterGroup slopes, offsets, points, feature_functions, components, base_slopes,
        base_offsets;
    float* rows;              // [row of the batch][feature], zero-padded
    float* feature_panel;     // [feature][feature function]
    float* feature_values;    // [row of the batch][feature function]: projection and base values
    float* feature_gradient;  // [row of the batch][feature function]: of the loss
    float *point_panel, *biases;  // [search][point], negated; half the points' squared lengths
    float *scores, *lowest;       // [tile_rows][point], [tile_rows][tile_columns of points]
    float *near_scores, *weights,
        *weight_gradients;    // [near]: scores, blend weights, derivatives by them
    float *local, *values;    // [near][output], [output]
    float *gradient, *shift;  // [output]: derivative of the loss by the values; [near][search]
    uint32_t* near;

    Workspace(const TrainJob& j, float* zeros) : job(j), memory(zeros) {
        const size_t r = j.n_search;
        n_features = round_up(j.n_features, tile_columns);
        n_outputs = j.n_outputs == 1 ? 1 : round_up(j.n_outputs, vector_width);
        n_near = j.n_points > 1 ? j.n_blended + 1 : 1;
        n_components = j.parameters.components ? r : 0;
        n_feature_functions = round_up(n_components + j.n_outputs, tile_columns);
        n_points = round_up(j.n_points, tile_columns);
        allocate_parameters();
        rows = allocate(j.n_batch * n_features);
        feature_panel = allocate(n_features * n_feature_functions);
        feature_values = allocate((j.n_batch + tile_rows) * n_feature_functions);
        feature_gradient = allocate(j.n_batch * n_feature_functions);
        point_panel = allocate(r * n_points);
        biases = allocate(n_points);
        scores = allocate(tile_rows * n_points);
        lowest = allocate(tile_rows * n_points / tile_columns);
        near_scores = allocate(n_near);
        weights = allocate(n_near);
        weight_gradients = allocate(n_near);
        local = allocate(n_near * n_outputs);
        values = allocate(n_outputs);
        gradient = allocate(n_outputs);
        shift = allocate(n_near * r);
        near = reinterpret_cast<uint32_t*>(allocate(n_near));
    }

    // The terms of the search of a row: its projection, or the row itself.
    const float* search(size_t row) const {
        return n_components ? feature_values + row * n_feature_functions : rows + row * n_features;
    }
    float* base_values(size_t row) const {
        return feature_values + row * n_feature_functions + n_components;
    }

    void read_parameters() {
        each_function(&ParameterGroup::values, job.parameters,
                      [](float& own, float& given) { own = given; });
    }
    void write_parameters() {
        each_function(&ParameterGroup::values, job.parameters,
                      [](float& own, float& given) { given = own; });
    }
    void write_gradient(const TrainParameters& to) {
        each_function(&ParameterGroup::gradient, to, [](float& own, float& given) { given = own; });
        memcpy(to.points, points.gradient, points.size * sizeof(float));
        memcpy(to.base_offsets, base_offsets.gradient, base_offsets.size * sizeof(float));
    }

private:
    void allocate_parameters() {
        const size_t r = job.n_search, m = job.n_points;
        slopes =
            group(allocate(m * r * n_outputs), m * r * n_outputs, job.local_rate, job.weight_decay);
        offsets = group(allocate(m * n_outputs), m * n_outputs, job.local_rate, job.weight_decay);
        points = group(job.parameters.points, m * r, job.point_rate, 0);
        base_offsets = group(job.parameters.base_offsets, job.n_outputs, job.base_rate, 0);
        const size_t n = n_feature_functions * n_features, split = n_components * n_features;
        feature_functions = group(allocate(n), n, 0, 0);
        if (!memory) return;
        components = feature_functions.part(0, split, job.component_rate);
        base_slopes = feature_functions.part(split, job.n_outputs * n_features, job.base_rate);
    }
    float* allocate(size_t n) {
        float* start = memory ? memory + size : nullptr;
        size += round_up(n, tile_columns);
        return start;
    }
    ParameterGroup group(float* parameters, size_t n, float rate, float weight_decay) {
        float *gradient = allocate(n), *mean = allocate(n), *square = allocate(n);
        return {parameters, gradient, mean, square, n, rate, weight_decay};
    }
    // Visit every number of the workspace's own copies (all but points and base offsets, which are
    // used in place) together with its place in the arrays of the caller.
    template <class Visit>
    void each_function(float* ParameterGroup::* array, const TrainParameters& given, Visit visit) {
        const size_t q = job.n_outputs, r = job.n_search, d = job.n_features;
        for (size_t a = 0; a < n_components; ++a)
            for (size_t k = 0; k < d; ++k)
                visit((components.*array)[a * n_features + k], given.components[a * d + k]);
        for (size_t c = 0; c < q; ++c)
            for (size_t k = 0; k < d; ++k)
                visit((base_slopes.*array)[c * n_features + k], given.base_slopes[c * d + k]);
        for (size_t i = 0; i < job.n_points; ++i)
            for (size_t c = 0; c < q; ++c) {
                for (size_t a = 0; a < r; ++a)
                    visit((slopes.*array)[(i * r + a) * n_outputs + c],
                          given.slopes[(i * q + c) * r + a]);
                visit((offsets.*array)[i * n_outputs + c], given.offsets[i * q + c]);
            }
    }
};

typedef float Vector
    __attribute__((vector_size(vector_width * sizeof(float)), aligned(4), may_alias));

inline Vector load(const float* from) { return *reinterpret_cast<const Vector*>(from); }
inline void store(float* to, Vector vector) { *reinterpret_cast<Vector*>(to) = vector; }

inline float sum_of(Vector a) {
    float sum = 0;
    for (size_t i = 0; i < vector_width; ++i) sum += a[i];
    return sum;
}

inline float min_of(Vector a) {
    float least = a[0];
    for (size_t i = 1; i < vector_width; ++i) least = a[i] < least ? a[i] : least;
    return least;
}

inline float dot(const float* a, const float* b, size_t n) {
    Vector even = {}, odd = {};
    size_t i = 0;
    for (; i + 2 * vector_width <= n; i += 2 * vector_width) {
        even += load(a + i) * load(b + i);
        odd += load(a + i + vector_width) * load(b + i + vector_width);
    }
    for (; i + vector_width <= n; i += vector_width) even += load(a + i) * load(b + i);
    float sum = sum_of(even + odd);
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

inline void add(float* to, const float* from, float scale, size_t n) {
    size_t i = 0;
    for (; i + vector_width <= n; i += vector_width)
        store(to + i, load(to + i) + scale * load(from + i));
    for (; i < n; ++i) to[i] += scale * from[i];
}

// A tile of sums, small enough for the registers.
struct Tile {
    Vector sums[tile_rows][tile_vectors];

    inline void start(const float* from) {
        for (size_t r = 0; r < tile_rows; ++r)
            for (size_t v = 0; v < tile_vectors; ++v)
                sums[r][v] = from ? load(from + v * vector_width) : Vector{};
    }
    // Add the product of one number of each row with the same columns.
    inline void add(const float (&factors)[tile_rows], const float* columns) {
        Vector column[tile_vectors];
        for (size_t v = 0; v < tile_vectors; ++v) column[v] = load(columns + v * vector_width);
        for (size_t r = 0; r < tile_rows; ++r)
            for (size_t v = 0; v < tile_vectors; ++v) sums[r][v] += factors[r] * column[v];
    }
};

// out[row][column] = start[column] + sum over terms of row[term] panel[term][column], for rows that
// lie `stride` apart; `start` may be null. Fewer rows than tile_rows repeat the first.
inline void multiply(const float* rows, size_t stride, size_t n_rows, size_t n_terms,
                     const float* panel, size_t n_columns, const float* start, float* out) {
    const float* row[tile_rows];
    for (size_t r = 0; r < tile_rows; ++r) row[r] = rows + (r < n_rows ? r : 0) * stride;
    for (size_t first = 0; first < n_columns; first += tile_columns) {
        Tile tile;
        tile.start(start ? start + first : nullptr);
        for (size_t k = 0; k < n_terms; ++k)
            tile.add({row[0][k], row[1][k], row[2][k], row[3][k]}, panel + k * n_columns + first);
        for (size_t r = 0; r < tile_rows; ++r)
            for (size_t v = 0; v < tile_vectors; ++v)
                store(out + r * n_columns + first + v * vector_width, tile.sums[r][v]);
    }
}

// gradient[column][feature] += sum over rows of by_column[row][column] row[feature], for the first
// n_columns, whose number is rounded up to tile_rows.
inline void multiply_back(const float* by_column, size_t stride, size_t n_columns,
                          const float* rows, size_t n_features, size_t n_rows, float* gradient) {
    for (size_t first = 0; first < n_features; first += tile_columns)
        for (size_t c = 0; c < n_columns; c += tile_rows) {
            Tile tile;
            tile.start(nullptr);
            for (size_t r = 0; r < n_rows; ++r) {
                const float* by = by_column + r * stride + c;
                tile.add({by[0], by[1], by[2], by[3]}, rows + r * n_features + first);
            }
            for (size_t s = 0; s < tile_rows; ++s)
                for (size_t v = 0; v < tile_vectors; ++v) {
                    float* to = gradient + (c + s) * n_features + first + v * vector_width;
                    store(to, load(to) + tile.sums[s][v]);
                }
        }
}

// Transpose [column][term] to [term][column], times `sign`.
inline void transpose(const float* from, size_t stride, size_t n_columns, size_t n_terms,
                      float sign, float* panel, size_t panel_width) {
    for (size_t i = 0; i < n_columns; ++i)
        for (size_t k = 0; k < n_terms; ++k)
            panel[k * panel_width + i] = sign * from[i * stride + k];
}

}  // namespace
}  // namespace limes
