// Scores of a tile of rows against packed points, and the nearest point of each row.
//
// score = bias - row . point, one chain of operations per score in the order of the terms, so that
// tiles, single rows and blocks of terms all give the same bits.
#pragma once
#include "simd.hpp"
#include "types.hpp"

namespace limes {
namespace {

// Terms of a panel that stay in a 32 KB first-level cache beside the streamed points.
template <class Real>
constexpr size_t max_terms = 20480 / (tile_rows<Real> * sizeof(Real)) / 4 * 4;
// Blocks of points whose unfinished scores are kept between two blocks of terms.
constexpr size_t max_blocks = 64;

// Scores of a tile: rows by points of one block.
template <class Real>
struct Scores {
    Vector<Real> at[row_vectors][block];

    inline void begin(const Real* biases) {
        for (size_t p = 0; p < block; ++p)
            for (size_t r = 0; r < row_vectors; ++r) at[r][p] = broadcast(biases[p]);
    }
    inline void read(const Real* from) {
        for (size_t p = 0; p < block; ++p)
            for (size_t r = 0; r < row_vectors; ++r)
                at[r][p] = load(from + p * tile_rows<Real> + r * lanes<Real>);
    }
    inline void write(Real* to) const {
        for (size_t p = 0; p < block; ++p)
            for (size_t r = 0; r < row_vectors; ++r)
                store(to + p * tile_rows<Real> + r * lanes<Real>, at[r][p]);
    }
    __attribute__((always_inline)) inline void subtract(const Real* panel, const Real* points,
                                                        size_t n_terms) {
        for (size_t k = 0; k < n_terms; ++k, panel += tile_rows<Real>, points += block) {
            Vector<Real> rows[row_vectors];
            for (size_t r = 0; r < row_vectors; ++r)
                rows[r] = keep_in_register(load(panel + r * lanes<Real>));
#pragma GCC unroll 16
            for (size_t p = 0; p < block; ++p) {
                const Vector<Real> point = broadcast(points[p]);
#pragma GCC unroll 4
                for (size_t r = 0; r < row_vectors; ++r)
                    at[r][p] = fnmadd(rows[r], point, at[r][p]);
            }
        }
    }
};

// Call `take(block number, scores)` with the scores of every block of points, in order.
// `partial` holds max_blocks * block * tile_rows numbers. Inlined always, like the `take` that
// works on the scores: they must stay in registers.
template <class Real, class Take>
__attribute__((always_inline)) inline void scan_points(const Real* panel,
                                                       const Panels<Real>& points, Real* partial,
                                                       Take take) {
    const size_t n_blocks = (points.n_columns + block - 1) / block;
    const size_t n_terms = points.n_terms;
    if (n_terms <= max_terms<Real> + max_terms<Real> / 4) {
        for (size_t b = 0; b < n_blocks; ++b) {
            Scores<Real> scores;
            scores.begin(points.biases + b * block);
            scores.subtract(panel, points.tiles + b * n_terms * block, n_terms);
            take(b, scores);
        }
        return;
    }
    for (size_t first = 0; first < n_blocks; first += max_blocks) {
        const size_t last = first + max_blocks < n_blocks ? first + max_blocks : n_blocks;
        for (size_t k = 0; k < n_terms; k += max_terms<Real>) {
            const size_t n = n_terms - k < max_terms<Real> ? n_terms - k : max_terms<Real>;
            for (size_t b = first; b < last; ++b) {
                Real* kept = partial + (b - first) * block * tile_rows<Real>;
                Scores<Real> scores;
                if (k == 0)
                    scores.begin(points.biases + b * block);
                else
                    scores.read(kept);
                scores.subtract(panel + k * tile_rows<Real>,
                                points.tiles + (b * n_terms + k) * block, n);
                if (k + n < n_terms)
                    scores.write(kept);
                else
                    take(b, scores);
            }
        }
    }
}

// The nearest point of each row of a tile; the lowest index among equals, 0 if all are NaN.
template <class Real>
inline void find_nearest(const Real* panel, const Panels<Real>& points, Real* partial,
                         int32_t* nearest) {
    if (points.n_columns == 1) {
        for (size_t r = 0; r < tile_rows<Real>; ++r) nearest[r] = 0;
        return;
    }
    struct {
        Vector<Real> scores[row_vectors];
        Index<Real> points[row_vectors];
    } best;
    for (size_t r = 0; r < row_vectors; ++r) {
        best.scores[r] = broadcast(infinity<Real>);
        best.points[r] = Index<Real>{};
    }
    using Integer = typename Lanes<Real>::Integer;
    scan_points(panel, points, partial,
                [&](size_t b, const Scores<Real>& scores) __attribute__((always_inline)) {
                    // Kept in memory between two blocks: the scores need all registers.
                    asm("" : "+m"(best));
                    for (size_t p = 0; p < block; ++p) {
                        const Index<Real> number = broadcast(Integer(b * block + p));
                        for (size_t r = 0; r < row_vectors; ++r) {
                            const Index<Real> better = scores.at[r][p] < best.scores[r];
                            best.points[r] = better ? number : best.points[r];
                            best.scores[r] = min(scores.at[r][p], best.scores[r]);
                        }
                    }
                });
    for (size_t r = 0; r < row_vectors; ++r)
        for (size_t l = 0; l < lanes<Real>; ++l)
            nearest[r * lanes<Real> + l] = int32_t(best.points[r][l]);
}

// Products of a tile with the columns of a projection, laid out as a panel.
template <class Real>
inline void project_tile(const Real* panel, const Panels<Real>& projection, Real* partial,
                         Real* projected) {
    scan_points(panel, projection, partial, [&](size_t b, const Scores<Real>& scores) {
        scores.write(projected + b * block * tile_rows<Real>);
    });
}

// Scores of one row against n_vectors vectors of points, padding included.
template <class Real, size_t n_vectors>
inline void score_lanes(const Real* row, const Panels<Real>& points, size_t first, Real* scores) {
    const size_t n_terms = points.n_terms;
    const Real* columns = points.lanes + first * n_terms * lanes<Real>;
    Vector<Real> sums[n_vectors];
    for (size_t v = 0; v < n_vectors; ++v)
        sums[v] = load(points.biases + (first + v) * lanes<Real>);
    for (size_t k = 0; k < n_terms; ++k) {
        const Vector<Real> term = broadcast(row[k]);
        for (size_t v = 0; v < n_vectors; ++v) {
            const Vector<Real> column = load(columns + (v * n_terms + k) * lanes<Real>);
            sums[v] = fnmadd(term, column, sums[v]);
        }
    }
    for (size_t v = 0; v < n_vectors; ++v) store(scores + (first + v) * lanes<Real>, sums[v]);
}

template <class Real>
inline void score_row(const Real* row, const Panels<Real>& points, Real* scores) {
    const size_t n = (points.n_columns + lanes<Real> - 1) / lanes<Real>;
    size_t v = 0;
    for (; v + 8 <= n; v += 8) score_lanes<Real, 8>(row, points, v, scores);
    if (v + 4 <= n) score_lanes<Real, 4>(row, points, v, scores), v += 4;
    for (; v < n; ++v) score_lanes<Real, 1>(row, points, v, scores);
}

template <class Real>
inline Real min_lane(Vector<Real> scores) {
    Real least = scores[0];
    for (size_t l = 1; l < lanes<Real>; ++l) least = scores[l] < least ? scores[l] : least;
    return least;
}

// The first of the lowest scores, 0 if all are NaN; padding is never below infinity.
template <class Real>
inline int32_t first_lowest(const Real* scores, size_t n) {
    const size_t n_vectors = (n + lanes<Real> - 1) / lanes<Real>;
    Vector<Real> least = broadcast(infinity<Real>);
    for (size_t v = 0; v < n_vectors; ++v) least = min(load(scores + v * lanes<Real>), least);
    const Real best = min_lane<Real>(least);
    if (!(best < infinity<Real>)) return 0;
    size_t i = 0;
    while (scores[i] != best) ++i;
    return int32_t(i);
}

}  // namespace
}  // namespace limes
