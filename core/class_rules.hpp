// From the values of a row to its class, and from classes to labels. The schemes in Python are the
// definition of every rule.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "types.hpp"

namespace limes {

inline size_t count_pairs(size_t n_classes) { return n_classes * (n_classes - 1) / 2; }

// How the values of maps become a class.
struct Rule {
    enum class Kind {
        direct,   // the highest value of a single map, or the votes of pairs: the kernel's own rule
        highest,  // the highest of all values
        coupled,  // the most probable class, from maps of all pairs
        tree,     // the leaf of a tree with a map at each node
        shortlist  // one map selects some classes, and the maps of their pairs decide
    };
    Kind kind = Kind::direct;
    size_t n_classes = 0;
    std::vector<int32_t> children;  // tree: see PredictJob
    // Shortlist: votes of the selected classes, or coupled probabilities; the maximum number of
    // classes; how far below the highest score they may be; the weight of a pair's own map.
    bool by_vote = true;
    size_t max_selected = 0;
    double logit_margin = 0, pair_weight = 0;

    // Shortlist: the maximum number of pairs of selected classes.
    size_t n_pairs() const { return count_pairs(max_selected); }
};

// The index of the highest value, the first among equals.
template <class Real>
int32_t argmax(const Real* values, size_t n) {
    size_t best = 0;
    for (size_t c = 1; c < n; ++c) best = values[c] > values[best] ? c : best;
    return int32_t(best);
}

// Change the probabilities of a row as little as possible so that the winner has the largest: it
// and the classes above it get their mean. `order` is overwritten.
inline void move_largest(double* probabilities, size_t n, size_t winner,
                         std::vector<size_t>& order) {
    if (size_t(argmax(probabilities, n)) == winner) return;
    order.clear();
    for (size_t c = 0; c < n; ++c)
        if (c != winner && probabilities[c] > probabilities[winner]) order.push_back(c);
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return probabilities[a] > probabilities[b]; });
    double sum = probabilities[winner], level = sum;
    size_t n_above = 0;
    while (n_above < order.size() && probabilities[order[n_above]] > level) {
        sum += probabilities[order[n_above++]];
        level = sum / double(n_above + 1);
    }
    for (size_t i = 0; i < n_above; ++i) probabilities[order[i]] = level;
    probabilities[winner] = level * (1 + winner_margin);
    sum = 0;
    for (size_t c = 0; c < n; ++c) sum += probabilities[c];
    for (size_t c = 0; c < n; ++c) probabilities[c] /= sum;
}

// The number of a pair of classes, i < j, in the order (0, 1), (0, 2) ... (1, 2) ...
inline size_t pair_number(size_t i, size_t j, size_t n_classes) {
    return i * n_classes - i * (i + 1) / 2 + (j - i - 1);
}

// The class with the most votes, the lowest among equals; a value above zero is a vote for the
// second class of its pair.
inline int32_t most_voted(const double* values, size_t n_classes, std::vector<double>& votes) {
    votes.assign(n_classes, 0.0);
    for (size_t i = 0, place = 0; i < n_classes; ++i)
        for (size_t j = i + 1; j < n_classes; ++j, ++place) ++votes[values[place] > 0 ? j : i];
    return argmax(votes.data(), n_classes);
}

// Wu, Lin & Weng's coupling: minimise the sum of (r_ji p_i - r_ij p_j)^2, which is to solve
// (Q + ee') p = e up to a factor, a matrix that is positive definite.
class Coupling {
public:
    explicit Coupling(size_t n_classes) : n_(n_classes), system_(n_ * n_), p_(n_) {}

    // The most probable of the first n classes, or -1 where another is as probable to within
    // rounding. values[pair] is half the logarithm of the odds of the second class.
    int32_t most_probable(const double* values, size_t n) {
        n_ = n;
        fill(values);
        factor();
        solve();
        const int32_t best = argmax(p_.data(), n_);
        double next = -1;
        for (size_t c = 0; c < n_; ++c)
            if (c != size_t(best)) next = std::max(next, p_[c]);
        return p_[size_t(best)] - next > tie_margin * p_[size_t(best)] ? best : -1;
    }

private:
    // Relative difference below which two probabilities are a tie: far more than two ways of
    // solving differ by.
    static constexpr double tie_margin = 1e-9;

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

// The classes of a shortlist: those whose score is within `logit_margin` of the highest, at most
// max_selected, the lowest among equals first; written in ascending order. Returns their number.
template <class Real>
size_t select_classes(const Real* scores, size_t n_classes, Real logit_margin, size_t max_selected,
                      int32_t* selected) {
    const Real limit = scores[argmax(scores, n_classes)] - logit_margin;
    size_t n = 0;
    for (size_t c = 0; c < n_classes; ++c) {
        if (!(scores[c] >= limit)) continue;
        if (n == max_selected && !(scores[c] > scores[selected[n - 1]])) continue;
        size_t i = n < max_selected ? n++ : n - 1;
        for (; i > 0 && scores[c] > scores[selected[i - 1]]; --i) selected[i] = selected[i - 1];
        selected[i] = int32_t(c);
    }
    std::sort(selected, selected + n);
    return n;
}

template <size_t size>
inline void copy_labels(const int32_t* classes, size_t n, const char* table, char* out) {
    for (size_t r = 0; r < n; ++r)
        std::memcpy(out + r * size, table + size_t(classes[r]) * size, size);
}

// Write the label table[class] of each of n rows, `size` bytes each, at any address.
inline void write_labels(const int32_t* classes, size_t n, const char* table, size_t size,
                         char* out) {
    switch (size) {
        case 1: return copy_labels<1>(classes, n, table, out);
        case 2: return copy_labels<2>(classes, n, table, out);
        case 4: return copy_labels<4>(classes, n, table, out);
        case 8: return copy_labels<8>(classes, n, table, out);
    }
    for (size_t r = 0; r < n; ++r)
        std::memcpy(out + r * size, table + size_t(classes[r]) * size, size);
}

}  // namespace limes
