// The k nearest points of a row and their weights: the weight of a point is proportional to the
// difference between its score and that of the (k + 1)-th nearest point (an Epanechnikov kernel
// whose radius is the distance to that point).
//
// The score of the (k + 1)-th point is the limit: once it is known, nothing needs to be sorted.
#pragma once
#include <limits>

#include "nearest.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace limes {
namespace {

// Maximum number of lowest scores that are kept.
constexpr size_t max_places = max_dense_blended + 1;

// Sort two numbers, neither of which is NaN.
template <class Real>
__attribute__((always_inline)) inline void order(Vector<Real>& low, Vector<Real>& high) {
    const Vector<Real> first = low;
    low = min(first, high);
    high = max(first, high);
}

// Sort a bitonic sequence: one that rises and then falls. (Lanes cannot branch, hence sorting
// networks.)
template <class Real, size_t n>
__attribute__((always_inline)) inline void sort_bitonic(Vector<Real>* numbers) {
    if constexpr (n > 1) {
#pragma GCC unroll 8
        for (size_t i = 0; i < n / 2; ++i) order<Real>(numbers[i], numbers[i + n / 2]);
        sort_bitonic<Real, n / 2>(numbers);
        sort_bitonic<Real, n / 2>(numbers + n / 2);
    }
}

// Sort any sequence: both halves, then compare across them, then two bitonic halves.
template <class Real, size_t n>
__attribute__((always_inline)) inline void sort_numbers(Vector<Real>* numbers) {
    if constexpr (n > 1) {
        sort_numbers<Real, n / 2>(numbers);
        sort_numbers<Real, n / 2>(numbers + n / 2);
#pragma GCC unroll 8
        for (size_t i = 0; i < n / 2; ++i) order<Real>(numbers[i], numbers[n - 1 - i]);
        sort_bitonic<Real, n / 2>(numbers);
        sort_bitonic<Real, n / 2>(numbers + n / 2);
    }
}

// The lowest scores of each row of a vector, sorted. Scores are taken n at a time and sorted first:
// half the comparisons of insertion one by one.
template <class Real, size_t shared, size_t n>
struct Lowest {
    Vector<Real> places[n];

    inline Lowest(const Real* scores, size_t n_points) {
        for (size_t i = 0; i < n; ++i) places[i] = broadcast(infinity<Real>);
        size_t first = 0;
        for (; first + n * shared <= n_points; first += n * shared)
            take(scores + first * tile_rows<Real>, n * shared);
        if (first < n_points) take(scores + first * tile_rows<Real>, n_points - first);
    }

private:
    // Take the lowest score of each `shared` points.
    __attribute__((always_inline)) inline void take(const Real* scores, size_t n_points) {
        Vector<Real> numbers[n];
#pragma GCC unroll 16
        for (size_t i = 0; i < n; ++i) {
            numbers[i] = broadcast(infinity<Real>);
            for (size_t p = i * shared; p < (i + 1) * shared && p < n_points; ++p)
                numbers[i] = min(load(scores + p * tile_rows<Real>), numbers[i]);
        }
        sort_numbers<Real, n>(numbers);
#pragma GCC unroll 16
        for (size_t i = 0; i < n; ++i) places[i] = min(places[i], numbers[n - 1 - i]);
        sort_bitonic<Real, n>(places);
    }
};

// Return the size-th lowest of the minima over groups of `shared` points: an upper bound of the
// size-th lowest score, and equal to it if shared is 1.
template <class Real, size_t shared>
inline Vector<Real> bound_scores(const Real* scores, size_t n_points, size_t size) {
    if (size <= 4) return Lowest<Real, shared, 4>(scores, n_points).places[size - 1];
    if (size <= 8) return Lowest<Real, shared, 8>(scores, n_points).places[size - 1];
    return Lowest<Real, shared, max_places>(scores, n_points).places[size - 1];
}

// Smaller sums of weights have no finite inverse.
template <class Real>
constexpr Real min_weight_sum = std::numeric_limits<Real>::min();

// The lowest scores of one row so far, sorted.
template <class Real>
struct Ranking {
    Real* scores;
    size_t size, filled = 0;

