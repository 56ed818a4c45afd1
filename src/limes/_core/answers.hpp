// From the values of maps to what was asked for.
#pragma once
#include "core.hpp"
#include "vectors.hpp"

namespace limes {
namespace {

// The class that the values of one map name; NaN never wins, so that a NaN row is class 0.
template <class Real>
inline int32_t name_class(const Real* values, size_t n) {
    if (n == 1) return values[0] > 0;
    int32_t best = 0;
    Real most = -infinity<Real>;
    for (size_t c = 0; c < n; ++c)
        if (values[c] > most) most = values[c], best = int32_t(c);
    return best;
}

// Each map votes for the second class of its pair where its value is above zero.
template <class Real>
inline void add_votes(const Model<Real>& model, size_t map, size_t n, const Real* values,
                      int32_t* votes) {
    for (size_t r = 0; r < n; ++r)
        ++votes[r * model.n_classes + size_t(model.pairs[2 * map + (values[r] > 0)])];
}

// The class with most votes; the lowest among equals.
inline int32_t most_votes(const int32_t* votes, size_t n_classes) {
    size_t best = 0;
    for (size_t c = 1; c < n_classes; ++c) best = votes[c] > votes[best] ? c : best;
    return int32_t(best);
}

// Bring the values of one map for n rows to where the job wants them.
template <class Real>
inline void deliver(const Job<Real>& job, size_t map, size_t column, size_t first, size_t n,
                    const Real* values, int32_t* votes) {
    const Model<Real>& model = *job.model;
    const size_t n_values = model.maps[map].n_values;
    if (job.task == Task::vote) return add_votes(model, map, n, values, votes);
    for (size_t r = 0; r < n; ++r, values += n_values) {
        if (job.task == Task::classify) {
            job.indices[first + r] = name_class(values, n_values);
            continue;
        }
        Real* to = job.values + (first + r) * model.n_values + column;
        for (size_t c = 0; c < n_values; ++c) to[c] = values[c];
    }
}

}  // namespace
}  // namespace limes
