// Models and support vectors in the memory layout of a SIMD level.
#pragma once
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "types.hpp"

namespace limes {

// Arrays of a map and of a model: float64, of shapes that the caller has checked.
struct MapArrays {
    size_t n_points = 0, n_values = 0;
    std::vector<double> points;       // (n_points, n_search), as the scores use them
    std::vector<double> biases;       // (n_points)
    std::vector<double> slopes;       // (n_points, n_values, n_features)
    std::vector<double> offsets;      // (n_points, n_values)
    std::vector<double> base_slopes;  // (n_values, n_features), or empty: slopes are base_slopes
    std::vector<double>
        local_slopes;             // (n_points, n_values, n_search): + local_slopes @ projection'
    std::vector<int32_t> groups;  // (n_points): the group of each point, or empty
    std::vector<double> origin;   // (n_search): see Groups; there, bias = constant
    std::vector<double> squares;  // (n_search)    - origin . w + sum squares w^2 / 2
    double constant = 0;
};

// The curved part of a map: see Curve.
struct CurveArrays {
    size_t n_terms = 0;             // 0: none
    std::vector<double> shift;      // (n_features): subtracted from centred rows
    std::vector<int32_t> columns;   // (n_terms), or empty: a matrix
    std::vector<double> factors;    // (n_terms), or (n_features, n_terms)
    std::vector<double> constants;  // (n_values)
    std::vector<double> slopes;     // (n_values, n_terms)
    // (n_values, n_terms), or (n_values, n_terms (n_terms + 1) / 2) row by row of the upper
    // triangle, or empty
    std::vector<double> squares;
    double decay = 0;     // u = 1 / (1 + decay mean(v^2))^2
    size_t n_listed = 0;  // outputs that get squares

    size_t n_squares() const { return constants.empty() ? 0 : squares.size() / constants.size(); }
    // Call take(feature, factor) for the features of a term.
    template <class Take>
    void each_factor(size_t term, Take take) const {
        if (!columns.empty()) return take(size_t(columns[term]), factors[term]);
        for (size_t k = 0; k < shift.size(); ++k) take(k, factors[k * n_terms + term]);
    }
};

struct ModelArrays {
    size_t n_features = 0, n_search = 0, blend = 1;
    std::vector<double> center;
    std::vector<double> projection;  // (n_features, n_search), or empty
    std::vector<MapArrays> maps;
    std::vector<int32_t> pairs;  // (n_maps, 2), or empty
    CurveArrays curve;           // of a single map
};

inline double sum_of_magnitudes(const double* numbers, size_t n, size_t step = 1) {
    double sum = 0;
    for (size_t k = 0; k < n; ++k) sum += std::abs(numbers[k * step]);
    return sum;
}

// The largest factor between a number of a centred row and a score or value.
inline double largest_growth(const ModelArrays& model) {
    double search = 1, growth = 1;
    for (size_t j = 0; j < (model.projection.empty() ? 0 : model.n_search); ++j)
        search = std::max(
            search, sum_of_magnitudes(&model.projection[j], model.n_features, model.n_search));
    for (const MapArrays& map : model.maps) {
        for (size_t i = 0; i < map.n_points; ++i)
            growth = std::max(growth, search * sum_of_magnitudes(&map.points[i * model.n_search],
                                                                 model.n_search));
        for (size_t i = 0; i < map.n_points * map.n_values; ++i)
            growth = std::max(
                growth, sum_of_magnitudes(&map.slopes[i * model.n_features], model.n_features));
        for (size_t i = 0; i < map.local_slopes.size(); i += model.n_search)
            growth =
                std::max(growth, search * sum_of_magnitudes(&map.local_slopes[i], model.n_search));
        for (size_t i = 0; i < map.base_slopes.size(); i += model.n_features)
            growth = std::max(growth, sum_of_magnitudes(&map.base_slopes[i], model.n_features));
    }
    // The terms of a curved part must be finite; what is made of them stays small.
    for (size_t j = 0; j < model.curve.n_terms; ++j) {
        double sum = 0;
        model.curve.each_factor(j, [&](size_t, double factor) { sum += std::abs(factor); });
        growth = std::max(growth, sum);
    }
    return std::max(search, growth);
}

// The power of two up to which numbers of a row cannot overflow a sum: centring doubles them, then
// come the growth and the differences of scores that a blend adds up, and as much again for biases
// and offsets.
inline int find_max_exponent(const ModelArrays& model, double largest) {
    size_t max_points = 1;
    for (const MapArrays& map : model.maps) max_points = std::max(max_points, map.n_points);
    const double n_blended = double(std::min(model.blend, max_points));
    const int lowest =
        -1000;  // with numbers as large as this in the model, every row is out of range
    return std::max(lowest, std::ilogb(largest / (8 * (n_blended + 1)) / largest_growth(model)));
}

// Positions of the groups of a large map, and the error of its scores as squared distances.
struct GroupShapes {
    size_t n_groups = 0;
    std::vector<std::vector<size_t>> members;  // of each group, in the order of their index
    std::vector<double> centers, biases, radii;
    std::vector<double> origin, inverse_scale;
    double residual = 0;  // largest difference between a bias and that of the metric
    double largest = 0;   // largest magnitude in a score, apart from the row
    double longest = 0;   // longest point, scaled

