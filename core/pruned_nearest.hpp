// Nearest point in a large map: whole groups of points are ruled out by the triangle inequality.
//
// The remaining points are scored by the same operations as in the plain search, and the bounds
// allow for every rounding error, so that both give the same points, ties included.
#pragma once
#include "nearest.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace limes {
namespace {

// Relative rounding error of the few operations of a bound itself, with a margin.
template <class Real>
constexpr Real rounding_margin = sizeof(Real) == 4 ? Real(1e-6) : Real(2e-15);

// Scoring a point is cheaper in the plain search, which wins if more than one group in this many
// remains (measured).
constexpr size_t min_group_ratio = 4;

// Vectors of points that are scored together for one row.
constexpr size_t vectors_per_pass = 4;

// Workspace of the group search of a tile, and its success so far.
template <class Real>
struct GroupWorkspace {
    Real* scores;         // [group][row]: of the centres
    uint32_t* marks;      // [vector of rows][32 groups][row of the vector]
    uint32_t* remaining;  // vectors of points that remain for one row
    size_t n_skipped;     // tiles to search plainly before the groups are tried again
    size_t failures;      // consecutive

    // After a failure the next tiles are searched plainly; their number doubles each time.
    inline void record(bool is_found) {
        n_skipped = is_found ? 0 : size_t(1) << (failures < 6 ? failures : 6);
        failures = is_found ? 0 : failures + 1;
    }
};

// Scores of vectors_per_pass vectors of points for one row; row[term * tile_rows].
template <class Real>
inline void score_vectors(const Groups<Real>& groups, const uint32_t* vectors, const Real* row,
                          Vector<Real> (&scores)[vectors_per_pass]) {
    const size_t n_terms = groups.centers.n_terms;
    const Real* points[vectors_per_pass];
    for (size_t i = 0; i < vectors_per_pass; ++i) {
        points[i] = groups.lanes + vectors[i] * n_terms * lanes<Real>;
        scores[i] = load(groups.biases + vectors[i] * lanes<Real>);
    }
    for (size_t k = 0; k < n_terms; ++k) {
        const Vector<Real> term = broadcast(row[k * tile_rows<Real>]);
        for (size_t i = 0; i < vectors_per_pass; ++i)
            scores[i] = fnmadd(term, load(points[i] + k * lanes<Real>), scores[i]);
    }
}

// Append the vectors of a group, vectors_per_pass at a time, without a branch on their number.
template <class Real>
inline size_t list_group(const Groups<Real>& groups, size_t group, uint32_t* vectors,
                         size_t count) {
    const uint32_t first = groups.starts[group], last = groups.starts[group + 1];
    for (uint32_t v = first; v < last; v += vectors_per_pass)
        for (uint32_t i = 0; i < vectors_per_pass; ++i) vectors[count + (v - first) + i] = v + i;
    return count + (last - first);
}

// Fill the last pass with the empty vector.
template <class Real>
inline size_t pad_list(const Groups<Real>& groups, uint32_t* vectors, size_t count) {
    for (size_t i = 0; i < vectors_per_pass; ++i) vectors[count + i] = uint32_t(groups.n_vectors);
    return round_up(count, vectors_per_pass);
}

// The lowest score of one group for one row.
template <class Real>
inline Real lowest_score(const Groups<Real>& groups, size_t group, const Real* row,
                         uint32_t* vectors) {
    const size_t count = pad_list(groups, vectors, list_group(groups, group, vectors, 0));
    Vector<Real> low = broadcast(infinity<Real>);
    for (size_t i = 0; i < count; i += vectors_per_pass) {
        Vector<Real> scores[vectors_per_pass];
        score_vectors(groups, vectors + i, row, scores);
        for (size_t j = 0; j < vectors_per_pass; ++j) low = min(scores[j], low);
    }
    return min_lane<Real>(low);
}

// What a group's centre must exceed to be ruled out: base + radius * (reach + radius / 2).
template <class Real>
struct Bound {
    Real base, reach;

