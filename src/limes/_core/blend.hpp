// The k nearest points of a row and their weights.
#pragma once
#include "core.hpp"
#include "search.hpp"
#include "vectors.hpp"

namespace limes {
namespace {

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

// Places in a ranking: the points that are blended and the next one, which sets the radius.
template <class Real>
inline size_t ranking_size(const Map<Real>& map) {
    return map.points.n_columns > 1 ? map.n_blended + 1 : 1;
}

// Turn sorted scores into weights: an Epanechnikov kernel that reaches the next neighbour.
template <class Real>
inline void weigh(const Real* scores, size_t n, bool has_next, Real* weights) {
    Real sum = 0;
    for (size_t i = 0; i < n; ++i) sum += weights[i] = has_next ? scores[n] - scores[i] : Real(1);
    const Real even = Real(1) / Real(n);
    for (size_t i = 0; i < n; ++i) weights[i] = sum == 0 ? even : weights[i] / sum;
}

// Average the values of the blended points of one row.
template <class Real>
inline void blend_values(const Real* values, const Real* weights, size_t n, size_t n_values,
                         Real* blended) {
    for (size_t c = 0; c < n_values; ++c) {
        Real sum = 0;
        for (size_t i = 0; i < n; ++i) sum += weights[i] * values[i * n_values + c];
        blended[c] = sum;
    }
}

// Room for the search of the k nearest points of a tile.
template <class Real>
struct BlendRoom {
    Real* scores;   // [point][row of the tile]
    Real* lowest;   // [block][row]: the lowest score of each block of points
    Real* limits;   // [place][row]: the lowest of those, sorted
    Real* ranked;   // [row][place]
    int32_t* near;  // [row][place]
};

// Sort the lowest scores of a block into the limits of each row.
template <class Real>
inline void sort_in(Vector<Real> score, Real* limits, size_t size) {
    for (size_t i = 0; i < size; ++i) {
        const Vector<Real> place = load(limits + i * tile_rows<Real>);
        store(limits + i * tile_rows<Real>, smaller(score, place));
        score = score < place ? place : score;
    }
}

// The k + 1 nearest points of each row of a tile. The (k+1)-th lowest of the blocks' minimums
// bounds the (k+1)-th lowest score from above, so that few scores have to be ranked one by one.
template <class Real>
inline void rank_tile(const Real* panel, const Map<Real>& map, Real* partial, size_t n_rows,
                      const BlendRoom<Real>& room) {
    constexpr size_t height = tile_rows<Real>;
    const size_t size = ranking_size(map);
    for (size_t i = 0; i < size * height; ++i) room.limits[i] = infinity<Real>;
    scan_points(panel, map.points, partial, [&](size_t b, const Scores<Real>& scores) {
        scores.write(room.scores + b * block * height);
        for (size_t r = 0; r < row_vectors; ++r) {
            Vector<Real> low = spread(infinity<Real>);
            for (size_t p = 0; p < block; ++p) low = smaller(scores.at[r][p], low);
            store(room.lowest + b * height + r * lanes<Real>, low);
            sort_in(low, room.limits + r * lanes<Real>, size);
        }
    });
    const size_t n_points = map.points.n_columns;
    const Real* limits = room.limits + (size - 1) * height;
    for (size_t r = 0; r < n_rows; ++r) {
        Ranking<Real> ranking{room.ranked + r * size, room.near + r * size, size};
        for (size_t first = 0; first < n_points; first += block) {
            if (room.lowest[first / block * height + r] > limits[r]) continue;
            const size_t last = first + block < n_points ? first + block : n_points;
            for (size_t i = first; i < last; ++i) ranking.offer(room.scores[i * height + r], i);
        }
        ranking.fill();
    }
}

// The k + 1 nearest points of one row from all its scores.
template <class Real>
inline void rank_row(const Real* scores, const Map<Real>& map, Real* ranked, int32_t* near) {
    Ranking<Real> ranking{ranked, near, ranking_size(map)};
    for (size_t i = 0; i < map.points.n_columns; ++i) ranking.offer(scores[i], i);
    ranking.fill();
}

}  // namespace
}  // namespace limes