    inline Real limit() const { return filled < size ? infinity<Real> : scores[size - 1]; }
    // A NaN is never inserted.
    inline void offer(Real score) {
        if (!(score < limit())) return;
        size_t i = filled < size ? filled++ : size - 1;
        for (; i > 0 && score < scores[i - 1]; --i) scores[i] = scores[i - 1];
        scores[i] = score;
    }
};

// Points that share a bound; in a map of few points each has its own, since shared bounds would be
// loose.
constexpr size_t points_per_bound = 4, max_exact_points = max_dense_points;

// Workspace for the search of the k nearest points of a tile.
template <class Real>
struct BlendWorkspace {
    Real* scores;      // [point][row of the tile]
    uint32_t* bits;    // [32 points][row of a vector]: whether a score is within the bound
    Real* ranked;      // the k + 1 lowest scores of one row
    Real* weights;     // [row][near]
    int32_t* near;     // [row][near], in the order of their index
    Real* all_values;  // [value][point]: of one row and a dense map, negated
};

inline void store_words(Index<float> words, uint32_t* to) {
    __builtin_memcpy(to, &words, sizeof words);
}
inline void store_words(Index<double> words, uint32_t* to) {
    for (size_t l = 0; l < lanes<double>; ++l) to[l] = uint32_t(words[l]);
}

// Mark, for every row of a vector, the points whose score is below the limit, or not above it if
// the limit is only a bound; whole words of 64 points.
template <class Real, bool is_exact>
inline void mark_points(const Real* scores, size_t n_points, Vector<Real> limit, uint32_t* bits) {
    using Integer = typename Lanes<Real>::Integer;
    for (size_t first = 0; first < round_up(n_points, 64); first += 32, bits += lanes<Real>) {
        const size_t last = first + 32 < n_points ? first + 32 : n_points;
        Index<Real> word{};
        for (size_t i = first; i < last; ++i) {
            const Vector<Real> score = load(scores + i * tile_rows<Real>);
            const Index<Real> is_near = is_exact ? score < limit : score <= limit;
            word |= is_near & broadcast(Integer(int64_t(1) << (i - first)));
        }
        store_words(word, bits);
    }
}

// The points of one row within a bound, in the order of their index. Their number varies from
// row to row: a fixed, usual number of steps costs less than a mispredicted branch.
template <class Real>
struct Candidates {
    static constexpr size_t few = lanes<Real> < 8 ? 8 : lanes<Real>;
    static constexpr size_t usual = 16, most = 32, usual_in_word = 4;
    alignas(64) Real scores[most + usual_in_word];
    int32_t points[most + usual_in_word];
    size_t count = 0, size = 0;

    // Returns false if there are too many.
    inline bool collect(const Real* column, const uint32_t* bits, size_t n_points) {
        for (size_t first = 0; first < n_points; first += 64, bits += 2 * lanes<Real>) {
            uint64_t word = bits[0] | uint64_t(bits[lanes<Real>]) << 32;
            const size_t n = size_t(__builtin_popcountll(word));
            if (count + n > most) return false;
            for (size_t i = 0; i < usual_in_word; ++i) word = read(column, first, word, count + i);
            for (size_t i = usual_in_word; i < n; ++i) word = read(column, first, word, count + i);
            count += n;
        }
        size = count <= few ? few : count <= usual ? usual : most;
        for (size_t i = count; i < size; ++i) scores[i] = infinity<Real>;
        return true;
    }
    // The score of the given rank, from 0.
    inline Real ranked(size_t rank) const {
        if (size == few) return ranked_of<few>(rank);
        return size == usual ? ranked_of<usual>(rank) : ranked_of<most>(rank);
    }

private:
    // Read the first point of a word, if it has one; return the word without it.
    inline uint64_t read(const Real* column, size_t first, uint64_t word, size_t place) {
        const size_t point = first + size_t(__builtin_ctzll(word | uint64_t(1) << 63));
        points[place] = int32_t(point);
        scores[place] = column[point * tile_rows<Real>];
        return word & (word - 1);
    }
    template <size_t n>
    inline Real ranked_of(size_t rank) const {
        using Integer = typename Lanes<Real>::Integer;
        Vector<Real> highest = broadcast(-infinity<Real>);
        for (size_t v = 0; v < n; v += lanes<Real>) {
            const Vector<Real> own = load(scores + v);
            Index<Real> n_below{};  // negative: true is -1
            for (size_t i = 0; i < n; ++i) n_below += broadcast(scores[i]) < own;
            const Index<Real> is_in_rank = n_below >= broadcast(-Integer(rank));
            highest = max(is_in_rank ? own : broadcast(-infinity<Real>), highest);
        }
        Real found = highest[0];
        for (size_t l = 1; l < lanes<Real>; ++l) found = highest[l] > found ? highest[l] : found;
        return found;
    }
};

// The k nearest points of a row, in the order of their index, and their weights. The arrays have
// k + 1 elements.
template <class Real>
struct BlendedPoints {
    Real* weights;
    int32_t* points;
    size_t size, filled = 0;
    Real sum = 0;

