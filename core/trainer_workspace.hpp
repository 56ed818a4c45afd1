// Parameters and scratch memory of the trainer.
#pragma once
#include "trainer_products.hpp"
#include "types.hpp"

namespace limes {
namespace {

// Parameters with Adam's two averages.
struct ParameterGroup {
    float *values, *mean, *square;

    ParameterGroup at(size_t place) const { return {values + place, mean + place, square + place}; }
};

// A step of Adam (Kingma & Ba 2015). The paper's second rate of decay is 0.999; 0.99 averages over
// about 100 steps. Not measured.
struct AdamStep {
    float beta1 = 0.9f, beta2 = 0.99f;
    float mean_scale = 1, square_scale = 1;  // bias corrections
    float rate_factor = 0;                   // of the schedule

    // A step that only leaves the gradient in the place of the first average.
    static AdamStep gradient_only() {
        AdamStep step;
        step.beta1 = 0;
        return step;
    }

    template <size_t n>
    inline void apply(const ParameterGroup& group, Floats<n> gradient, Floats<n> rate,
                      Floats<n> shrink) const {
        const Floats<n> mean = beta1 * load<n>(group.mean) + (1 - beta1) * gradient;
        const Floats<n> square = beta2 * load<n>(group.square) + (1 - beta2) * gradient * gradient;
        // Adam's epsilon of 1e-8, under the root.
        const Floats<n> inverse = inverse_root<n>(square * square_scale + 1e-16f);
        store<n>(group.mean, mean);
        store<n>(group.square, square);
        store<n>(group.values, shrink * load<n>(group.values) - rate * mean * inverse);
    }
};

// Column n_outputs of the local functions of a point is its distance from its anchor, so that both
// are trained in one pass; the last term of a local function is its offset.
struct Workspace {
    const TrainJob& job;
    float* memory;  // zero; null: only the size is computed
    size_t size = 0;
    bool is_local, trains_components;
    size_t n_features;                        // padded: where the curved inputs begin
    size_t constant, n_inputs, input_stride;  // the input that is always 1; all inputs, padded
    size_t n_near;                            // one more than are blended
    size_t lanes, n_columns;  // of a vector of outputs; outputs and the point, padded
    size_t n_shift;           // terms of a local function, padded
    size_t n_terms;           // terms of the curved inputs, padded
    ParameterGroup base, components, local;  // [output][input], [search][feature],
                                             // [point][term][column]
    float* inputs;           // [row of the batch][input]: features, curved inputs, 1
    float *centred, *terms;  // [row of the batch][feature], [term]: of the curved inputs
    float *center, *directions, *means, *inverse_deviations;  // of the curved inputs, padded
    float *targets, *values, *gradient;  // [row of the batch][column]; the gradient by the values
    float *is_output, *is_point, *column_scale;  // [column]: 1 or 0; of the gradient
    float *rates, *shrinks;                      // [column]: of a step of Adam
    float *anchors, *half_squares;               // [point][shift], [point]
    float *projected, *projected_gradient;       // [row of the batch][shift]: with components
    float *panel, *scores;                     // [search][row of a block], [point][row of a block]
    float *weights, *inverse_totals;           // [row of the batch][near], [row of the batch]
    float *pair_values, *shifts, *transposed;  // [pair][column], [pair of a point][shift],
                                               // [column][shift]
    float* near_scores;                        // [near]
    uint32_t *near, *places;       // [row of the batch][near]: point, number of the pair
    uint32_t *pair_rows, *starts;  // [pair]: row of the batch; [point + 1]: first pair

    Workspace(const TrainJob& j, float* zeros, bool is_test) : job(j), memory(zeros) {
        const size_t r = j.n_search, q = j.n_outputs, e = j.curved.n_inputs();
        is_local = j.n_points > 1;
        trains_components =
            is_local && j.parameters.components && (j.component_rate != 0 || is_test);
        n_features = round_up(j.n_features, width);
        constant = n_features + e;
        n_inputs = round_up(constant + 1, width);
        // Curved inputs are written in vectors that may reach past the last. Rows that lie a
        // multiple of a page apart would share the sets of a cache.
        input_stride = e ? round_up(constant + width, width) : n_inputs;
        if (input_stride % 128 == 0) input_stride += width;
        n_near = j.n_blended + 1;
        lanes = q < 4 || width == 4 ? 4 : q < 8 || width == 8 ? 8 : width;
        n_columns = round_up(q + 1, lanes);
        n_shift = round_up(r + 1, width < 8 ? 8 : width);
        n_terms = e ? round_up(j.curved.n_terms, width) + width : 0;
        if (zeros) memory += (64 - reinterpret_cast<uintptr_t>(zeros) % 64) % 64 / sizeof(float);
        allocate_parameters();
        allocate_batch();
        if (is_local) allocate_search();
        size += 64 / sizeof(float);
    }

    // The terms of the search of each row, its projection or the row itself, and their stride.
    const float* search() const { return job.parameters.components ? projected : inputs; }
    size_t search_stride() const { return job.parameters.components ? n_shift : input_stride; }

