// The compiled core: what Python sees of it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>

#include "classifier.hpp"
#include "dispatch.hpp"
#include "fit_map.hpp"
#include "maps.hpp"
#include "predictor.hpp"
#include "rbf.hpp"

namespace nb = nanobind;

static nb::list list_paths() {
    nb::list names;
    for (const limes::Path* path : limes::usable_paths()) names.append(path->name);
    return names;
}

NB_MODULE(_native, m) {
    using namespace nb::literals;
    using limes::Classifier;
    using limes::Maps;
    using limes::Predictor;
    using limes::RbfVectors;
    m.doc() = "The compiled core of limes.";
    m.def("cpu_paths", &list_paths);
    m.def("fit_map", &limes::fit_map, "rows"_a, "targets"_a, "weights"_a,
          "anchors"_a, "components"_a.none(), "points"_a, "slopes"_a, "levels"_a, "base_slopes"_a, "base_levels"_a, "n_blended"_a,
          "radius"_a, "n_epochs"_a, "n_batch"_a, "rates"_a, "decay"_a, "seed"_a, "cpu"_a);
    nb::class_<Maps>(m, "Maps")
        .def(nb::init<nb::handle, nb::handle, nb::handle, ptrdiff_t, bool, nb::handle,
                      const std::string&>(),
             "center"_a, "maps"_a, "projection"_a.none(), "blend"_a, "double"_a, "pairs"_a.none(),
             "cpu"_a)
        .def("nearest", &Maps::nearest, "X"_a.none(), "out"_a.none(), "index"_a, "n_threads"_a)
        .def("classify", &Maps::classify, "X"_a.none(), "out"_a.none(), "n_threads"_a)
        .def("decide", &Maps::decide, "X"_a.none(), "out"_a.none(), "n_threads"_a)
        .def("decide_some", &Maps::decide_some, "X"_a.none(), "which"_a.none(), "out"_a.none(),
             "n_threads"_a)
        .def_prop_ro("n_features", &Maps::n_features)
        .def_prop_ro("n_maps", &Maps::n_maps)
        .def_prop_ro("n_values", &Maps::n_values)
        .def_prop_ro("is_double", &Maps::is_double)
        .def_prop_ro("cpu", &Maps::cpu);
    nb::class_<Classifier>(m, "Classifier")
        .def(nb::init<nb::object, const std::string&, nb::object, nb::object, nb::object,
                      nb::object>(),
             "maps"_a.none(), "rule"_a, "pairs"_a.none(), "children"_a.none(),
             "shortlist"_a.none(), "referee"_a.none())
        .def("label", &Classifier::label, "X"_a.none(), "table"_a.none(), "out"_a.none(),
             "n_threads"_a)
        .def("first_beyond", &Classifier::first_beyond, "X"_a.none())
        .def_prop_ro("n_features", &Classifier::n_features)
        .def_prop_ro("n_classes", &Classifier::n_classes)
        .def_prop_ro("range", &Classifier::range);
    nb::class_<Predictor>(m, "Predictor")
        .def(nb::init<nb::object, nb::object>(), "classifier"_a.none(), "labels"_a.none())
        .def("__call__", &Predictor::call, "row"_a.none());
    nb::class_<RbfVectors>(m, "RbfVectors")
        .def(nb::init<nb::handle, double, const std::string&>(), "vectors"_a, "gamma"_a, "cpu"_a)
        .def("sums", &RbfVectors::sums, "X"_a.none(), "weights"_a, "out"_a, "n_threads"_a)
        .def("sums_and_gradients", &RbfVectors::sums_and_gradients, "X"_a.none(), "weights"_a,
             "sums"_a, "gradients"_a, "n_threads"_a)
        .def_prop_ro("n_features", &RbfVectors::n_features);
}
