// Trainer of one SIMD level: Adam on the cross-entropy between a map and its source.
//
// The rows of a batch are grouped by point: the pairs of a row and one of its nearest points are
// sorted by point, so that the local functions of a point are read, evaluated for all its rows, and
// later trained, in one go.
#include "trainer_workspace.hpp"
#include "types.hpp"

namespace limes {
namespace {

// Below these sums of weights, points are equally near: they get equal weights, and no gradient
// passes through the weights.
constexpr float min_total_weight = 1e-12f, min_total_for_gradient = 1e-6f;

constexpr float warm_up_share = 0.05f;  // of all steps
constexpr double loss_share = 0.1;      // of all steps: the last ones, whose mean loss is returned

// Keys hold the index of a point in their low bits; above this number the rest is too coarse.
constexpr size_t max_keyed_points = 4096;

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

// ---- Inputs of the base function ----

// The curved inputs of a row from its terms v, which are followed by a vector of zeros. Vectors
// that reach past the end of a part are overwritten by the next part, and at last by zeros.
void make_curved_inputs(const Workspace& workspace, const float* v, float* out) {
    const CurvedInputs& curved = workspace.job.curved;
    const size_t n = curved.n_terms;
    Floats<width> squares = {};
    for (size_t i = 0; i < n; i += width) squares += load<width>(v + i) * load<width>(v + i);
    const float fall = 1 + curved.decay * sum_of<width>(squares)[0] / float(n);
    const float envelope = 1 / (fall * fall);
    const float *mean = workspace.means, *inverse = workspace.inverse_deviations;
    size_t place = 0;
    const auto put = [&](Floats<width> raw, size_t n_used) {
        store<width>(out + place, (raw - load<width>(mean + place)) * load<width>(inverse + place));
        place += n_used < width ? n_used : width;
    };
    put(broadcast<width>(envelope), 1);
    for (size_t j = 0; j < n; j += width) put(envelope * load<width>(v + j), n - j);
    if (curved.shape == BaseShape::diagonal)
        for (size_t j = 0; j < n; j += width)
            put(envelope * load<width>(v + j) * load<width>(v + j), n - j);
    if (curved.shape == BaseShape::quadratic)
        for (size_t i = 0; i < n; ++i)
            for (size_t j = i; j < n; j += width) put(envelope * v[i] * load<width>(v + j), n - j);
    const size_t n_spare = workspace.n_inputs - workspace.constant;
    out[place] = 1;
    for (size_t i = 1; i < n_spare; ++i) out[place + i] = 0;
}

void add_curved_inputs(Workspace& workspace, size_t n) {
    const CurvedInputs& curved = workspace.job.curved;
    const size_t d = workspace.n_features, n_terms = workspace.n_terms;
    for (size_t r = 0; r < n; ++r) {
        const float* row = workspace.inputs + r * workspace.input_stride;
        float* to = curved.directions ? workspace.centred + r * d : workspace.terms + r * n_terms;
        const float scale = curved.directions ? 1 : curved.scale;
        for (size_t k = 0; k < d; k += width)
            store<width>(to + k,
                         scale * (load<width>(row + k) - load<width>(workspace.center + k)));
    }
    if (curved.directions)
        multiply(workspace.centred, d, n, workspace.directions, d, curved.n_terms, d,
                 workspace.terms, n_terms);
    for (size_t r = 0; r < n; ++r)
        make_curved_inputs(workspace, workspace.terms + r * n_terms,
                           workspace.inputs + r * workspace.input_stride + d);
}

// Copy the rows and targets of a batch, and evaluate the base function and the components.
void load_batch(Workspace& workspace, const uint32_t* order, size_t n) {
    const TrainJob& job = workspace.job;
    const size_t q = job.n_outputs, columns = workspace.n_columns;
    constexpr size_t n_ahead = 8, line = 64 / sizeof(float);
    for (size_t r = 0; r < n; ++r) {
        for (size_t k = 0; r + n_ahead < n && k < job.n_features; k += line)
            __builtin_prefetch(job.rows + order[r + n_ahead] * job.n_features + k);
        memcpy(workspace.inputs + r * workspace.input_stride, job.rows + order[r] * job.n_features,
               job.n_features * sizeof(float));
        memcpy(workspace.targets + r * columns, job.targets + order[r] * q, q * sizeof(float));
    }
    if (workspace.constant > workspace.n_features) add_curved_inputs(workspace, n);
    multiply(workspace.inputs, workspace.input_stride, n, workspace.base.values,
             workspace.input_stride, q, workspace.n_inputs, workspace.values, columns);
    if (workspace.is_local && job.parameters.components)
        multiply(workspace.inputs, workspace.input_stride, n, workspace.components.values,
                 workspace.n_features, job.n_search, workspace.n_features, workspace.projected,
                 workspace.n_shift);
}

// ---- Nearest points ----

// Half the squared distances between all points and a block of rows, one in each lane.
void find_scores(Workspace& workspace, size_t first, size_t n) {
    const size_t r = workspace.job.n_search, m = workspace.job.n_points;
    const float* points = workspace.job.parameters.points;
    for (size_t row = 0; row < block_rows; ++row) {
        const float* search =
            workspace.search() + (first + (row < n ? row : 0)) * workspace.search_stride();
        for (size_t a = 0; a < r; ++a) workspace.panel[a * block_rows + row] = search[a];
    }
    Floats<width> squares[block_vectors] = {};
    for (size_t a = 0; a < r; ++a)
        for (size_t v = 0; v < block_vectors; ++v) {
            const Floats<width> z = load<width>(workspace.panel + a * block_rows + v * width);
            squares[v] += 0.5f * z * z;
        }
    for (size_t i = 0; i < m; i += tile_points) {
        const float* point[tile_points];
        for (size_t p = 0; p < tile_points; ++p) point[p] = points + (i + p < m ? i + p : i) * r;
        Floats<width> sums[tile_points][block_vectors] = {};
        for (size_t a = 0; a < r; ++a)
            for (size_t v = 0; v < block_vectors; ++v) {
                const Floats<width> z = load<width>(workspace.panel + a * block_rows + v * width);
                for (size_t p = 0; p < tile_points; ++p) sums[p][v] += point[p][a] * z;
            }
        for (size_t p = 0; p < tile_points && i + p < m; ++p)
            for (size_t v = 0; v < block_vectors; ++v) {
                const Floats<width> score = squares[v] + workspace.half_squares[i + p] - sums[p][v];
                // A NaN becomes 0 too.
                store<width>(workspace.scores + (i + p) * block_rows + v * width,
                             score > 0.0f ? score : Floats<width>{});
            }
    }
}

// The n_sorted nearest points of each row of a vector of the block, in order: keys[near][row].
// A key is the bits of a score with the index in place of the lowest.
void sort_points(const Workspace& workspace, size_t vector, int32_t index_mask, int32_t* keys) {
    const size_t m = workspace.job.n_points;
    const Integers<width> none = Integers<width>{} + INT32_MAX;
    Integers<width> sorted[n_sorted], others[n_sorted];
    for (size_t j = 0; j < n_sorted; ++j) sorted[j] = none;
    for (size_t i = 0; i < m; i += n_sorted) {
        for (size_t p = 0; p < n_sorted; ++p) {
            others[p] = none;
            if (i + p >= m) continue;
            const float* scores = workspace.scores + (i + p) * block_rows + vector * width;
            others[p] = (Integers<width>(load<width>(scores)) & ~index_mask) | int32_t(i + p);
        }
        keep_lowest(sorted, others);
    }
    memcpy(keys, sorted, sizeof sorted);
}

// The n_near nearest points of a row of the block in order, the lowest index first among equals:
// for many neighbours or points.
void insert_points(Workspace& workspace, size_t row, uint32_t* near) {
    const size_t n_near = workspace.n_near;
    float* near_scores = workspace.near_scores;
    size_t found = 0;
    for (size_t i = 0; i < workspace.job.n_points; ++i) {
        const float score = workspace.scores[i * block_rows + row];
        if (found == n_near && score >= near_scores[n_near - 1]) continue;
        size_t place = found < n_near ? found++ : n_near - 1;
        for (; place > 0 && near_scores[place - 1] > score; --place) {
            near_scores[place] = near_scores[place - 1];
            near[place] = near[place - 1];
        }
        near_scores[place] = score;
        near[place] = uint32_t(i);
    }
}

// The blend weights of the nearest points of a row, the farthest of which is moved to the end.
void find_blend_weights(Workspace& workspace, size_t row, size_t block_row) {
    const size_t n = workspace.job.n_blended;
    uint32_t* near = workspace.near + row * workspace.n_near;
    float *scores = workspace.near_scores, *weights = workspace.weights + row * workspace.n_near;
    for (size_t j = 0; j <= n; ++j) scores[j] = workspace.scores[near[j] * block_rows + block_row];
    // Keys may have the wrong order where two scores differ in the bits of the index only.
    for (size_t j = 0; j < n; ++j)
        if (scores[j] > scores[n]) {
            const float score = scores[j];
            const uint32_t point = near[j];
            scores[j] = scores[n], near[j] = near[n];
            scores[n] = score, near[n] = point;
        }
    float total = 0;
    for (size_t j = 0; j < n; ++j) total += scores[n] - scores[j];
    const float inverse = 1 / total;
    for (size_t j = 0; j < n; ++j)
        weights[j] = total > min_total_weight ? (scores[n] - scores[j]) * inverse : 1.0f / float(n);
    weights[n] = 0;
    workspace.inverse_totals[row] = n > 1 && total > min_total_for_gradient ? inverse : 0;
}

// The nearest points of all rows of the batch, and their weights.
void find_neighbours(Workspace& workspace, size_t n) {
    const size_t r = workspace.job.n_search, m = workspace.job.n_points;
    const size_t n_near = workspace.n_near;
    for (size_t i = 0; i < m; ++i) {
        const float* point = workspace.job.parameters.points + i * r;
        float sum = 0;
        for (size_t a = 0; a < r; ++a) sum += point[a] * point[a];
        workspace.half_squares[i] = 0.5f * sum;
    }
    int32_t index_mask = 1;
    while (size_t(index_mask) < m - 1) index_mask = 2 * index_mask + 1;
    const bool is_keyed = n_near <= n_sorted && m <= max_keyed_points;
    int32_t keys[n_sorted * width];
    for (size_t first = 0; first < n; first += block_rows) {
        find_scores(workspace, first, n - first);
        for (size_t row = 0; row < block_rows && first + row < n; ++row) {
            uint32_t* near = workspace.near + (first + row) * n_near;
            if (is_keyed && row % width == 0) sort_points(workspace, row / width, index_mask, keys);
            if (is_keyed)
                for (size_t j = 0; j < n_near; ++j)
                    near[j] = uint32_t(keys[j * width + row % width] & index_mask);
            else
                insert_points(workspace, row, near);
            find_blend_weights(workspace, first + row, row);
        }
    }
}

// Sort the pairs of rows and nearest points by point.
void sort_pairs(Workspace& workspace, size_t n) {
    const size_t n_pairs = n * workspace.n_near, m = workspace.job.n_points;
    uint32_t* starts = workspace.starts;
    for (size_t i = 0; i <= m; ++i) starts[i] = 0;
    for (size_t pair = 0; pair < n_pairs; ++pair) ++starts[workspace.near[pair]];
    uint32_t before = 0;
    for (size_t i = 0; i <= m; ++i) {
        const uint32_t count = starts[i];
        starts[i] = before, before += count;
    }
    for (size_t row = 0, pair = 0; row < n; ++row)
        for (size_t j = 0; j < workspace.n_near; ++j, ++pair) {
            const uint32_t place = starts[workspace.near[pair]]++;
            workspace.places[pair] = place;
            workspace.pair_rows[place] = uint32_t(row);
        }
    // Each start has moved to the next.
    for (size_t i = m; i > 0; --i) starts[i] = starts[i - 1];
    starts[0] = 0;
}

// ---- Local functions; a vector has n outputs ----

// The rows of the pairs of a point relative to its anchor, in units of the radius, and 1.
void find_shifts(Workspace& workspace, size_t point) {
    const size_t r = workspace.job.n_search, stride = workspace.search_stride();
    const float *anchor = workspace.anchors + point * workspace.n_shift,
                *search = workspace.search();
    const float scale = workspace.job.inverse_radius;
    const size_t n_pairs = workspace.starts[point + 1] - workspace.starts[point];
    const uint32_t* rows = workspace.pair_rows + workspace.starts[point];
    float* shift = workspace.shifts;
    for (size_t pair = 0; pair < n_pairs; ++pair, shift += workspace.n_shift) {
        const float* row = search + rows[pair] * stride;
        for (size_t a = 0; a < r; a += width)
            store<width>(shift + a, scale * (load<width>(row + a) - load<width>(anchor + a)));
        shift[r] = 1;
    }
}

// The values of n_vectors of a point's functions for a tile of its pairs.
template <size_t n, size_t n_vectors, size_t n_tile>
inline void evaluate_tile(const Workspace& workspace, const float* functions, const float* shifts,
                          float* out) {
    const size_t columns = workspace.n_columns, stride = workspace.n_shift;
    const size_t r = workspace.job.n_search;
    Floats<n> sums[n_tile][n_vectors];
    for (size_t p = 0; p < n_tile; ++p)  // the offsets are the last term
        for (size_t v = 0; v < n_vectors; ++v)
            sums[p][v] = load<n>(functions + r * columns + v * n);
    for (size_t a = 0; a < r; ++a) {
        Floats<n> slopes[n_vectors];
        for (size_t v = 0; v < n_vectors; ++v) slopes[v] = load<n>(functions + a * columns + v * n);
        for (size_t p = 0; p < n_tile; ++p)
            for (size_t v = 0; v < n_vectors; ++v) sums[p][v] += shifts[p * stride + a] * slopes[v];
    }
    for (size_t p = 0; p < n_tile; ++p)
        for (size_t v = 0; v < n_vectors; ++v) store<n>(out + p * columns + v * n, sums[p][v]);
}

// A tile may reach past the pairs of the point: those of the next point are evaluated later.
template <size_t n, size_t n_vectors>
inline void evaluate_pairs(const Workspace& workspace, size_t point, size_t column) {
    constexpr size_t n_tile = local_tile(n_vectors);
    const size_t columns = workspace.n_columns;
    const size_t first = workspace.starts[point], n_pairs = workspace.starts[point + 1] - first;
    const float* functions =
        workspace.local.values + point * (workspace.job.n_search + 1) * columns + column;
    for (size_t p = 0; p < n_pairs; p += n_tile) {
        const float* shifts = workspace.shifts + p * workspace.n_shift;
        float* out = workspace.pair_values + (first + p) * columns + column;
        if (n_pairs - p > n_tile / 2)
            evaluate_tile<n, n_vectors, n_tile>(workspace, functions, shifts, out);
        else
            evaluate_tile<n, n_vectors, n_tile / 2>(workspace, functions, shifts, out);
    }
}

// The values of all pairs.
template <size_t n>
void evaluate_local(Workspace& workspace) {
    const size_t columns = workspace.n_columns;
    for (size_t i = 0; i < workspace.job.n_points; ++i) {
        find_shifts(workspace, i);
        size_t c = 0;
        for (; c + 2 * n <= columns; c += 2 * n) evaluate_pairs<n, 2>(workspace, i, c);
        if (c < columns) evaluate_pairs<n, 1>(workspace, i, c);
    }
}

// ---- Loss ----

// Add the blended local functions to the base values of a row.
template <size_t n>
inline void blend(const Workspace& workspace, size_t row) {
    const size_t columns = workspace.n_columns, first = row * workspace.n_near;
    for (size_t c = 0; c < columns; c += n) {
        Floats<n> sum = load<n>(workspace.values + row * columns + c);
        for (size_t j = first; j < first + workspace.job.n_blended; ++j)
            sum += workspace.weights[j] *
                   load<n>(workspace.pair_values + workspace.places[j] * columns + c);
        store<n>(workspace.values + row * columns + c, sum);
    }
}

// Cross-entropy of a row against the source's probabilities, and its gradient by the values.
template <size_t n>
inline float row_loss_and_gradient(const Workspace& workspace, size_t row, float scale) {
    const size_t columns = workspace.n_columns;
    const float *values = workspace.values + row * columns,
                *targets = workspace.targets + row * columns;
    float* gradient = workspace.gradient + row * columns;
    Floats<n> most = load<n>(values), sum = {}, loss = {}, target_sum = {};
    for (size_t c = n; c < columns; c += n) {
        const Floats<n> next = load<n>(values + c);
        most = next > most ? next : most;
    }
    most = max_of<n>(most);
    for (size_t c = 0; c < columns; c += n) {
        const Floats<n> below = load<n>(values + c) - most, target = load<n>(targets + c);
        const Floats<n> power = exponential<n>(below);
        store<n>(gradient + c, power);
        sum += power;
        loss -= target * below;
        target_sum += target;
    }
    sum = sum_of<n>(sum);
    const float inverse = 1 / sum[0];
    for (size_t c = 0; c < columns; c += n)
        store<n>(gradient + c, scale * load<n>(workspace.is_output + c) *
                                   (inverse * load<n>(gradient + c) - load<n>(targets + c)));
    return sum_of<n>(loss)[0] + sum_of<n>(target_sum)[0] * logf(sum[0]);
}

// The same for all rows of a map with one output, the logit of the second of two classes.
double losses_of_one_output(Workspace& workspace, size_t n_rows) {
    const size_t columns = workspace.n_columns;
    const float scale = 1 / float(n_rows);
    double loss = 0;
    for (size_t first = 0; first < n_rows; first += width) {
        const size_t n = n_rows - first < width ? n_rows - first : width;
        float numbers[4][width] = {};
        for (size_t i = 0; i < n; ++i) {
            numbers[0][i] = workspace.values[(first + i) * columns];
            numbers[1][i] = workspace.targets[(first + i) * columns];
        }
        const Floats<width> value = load<width>(numbers[0]), target = load<width>(numbers[1]);
        const Floats<width> magnitude = value > 0.0f ? value : -value;
        const Floats<width> power = exponential<width>(-magnitude), inverse = 1 / (1 + power);
        const Floats<width> probability = value > 0.0f ? inverse : power * inverse;
        store<width>(numbers[2], scale * (probability - target));
        store<width>(numbers[3], (value > 0.0f ? value : Floats<width>{}) - target * value);
        double product = 1;  // of at most `width` numbers between 1 and 2
        for (size_t i = 0; i < n; ++i) {
            workspace.gradient[(first + i) * columns] = numbers[2][i];
            product *= 1 + power[i];
            loss += numbers[3][i];
        }
        loss += log(product);
    }
    return loss;
}

// Replace the values of the pairs of a row by the gradient by them; in the column of the point by
// that by the score of the point, through the blend weights: each score is compared with that of
// the last point.
template <size_t n>
inline void find_pair_gradients(const Workspace& workspace, size_t row) {
    const size_t columns = workspace.n_columns, n_blended = workspace.job.n_blended;
    const float *gradient = workspace.gradient + row * columns,
                *weights = workspace.weights + row * workspace.n_near;
    const uint32_t* places = workspace.places + row * workspace.n_near;
    const float inverse_total = workspace.inverse_totals[row];
    const auto by_weight = [&](size_t j) {
        Floats<n> sum = {};
        for (size_t c = 0; c < columns; c += n)
            sum += load<n>(gradient + c) * load<n>(workspace.pair_values + places[j] * columns + c);
        return sum_of<n>(sum)[0];
    };
    float* by_weights = workspace.near_scores;
    float mean = 0, rest = 0;
    for (size_t j = 0; j < n_blended; ++j) mean += weights[j] * (by_weights[j] = by_weight(j));
    for (size_t j = 0; j <= n_blended; ++j) {
        const float change = j < n_blended ? (by_weights[j] - mean) * inverse_total : -rest;
        float* to = workspace.pair_values + places[j] * columns;
        for (size_t c = 0; c < columns; c += n)
            store<n>(to + c, weights[j] * load<n>(gradient + c));
        to[workspace.job.n_outputs] = change;
        rest += change;
    }
}

// ---- Training of local functions ----

// Add the gradient by the projections of n_tile rows of a point.
template <size_t n_tile>
inline void add_projected_tile(const Workspace& workspace, size_t pair, const float* shift) {
    const size_t stride = workspace.n_shift, columns = workspace.n_columns;
    const size_t r = workspace.job.n_search, q = workspace.job.n_outputs;
    const float *by_value = workspace.pair_values + pair * columns,
                *transposed = workspace.transposed;
    const float radius = 1 / workspace.job.inverse_radius;
    float* to[n_tile];
    for (size_t p = 0; p < n_tile; ++p)
        to[p] = workspace.projected_gradient + workspace.pair_rows[pair + p] * stride;
    for (size_t a = 0; a < r; a += width) {
        Floats<width> sums[n_tile];
        for (size_t p = 0; p < n_tile; ++p)
            sums[p] = load<width>(to[p] + a) -
                      radius * by_value[p * columns + q] * load<width>(shift + p * stride + a);
        for (size_t c = 0; c <= q; ++c) {
            const Floats<width> slopes = load<width>(transposed + c * stride + a);
            for (size_t p = 0; p < n_tile; ++p) sums[p] += by_value[p * columns + c] * slopes;
        }
        for (size_t p = 0; p < n_tile; ++p) store<width>(to[p] + a, sums[p]);
    }
}

// Transpose the functions of a point to [column][search]; slopes become those by the projection.
// What lies around them in memory is read, but not used.
void transpose_functions(Workspace& workspace, size_t point) {
    const size_t r = workspace.job.n_search, q = workspace.job.n_outputs;
    const size_t columns = workspace.n_columns;
    const float* functions = workspace.local.values + point * (r + 1) * columns;
    for (size_t c = 0; c <= q; c += width)
        for (size_t a = 0; a < r; a += width) {
            Floats<width> tile[width];
            for (size_t i = 0; i < width; ++i)
                tile[i] = load<width>(functions + (a + i) * columns + c);
            transpose<width>(tile);
            for (size_t i = 0; i < width; ++i)
                store<width>(workspace.transposed + (c + i) * workspace.n_shift + a,
                             tile[i] * (c + i < q ? workspace.job.inverse_radius : 1));
        }
}

// Add the gradient by the projections of the rows of a point.
void add_projected_gradient(Workspace& workspace, size_t point) {
    constexpr size_t n_tile = 4;
    const size_t stride = workspace.n_shift, last = workspace.starts[point + 1];
    const float* shift = workspace.shifts;
    size_t pair = workspace.starts[point];
    transpose_functions(workspace, point);
    for (; pair + n_tile <= last; pair += n_tile, shift += n_tile * stride)
        add_projected_tile<n_tile>(workspace, pair, shift);
    for (; pair < last; ++pair, shift += stride) add_projected_tile<1>(workspace, pair, shift);
}

// Sum the gradients of n_terms terms of a point's functions over its pairs, and train them.
template <size_t n, size_t n_vectors, size_t n_terms>
inline void train_terms(const Workspace& workspace, size_t point, size_t term, size_t column,
                        float score_sum, const AdamStep& step) {
    const size_t columns = workspace.n_columns, stride = workspace.n_shift;
    const size_t r = workspace.job.n_search, first = workspace.starts[point];
    const size_t n_pairs = workspace.starts[point + 1] - first;
    const float *by_value = workspace.pair_values + first * columns + column,
                *shift = workspace.shifts + term;
    Floats<n> sums[n_terms][n_vectors];
    for (size_t a = 0; a < n_terms; ++a)
        for (size_t v = 0; v < n_vectors; ++v) sums[a][v] = Floats<n>{};
    for (size_t p = 0; p < n_pairs; ++p, by_value += columns, shift += stride) {
        Floats<n> factor[n_vectors];
        for (size_t v = 0; v < n_vectors; ++v) factor[v] = load<n>(by_value + v * n);
        for (size_t a = 0; a < n_terms; ++a)
            for (size_t v = 0; v < n_vectors; ++v) sums[a][v] += shift[a] * factor[v];
    }
    const ParameterGroup group = workspace.local.at((point * (r + 1) + term) * columns + column);
    const AdamStep adam = step;
#pragma GCC unroll 2  // keeps the sums in registers
    for (size_t v = 0; v < n_vectors; ++v) {
        const size_t c = column + v * n;
        const Floats<n> rate = load<n>(workspace.rates + c),
                        shrink = load<n>(workspace.shrinks + c),
                        scale = load<n>(workspace.column_scale + c),
                        offset_scale = load<n>(workspace.is_output + c),
                        by_score = score_sum * load<n>(workspace.is_point + c);
#pragma GCC unroll 8
        for (size_t a = 0; a < n_terms; ++a) {
            if (term + a > r) break;
            const ParameterGroup here = group.at(a * columns + v * n);
            const Floats<n> gradient = term + a == r
                                           ? sums[a][v] * offset_scale
                                           : sums[a][v] * scale - by_score * load<n>(here.values);
            adam.apply<n>(here, gradient, rate, shrink);
        }
    }
}

template <size_t n, size_t n_vectors>
inline void train_columns(const Workspace& workspace, size_t point, size_t column, float score_sum,
                          const AdamStep& step) {
    constexpr size_t n_tile = local_tile(n_vectors);
    const size_t n_terms = workspace.job.n_search + 1;
    for (size_t a = 0; a < n_terms; a += n_tile)
        if (n_terms - a > n_tile / 2)
            train_terms<n, n_vectors, n_tile>(workspace, point, a, column, score_sum, step);
        else
            train_terms<n, n_vectors, n_tile / 2>(workspace, point, a, column, score_sum, step);
}

// Train the points and their local functions, one point after another.
template <size_t n>
void train_local(Workspace& workspace, const AdamStep& step, size_t n_rows) {
    const size_t r = workspace.job.n_search, q = workspace.job.n_outputs;
    if (workspace.trains_components)
        memset(workspace.projected_gradient, 0, n_rows * workspace.n_shift * sizeof(float));
    for (size_t i = 0; i < workspace.job.n_points; ++i) {
        find_shifts(workspace, i);
        if (workspace.trains_components) add_projected_gradient(workspace, i);
        float score_sum = 0;
        for (size_t pair = workspace.starts[i]; pair < workspace.starts[i + 1]; ++pair)
            score_sum += workspace.pair_values[pair * workspace.n_columns + q];
        size_t c = 0;
        for (; c + 2 * n <= workspace.n_columns; c += 2 * n)
            train_columns<n, 2>(workspace, i, c, score_sum, step);
        if (c < workspace.n_columns) train_columns<n, 1>(workspace, i, c, score_sum, step);
        if (workspace.rates[q] == 0) continue;
        for (size_t a = 0; a < r; ++a)
            workspace.job.parameters.points[i * r + a] =
                workspace.anchors[i * workspace.n_shift + a] +
                workspace.distance(workspace.local.values, i, a);
    }
}

// ---- Batches ----

// Set the rates of the columns: points are not shrunk, and padding is not trained.
void set_rates(Workspace& workspace, const AdamStep& step) {
    const TrainJob& job = workspace.job;
    const float factor = step.rate_factor;
    for (size_t c = 0; c < workspace.n_columns; ++c) {
        const float rate = c < job.n_outputs    ? job.local_rate
                           : c == job.n_outputs ? fmaxf(job.point_rate, 0)
                                                : 0;
        workspace.rates[c] = rate * factor * step.mean_scale;
        workspace.shrinks[c] = c < job.n_outputs ? 1 - rate * factor * job.weight_decay : 1;
    }
}

// Train functions of the inputs by the gradient by their values.
void train_functions(const Workspace& workspace, const float* gradient, size_t gradient_stride,
                     size_t n_rows, size_t n_functions, const ParameterGroup& group, size_t stride,
                     size_t n_terms, float rate, const AdamStep& step) {
    const Floats<width> rates = broadcast<width>(rate * step.rate_factor * step.mean_scale);
    multiply_back(
        gradient, gradient_stride, n_rows, n_functions, workspace.inputs, workspace.input_stride,
        n_terms, [&](size_t function, size_t term, Floats<width> sum) {
            step.apply<width>(group.at(function * stride + term), sum, rates, broadcast<width>(1));
        });
}

// Train on a batch; return the sum of its losses.
template <size_t n>
double train_batch(Workspace& workspace, const uint32_t* order, size_t n_rows,
                   const AdamStep& step) {
    const TrainJob& job = workspace.job;
    load_batch(workspace, order, n_rows);
    if (workspace.is_local) {
        find_neighbours(workspace, n_rows);
        sort_pairs(workspace, n_rows);
        evaluate_local<n>(workspace);
    }
    double loss = 0;
    // In three loops, short enough for the processor to work on several rows at once.
    for (size_t row = 0; workspace.is_local && row < n_rows; ++row) blend<n>(workspace, row);
    for (size_t row = 0; job.n_outputs > 1 && row < n_rows; ++row)
        loss += row_loss_and_gradient<n>(workspace, row, 1 / float(n_rows));
    if (job.n_outputs == 1) loss = losses_of_one_output(workspace, n_rows);
    if (workspace.is_local) {
        for (size_t row = 0; row < n_rows; ++row) find_pair_gradients<n>(workspace, row);
        set_rates(workspace, step);
        train_local<n>(workspace, step, n_rows);
    }
    train_functions(workspace, workspace.gradient, workspace.n_columns, n_rows, job.n_outputs,
                    workspace.base, workspace.input_stride, workspace.n_inputs, job.base_rate,
                    step);
    if (workspace.trains_components)
        train_functions(workspace, workspace.projected_gradient, workspace.n_shift, n_rows,
                        job.n_search, workspace.components, workspace.n_features,
                        workspace.n_features, job.component_rate, step);
    return loss;
}

// The narrowest vectors that hold all outputs.
auto choose_train_batch(const Workspace& workspace) {
    if (workspace.lanes == 4) return &train_batch<4>;
    if (workspace.lanes == 8) return &train_batch<(width < 8 ? width : 8)>;
    return &train_batch<width>;
}

// Linear warm-up, then cosine decay to zero.
inline float learning_rate_factor(double done) {
    if (done < warm_up_share) return float(done / warm_up_share);
    return float(0.5 * (1 + cos(M_PI * (done - warm_up_share) / (1 - warm_up_share))));
}

void shuffle(uint32_t* order, size_t n, Random& random) {
    for (size_t i = n; i > 1; --i) {
        const uint32_t other = random.below(uint32_t(i)), kept = order[other];
        order[other] = order[i - 1];
        order[i - 1] = kept;
    }
}

double train(const TrainJob& job, float* memory, uint32_t* order) {
    Workspace workspace(job, memory, false);
    Random random(job.seed);
    workspace.read_parameters();
    const auto batch = choose_train_batch(workspace);
    const size_t n = job.n_rows, steps_per_epoch = (n + job.n_batch - 1) / job.n_batch;
    const size_t n_steps =
        job.n_samples / n * steps_per_epoch + (job.n_samples % n + job.n_batch - 1) / job.n_batch;
    double loss = 0, n_counted = 0;
    for (size_t i = 0; i < n; ++i) order[i] = uint32_t(i);
    for (size_t step = 0; step < n_steps; ++step) {
        const size_t first = step % steps_per_epoch * job.n_batch, left = n - first;
        if (first == 0) shuffle(order, n, random);
        AdamStep adam;
        adam.mean_scale = float(1 / (1 - pow(adam.beta1, double(step + 1))));
        adam.square_scale = float(1 / (1 - pow(adam.beta2, double(step + 1))));
        adam.rate_factor = learning_rate_factor(double(step + 1) / double(n_steps));
        const size_t n_rows = left < job.n_batch ? left : job.n_batch;
        const double batch_loss = batch(workspace, order + first, n_rows, adam);
        if (double(step + 1) <= (1 - loss_share) * double(n_steps)) continue;
        loss += batch_loss, n_counted += double(n_rows);
    }
    workspace.write_parameters();
    return loss / n_counted;
}

double loss_and_gradient(const TrainJob& job, const TrainParameters& gradient, float* memory,
                         uint32_t* order) {
    Workspace workspace(job, memory, true);
    workspace.read_parameters();
    for (size_t i = 0; i < job.n_batch; ++i) order[i] = uint32_t(i);
    const double loss =
        choose_train_batch(workspace)(workspace, order, job.n_batch, AdamStep::gradient_only());
    workspace.write_gradient(gradient);
    return loss / double(job.n_batch);
}

size_t workspace_size(const TrainJob& job) { return Workspace(job, nullptr, true).size; }

}  // namespace

extern const Trainer LIMES_OF_LEVEL(trainer);
const Trainer LIMES_OF_LEVEL(trainer) = {&workspace_size, &train, &loss_and_gradient};

}  // namespace limes