    // `shift`: how far the rounding of the centre moves the rows.
    GroupShapes(const MapArrays& map, size_t n_terms, const std::vector<double>& shift)
        : origin(map.origin),
          n_terms_(n_terms) {
        for (int32_t group : map.groups) n_groups = std::max(n_groups, size_t(group) + 1);
        members.resize(n_groups);
        for (size_t i = 0; i < map.n_points; ++i) members[size_t(map.groups[i])].push_back(i);
        for (size_t k = 0; k < n_terms; ++k) {
            origin[k] += shift[k];
            inverse_scale.push_back(map.squares[k] > 0 ? 1 / std::sqrt(map.squares[k]) : 0.0);
        }
        measure_residual(map);
        centers.assign(n_groups * n_terms, 0.0);
        for (size_t g = 0; g < n_groups; ++g) place_group(map, g);
        for (size_t i = 0; i < map.n_points; ++i)
            record_magnitudes(map, &map.points[i * n_terms], map.biases[i]);
    }

private:
    double half_square(const MapArrays& map, const double* w) const {
        double sum = 0;
        for (size_t k = 0; k < n_terms_; ++k) sum += 0.5 * map.squares[k] * w[k] * w[k];
        return sum;
    }

    void measure_residual(const MapArrays& map) {
        for (size_t i = 0; i < map.n_points; ++i) {
            const double* w = &map.points[i * n_terms_];
            double bias = map.constant + half_square(map, w);
            for (size_t k = 0; k < n_terms_; ++k) bias -= map.origin[k] * w[k];
            residual = std::max(residual, std::abs(bias - map.biases[i]));
        }
    }

    void place_group(const MapArrays& map, size_t g) {
        double* center = &centers[g * n_terms_];
        for (size_t i : members[g])
            for (size_t k = 0; k < n_terms_; ++k)
                center[k] += map.points[i * n_terms_ + k] / double(members[g].size());
        double bias = map.constant + half_square(map, center), radius = 0;
        for (size_t k = 0; k < n_terms_; ++k) bias -= origin[k] * center[k];
        for (size_t i : members[g]) {
            std::vector<double> gap(n_terms_);
            for (size_t k = 0; k < n_terms_; ++k) gap[k] = map.points[i * n_terms_ + k] - center[k];
            radius = std::max(radius, std::sqrt(2 * half_square(map, gap.data())));
        }
        biases.push_back(bias);
        radii.push_back(radius * (1 + 1e-6));  // above it even when rounded to float32
        record_magnitudes(map, center, bias);
    }