    // `limit`: the score to beat; `square`: |z'|^2. A NaN in either rules nothing out.
    inline Bound(const Groups<Real>& groups, Real limit, Real square) {
        const Real grow = 1 + Real(groups.centers.n_terms + 8) * rounding_margin<Real>;
        const Real error = groups.error + groups.error_slope * square_root(square) * grow;
        const Real reached = square * grow + 2 * (limit - groups.constant) + 4 * error;
        base = limit + 4 * error;
        reach = square_root(reached > 0 ? reached : Real(0)) * (1 + 4 * rounding_margin<Real>);
    }
};

// The square of |z'|, for each row of a vector.
template <class Real>
inline Vector<Real> squared_norm(const Groups<Real>& groups, const Real* panel) {
    Vector<Real> sum{};
    for (size_t k = 0; k < groups.centers.n_terms; ++k) {
        const Vector<Real> part =
            (load(panel + k * tile_rows<Real>) + groups.origin[k]) * groups.inverse_scale[k];
        sum += part * part;
    }
    return sum;
}

// The nearest centre of each row of a vector.
template <class Real>
inline Index<Real> nearest_center(const Groups<Real>& groups, const Real* scores) {
    using Integer = typename Lanes<Real>::Integer;
    Vector<Real> best = broadcast(infinity<Real>);
    Index<Real> index{};
    for (size_t g = 0; g < groups.n_groups; ++g) {
        const Vector<Real> score = load(scores + g * tile_rows<Real>);
        index = score < best ? broadcast(Integer(g)) : index;
        best = min(score, best);
    }
    return index;
}

// Mark, for every row of a vector, the groups that are not ruled out; return how many.
template <class Real>
inline size_t mark_groups(const Groups<Real>& groups, const Real* scores, Vector<Real> base,
                          Vector<Real> reach, uint32_t* marks) {
    using Integer = typename Lanes<Real>::Integer;
    size_t count = 0;
    for (size_t first = 0; first < groups.n_groups; first += 32, marks += lanes<Real>) {
        const size_t last = first + 32 < groups.n_groups ? first + 32 : groups.n_groups;
        Index<Real> word{};
        for (size_t g = first; g < last; ++g) {
            const Real radius = groups.radii[g];
            const Vector<Real> most = base + radius * (reach + Real(0.5) * radius);
            const Index<Real> is_out = load(scores + g * tile_rows<Real>) > most;
            word |= ~is_out & broadcast(Integer(int64_t(1) << (g - first)));
        }
        for (size_t l = 0; l < lanes<Real>; ++l) {
            marks[l] = uint32_t(word[l]);
            count += size_t(__builtin_popcount(marks[l]));
        }
    }
    return count;
}

// Mark the groups that the nearest group of each row of a vector does not rule out.
template <class Real>
inline size_t mark_vector(const Groups<Real>& groups, const Real* panel, const Real* scores,
                          size_t n_rows, uint32_t* marks, uint32_t* vectors) {
    const Index<Real> nearest = nearest_center(groups, scores);
    const Vector<Real> squares = squared_norm(groups, panel);
    Vector<Real> base = broadcast(-infinity<Real>), reach{};
    for (size_t l = 0; l < n_rows; ++l) {
        const Real limit = lowest_score(groups, size_t(nearest[l]), panel + l, vectors);
        const Bound<Real> bound(groups, limit, squares[l]);
        base[l] = bound.base;
        reach[l] = bound.reach;
    }
    return mark_groups(groups, scores, base, reach, marks);
}

// List the vectors of all groups marked for one row.
template <class Real>
inline size_t list_marked(const Groups<Real>& groups, const uint32_t* marks, uint32_t* vectors) {
    size_t count = 0;
    for (size_t first = 0; first < groups.n_groups; first += 32, marks += lanes<Real>)
        for (uint32_t word = *marks; word; word &= word - 1)
            count = list_group(groups, first + size_t(__builtin_ctz(word)), vectors, count);
    return pad_list(groups, vectors, count);
}

// The nearest point of one row, lane by lane, without a branch on the scores.
template <class Real>
inline int32_t nearest_listed(const Groups<Real>& groups, const uint32_t* vectors, size_t count,
                              const Real* row) {
    Vector<Real> best = broadcast(infinity<Real>);
    Index<Real> points{};
    for (size_t i = 0; i < count; i += vectors_per_pass) {
        Vector<Real> scores[vectors_per_pass];
        score_vectors(groups, vectors + i, row, scores);
        for (size_t j = 0; j < vectors_per_pass; ++j) {
            const Index<Real> indices =
                load_indices(groups.indices + vectors[i + j] * lanes<Real>, Real());
            const Index<Real> is_better =
                (scores[j] < best) | ((scores[j] == best) & (indices < points));
            best = is_better ? scores[j] : best;
            points = is_better ? indices : points;
        }
    }
    const Real least = min_lane<Real>(best);
    if (!(least < infinity<Real>)) return 0;
    int32_t lowest = INT32_MAX;
    for (size_t l = 0; l < lanes<Real>; ++l)
        lowest = best[l] == least && points[l] < lowest ? int32_t(points[l]) : lowest;
    return lowest;
}

// The nearest point of each row of a tile. Returns false if so many groups remain that the plain
// search is faster.
template <class Real>
inline bool search_groups(const Real* panel, const Groups<Real>& groups, Real* partial,
                          size_t n_rows, const GroupWorkspace<Real>& workspace, int32_t* nearest) {
    const size_t n_words = (groups.n_groups + 31) / 32 * lanes<Real>;
    scan_points(panel, groups.centers, partial, [&](size_t b, const Scores<Real>& scores) {
        scores.write(workspace.scores + b * block * tile_rows<Real>);
    });
    size_t n_marked = 0;
    for (size_t first = 0; first < n_rows; first += lanes<Real>)
        n_marked +=
            mark_vector(groups, panel + first, workspace.scores + first,
                        n_rows - first < lanes<Real> ? n_rows - first : lanes<Real>,
                        workspace.marks + first / lanes<Real> * n_words, workspace.remaining);
    if (n_marked * min_group_ratio > groups.n_groups * n_rows) return false;
    for (size_t r = 0; r < n_rows; ++r) {
        const uint32_t* marks = workspace.marks + r / lanes<Real> * n_words + r % lanes<Real>;
        const size_t count = list_marked(groups, marks, workspace.remaining);
        nearest[r] = nearest_listed(groups, workspace.remaining, count, panel + r);
    }
    return true;
}

// Search by groups if there are groups and that is faster.
template <class Real>
inline bool try_group_search(const Real* panel, const Groups<Real>* groups, Real* partial,
                             size_t n_rows, GroupWorkspace<Real>& workspace, int32_t* nearest) {
    if (!groups) return false;
    if (workspace.n_skipped > 0) {
        --workspace.n_skipped;
        return false;
    }
    const bool is_found = search_groups(panel, *groups, partial, n_rows, workspace, nearest);
    workspace.record(is_found);
    return is_found;
}

}  // namespace
}  // namespace limes
