// Probabilities of classes from the values of a row: a softmax, or the logistic function of a
// single value. The schemes in Python are the definition.
#pragma once
#include "simd.hpp"
#include "types.hpp"

namespace limes {
namespace {

// Multiply the probability of the class of the values by 1 + winner_margin, unless it is the first
// of the largest. Rounding can make it equal to others, never smaller.
template <class Real>
inline void break_tie(const Real* values, size_t n_values, double* probabilities) {
    const size_t n_classes = n_values == 1 ? 2 : n_values;
    size_t winner = n_values == 1 && values[0] > 0, first = 0;
    for (size_t c = 1; c < n_values; ++c) winner = values[c] > values[winner] ? c : winner;
    for (size_t c = 1; c < n_classes; ++c)
        first = probabilities[c] > probabilities[first] ? c : first;
    if (first == winner) return;
    probabilities[winner] *= 1 + winner_margin;
    double sum = 0;
    for (size_t c = 0; c < n_classes; ++c) sum += probabilities[c];
    for (size_t c = 0; c < n_classes; ++c) probabilities[c] /= sum;
}

// One value of `lanes<double>` rows, n_values apart; of the last row where there are fewer.
template <class Real>
inline Vector<double> load_column(const Real* values, size_t n_values, size_t n_rows) {
    Vector<double> column{};
    if (n_rows >= lanes<double>)
        for (size_t l = 0; l < lanes<double>; ++l) column[l] = double(values[l * n_values]);
    else
        for (size_t l = 0; l < lanes<double>; ++l)
            column[l] = double(values[(l < n_rows ? l : n_rows - 1) * n_values]);
    return column;
}

inline void store_column(Vector<double> column, size_t n_values, size_t n_rows, double* out) {
    if (n_rows >= lanes<double>)
        for (size_t l = 0; l < lanes<double>; ++l) out[l * n_values] = column[l];
    else
        for (size_t l = 0; l < n_rows; ++l) out[l * n_values] = column[l];
}

// The exponential as precisely as the type of the values deserves.
inline Vector<double> power_of(Vector<double> logit, float) {
    return exponential_to_12_digits(logit);
}
inline Vector<double> power_of(Vector<double> logit, double) { return exponential(logit); }

// Numbers at least so large count as 1 when ties are looked for.
constexpr double almost_one = 1 - 0x1p-50;

// Softmax of up to `lanes<double>` rows; `workspace` is [value][lane].
template <class Real>
inline void softmax_of_rows(const Real* values, size_t n_values, size_t n_rows, bool is_one_vs_rest,
                            double* workspace, double* out) {
    constexpr size_t height = lanes<double>;
    Vector<double> largest = broadcast(-infinity<double>);
    for (size_t c = 0; c < n_values; ++c) {
        Vector<double> x = load_column(values + c, n_values, n_rows);
        if (is_one_vs_rest) x = 2 * min(x, Vector<double>{});
        largest = max(x, largest);
        store(workspace + c * height, x);
    }
    Vector<double> sum{};
    Index<double> n_largest{};
    for (size_t c = 0; c < n_values; ++c) {
        const Vector<double> power = power_of(load(workspace + c * height) - largest, Real());
        sum += power;
        n_largest -= Index<double>(power >= almost_one);
        store(workspace + c * height, power);
    }
    const Vector<double> factor = 1 / sum;
    for (size_t c = 0; c < n_values; ++c)
        store_column(load(workspace + c * height) * factor, n_values, n_rows, out + c);
    for (size_t l = 0; l < height && l < n_rows; ++l)
        if (n_largest[l] > 1) break_tie(values + l * n_values, n_values, out + l * n_values);
}

// Both probabilities of up to `lanes<double>` rows, from half the logarithms of the odds.
template <class Real>
inline void logistic_of_rows(const Real* values, size_t n_rows, double* out) {
    const Vector<double> x = load_column(values, 1, n_rows);
    const Vector<double> power = power_of(-2 * max(x, -x), Real());
    const Vector<double> second = (x < 0 ? power : broadcast(1.0)) / (1 + power);
    store_column(1 - second, 2, n_rows, out);
    store_column(second, 2, n_rows, out + 1);
    for (size_t l = 0; l < lanes<double> && l < n_rows; ++l)
        if (second[l] == 0.5) break_tie(values + l, 1, out + 2 * l);
}

template <class Real>
void probabilities(const Real* values, size_t n_values, size_t n_rows, bool is_one_vs_rest,
                   double* workspace, double* out) {
    for (size_t r = 0; r < n_rows; r += lanes<double>) {
        const size_t n = n_rows - r;
        if (n_values == 1)
            logistic_of_rows(values + r, n, out + 2 * r);
        else
            softmax_of_rows(values + r * n_values, n_values, n, is_one_vs_rest, workspace,
                            out + r * n_values);
    }
}

}  // namespace
}  // namespace limes