    void record_magnitudes(const MapArrays& map, const double* w, double bias) {
        double moved = 0;
        for (size_t k = 0; k < n_terms_; ++k) moved += std::abs(origin[k] * w[k]);
        largest = std::max(largest, std::abs(bias) + 2 * moved + std::abs(map.constant));
        longest = std::max(longest, std::sqrt(2 * half_square(map, w)));
    }

    size_t n_terms_;
};

// Memory aligned to 64 bytes, as vectors of every SIMD level need it.
template <class Real>
class Aligned {
public:
    Aligned(size_t n, Real value) : Aligned(n) {
        for (size_t i = 0; i < n; ++i) data_.get()[i] = value;
    }
    // Not initialised: for workspaces, which are written before they are read.
    explicit Aligned(size_t n) {
        if (n > (std::numeric_limits<size_t>::max() - 64) / sizeof(Real)) throw std::bad_alloc();
        const size_t bytes = round_up(n * sizeof(Real) + 64, 64);
        data_.reset(static_cast<Real*>(::operator new(bytes, alignment)));
    }
    Real* get() const { return data_.get(); }

private:
    // Windows has no std::aligned_alloc.
    static constexpr std::align_val_t alignment{64};
    struct Free {
        void operator()(Real* data) const { ::operator delete(data, alignment); }
    };
    std::unique_ptr<Real, Free> data_;
};

// Round to the precision of the core; overflow is an error.
template <class Real>
Real to_precision(double value) {
    const Real rounded = static_cast<Real>(value);
    if (!std::isfinite(rounded))
        throw std::invalid_argument(
            "the arrays of a map must be finite in float32; scale the features, or use "
            "double=True");
    return rounded;
}

template <class Real>
class PackedModel {
public:
    PackedModel(const ModelArrays& arrays, const Layout& layout) : layout_(layout) {
        round_center(arrays);
        if (!arrays.projection.empty()) pack_projection(arrays);
        maps_.reserve(arrays.maps.size());
        for (const MapArrays& map : arrays.maps) pack_map(arrays, map);
        fill_model(arrays);
    }
    PackedModel(const PackedModel&) = delete;
    PackedModel& operator=(const PackedModel&) = delete;
    const Model<Real>& model() const { return model_; }

private:
    static constexpr Real infinity_ = std::numeric_limits<Real>::infinity();

    Real* store(size_t n, Real value = Real()) {
        memory_.emplace_back(n, value);
        return memory_.back().get();
    }

    size_t whole_vectors(size_t n) const { return round_up(n, layout_.lanes); }

    // The centre is rounded to Real, so that subtracting it is one operation; biases and offsets
    // compensate for the rounding (`shift_`).
    void round_center(const ModelArrays& arrays) {
        center_ = store(whole_vectors(arrays.n_features));
        shift_.resize(arrays.n_features);
        for (size_t k = 0; k < arrays.n_features; ++k) {
            center_[k] = to_precision<Real>(arrays.center[k]);
            shift_[k] = static_cast<double>(center_[k]) - arrays.center[k];
        }
        search_shift_ = shift_;
        if (arrays.projection.empty()) return;
        search_shift_.assign(arrays.n_search, 0.0);
        for (size_t k = 0; k < arrays.n_features; ++k)
            for (size_t j = 0; j < arrays.n_search; ++j)
                search_shift_[j] += shift_[k] * arrays.projection[k * arrays.n_search + j];
    }

    // Pack the numbers at(column, term).
    template <class At>
    Panels<Real> pack(size_t n_columns, size_t n_terms, const Real* biases, At at) {
        const size_t n_padded = round_up(n_columns, panel_padding);
        Real* tiles = store(n_padded * n_terms);
        Real* lanes = store(n_padded * n_terms);
        for (size_t i = 0; i < n_columns; ++i)
            for (size_t k = 0; k < n_terms; ++k) {
                const Real value = to_precision<Real>(at(i, k));
                tiles[(i / layout_.points * n_terms + k) * layout_.points + i % layout_.points] =
                    value;
                lanes[(i / layout_.lanes * n_terms + k) * layout_.lanes + i % layout_.lanes] =
                    value;
            }
        return {n_columns, n_terms, tiles, lanes, biases};
    }

