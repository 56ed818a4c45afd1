// The trainer on every SIMD level: loss and gradients against a definition in double precision and
// its central differences, and a short training.
#include <algorithm>
#include <random>
#include <tuple>

#include "check.hpp"
#include "simd_dispatch.hpp"

using namespace limes;

using Floats = std::vector<float>;

// All parameters of a map, in the order of TrainParameters.
struct Problem {
    size_t n_rows, n_features, n_search, n_outputs, n_points, n_blended;
    bool is_projected;
    Floats rows, targets, anchors;
    BaseShape shape;
    Floats center, directions, means, inverse_deviations;
    std::vector<Floats> parameters;
    float radius = 1.7f;

    TrainParameters pointers(std::vector<Floats>& arrays) const {
        return {is_projected ? arrays[0].data() : nullptr,
                arrays[1].data(),
                arrays[2].data(),
                arrays[3].data(),
                arrays[4].data(),
                arrays[5].data()};
    }
    CurvedInputs curved() const {
        const bool is_directed = !directions.empty();
        return {shape,         is_directed ? directions.size() / n_features : n_features,
                center.data(), is_directed ? directions.data() : nullptr,
                means.data(),  inverse_deviations.data(),
                0.7f,          0.4f};
    }
    TrainJob job(std::vector<Floats>& arrays) const {
        TrainJob job{};
        job.n_rows = job.n_batch = n_rows;
        job.n_features = n_features, job.n_search = n_search, job.n_outputs = n_outputs;
        job.n_points = n_points, job.n_blended = n_blended;
        job.rows = rows.data(), job.targets = targets.data();
        job.anchors = anchors.data(), job.inverse_radius = 1 / radius;
        job.parameters = pointers(arrays);
        job.curved = curved();
        return job;
    }
};

static Problem random_problem(size_t n_features, size_t n_search, size_t n_outputs, size_t n_points,
                              size_t n_blended, BaseShape shape = BaseShape::linear,
                              size_t n_directions = 0) {
    std::mt19937 random(unsigned(n_features + n_outputs + n_points + n_blended));
    std::normal_distribution<float> normal;
    const auto numbers = [&](size_t n) {
        Floats drawn(n);
        for (float& number : drawn) number = normal(random);
        return drawn;
    };
    const size_t n = 13;  // not a multiple of a tile
    Problem p{n,
              n_features,
              n_search,
              n_outputs,
              n_points,
              n_blended,
              n_search != n_features,
              numbers(n * n_features),
              numbers(n * n_outputs),
              numbers(n_points * n_search),
              shape,
              numbers(n_features),
              numbers(n_directions * n_features),
              {},
              {},
              {}};
    const size_t n_curved = p.curved().n_inputs();
    p.means = numbers(n_curved), p.inverse_deviations = numbers(n_curved);
    for (size_t r = 0; r < n; ++r) {  // probabilities
        float sum = n_outputs == 1 ? 3 : 0;
        for (size_t c = 0; c < n_outputs; ++c)
            sum += p.targets[r * n_outputs + c] = std::abs(p.targets[r * n_outputs + c]);
        for (size_t c = 0; c < n_outputs; ++c) p.targets[r * n_outputs + c] /= sum;
    }
    p.parameters = {numbers(p.is_projected ? n_search * n_features : 0),
                    numbers(n_points * n_search),
                    numbers(n_points * n_outputs * n_search),
                    numbers(n_points * n_outputs),
                    numbers(n_outputs * (n_features + n_curved)),
                    numbers(n_outputs)};
    return p;
}

using Doubles = std::vector<std::vector<double>>;

