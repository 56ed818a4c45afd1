// From the values of a row to its class. The schemes in Python are the definition of every rule.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace limes {

// The first of the highest values.
template <class Real>
int32_t highest(const Real* values, size_t n) {
    size_t best = 0;
    for (size_t c = 1; c < n; ++c) best = values[c] > values[best] ? c : best;
    return int32_t(best);
}

// The number of a pair of classes, i < j, in the order (0, 1), (0, 2) ... (1, 2) ...
inline size_t pair_number(size_t i, size_t j, size_t n_classes) {
    return i * n_classes - i * (i + 1) / 2 + (j - i - 1);
}

// The class that wins most pairs, the lowest of equals; above zero votes for the second of a pair.
inline int32_t most_voted(const double* values, size_t n_classes, std::vector<double>& votes) {
    votes.assign(n_classes, 0.0);
    for (size_t i = 0, place = 0; i < n_classes; ++i)
        for (size_t j = i + 1; j < n_classes; ++j, ++place) ++votes[values[place] > 0 ? j : i];
    return highest(votes.data(), n_classes);
}

// Wu, Lin & Weng's coupling: minimise the sum of (r_ji p_i - r_ij p_j)^2, which is to solve
// (Q + ee') p = e up to a factor, a matrix that is positive definite.
class Coupling {
public:
    explicit Coupling(size_t n_classes) : n_(n_classes), system_(n_ * n_), p_(n_) {}

    // The most probable of the first n classes, or -1 where another is as probable to within
    // rounding. values[pair] is half the logarithm of the odds of the second class.
    int32_t winner(const double* values, size_t n) {
        n_ = n;
        fill(values);
        factor();
        solve();
        const int32_t best = highest(p_.data(), n_);
        double next = -1;
        for (size_t c = 0; c < n_; ++c)
            if (c != size_t(best)) next = std::max(next, p_[c]);
        return p_[size_t(best)] - next > margin * p_[size_t(best)] ? best : -1;
    }

private:
    // Far more than two ways of solving differ by.
    static constexpr double margin = 1e-9;

    double& at(size_t i, size_t j) { return system_[i * n_ + j]; }

    // The lower triangle of Q + ee'.
    void fill(const double* values) {
        std::fill(system_.begin(), system_.begin() + ptrdiff_t(n_ * n_), 1.0);
        for (size_t i = 0, place = 0; i < n_; ++i)
            for (size_t j = i + 1; j < n_; ++j, ++place) {
                const double second = 1 / (1 + std::exp(-2 * values[place])), first = 1 - second;
                at(j, i) -= first * second;
                at(i, i) += second * second;
                at(j, j) += first * first;
            }
    }

    // Cholesky's factor, in place.
    void factor() {
        for (size_t j = 0; j < n_; ++j)
            for (size_t i = j; i < n_; ++i) {
                double sum = at(i, j);
                for (size_t k = 0; k < j; ++k) sum -= at(i, k) * at(j, k);
                at(i, j) = i == j ? std::sqrt(sum) : sum / at(j, j);
            }
    }

    void solve() {
        for (size_t i = 0; i < n_; ++i) {
            p_[i] = 1;
            for (size_t k = 0; k < i; ++k) p_[i] -= at(i, k) * p_[k];
            p_[i] /= at(i, i);
        }
        for (size_t i = n_; i-- > 0;) {
            for (size_t k = i + 1; k < n_; ++k) p_[i] -= at(k, i) * p_[k];
            p_[i] /= at(i, i);
        }
    }

    size_t n_;
    std::vector<double> system_, p_;
};

// The classes of a shortlist: those within reach of the highest score, at most so many, the lowest
// of equals first; written in ascending order. Returns how many.
template <class Real>
size_t name_classes(const Real* scores, size_t n_classes, Real reach, size_t most, int32_t* named) {
    const Real limit = scores[highest(scores, n_classes)] - reach;
    size_t n = 0;
    for (size_t c = 0; c < n_classes; ++c) {
        if (!(scores[c] >= limit)) continue;
        if (n == most && !(scores[c] > scores[named[n - 1]])) continue;
        size_t i = n < most ? n++ : n - 1;
        for (; i > 0 && scores[c] > scores[named[i - 1]]; --i) named[i] = named[i - 1];
        named[i] = int32_t(c);
    }
    std::sort(named, named + n);
    return n;
}

}  // namespace limes
