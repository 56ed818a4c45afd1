// `RbfVectors`: sums of Gaussian kernels. `ExactSums`: those that decide the class of a row.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "array_view.hpp"
#include "exact_sums.hpp"
#include "packed.hpp"
#include "parallel.hpp"
#include "simd_dispatch.hpp"

namespace limes {
namespace {

// Extent of an axis of a two-dimensional array that is not empty.
size_t extent(const ArrayView& view, size_t axis) {
    if (view.dimensions() != 2 || view.extent(0) == 0 || view.extent(1) == 0)
        view.fail_value("must have two dimensions and not be empty, got shape " + view.shape());
    return view.extent(axis);
}

PackedVectors read_vectors(const ArrayView& view, double gamma, const Layout& layout) {
    const size_t n_vectors = extent(view, 0), n_features = extent(view, 1);
    if (!(gamma >= 0) || !std::isfinite(gamma))
        throw std::invalid_argument("gamma must be finite and 0 or more, got " +
                                    std::to_string(gamma));
    return PackedVectors(read_doubles(view, {n_vectors, n_features}), n_features, gamma, layout);
}

double* read_output(const ArrayView& view, const std::vector<size_t>& shape) {
    view.require_type(view.is_double(), "float64");
    view.require_shape(shape);
    view.require_contiguous();
    return static_cast<double*>(view.data());
}

class RbfVectors {
public:
    RbfVectors(nb::handle vectors, double gamma, const std::string& level)
        : kernel_(choose_level(level).sums),
          packed_(read_vectors(ArrayView(vectors, "vectors"), gamma, kernel_.layout)) {}

    size_t n_features() const { return packed_.n_features(); }

    void sums(nb::handle X, nb::handle weights, nb::handle out, ptrdiff_t n_threads) const {
        const ArrayView rows(X, "X"), given(weights, "weights"), sums(out, "out", true);
        const size_t n_outputs = extent(given, 1), count = read_threads(n_threads);
        const std::vector<double> values = read_doubles(given, {packed_.n_vectors(), n_outputs});
        const Aligned<double> columns = packed_.pack_columns(values.data(), n_outputs);
        const Rows read = read_rows(rows, n_features());
        const SumsJob job =
            packed_.job(read, columns, n_outputs, read_output(sums, {read.count, n_outputs}));
        const nb::gil_scoped_release release;
        run_parallel<double>(kernel_, job, count);
    }

