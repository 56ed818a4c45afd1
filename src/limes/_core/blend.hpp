// The k nearest points of a row and their weights: each by how much nearer it is than the next one
// after them (an Epanechnikov kernel that reaches the next neighbour).
//
// The score of that next one is a limit, and the weight of a point is what its score lacks of it:
// once the limit is known, nothing needs to be sorted.
#pragma once
#include <limits>

#include "core.hpp"
#include "lowest.hpp"
#include "search.hpp"
#include "vectors.hpp"

namespace limes {
namespace {

// Smaller sums of weights have no inverse.
template <class Real>
constexpr Real least_sum = std::numeric_limits<Real>::min();

// The lowest scores of one row so far, sorted.
template <class Real>
struct Ranking {
    Real* scores;
    size_t size, filled = 0;

    inline Real limit() const { return filled < size ? infinity<Real> : scores[size - 1]; }
    // A NaN is refused: it is below nothing.
    inline void offer(Real score) {
        if (!(score < limit())) return;
        size_t i = filled < size ? filled++ : size - 1;
        for (; i > 0 && score < scores[i - 1]; --i) scores[i] = scores[i - 1];
        scores[i] = score;
    }
};

// Points that share a bound; each has its own in a map of so few that shared ones would be loose.
constexpr size_t most_shared = 4, few_points = dense_points;

// Room for the search of the k nearest points of a tile.
template <class Real>
struct BlendRoom {
    Real* scores;     // [point][row of the tile]
    uint32_t* bits;   // [32 points][row of a vector]: whether a score is within the bound
    Real* ranked;     // the k + 1 lowest scores of one row
    Real* weights;    // [row][near]
    int32_t* near;    // [row][near], in the order of their index
    Real* every;      // [value][point]: of one row and a dense map, negated
};

inline void store_words(Index<float> words, uint32_t* to) {
    __builtin_memcpy(to, &words, sizeof words);
}
inline void store_words(Index<double> words, uint32_t* to) {
    for (size_t l = 0; l < lanes<double>; ++l) to[l] = uint32_t(words[l]);
}

// Mark, for every row of a vector, the points whose score is below the limit, or at it where that
// is only a bound: whole words of 64.
template <class Real, bool is_exact>
inline void mark_points(const Real* scores, size_t n_points, Vector<Real> limit, uint32_t* bits) {
    using Integer = typename Lanes<Real>::Integer;
    for (size_t first = 0; first < round_up(n_points, 64); first += 32, bits += lanes<Real>) {
        const size_t last = first + 32 < n_points ? first + 32 : n_points;
        Index<Real> word{};
        for (size_t i = first; i < last; ++i) {
            const Vector<Real> score = load(scores + i * tile_rows<Real>);
            const Index<Real> is_near = is_exact ? score < limit : score <= limit;
            word |= is_near & spread(Integer(int64_t(1) << (i - first)));
        }
        store_words(word, bits);
    }
}

// The points of one row within a bound, in the order of their index. How many there are varies from
// row to row: as many steps as there usually are cost less than a branch that is guessed wrong.
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
    // The score that `rank` others, and no more, may be below.
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
        Vector<Real> highest = spread(-infinity<Real>);
        for (size_t v = 0; v < n; v += lanes<Real>) {
            const Vector<Real> own = load(scores + v);
            Index<Real> n_below{};  // counted downwards: true is -1
            for (size_t i = 0; i < n; ++i) n_below += spread(scores[i]) < own;
            const Index<Real> is_within = n_below >= spread(-Integer(rank));
            highest = larger(is_within ? own : spread(-infinity<Real>), highest);
        }
        Real found = highest[0];
        for (size_t l = 1; l < lanes<Real>; ++l) found = highest[l] > found ? highest[l] : found;
        return found;
    }
};

// The k nearest points of a row, in the order of their index. There is room for one more.
template <class Real>
struct Near {
    Real* weights;
    int32_t* points;
    size_t size, filled = 0;
    Real sum = 0;

