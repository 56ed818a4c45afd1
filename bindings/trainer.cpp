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
                read_floats(base_slopes, {q, d + job.curved.n_inputs()}),
                read_floats(base_offsets, {q})};
    }
};

// The arrays of curved inputs, from None or a tuple (shape, center, scale, directions, decay,
// means, inverse_deviations).
class CurvedViews {
public:
    explicit CurvedViews(nb::handle curved) {
        if (curved.is_none()) return;
        nb::tuple items;
        require(nb::try_cast(curved, items) && items.size() == 7,
                "curved must be None or a tuple (shape, center, scale, directions, decay, means, "
                "inverse_deviations)");
        shape_ = read_shape(nb::cast<std::string>(items[0]));
        scale_ = nb::cast<float>(items[2]), decay_ = nb::cast<float>(items[4]);
        // A fall through zero would make the envelope infinite.
        require(decay_ >= 0, "decay of curved inputs must be at least 0");
        center_.emplace(items[1], "center");
        if (!items[3].is_none()) directions_.emplace(items[3], "directions");
        means_.emplace(items[5], "means");
        inverse_deviations_.emplace(items[6], "inverse_deviations");
    }

    CurvedInputs read(size_t n_features) const {
        CurvedInputs curved{};
        if (!center_) return curved;
        curved.shape = shape_, curved.scale = scale_, curved.decay = decay_;
        curved.center = read_floats(*center_, {n_features});
        curved.n_terms = n_features;
        if (directions_) {
            width(*directions_);
            curved.n_terms = directions_->extent(0);
            curved.directions = read_floats(*directions_, {curved.n_terms, n_features});
            require(curved.n_terms > 0, "directions must not be empty");
        }
        curved.means = read_floats(*means_, {curved.n_inputs()});
        curved.inverse_deviations = read_floats(*inverse_deviations_, {curved.n_inputs()});
        return curved;
    }

private:
    static BaseShape read_shape(const std::string& name) {
        if (name == "linear") return BaseShape::linear;
        if (name == "envelope") return BaseShape::envelope;
        if (name == "diagonal") return BaseShape::diagonal;
        if (name == "quadratic") return BaseShape::quadratic;
        throw std::invalid_argument(
            "shape must be 'linear', 'envelope', 'diagonal' or 'quadratic', got '" + name + "'");
    }

    BaseShape shape_ = BaseShape::linear;
    float scale_ = 1, decay_ = 0;
    std::optional<ArrayView> center_, directions_, means_, inverse_deviations_;
};

// A job without the settings of the optimiser; one batch of all rows.
TrainJob read_job(const ArrayView& rows, const ArrayView& targets, const ArrayView& anchors,
                  const ParameterViews& parameters, const CurvedViews& curved, size_t n_blended,
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
    require(m < std::numeric_limits<int32_t>::max(), "there must be fewer than 2**31 - 1 points");
    require(m == 1 ? n_blended == 1 : n_blended >= 1 && n_blended < m,
            "n_blended must be at least 1 and less than the number of points");
    require(radius > 0, "radius must be positive");
    job.rows = read_floats(rows, {n, d});
    job.curved = curved.read(d);
    job.parameters = parameters.read(job);
    job.targets = read_floats(targets, {n, q});
    job.anchors = read_floats(anchors, {m, r});
    job.inverse_radius = 1 / radius;
    job.n_batch = n;
    return job;
}

// Pairs of rows and points have 32-bit numbers.
void require_few_pairs(const TrainJob& job) {
    require(job.n_batch <= std::numeric_limits<uint32_t>::max() / (job.n_blended + 1),
            "n_batch times n_blended must be less than 2**32");
}

double train(nb::handle rows, nb::handle targets, nb::handle anchors, nb::handle components,
             nb::handle points, nb::handle slopes, nb::handle offsets, nb::handle base_slopes,
             nb::handle base_offsets, nb::handle curved, size_t n_blended, float radius,
             size_t n_samples, size_t n_batch, std::array<float, 4> rates, float weight_decay,
             uint64_t seed, const std::string& level) {
    const ArrayView x(rows, "rows"), t(targets, "targets"), a(anchors, "anchors");
    const ParameterViews parameters(
        {components, points, slopes, offsets, base_slopes, base_offsets}, true);
    const CurvedViews curved_views(curved);
    TrainJob job = read_job(x, t, a, parameters, curved_views, n_blended, radius);
    require(n_batch >= 1, "n_batch must be at least 1");
    require(n_samples >= 1, "n_samples must be at least 1");
    job.n_samples = n_samples, job.n_batch = n_batch < job.n_rows ? n_batch : job.n_rows;
    require_few_pairs(job);
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
double loss_and_gradient(nb::handle rows, nb::handle targets, nb::handle anchors,
                         nb::handle components, nb::handle points, nb::handle slopes,
                         nb::handle offsets, nb::handle base_slopes, nb::handle base_offsets,
                         nb::handle curved, size_t n_blended, float radius, nb::tuple gradients,
                         const std::string& level) {
    const ArrayView x(rows, "rows"), t(targets, "targets"), a(anchors, "anchors");
    const ParameterViews parameters(
        {components, points, slopes, offsets, base_slopes, base_offsets}, false);
    const CurvedViews curved_views(curved);
    const TrainJob job = read_job(x, t, a, parameters, curved_views, n_blended, radius);
    require_few_pairs(job);
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
    m.def("train", &train, "rows"_a, "targets"_a, "anchors"_a, "components"_a.none(), "points"_a,
          "slopes"_a, "offsets"_a, "base_slopes"_a, "base_offsets"_a, "curved"_a.none(),
          "n_blended"_a, "radius"_a, "n_samples"_a, "n_batch"_a, "rates"_a, "decay"_a, "seed"_a,
          "level"_a);
    m.def("loss_and_gradient", &loss_and_gradient, "rows"_a, "targets"_a, "anchors"_a,
          "components"_a.none(), "points"_a, "slopes"_a, "offsets"_a, "base_slopes"_a,
          "base_offsets"_a, "curved"_a.none(), "n_blended"_a, "radius"_a, "gradients"_a, "level"_a);
}

}  // namespace limes