    void sums_and_gradients(nb::handle X, nb::handle weights, nb::handle out, nb::handle gradients,
                            ptrdiff_t n_threads) const {
        const ArrayView rows(X, "X"), given(weights, "weights"), sums(out, "sums", true);
        const ArrayView slopes(gradients, "gradients", true);
        const size_t count = read_threads(n_threads);
        std::vector<double> values = read_doubles(given, {packed_.n_vectors(), 1});
        const Aligned<double> columns = packed_.pack_columns(values.data(), 1);
        values.resize(packed_.n_padded(), 0.0);
        const Rows read = read_rows(rows, n_features());
        SumsJob job = packed_.job(read, columns, 1, read_output(sums, {read.count, 1}));
        job.gradient_weights = values.data();
        job.gradients = read_output(slopes, {read.count, n_features()});
        const nb::gil_scoped_release release;
        run_parallel<double>(kernel_, job, count);
    }

private:
    const SumsKernel& kernel_;
    PackedVectors packed_;
};

std::vector<double> read_finite(const ArrayView& view, const std::vector<size_t>& shape) {
    std::vector<double> numbers = read_doubles(view, shape);
    for (double number : numbers)
        if (!std::isfinite(number)) view.fail_value("must be finite");
    return numbers;
}

std::vector<int32_t> read_indices(const ArrayView& view, size_t n, size_t limit) {
    const int32_t* from = read_int32(view, {n});
    for (size_t i = 0; i < n; ++i)
        if (from[i] < 0 || size_t(from[i]) >= limit)
            view.fail_value("must be indices below " + std::to_string(limit) + ", got " +
                            std::to_string(from[i]));
    return std::vector<int32_t>(from, from + n);
}

KernelFunction read_kernel(const std::string& name) {
    if (name == "rbf") return KernelFunction::gaussian;
    if (name == "poly") return KernelFunction::polynomial;
    if (name == "sigmoid") return KernelFunction::sigmoid;
    if (name == "linear") return KernelFunction::linear;
    throw std::invalid_argument("kernel must be one of 'linear', 'poly', 'rbf', 'sigmoid', got '" +
                                name + "'");
}

ExactRule read_exact_rule(const std::string& name) {
    if (name == "votes") return ExactRule::votes;
    if (name == "strict") return ExactRule::strict;
    if (name == "ties broken") return ExactRule::ties_broken;
    if (name == "density") return ExactRule::density;
    throw std::invalid_argument(
        "rule must be one of 'votes', 'strict', 'ties broken', 'density', got '" + name + "'");
}

// (shift, columns, scale) or (shift, matrix): see RowTransform.
void read_preprocessing(nb::handle object, ExactArrays& arrays) {
    arrays.n_features = arrays.n_terms;
    if (object.is_none()) return;
    if (!PyTuple_Check(object.ptr()) || (nb::len(object) != 2 && nb::len(object) != 3))
        throw nb::type_error("preprocessing must be (shift, columns, scale) or (shift, matrix)");
    const nb::tuple parts = nb::borrow<nb::tuple>(object);
    const ArrayView shift(parts[0], "shift");
    if (shift.dimensions() != 1 || shift.extent(0) == 0)
        shift.fail_value("must have one dimension and not be empty, got shape " + shift.shape());
    arrays.n_features = shift.extent(0);
    arrays.shift = read_finite(shift, {arrays.n_features});
    if (parts.size() == 2) {
        arrays.matrix =
            read_finite(ArrayView(parts[1], "matrix"), {arrays.n_features, arrays.n_terms});
    } else {
        arrays.columns =
            read_indices(ArrayView(parts[1], "columns"), arrays.n_terms, arrays.n_features);
        arrays.scale = read_finite(ArrayView(parts[2], "scale"), {arrays.n_terms});
    }
}

void read_constants(double gamma, ptrdiff_t degree, double coef0, ExactArrays& arrays) {
    const auto require = [](bool is_right, const std::string& text) {
        if (!is_right) throw std::invalid_argument(text);
    };
    require(gamma >= 0 && std::isfinite(gamma),
            "gamma must be finite and 0 or more, got " + std::to_string(gamma));
    require(degree >= 0 && degree <= 1000000,
            "degree must be from 0 to 1000000, got " + std::to_string(degree));
    require(std::isfinite(coef0), "coef0 must be finite, got " + std::to_string(coef0));
    require(!arrays.is_density() || arrays.function == KernelFunction::gaussian,
            "rule 'density' needs the kernel 'rbf'");
    require(arrays.n_classes() >= 2 || (arrays.is_density() && arrays.n_classes() == 1),
            "n_support must have 2 classes or more, got " + std::to_string(arrays.n_classes()));
    require(arrays.rule != ExactRule::strict || arrays.n_classes() == 2,
            "rule 'strict' is for 2 classes, got " + std::to_string(arrays.n_classes()));
    arrays.gamma = gamma;
    arrays.degree = int(degree);
    arrays.coef0 = coef0;
}

ExactArrays read_exact(nb::handle vectors, nb::handle n_support, nb::handle coefficients,
                       nb::handle intercepts, const std::string& kernel, double gamma,
                       ptrdiff_t degree, double coef0, const std::string& rule,
                       nb::handle class_order, nb::handle preprocessing) {
    ExactArrays arrays;
    arrays.function = read_kernel(kernel);
    arrays.rule = read_exact_rule(rule);
    const ArrayView rows(vectors, "vectors"), counts(n_support, "n_support");
    if (rows.dimensions() != 2 || rows.extent(1) == 0)
        rows.fail_value("must have two dimensions and a feature, got shape " + rows.shape());
    const size_t n_vectors = rows.extent(0);
    arrays.n_terms = rows.extent(1);
    arrays.vectors = read_finite(rows, {n_vectors, arrays.n_terms});
    if (counts.dimensions() != 1)
        counts.fail_value("must have one dimension, got shape " + counts.shape());
    size_t sum = 0;
    for (int32_t count : read_indices(counts, counts.extent(0), n_vectors + 1)) {
        arrays.n_support.push_back(size_t(count));
        sum += size_t(count);
    }
    if (sum != n_vectors)
        counts.fail_value("must add up to the " + std::to_string(n_vectors) + " vectors, got " +
                          std::to_string(sum));
    read_constants(gamma, degree, coef0, arrays);
    if (!arrays.is_density())
        arrays.coefficients = read_finite(ArrayView(coefficients, "coefficients"),
                                          {arrays.n_classes() - 1, n_vectors});
    const ArrayView constants(intercepts, "intercepts");
    arrays.intercepts = arrays.is_density() ? read_doubles(constants, {arrays.n_values()})
                                            : read_finite(constants, {arrays.n_values()});
    if (!class_order.is_none())
        arrays.class_order = read_indices(ArrayView(class_order, "class_order"), arrays.n_classes(),
                                          arrays.n_classes());
    read_preprocessing(preprocessing, arrays);
    return arrays;
}

void exact_values(const ExactSums& sums, nb::handle X, nb::handle out, ptrdiff_t n_threads) {
    const ArrayView view(X, "X"), place(out, "out", true);
    const Rows rows = read_rows(view, sums.n_features());
    const size_t count = read_threads(n_threads);
    double* to = read_output(place, {rows.count, sums.n_values()});
    const nb::gil_scoped_release release;
    sums.values(rows, to, count);
}

void exact_logits(const ExactSums& sums, nb::handle X, nb::handle slopes, nb::handle shifts,
                  nb::handle out, ptrdiff_t n_threads) {
    if (sums.arrays().is_density())
        throw std::invalid_argument("logits need the sums of an SVM, got the rule 'density'");
    const ArrayView view(X, "X"), place(out, "out", true);
    const Rows rows = read_rows(view, sums.n_features());
    const size_t count = read_threads(n_threads);
    const LogitScales scales(sums, read_finite(ArrayView(slopes, "slopes"), {sums.n_values()}),
                             read_finite(ArrayView(shifts, "shifts"), {sums.n_values()}));
    place.require_type(place.is_float(), "float32");
    place.require_shape({rows.count, sums.n_classes()});
    place.require_contiguous();
    float* to = static_cast<float*>(place.data());
    const nb::gil_scoped_release release;
    find_logits(sums, scales, rows, to, count);
}

// The number of rows that float32 cannot decide.
size_t count_uncertain(const ExactSums& sums, nb::handle X) {
    const ArrayView view(X, "X");
    const Rows rows = read_rows(view, sums.n_features());
    const nb::gil_scoped_release release;
    std::vector<int32_t> classes(rows.count);
    ExactThread thread(sums, rows.count);
    thread.classify(rows, classes.data());
    return thread.n_uncertain();
}

// For each row, the largest error of a float32 value as a multiple of its bound.
void exact_error_ratios(const ExactSums& sums, nb::handle X, nb::handle out) {
    const ArrayView view(X, "X"), place(out, "out", true);
    const Rows rows = read_rows(view, sums.n_features());
    double* to = read_output(place, {rows.count});
    const nb::gil_scoped_release release;
    sums.error_ratios(rows, to);
}

void bind_exact_sums(nb::module_& m) {
    using namespace nb::literals;
    const auto make = [](ExactSums* self, nb::handle vectors, nb::handle n_support,
                         nb::handle coefficients, nb::handle intercepts, const std::string& kernel,
                         double gamma, ptrdiff_t degree, double coef0, const std::string& rule,
                         nb::handle class_order, nb::handle preprocessing,
                         const std::string& level) {
        new (self) ExactSums(read_exact(vectors, n_support, coefficients, intercepts, kernel, gamma,
                                        degree, coef0, rule, class_order, preprocessing),
                             choose_level(level));
    };
    nb::class_<ExactSums>(m, "ExactSums")
        .def("__init__", make, "vectors"_a.none(), "n_support"_a.none(), "coefficients"_a.none(),
             "intercepts"_a.none(), "kernel"_a, "gamma"_a, "degree"_a, "coef0"_a, "rule"_a,
             "class_order"_a.none(), "preprocessing"_a.none(), "level"_a)
        .def("values", &exact_values, "X"_a.none(), "out"_a.none(), "n_threads"_a)
        .def("logits", &exact_logits, "X"_a.none(), "slopes"_a.none(), "shifts"_a.none(),
             "out"_a.none(), "n_threads"_a)
        .def("count_uncertain", &count_uncertain, "X"_a.none())
        .def("error_ratios", &exact_error_ratios, "X"_a.none(), "out"_a.none())
        .def_prop_ro("n_features", &ExactSums::n_features)
        .def_prop_ro("n_classes", &ExactSums::n_classes)
        .def_prop_ro("n_values", &ExactSums::n_values);
}

}  // namespace

void bind_kernel_sums(nb::module_& m) {
    using namespace nb::literals;
    bind_exact_sums(m);
    nb::class_<RbfVectors>(m, "RbfVectors")
        .def(nb::init<nb::handle, double, const std::string&>(), "vectors"_a, "gamma"_a, "level"_a)
        .def("sums", &RbfVectors::sums, "X"_a.none(), "weights"_a, "out"_a, "n_threads"_a)
        .def("sums_and_gradients", &RbfVectors::sums_and_gradients, "X"_a.none(), "weights"_a,
             "sums"_a, "gradients"_a, "n_threads"_a)
        .def_prop_ro("n_features", &RbfVectors::n_features);
}

}  // namespace limes