    void pack_projection(const ModelArrays& arrays) {
        const Real* zeros = store(round_up(arrays.n_search, panel_padding));
        projection_ = pack(arrays.n_search, arrays.n_features, zeros, [&](size_t i, size_t k) {
            return -arrays.projection[k * arrays.n_search + i];
        });
    }

    void pack_map(const ModelArrays& arrays, const MapArrays& from) {
        Map<Real> map;
        map.points = pack(from.n_points, arrays.n_search, pack_biases(arrays, from),
                          [&](size_t i, size_t k) { return from.points[i * arrays.n_search + k]; });
        map.groups = from.groups.empty() ? nullptr : pack_groups(arrays, from);
        map.n_values = from.n_values;
        const size_t others = from.n_points > 1 ? from.n_points - 1 : 1;
        map.n_blended = arrays.blend < others ? arrays.blend : others;
        pack_values(arrays, from, map);
        map.curve = arrays.curve.n_terms > 0 ? pack_curve(arrays) : nullptr;
        maps_.push_back(map);
    }

    void pack_values(const ModelArrays& arrays, const MapArrays& from, Map<Real>& map) {
        map.has_base = !from.base_slopes.empty() && map.n_blended > 1;
        const size_t n_terms = map.has_base ? arrays.n_search : arrays.n_features;
        const std::vector<double>& slopes = map.has_base ? from.local_slopes : from.slopes;
        map.functions = {from.n_values, whole_vectors(n_terms),
                         pack_slopes(slopes, from.n_points * from.n_values, n_terms),
                         pack_offsets(arrays, from)};
        map.base = {from.n_values, whole_vectors(arrays.n_features), nullptr, nullptr};
        if (map.has_base) {
            map.base.slopes = pack_slopes(from.base_slopes, from.n_values, arrays.n_features);
            map.base.offsets = store(from.n_values);
        }
        // A dense blend reads its terms from the panel of the search.
        const size_t max_products =
            from.n_points <= tiny_map_points ? max_tiny_map_products : max_dense_products;
        const bool has_few = from.n_values <= max_products / (from.n_points * n_terms);
        map.is_dense = (map.has_base || arrays.projection.empty()) && map.n_blended > 1 &&
                       map.n_blended <= max_dense_blended && from.n_points <= max_dense_points &&
                       has_few;
        map.all_functions = {};
        if (map.is_dense)
            map.all_functions = pack_all_functions(slopes, map.functions.offsets, from, n_terms);
    }

    // All functions, negated, value by value, each with its points in whole blocks.
    Panels<Real> pack_all_functions(const std::vector<double>& slopes, const Real* offsets,
                                    const MapArrays& from, size_t n_terms) {
        const size_t unit = layout_.points, n = from.n_values;
        const size_t n_padded = round_up(from.n_points, unit);
        Real* biases = store(round_up(n * n_padded, panel_padding));
        for (size_t i = 0; i < from.n_points; ++i)
            for (size_t c = 0; c < n; ++c) biases[c * n_padded + i] = -offsets[i * n + c];
        return pack(n * n_padded, n_terms, biases, [&](size_t column, size_t k) {
            const size_t i = column % n_padded, c = column / n_padded;
            return i < from.n_points ? slopes[(i * n + c) * n_terms + k] : 0.0;
        });
    }

    const Real* pack_biases(const ModelArrays& arrays, const MapArrays& from) {
        Real* biases = store(round_up(from.n_points, panel_padding), infinity_);
        for (size_t i = 0; i < from.n_points; ++i) {
            double bias = from.biases[i];
            for (size_t k = 0; k < arrays.n_search; ++k)
                bias -= search_shift_[k] * from.points[i * arrays.n_search + k];
            biases[i] = to_precision<Real>(bias);
        }
        biases_of_map_ = biases;
        return biases;
    }

