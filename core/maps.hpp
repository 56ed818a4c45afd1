// Maps packed for a SIMD level, in float32 or float64, and their evaluation with threads.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "packed.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace limes {

// Maps of one precision, and the kernel that evaluates them.
template <class Number>
class PackedMaps {
public:
    using Real = Number;

    PackedMaps(const ModelArrays& arrays, const PredictKernel<Real>& kernel)
        : packed_(arrays, kernel.layout),
          kernel_(kernel) {}

    const Model<Real>& model() const { return packed_.model(); }
    const PredictKernel<Real>& kernel() const { return kernel_; }

    // The nearest point of each row in one map: out[row].
    void nearest(const Rows& rows, size_t index, int32_t* out, size_t n_threads) const {
        run({&model(), rows, Task::nearest, index, nullptr, 0, nullptr, out}, n_threads);
    }
    // The values of all maps: out[row][value].
    void decide(const Rows& rows, Real* out, size_t n_threads) const {
        run({&model(), rows, Task::decide, 0, nullptr, 0, out, nullptr}, n_threads);
    }
    // The values of the maps that each row selects, map_numbers[row][n_selected], -1 for none:
    // out[row][n_selected][value].
    void decide_selected(const Rows& rows, const int32_t* map_numbers, size_t n_selected, Real* out,
                         size_t n_threads) const {
        run({&model(), rows, Task::decide_selected, 0, map_numbers, n_selected, out, nullptr},
            n_threads);
    }

private:
    void run(const PredictJob<Real>& job, size_t n_threads) const {
        run_parallel<Real>(kernel_, job, n_threads);
    }

    PackedModel<Real> packed_;
    const PredictKernel<Real>& kernel_;
};

class Maps {
public:
    Maps(const ModelArrays& arrays, bool is_double, const SimdLevel& level);

    const SimdLevel& level() const { return level_; }
    bool is_double() const { return float64_ != nullptr; }
    size_t n_features() const { return n_features_; }
    size_t n_maps() const { return n_values_.size(); }
    // Rows of numbers up to 2 to this power cannot overflow.
    int max_exponent() const { return max_exponent_; }

    // Number of values of all maps together.
    size_t n_values() const {
        size_t n = 0;
        for (size_t n_values : n_values_) n += n_values;
        return n;
    }
    // Number of values of each map, which must be equal.
    size_t common_values() const {
        for (size_t n_values : n_values_)
            if (n_values != n_values_[0])
                throw std::invalid_argument(
                    "maps that rows select from must have equally many linear functions");
        return n_values_[0];
    }
    // Number of classes that the maps distinguish by themselves: a single map by its highest value,
    // several by votes between pairs of classes.
    size_t n_classes() const {
        if (n_pair_classes_ > 0) return n_pair_classes_;
        if (n_maps() == 1) return n_values_[0] == 1 ? 2 : n_values_[0];
        throw std::invalid_argument(
            "rule 'own' needs a single map, or maps with pairs to vote "
            "between, got " +
            std::to_string(n_maps()) + " maps; use decide and combine the values");
    }

    // Call function(packed maps) with those of the precision in use.
    template <class Function>
    auto visit(Function function) const {
        return float64_ ? function(*float64_) : function(*float32_);
    }
    const PackedMaps<float>& packed(float) const { return *float32_; }
    const PackedMaps<double>& packed(double) const { return *float64_; }

private:
    const SimdLevel& level_;
    size_t n_features_ = 0, n_pair_classes_ = 0;
    int max_exponent_ = 0;
    std::vector<size_t> n_values_;  // of each map
    std::unique_ptr<PackedMaps<float>> float32_;
    std::unique_ptr<PackedMaps<double>> float64_;
};

inline Maps::Maps(const ModelArrays& arrays, bool is_double, const SimdLevel& level)
    : level_(level) {
    if (is_double)
        float64_ = std::make_unique<PackedMaps<double>>(arrays, level.predict.float64);
    else
        float32_ = std::make_unique<PackedMaps<float>>(arrays, level.predict.float32);
    n_features_ = arrays.n_features;
    for (const MapArrays& map : arrays.maps) n_values_.push_back(map.n_values);
    n_pair_classes_ = visit([](const auto& maps) { return maps.model().n_classes; });
    max_exponent_ = visit([](const auto& maps) { return maps.model().max_exponent; });
}

}  // namespace limes
