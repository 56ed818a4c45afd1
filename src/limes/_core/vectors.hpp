// Vectors of the path being compiled: width, tile shape and the few operations beyond + - * <.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) || defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace limes {
namespace {

// A tile is row_vectors x block accumulators. They, a vector of each row group and a broadcast
// must fit the registers: 16 on SSE2 and AVX2, 32 on AVX-512 and NEON.
#if defined(__AVX512F__)
constexpr size_t vector_bytes = 64, row_vectors = 3, block = 8;
#elif defined(__AVX2__)
constexpr size_t vector_bytes = 32, row_vectors = 3, block = 4;
#elif defined(__aarch64__)
constexpr size_t vector_bytes = 16, row_vectors = 3, block = 8;
#else
constexpr size_t vector_bytes = 16, row_vectors = 2, block = 4;
#endif

template <class Real>
struct Lanes;
template <>
struct Lanes<float> {
    typedef float Vector __attribute__((vector_size(vector_bytes), may_alias));
    typedef float Loose __attribute__((vector_size(vector_bytes), aligned(4), may_alias));
    typedef int32_t Index __attribute__((vector_size(vector_bytes), may_alias));
    using Integer = int32_t;
};
template <>
struct Lanes<double> {
    typedef double Vector __attribute__((vector_size(vector_bytes), may_alias));
    typedef double Loose __attribute__((vector_size(vector_bytes), aligned(8), may_alias));
    typedef int64_t Index __attribute__((vector_size(vector_bytes), may_alias));
    using Integer = int64_t;
};

template <class Real>
using Vector = typename Lanes<Real>::Vector;
template <class Real>
using Index = typename Lanes<Real>::Index;
template <class Real>
constexpr size_t lanes = vector_bytes / sizeof(Real);
template <class Real>
constexpr size_t tile_rows = row_vectors * lanes<Real>;

// A tile costs the same however many of its rows are used: fewer than these go one by one.
template <class Real>
constexpr size_t fewest_rows = tile_rows<Real> / 3;

template <class Real>
inline Vector<Real> load(const Real* from) {
    return *reinterpret_cast<const Vector<Real>*>(from);
}

template <class Real>
inline void store(Real* to, Vector<Real> vector) {
    *reinterpret_cast<Vector<Real>*>(to) = vector;
}

template <class Real>
inline Vector<Real> load_loose(const Real* from) {
    return *reinterpret_cast<const typename Lanes<Real>::Loose*>(from);
}

template <class Real>
inline void store_loose(Real* to, Vector<Real> vector) {
    *reinterpret_cast<typename Lanes<Real>::Loose*>(to) = vector;
}

// subtract_product(a, b, c) = c - a * b, rounded once where the processor can.
// smaller(a, b) = a < b ? a : b and larger(a, b) = a > b ? a : b, so that a NaN in a never wins.
#if defined(__AVX512F__)
inline Vector<float> spread(float x) { return _mm512_set1_ps(x); }
inline Vector<double> spread(double x) { return _mm512_set1_pd(x); }
inline Vector<float> subtract_product(Vector<float> a, Vector<float> b, Vector<float> c) {
    return _mm512_fnmadd_ps(a, b, c);
}
inline Vector<double> subtract_product(Vector<double> a, Vector<double> b, Vector<double> c) {
    return _mm512_fnmadd_pd(a, b, c);
}
inline Vector<float> smaller(Vector<float> a, Vector<float> b) { return _mm512_min_ps(a, b); }
inline Vector<double> smaller(Vector<double> a, Vector<double> b) { return _mm512_min_pd(a, b); }
inline Vector<float> larger(Vector<float> a, Vector<float> b) { return _mm512_max_ps(a, b); }
inline Vector<double> larger(Vector<double> a, Vector<double> b) { return _mm512_max_pd(a, b); }
#elif defined(__AVX2__)
inline Vector<float> spread(float x) { return _mm256_set1_ps(x); }
inline Vector<double> spread(double x) { return _mm256_set1_pd(x); }
inline Vector<float> subtract_product(Vector<float> a, Vector<float> b, Vector<float> c) {
    return _mm256_fnmadd_ps(a, b, c);
}
inline Vector<double> subtract_product(Vector<double> a, Vector<double> b, Vector<double> c) {
    return _mm256_fnmadd_pd(a, b, c);
}
inline Vector<float> smaller(Vector<float> a, Vector<float> b) { return _mm256_min_ps(a, b); }
inline Vector<double> smaller(Vector<double> a, Vector<double> b) { return _mm256_min_pd(a, b); }
inline Vector<float> larger(Vector<float> a, Vector<float> b) { return _mm256_max_ps(a, b); }
inline Vector<double> larger(Vector<double> a, Vector<double> b) { return _mm256_max_pd(a, b); }
#else
inline Vector<float> spread(float x) { return Vector<float>{x, x, x, x}; }
inline Vector<double> spread(double x) { return Vector<double>{x, x}; }
#if defined(__aarch64__)
inline Vector<float> subtract_product(Vector<float> a, Vector<float> b, Vector<float> c) {
    return Vector<float>(vfmsq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b)));
}
inline Vector<double> subtract_product(Vector<double> a, Vector<double> b, Vector<double> c) {
    return Vector<double>(vfmsq_f64(float64x2_t(c), float64x2_t(a), float64x2_t(b)));
}
#else
inline Vector<float> subtract_product(Vector<float> a, Vector<float> b, Vector<float> c) {
    return c - a * b;
}
inline Vector<double> subtract_product(Vector<double> a, Vector<double> b, Vector<double> c) {
    return c - a * b;
}
#endif
#if defined(__SSE2__)
inline Vector<float> smaller(Vector<float> a, Vector<float> b) { return _mm_min_ps(a, b); }
inline Vector<double> smaller(Vector<double> a, Vector<double> b) { return _mm_min_pd(a, b); }
inline Vector<float> larger(Vector<float> a, Vector<float> b) { return _mm_max_ps(a, b); }
inline Vector<double> larger(Vector<double> a, Vector<double> b) { return _mm_max_pd(a, b); }
#else
inline Vector<float> smaller(Vector<float> a, Vector<float> b) { return a < b ? a : b; }
inline Vector<double> smaller(Vector<double> a, Vector<double> b) { return a < b ? a : b; }
inline Vector<float> larger(Vector<float> a, Vector<float> b) { return a > b ? a : b; }
inline Vector<double> larger(Vector<double> a, Vector<double> b) { return a > b ? a : b; }
#endif
#endif

// Hold a vector in a register: read again from memory for each use, the loads would set the pace.
template <class Wide>
inline Wide keep(Wide vector) {
#if defined(__AVX512F__)
    asm("" : "+v"(vector));
#elif defined(__SSE2__)
    asm("" : "+x"(vector));
#elif defined(__aarch64__)
    asm("" : "+w"(vector));
#endif
    return vector;
}

inline Index<float> spread(int32_t x) {
    Index<float> all{};
    return all + x;
}
inline Index<double> spread(int64_t x) {
    Index<double> all{};
    return all + x;
}

inline Index<float> load_indices(const int32_t* from, float) {
    return *reinterpret_cast<const Index<float>*>(from);
}
inline Index<double> load_indices(const int32_t* from, double) {
    Index<double> wide{};
    for (size_t l = 0; l < lanes<double>; ++l) wide[l] = from[l];
    return wide;
}

inline float square_root(float x) { return __builtin_sqrtf(x); }
inline double square_root(double x) { return __builtin_sqrt(x); }

template <class Real>
constexpr Real infinity = Real(__builtin_huge_val());

inline constexpr size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace
}  // namespace limes
