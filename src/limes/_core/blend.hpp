// The k nearest points of a row and their weights.
#pragma once
#include "core.hpp"
#include "search.hpp"
#include "vectors.hpp"

namespace limes {
namespace {

// Places in a ranking: the points that are blended and the next one, which sets the radius.
template <class Real>
inline size_t ranking_size(const Map<Real>& map) {
    return map.points.n_columns > 1 ? map.n_blended + 1 : 1;
}

// The lowest scores of one row so far, sorted; among equals the lowest index first.
template <class Real>
struct Ranking {
    Real* scores;
    int32_t* points;
    size_t size, filled = 0;

    inline Real limit() const { return filled < size ? infinity<Real> : scores[size - 1]; }
    // Points arrive in the order of their index. A NaN is refused: it is below nothing.
    inline void offer(Real score, size_t point) {
        if (!(score < limit())) return;
        size_t i = filled < size ? filled++ : size - 1;
        for (; i > 0 && score < scores[i - 1]; --i) {
            scores[i] = scores[i - 1];
            points[i] = points[i - 1];
        }
        scores[i] = score;
        points[i] = int32_t(point);
    }
    // Places that only NaN or infinite scores could take go to the lowest unused indices.
    inline void fill() {
        for (int32_t point = 0; filled < size; ++point) {
            bool is_used = false;
            for (size_t i = 0; i < filled; ++i) is_used = is_used || points[i] == point;
            if (is_used) continue;
            scores[filled] = infinity<Real>;
            points[filled++] = point;
        }
    }
};

// Most places that are searched by bounds, and most candidates that these are expected to leave.
constexpr size_t most_places = dense_blended + 1, most_candidates = 16;
// Points that share a bound; each has its own in a map of so few that shared ones would be loose.
constexpr size_t most_shared = 4, few_points = dense_points;

// Room for the search of the k nearest points of a tile.
template <class Real>
struct BlendRoom {
    Real* scores;    // [point][row of the tile]
    Real* lowest;    // [shared points][row of a vector]: their lowest score
    uint32_t* bits;  // [32 times shared points][row of a vector]: whether that is within the limit
    Real* ranked;    // [row][place]
    int32_t* near;   // [row][place]
    Real* every;     // [value][point]: of one row and a dense map, negated
};

// Write the lowest score of all points that share a bound; return the size-th lowest of these, which
// is not below the size-th lowest score.
template <class Real, size_t shared, size_t size>
inline Vector<Real> bound_scores(const Real* scores, size_t n_points, Real* lowest) {
    Vector<Real> places[size];
    for (size_t i = 0; i < size; ++i) places[i] = spread(infinity<Real>);
    for (size_t first = 0; first < n_points; first += shared, lowest += lanes<Real>) {
        Vector<Real> low = spread(infinity<Real>);
        for (size_t p = 0; p < shared; ++p)
            low = smaller(load(scores + (first + p) * tile_rows<Real>), low);
        store(lowest, low);
        for (size_t i = 0; i < size; ++i) {
            const Vector<Real> place = places[i];
            places[i] = smaller(low, place);
            low = larger(place, low);
        }
    }
    return places[size - 1];
}

template <class Real, size_t shared>
inline Vector<Real> bound_scores(const Real* scores, size_t n_points, size_t size, Real* lowest) {
    switch (size) {
        case 2: return bound_scores<Real, shared, 2>(scores, n_points, lowest);
        case 3: return bound_scores<Real, shared, 3>(scores, n_points, lowest);
        case 4: return bound_scores<Real, shared, 4>(scores, n_points, lowest);
        case 5: return bound_scores<Real, shared, 5>(scores, n_points, lowest);
        case 6: return bound_scores<Real, shared, 6>(scores, n_points, lowest);
        case 7: return bound_scores<Real, shared, 7>(scores, n_points, lowest);
        case 8: return bound_scores<Real, shared, 8>(scores, n_points, lowest);
        default: return bound_scores<Real, shared, 9>(scores, n_points, lowest);
    }
}

// Mark, for every row of a vector, the shared bounds that are within the limit.
template <class Real, size_t shared>
inline void mark_candidates(size_t n_points, Vector<Real> limit, const BlendRoom<Real>& room) {
    using Integer = typename Lanes<Real>::Integer;
    const size_t n = (n_points + shared - 1) / shared;
    for (size_t first = 0; first < n; first += 32) {
        const size_t last = first + 32 < n ? first + 32 : n;
        Index<Real> word{};
        for (size_t i = first; i < last; ++i) {
            const Index<Real> is_near = load(room.lowest + i * lanes<Real>) <= limit;
            word |= is_near & spread(Integer(int64_t(1) << (i - first)));
        }
        for (size_t l = 0; l < lanes<Real>; ++l)
            room.bits[first / 32 * lanes<Real> + l] = uint32_t(word[l]);
    }
}

// Candidates of one row, in the order of their index.
template <class Real>
struct Candidates {
    Real scores[most_candidates + most_shared];
    int32_t points[most_candidates + most_shared];
    size_t count = 0;

