// Trainer of one SIMD level: Adam on the cross-entropy between a map and its source.
#include "trainer_workspace.hpp"
#include "types.hpp"

namespace limes {
namespace {

// Below these sums of weights, points are equally near: they get equal weights, and no gradient
// passes through the weights.
constexpr float min_total_weight = 1e-12f, min_total_for_gradient = 1e-6f;

constexpr float warm_up_share = 0.05f;  // of all steps

// xoroshiro128+, seeded by splitmix64.
struct Random {
    uint64_t a, b;
    explicit Random(uint64_t seed) : a(mix(seed)), b(mix(seed + 0x9e3779b97f4a7c15u)) {}
    static uint64_t mix(uint64_t x) {
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return (x ^ (x >> 31)) | 1u;
    }
    uint32_t below(uint32_t n) {
        const uint64_t sum = a + b, c = a ^ b;
        a = ((a << 24) | (a >> 40)) ^ c ^ (c << 16);
        b = (c << 37) | (c >> 27);
        return uint32_t(((sum >> 32) * n) >> 32);
    }
};

// Transpose the points for the scan, and compute half their squared lengths.
void pack_points(Workspace& workspace) {
    const TrainJob& job = workspace.job;
    const size_t r = job.n_search;
    transpose(job.parameters.points, r, job.n_points, r, -1, workspace.point_panel,
              workspace.n_points);
    for (size_t i = 0; i < workspace.n_points; ++i) workspace.biases[i] = INFINITY;
    for (size_t i = 0; i < job.n_points; ++i)
        workspace.biases[i] =
            0.5f * dot(job.parameters.points + i * r, job.parameters.points + i * r, r);
}

// Copy the rows of a batch, and multiply them with the components and base functions.
void load_batch(Workspace& workspace, const uint32_t* order, size_t n) {
    const TrainJob& job = workspace.job;
    const size_t n_functions = workspace.n_feature_functions, d = workspace.n_features;
    for (size_t r = 0; r < n; ++r)
        memcpy(workspace.rows + r * d, job.rows + order[r] * job.n_features,
               job.n_features * sizeof(float));
    const size_t used = workspace.n_components + job.n_outputs;
    transpose(workspace.feature_functions.values, d, used, job.n_features, 1,
              workspace.feature_panel, n_functions);
    for (size_t r = 0; r < n; r += tile_rows)
        multiply(workspace.rows + r * d, d, n - r, job.n_features, workspace.feature_panel,
                 n_functions, nullptr, workspace.feature_values + r * n_functions);
}

// Scores of a tile of rows: half the squared distance to all points, less half the squared length
// of the row; and the lowest score of each tile_columns points.
void scan(Workspace& workspace, size_t start, size_t n) {
    const TrainJob& job = workspace.job;
    const size_t n_all = workspace.n_points;
    const size_t stride =
        workspace.n_components ? workspace.n_feature_functions : workspace.n_features;
    multiply(workspace.search(start), stride, n, job.n_search, workspace.point_panel, n_all,
             workspace.biases, workspace.scores);
    for (size_t i = 0; i < tile_rows * n_all / tile_columns; ++i) {
        Vector low = load(workspace.scores + i * tile_columns);
        for (size_t v = 1; v < tile_vectors; ++v) {
            const Vector next = load(workspace.scores + i * tile_columns + v * vector_width);
            low = next < low ? next : low;
        }
        workspace.lowest[i] = min_of(low);
    }
}

// The n_near nearest points of a row in order, the lowest index first among equals.
void find_nearest(Workspace& workspace, size_t row) {
    const size_t n_near = workspace.n_near, n_points = workspace.job.n_points;
    const float* scores = workspace.scores + row * workspace.n_points;
    const float* lowest = workspace.lowest + row * workspace.n_points / tile_columns;
    size_t found = 0;
    for (size_t block = 0; block * tile_columns < n_points; ++block) {
        if (found == n_near && lowest[block] >= workspace.near_scores[n_near - 1]) continue;
        const size_t first = block * tile_columns, left = n_points - first;
        for (size_t i = first; i < first + (left < tile_columns ? left : tile_columns); ++i) {
            if (found == n_near && scores[i] >= workspace.near_scores[n_near - 1]) continue;
            size_t place = found < n_near ? found++ : n_near - 1;
            for (; place > 0 && workspace.near_scores[place - 1] > scores[i]; --place) {
                workspace.near_scores[place] = workspace.near_scores[place - 1];
                workspace.near[place] = workspace.near[place - 1];
            }
            workspace.near_scores[place] = scores[i];
            workspace.near[place] = uint32_t(i);
        }
    }
}

// The blend weights of the nearest points of a row; return their sum before normalisation.
float find_blend_weights(Workspace& workspace) {
    float total = 0;
    const size_t n = workspace.job.n_blended;
    for (size_t j = 0; j < n; ++j)
        total += workspace.weights[j] = workspace.near_scores[n] - workspace.near_scores[j];
    for (size_t j = 0; j < n; ++j)
        workspace.weights[j] = total > min_total_weight ? workspace.weights[j] / total : 1.0f / n;
    return total;
}

// The values of one point's functions at `shift` from its anchor.
void evaluate_point(const Workspace& workspace, size_t point, const float* shift, float* out) {
    const size_t r = workspace.job.n_search, q = workspace.n_outputs;
    const float *slopes = workspace.slopes.values + point * r * q,
                *offsets = workspace.offsets.values + point * q;
    if (q == 1) {
        out[0] = offsets[0] + dot(slopes, shift, r);
        return;
    }
    for (size_t first = 0; first < q; first += vector_width) {
        Vector even = load(offsets + first), odd = {};
        size_t a = 0;
        for (; a + 2 <= r; a += 2) {
            even += shift[a] * load(slopes + a * q + first);
            odd += shift[a + 1] * load(slopes + (a + 1) * q + first);
        }
        if (a < r) even += shift[a] * load(slopes + a * q + first);
        store(out + first, even + odd);
    }
}

// The values of a row of the batch.
void evaluate(Workspace& workspace, size_t row) {
    const TrainJob& job = workspace.job;
    const size_t q = workspace.n_outputs, r = job.n_search;
    const float *base = workspace.base_values(row), *search = workspace.search(row);
    for (size_t c = 0; c < job.n_outputs; ++c)
        workspace.values[c] = job.parameters.base_offsets[c] + base[c];
    if (job.n_points == 1) return;
    for (size_t j = 0; j < job.n_blended; ++j) {
        const float* anchor = job.anchors + workspace.near[j] * r;
        float *shift = workspace.shift + j * r, *local = workspace.local + j * q;
        for (size_t a = 0; a < r; ++a) shift[a] = (search[a] - anchor[a]) * job.inverse_radius;
        evaluate_point(workspace, workspace.near[j], shift, local);
        add(workspace.values, local, workspace.weights[j], job.n_outputs);
    }
}

// Cross-entropy against the source's probabilities, and its derivative by the values.
double row_loss_and_gradient(Workspace& workspace, const float* targets, float scale) {
    const size_t q = workspace.job.n_outputs;
    const float* v = workspace.values;
    if (q == 1) {
        workspace.gradient[0] = scale * (1 / (1 + expf(-v[0])) - targets[0]);
        return log1pf(expf(-fabsf(v[0]))) + fmaxf(v[0], 0.0f) - targets[0] * v[0];
    }
    float most = v[0], sum = 0;
    for (size_t c = 1; c < q; ++c) most = fmaxf(most, v[c]);
    for (size_t c = 0; c < q; ++c) sum += workspace.gradient[c] = expf(v[c] - most);
    const float log_sum = logf(sum) + most;
    double loss = 0;
    for (size_t c = 0; c < q; ++c) {
        loss += targets[c] * (log_sum - v[c]);
        workspace.gradient[c] = scale * (workspace.gradient[c] / sum - targets[c]);
    }
    return loss;
}

// Derivative of the loss by the points, through the blend weights: each score is compared with that
// of the next point after the blended ones. With components the projection of the row is trained
// too, and the same derivative, negated, is added to `row_gradient`.
void add_point_gradient(Workspace& workspace, const float* search, float* row_gradient, float total,
                        float mean_weight_gradient) {
    const TrainJob& job = workspace.job;
    const size_t n = job.n_blended;
    float rest = 0;
    for (size_t j = 0; j <= n; ++j) {
        const float change =
            j < n ? (workspace.weight_gradients[j] - mean_weight_gradient) / total : -rest;
        rest += j < n ? change : 0;
        const size_t i = workspace.near[j];
        float* gradient = workspace.points.gradient + i * job.n_search;
        for (size_t a = 0; a < job.n_search; ++a) {
            const float part = change * (job.parameters.points[i * job.n_search + a] - search[a]);
            gradient[a] -= part;
            if (row_gradient) row_gradient[a] += part;
        }
    }
}

// Derivative of the loss by the projection of a row, through the local functions.
void find_row_gradient(Workspace& workspace, float* row_gradient) {
    const TrainJob& job = workspace.job;
    const size_t q = workspace.n_outputs, r = job.n_search;
    for (size_t a = 0; a < r; ++a) row_gradient[a] = 0;
    for (size_t j = 0; j < job.n_blended; ++j) {
        const float* slopes = workspace.slopes.values + workspace.near[j] * r * q;
        const float scale = workspace.weights[j] * job.inverse_radius;
        if (q == 1)
            add(row_gradient, slopes, scale * workspace.gradient[0], r);
        else
            for (size_t a = 0; a < r; ++a)
                row_gradient[a] += scale * dot(slopes + a * q, workspace.gradient, q);
    }
}

// Add the contribution of a row to the gradients of one point's functions.
void add_function_gradient(Workspace& workspace, size_t near, float weight) {
    const size_t q = workspace.n_outputs, r = workspace.job.n_search, point = workspace.near[near];
    float *slopes = workspace.slopes.gradient + point * r * q,
          *offsets = workspace.offsets.gradient + point * q;
    const float* shift = workspace.shift + near * r;
    add(offsets, workspace.gradient, weight, q);
    if (q == 1)
        add(slopes, shift, weight * workspace.gradient[0], r);
    else
        for (size_t a = 0; a < r; ++a)
            add(slopes + a * q, workspace.gradient, weight * shift[a], q);
}

// Add the contribution of a row to the gradients; those of the functions of all features are added
// for the whole batch.
void accumulate_gradient(Workspace& workspace, size_t row, float total) {
    const TrainJob& job = workspace.job;
    float* feature_gradient = workspace.feature_gradient + row * workspace.n_feature_functions;
    for (size_t c = 0; c < job.n_outputs; ++c) {
        feature_gradient[workspace.n_components + c] = workspace.gradient[c];
        workspace.base_offsets.gradient[c] += workspace.gradient[c];
    }
    if (job.n_points == 1) return;
    float mean_weight_gradient = 0;
    for (size_t j = 0; j < job.n_blended; ++j) {
        workspace.weight_gradients[j] =
            dot(workspace.gradient, workspace.local + j * workspace.n_outputs, job.n_outputs);
        mean_weight_gradient += workspace.weights[j] * workspace.weight_gradients[j];
        add_function_gradient(workspace, j, workspace.weights[j]);
    }
    if (job.parameters.components) find_row_gradient(workspace, feature_gradient);
    if (job.n_blended > 1 && total > min_total_for_gradient)
        add_point_gradient(workspace, workspace.search(row),
                           job.parameters.components ? feature_gradient : nullptr, total,
                           mean_weight_gradient);
}

// Add the gradients of a batch; return the sum of its weighted losses.
double batch_loss_and_gradient(Workspace& workspace, const uint32_t* order, size_t n) {
    const TrainJob& job = workspace.job;
    double loss = 0;
    const bool is_local = job.n_points > 1;
    load_batch(workspace, order, n);
    if (is_local) pack_points(workspace);
    for (size_t r = 0; r < n; ++r) {
        const size_t number = order[r];
        if (is_local && r % tile_rows == 0) scan(workspace, r, n - r);
        if (is_local) find_nearest(workspace, r % tile_rows);
        const float total = is_local ? find_blend_weights(workspace) : 0,
                    weight = job.weights[number];
        evaluate(workspace, r);
        loss += weight * row_loss_and_gradient(workspace, job.targets + number * job.n_outputs,
                                               weight / float(n));
        accumulate_gradient(workspace, r, total);
    }
    multiply_back(workspace.feature_gradient, workspace.n_feature_functions,
                  workspace.n_components + job.n_outputs, workspace.rows, workspace.n_features, n,
                  workspace.feature_functions.gradient);
    return loss;
}

// Linear warm-up, then cosine decay to zero.
inline float learning_rate_factor(double done) {
    if (done < warm_up_share) return float(done / warm_up_share);
    return float(0.5 * (1 + cos(M_PI * (done - warm_up_share) / (1 - warm_up_share))));
}

void step_all(Workspace& workspace, size_t step, size_t n_steps) {
    const float first = float(1 - pow(beta1, double(step)));
    const float second = float(1 - pow(beta2, double(step)));
    const float factor = learning_rate_factor(double(step) / double(n_steps));
    workspace.base_slopes.step(factor, first, second);
    workspace.base_offsets.step(factor, first, second);
    if (workspace.job.n_points == 1) return;
    workspace.slopes.step(factor, first, second);
    workspace.offsets.step(factor, first, second);
    if (workspace.points.rate > 0) workspace.points.step(factor, first, second);
    if (workspace.job.parameters.components) workspace.components.step(factor, first, second);
}

void shuffle(uint32_t* order, size_t n, Random& random) {
    for (size_t i = n; i > 1; --i) {
        const uint32_t other = random.below(uint32_t(i)), kept = order[other];
        order[other] = order[i - 1];
        order[i - 1] = kept;
    }
}

double train(const TrainJob& job, float* memory, uint32_t* order) {
    Workspace workspace(job, memory);
    Random random(job.seed);
    workspace.read_parameters();
    const size_t steps_per_epoch = (job.n_rows + job.n_batch - 1) / job.n_batch;
    double loss = 0, weight = 0;
    for (size_t i = 0; i < job.n_rows; ++i) order[i] = uint32_t(i), weight += job.weights[i];
    for (size_t epoch = 0, step = 0; epoch < job.n_epochs; ++epoch) {
        shuffle(order, job.n_rows, random);
        loss = 0;
        for (size_t first = 0; first < job.n_rows; first += job.n_batch) {
            const size_t left = job.n_rows - first;
            loss += batch_loss_and_gradient(workspace, order + first,
                                            left < job.n_batch ? left : job.n_batch);
            step_all(workspace, ++step, steps_per_epoch * job.n_epochs);
        }
    }
    workspace.write_parameters();
    return loss / weight;
}

double loss_and_gradient(const TrainJob& job, const TrainParameters& gradient, float* memory,
                         uint32_t* order) {
    Workspace workspace(job, memory);
    workspace.read_parameters();
    for (size_t i = 0; i < job.n_batch; ++i) order[i] = uint32_t(i);
    const double loss = batch_loss_and_gradient(workspace, order, job.n_batch);
    workspace.write_gradient(gradient);
    return loss / double(job.n_batch);
}

size_t workspace_size(const TrainJob& job) { return Workspace(job, nullptr).size; }

}  // namespace

extern const Trainer LIMES_OF_LEVEL(trainer);
const Trainer LIMES_OF_LEVEL(trainer) = {&workspace_size, &train, &loss_and_gradient};

}  // namespace limes