    // Take a point if it has a weight; no more than k have one.
    inline void offer(Real weight, size_t point) {
        weights[filled] = weight;
        points[filled] = int32_t(point);
        filled += weight > 0;
        sum += weight > 0 ? weight : Real(0);
    }
    // Make the weights sum to 1; places that are left have none.
    inline void finish() {
        for (size_t i = filled; i < size; ++i) weights[i] = 0, points[i] = 0;
        const Real whole = sum, part = 1 / whole;
        // One division does for all, unless it overflows.
        for (size_t i = 0; i < size; ++i)
            weights[i] = whole < least_sum<Real> ? weights[i] / whole : weights[i] * part;
    }
};

// Find them among all points, by the scores of a row that are `step` apart. Where they are equally
// near, and so is the next, the first k share evenly.
template <class Real>
inline void weigh_all(const Real* column, size_t step, size_t n_points, Real* ranked,
                      Near<Real>& near) {
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

// The same for one row of a tile by its limit, given the points below it. Returns false where there
// are none.
template <class Real>
inline bool weigh_marked(const Real* column, const uint32_t* bits, size_t n_points, Real limit,
                         Near<Real>& near) {
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

// The same for one row by a bound of its limit, given the points within it. Returns false where
// there are too many, or all are equally near.
template <class Real>
inline bool weigh_candidates(const Real* column, const uint32_t* bits, size_t n_points,
                             Near<Real>& near) {
    Candidates<Real> found;
    if (!found.collect(column, bits, n_points) || found.count <= near.size) return false;
    const Real limit = found.ranked(near.size);
    for (size_t i = 0; i < found.size; ++i)
        near.offer(limit - found.scores[i], size_t(found.points[i]));
    if (near.filled == 0) return false;
    near.finish();
    return true;
}

// The same for the rows of one vector, `n_rows` of them; `first` is the first. Where points have
// their own bounds, these are the limits; else they leave few scores to look at. Rows where that is
// not so (ties, infinite scores) take the long way.
template <class Real, size_t shared>
inline void weigh_bounded(const Map<Real>& map, size_t first, size_t n_rows,
                          const BlendRoom<Real>& room) {
    const size_t n_near = map.n_blended, n_points = map.points.n_columns;
    const Vector<Real> bounds =
        bound_scores<Real, shared>(room.scores + first, n_points, n_near + 1);
    mark_points<Real, shared == 1>(room.scores + first, n_points, bounds, room.bits);
    for (size_t l = 0; l < n_rows; ++l) {
        const Real* column = room.scores + first + l;
        const uint32_t* bits = room.bits + l;
        const size_t place = (first + l) * n_near;
        Near<Real> near{room.weights + place, room.near + place, n_near};
        const bool is_found = shared == 1 ? weigh_marked(column, bits, n_points, bounds[l], near)
                                          : weigh_candidates(column, bits, n_points, near);
        if (!is_found) weigh_all(column, tile_rows<Real>, n_points, room.ranked, near);
    }
}

template <class Real>
inline void weigh_vector(const Map<Real>& map, size_t first, size_t n_rows,
                         const BlendRoom<Real>& room) {
    const size_t n_near = map.n_blended, n_points = map.points.n_columns;
    if (n_near < most_places && n_points <= few_points)
        return weigh_bounded<Real, 1>(map, first, n_rows, room);
    if (n_near < most_places) return weigh_bounded<Real, most_shared>(map, first, n_rows, room);
    for (size_t r = first; r < first + n_rows; ++r) {
        Near<Real> near{room.weights + r * n_near, room.near + r * n_near, n_near};
        weigh_all(room.scores + r, tile_rows<Real>, n_points, room.ranked, near);
    }
}

// The scores of all points for each row of a tile, in room.scores.
template <class Real>
inline void score_tile(const Real* panel, const Map<Real>& map, Real* partial,
                       const BlendRoom<Real>& room) {
    scan_points(panel, map.points, partial, [&](size_t b, const Scores<Real>& scores) {
        scores.write(room.scores + b * block * tile_rows<Real>);
    });
}

// The k nearest points of each row of a tile, in room.near, and their weights.
template <class Real>
inline void weigh_tile(const Real* panel, const Map<Real>& map, Real* partial, size_t n_rows,
                       const BlendRoom<Real>& room) {
    score_tile(panel, map, partial, room);
    for (size_t first = 0; first < n_rows; first += lanes<Real>)
        weigh_vector(map, first, n_rows - first < lanes<Real> ? n_rows - first : lanes<Real>, room);
}

}  // namespace
}  // namespace limes
