// Sums of Gaussian kernels and their gradients on every SIMD level.
#include <random>

#include "check.hpp"
#include "packed.hpp"
#include "parallel.hpp"
#include "simd_dispatch.hpp"

using namespace limes;

struct Problem {
    size_t n_vectors, n_features, n_outputs;
    double gamma;
    std::vector<double> vectors, weights, rows;
};

static Problem random_problem(size_t n_vectors, size_t n_features, size_t n_outputs, double gamma) {
    std::mt19937 random(unsigned(n_vectors + n_features));
    std::normal_distribution<double> normal;
    const auto numbers = [&](size_t n) {
        std::vector<double> drawn(n);
        for (double& number : drawn) number = normal(random);
        return drawn;
    };
    return {n_vectors,
            n_features,
            n_outputs,
            gamma,
            numbers(n_vectors * n_features),
            numbers(n_vectors * n_outputs),
            numbers(41 * n_features)};
}

static double define_sum(const Problem& p, const double* row, size_t output) {
    double sum = 0;
    for (size_t i = 0; i < p.n_vectors; ++i) {
        double square = 0;
        for (size_t k = 0; k < p.n_features; ++k)
            square += std::pow(row[k] - p.vectors[i * p.n_features + k], 2);
        sum += p.weights[i * p.n_outputs + output] * std::exp(-p.gamma * square);
    }
    return sum;
}

static std::vector<double> run_sums(const Problem& p, const SimdLevel& level,
                                    std::vector<double>* gradients = nullptr) {
    const PackedVectors packed(p.vectors, p.n_features, p.gamma, level.sums.layout);
    const Aligned<double> columns = packed.pack_columns(p.weights.data(), p.n_outputs);
    std::vector<double> padded(p.weights), sums(41 * p.n_outputs);
    padded.resize(packed.n_padded() * p.n_outputs, 0.0);
    SumsJob job = packed.job(rows_of(p.rows, p.n_features), columns, p.n_outputs, sums.data());
    if (gradients) {
        gradients->resize(p.rows.size());
        job.gradient_weights = padded.data();
        job.gradients = gradients->data();
    }
    run_parallel<double>(level.sums, job, 2);
    return sums;
}

static void test_sums_agree_with_their_definition(const SimdLevel& level) {
    for (size_t n_vectors : {1, 7, 64, 200})
        for (size_t n_features : {1, 3, 40})
            for (size_t n_outputs : {1, 5}) {
                const Problem p = random_problem(n_vectors, n_features, n_outputs, 0.3);
                const std::vector<double> sums = run_sums(p, level);
                for (size_t r = 0; r < 41; ++r)
                    for (size_t q = 0; q < n_outputs; ++q)
                        CHECK_CLOSE(sums[r * n_outputs + q],
                                    define_sum(p, &p.rows[r * n_features], q), 1e-12);
            }
}

static void test_gradients_agree_with_central_differences(const SimdLevel& level) {
    const size_t d = 4;
    const Problem p = random_problem(50, d, 1, 0.4);
    std::vector<double> gradients;
    run_sums(p, level, &gradients);
    for (size_t i = 0; i < p.rows.size(); ++i) {
        const size_t start = i / d * d;
        std::vector<double> row(p.rows.begin() + ptrdiff_t(start),
                                p.rows.begin() + ptrdiff_t(start + d));
        row[i % d] += 1e-5;
        const double above = define_sum(p, row.data(), 0);
        row[i % d] -= 2e-5;
        CHECK_CLOSE(gradients[i], (above - define_sum(p, row.data(), 0)) / 2e-5, 1e-8);
    }
}

static void test_without_width_a_sum_is_that_of_the_weights(const SimdLevel& level) {
    Problem p = random_problem(10, 2, 1, 0.0);
    p.weights.assign(10, 0.25);
    for (double sum : run_sums(p, level)) CHECK(sum == 2.5);
}

static void test_far_from_all_vectors_a_sum_is_zero(const SimdLevel& level) {
    Problem p = random_problem(10, 2, 1, 1.0);
    for (double& number : p.rows) number = 1e6;
    for (double sum : run_sums(p, level)) CHECK(sum == 0);
}

int main() {
    for (const SimdLevel* level : usable_levels()) {
        test_sums_agree_with_their_definition(*level);
        test_gradients_agree_with_central_differences(*level);
        test_without_width_a_sum_is_that_of_the_weights(*level);
        test_far_from_all_vectors_a_sum_is_zero(*level);
    }
    return report();
}
