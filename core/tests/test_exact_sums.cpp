// Exact sums on every SIMD level: values, classes, bounds of errors and extreme numbers.
#include "exact_sums.hpp"

#include <limits>
#include <random>

#include "check.hpp"
#include "classifier.hpp"
#include "simd_dispatch.hpp"

using namespace limes;

static std::vector<double> normal_numbers(size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> numbers(n);
    for (double& number : numbers) number = normal(random);
    return numbers;
}

// An SVM with LIBSVM's signs; about half of the coefficients are 0.
static ExactArrays random_svm(const std::vector<size_t>& n_support, size_t n_features) {
    ExactArrays arrays;
    arrays.gamma = 1.0 / double(n_features);
    arrays.coef0 = 0.3;
    arrays.n_features = arrays.n_terms = n_features;
    arrays.n_support = n_support;
    size_t n_vectors = 0;
    for (size_t n : n_support) n_vectors += n;
    arrays.vectors = normal_numbers(n_vectors * n_features, 1);
    arrays.intercepts = normal_numbers(count_pairs(n_support.size()), 2);
    const std::vector<double> sizes = normal_numbers((n_support.size() - 1) * n_vectors, 3);
    for (size_t row = 0; row + 1 < n_support.size(); ++row)
        for (size_t own = 0, i = 0; own < n_support.size(); ++own)
            for (size_t k = 0; k < n_support[own]; ++k, ++i) {
                const double size = std::max(0.0, sizes[row * n_vectors + i]);
                arrays.coefficients.push_back(row < own ? -size : size);
            }
    return arrays;
}

static std::vector<double> define_values(const ExactArrays& arrays, const std::vector<double>& X) {
    std::vector<double> values(X.size() / arrays.n_terms * arrays.n_values());
    const ExactDefinition definition(arrays);
    for (size_t r = 0; r < X.size() / arrays.n_terms; ++r)
        definition.evaluate(&X[r * arrays.n_terms], &values[r * arrays.n_values()]);
    return values;
}

static void check_against_definition(const ExactArrays& arrays, const SimdLevel& level) {
    for (size_t n_rows : {1, 7, 100}) {
        const std::vector<double> X = normal_numbers(n_rows * arrays.n_terms, 4);
        const std::vector<double> expected = define_values(arrays, X);
        const ExactSums sums(arrays, level);
        const Rows rows = rows_of(X, arrays.n_features);
        std::vector<double> values(expected.size());
        sums.values(rows, values.data(), 2);
        for (size_t i = 0; i < values.size(); ++i) CHECK_CLOSE(values[i], expected[i], 1e-11);
        const std::vector<int32_t> classes = Classifier(sums).classify(rows, 2);
        for (size_t r = 0; r < n_rows; ++r)
            CHECK(classes[r] == sums.decide(&expected[r * arrays.n_values()], nullptr));
        std::vector<double> ratios(n_rows);
        sums.error_ratios(rows, ratios.data());
        for (double ratio : ratios) CHECK(ratio < 0.7);
    }
}

static void test_sums_agree_with_their_definition(const SimdLevel& level) {
    for (KernelFunction function : {KernelFunction::gaussian, KernelFunction::polynomial,
                                    KernelFunction::sigmoid, KernelFunction::linear})
        for (size_t n_features : {1, 3, 120})
            for (const std::vector<size_t>& n_support :
                 {std::vector<size_t>{1, 1}, {0, 30}, {300, 200}, {9, 40, 0, 17}}) {
                ExactArrays arrays = random_svm(n_support, n_features);
                arrays.function = function;
                check_against_definition(arrays, level);
            }
}

static void test_other_rules_agree_with_their_definition(const SimdLevel& level) {
    ExactArrays arrays = random_svm({20, 15, 30}, 4);
    arrays.rule = ExactRule::ties_broken;
    check_against_definition(arrays, level);
    arrays.rule = ExactRule::density;
    check_against_definition(arrays, level);
    arrays = random_svm({20, 15}, 4);
    arrays.rule = ExactRule::strict;
    check_against_definition(arrays, level);
}

// Whatever the numbers are, every row gets a class.
static void test_extreme_numbers_have_defined_classes(const SimdLevel& level) {
    const double largest = std::numeric_limits<double>::max();
    for (double gamma : {0.0, 1e-300, 1e30, 1e300, largest})
        for (double factor : {1e-300, 1.0, 1e30, 1e300})
            for (ExactRule rule : {ExactRule::votes, ExactRule::ties_broken, ExactRule::density})
                for (KernelFunction function :
                     {KernelFunction::gaussian, KernelFunction::polynomial, KernelFunction::sigmoid,
                      KernelFunction::linear}) {
                    ExactArrays arrays = random_svm({3, 0, 9}, 2);
                    arrays.gamma = gamma;
                    arrays.rule = rule;
                    arrays.function =
                        rule == ExactRule::density ? KernelFunction::gaussian : function;
                    for (double& coefficient : arrays.coefficients) coefficient *= factor;
                    const std::vector<double> X = {0,      0, 1e30,    -1e30,    1e300, 1,
                                                   1e-300, 0, largest, -largest, 0.5,   2};
                    const ExactSums sums(arrays, level);
                    for (int32_t c : Classifier(sums).classify(rows_of(X, 2)))
                        CHECK(c >= 0 && c < 3);
                }
}

static void test_merged_vectors_change_nothing(const SimdLevel& level) {
    ExactArrays arrays = random_svm({8, 8}, 3);
    std::copy(arrays.vectors.begin(), arrays.vectors.begin() + 12, arrays.vectors.begin() + 12);
    check_against_definition(arrays, level);
}

int main() {
    for (const SimdLevel* level : usable_levels()) {
        test_sums_agree_with_their_definition(*level);
        test_other_rules_agree_with_their_definition(*level);
        test_extreme_numbers_have_defined_classes(*level);
        test_merged_vectors_change_nothing(*level);
    }
    return report();
}
