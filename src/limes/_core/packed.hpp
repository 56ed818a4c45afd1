// Maps as Python gives them, and the same packed for one compiled path.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "core.hpp"

namespace limes {

// Memory on a 64-byte boundary, so that every vector of every path is aligned.
template <class Real>
class Aligned {
public:
    Aligned(size_t n, Real value) : Aligned(n) {
        for (size_t i = 0; i < n; ++i) data_.get()[i] = value;
    }
    // Memory as it comes: for scratch, which is written before it is read.
    explicit Aligned(size_t n) {
        if (n > (std::numeric_limits<size_t>::max() - 64) / sizeof(Real)) throw std::bad_alloc();
        const size_t bytes = (n * sizeof(Real) + 127) / 64 * 64;
        data_.reset(static_cast<Real*>(std::aligned_alloc(64, bytes)));
        if (!data_) throw std::bad_alloc();
    }
    Real* get() const { return data_.get(); }

private:
    struct Free {
        void operator()(Real* data) const { std::free(data); }
    };
    std::unique_ptr<Real, Free> data_;
};

// One map in float64, its shapes already checked.
struct PlainMap {
    size_t n_points = 0, n_values = 0;
    std::vector<double> weights;    // (n_points, n_search)
    std::vector<double> biases;     // (n_points)
    std::vector<double> functions;  // (n_points, n_values, n_features)
    std::vector<double> offsets;    // (n_points, n_values)
};

struct PlainModel {
    size_t n_features = 0, n_search = 0, blend = 1;
    std::vector<double> center;
    std::vector<double> projection;  // (n_features, n_search), or empty
    std::vector<PlainMap> maps;
    std::vector<int32_t> pairs;  // (n_maps, 2), or empty
};

// Round to the arithmetic of the core; what overflows there is an error, not an infinity.
template <class Real>
Real narrow(double value) {
    const Real narrowed = static_cast<Real>(value);
    if (!std::isfinite(narrowed))
        throw std::invalid_argument(
            "the arrays of a map must be finite in float32; scale the features, or ask for "
            "double=True");
    return narrowed;
}

template <class Real>
class PackedModel {
public:
    PackedModel(const PlainModel& plain, const Layout& layout) : layout_(layout) {
        round_center(plain);
        if (!plain.projection.empty()) pack_projection(plain);
        maps_.reserve(plain.maps.size());
        for (const PlainMap& map : plain.maps) pack_map(plain, map);
        fill_model(plain);
    }
    PackedModel(const PackedModel&) = delete;
    PackedModel& operator=(const PackedModel&) = delete;
    const Model<Real>& model() const { return model_; }

private:
    Real* hold(size_t n, Real value = Real()) {
        memory_.emplace_back(n, value);
        return memory_.back().get();
    }

    size_t padded(size_t n) const { return (n + layout_.lanes - 1) / layout_.lanes * layout_.lanes; }

    // The rows lose a centre rounded to Real in one exact operation; what the rounding moves the
    // rows by (`shift_`) is taken up by the biases and offsets.
    void round_center(const PlainModel& plain) {
        center_ = hold(padded(plain.n_features));
        shift_.resize(plain.n_features);
        for (size_t k = 0; k < plain.n_features; ++k) {
            center_[k] = narrow<Real>(plain.center[k]);
            shift_[k] = static_cast<double>(center_[k]) - plain.center[k];
        }
        search_shift_ = shift_;
        if (plain.projection.empty()) return;
        search_shift_.assign(plain.n_search, 0.0);
        for (size_t k = 0; k < plain.n_features; ++k)
            for (size_t j = 0; j < plain.n_search; ++j)
                search_shift_[j] += shift_[k] * plain.projection[k * plain.n_search + j];
    }

