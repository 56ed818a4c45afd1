// From Python's arrays to plain maps: every shape is checked here, once.
#pragma once
#include <string>

#include "packed.hpp"
#include "views.hpp"

namespace limes {

constexpr size_t most_points = 0x7fffffff;  // indices are int32

// (groups, origin, squares, constant): how the points of a large map are grouped. Any grouping gives
// the same answers, so long as every feature that has a weight has a scale.
inline void read_groups(nb::handle item, size_t n_search, PlainMap& map) {
    const nb::tuple parts = nb::cast<nb::tuple>(item);
    if (parts.size() != 4) throw nb::value_error("groups must be (groups, origin, squares, constant)");
    const View groups(parts[0], "groups"), origin(parts[1], "origin"), squares(parts[2], "squares");
    if (!groups.is_int32())
        groups.fail_type("must be int32, got elements of format '" + groups.kind() + "'");
    groups.require_shape({map.n_points});
    groups.require_plain();
    const int32_t* numbers = static_cast<const int32_t*>(groups.data());
    map.groups.assign(numbers, numbers + map.n_points);
    std::vector<bool> is_used(map.n_points, false);
    for (int32_t number : map.groups) {
        if (number < 0 || size_t(number) >= map.n_points) groups.fail_value("must be numbered from 0");
        is_used[size_t(number)] = true;
    }
    const size_t n_groups = size_t(*std::max_element(map.groups.begin(), map.groups.end())) + 1;
    for (size_t g = 0; g < n_groups; ++g)
        if (!is_used[g]) groups.fail_value("must all have a point");
    map.origin = read_doubles(origin, {n_search});
    map.squares = read_doubles(squares, {n_search});
    map.constant = nb::cast<double>(parts[3]);
    for (size_t i = 0; i < map.weights.size(); ++i)
        if (!(map.squares[i % n_search] > 0) && map.weights[i] != 0)
            squares.fail_value("must be above zero where a point has a weight");
}

// (base, local): functions = base + local @ projection', which is cheaper where many are blended.
inline void read_factors(nb::handle item, const PlainModel& model, PlainMap& map) {
    const nb::tuple parts = nb::cast<nb::tuple>(item);
    if (parts.size() != 2) throw nb::value_error("factors must be (base, local)");
    const View base(parts[0], "base"), local(parts[1], "local");
    map.base = read_doubles(base, {map.n_values, model.n_features});
    map.local = read_doubles(local, {map.n_points, map.n_values, model.n_search});
}

inline PlainMap read_map(nb::handle item, const PlainModel& model) {
    const nb::tuple parts = nb::cast<nb::tuple>(item);
    if (parts.size() != 6)
        throw nb::value_error("each map must be (weights, biases, functions, offsets, groups, factors)");
    const View weights(parts[0], "weights"), biases(parts[1], "biases");
    const View functions(parts[2], "functions"), offsets(parts[3], "offsets");
    if (biases.dimensions() != 1) biases.fail_value("must have one dimension, got " + biases.shape());
    if (offsets.dimensions() != 2)
        offsets.fail_value("must have two dimensions, got " + offsets.shape());
    PlainMap map;
    map.n_points = biases.extent(0);
    map.n_values = offsets.extent(1);
    if (map.n_points == 0)
        throw nb::value_error("a map must have at least one border point, got none");
    if (map.n_points > most_points)
        throw nb::value_error("a map must have fewer than 2^31 border points");
    if (map.n_values == 0 || map.n_values > most_points)
        throw nb::value_error("a map must have at least one and fewer than 2^31 linear functions");
    map.weights = read_doubles(weights, {map.n_points, model.n_search});
    map.biases = read_doubles(biases, {map.n_points});
    map.functions = read_doubles(functions, {map.n_points, map.n_values, model.n_features});
    map.offsets = read_doubles(offsets, {map.n_points, map.n_values});
    if (!parts[4].is_none()) read_groups(parts[4], model.n_search, map);
    if (!parts[5].is_none()) read_factors(parts[5], model, map);
    return map;
}

inline void read_projection(nb::handle projection, PlainModel& model) {
    const View view(projection, "projection");
    if (view.dimensions() != 2 || view.extent(1) == 0)
        view.fail_value("must have shape (n_features, n_projected), got " + view.shape());
    model.n_search = view.extent(1);
    model.projection = read_doubles(view, {model.n_features, model.n_search});
}

inline void read_pairs(nb::handle pairs, PlainModel& model) {
    const View view(pairs, "pairs");
    if (!view.is_int32()) view.fail_type("must be int32, got elements of format '" + view.kind() + "'");
    view.require_shape({model.maps.size(), 2});
    view.require_plain();
    const int32_t* numbers = static_cast<const int32_t*>(view.data());
    model.pairs.assign(numbers, numbers + 2 * model.maps.size());
    for (int32_t number : model.pairs)
        if (number < 0 || number >= 1 << 20)
            view.fail_value("must hold class numbers from 0 to 2^20 - 1, got " + std::to_string(number));
    for (const PlainMap& map : model.maps)
        if (map.n_values != 1) view.fail_value("need maps with one linear function a point");
}

inline PlainModel read_model(nb::handle center, nb::handle maps, nb::handle projection,
                             ptrdiff_t blend, nb::handle pairs) {
    PlainModel model;
    const View middle(center, "center");
    if (middle.dimensions() != 1 || middle.extent(0) == 0)
        middle.fail_value("must have one dimension and at least one feature, got " + middle.shape());
    model.n_features = model.n_search = middle.extent(0);
    model.center = read_doubles(middle, {model.n_features});
    if (!projection.is_none()) read_projection(projection, model);
    if (blend < 1)
        throw nb::value_error(("blend must be at least 1, got " + std::to_string(blend)).c_str());
    model.blend = size_t(blend);
    for (nb::handle item : maps) model.maps.push_back(read_map(item, model));
    if (model.maps.empty()) throw nb::value_error("maps must hold at least one map, got none");
    if (!pairs.is_none()) read_pairs(pairs, model);
    return model;
}

}  // namespace limes
