// Sums of Gaussian kernels: what the binding and the compiled paths share.
#pragma once
#include <cstddef>

#include "core.hpp"

namespace limes {

// sum_i c_iq exp(-gamma |x - s_i|^2) for every row, and for one output its gradient by x.
struct SumsJob {
    Rows rows;
    size_t n_features, n_padded;
    const double* center;  // that rows and vectors are counted from
    double gamma;
    // Scores of the vectors are 2 gamma x.s - gamma |s|^2, of the padding minus infinity.
    Panels<double> vectors;
    size_t n_outputs;
    const double* weights;   // [block of outputs][padded vector][output of the block], negated
    const double* single;    // gradients: [padded vector], the weights of the one output
    const double* features;  // gradients: [block of features][padded vector][feature], negated
    double* sums;            // [row][output]
    double* gradients;       // [row][feature], or null
};

struct SumsPath {
    const char* name;
    Layout layout;
    size_t (*scratch)(const SumsJob&);
    void (*run)(const SumsJob&, size_t first, size_t last, double* scratch);
};

}  // namespace limes
