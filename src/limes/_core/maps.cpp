// Maps: arguments checked, then handed to the threads.
#include "maps.hpp"

#include "read_model.hpp"

namespace limes {
namespace {

const Path& choose_path(const std::string& name) {
    if (const Path* path = find_path(name)) return *path;
    std::string text = "cpu must be one of";
    for (const Path* path : usable_paths()) text += std::string(" '") + path->name + "'";
    throw nb::value_error((text + " on this processor, got '" + name + "'").c_str());
}

}  // namespace

Maps::Maps(nb::handle center, nb::handle maps, nb::handle projection, ptrdiff_t blend,
           bool is_double, nb::handle pairs, const std::string& cpu)
    : path_(choose_path(cpu)), is_double_(is_double) {
    const PlainModel plain = read_model(center, maps, projection, blend, pairs);
    n_features_ = plain.n_features;
    for (const PlainMap& map : plain.maps) n_values_.push_back(map.n_values);
    if (is_double) {
        twice_ = std::make_unique<Engine<double>>(plain, path_.twice);
        n_pair_classes_ = twice_->packed.model().n_classes;
    } else {
        single_ = std::make_unique<Engine<float>>(plain, path_.single);
        n_pair_classes_ = single_->packed.model().n_classes;
    }
}

size_t Maps::n_values() const {
    size_t n = 0;
    for (size_t n_values : n_values_) n += n_values;
    return n;
}

size_t Maps::n_classes() const {
    if (class_task() == Task::vote) return n_pair_classes_;
    return n_values_[0] == 1 ? 2 : n_values_[0];
}

void Maps::nearest(nb::handle X, nb::handle out, ptrdiff_t index, ptrdiff_t n_threads) const {
    if (index < 0 || size_t(index) >= n_maps()) {
        const std::string text = "index must be the number of a map, from 0 to " +
                                 std::to_string(n_maps() - 1) + ", got " + std::to_string(index);
        throw nb::value_error(text.c_str());
    }
    run_indices(Task::nearest, X, out, size_t(index), read_threads(n_threads));
}

void Maps::classify(nb::handle X, nb::handle out, ptrdiff_t n_threads) const {
    run_indices(class_task(), X, out, 0, read_threads(n_threads));
}

void Maps::decide(nb::handle X, nb::handle out, ptrdiff_t n_threads) const {
    const View rows(X, "X"), values(out, "out", true);
    const Rows read = read_rows(rows, n_features_);
    check_values(values, {read.count, n_values()});
    if (is_double_)
        run_values(*twice_, Task::decide, read, values, nullptr, 0, read_threads(n_threads));
    else
        run_values(*single_, Task::decide, read, values, nullptr, 0, read_threads(n_threads));
}

void Maps::decide_some(nb::handle X, nb::handle which, nb::handle out, ptrdiff_t n_threads) const {
    const View rows(X, "X"), numbers(which, "which"), values(out, "out", true);
    const Rows read = read_rows(rows, n_features_);
    const size_t n_slots = check_which(numbers, read.count), count = read_threads(n_threads);
    check_values(values, {read.count, n_slots, common_values()});
    const int32_t* named = static_cast<const int32_t*>(numbers.data());
    if (is_double_)
        run_values(*twice_, Task::decide_some, read, values, named, n_slots, count);
    else
        run_values(*single_, Task::decide_some, read, values, named, n_slots, count);
}

Task Maps::class_task() const {
    if (n_pair_classes_ > 0) return Task::vote;
    if (n_maps() == 1) return Task::classify;
    const std::string text = "classify needs a single map, or maps with pairs to vote between, got " +
                             std::to_string(n_maps()) + " maps; use decide and combine the values";
    throw nb::value_error(text.c_str());
}

size_t Maps::common_values() const {
    for (size_t n_values : n_values_)
        if (n_values != n_values_[0])
            throw nb::value_error("maps that are chosen among must have equally many linear functions");
    return n_values_[0];
}

void Maps::check_values(const View& values, const std::vector<size_t>& shape) const {
    if (is_double_ ? !values.is_double() : !values.is_float())
        values.fail_type(std::string("must be ") + (is_double_ ? "float64" : "float32") +
                         ", got elements of format '" + values.kind() + "'");
    values.require_shape(shape);
    values.require_plain();
}

size_t Maps::check_which(const View& which, size_t n_rows) const {
    if (!which.is_int32())
        which.fail_type("must be int32, got elements of format '" + which.kind() + "'");
    if (which.dimensions() != 2 || which.extent(0) != n_rows)
        which.fail_value("must have shape (" + std::to_string(n_rows) + ", n_slots), got " +
                         which.shape());
    which.require_plain();
    const int32_t* numbers = static_cast<const int32_t*>(which.data());
    const size_t n = n_rows * which.extent(1);
    for (size_t i = 0; i < n; ++i)
        if (numbers[i] < -1 || ptrdiff_t(numbers[i]) >= ptrdiff_t(n_maps()))
            which.fail_value("must hold map numbers from 0 to " + std::to_string(n_maps() - 1) +
                             ", or -1 for none, got " + std::to_string(numbers[i]));
    return which.extent(1);
}

void Maps::run_indices(Task task, nb::handle X, nb::handle out, size_t index,
                       size_t n_threads) const {
    const View rows(X, "X"), indices(out, "out", true);
    const Rows read = read_rows(rows, n_features_);
    if (!indices.is_int32())
        indices.fail_type("must be int32, got elements of format '" + indices.kind() + "'");
    indices.require_shape({read.count});
    indices.require_plain();
    int32_t* to = static_cast<int32_t*>(indices.data());
    if (is_double_) {
        Job<double> job{nullptr, read, task, index, nullptr, 0, nullptr, to};
        twice_->run(job, n_threads);
    } else {
        Job<float> job{nullptr, read, task, index, nullptr, 0, nullptr, to};
        single_->run(job, n_threads);
    }
}

template <class Real>
void Maps::run_values(const Engine<Real>& engine, Task task, const Rows& rows, const View& values,
                      const int32_t* which, size_t n_slots, size_t n_threads) const {
    Real* to = static_cast<Real*>(values.data());
    Job<Real> job{nullptr, rows, task, 0, which, n_slots, to, nullptr};
    engine.run(job, n_threads);
}

}  // namespace limes
