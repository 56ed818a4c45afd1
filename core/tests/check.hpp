// Checks for the tests of the core, without a framework.
#pragma once
#include <cmath>
#include <cstdio>
#include <vector>

#include "types.hpp"

inline int n_checks = 0, n_failures = 0;

#define CHECK(condition)                                                         \
    do {                                                                         \
        ++n_checks;                                                              \
        if (condition) break;                                                    \
        if (++n_failures <= 20)                                                  \
            std::printf("%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
    } while (false)

#define CHECK_CLOSE(actual, expected, tolerance)                                               \
    do {                                                                                       \
        ++n_checks;                                                                            \
        const double a_ = (actual), e_ = (expected);                                           \
        if (std::abs(a_ - e_) <= (tolerance) * (1 + std::abs(e_))) break;                      \
        if (++n_failures <= 20)                                                                \
            std::printf("%s:%d: %s is %.9g, expected %.9g\n", __FILE__, __LINE__, #actual, a_, \
                        e_);                                                                   \
    } while (false)

// The exit status of a test.
inline int report() {
    std::printf("%d checks, %d failures\n", n_checks, n_failures);
    return n_failures != 0;
}

// Rows of a contiguous array.
inline limes::Rows rows_of(const std::vector<double>& numbers, size_t n_features) {
    return {reinterpret_cast<const char*>(numbers.data()), numbers.size() / n_features,
            ptrdiff_t(n_features * sizeof(double)), sizeof(double), true};
}
