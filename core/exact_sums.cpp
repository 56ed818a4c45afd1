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

template <class Real>
struct ExactWorkspace {
    double *raw, *mapped;     // one row: its features, its terms
    Real *rows, *panel;       // a tile: [row][n_padded], [term][row]
    Real *squares, *errors;   // [row]: c |z|^2 and the relative error
    Real* partial;            // unfinished scores
    Real *sums, *highest;     // [slot][row]; densities: [row]
    Real *values, *magnitudes;  // [value][row]
    Index<Real> *certain, *possible;  // [class][vector of rows]: votes
    size_t size = 0;

    ExactWorkspace(const ExactModel<Real>& model, Real* memory) {
        constexpr size_t height = tile_rows<Real>;
        const size_t n_values = round_up(model.n_values, block);
        raw = allocate<double>(memory, model.transform.n_features);
        mapped = allocate<double>(memory, model.transform.n_terms);
        rows = allocate<Real>(memory, height * model.n_padded);
        panel = allocate<Real>(memory, height * model.n_padded);
        squares = allocate<Real>(memory, height);
        errors = allocate<Real>(memory, height);
        partial = allocate<Real>(memory, max_blocks * block * height);
        sums = allocate<Real>(memory, (model.max_slots + 1) * height);
        highest = allocate<Real>(memory, height);
        values = allocate<Real>(memory, n_values * height);
        magnitudes = allocate<Real>(memory, n_values * height);
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

template <class Value>
inline void read_values(const char* from, ptrdiff_t stride, size_t n, double* to) {
    using Pointer = const Unaligned<Value>*;
    if (stride == ptrdiff_t(sizeof(Value))) {
        const Pointer values = reinterpret_cast<Pointer>(from);
        for (size_t k = 0; k < n; ++k) to[k] = double(values[k].value);
    } else {
        for (size_t k = 0; k < n; ++k, from += stride)
            to[k] = double(reinterpret_cast<Pointer>(from)->value);
    }
}

// The terms of a row, and their squared length.
inline double map_row(const RowTransform& transform, const Rows& rows, size_t row, double* raw,
                      double* mapped) {
    const size_t n = transform.n_terms;
    double* const first = transform.shift ? raw : mapped;
    const char* const from = row_start(rows, row);
    if (rows.is_double)
        read_values<double>(from, rows.column_stride, transform.n_features, first);
    else
        read_values<float>(from, rows.column_stride, transform.n_features, first);
    if (transform.shift)
        for (size_t k = 0; k < transform.n_features; ++k) raw[k] -= transform.shift[k];
    if (transform.matrix) {
        for (size_t k = 0; k < n; ++k) mapped[k] = -transform.center[k];
        for (size_t i = 0; i < transform.n_features; ++i)
            for (size_t k = 0; k < n; ++k) mapped[k] += raw[i] * transform.matrix[i * n + k];
    } else if (transform.shift) {
        for (size_t k = 0; k < n; ++k)
            mapped[k] =
                raw[transform.columns[k]] * transform.scale[k] + 0.0 - transform.center[k];
    } else {
        for (size_t k = 0; k < n; ++k) mapped[k] -= transform.center[k];
    }
    double sums[4] = {};
    size_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (size_t i = 0; i < 4; ++i) sums[i] += mapped[k + i] * mapped[k + i];
    for (; k < n; ++k) sums[0] += mapped[k] * mapped[k];
    // A number that is not finite makes the length a NaN, even in a feature that is left out.
    for (k = 0; k < transform.n_features && transform.columns; ++k) sums[0] += raw[k] * 0.0;
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Write the terms of one row, zero-padded, and what its squared length determines.
template <class Real>
inline void prepare_row(const ExactModel<Real>& model, const Rows& rows, size_t row, Real* to,
                        Real* square, Real* error, ExactWorkspace<Real>& workspace) {
    const size_t n = model.transform.n_terms;
    const double squared = map_row(model.transform, rows, row, workspace.raw, workspace.mapped);
    const double length = square_root(squared);
    // In float32 an infinite length may be that of a row that is not finite.
    const bool is_known = sizeof(Real) == sizeof(double) || squared < infinity<double>;
    if (length > model.far_distance && is_known) {
        __builtin_memset(to, 0, model.n_padded * sizeof(Real));
        *square = Real(1e30);
        *error = 0;
        return;
    }
    for (size_t k = 0; k < n; ++k) to[k] = Real(workspace.mapped[k]);
    for (size_t k = n; k < model.n_padded; ++k) to[k] = 0;
    const double relative = model.error[0] + model.error[1] * length + model.error[2] * squared;
    *square = Real(model.square_factor * squared);
    *error = relative < model.max_error ? Real(relative) : infinity<Real>;
}

template <class Real>
inline void prepare_tile(const ExactJob<Real>& job, size_t first, size_t n,
                         ExactWorkspace<Real>& workspace) {
    const ExactModel<Real>& model = *job.model;
    for (size_t r = 0; r < n; ++r)
        prepare_row(model, job.rows, first + r, workspace.rows + r * model.n_padded,
                    workspace.squares + r, workspace.errors + r, workspace);
    for (size_t r = n; r < tile_rows<Real>; ++r) {
        __builtin_memset(workspace.rows + r * model.n_padded, 0, model.n_padded * sizeof(Real));
        workspace.squares[r] = workspace.errors[r] = 0;
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

template <class Real>
inline Panels<Real> vectors_of(const ExactModel<Real>& model, const ExactSegment& segment) {
    const Panels<Real>& all = model.vectors;
    return {segment.n_blocks * block, all.n_terms,
            all.tiles + segment.first_block * block * all.n_terms, nullptr,
            all.biases + segment.first_block * block};
}

// The sums of a tile over the vectors of one segment.
template <class Real, class Function>
inline void sum_segment(const ExactModel<Real>& model, const ExactSegment& segment,
                        const Function function, ExactWorkspace<Real>& workspace) {
    constexpr size_t height = tile_rows<Real>;
    __builtin_memset(workspace.sums, 0, segment.n_slots * height * sizeof(Real));
    scan_points(workspace.panel, vectors_of(model, segment), workspace.partial,
                [&](size_t b, Scores<Real>& scores) __attribute__((always_inline)) {
#pragma GCC unroll 16
                    for (size_t p = 0; p < block; ++p)
#pragma GCC unroll 4
                        for (size_t r = 0; r < row_vectors; ++r)
                            scores.at[r][p] = function(scores.at[r][p], r);
                    add_weighted(model, segment.first_block + b, scores, workspace.sums);
                });
    for (size_t s = 0; s < segment.n_slots; ++s) {
        const size_t place = model.slot_values[segment.first_slot + s] * height;
        const Vector<Real> sign = broadcast(model.slot_signs[segment.first_slot + s]);
        for (size_t r = 0; r < height; r += lanes<Real>) {
            const Vector<Real> sum = load(workspace.sums + s * height + r);
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

inline void apply_linear(const ExactModel<double>& model, ExactWorkspace<double>& workspace) {
    project_tile(workspace.panel, model.vectors, workspace.partial, workspace.values);
}

inline void sum_kernels(const ExactModel<float>& model, ExactWorkspace<float>& workspace) {
    sum_segments(model, Gaussian<float>{workspace.squares}, workspace);
}
inline void sum_kernels(const ExactModel<double>& model, ExactWorkspace<double>& workspace) {
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
                const Vector<Real> error =
                    load(workspace.errors + r * lanes<Real>) * load(workspace.magnitudes + place) +
                    absolute;
                const Vector<Real> value = load(workspace.values + place);
                // A comparison that holds is -1; with a NaN it is 0.
                const Index<Real> first = value < -error, second = value > error;
                certain[i * row_vectors + r] -= first;
                certain[j * row_vectors + r] -= second;
                possible[i * row_vectors + r] += 1 + second;
                possible[j * row_vectors + r] += 1 + first;
            }
        }
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
        for (size_t l = 0; l < lanes<Real> && r * lanes<Real> + l < n; ++l)
            classes[r * lanes<Real> + l] = is_open[l] ? -1 : int32_t(best[l]);
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

template <class Real>
inline void write_values(const ExactJob<Real>& job, size_t first, size_t n,
                         const ExactWorkspace<Real>& workspace) {
    constexpr size_t height = tile_rows<Real>;
    const ExactModel<Real>& model = *job.model;
    const size_t n_values = model.n_values;
    const bool is_gaussian = model.function == KernelFunction::gaussian;
    for (size_t r = 0; r < n; ++r) {
        double* to = job.values + (first + r) * n_values;
        for (size_t v = 0; v < n_values; ++v) to[v] = double(workspace.values[v * height + r]);
        if (!job.errors && !(workspace.errors[r] < infinity<Real>)) to[0] = __builtin_nan("");
        if (!job.errors) continue;
        double* errors = job.errors + (first + r) * n_values;
        const double bound = is_gaussian ? 0 : double(kernel_bound(model, r, workspace));
        for (size_t v = 0; v < n_values; ++v) {
            const double size = is_gaussian ? double(workspace.magnitudes[v * height + r])
                                            : bound * model.magnitudes[v];
            errors[v] = double(workspace.errors[r]) * size + double(model.absolute_errors[v]);
        }
    }
}

template <class Real>
void run_exact(const ExactJob<Real>& job, size_t first, size_t last, Real* memory) {
    constexpr size_t height = tile_rows<Real>;
    ExactWorkspace<Real> workspace(*job.model, memory);
    for (; first < last; first += height) {
        const size_t n = last - first < height ? last - first : height;
        prepare_tile(job, first, n, workspace);
        sum_kernels(*job.model, workspace);
        if (!job.classes) {
            write_values(job, first, n, workspace);
            continue;
        }
        count_votes(*job.model, workspace);
        choose_classes(*job.model, n, workspace, job.classes + first);
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
