// Maps packed for one compiled path.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "core.hpp"
#include "group_shapes.hpp"
#include "plain.hpp"
#include "range.hpp"

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
        map.groups = from.groups.empty() ? nullptr : pack_groups(plain, from);
        map.n_values = from.n_values;
        const size_t others = from.n_points > 1 ? from.n_points - 1 : 1;
        map.n_blended = plain.blend < others ? plain.blend : others;
        pack_values(plain, from, map);
        maps_.push_back(map);
    }

    void pack_values(const PlainModel& plain, const PlainMap& from, Map<Real>& map) {
        map.has_base = !from.base.empty() && map.n_blended > 1;
        const size_t n_terms = map.has_base ? plain.n_search : plain.n_features;
        const std::vector<double>& slopes = map.has_base ? from.local : from.functions;
        map.functions = {from.n_values, padded(n_terms),
                         pack_slopes(slopes, from.n_points * from.n_values, n_terms),
                         pack_offsets(plain, from)};
        map.base = {from.n_values, padded(plain.n_features), nullptr, nullptr};
        if (map.has_base) {
            map.base.slopes = pack_slopes(from.base, from.n_values, plain.n_features);
            map.base.offsets = hold(from.n_values);
        }
        // The panel of a tile holds the terms of its search.
        const size_t most = from.n_points <= fewest_points ? most_dense_products : dense_products;
        const bool has_few = from.n_values <= most / (from.n_points * n_terms);
        map.is_dense = (map.has_base || plain.projection.empty()) && map.n_blended > 1 &&
                       map.n_blended <= dense_blended && from.n_points <= dense_points && has_few;
        map.every = {};
        if (map.is_dense) map.every = pack_every(slopes, map.functions.offsets, from, n_terms);
    }

    // All functions, negated, value by value, each with as many points as whole blocks hold.
    Panels<Real> pack_every(const std::vector<double>& slopes, const Real* offsets,
                            const PlainMap& from, size_t n_terms) {
        const size_t unit = layout_.points, n = from.n_values;
        const size_t n_padded = (from.n_points + unit - 1) / unit * unit;
        Real* biases = hold((n * n_padded + 63) / 64 * 64);
        for (size_t i = 0; i < from.n_points; ++i)
            for (size_t c = 0; c < n; ++c) biases[c * n_padded + i] = -offsets[i * n + c];
        return pack(n * n_padded, n_terms, biases, [&](size_t column, size_t k) {
            const size_t i = column % n_padded, c = column / n_padded;
            return i < from.n_points ? slopes[(i * n + c) * n_terms + k] : 0.0;
        });
    }

    const Real* pack_biases(const PlainModel& plain, const PlainMap& from) {
        Real* biases = hold((from.n_points + 63) / 64 * 64, std::numeric_limits<Real>::infinity());
        for (size_t i = 0; i < from.n_points; ++i) {
            double bias = from.biases[i];
            for (size_t k = 0; k < plain.n_search; ++k)
                bias -= search_shift_[k] * from.weights[i * plain.n_search + k];
            biases[i] = narrow<Real>(bias);
        }
        biases_of_map_ = biases;
        return biases;
    }

    const Groups<Real>* pack_groups(const PlainModel& plain, const PlainMap& from) {
        const GroupShapes shapes(from, plain.n_search, search_shift_);
        Groups<Real> groups{};
        groups.n_groups = shapes.n_groups;
        groups.centers = pack(shapes.n_groups, plain.n_search, hold_infinite(shapes.biases),
                              [&](size_t g, size_t k) { return shapes.centers[g * plain.n_search + k]; });
        groups.radii = hold_numbers(shapes.radii);
        groups.origin = hold_numbers(shapes.origin);
        groups.inverse_scale = hold_numbers(shapes.inverse_scale);
        groups.constant = narrow<Real>(from.constant);
        const double unit = double(plain.n_search + 8) * std::numeric_limits<Real>::epsilon();
        groups.error = narrow<Real>(shapes.residual + unit * shapes.largest);
        groups.error_slope = narrow<Real>(unit * shapes.longest);
        pack_members(plain, from, shapes, groups);
        groups_.push_back(std::make_unique<Groups<Real>>(groups));
        return groups_.back().get();
    }

    // The points of each group, the lowest index first, from a new vector on.
    void pack_members(const PlainModel& plain, const PlainMap& from, const GroupShapes& shapes,
                      Groups<Real>& groups) {
        starts_.emplace_back(1, 0);
        std::vector<uint32_t>& starts = starts_.back();
        for (const std::vector<size_t>& members : shapes.members)
            starts.push_back(starts.back() + uint32_t(padded(members.size()) / layout_.lanes));
        const size_t n = (starts.back() + 1) * layout_.lanes, n_terms = plain.n_search;
        Real* lanes = hold(n * n_terms);
        Real* biases = hold(n, std::numeric_limits<Real>::infinity());
        indices_.emplace_back(n, -1);
        int32_t* indices = indices_.back().get();
        for (size_t g = 0; g < shapes.n_groups; ++g)
            for (size_t i = 0; i < shapes.members[g].size(); ++i) {
                const size_t point = shapes.members[g][i], place = starts[g] * layout_.lanes + i;
                indices[place] = int32_t(point);
                biases[place] = biases_of_map_[point];
                for (size_t k = 0; k < n_terms; ++k)
                    lanes[(place / layout_.lanes * n_terms + k) * layout_.lanes + place % layout_.lanes] =
                        narrow<Real>(from.weights[point * n_terms + k]);
            }
        groups.lanes = lanes;
        groups.biases = biases;
        groups.indices = indices;
        groups.starts = starts.data();
        groups.n_vectors = starts.back();
    }

    const Real* hold_numbers(const std::vector<double>& numbers) {
        Real* held = hold((numbers.size() + 63) / 64 * 64);
        for (size_t i = 0; i < numbers.size(); ++i) held[i] = narrow<Real>(numbers[i]);
        return held;
    }

    const Real* hold_infinite(const std::vector<double>& numbers) {
        Real* held = hold((numbers.size() + 63) / 64 * 64, std::numeric_limits<Real>::infinity());
        for (size_t i = 0; i < numbers.size(); ++i) held[i] = narrow<Real>(numbers[i]);
        return held;
    }

    const Real* pack_slopes(const std::vector<double>& slopes, size_t n, size_t n_terms) {
        const size_t width = padded(n_terms);
        Real* packed = hold(n * width);
        for (size_t i = 0; i < n; ++i)
            for (size_t k = 0; k < n_terms; ++k)
                packed[i * width + k] = -narrow<Real>(slopes[i * n_terms + k]);
        return packed;
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
                  maps_.size(), maps_.data(), 0, 0, 0, 0, 0, false, 0, 0, nullptr, 0,
                  find_range(plain, std::numeric_limits<Real>::max())};
        for (const Map<Real>& map : maps_) {
            model_.n_values += map.n_values;
            model_.most_points = std::max(model_.most_points, map.points.n_columns);
            model_.most_values = std::max(model_.most_values, map.n_values);
            model_.most_blended = std::max(model_.most_blended, map.n_blended);
            model_.most_every = std::max(model_.most_every, map.every.n_columns);
            model_.has_bases = model_.has_bases || map.has_base;
            if (!map.groups) continue;
            model_.most_groups = std::max(model_.most_groups, map.groups->n_groups);
            model_.most_group_vectors = std::max(model_.most_group_vectors, map.groups->n_vectors);
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
    const Real* biases_of_map_ = nullptr;  // of the map being packed
    std::vector<std::unique_ptr<Groups<Real>>> groups_;
    std::deque<std::vector<uint32_t>> starts_;
    std::vector<Aligned<int32_t>> indices_;
    Model<Real> model_{};
};

}  // namespace limes