    // `at(column, term)` gives the numbers, whatever their layout.
    template <class At>
    Panels<Real> pack(size_t n_columns, size_t n_terms, const Real* biases, At at) {
        const size_t wide = (n_columns + 63) / 64 * 64;
        Real* tiles = hold(wide * n_terms);
        Real* lanes = hold(wide * n_terms);
        for (size_t i = 0; i < n_columns; ++i)
            for (size_t k = 0; k < n_terms; ++k) {
                const Real value = narrow<Real>(at(i, k));
                tiles[(i / layout_.points * n_terms + k) * layout_.points + i % layout_.points] = value;
                lanes[(i / layout_.lanes * n_terms + k) * layout_.lanes + i % layout_.lanes] = value;
            }
        return {n_columns, n_terms, tiles, lanes, biases};
    }

    void pack_projection(const PlainModel& plain) {
        const Real* zeros = hold((plain.n_search + 63) / 64 * 64);
        projection_ = pack(plain.n_search, plain.n_features, zeros, [&](size_t i, size_t k) {
            return -plain.projection[k * plain.n_search + i];
        });
    }

    void pack_map(const PlainModel& plain, const PlainMap& from) {
        Map<Real> map;
        map.points = pack(from.n_points, plain.n_search, pack_biases(plain, from),
                          [&](size_t i, size_t k) { return from.weights[i * plain.n_search + k]; });
        map.n_values = from.n_values;
        const size_t others = from.n_points > 1 ? from.n_points - 1 : 1;
        map.n_blended = plain.blend < others ? plain.blend : others;
        map.functions = pack_functions(plain, from);
        map.offsets = pack_offsets(plain, from);
        maps_.push_back(map);
    }

    const Real* pack_biases(const PlainModel& plain, const PlainMap& from) {
        Real* biases = hold((from.n_points + 63) / 64 * 64, std::numeric_limits<Real>::infinity());
        for (size_t i = 0; i < from.n_points; ++i) {
            double bias = from.biases[i];
            for (size_t k = 0; k < plain.n_search; ++k)
                bias -= search_shift_[k] * from.weights[i * plain.n_search + k];
            biases[i] = narrow<Real>(bias);
        }
        return biases;
    }

    const Real* pack_functions(const PlainModel& plain, const PlainMap& from) {
        const size_t width = padded(plain.n_features), n = from.n_points * from.n_values;
        Real* functions = hold(n * width);
        for (size_t i = 0; i < n; ++i)
            for (size_t k = 0; k < plain.n_features; ++k)
                functions[i * width + k] = -narrow<Real>(from.functions[i * plain.n_features + k]);
        return functions;
    }

    const Real* pack_offsets(const PlainModel& plain, const PlainMap& from) {
        const size_t n = from.n_points * from.n_values;
        Real* offsets = hold(n);
        for (size_t i = 0; i < n; ++i) {
            double offset = from.offsets[i];
            for (size_t k = 0; k < plain.n_features; ++k)
                offset += shift_[k] * from.functions[i * plain.n_features + k];
            offsets[i] = narrow<Real>(offset);
        }
        return offsets;
    }

    void fill_model(const PlainModel& plain) {
        model_ = {plain.n_features, padded(plain.n_features), center_,
                  plain.projection.empty() ? nullptr : &projection_, plain.n_search,
                  maps_.size(), maps_.data(), 0, 0, 0, 0, nullptr, 0};
        for (const Map<Real>& map : maps_) {
            model_.n_values += map.n_values;
            model_.most_points = std::max(model_.most_points, map.points.n_columns);
            model_.most_values = std::max(model_.most_values, map.n_values);
            model_.most_blended = std::max(model_.most_blended, map.n_blended);
        }
        pairs_ = plain.pairs;
        if (pairs_.empty()) return;
        model_.pairs = pairs_.data();
        model_.n_classes = size_t(*std::max_element(pairs_.begin(), pairs_.end())) + 1;
    }

    Layout layout_;
    std::vector<Aligned<Real>> memory_;
    Real* center_ = nullptr;
    std::vector<double> shift_, search_shift_;
    Panels<Real> projection_{};
    std::vector<Map<Real>> maps_;
    std::vector<int32_t> pairs_;
    Model<Real> model_{};
};

}  // namespace limes