    // Returns false if there are too many.
    template <size_t shared>
    inline bool collect(const Real* column, const uint32_t* bits, size_t n_points, Real limit) {
        for (size_t first = 0; first < n_points; first += 32 * shared, bits += lanes<Real>)
            for (uint32_t word = *bits; word; word &= word - 1) {
                if (count > most_candidates) return false;
                const size_t start = first + size_t(__builtin_ctz(word)) * shared;
                for (size_t point = start; point < start + shared; ++point) {
                    points[count] = int32_t(point);
                    scores[count] = column[point * tile_rows<Real>];
                    count += scores[count] <= limit && point < n_points;
                }
            }
        return true;
    }
    // Sort by counting, without a branch on the scores.
    inline void rank(size_t size, Real* ranked, int32_t* near) const {
        size_t places[most_candidates + most_shared];
        for (size_t i = 0; i < count; ++i) {
            size_t place = i;
            for (size_t j = 0; j < i; ++j) {
                const size_t is_below = scores[i] < scores[j];
                places[j] += is_below;
                place -= is_below;
            }
            places[i] = place;
        }
        for (size_t i = 0; i < count; ++i) {
            if (places[i] >= size) continue;
            ranked[places[i]] = scores[i];
            near[places[i]] = points[i];
        }
    }
};

// The k + 1 nearest points of one row, all points considered.
template <class Real>
inline void rank_all(const Real* column, size_t step, const Map<Real>& map, Real* ranked,
                     int32_t* near) {
    Ranking<Real> ranking{ranked, near, ranking_size(map)};
    for (size_t i = 0; i < map.points.n_columns; ++i) ranking.offer(column[i * step], i);
    ranking.fill();
}

// The k + 1 nearest points of the rows of one vector, at most; `first` is the first of them. A
// bound leaves few scores to rank; rows where it does not (ties, infinite scores) take the long way.
template <class Real, size_t shared>
inline void rank_bounded(const Map<Real>& map, size_t first, size_t n_rows,
                         const BlendRoom<Real>& room) {
    const size_t size = ranking_size(map), n_points = map.points.n_columns;
    const Vector<Real> limits =
        bound_scores<Real, shared>(room.scores + first, n_points, size, room.lowest);
    mark_candidates<Real, shared>(n_points, limits, room);
    for (size_t l = 0; l < n_rows; ++l) {
        const Real* column = room.scores + first + l;
        Real* ranked = room.ranked + (first + l) * size;
        int32_t* near = room.near + (first + l) * size;
        Candidates<Real> candidates;
        if (candidates.template collect<shared>(column, room.bits + l, n_points, limits[l]) &&
            candidates.count >= size)
            candidates.rank(size, ranked, near);
        else
            rank_all(column, tile_rows<Real>, map, ranked, near);
    }
}

template <class Real>
inline void rank_vector(const Map<Real>& map, size_t first, size_t n_rows,
                        const BlendRoom<Real>& room) {
    const size_t size = ranking_size(map);
    if (size <= most_places && map.points.n_columns <= few_points)
        return rank_bounded<Real, 1>(map, first, n_rows, room);
    if (size <= most_places) return rank_bounded<Real, most_shared>(map, first, n_rows, room);
    for (size_t r = first; r < first + n_rows; ++r)
        rank_all(room.scores + r, tile_rows<Real>, map, room.ranked + r * size, room.near + r * size);
}

// The scores of all points for each row of a tile, in room.scores.
template <class Real>
inline void score_tile(const Real* panel, const Map<Real>& map, Real* partial,
                       const BlendRoom<Real>& room) {
    scan_points(panel, map.points, partial, [&](size_t b, const Scores<Real>& scores) {
        scores.write(room.scores + b * block * tile_rows<Real>);
    });
}

// The k + 1 nearest points of each row of a tile.
template <class Real>
inline void rank_tile(const Real* panel, const Map<Real>& map, Real* partial, size_t n_rows,
                      const BlendRoom<Real>& room) {
    score_tile(panel, map, partial, room);
    for (size_t first = 0; first < n_rows; first += lanes<Real>)
        rank_vector(map, first, n_rows - first < lanes<Real> ? n_rows - first : lanes<Real>, room);
}

// Turn sorted scores into weights: an Epanechnikov kernel that reaches the next neighbour.
template <class Real>
inline void weigh(const Real* scores, size_t n, bool has_next, Real* weights) {
    Real sum = 0;
    for (size_t i = 0; i < n; ++i) sum += weights[i] = has_next ? scores[n] - scores[i] : Real(1);
    const Real even = Real(1) / Real(n);
    for (size_t i = 0; i < n; ++i) weights[i] = sum == 0 ? even : weights[i] / sum;
}

}  // namespace
}  // namespace limes
