// Sums of kernels that decide the class of a row, on one SIMD level.
//
// The kernels of a tile of rows with a block of vectors are computed and weighted in registers:
// they are never stored.
#include "nearest.hpp"
#include "row_tiles.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace limes {
namespace {

// Rows that are transformed together, and vectors of terms that a product with a matrix fills.
constexpr size_t matrix_rows = row_vectors * block / 4, matrix_vectors = 2;

template <class Real>
struct ExactWorkspace {
    double *raw, *mapped;            // rows to transform: features, terms
    double* lengths;                 // [row]: squared
    Real *rows, *panel;              // a tile: [row][n_padded], [term][row]
    Real* squares;                   // [row]: c |z|^2
    Real *common, *random;           // [row]: see ExactModel
    Real* partial;                   // unfinished scores
    Real *sums, *totals, *lost;      // [slot][row]: of a chain of blocks, of a segment
    double* slot_totals;             // [slot], of one row
    Real *values, *magnitudes;       // [value][row]
    Real* logits;                    // [class][row]
    Index<Real>*certain, *possible;  // [class][vector of rows]: votes
    size_t size = 0;

    ExactWorkspace(const ExactModel<Real>& model, Real* memory) {
        constexpr size_t height = tile_rows<Real>;
        const size_t n_values = round_up(model.n_values, block);
        const RowTransform& transform = model.transform;
        raw = allocate<double>(memory, transform.shift ? matrix_rows * transform.n_features : 0);
        mapped = allocate<double>(memory, transform.shift ? matrix_rows * transform.width : 0);
        lengths = allocate<double>(memory, height);
        rows = allocate<Real>(memory, height * model.n_padded);
        panel = allocate<Real>(memory, height * model.n_padded);
        squares = allocate<Real>(memory, height);
        common = allocate<Real>(memory, height);
        random = allocate<Real>(memory, height);
        partial = allocate<Real>(memory, max_blocks * block * height);
        sums = allocate<Real>(memory, (model.max_slots + 1) * height);
        totals = allocate<Real>(memory, (model.max_slots + 1) * height);
        lost = allocate<Real>(memory, (model.max_slots + 1) * height);
        slot_totals = allocate<double>(memory, model.max_slots);
        values = allocate<Real>(memory, n_values * height);
        magnitudes = allocate<Real>(memory, n_values * height);
        logits = allocate<Real>(memory, model.n_classes * height);
        certain = allocate<Index<Real>>(memory, model.n_classes * row_vectors);
        possible = allocate<Index<Real>>(memory, model.n_classes * row_vectors);
    }

private:
    template <class Kind>
    inline Kind* allocate(Real* memory, size_t n) {
        Real* from = memory ? memory + size : nullptr;
        size += round_up(n * sizeof(Kind), 64) / sizeof(Real);
        return reinterpret_cast<Kind*>(from);
    }
};

// ---- Rows ----

// Call take(k, number) with n numbers, eight at a time where they are contiguous.
template <class Value, class Take>
__attribute__((always_inline)) inline void visit_values(const char* from, ptrdiff_t stride,
                                                        size_t n, Take take) {
    using Pointer = const Unaligned<Value>*;
    size_t k = 0;
    if (stride == ptrdiff_t(sizeof(Value))) {
        const Pointer values = reinterpret_cast<Pointer>(from);
        for (; k + 8 <= n; k += 8)
            for (size_t i = 0; i < 8; ++i) take(k + i, i, double(values[k + i].value));
        from += k * sizeof(Value);
    }
    for (; k < n; ++k, from += stride) take(k, 0, double(reinterpret_cast<Pointer>(from)->value));
}

template <class Take>
__attribute__((always_inline)) inline void visit_row(const Rows& rows, size_t row, size_t n,
                                                     Take take) {
    const char* const from = row_start(rows, row);
    if (rows.is_double)
        visit_values<double>(from, rows.column_stride, n, take);
    else
        visit_values<float>(from, rows.column_stride, n, take);
}

inline double add_up(const double* sums) {
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Write terms in Real; returns their squared length.
template <class Real>
inline double round_terms(const double* terms, size_t n, Real* to) {
    double sums[8] = {};
    visit_values<double>(reinterpret_cast<const char*>(terms), sizeof(double), n,
                         [&](size_t k, size_t i, double value) __attribute__((always_inline)) {
                             to[k] = Real(value);
                             sums[i] += value * value;
                         });
    return add_up(sums);
}

// The terms of a row without transformation; returns their squared length.
template <class Real>
inline double center_terms(const RowTransform& transform, const Rows& rows, size_t row, Real* to) {
    double sums[8] = {};
    visit_row(rows, row, transform.n_terms,
              [&](size_t k, size_t i, double value) __attribute__((always_inline)) {
                  const double term = value - transform.center[k];
                  to[k] = Real(term);
                  sums[i] += term * term;
              });
    return add_up(sums);
}

// A number that is not finite makes the result a NaN: it would be lost in a feature that is left
// out.
inline double shift_features(const RowTransform& transform, const Rows& rows, size_t row,
                             double* to) {
    double sums[8] = {};
    visit_row(rows, row, transform.n_features,
              [&](size_t k, size_t i, double value) __attribute__((always_inline)) {
                  to[k] = value - transform.shift[k];
                  sums[i] += value * 0.0;
              });
    return add_up(sums);
}

// mapped[row][width] = raw[row] @ matrix - center, for matrix_rows rows.
inline void multiply_rows(const RowTransform& transform, const double* raw, double* mapped) {
    const size_t n = transform.n_features, width = transform.width;
    for (size_t k = 0; k < width; k += matrix_vectors * lanes<double>) {
        Vector<double> sums[matrix_rows][matrix_vectors];
        for (size_t r = 0; r < matrix_rows; ++r)
            for (size_t v = 0; v < matrix_vectors; ++v)
                sums[r][v] = -load(transform.center + k + v * lanes<double>);
        for (size_t i = 0; i < n; ++i)
            for (size_t v = 0; v < matrix_vectors; ++v) {
                const Vector<double> column =
                    load(transform.matrix + i * width + k + v * lanes<double>);
                for (size_t r = 0; r < matrix_rows; ++r) sums[r][v] += raw[r * n + i] * column;
            }
        for (size_t r = 0; r < matrix_rows; ++r)
            for (size_t v = 0; v < matrix_vectors; ++v)
                store(mapped + r * width + k + v * lanes<double>, sums[r][v]);
    }
}

// The terms of up to matrix_rows transformed rows, at `place` of the tile.
template <class Real>
inline void transform_terms(const ExactJob<Real>& job, size_t first, size_t n, size_t place,
                            ExactWorkspace<Real>& workspace) {
    const RowTransform& transform = job.model->transform;
    const size_t n_features = transform.n_features, width = transform.width;
    for (size_t r = 0; r < n; ++r)
        workspace.lengths[place + r] =
            shift_features(transform, job.rows, first + r, workspace.raw + r * n_features);
    if (transform.matrix) {
        multiply_rows(transform, workspace.raw, workspace.mapped);
    } else {
        for (size_t r = 0; r < n; ++r)
            for (size_t k = 0; k < transform.n_terms; ++k)
                workspace.mapped[r * width + k] =
                    workspace.raw[r * n_features + size_t(transform.columns[k])] *
                        transform.scale[k] -
                    transform.center[k];
    }
    for (size_t r = 0; r < n; ++r)
        workspace.lengths[place + r] +=
            round_terms(workspace.mapped + r * width, transform.n_terms,
                        workspace.rows + (place + r) * job.model->n_padded);
}

// What the squared lengths of n rows determine; rows that are far away become zero.
template <class Real>
inline void measure_rows(const ExactModel<Real>& model, size_t n, ExactWorkspace<Real>& workspace) {
    size_t n_far = 0;
    for (size_t r = 0; r < n; ++r) {
        const double squared = workspace.lengths[r], length = square_root(squared);
        const double reach = length > model.typical_length ? length : model.typical_length;
        const double spread = reach * (reach + 2 * length);
        const double common = model.common_error[0] + model.common_error[1] * spread +
                              model.common_error[2] * squared;
        const double random = model.random_error[0] + model.random_error[1] * spread;
        const bool is_useful = common + random < model.max_error;
        workspace.squares[r] = Real(model.square_factor * squared);
        workspace.common[r] = is_useful ? Real(common) : infinity<Real>;
        workspace.random[r] = is_useful ? Real(random) : infinity<Real>;
        n_far += length > model.far_distance;
    }
    for (size_t r = 0; r < n && n_far > 0; ++r) {
        // In float32 an infinite length may be that of a row that is not finite.
        const bool is_known =
            sizeof(Real) == sizeof(double) || workspace.lengths[r] < infinity<double>;
        if (!(square_root(workspace.lengths[r]) > model.far_distance && is_known)) continue;
        __builtin_memset(workspace.rows + r * model.n_padded, 0, model.n_padded * sizeof(Real));
        workspace.squares[r] = Real(1e30);
        workspace.common[r] = workspace.random[r] = 0;
    }
}

// The terms of the rows of a tile, and what their lengths determine. Terms from n_terms on stay
// zero.
template <class Real>
inline void prepare_rows(const ExactJob<Real>& job, size_t first, size_t n,
                         ExactWorkspace<Real>& workspace) {
    const ExactModel<Real>& model = *job.model;
    if (!model.transform.shift) {
        for (size_t r = 0; r < n; ++r)
            workspace.lengths[r] = center_terms(model.transform, job.rows, first + r,
                                                workspace.rows + r * model.n_padded);
    } else {
        for (size_t r = 0; r < n; r += matrix_rows)
            transform_terms(job, first + r, n - r < matrix_rows ? n - r : matrix_rows, r,
                            workspace);
    }
    measure_rows(model, n, workspace);
}

template <class Real>
inline void prepare_tile(const ExactJob<Real>& job, size_t first, size_t n,
                         ExactWorkspace<Real>& workspace) {
    const ExactModel<Real>& model = *job.model;
    prepare_rows(job, first, n, workspace);
    for (size_t r = n; r < tile_rows<Real>; ++r) {
        __builtin_memset(workspace.rows + r * model.n_padded, 0, model.n_padded * sizeof(Real));
        workspace.squares[r] = workspace.common[r] = workspace.random[r] = 0;
    }
    transpose_tile(workspace.rows, model.n_padded, model.transform.n_terms, workspace.panel);
}

// ---- Kernels ----

inline Vector<float> kernel_exponential(Vector<float> x) { return exponential_of_two(x); }
inline Vector<double> kernel_exponential(Vector<double> x) {
    // An exponent above zero is a rounding error; a NaN stays one.
    return exponential(x > 0.0 ? Vector<double>{} : x);
}

template <class Real>
struct Gaussian {
    const Real* squares;
    inline Vector<Real> operator()(Vector<Real> score, size_t r) const {
        return kernel_exponential(score - load(squares + r * lanes<Real>));
    }
};

struct Polynomial {
    int degree;
    inline Vector<double> operator()(Vector<double> base, size_t) const {
        Vector<double> power = broadcast(1.0);
        for (int left = degree; left > 0; left >>= 1, base *= base)
            if (left & 1) power *= base;
        return power;
    }
};

struct Sigmoid {
    inline Vector<double> operator()(Vector<double> x, size_t) const {
        const Vector<double> magnitude = x < 0.0 ? -x : x;
        const Vector<double> e = exponential(-2.0 * magnitude);
        const Vector<double> size = (1.0 - e) / (1.0 + e);
        return x < 0.0 ? -size : size;
    }
};

// sums[slot][row] += weighted kernels of one block.
template <class Real>
__attribute__((always_inline)) inline void add_weighted(const ExactModel<Real>& model,
                                                        size_t number, const Scores<Real>& kernels,
                                                        Real* sums) {
    const size_t last = model.entry_starts[number + 1];
    for (size_t e = model.entry_starts[number]; e < last; ++e) {
        const Real* weights = model.weights + e * block;
        Real* to = sums + model.entry_slots[e] * tile_rows<Real>;
        Vector<Real> total[row_vectors];
        const Vector<Real> first = broadcast(weights[0]);
        for (size_t r = 0; r < row_vectors; ++r) total[r] = kernels.at[r][0] * first;
#pragma GCC unroll 16
        for (size_t p = 1; p < block; ++p) {
            const Vector<Real> weight = broadcast(weights[p]);
#pragma GCC unroll 4
            for (size_t r = 0; r < row_vectors; ++r) total[r] += kernels.at[r][p] * weight;
        }
        for (size_t r = 0; r < row_vectors; ++r)
            store(to + r * lanes<Real>, load(to + r * lanes<Real>) + total[r]);
    }
}

// sums[slot][row] of n blocks of a segment from `first` on.
template <class Real, class Function>
inline void sum_blocks(const ExactModel<Real>& model, size_t first, size_t n, size_t n_slots,
                       const Function function, ExactWorkspace<Real>& workspace) {
    const Panels<Real>& all = model.vectors;
    const Panels<Real> some{n * block, all.n_terms, all.tiles + first * block * all.n_terms,
                            nullptr, all.biases + first * block};
    __builtin_memset(workspace.sums, 0, n_slots * tile_rows<Real> * sizeof(Real));
    scan_points(workspace.panel, some, workspace.partial,
                [&](size_t b, Scores<Real>& scores) __attribute__((always_inline)) {
#pragma GCC unroll 16
                    for (size_t p = 0; p < block; ++p)
#pragma GCC unroll 4
                        for (size_t r = 0; r < row_vectors; ++r)
                            scores.at[r][p] = function(scores.at[r][p], r);
                    add_weighted(model, first + b, scores, workspace.sums);
                });
}

// Add the sums to the totals of a segment, and what rounding loses to `lost`.
template <class Real>
inline void add_to_totals(size_t n_slots, ExactWorkspace<Real>& workspace) {
    for (size_t i = 0; i < n_slots * tile_rows<Real>; i += lanes<Real>) {
        const Vector<Real> a = load(workspace.totals + i), b = load(workspace.sums + i);
        const Vector<Real> sum = a + b, part = sum - a;
        store(workspace.totals + i, sum);
        store(workspace.lost + i, load(workspace.lost + i) + ((a - (sum - part)) + (b - part)));
    }
}

// The sums of a tile over the vectors of one segment. Long ones are split, since the rounding error
// grows with the length of a chain of additions.
template <class Real, class Function>
inline void sum_segment(const ExactModel<Real>& model, const ExactSegment& segment,
                        const Function function, ExactWorkspace<Real>& workspace) {
    constexpr size_t height = tile_rows<Real>;
    const size_t n_slots = segment.n_slots, n_blocks = segment.n_blocks;
    const bool is_short = n_blocks <= max_chain_blocks;
    if (is_short) {
        sum_blocks(model, segment.first_block, n_blocks, n_slots, function, workspace);
    } else {
        __builtin_memset(workspace.totals, 0, n_slots * height * sizeof(Real));
        __builtin_memset(workspace.lost, 0, n_slots * height * sizeof(Real));
        for (size_t b = 0; b < n_blocks; b += chain_blocks) {
            const size_t n = n_blocks - b < chain_blocks ? n_blocks - b : chain_blocks;
            sum_blocks(model, segment.first_block + b, n, n_slots, function, workspace);
            add_to_totals(n_slots, workspace);
        }
    }
    for (size_t s = 0; s < n_slots; ++s) {
        const size_t place = model.slot_values[segment.first_slot + s] * height;
        const Vector<Real> sign = broadcast(model.slot_signs[segment.first_slot + s]);
        for (size_t r = 0; r < height; r += lanes<Real>) {
            const size_t i = s * height + r;
            const Vector<Real> sum = is_short
                                         ? load(workspace.sums + i)
                                         : load(workspace.totals + i) + load(workspace.lost + i);
            Real* value = workspace.values + place + r;
            Real* magnitude = workspace.magnitudes + place + r;
            store(value, load(value) + sign * sum);
            store(magnitude, load(magnitude) + sum);
        }
    }
}

template <class Real, class Function>
inline void sum_segments(const ExactModel<Real>& model, const Function function,
                         ExactWorkspace<Real>& workspace) {
    constexpr size_t height = tile_rows<Real>;
    for (size_t v = 0; v < model.n_values; ++v)
        for (size_t r = 0; r < height; ++r) {
            workspace.values[v * height + r] = -model.intercepts[v];
            workspace.magnitudes[v * height + r] = 0;
        }
    for (size_t s = 0; s < model.n_segments; ++s)
        sum_segment(model, model.segments[s], function, workspace);
}

// ---- Densities ----

inline float logarithm(float x) { return __builtin_log2f(x); }
inline double logarithm(double x) { return __builtin_log(x); }

// The logarithm of the sum of exponentials over one class, relative to the highest exponent so far,
// without the part that all vectors share, -c |z|^2.
template <class Real>
inline void sum_density(const ExactModel<Real>& model, const ExactSegment& segment,
                        ExactWorkspace<Real>& workspace) {
    constexpr size_t height = tile_rows<Real>;
    const Panels<Real>& all = model.vectors;
    const Panels<Real> some{segment.n_blocks * block, all.n_terms,
                            all.tiles + segment.first_block * block * all.n_terms, nullptr,
                            all.biases + segment.first_block * block};
    Real *highest = workspace.totals, *sums = workspace.sums;
    for (size_t r = 0; r < height; ++r) highest[r] = Real(-1e30), sums[r] = 0;
    scan_points(workspace.panel, some, workspace.partial,
                [&](size_t, const Scores<Real>& scores) __attribute__((always_inline)) {
                    for (size_t r = 0; r < row_vectors; ++r) {
                        const Vector<Real> before = load(highest + r * lanes<Real>);
                        Vector<Real> most = before;
                        for (size_t p = 0; p < block; ++p) most = max(scores.at[r][p], most);
                        Vector<Real> sum =
                            load(sums + r * lanes<Real>) * kernel_exponential(before - most);
                        for (size_t p = 0; p < block; ++p)
                            sum += kernel_exponential(scores.at[r][p] - most);
                        store(highest + r * lanes<Real>, most);
                        store(sums + r * lanes<Real>, sum);
                    }
                });
    const size_t value = model.slot_values[segment.first_slot];
    for (size_t r = 0; r < height; ++r)
        workspace.values[value * height + r] =
            highest[r] + logarithm(sums[r]) - model.intercepts[value];
}

template <class Real>
inline void sum_densities(const ExactModel<Real>& model, ExactWorkspace<Real>& workspace) {
    for (size_t i = 0; i < model.n_values * tile_rows<Real>; ++i)
        workspace.values[i] = -infinity<Real>;
    for (size_t s = 0; s < model.n_segments; ++s) sum_density(model, model.segments[s], workspace);
}

inline double error_of_density(const ExactModel<float>& model, size_t value, float relative) {
    return 1.4426950408889634 * double(relative) + double(model.absolute_errors[value]);
}
inline double error_of_density(const ExactModel<double>& model, size_t value, double relative) {
    return relative + model.absolute_errors[value];
}

// The class with the highest density, or -1 where another may have it.
template <class Real>
inline int32_t densest_class(const ExactModel<Real>& model, size_t row,
                             const ExactWorkspace<Real>& workspace) {
    const Real* values = workspace.values + row;
    const Real relative = workspace.common[row] + workspace.random[row];
    // A row that may not be finite is not certain, even of a single class.
    if (!(relative < infinity<Real>)) return -1;
    size_t best = 0;
    for (size_t c = 1; c < model.n_values; ++c)
        best = values[c * tile_rows<Real>] > values[best * tile_rows<Real>] ? c : best;
    for (size_t c = 0; c < model.n_values; ++c) {
        const double gap =
            double(values[best * tile_rows<Real>]) - double(values[c * tile_rows<Real>]);
        const double error =
            error_of_density(model, best, relative) + error_of_density(model, c, relative);
        if (c != best && !(gap > error)) return -1;
    }
    return int32_t(best);
}

// ---- Kernels other than Gaussians ----

inline void apply_linear(const ExactModel<double>& model, ExactWorkspace<double>& workspace) {
    project_tile(workspace.panel, model.vectors, workspace.partial, workspace.values);
}

inline void sum_kernels(const ExactModel<float>& model, ExactWorkspace<float>& workspace) {
    if (model.is_density) return sum_densities(model, workspace);
    sum_segments(model, Gaussian<float>{workspace.squares}, workspace);
}
inline void sum_kernels(const ExactModel<double>& model, ExactWorkspace<double>& workspace) {
    if (model.is_density) return sum_densities(model, workspace);
    switch (model.function) {
        case KernelFunction::gaussian:
            return sum_segments(model, Gaussian<double>{workspace.squares}, workspace);
        case KernelFunction::polynomial:
            return sum_segments(model, Polynomial{model.degree}, workspace);
        case KernelFunction::sigmoid: return sum_segments(model, Sigmoid{}, workspace);
        case KernelFunction::linear: return apply_linear(model, workspace);
    }
}

// ---- Classes ----

// Votes that each class is certain of, and votes that it may have.
template <class Real>
inline void count_votes(const ExactModel<Real>& model, ExactWorkspace<Real>& workspace) {
    constexpr size_t height = tile_rows<Real>;
    Index<Real>* certain = workspace.certain;
    Index<Real>* possible = workspace.possible;
    const size_t n = model.n_classes;
    __builtin_memset(certain, 0, n * row_vectors * sizeof *certain);
    __builtin_memset(possible, 0, n * row_vectors * sizeof *possible);
    for (size_t i = 0, v = 0; i < n; ++i)
        for (size_t j = i + 1; j < n; ++j, ++v) {
            const Vector<Real> absolute = broadcast(model.absolute_errors[v]);
            for (size_t r = 0; r < row_vectors; ++r) {
                const size_t place = v * height + r * lanes<Real>;
                const Vector<Real> error = (load(workspace.common + r * lanes<Real>) +
                                            load(workspace.random + r * lanes<Real>)) *
                                               load(workspace.magnitudes + place) +
                                           absolute;
                const Vector<Real> value = load(workspace.values + place);
                // A comparison that holds is -1; with a NaN it is 0.
                const Index<Real> first = value<-error, second = value> error;
                certain[i * row_vectors + r] -= first;
                certain[j * row_vectors + r] -= second;
                possible[i * row_vectors + r] += 1 + second;
                possible[j * row_vectors + r] += 1 + first;
            }
        }
}

// The bound of the error of a value of one row of a tile.
template <class Real>
inline Real bound_error(const ExactModel<Real>& model, size_t value, size_t row,
                        const ExactWorkspace<Real>& workspace) {
    const Real size = workspace.magnitudes[value * tile_rows<Real> + row];
    const Real independent = 2 * square_root(model.largest_weights[value] * size);
    return workspace.common[row] * size +
           workspace.random[row] * (independent < size ? independent : size) +
           model.absolute_errors[value];
}

// The class of one row of a tile by the full bound of errors, or -1.
template <class Real>
inline int32_t choose_class(const ExactModel<Real>& model, size_t row,
                            const ExactWorkspace<Real>& workspace) {
    const size_t n = model.n_classes;
    using Integer = typename Lanes<Real>::Integer;
    // The votes of this row, in the memory of the tile's.
    Integer* certain = reinterpret_cast<Integer*>(workspace.certain) + row;
    Integer* possible = reinterpret_cast<Integer*>(workspace.possible) + row;
    constexpr size_t step = tile_rows<Real>;
    for (size_t c = 0; c < n; ++c) certain[c * step] = possible[c * step] = 0;
    for (size_t i = 0, v = 0; i < n; ++i)
        for (size_t j = i + 1; j < n; ++j, ++v) {
            const Real value = workspace.values[v * step + row];
            const Real error = bound_error(model, v, row, workspace);
            const bool is_first = value<-error, is_second = value> error;
            certain[i * step] += is_first, certain[j * step] += is_second;
            possible[i * step] += !is_second, possible[j * step] += !is_first;
        }
    size_t best = 0;
    for (size_t c = 1; c < n; ++c) best = certain[c * step] > certain[best * step] ? c : best;
    for (size_t c = 0; c < n; ++c) {
        const bool wins_tie = model.breaks_ties || c < best;
        if (c != best && possible[c * step] >= certain[best * step] + !wins_tie) return -1;
    }
    return int32_t(best);
}

// The class that wins whatever the uncertain votes are, the lowest among equals; else -1.
template <class Real>
inline void choose_classes(const ExactModel<Real>& model, size_t n,
                           const ExactWorkspace<Real>& workspace, int32_t* classes) {
    using Integer = typename Lanes<Real>::Integer;
    for (size_t r = 0; r < row_vectors && r * lanes<Real> < n; ++r) {
        Index<Real> best{}, votes = workspace.certain[r];
        for (size_t c = 1; c < model.n_classes; ++c) {
            const Index<Real> own = workspace.certain[c * row_vectors + r];
            const Index<Real> better = own > votes;
            best = better ? broadcast(Integer(c)) : best;
            votes = better ? own : votes;
        }
        Index<Real> is_open{};
        for (size_t c = 0; c < model.n_classes; ++c) {
            const Index<Real> most = workspace.possible[c * row_vectors + r];
            const Index<Real> number = broadcast(Integer(c));
            const Index<Real> wins_tie =
                model.breaks_ties ? broadcast(Integer(0)) == 0 : number < best;
            is_open |= (number != best) & ((most > votes) | ((most == votes) & wins_tie));
        }
        const Index<Real> chosen = is_open ? broadcast(Integer(-1)) : best;
        for (size_t l = 0; l < lanes<Real> && r * lanes<Real> + l < n; ++l) {
            const int32_t number = int32_t(reinterpret_cast<const Integer*>(&chosen)[l]);
            const size_t row = r * lanes<Real> + l;
            classes[row] = number < 0 ? choose_class(model, row, workspace) : number;
        }
    }
}

template <class Real>
inline Real kernel_bound(const ExactModel<Real>& model, size_t row,
                         const ExactWorkspace<Real>& workspace) {
    const double length = square_root(double(workspace.squares[row]));
    if (model.function == KernelFunction::sigmoid) return 1;
    if (model.function == KernelFunction::linear) return length;
    const double base = model.gamma * length * model.longest + __builtin_fabs(model.coef0);
    double power = 1;
    for (int k = 0; k < model.degree; ++k) power *= base > 1 ? base : 1;
    return power;
}

// The bound of the error of a value of one row, for any kernel but densities; `bound` is that of
// the kernel.
template <class Real>
inline double error_of_value(const ExactModel<Real>& model, size_t value, size_t row, double bound,
                             const ExactWorkspace<Real>& workspace) {
    if (model.function == KernelFunction::gaussian)
        return double(bound_error(model, value, row, workspace));
    return double(workspace.common[row]) * bound * model.magnitudes[value] +
           double(model.absolute_errors[value]);
}

template <class Real>
inline void write_values(const ExactJob<Real>& job, size_t first, size_t n,
                         const ExactWorkspace<Real>& workspace) {
    constexpr size_t height = tile_rows<Real>;
    const ExactModel<Real>& model = *job.model;
    const size_t n_values = model.n_values;
    const bool is_gaussian = model.function == KernelFunction::gaussian;
    for (size_t r = 0; r < n; ++r) {
        double* to = job.values + (first + r) * n_values;
        for (size_t v = 0; v < n_values; ++v) {
            to[v] = double(workspace.values[v * height + r]);
            if (model.is_density) to[v] -= double(workspace.squares[r]);
        }
        double* errors = job.errors + (first + r) * n_values;
        if (model.is_density) {
            const Real relative = workspace.common[r] + workspace.random[r];
            for (size_t v = 0; v < n_values; ++v) errors[v] = error_of_density(model, v, relative);
            continue;
        }
        const double bound = is_gaussian ? 0 : double(kernel_bound(model, r, workspace));
        for (size_t v = 0; v < n_values; ++v)
            errors[v] = error_of_value(model, v, r, bound, workspace);
    }
}

// ---- Logits ----

// The logits of a tile: logits[class][row].
template <class Real>
inline void combine_pairs(const ExactModel<Real>& model, const ExactLogits<Real>& job,
                        ExactWorkspace<Real>& workspace) {
    constexpr size_t height = tile_rows<Real>;
    const size_t n = model.n_classes;
    for (size_t i = 0; i < n * height; ++i) workspace.logits[i] = infinity<Real>;
    for (size_t i = 0, v = 0; i < n; ++i) {
        Vector<Real> least[row_vectors];
        for (size_t r = 0; r < row_vectors; ++r)
            least[r] = load(workspace.logits + i * height + r * lanes<Real>);
        for (size_t j = i + 1; j < n; ++j, ++v) {
            const Vector<Real> scale = broadcast(job.scales[v]);
            const Vector<Real> offset = broadcast(job.offsets[v]);
            for (size_t r = 0; r < row_vectors; ++r) {
                const size_t place = r * lanes<Real>;
                Real* second = workspace.logits + j * height + place;
                const Vector<Real> value =
                    scale * load(workspace.values + v * height + place) + offset;
                least[r] = min(-value, least[r]);
                store(second, min(value, load(second)));
            }
        }
        for (size_t r = 0; r < row_vectors; ++r)
            store(workspace.logits + i * height + r * lanes<Real>, least[r]);
    }
}

// What a pair says of one of its classes, from below and from above.
struct Bounds {
    double low, high;
};
template <class Real>
inline Bounds bound_pair(const ExactJob<Real>& job, size_t own, size_t other, size_t row,
                         double bound, const ExactWorkspace<Real>& workspace) {
    const size_t i = own < other ? own : other, j = own < other ? other : own;
    const size_t v = i * job.model->n_classes - i * (i + 1) / 2 + j - i - 1;
    const double scale = double(job.logits->scales[v]), offset = double(job.logits->offsets[v]);
    const double product = scale * double(workspace.values[v * tile_rows<Real> + row]);
    const double rounding = sizeof(Real) == sizeof(float) ? 0x1p-22 : 0x1p-51;
    const double error =
        __builtin_fabs(scale) * error_of_value(*job.model, v, row, bound, workspace) +
        rounding * (__builtin_fabs(product) + __builtin_fabs(offset));
    const double value = own == j ? product + offset : -(product + offset);
    return {value - error, value + error};
}

// The class with the largest logit, or -1 where another may have it. A logit is at most what any of
// its pairs says; the pair with the likely winner settles nearly all.
template <class Real>
inline int32_t largest_logit(const ExactJob<Real>& job, size_t row,
                             const ExactWorkspace<Real>& workspace) {
    const ExactModel<Real>& model = *job.model;
    const bool is_gaussian = model.function == KernelFunction::gaussian;
    const double bound = is_gaussian ? 0 : double(kernel_bound(model, row, workspace));
    const size_t n = model.n_classes;
    const Real* logits = workspace.logits + row;
    size_t best = 0;
    for (size_t c = 1; c < n; ++c)
        best = logits[c * tile_rows<Real>] > logits[best * tile_rows<Real>] ? c : best;
    double lowest = infinity<double>, highest = -infinity<double>;
    for (size_t c = 0; c < n; ++c) {
        if (c == best) continue;
        const Bounds own = bound_pair(job, best, c, row, bound, workspace);
        if (!(own.high - own.low < infinity<double>)) return -1;
        lowest = own.low < lowest ? own.low : lowest;
        highest = -own.low > highest ? -own.low : highest;
    }
    if (highest < lowest) return int32_t(best);
    for (size_t c = 0; c < n; ++c) {
        bool is_below = c == best;
        for (size_t other = 0; other < n && !is_below; ++other)
            is_below = other != c &&
                       bound_pair(job, c, other, row, bound, workspace).high < lowest;
        if (!is_below) return -1;
    }
    return int32_t(best);
}

template <class Real>
inline void write_logits(const ExactJob<Real>& job, size_t first, size_t n,
                         ExactWorkspace<Real>& workspace) {
    // Differences of two logits are finite.
    constexpr Real largest = Real(__FLT_MAX__ / 4);
    const size_t n_classes = job.model->n_classes;
    const int32_t* columns = job.logits->columns;
    combine_pairs(*job.model, *job.logits, workspace);
    for (size_t r = 0; r < n; ++r) {
        job.classes[first + r] = largest_logit(job, r, workspace);
        float* to = job.logits->out + (first + r) * n_classes;
        for (size_t c = 0; c < n_classes; ++c) {
            const Real logit = workspace.logits[c * tile_rows<Real> + r];
            to[columns ? size_t(columns[c]) : c] =
                float(logit > largest ? largest : logit < -largest ? -largest : logit);
        }
    }
}

// ---- Single rows ----

// One number for each vector of a block.
template <class Real>
struct BlockLanes;
template <>
struct BlockLanes<float> {
    typedef float Vector __attribute__((vector_size(block * sizeof(float)), may_alias));
};
template <>
struct BlockLanes<double> {
    typedef double Vector __attribute__((vector_size(block * sizeof(double)), may_alias));
};
template <class Real>
using BlockVector = typename BlockLanes<Real>::Vector;

// The Gaussians of one row with n_blocks blocks from `first` on.
template <class Real, size_t n_blocks>
inline void row_kernels(const ExactModel<Real>& model, size_t first,
                        const ExactWorkspace<Real>& workspace, Real* kernels) {
    const size_t n_terms = model.vectors.n_terms;
    const Real* tiles = model.vectors.tiles + first * block * n_terms;
    BlockVector<Real> scores[n_blocks];
    for (size_t b = 0; b < n_blocks; ++b)
        scores[b] =
            *reinterpret_cast<const BlockVector<Real>*>(model.vectors.biases + (first + b) * block);
    for (size_t k = 0; k < n_terms; ++k)
#pragma GCC unroll 8
        for (size_t b = 0; b < n_blocks; ++b)
            scores[b] -= workspace.rows[k] * *reinterpret_cast<const BlockVector<Real>*>(
                                                 tiles + (b * n_terms + k) * block);
    for (size_t b = 0; b < n_blocks; ++b)
        *reinterpret_cast<BlockVector<Real>*>(kernels + b * block) = scores[b];
    const Vector<Real> square = broadcast(workspace.squares[0]);
    for (size_t i = 0; i < n_blocks * block; i += lanes<Real>)
        store(kernels + i, kernel_exponential(load(kernels + i) - square));
}

// The sums of a row over one segment, in the first row of the workspace's tile.
template <class Real>
inline void sum_segment_of_row(const ExactModel<Real>& model, const ExactSegment& segment,
                               ExactWorkspace<Real>& workspace) {
    constexpr size_t some = spare_blocks, height = tile_rows<Real>;
    alignas(64) Real kernels[some * block];
    double* totals = workspace.slot_totals;
    for (size_t s = 0; s < segment.n_slots; ++s) totals[s] = 0;
    const size_t last = segment.first_block + segment.n_blocks;
    for (size_t first = segment.first_block; first < last;) {
        const size_t n = last - first < some ? last - first : some;
        // Kernels of further blocks, which the padding of the vectors allows, are not used.
        if (n > 2)
            row_kernels<Real, some>(model, first, workspace, kernels);
        else
            row_kernels<Real, 2>(model, first, workspace, kernels);
        for (size_t b = 0; b < n; ++b) {
            const size_t end = model.entry_starts[first + b + 1];
            for (size_t e = model.entry_starts[first + b]; e < end; ++e) {
                Real sum = 0;
                for (size_t p = 0; p < block; ++p)
                    sum += kernels[b * block + p] * model.weights[e * block + p];
                totals[model.entry_slots[e]] += double(sum);
            }
        }
        first += n;
    }
    for (size_t s = 0; s < segment.n_slots; ++s) {
        const size_t place = model.slot_values[segment.first_slot + s] * height;
        workspace.values[place] += model.slot_signs[segment.first_slot + s] * Real(totals[s]);
        workspace.magnitudes[place] += Real(totals[s]);
    }
}

template <class Real>
inline void sum_row(const ExactJob<Real>& job, size_t row, ExactWorkspace<Real>& workspace) {
    const ExactModel<Real>& model = *job.model;
    prepare_rows(job, row, 1, workspace);
    for (size_t v = 0; v < model.n_values; ++v) {
        workspace.values[v * tile_rows<Real>] = -model.intercepts[v];
        workspace.magnitudes[v * tile_rows<Real>] = 0;
    }
    for (size_t s = 0; s < model.n_segments; ++s)
        sum_segment_of_row(model, model.segments[s], workspace);
}

// ---- All rows ----

template <class Real>
inline void choose_tile(const ExactJob<Real>& job, size_t first, size_t n,
                        ExactWorkspace<Real>& workspace) {
    if (job.model->is_density) {
        for (size_t r = 0; r < n; ++r)
            job.classes[first + r] = densest_class(*job.model, r, workspace);
        return;
    }
    count_votes(*job.model, workspace);
    choose_classes(*job.model, n, workspace, job.classes + first);
}

template <class Real>
void run_exact(const ExactJob<Real>& job, size_t first, size_t last, Real* memory) {
    constexpr size_t height = tile_rows<Real>;
    const ExactModel<Real>& model = *job.model;
    ExactWorkspace<Real> workspace(model, memory);
    const size_t n_numbers = height * model.n_padded;
    __builtin_memset(workspace.rows, 0, n_numbers * sizeof(Real));
    if (model.transform.shift)
        __builtin_memset(workspace.raw, 0,
                         matrix_rows * model.transform.n_features * sizeof(double));
    const bool may_run_rows =
        model.function == KernelFunction::gaussian && !model.is_density && !job.by_tiles && !job.logits;
    while (first < last) {
        const size_t left = last - first, n = left < height ? left : height;
        if (may_run_rows && n < min_tile_rows<Real>) {
            sum_row(job, first, workspace);
            if (job.classes)
                job.classes[first] = choose_class(model, 0, workspace);
            else
                write_values(job, first, 1, workspace);
            ++first;
            continue;
        }
        prepare_tile(job, first, n, workspace);
        sum_kernels(model, workspace);
        if (job.logits)
            write_logits(job, first, n, workspace);
        else if (job.classes)
            choose_tile(job, first, n, workspace);
        else
            write_values(job, first, n, workspace);
        first += n;
    }
}

template <class Real>
size_t exact_workspace_size(const ExactJob<Real>& job) {
    return ExactWorkspace<Real>(*job.model, nullptr).size;
}

template <class Real>
constexpr ExactKernel<Real> exact_kernel = {
    {lanes<Real>, tile_rows<Real>, block}, &exact_workspace_size<Real>, &run_exact<Real>};

}  // namespace

extern const ExactKernels LIMES_OF_LEVEL(exact);
const ExactKernels LIMES_OF_LEVEL(exact) = {exact_kernel<float>, exact_kernel<double>};

}  // namespace limes
