// The lowest few of many scores, for the rows of a vector at once: by sorting networks, since lanes
// cannot branch.
#pragma once
#include "core.hpp"
#include "vectors.hpp"

namespace limes {
namespace {

// Most lowest scores that are kept.
constexpr size_t most_places = dense_blended + 1;

// Put two in order. Neither is NaN.
template <class Real>
__attribute__((always_inline)) inline void order(Vector<Real>& low, Vector<Real>& high) {
    const Vector<Real> first = low;
    low = smaller(first, high);
    high = larger(first, high);
}

// Sort numbers that rise and then fall.
template <class Real, size_t n>
__attribute__((always_inline)) inline void sort_bitonic(Vector<Real>* numbers) {
    if constexpr (n > 1) {
#pragma GCC unroll 8
        for (size_t i = 0; i < n / 2; ++i) order<Real>(numbers[i], numbers[i + n / 2]);
        sort_bitonic<Real, n / 2>(numbers);
        sort_bitonic<Real, n / 2>(numbers + n / 2);
    }
}

// Sort any: both halves, then across them, then what that leaves.
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

// The lowest scores of each row of a vector, sorted. They are taken by as many as are kept, sorted
// before: that takes half of the comparisons of one by one.
template <class Real, size_t shared, size_t n>
struct Lowest {
    Vector<Real> places[n];

    inline Lowest(const Real* scores, size_t n_points) {
        for (size_t i = 0; i < n; ++i) places[i] = spread(infinity<Real>);
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
            numbers[i] = spread(infinity<Real>);
            for (size_t p = i * shared; p < (i + 1) * shared && p < n_points; ++p)
                numbers[i] = smaller(load(scores + p * tile_rows<Real>), numbers[i]);
        }
        sort_numbers<Real, n>(numbers);
#pragma GCC unroll 16
        for (size_t i = 0; i < n; ++i) places[i] = smaller(places[i], numbers[n - 1 - i]);
        sort_bitonic<Real, n>(places);
    }
};

// Return the size-th lowest of what the points that share a bound have as their lowest score. It
// is not below the size-th lowest score, and is that where each point has its own.
template <class Real, size_t shared>
inline Vector<Real> bound_scores(const Real* scores, size_t n_points, size_t size) {
    if (size <= 4) return Lowest<Real, shared, 4>(scores, n_points).places[size - 1];
    if (size <= 8) return Lowest<Real, shared, 8>(scores, n_points).places[size - 1];
    return Lowest<Real, shared, most_places>(scores, n_points).places[size - 1];
}

}  // namespace
}  // namespace limes