    const Groups<Real>* pack_groups(const ModelArrays& arrays, const MapArrays& from) {
        const GroupShapes shapes(from, arrays.n_search, search_shift_);
        Groups<Real> groups{};
        groups.n_groups = shapes.n_groups;
        groups.centers =
            pack(shapes.n_groups, arrays.n_search, store_padded(shapes.biases, infinity_),
                 [&](size_t g, size_t k) { return shapes.centers[g * arrays.n_search + k]; });
        groups.radii = store_padded(shapes.radii);
        groups.origin = store_padded(shapes.origin);
        groups.inverse_scale = store_padded(shapes.inverse_scale);
        groups.constant = to_precision<Real>(from.constant);
        const double unit = double(arrays.n_search + 8) * std::numeric_limits<Real>::epsilon();
        groups.error = to_precision<Real>(shapes.residual + unit * shapes.largest);
        groups.error_slope = to_precision<Real>(unit * shapes.longest);
        pack_members(arrays, from, shapes, groups);
        groups_.push_back(std::make_unique<Groups<Real>>(groups));
        return groups_.back().get();
    }

    // The points of each group, the lowest index first, from a new vector on.
    void pack_members(const ModelArrays& arrays, const MapArrays& from, const GroupShapes& shapes,
                      Groups<Real>& groups) {
        starts_.emplace_back(1, 0);
        std::vector<uint32_t>& starts = starts_.back();
        for (const std::vector<size_t>& members : shapes.members)
            starts.push_back(starts.back() +
                             uint32_t(whole_vectors(members.size()) / layout_.lanes));
        const size_t n = (starts.back() + 1) * layout_.lanes, n_terms = arrays.n_search;
        Real* lanes = store(n * n_terms);
        Real* biases = store(n, infinity_);
        indices_.emplace_back(n, -1);
        int32_t* indices = indices_.back().get();
        for (size_t g = 0; g < shapes.n_groups; ++g)
            for (size_t i = 0; i < shapes.members[g].size(); ++i) {
                const size_t point = shapes.members[g][i], place = starts[g] * layout_.lanes + i;
                indices[place] = int32_t(point);
                biases[place] = biases_of_map_[point];
                for (size_t k = 0; k < n_terms; ++k)
                    lanes[(place / layout_.lanes * n_terms + k) * layout_.lanes +
                          place % layout_.lanes] =
                        to_precision<Real>(from.points[point * n_terms + k]);
            }
        groups.lanes = lanes;
        groups.biases = biases;
        groups.indices = indices;
        groups.starts = starts.data();
        groups.n_vectors = starts.back();
    }

    const Real* store_padded(const std::vector<double>& numbers, Real padding = Real()) {
        Real* stored = store(round_up(numbers.size(), panel_padding), padding);
        for (size_t i = 0; i < numbers.size(); ++i) stored[i] = to_precision<Real>(numbers[i]);
        return stored;
    }

    const Real* pack_slopes(const std::vector<double>& slopes, size_t n, size_t n_terms) {
        const size_t width = whole_vectors(n_terms);
        Real* packed = store(n * width);
        for (size_t i = 0; i < n; ++i)
            for (size_t k = 0; k < n_terms; ++k)
                packed[i * width + k] = -to_precision<Real>(slopes[i * n_terms + k]);
        return packed;
    }

    const Real* pack_offsets(const ModelArrays& arrays, const MapArrays& from) {
        const size_t n = from.n_points * from.n_values;
        Real* offsets = store(n);
        for (size_t i = 0; i < n; ++i) {
            double offset = from.offsets[i];
            for (size_t k = 0; k < arrays.n_features; ++k)
                offset += shift_[k] * from.slopes[i * arrays.n_features + k];
            offsets[i] = to_precision<Real>(offset);
        }
        return offsets;
    }