    void read_parameters() {
        each_parameter(&ParameterGroup::values, job.parameters,
                       [](float& own, float& given) { own = given; });
        const size_t r = job.n_search;
        for (size_t i = 0; is_local && i < job.n_points; ++i) {
            memcpy(anchors + i * n_shift, job.anchors + i * r, r * sizeof(float));
            for (size_t a = 0; a < r; ++a)
                distance(local.values, i, a) =
                    job.parameters.points[i * r + a] - job.anchors[i * r + a];
        }
        fill_constants();
    }
    void write_parameters() {
        each_parameter(&ParameterGroup::values, job.parameters,
                       [](float& own, float& given) { given = own; });
    }
    // The gradient after a step of AdamStep::gradient_only().
    void write_gradient(const TrainParameters& to) {
        each_parameter(&ParameterGroup::mean, to, [](float& own, float& given) { given = own; });
        for (size_t i = 0; i < job.n_points; ++i)
            for (size_t a = 0; a < job.n_search; ++a)
                to.points[i * job.n_search + a] = is_local ? distance(local.mean, i, a) : 0;
        const size_t n_local = job.n_outputs * job.n_points;
        if (is_local) return;
        memset(to.slopes, 0, n_local * job.n_search * sizeof(float));
        memset(to.offsets, 0, n_local * sizeof(float));
        if (to.components) memset(to.components, 0, job.n_search * job.n_features * sizeof(float));
    }
    // A number of the column of a point.
    float& distance(float* array, size_t point, size_t term) const {
        return array[(point * (job.n_search + 1) + term) * n_columns + job.n_outputs];
    }

private:
    float* allocate(size_t n) {
        float* start = memory ? memory + size : nullptr;
        // Arrays that lie a multiple of a page apart would slow down loads after stores.
        size += round_up(n, 64 / sizeof(float)) + 320 / sizeof(float);
        return start;
    }
    uint32_t* allocate_indices(size_t n) { return reinterpret_cast<uint32_t*>(allocate(n)); }
    ParameterGroup group(size_t n) { return {allocate(n), allocate(n), allocate(n)}; }

    void allocate_parameters() {
        base = group(job.n_outputs * input_stride);
        if (!is_local) return;
        local = group(job.n_points * (job.n_search + 1) * n_columns);
        if (job.parameters.components) components = group(job.n_search * n_features);
    }
    void allocate_batch() {
        const size_t n = job.n_batch;
        inputs = allocate(n * input_stride);
        targets = allocate(n * n_columns);
        values = allocate(n * n_columns);
        gradient = allocate(n * n_columns);
        is_output = allocate(n_columns);
        is_point = allocate(n_columns);
        column_scale = allocate(n_columns);
        rates = allocate(n_columns);
        shrinks = allocate(n_columns);
        if (constant == n_features) return;
        centred = allocate(n * n_features);
        terms = allocate(n * n_terms);
        center = allocate(n_features);
        directions = allocate(job.curved.directions ? job.curved.n_terms * n_features : 0);
        means = allocate(n_inputs);
        inverse_deviations = allocate(n_inputs);
    }
    void allocate_search() {
        const size_t n = job.n_batch, m = job.n_points;
        anchors = allocate(m * n_shift);
        half_squares = allocate(m);
        projected = allocate(job.parameters.components ? n * n_shift : 0);
        projected_gradient = allocate(trains_components ? n * n_shift : 0);
        panel = allocate(job.n_search * block_rows);
        scores = allocate(m * block_rows);
        weights = allocate(n * n_near);
        inverse_totals = allocate(n);
        pair_values = allocate((n * n_near + max_local_tile) * n_columns);
        shifts = allocate((n + max_local_tile) * n_shift);
        transposed = allocate(trains_components ? round_up(job.n_outputs + 1, width) * n_shift : 0);
        near_scores = allocate(n_near);
        near = allocate_indices(n * n_near);
        places = allocate_indices(n * n_near);
        pair_rows = allocate_indices(n * n_near);
        starts = allocate_indices(m + 1);
    }
    void fill_constants() {
        const size_t n = job.n_batch, q = job.n_outputs;
        for (size_t r = 0; r < n; ++r) {
            inputs[r * input_stride + constant] = 1;
            for (size_t c = q; c < n_columns; ++c) values[r * n_columns + c] = -1e30f;
        }
        for (size_t c = 0; c < q; ++c) is_output[c] = column_scale[c] = 1;
        is_point[q] = 1;
        column_scale[q] = 1 / job.inverse_radius;
        if (constant == n_features) return;
        const CurvedInputs& curved = job.curved;
        memcpy(center, curved.center, job.n_features * sizeof(float));
        for (size_t t = 0; curved.directions && t < curved.n_terms; ++t)
            memcpy(directions + t * n_features, curved.directions + t * job.n_features,
                   job.n_features * sizeof(float));
        memcpy(means, curved.means, curved.n_inputs() * sizeof(float));
        memcpy(inverse_deviations, curved.inverse_deviations, curved.n_inputs() * sizeof(float));
    }
    // Visit the number of each parameter but the points, together with its place in the arrays of
    // the caller.
    template <class Visit>
    void each_parameter(float* ParameterGroup::* array, const TrainParameters& given, Visit visit) {
        const size_t q = job.n_outputs, r = job.n_search, d = job.n_features;
        const size_t n_given = d + job.curved.n_inputs();
        for (size_t c = 0; c < q; ++c) {
            float* own = base.*array + c * input_stride;
            for (size_t k = 0; k < n_given; ++k)
                visit(own[k < d ? k : n_features + k - d], given.base_slopes[c * n_given + k]);
            visit(own[constant], given.base_offsets[c]);
        }
        if (!is_local) return;
        for (size_t a = 0; job.parameters.components && a < r; ++a)
            for (size_t k = 0; k < d; ++k)
                visit((components.*array)[a * n_features + k], given.components[a * d + k]);
        for (size_t i = 0; i < job.n_points; ++i)
            for (size_t c = 0; c < q; ++c) {
                float* own = local.*array + i * (r + 1) * n_columns + c;
                for (size_t a = 0; a < r; ++a)
                    visit(own[a * n_columns], given.slopes[(i * q + c) * r + a]);
                visit(own[r * n_columns], given.offsets[i * q + c]);
            }
    }
};

}  // namespace
}  // namespace limes
