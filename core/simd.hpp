// Vector types of the SIMD level being compiled: width, tile shape and the few operations beyond
// + - * <.
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
    typedef int32_t Index __attribute__((vector_size(vector_bytes), may_alias));
    using Integer = int32_t;
};
template <>
struct Lanes<double> {
    typedef double Vector __attribute__((vector_size(vector_bytes), may_alias));
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

// A tile costs the same however many of its rows are used: fewer rows than these run one by one.
template <class Real>
constexpr size_t min_tile_rows = tile_rows<Real> / 3;

template <class Real>
inline Vector<Real> load(const Real* from) {
    return *reinterpret_cast<const Vector<Real>*>(from);
}

template <class Real>
inline void store(Real* to, Vector<Real> vector) {
    *reinterpret_cast<Vector<Real>*>(to) = vector;
}

// fnmadd(a, b, c) = c - a * b, rounded once where the processor can.
// min(a, b) = a < b ? a : b and max(a, b) = a > b ? a : b, so that a NaN in a is
// never the result.
#if defined(__AVX512F__)
inline Vector<float> broadcast(float x) { return _mm512_set1_ps(x); }
inline Vector<double> broadcast(double x) { return _mm512_set1_pd(x); }
inline Vector<float> fnmadd(Vector<float> a, Vector<float> b, Vector<float> c) {
    return _mm512_fnmadd_ps(a, b, c);
}
inline Vector<double> fnmadd(Vector<double> a, Vector<double> b, Vector<double> c) {
    return _mm512_fnmadd_pd(a, b, c);
}
inline Vector<float> min(Vector<float> a, Vector<float> b) { return _mm512_min_ps(a, b); }
inline Vector<double> min(Vector<double> a, Vector<double> b) { return _mm512_min_pd(a, b); }
inline Vector<float> max(Vector<float> a, Vector<float> b) { return _mm512_max_ps(a, b); }
inline Vector<double> max(Vector<double> a, Vector<double> b) { return _mm512_max_pd(a, b); }
#elif defined(__AVX2__)
inline Vector<float> broadcast(float x) { return _mm256_set1_ps(x); }
inline Vector<double> broadcast(double x) { return _mm256_set1_pd(x); }
inline Vector<float> fnmadd(Vector<float> a, Vector<float> b, Vector<float> c) {
    return _mm256_fnmadd_ps(a, b, c);
}
inline Vector<double> fnmadd(Vector<double> a, Vector<double> b, Vector<double> c) {
    return _mm256_fnmadd_pd(a, b, c);
}
inline Vector<float> min(Vector<float> a, Vector<float> b) { return _mm256_min_ps(a, b); }
inline Vector<double> min(Vector<double> a, Vector<double> b) { return _mm256_min_pd(a, b); }
inline Vector<float> max(Vector<float> a, Vector<float> b) { return _mm256_max_ps(a, b); }
inline Vector<double> max(Vector<double> a, Vector<double> b) { return _mm256_max_pd(a, b); }
#else
inline Vector<float> broadcast(float x) { return Vector<float>{x, x, x, x}; }
inline Vector<double> broadcast(double x) { return Vector<double>{x, x}; }
#if defined(__aarch64__)
inline Vector<float> fnmadd(Vector<float> a, Vector<float> b, Vector<float> c) {
    return Vector<float>(vfmsq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b)));
}
inline Vector<double> fnmadd(Vector<double> a, Vector<double> b, Vector<double> c) {
    return Vector<double>(vfmsq_f64(float64x2_t(c), float64x2_t(a), float64x2_t(b)));
}
#else
inline Vector<float> fnmadd(Vector<float> a, Vector<float> b, Vector<float> c) { return c - a * b; }
inline Vector<double> fnmadd(Vector<double> a, Vector<double> b, Vector<double> c) {
    return c - a * b;
}
#endif
#if defined(__SSE2__)
inline Vector<float> min(Vector<float> a, Vector<float> b) { return _mm_min_ps(a, b); }
inline Vector<double> min(Vector<double> a, Vector<double> b) { return _mm_min_pd(a, b); }
inline Vector<float> max(Vector<float> a, Vector<float> b) { return _mm_max_ps(a, b); }
inline Vector<double> max(Vector<double> a, Vector<double> b) { return _mm_max_pd(a, b); }
#else
inline Vector<float> min(Vector<float> a, Vector<float> b) { return a < b ? a : b; }
inline Vector<double> min(Vector<double> a, Vector<double> b) { return a < b ? a : b; }
inline Vector<float> max(Vector<float> a, Vector<float> b) { return a > b ? a : b; }
inline Vector<double> max(Vector<double> a, Vector<double> b) { return a > b ? a : b; }
#endif
#endif

// Keep a vector in a register: without this it is loaded again for each use, and the loads become
// the bottleneck.
template <class Wide>
inline Wide keep_in_register(Wide vector) {
#if defined(__AVX512F__)
    asm("" : "+v"(vector));
#elif defined(__SSE2__)
    asm("" : "+x"(vector));
#elif defined(__aarch64__)
    asm("" : "+w"(vector));
#endif
    return vector;
}

inline Index<float> broadcast(int32_t x) {
    Index<float> all{};
    return all + x;
}
inline Index<double> broadcast(int64_t x) {
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

}  // namespace
}  // namespace limes
