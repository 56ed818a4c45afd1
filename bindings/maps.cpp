// `Maps`: the arrays of a model, checked and packed.
#include "maps.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "array_view.hpp"
#include "simd_dispatch.hpp"

namespace limes {
namespace {

constexpr size_t max_count = 0x7fffffff;  // indices are int32

void require(bool is_right, const std::string& text) {
    if (!is_right) throw std::invalid_argument(text);
}

// (groups, origin, squares, constant): the group of each point of a large map, and its metric. Any
// grouping gives the same results, if every feature in which points differ from zero has a scale.
void read_groups(nb::handle item, size_t n_search, MapArrays& map) {
    const nb::tuple parts = nb::cast<nb::tuple>(item);
    require(parts.size() == 4, "groups must be (groups, origin, squares, constant)");
    const ArrayView groups(parts[0], "groups"), origin(parts[1], "origin");
    const ArrayView squares(parts[2], "squares");
    const int32_t* numbers = read_int32(groups, {map.n_points});
    map.groups.assign(numbers, numbers + map.n_points);
    std::vector<bool> is_used(map.n_points, false);
    for (int32_t number : map.groups) {
        if (number < 0 || size_t(number) >= map.n_points)
            groups.fail_value("must be numbered from 0");
        is_used[size_t(number)] = true;
    }
    const size_t n_groups = size_t(*std::max_element(map.groups.begin(), map.groups.end())) + 1;
    for (size_t g = 0; g < n_groups; ++g)
        if (!is_used[g]) groups.fail_value("must all have a point");
    map.origin = read_doubles(origin, {n_search});
    map.squares = read_doubles(squares, {n_search});
    map.constant = nb::cast<double>(parts[3]);
    for (size_t i = 0; i < map.points.size(); ++i)
        if (!(map.squares[i % n_search] > 0) && map.points[i] != 0)
            squares.fail_value("must be above zero where a point is not zero");
}

// (base, local): slopes = base + local @ projection', which is cheaper if many are blended.
void read_factors(nb::handle item, const ModelArrays& model, MapArrays& map) {
    const nb::tuple parts = nb::cast<nb::tuple>(item);
    require(parts.size() == 2, "factors must be (base, local)");
    const ArrayView base(parts[0], "base"), local(parts[1], "local");
    map.base_slopes = read_doubles(base, {map.n_values, model.n_features});
    map.local_slopes = read_doubles(local, {map.n_points, map.n_values, model.n_search});
}

MapArrays read_map(nb::handle item, const ModelArrays& model) {
    const nb::tuple parts = nb::cast<nb::tuple>(item);
    require(parts.size() == 6,
            "each map must be (points, biases, slopes, offsets, groups, factors)");
    const ArrayView points(parts[0], "points"), biases(parts[1], "biases");
    const ArrayView slopes(parts[2], "slopes"), offsets(parts[3], "offsets");
    if (biases.dimensions() != 1)
        biases.fail_value("must have one dimension, got " + biases.shape());
    if (offsets.dimensions() != 2)
        offsets.fail_value("must have two dimensions, got " + offsets.shape());
    MapArrays map;
    map.n_points = biases.extent(0);
    map.n_values = offsets.extent(1);
    require(map.n_points > 0, "a map must have at least one border point, got none");
    require(map.n_points <= max_count, "a map must have fewer than 2^31 border points");
    require(map.n_values > 0 && map.n_values <= max_count,
            "a map must have at least one and fewer than 2^31 linear functions");
    map.points = read_doubles(points, {map.n_points, model.n_search});
    map.biases = read_doubles(biases, {map.n_points});
    map.slopes = read_doubles(slopes, {map.n_points, map.n_values, model.n_features});
    map.offsets = read_doubles(offsets, {map.n_points, map.n_values});
    if (!parts[4].is_none()) read_groups(parts[4], model.n_search, map);
    if (!parts[5].is_none()) read_factors(parts[5], model, map);
    return map;
}

void read_projection(nb::handle projection, ModelArrays& model) {
    const ArrayView view(projection, "projection");
    if (view.dimensions() != 2 || view.extent(1) == 0)
        view.fail_value("must have shape (n_features, n_projected), got " + view.shape());
    model.n_search = view.extent(1);
    model.projection = read_doubles(view, {model.n_features, model.n_search});
}

void read_pairs(nb::handle pairs, ModelArrays& model) {
    const ArrayView view(pairs, "pairs");
    const int32_t* numbers = read_int32(view, {model.maps.size(), 2});
    model.pairs.assign(numbers, numbers + 2 * model.maps.size());
    for (int32_t number : model.pairs)
        if (number < 0 || number >= 1 << 20)
            view.fail_value("must hold class numbers from 0 to 2^20 - 1, got " +
                            std::to_string(number));
    for (const MapArrays& map : model.maps)
        if (map.n_values != 1) view.fail_value("need maps with one linear function per point");
}

// (shift, columns, factors, constants, slopes, squares, decay, n_listed): the curved part of a
// single map, with t = x - center: v = (t - shift)[columns] * factors, or (t - shift) @ factors.
CurveArrays read_curve(nb::handle item, const ModelArrays& model) {
    const nb::tuple parts = nb::cast<nb::tuple>(item);
    require(parts.size() == 8,
            "curve must be (shift, columns, factors, constants, slopes, squares, decay, n_listed)");
    require(model.maps.size() == 1, "only a single map may have a curve, got " +
                                        std::to_string(model.maps.size()) + " maps");
    const ArrayView shift(parts[0], "shift"), factors(parts[2], "factors");
    const ArrayView constants(parts[3], "constants"), slopes(parts[4], "slopes");
    const size_t n_values = model.maps[0].n_values;
    if (slopes.dimensions() != 2 || slopes.extent(1) == 0)
        slopes.fail_value("must have shape (n_outputs, n_terms), got " + slopes.shape());
    CurveArrays curve;
    const size_t n = curve.n_terms = slopes.extent(1);
    require(n < size_t(1) << 24, "a curve must have fewer than 2^24 terms");
    curve.shift = read_doubles(shift, {model.n_features});
    if (!parts[1].is_none()) {
        const ArrayView columns(parts[1], "columns");
        const int32_t* numbers = read_int32(columns, {n});
        curve.columns.assign(numbers, numbers + n);
        for (int32_t number : curve.columns)
            if (number < 0 || size_t(number) >= model.n_features)
                columns.fail_value("must be numbers of features, got " + std::to_string(number));
        curve.factors = read_doubles(factors, {n});
    } else {
        curve.factors = read_doubles(factors, {model.n_features, n});
    }
    curve.constants = read_doubles(constants, {n_values});
    curve.slopes = read_doubles(slopes, {n_values, n});
    if (!parts[5].is_none()) {
        const ArrayView squares(parts[5], "squares");
        const bool is_diagonal = squares.dimensions() == 2 && squares.extent(1) == n;
        curve.squares = read_doubles(squares, {n_values, is_diagonal ? n : n * (n + 1) / 2});
    }
    curve.decay = nb::cast<double>(parts[6]);
    require(curve.decay > 0, "decay must be above zero, got " + std::to_string(curve.decay));
    const ptrdiff_t n_listed = nb::cast<ptrdiff_t>(parts[7]);
    require(n_listed >= 1 && size_t(n_listed) <= n_values,
            "n_listed must be from 1 to the number of outputs, got " + std::to_string(n_listed));
    curve.n_listed = size_t(n_listed);
    return curve;
}

ModelArrays read_model(nb::handle center, nb::handle maps, nb::handle projection, ptrdiff_t blend,
                       nb::handle pairs, nb::handle curve) {
    ModelArrays model;
    const ArrayView view(center, "center");
    if (view.dimensions() != 1 || view.extent(0) == 0)
        view.fail_value("must have one dimension and at least one feature, got " + view.shape());
    model.n_features = model.n_search = view.extent(0);
    model.center = read_doubles(view, {model.n_features});
    if (!projection.is_none()) read_projection(projection, model);
    require(blend >= 1, "blend must be at least 1, got " + std::to_string(blend));
    model.blend = size_t(blend);
    for (nb::handle item : maps) model.maps.push_back(read_map(item, model));
    require(!model.maps.empty(), "maps must hold at least one map, got none");
    if (!pairs.is_none()) read_pairs(pairs, model);
    if (!curve.is_none()) model.curve = read_curve(curve, model);
    return model;
}

void make_maps(Maps* place, nb::handle center, nb::handle maps, nb::handle projection,
               ptrdiff_t blend, bool is_double, nb::handle pairs, nb::handle curve,
               const std::string& level_name) {
    const SimdLevel& level = choose_level(level_name);
    new (place) Maps(read_model(center, maps, projection, blend, pairs, curve), is_double, level);
}

void find_nearest(const Maps& maps, nb::handle X, nb::handle out, ptrdiff_t index,
                  ptrdiff_t n_threads) {
    require(index >= 0 && size_t(index) < maps.n_maps(),
            "index must be the number of a map, from 0 to " + std::to_string(maps.n_maps() - 1) +
                ", got " + std::to_string(index));
    const size_t count = read_threads(n_threads);
    const ArrayView rows(X, "X"), indices(out, "out", true);
    const Rows read = read_rows(rows, maps.n_features());
    read_int32(indices, {read.count});
    int32_t* to = static_cast<int32_t*>(indices.data());
    const nb::gil_scoped_release release;
    maps.visit([&](const auto& packed) { packed.nearest(read, size_t(index), to, count); });
}

void check_values(const Maps& maps, const ArrayView& values, const std::vector<size_t>& shape) {
    values.require_type(maps.is_double() ? values.is_double() : values.is_float(),
                        maps.is_double() ? "float64" : "float32");
    values.require_shape(shape);
    values.require_contiguous();
}

void decide(const Maps& maps, nb::handle X, nb::handle out, ptrdiff_t n_threads) {
    const ArrayView rows(X, "X"), values(out, "out", true);
    const Rows read = read_rows(rows, maps.n_features());
    check_values(maps, values, {read.count, maps.n_values()});
    const size_t count = read_threads(n_threads);
    const nb::gil_scoped_release release;
    maps.visit([&](const auto& packed) {
        using Real = typename std::decay_t<decltype(packed)>::Real;
        packed.decide(read, static_cast<Real*>(values.data()), count);
    });
}

// Numbers of maps, [row][n_selected].
const int32_t* read_map_numbers(const Maps& maps, const ArrayView& view, size_t n_rows) {
    view.require_type(view.is_int32(), "int32");
    if (view.dimensions() != 2 || view.extent(0) != n_rows)
        view.fail_value("must have shape (" + std::to_string(n_rows) + ", n_selected), got " +
                        view.shape());
    view.require_contiguous();
    const int32_t* numbers = static_cast<const int32_t*>(view.data());
    for (size_t i = 0; i < n_rows * view.extent(1); ++i)
        if (numbers[i] < -1 || ptrdiff_t(numbers[i]) >= ptrdiff_t(maps.n_maps()))
            view.fail_value("must hold map numbers from 0 to " + std::to_string(maps.n_maps() - 1) +
                            ", or -1 for none, got " + std::to_string(numbers[i]));
    return numbers;
}

void decide_selected(const Maps& maps, nb::handle X, nb::handle map_numbers, nb::handle out,
                     ptrdiff_t n_threads) {
    const ArrayView rows(X, "X"), numbers(map_numbers, "map_numbers"), values(out, "out", true);
    const Rows read = read_rows(rows, maps.n_features());
    const int32_t* selected = read_map_numbers(maps, numbers, read.count);
    const size_t n_selected = numbers.extent(1), count = read_threads(n_threads);
    check_values(maps, values, {read.count, n_selected, maps.common_values()});
    const nb::gil_scoped_release release;
    maps.visit([&](const auto& packed) {
        using Real = typename std::decay_t<decltype(packed)>::Real;
        packed.decide_selected(read, selected, n_selected, static_cast<Real*>(values.data()),
                               count);
    });
}

}  // namespace

void bind_maps(nb::module_& m) {
    using namespace nb::literals;
    nb::class_<Maps>(m, "Maps")
        .def("__init__", &make_maps, "center"_a, "maps"_a, "projection"_a.none(), "blend"_a,
             "double"_a, "pairs"_a.none(), "curve"_a.none(), "level"_a)
        .def("nearest", &find_nearest, "X"_a.none(), "out"_a.none(), "index"_a, "n_threads"_a)
        .def("decide", &decide, "X"_a.none(), "out"_a.none(), "n_threads"_a)
        .def("decide_selected", &decide_selected, "X"_a.none(), "map_numbers"_a.none(),
             "out"_a.none(), "n_threads"_a)
        .def_prop_ro("n_features", &Maps::n_features)
        .def_prop_ro("n_maps", &Maps::n_maps)
        .def_prop_ro("n_values", &Maps::n_values)
        .def_prop_ro("is_double", &Maps::is_double)
        .def_prop_ro("level", [](const Maps& maps) { return maps.level().name; });
}

}  // namespace limes
