// Sums of Gaussian kernels: arguments checked, vectors packed, then handed to the threads.
#include "rbf.hpp"

#include <cmath>
#include <limits>

#include "dispatch.hpp"
#include "parallel.hpp"

namespace limes {
namespace {

const SumsPath& choose_path(const std::string& name) {
    if (const SumsPath* path = find_sums_path(name)) return *path;
    throw nb::value_error(("cpu must name a path of this processor, got '" + name + "'").c_str());
}

size_t read_threads(ptrdiff_t n_threads) {
    if (n_threads >= 1) return size_t(n_threads);
    throw nb::value_error(("n_threads must be at least 1, got " + std::to_string(n_threads)).c_str());
}

// Extent of an axis of a two-dimensional float64 array that is not empty.
size_t extent(const View& view, size_t axis) {
    if (view.dimensions() != 2 || view.extent(0) == 0 || view.extent(1) == 0)
        view.fail_value("must have two dimensions and not be empty, got shape " + view.shape());
    return view.extent(axis);
}

size_t whole(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

RbfVectors::RbfVectors(nb::handle vectors, double gamma, const std::string& cpu)
    : path_(choose_path(cpu)),
      gamma_(gamma),
      n_vectors_(extent(View(vectors, "vectors"), 0)),
      n_features_(extent(View(vectors, "vectors"), 1)),
      n_padded_(whole(n_features_, path_.layout.lanes)),
      n_wide_(whole(n_vectors_, path_.layout.points)),
      center_(n_padded_, 0.0),
      tiles_(n_wide_ * n_features_, 0.0),
      biases_(n_wide_, -std::numeric_limits<double>::infinity()),
      features_(1) {
    if (!(gamma >= 0) || !std::isfinite(gamma))
        throw nb::value_error(("gamma must be finite and 0 or more, got " + std::to_string(gamma)).c_str());
    std::vector<double> moved = read_doubles(View(vectors, "vectors"), {n_vectors_, n_features_});
    for (size_t i = 0; i < n_vectors_; ++i)
        for (size_t k = 0; k < n_features_; ++k)
            center_.get()[k] += moved[i * n_features_ + k] / double(n_vectors_);
    const size_t points = path_.layout.points;
    for (size_t i = 0; i < n_vectors_; ++i) {
        double square = 0;
        for (size_t k = 0; k < n_features_; ++k) {
            double& value = moved[i * n_features_ + k];
            value -= center_.get()[k];
            square += value * value;
            tiles_.get()[(i / points * n_features_ + k) * points + i % points] = -2 * gamma * value;
        }
        biases_.get()[i] = -gamma * square;
    }
    features_ = pack_columns(moved.data(), n_features_);
}

void RbfVectors::sums(nb::handle X, nb::handle weights, nb::handle out, ptrdiff_t n_threads) const {
    const View rows(X, "X"), given(weights, "weights"), sums(out, "out", true);
    const size_t n_outputs = extent(given, 1), count = read_threads(n_threads);
    const std::vector<double> values = read_doubles(given, {n_vectors_, n_outputs});
    const Aligned<double> packed = pack_columns(values.data(), n_outputs);
    const SumsJob wanted = job(rows, sums, packed, n_outputs);
    const nb::gil_scoped_release release;
    run_parallel<double>(path_, wanted, count);
}

void RbfVectors::sums_and_gradients(nb::handle X, nb::handle weights, nb::handle out,
                                    nb::handle gradients, ptrdiff_t n_threads) const {
    const View rows(X, "X"), given(weights, "weights"), sums(out, "sums", true);
    const View slopes(gradients, "gradients", true);
    const size_t count = read_threads(n_threads);
    std::vector<double> values = read_doubles(given, {n_vectors_, 1});
    const Aligned<double> packed = pack_columns(values.data(), 1);
    values.resize(n_wide_, 0.0);
    SumsJob wanted = job(rows, sums, packed, 1);
    if (!slopes.is_double()) slopes.fail_type("must be float64");
    slopes.require_shape({wanted.rows.count, n_features_});
    slopes.require_plain();
    wanted.single = values.data();
    wanted.gradients = static_cast<double*>(slopes.data());
    const nb::gil_scoped_release release;
    run_parallel<double>(path_, wanted, count);
}

Aligned<double> RbfVectors::pack_columns(const double* values, size_t n_columns) const {
    const size_t points = path_.layout.points;
    Aligned<double> packed(whole(n_columns, points) * n_wide_, 0.0);
    for (size_t i = 0; i < n_vectors_; ++i)
        for (size_t c = 0; c < n_columns; ++c)
            packed.get()[(c / points * n_wide_ + i) * points + c % points] = -values[i * n_columns + c];
    return packed;
}

SumsJob RbfVectors::job(const View& X, const View& sums, const Aligned<double>& weights,
                        size_t n_outputs) const {
    const Rows rows = read_rows(X, n_features_);
    if (!sums.is_double()) sums.fail_type("must be float64");
    sums.require_shape({rows.count, n_outputs});
    sums.require_plain();
    const Panels<double> vectors{n_vectors_, n_features_, tiles_.get(), nullptr, biases_.get()};
    return {rows, n_features_, n_padded_, center_.get(), gamma_, vectors, n_outputs,
            weights.get(), nullptr, features_.get(), static_cast<double*>(sums.data()), nullptr};
}

}  // namespace limes
