// Sums of Gaussian kernels of one SIMD level.
//
// The kernels of a tile of rows with a chunk of vectors, still in the first-level cache, are the
// panel of a second product, with the weights or with the vectors themselves.
#include "nearest.hpp"
#include "row_tiles.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace limes {
namespace {

constexpr size_t height = tile_rows<double>;
// Vectors of a chunk, whole blocks.
constexpr size_t chunk = 64;

// Data of one tile of rows for all chunks of vectors.
struct SumsTile {
    double *panel, *squares, *sums, *gradients;
};

// Tiles that are run with one chunk of vectors while it is in the second-level cache.
constexpr size_t max_tiles = 16;

struct SumsWorkspace {
    size_t n_tiles;
    double *rows, *partial, *kernels, *weighted;
    SumsTile tiles[max_tiles];
    size_t size = 0;

    SumsWorkspace(const SumsJob& job, double* base) {
        const size_t n_outputs = round_up(job.n_outputs, block);
        const size_t n_slopes = job.gradients ? round_up(job.n_features, block) : 0;
        const size_t fit = 24 * 1024 / ((job.n_padded + n_outputs + n_slopes) * height);
        n_tiles = fit < 1 ? 1 : fit < max_tiles ? fit : max_tiles;
        rows = allocate(base, height * job.n_padded);
        partial = allocate(base, max_blocks * block * height);
        kernels = allocate(base, chunk * height);
        weighted = allocate(base, chunk * height);
        for (size_t t = 0; t < n_tiles; ++t)
            tiles[t] = {allocate(base, height * job.n_padded), allocate(base, height),
                        allocate(base, n_outputs * height), allocate(base, n_slopes * height)};
    }
    inline double* allocate(double* base, size_t n) {
        double* from = base ? base + size : nullptr;
        size += round_up(n, 8);
        return from;
    }
};

// gamma |x|^2 of each row of a tile.
inline void square_rows(const SumsJob& job, const SumsTile& tile) {
    for (size_t r = 0; r < height; r += lanes<double>) {
        Vector<double> sum{};
        for (size_t k = 0; k < job.n_features; ++k) {
            const Vector<double> value = load(tile.panel + k * height + r);
            sum += value * value;
        }
        store(tile.squares + r, job.gamma * sum);
    }
}

// Kernels of a tile with the n vectors from `first` on: [vector][row].
inline void fill_kernels(const SumsJob& job, size_t first, size_t n, const SumsTile& tile,
                         SumsWorkspace& workspace) {
    const Panels<double>& all = job.vectors;
    const Panels<double> some{n, all.n_terms, all.tiles + first * all.n_terms, nullptr,
                              all.biases + first};
    scan_points(tile.panel, some, workspace.partial, [&](size_t b, const Scores<double>& scores) {
        scores.write(workspace.kernels + b * block * height);
    });
    // Separate from the products, which need all registers.
    for (size_t r = 0; r < height; r += lanes<double>) {
        const Vector<double> square = load(tile.squares + r);
        for (size_t i = 0; i < n; ++i) {
            const Vector<double> exponent = load(workspace.kernels + i * height + r) - square;
            // A negative squared distance is a rounding error; a NaN stays one.
            store(workspace.kernels + i * height + r,
                  exponential(exponent > 0.0 ? Vector<double>{} : exponent));
        }
    }
}

// sums[column][row] += products of the panel with n terms of packed columns.
inline void add_products(const double* panel, const double* packed, size_t n_columns,
                         size_t n_vectors, size_t first, size_t n, double* sums) {
    for (size_t b = 0; b * block < n_columns; ++b) {
        Scores<double> scores;
        scores.read(sums + b * block * height);
        scores.subtract(panel, packed + (b * n_vectors + first) * block, n);
        scores.write(sums + b * block * height);
    }
}

inline void weigh_kernels(const SumsJob& job, size_t first, size_t n, SumsWorkspace& workspace) {
    for (size_t i = 0; i < n; ++i)
        for (size_t r = 0; r < height; ++r)
            workspace.weighted[i * height + r] =
                workspace.kernels[i * height + r] * job.gradient_weights[first + i];
}

// A chunk of vectors for one tile.
inline void run_chunk(const SumsJob& job, size_t first, size_t n, const SumsTile& tile,
                      SumsWorkspace& workspace) {
    const size_t n_vectors = round_up(job.vectors.n_columns, block);
    fill_kernels(job, first, n, tile, workspace);
    add_products(workspace.kernels, job.weights, job.n_outputs, n_vectors, first, n, tile.sums);
    if (!job.gradients) return;
    weigh_kernels(job, first, n, workspace);
    add_products(workspace.weighted, job.features, job.n_features, n_vectors, first, n,
                 tile.gradients);
}

inline void write_tile(const SumsJob& job, size_t first, size_t n, const SumsTile& tile) {
    for (size_t r = 0; r < n; ++r) {
        for (size_t q = 0; q < job.n_outputs; ++q)
            job.sums[(first + r) * job.n_outputs + q] = tile.sums[q * height + r];
        if (!job.gradients) continue;
        for (size_t k = 0; k < job.n_features; ++k)
            job.gradients[(first + r) * job.n_features + k] =
                2.0 * job.gamma *
                (tile.gradients[k * height + r] - tile.panel[k * height + r] * tile.sums[r]);
    }
}

// Centre the rows of a tile and clear its sums.
inline void begin_tile(const SumsJob& job, size_t first, size_t n, const SumsTile& tile,
                       SumsWorkspace& workspace) {
    __builtin_memset(workspace.rows, 0, height * job.n_padded * sizeof(double));
    for (size_t r = 0; r < n; ++r)
        center_values(job.rows, row_start(job.rows, first + r), job.n_features, job.center,
                      workspace.rows + r * job.n_padded);
    transpose_tile(workspace.rows, job.n_padded, job.n_features, tile.panel);
    square_rows(job, tile);
    const size_t column = height * sizeof(double);
    __builtin_memset(tile.sums, 0, round_up(job.n_outputs, block) * column);
    if (job.gradients)
        __builtin_memset(tile.gradients, 0, round_up(job.n_features, block) * column);
}

// All vectors for a group of tiles.
inline void run_tiles(const SumsJob& job, size_t first, size_t n, SumsWorkspace& workspace) {
    const auto count = [n](size_t r) { return n - r < height ? n - r : height; };
    for (size_t r = 0; r < n; r += height)
        begin_tile(job, first + r, count(r), workspace.tiles[r / height], workspace);
    const size_t n_vectors = round_up(job.vectors.n_columns, block);
    for (size_t v = 0; v < n_vectors; v += chunk)
        for (size_t r = 0; r < n; r += height)
            run_chunk(job, v, n_vectors - v < chunk ? n_vectors - v : chunk,
                      workspace.tiles[r / height], workspace);
    for (size_t r = 0; r < n; r += height)
        write_tile(job, first + r, count(r), workspace.tiles[r / height]);
}

void run_sums(const SumsJob& job, size_t first, size_t last, double* memory) {
    SumsWorkspace workspace(job, memory);
    const size_t most = workspace.n_tiles * height;
    for (; first < last; first += most)
        run_tiles(job, first, last - first < most ? last - first : most, workspace);
}

size_t workspace_size(const SumsJob& job) { return SumsWorkspace(job, nullptr).size; }

}  // namespace

extern const SumsKernel LIMES_OF_LEVEL(sums);
const SumsKernel LIMES_OF_LEVEL(sums) = {
    {lanes<double>, height, block}, &workspace_size, &run_sums};

}  // namespace limes
