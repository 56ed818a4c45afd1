// `train` and `loss_and_gradient`: training of a map.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>

#include <array>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "array_view.hpp"
#include "simd_dispatch.hpp"

namespace limes {
namespace {

void require(bool is_right, const char* text) {
    if (!is_right) throw std::invalid_argument(text);
}

float* read_floats(const ArrayView& view, const std::vector<size_t>& shape) {
    view.require_type(view.is_float(), "float32");
    view.require_shape(shape);
    view.require_contiguous();
    return static_cast<float*>(view.data());
}

// The number of columns of a two-dimensional array.
size_t width(const ArrayView& view) {
    if (view.dimensions() != 2)
        view.fail_value("must have two dimensions, got shape " + view.shape());
    return view.extent(1);
}

// The arrays of the parameters of a map, or of their gradients; `components` may be None.
struct ParameterViews {
    std::optional<ArrayView> components;
    ArrayView points, slopes, offsets, base_slopes, base_offsets;

    ParameterViews(const std::array<nb::handle, 6>& arrays, bool is_writable)
        : points(arrays[1], "points", is_writable),
          slopes(arrays[2], "slopes", is_writable),
          offsets(arrays[3], "offsets", is_writable),
          base_slopes(arrays[4], "base_slopes", is_writable),
          base_offsets(arrays[5], "base_offsets", is_writable) {
        if (!arrays[0].is_none()) components.emplace(arrays[0], "components", is_writable);
    }

    TrainParameters read(const TrainJob& job) const {
        const size_t d = job.n_features, r = job.n_search, q = job.n_outputs, m = job.n_points;
        if (!components)
            require(r == d, "points must have as many features as rows, without components");
        return {components ? read_floats(*components, {r, d}) : nullptr,
                read_floats(points, {m, r}),
                read_floats(slopes, {m, q, r}),
                read_floats(offsets, {m, q}),
                read_floats(base_slopes, {q, d}),
                read_floats(base_offsets, {q})};
    }
};

// A job without the settings of the optimiser; one batch of all rows.
TrainJob read_job(const ArrayView& rows, const ArrayView& targets, const ArrayView& weights,
                  const ArrayView& anchors, const ParameterViews& parameters, size_t n_blended,
                  float radius) {
    TrainJob job{};
    job.n_features = width(rows), job.n_search = width(parameters.points);
    job.n_outputs = width(targets);
    job.n_rows = rows.extent(0), job.n_points = parameters.points.extent(0);
    job.n_blended = n_blended;
    const size_t n = job.n_rows, d = job.n_features, r = job.n_search, q = job.n_outputs;
    const size_t m = job.n_points;
    require(n && d && r && q && m, "rows, features, outputs and points must not be empty");
    require(n < std::numeric_limits<uint32_t>::max(), "there must be fewer than 2**32 - 1 rows");
    require(m == 1 ? n_blended == 1 : n_blended >= 1 && n_blended < m,
            "n_blended must be at least 1 and less than the number of points");
    require(radius > 0, "n_batch and radius must be positive");
    job.rows = read_floats(rows, {n, d});
    job.parameters = parameters.read(job);
    job.targets = read_floats(targets, {n, q}), job.weights = read_floats(weights, {n});
    job.anchors = read_floats(anchors, {m, r});
    job.inverse_radius = 1 / radius;
    job.n_batch = n;
    return job;
}

double train(nb::handle rows, nb::handle targets, nb::handle weights, nb::handle anchors,
             nb::handle components, nb::handle points, nb::handle slopes, nb::handle offsets,
             nb::handle base_slopes, nb::handle base_offsets, size_t n_blended, float radius,
             size_t n_epochs, size_t n_batch, std::array<float, 4> rates, float weight_decay,
             uint64_t seed, const std::string& level) {
    const ArrayView x(rows, "rows"), t(targets, "targets"), w(weights, "weights");
    const ArrayView a(anchors, "anchors");
    const ParameterViews parameters(
        {components, points, slopes, offsets, base_slopes, base_offsets}, true);
    TrainJob job = read_job(x, t, w, a, parameters, n_blended, radius);
    require(n_batch >= 1, "n_batch and radius must be positive");
    job.n_epochs = n_epochs, job.n_batch = n_batch < job.n_rows ? n_batch : job.n_rows;
    job.local_rate = rates[0], job.point_rate = rates[1], job.base_rate = rates[2];
    job.component_rate = rates[3];
    job.weight_decay = weight_decay, job.seed = seed;
    const Trainer& trainer = choose_level(level).trainer;
    std::vector<float> workspace(trainer.workspace_size(job), 0.0f);
    std::vector<uint32_t> order(job.n_rows);
    const nb::gil_scoped_release release;
    return trainer.train(job, workspace.data(), order.data());
}

// `gradients` are arrays like the parameters, which are overwritten.
double loss_and_gradient(nb::handle rows, nb::handle targets, nb::handle weights,
                         nb::handle anchors, nb::handle components, nb::handle points,
                         nb::handle slopes, nb::handle offsets, nb::handle base_slopes,
                         nb::handle base_offsets, size_t n_blended, float radius,
                         nb::tuple gradients, const std::string& level) {
    const ArrayView x(rows, "rows"), t(targets, "targets"), w(weights, "weights");
    const ArrayView a(anchors, "anchors");
    const ParameterViews parameters(
        {components, points, slopes, offsets, base_slopes, base_offsets}, false);
    const TrainJob job = read_job(x, t, w, a, parameters, n_blended, radius);
    require(gradients.size() == 6 && gradients[0].is_none() == components.is_none(),
            "gradients must be (components, points, slopes, offsets, base_slopes, base_offsets)");
    const ParameterViews gradient(
        {gradients[0], gradients[1], gradients[2], gradients[3], gradients[4], gradients[5]}, true);
    const Trainer& trainer = choose_level(level).trainer;
    std::vector<float> workspace(trainer.workspace_size(job), 0.0f);
    std::vector<uint32_t> order(job.n_rows);
    return trainer.loss_and_gradient(job, gradient.read(job), workspace.data(), order.data());
}

}  // namespace

void bind_trainer(nb::module_& m) {
    using namespace nb::literals;
    m.def("train", &train, "rows"_a, "targets"_a, "weights"_a, "anchors"_a, "components"_a.none(),
          "points"_a, "slopes"_a, "offsets"_a, "base_slopes"_a, "base_offsets"_a, "n_blended"_a,
          "radius"_a, "n_epochs"_a, "n_batch"_a, "rates"_a, "decay"_a, "seed"_a, "level"_a);
    m.def("loss_and_gradient", &loss_and_gradient, "rows"_a, "targets"_a, "weights"_a, "anchors"_a,
          "components"_a.none(), "points"_a, "slopes"_a, "offsets"_a, "base_slopes"_a,
          "base_offsets"_a, "n_blended"_a, "radius"_a, "gradients"_a, "level"_a);
}

}  // namespace limes