// The features and curved inputs of a row, as CurvedInputs defines them.
static std::vector<double> define_inputs(const Problem& p, const float* x) {
    const CurvedInputs curved = p.curved();
    const size_t d = p.n_features, n = curved.n_terms;
    std::vector<double> inputs(x, x + d), v(n, 0.0), raw;
    double square = 0;
    for (size_t i = 0; i < n; ++i) {
        for (size_t k = 0; k < d; ++k)
            v[i] += (curved.directions ? double(curved.directions[i * d + k])
                                       : (i == k) * double(curved.scale)) *
                    (x[k] - double(p.center[k]));
        square += v[i] * v[i] / double(n);
    }
    const double u = std::pow(1 + double(curved.decay) * square, -2.0);
    if (p.shape != BaseShape::linear) {
        raw.push_back(u);
        for (double term : v) raw.push_back(u * term);
    }
    for (size_t i = 0; i < n; ++i) {
        if (p.shape == BaseShape::diagonal) raw.push_back(u * v[i] * v[i]);
        for (size_t j = i; p.shape == BaseShape::quadratic && j < n; ++j)
            raw.push_back(u * v[i] * v[j]);
    }
    for (size_t i = 0; i < raw.size(); ++i)
        inputs.push_back((raw[i] - double(p.means[i])) * double(p.inverse_deviations[i]));
    return inputs;
}

// The values of a row, as TrainParameters defines them.
static std::vector<double> define_values(const Problem& p, const Doubles& parameters, size_t row) {
    const auto& [components, points, slopes, offsets, base_slopes, base_offsets] = std::tie(
        parameters[0], parameters[1], parameters[2], parameters[3], parameters[4], parameters[5]);
    const size_t d = p.n_features, s = p.n_search, q = p.n_outputs;
    const float* x = p.rows.data() + row * d;
    std::vector<double> z(s, 0.0), values(base_offsets);
    for (size_t a = 0; a < s; ++a)
        for (size_t k = 0; k < d; ++k)
            z[a] += p.is_projected ? components[a * d + k] * x[k] : (a == k) * double(x[k]);
    const std::vector<double> inputs = define_inputs(p, x);
    for (size_t c = 0; c < q; ++c)
        for (size_t k = 0; k < inputs.size(); ++k)
            values[c] += base_slopes[c * inputs.size() + k] * inputs[k];
    if (p.n_points == 1) return values;  // a single point has no local function
    std::vector<std::pair<double, size_t>> scores;
    for (size_t i = 0; i < p.n_points; ++i) {
        double score = 0;
        for (size_t a = 0; a < s; ++a) score += 0.5 * std::pow(points[i * s + a] - z[a], 2);
        scores.push_back({score, i});
    }
    std::sort(scores.begin(), scores.end());
    double total = 0;
    for (size_t j = 0; j < p.n_blended; ++j) total += scores[p.n_blended].first - scores[j].first;
    for (size_t j = 0; j < p.n_blended; ++j) {
        const size_t i = scores[j].second;
        const double weight = (scores[p.n_blended].first - scores[j].first) / total;
        for (size_t c = 0; c < q; ++c) {
            double local = offsets[i * q + c];
            for (size_t a = 0; a < s; ++a)
                local += slopes[(i * q + c) * s + a] * (z[a] - p.anchors[i * s + a]) / p.radius;
            values[c] += weight * local;
        }
    }
    return values;
}

static double define_loss(const Problem& p, const Doubles& parameters) {
    double loss = 0;
    for (size_t r = 0; r < p.n_rows; ++r) {
        const std::vector<double> v = define_values(p, parameters, r);
        const float* target = p.targets.data() + r * p.n_outputs;
        double sum = p.n_outputs == 1 ? 1 : 0, row_loss = 0;
        for (double value : v) sum += std::exp(value);
        if (p.n_outputs == 1)
            row_loss = std::log(sum) - target[0] * v[0];
        else
            for (size_t c = 0; c < p.n_outputs; ++c) row_loss += target[c] * (std::log(sum) - v[c]);
        loss += row_loss / double(p.n_rows);
    }
    return loss;
}