    const Curve<Real>* pack_curve(const ModelArrays& arrays) {
        const CurveArrays& from = arrays.curve;
        const size_t n = from.n_terms, n_outputs = from.constants.size();
        check_curve(from);
        Curve<Real>& curve = curve_;
        curve.n_terms = n;
        curve.rate = to_precision<Real>(from.decay / double(n));
        curve.n_listed = from.squares.empty() ? n_outputs : from.n_listed;
        pack_curve_terms(arrays, curve);
        const Real* zeros = store(round_up(n_outputs, panel_padding));
        curve.plain = pack(n_outputs, n + 1, zeros, [&](size_t c, size_t k) {
            return k < n ? -from.slopes[c * n + k] : -from.constants[c];
        });
        if (from.n_squares() == n)
            curve.diagonal = pack(n_outputs, n, zeros,
                                  [&](size_t c, size_t k) { return -from.squares[c * n + k]; });
        else if (from.n_squares() > 0)
            pack_quadratic(from, curve);
        return &curve;
    }

    // From centred rows to v; the rounding of the centre moves these rows.
    void pack_curve_terms(const ModelArrays& arrays, Curve<Real>& curve) {
        const CurveArrays& from = arrays.curve;
        std::vector<double> shift(from.n_terms), scale(from.n_terms);
        for (size_t j = 0; j < from.n_terms; ++j)
            from.each_factor(j, [&](size_t k, double factor) {
                shift[j] += factor * (shift_[k] - from.shift[k]);
            });
        curve.shift = store_padded(shift);
        if (from.columns.empty()) {
            curve.matrix =
                pack(from.n_terms, arrays.n_features, curve.shift,
                     [&](size_t j, size_t k) { return -from.factors[k * from.n_terms + j]; });
            return;
        }
        for (size_t j = 0; j < from.n_terms; ++j) scale[j] = -from.factors[j];
        curve.scale = store_padded(scale);
        columns_ = from.columns;
        curve.columns = columns_.data();
    }

    // Terms i of a block or a vector side by side, each with the terms j from the first of them on.
    void pack_quadratic(const CurveArrays& from, Curve<Real>& curve) {
        const size_t n = from.n_terms, n_outputs = from.constants.size();
        const auto pack_units = [&](size_t unit, size_t& size) {
            size = 0;
            for (size_t i = 0; i < n; i += unit) size += unit * (n - i);
            Real* packed = store(n_outputs * size);
            for (size_t c = 0, place = 0; c < n_outputs; ++c)
                for (size_t first = 0; first < n; first += unit)
                    for (size_t j = first; j < n; ++j, place += unit)
                        for (size_t i = first; i <= j && i < first + unit; ++i)
                            packed[place + i - first] = to_precision<Real>(
                                from.squares[c * from.n_squares() + i * n - i * (i + 1) / 2 + j]);
            return packed;
        };
        curve.tiles = pack_units(layout_.points, curve.tile_size);
        curve.lanes = pack_units(layout_.lanes, curve.lane_size);
    }

    // Raise where the curved part could overflow: |y| is at most sqrt(n_terms / decay) / 2.
    static void check_curve(const CurveArrays& from) {
        const double n = double(from.n_terms), rate = from.decay / n;
        const double bound = std::max(1.0, 0.5 / std::sqrt(rate));
        const double largest = std::numeric_limits<Real>::max() / 8;
        for (size_t c = 0; c < from.constants.size(); ++c) {
            const double sum =
                std::abs(from.constants[c]) +
                bound * sum_of_magnitudes(from.slopes.data() + c * from.n_terms, from.n_terms) +
                bound * bound *
                    sum_of_magnitudes(from.squares.data() + c * from.n_squares(), from.n_squares());
            if (!(sum <= largest) || !(rate >= std::numeric_limits<Real>::min()))
                throw std::invalid_argument(
                    "the curved base must not overflow: its coefficients are too large, or its "
                    "decay too small");
        }
    }

