// `RbfVectors`: sums of Gaussian kernels.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "array_view.hpp"
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

}  // namespace

void bind_kernel_sums(nb::module_& m) {
    using namespace nb::literals;
    nb::class_<RbfVectors>(m, "RbfVectors")
        .def(nb::init<nb::handle, double, const std::string&>(), "vectors"_a, "gamma"_a, "level"_a)
        .def("sums", &RbfVectors::sums, "X"_a.none(), "weights"_a, "out"_a, "n_threads"_a)
        .def("sums_and_gradients", &RbfVectors::sums_and_gradients, "X"_a.none(), "weights"_a,
             "sums"_a, "gradients"_a, "n_threads"_a)
        .def_prop_ro("n_features", &RbfVectors::n_features);
}

}  // namespace limes
