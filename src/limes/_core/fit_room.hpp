// What one fit needs beside its arrays, cut from one piece of memory, in the layout of the loops.
#pragma once
#include <math.h>
#include <string.h>

#include "fit.hpp"

namespace limes {
namespace {

constexpr size_t width = 8;            // numbers of a vector; a narrower processor takes two for one
constexpr size_t vectors = 2;          // columns of a product at once, in vectors
constexpr size_t lanes = vectors * width;  // the same: points, features or outputs
constexpr size_t abreast = 4;          // rows of a product at once
constexpr float first_decay = 0.9f, second_decay = 0.99f;  // Adam's averages

inline size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Parameters with the gradient of a batch and Adam's two averages.
struct Group {
    float *values, *gradient, *mean, *square;
    size_t size;
    float rate, decay;
    void step(float pace, float first, float second) {
        const float size_of_step = rate * pace / first, scale = 1 / second;
        const float keep = 1 - rate * pace * decay;
        for (size_t i = 0; i < size; ++i) {
            const float g = gradient[i];
            mean[i] = first_decay * mean[i] + (1 - first_decay) * g;
            square[i] = second_decay * square[i] + (1 - second_decay) * g * g;
            values[i] = keep * values[i] - size_of_step * mean[i] / (sqrtf(square[i] * scale) + 1e-8f);
            gradient[i] = 0;
        }
    }
    // Some of them, with a rate of their own.
    Group part(size_t first, size_t n, float other_rate) const {
        return {values + first, gradient + first, mean + first, square + first, n, other_rate, decay};
    }
};

// The functions of all features (components, then the base function) stand together, since all are
// products of the same rows. Outputs of local functions are the innermost dimension, padded, so
// that one point's functions are a single run of memory.
struct Room {
    const FitJob& job;
    float* memory;  // null: only the size is wanted
    size_t size = 0;
    size_t n_features, n_outputs, n_near;  // padded, padded, and one more than are blended
    size_t n_components, n_wide, n_points;  // components; with base functions; padded
    Group slopes, levels, points, wide, components, base_slopes, base_levels;
    float* rows;         // [row of the batch][feature], zero behind the last
    float* wide_panel;   // [feature][wide], what a batch is multiplied with
    float* wide_values;  // [row of the batch][wide]: where it is searched, and its base values
    float* wide_slack;   // [row of the batch][wide]: the loss by those
    float *point_panel, *biases;  // [search][point], negated; half the points' squared lengths
    float *scores, *lowest;       // [abreast][point], [abreast][lanes of points]
    float *near_scores, *shares, *pulls;     // [near]
    float *local, *values, *slack, *shift;   // [near][output], [output], [output], [near][search]
    uint32_t* near;

    Room(const FitJob& j, float* piece) : job(j), memory(piece) {
        const size_t r = j.n_search;
        n_features = round_up(j.n_features, lanes);
        n_outputs = j.n_outputs == 1 ? 1 : round_up(j.n_outputs, width);
        n_near = j.n_points > 1 ? j.n_blended + 1 : 1;
        n_components = j.components ? r : 0;
        n_wide = round_up(n_components + j.n_outputs, lanes);
        n_points = round_up(j.n_points, lanes);
        take_parameters();
        rows = take(j.n_batch * n_features);
        wide_panel = take(n_features * n_wide);
        wide_values = take((j.n_batch + abreast) * n_wide);
        wide_slack = take(j.n_batch * n_wide);
        point_panel = take(r * n_points);
        biases = take(n_points);
        scores = take(abreast * n_points);
        lowest = take(abreast * n_points / lanes);
        near_scores = take(n_near);
        shares = take(n_near);
        pulls = take(n_near);
        local = take(n_near * n_outputs);
        values = take(n_outputs);
        slack = take(n_outputs);
        shift = take(n_near * r);
        near = reinterpret_cast<uint32_t*>(take(n_near));
    }

    // Where a row of the batch is searched from.
    const float* search(size_t row) const {
        return (job.components ? wide_values + row * n_wide : rows + row * n_features);
    }
    float* base_values(size_t row) const { return wide_values + row * n_wide + n_components; }

    void read_parameters() {
        for (size_t a = 0; a < n_components; ++a)
            memcpy(wide.values + a * n_features, job.components + a * job.n_features, feature_bytes());
        for (size_t c = 0; c < job.n_outputs; ++c)
            memcpy(base_slopes.values + c * n_features, job.base_slopes + c * job.n_features, feature_bytes());
        each_slope([](float& own, float& given) { own = given; });
        each_level([](float& own, float& given) { own = given; });
    }
    void write_parameters() {
        for (size_t a = 0; a < n_components; ++a)
            memcpy(job.components + a * job.n_features, wide.values + a * n_features, feature_bytes());
        for (size_t c = 0; c < job.n_outputs; ++c)
            memcpy(job.base_slopes + c * job.n_features, base_slopes.values + c * n_features, feature_bytes());
        each_slope([](float& own, float& given) { given = own; });
        each_level([](float& own, float& given) { given = own; });
    }

private:
    void take_parameters() {
        const size_t r = job.n_search, m = job.n_points;
        slopes = group(take(m * r * n_outputs), m * r * n_outputs, job.local_rate, job.decay);
        levels = group(take(m * n_outputs), m * n_outputs, job.local_rate, job.decay);
        points = group(job.points, m * r, job.point_rate, 0);
        base_levels = group(job.base_levels, job.n_outputs, job.base_rate, 0);
        const size_t n = n_wide * n_features, split = n_components * n_features;
        wide = group(take(n), n, 0, 0);
        if (!memory) return;
        components = wide.part(0, split, job.component_rate);
        base_slopes = wide.part(split, job.n_outputs * n_features, job.base_rate);
    }
    float* take(size_t n) {
        float* start = memory ? memory + size : nullptr;
        size += round_up(n, lanes);
        return start;
    }
    Group group(float* parameters, size_t n, float rate, float decay) {
        float *gradient = take(n), *mean = take(n), *square = take(n);
        return {parameters, gradient, mean, square, n, rate, decay};
    }
    size_t feature_bytes() const { return job.n_features * sizeof(float); }
    // Slopes are given as [point][output][search].
    template <class Copy>
    void each_slope(Copy copy) {
        const size_t q = job.n_outputs, r = job.n_search;
        for (size_t i = 0; i < job.n_points; ++i)
            for (size_t a = 0; a < r; ++a)
                for (size_t c = 0; c < q; ++c)
                    copy(slopes.values[(i * r + a) * n_outputs + c], job.slopes[(i * q + c) * r + a]);
    }
    template <class Copy>
    void each_level(Copy copy) {
        for (size_t i = 0; i < job.n_points; ++i)
            for (size_t c = 0; c < job.n_outputs; ++c)
                copy(levels.values[i * n_outputs + c], job.levels[i * job.n_outputs + c]);
    }
};

}  // namespace
}  // namespace limes