    // Append a point if its weight is positive, which is so for at most k.
    inline void offer(Real weight, size_t point) {
        weights[filled] = weight;
        points[filled] = int32_t(point);
        filled += weight > 0;
        sum += weight > 0 ? weight : Real(0);
    }
    // Make the weights sum to 1; unused elements get the weight 0.
    inline void finish() {
        for (size_t i = filled; i < size; ++i) weights[i] = 0, points[i] = 0;
        const Real total = sum, inverse = 1 / total;
        // One division for all, unless the inverse overflows.
        for (size_t i = 0; i < size; ++i)
            weights[i] = total < min_weight_sum<Real> ? weights[i] / total : weights[i] * inverse;
    }
};

// Weights from the scores of all points for one row, `step` elements apart. If the k + 1 nearest
// are equally near, the first k get equal weights.
template <class Real>
inline void weigh_all(const Real* column, size_t step, size_t n_points, Real* ranked,
                      BlendedPoints<Real>& near) {
    Ranking<Real> ranking{ranked, near.size + 1};
    for (size_t i = 0; i < n_points; ++i) ranking.offer(column[i * step]);
    const Real limit = ranking.limit();
    for (size_t i = 0; i < n_points; ++i)
        if (column[i * step] < limit) near.offer(limit - column[i * step], i);
    const bool is_even = near.filled == 0;
    for (size_t i = 0; is_even && i < n_points && near.filled < near.size; ++i)
        if (column[i * step] == limit) near.offer(1, i);
    near.finish();
}

// The same for one row of a tile, given the limit and the points below it. Returns false if there
// are none.
template <class Real>
inline bool weigh_marked(const Real* column, const uint32_t* bits, size_t n_points, Real limit,
                         BlendedPoints<Real>& near) {
    for (size_t first = 0; first < n_points; first += 64, bits += 2 * lanes<Real>) {
        uint64_t word = bits[0] | uint64_t(bits[lanes<Real>]) << 32;
        const int n = __builtin_popcountll(word);
        for (int i = 0; i < n; ++i, word &= word - 1) {
            const size_t point = first + size_t(__builtin_ctzll(word));
            near.offer(limit - column[point * tile_rows<Real>], point);
        }
    }
    if (near.filled == 0) return false;
    near.finish();
    return true;
}

// The same for one row, given the points within an upper bound of the limit. Returns false if
// there are too many, or if all are equally near.
template <class Real>
inline bool weigh_candidates(const Real* column, const uint32_t* bits, size_t n_points,
                             BlendedPoints<Real>& near) {
    Candidates<Real> found;
    if (!found.collect(column, bits, n_points) || found.count <= near.size) return false;
    const Real limit = found.ranked(near.size);
    for (size_t i = 0; i < found.size; ++i)
        near.offer(limit - found.scores[i], size_t(found.points[i]));
    if (near.filled == 0) return false;
    near.finish();
    return true;
}

// The same for n_rows rows of one vector, from `first` on. If points have their own bounds, these
// are the limits; else few scores are within the bound. Rows for which that fails (ties, infinite
// scores) fall back to weigh_all.
template <class Real, size_t shared>
inline void weigh_bounded(const Map<Real>& map, size_t first, size_t n_rows,
                          const BlendWorkspace<Real>& workspace) {
    const size_t n_near = map.n_blended, n_points = map.points.n_columns;
    const Vector<Real> bounds =
        bound_scores<Real, shared>(workspace.scores + first, n_points, n_near + 1);
    mark_points<Real, shared == 1>(workspace.scores + first, n_points, bounds, workspace.bits);
    for (size_t l = 0; l < n_rows; ++l) {
        const Real* column = workspace.scores + first + l;
        const uint32_t* bits = workspace.bits + l;
        const size_t place = (first + l) * n_near;
        BlendedPoints<Real> near{workspace.weights + place, workspace.near + place, n_near};
        const bool is_found = shared == 1 ? weigh_marked(column, bits, n_points, bounds[l], near)
                                          : weigh_candidates(column, bits, n_points, near);
        if (!is_found) weigh_all(column, tile_rows<Real>, n_points, workspace.ranked, near);
    }
}

template <class Real>
inline void weigh_vector(const Map<Real>& map, size_t first, size_t n_rows,
                         const BlendWorkspace<Real>& workspace) {
    const size_t n_near = map.n_blended, n_points = map.points.n_columns;
    if (n_near < max_places && n_points <= max_exact_points)
        return weigh_bounded<Real, 1>(map, first, n_rows, workspace);
    if (n_near < max_places)
        return weigh_bounded<Real, points_per_bound>(map, first, n_rows, workspace);
    for (size_t r = first; r < first + n_rows; ++r) {
        BlendedPoints<Real> near{workspace.weights + r * n_near, workspace.near + r * n_near,
                                 n_near};
        weigh_all(workspace.scores + r, tile_rows<Real>, n_points, workspace.ranked, near);
    }
}

// The scores of all points for each row of a tile, in workspace.scores.
template <class Real>
inline void score_tile(const Real* panel, const Map<Real>& map, Real* partial,
                       const BlendWorkspace<Real>& workspace) {
    scan_points(panel, map.points, partial, [&](size_t b, const Scores<Real>& scores) {
        scores.write(workspace.scores + b * block * tile_rows<Real>);
    });
}

// The k nearest points of each row of a tile, in workspace.near, and their weights.
template <class Real>
inline void weigh_tile(const Real* panel, const Map<Real>& map, Real* partial, size_t n_rows,
                       const BlendWorkspace<Real>& workspace) {
    score_tile(panel, map, partial, workspace);
    for (size_t first = 0; first < n_rows; first += lanes<Real>)
        weigh_vector(map, first, n_rows - first < lanes<Real> ? n_rows - first : lanes<Real>,
                     workspace);
}

}  // namespace
}  // namespace limes