static void check_gradient(const Problem& p, const Trainer& trainer) {
    std::vector<Floats> parameters = p.parameters, gradients = p.parameters;
    const TrainJob job = p.job(parameters);
    Floats workspace(trainer.workspace_size(job), 0.0f);
    std::vector<uint32_t> order(p.n_rows);
    const double loss =
        trainer.loss_and_gradient(job, p.pointers(gradients), workspace.data(), order.data());
    CHECK(parameters == p.parameters);  // unchanged
    Doubles exact;
    for (const Floats& array : parameters) exact.emplace_back(array.begin(), array.end());
    CHECK_CLOSE(loss, define_loss(p, exact), 1e-5);
    for (size_t array = 0; array < exact.size(); ++array)
        for (size_t i = 0; i < exact[array].size(); ++i) {
            const double own = exact[array][i], step = 1e-6;
            exact[array][i] = own + step;
            const double above = define_loss(p, exact);
            exact[array][i] = own - step;
            const double below = define_loss(p, exact);
            exact[array][i] = own;
            CHECK_CLOSE(gradients[array][i], (above - below) / (2 * step), 1e-5);
        }
}

static double train(const Problem& p, const Trainer& trainer, std::vector<Floats>& parameters,
                    size_t n_samples) {
    TrainJob job = p.job(parameters);
    job.n_samples = n_samples, job.n_batch = 5, job.seed = 3;
    job.local_rate = job.point_rate = job.base_rate = job.component_rate = 0.02f;
    Floats workspace(trainer.workspace_size(job), 0.0f);
    std::vector<uint32_t> order(p.n_rows);
    return trainer.train(job, workspace.data(), order.data());
}

static void test_gradients_agree_with_central_differences(const Trainer& trainer) {
    for (size_t n_outputs : {1, 3, 9})
        for (size_t n_search : {2, 19})
            for (size_t n_features : {size_t(n_search), size_t(21)}) {
                check_gradient(random_problem(n_features, n_search, n_outputs, 7, 3), trainer);
                check_gradient(random_problem(n_features, n_search, n_outputs, 2, 1), trainer);
                check_gradient(random_problem(n_features, n_search, n_outputs, 20, 6), trainer);
            }
    check_gradient(random_problem(3, 3, 2, 1, 1), trainer);
    check_gradient(random_problem(3, 3, 17, 12, 9), trainer);  // more than are kept in registers
}

static void test_gradients_with_curved_inputs(const Trainer& trainer) {
    for (BaseShape shape : {BaseShape::envelope, BaseShape::diagonal, BaseShape::quadratic})
        for (size_t n_outputs : {1, 3}) {
            check_gradient(random_problem(5, 5, n_outputs, 1, 1, shape), trainer);
            check_gradient(random_problem(5, 5, n_outputs, 9, 3, shape), trainer);
            check_gradient(random_problem(6, 2, n_outputs, 9, 3, shape, 4), trainer);
        }
    check_gradient(random_problem(17, 17, 2, 1, 1, BaseShape::quadratic), trainer);
}

// No number may lead outside the arrays, which the sanitizers watch.
static void test_any_number_is_survived(const Trainer& trainer) {
    for (float number : {NAN, INFINITY, -INFINITY, 1e30f})
        for (size_t n_blended : {3, 9}) {
            Problem p = random_problem(5, 5, 3, 12, n_blended, BaseShape::quadratic);
            p.rows[7] = p.targets[4] = number;
            std::vector<Floats> parameters = p.parameters;
            train(p, trainer, parameters, 100);
        }
}

static void test_training_lowers_the_loss_and_is_reproducible(const Trainer& trainer) {
    const Problem p = random_problem(6, 2, 3, 8, 3);
    std::vector<Floats> first = p.parameters, longer = p.parameters, again = p.parameters;
    const double before = train(p, trainer, first, 13), after = train(p, trainer, longer, 1300);
    CHECK(after < 0.5 * before);
    CHECK(train(p, trainer, again, 1300) == after);
    CHECK(again == longer);
}

int main() {
    for (const SimdLevel* level : usable_levels()) {
        test_gradients_agree_with_central_differences(level->trainer);
        test_gradients_with_curved_inputs(level->trainer);
        test_any_number_is_survived(level->trainer);
        test_training_lowers_the_loss_and_is_reproducible(level->trainer);
    }
    return report();
}