    void fill_model(const ModelArrays& arrays) {
        model_ = {arrays.n_features,
                  whole_vectors(arrays.n_features),
                  center_,
                  arrays.projection.empty() ? nullptr : &projection_,
                  arrays.n_search,
                  maps_.size(),
                  maps_.data(),
                  0,
                  0,
                  0,
                  0,
                  0,
                  false,
                  0,
                  0,
                  nullptr,
                  0,
                  find_max_exponent(arrays, std::numeric_limits<Real>::max())};
        for (const Map<Real>& map : maps_) {
            model_.n_values += map.n_values;
            model_.max_points = std::max(model_.max_points, map.points.n_columns);
            model_.max_values = std::max(model_.max_values, map.n_values);
            model_.max_blended = std::max(model_.max_blended, map.n_blended);
            model_.max_all_functions =
                std::max(model_.max_all_functions, map.all_functions.n_columns);
            model_.has_bases = model_.has_bases || map.has_base;
            if (!map.groups) continue;
            model_.max_groups = std::max(model_.max_groups, map.groups->n_groups);
            model_.max_group_vectors = std::max(model_.max_group_vectors, map.groups->n_vectors);
        }
        pairs_ = arrays.pairs;
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
    std::vector<int32_t> pairs_, columns_;
    Curve<Real> curve_{};
    const Real* biases_of_map_ = nullptr;  // of the map being packed
    std::vector<std::unique_ptr<Groups<Real>>> groups_;
    std::deque<std::vector<uint32_t>> starts_;
    std::vector<Aligned<int32_t>> indices_;
    Model<Real> model_{};
};

// Vectors s_i, packed for sums of c_i exp(-gamma |x - s_i|^2).
class PackedVectors {
public:
    PackedVectors(std::vector<double> vectors, size_t n_features, double gamma,
                  const Layout& layout)
        : layout_(layout),
          gamma_(gamma),
          n_vectors_(vectors.size() / n_features),
          n_features_(n_features),
          n_padded_features_(round_up(n_features, layout.lanes)),
          n_padded_(round_up(n_vectors_, layout.points)),
          center_(n_padded_features_, 0.0),
          tiles_(n_padded_ * n_features, 0.0),
          biases_(n_padded_, -std::numeric_limits<double>::infinity()),
          features_(1) {
        for (size_t i = 0; i < n_vectors_; ++i)
            for (size_t k = 0; k < n_features_; ++k)
                center_.get()[k] += vectors[i * n_features_ + k] / double(n_vectors_);
        const size_t points = layout.points;
        for (size_t i = 0; i < n_vectors_; ++i) {
            double square = 0;
            for (size_t k = 0; k < n_features_; ++k) {
                double& value = vectors[i * n_features_ + k];
                value -= center_.get()[k];
                square += value * value;
                tiles_.get()[(i / points * n_features_ + k) * points + i % points] =
                    -2 * gamma * value;
            }
            biases_.get()[i] = -gamma * square;
        }
        features_ = pack_columns(vectors.data(), n_features_);
    }

    size_t n_vectors() const { return n_vectors_; }
    size_t n_padded() const { return n_padded_; }
    size_t n_features() const { return n_features_; }

    // Pack a matrix [vector][column] as the columns of a product over the vectors, negated.
    Aligned<double> pack_columns(const double* values, size_t n_columns) const {
        const size_t points = layout_.points;
        Aligned<double> packed(round_up(n_columns, points) * n_padded_, 0.0);
        for (size_t i = 0; i < n_vectors_; ++i)
            for (size_t c = 0; c < n_columns; ++c)
                packed.get()[(c / points * n_padded_ + i) * points + c % points] =
                    -values[i * n_columns + c];
        return packed;
    }

    // The sums of rows; `weights` are packed columns. For gradients, see SumsJob.
    SumsJob job(const Rows& rows, const Aligned<double>& weights, size_t n_outputs,
                double* sums) const {
        const Panels<double> vectors{n_vectors_, n_features_, tiles_.get(), nullptr, biases_.get()};
        return {rows,    n_features_, n_padded_features_, center_.get(), gamma_,
                vectors, n_outputs,   weights.get(),      nullptr,       features_.get(),
                sums,    nullptr};
    }

private:
    Layout layout_;
    double gamma_;
    size_t n_vectors_, n_features_, n_padded_features_, n_padded_;
    Aligned<double> center_, tiles_, biases_, features_;
};

}  // namespace limes
