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

// exp(x) of numbers that are not above zero, to within about an ulp; 0 below -708.
inline Vector<double> exponential(Vector<double> x) {
    // Adding 1.5 * 2^52 rounds to an integer, which is then in the lowest bits.
    const double magic = 6755399441055744.0;
    const Vector<double> shifted = x * 1.4426950408889634 + magic;
    const Vector<double> whole = shifted - magic;
    // s = -(x - whole * log 2), the logarithm in two parts.
    const Vector<double> high = fnmadd(whole, broadcast(0.6931471803691238), x);
    const Vector<double> s = whole * 1.9082149292705877e-10 - high;
    constexpr double inverse_factorials[] = {1.0 / 479001600,
                                             1.0 / 39916800,
                                             1.0 / 3628800,
                                             1.0 / 362880,
                                             1.0 / 40320,
                                             1.0 / 5040,
                                             1.0 / 720,
                                             1.0 / 120,
                                             1.0 / 24,
                                             1.0 / 6,
                                             0.5,
                                             1.0,
                                             1.0};
    Vector<double> sum = broadcast(inverse_factorials[0]);
    for (size_t i = 1; i < 13; ++i) sum = fnmadd(s, sum, broadcast(inverse_factorials[i]));
    // Unsigned: far below zero, where the result is not used, the sum overflows.
    typedef uint64_t Bits __attribute__((vector_size(vector_bytes)));
    const Vector<double> scaled = Vector<double>(Bits(sum) + (Bits(shifted) << 52));
    return x < broadcast(-708.0) ? Vector<double>{} : scaled;
}

// exp(x) of numbers that are not above zero, to within 1e-12 of it; exp(-708) below -708.
inline Vector<double> exponential_to_12_digits(Vector<double> x) {
    const double magic = 6755399441055744.0;  // as above
    const Vector<double> limited = max(x, broadcast(-708.0));
    const Vector<double> shifted =
        fnmadd(limited, broadcast(-1.4426950408889634), broadcast(magic));
    // s = -(x - whole * log 2), off by 2e-14 at most.
    const Vector<double> s = fnmadd(shifted - magic, broadcast(-0.6931471805599453), -limited);
    // The polynomial of degree 8 with the least relative error, 8.2e-13 at most, on
    // [-log(2) / 2, log(2) / 2], and the value 1 at 0.
    constexpr double coefficients[] = {
        2.473297364087218e-05, 0.00019914680669438312, 0.0013889155050829897,
        0.00833326875495783,   0.04166666453613665,    0.16666666873333397,
        0.5000000000458378,    0.9999999999830597,     1.0};
    Vector<double> sum = broadcast(coefficients[0]);
    for (size_t i = 1; i < 9; ++i) sum = fnmadd(s, sum, broadcast(coefficients[i]));
    typedef uint64_t Bits __attribute__((vector_size(vector_bytes)));
    return Vector<double>(Bits(sum) + (Bits(shifted) << 52));
}

// 2^x of numbers that are not above zero, to within 2^-22; 2^-100 below -100, and for a NaN.
inline Vector<float> exponential_of_two(Vector<float> x) {
    const float magic = 12582912.0f;  // 1.5 * 2^23, as above
    const Vector<float> limited = max(x, broadcast(-100.0f));
    const Vector<float> shifted = limited + magic;
    // The polynomial of degree 5 with the least relative error, 7.5e-8 at most, on [-1/2, 1/2].
    constexpr float coefficients[] = {0.0013276472f, 0.0096755413f, 0.055507133f,
                                      0.2402212f,    0.69314697f,   1.0000001f};
    const Vector<float> s = (shifted - magic) - limited;
    Vector<float> sum = broadcast(coefficients[0]);
    for (size_t i = 1; i < 6; ++i) sum = fnmadd(s, sum, broadcast(coefficients[i]));
    typedef uint32_t Bits __attribute__((vector_size(vector_bytes)));
    return Vector<float>(Bits(sum) + (Bits(shifted) << 23));
}

}  // namespace
}  // namespace limes
