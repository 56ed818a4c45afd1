// Sums of Gaussian kernels as a Python object: vectors packed once, weights given with the rows.
#pragma once
#include <string>
#include <vector>

#include "packed.hpp"
#include "sums.hpp"
#include "views.hpp"

namespace limes {

class RbfVectors {
public:
    RbfVectors(nb::handle vectors, double gamma, const std::string& cpu);

    size_t n_vectors() const { return n_vectors_; }
    size_t n_features() const { return n_features_; }
    void sums(nb::handle X, nb::handle weights, nb::handle out, ptrdiff_t n_threads) const;
    void sums_and_gradients(nb::handle X, nb::handle weights, nb::handle sums, nb::handle gradients,
                            ptrdiff_t n_threads) const;

private:
    // Pack a matrix [vector][column] as the columns of a product over the vectors, negated.
    Aligned<double> pack_columns(const double* values, size_t n_columns) const;
    SumsJob job(const View& X, const View& sums, const Aligned<double>& weights, size_t n_outputs) const;

    const SumsPath& path_;
    double gamma_;
    size_t n_vectors_, n_features_, n_padded_, n_wide_;  // n_wide_: vectors, in whole blocks
    Aligned<double> center_, tiles_, biases_, features_;
};

}  // namespace limes
