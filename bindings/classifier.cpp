// `Classifier`: from rows to labels; `Predictor`: one row at a time.
#include "classifier.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "array_view.hpp"
#include "exact_sums.hpp"
#include "maps.hpp"

namespace limes {
namespace {

[[noreturn]] void fail_type(const std::string& text) { throw nb::type_error(text.c_str()); }

const Maps& read_maps(nb::handle object, const char* name) {
    if (nb::isinstance<Maps>(object)) return nb::cast<const Maps&>(object);
    fail_type(std::string(name) + " must be a Maps of the core, got " +
              nb::type_name(object.type()).c_str());
}

const ExactSums& read_exact(nb::handle object) {
    if (nb::isinstance<ExactSums>(object)) return nb::cast<const ExactSums&>(object);
    fail_type(std::string("exact must be an ExactSums of the core, got ") +
              nb::type_name(object.type()).c_str());
}

// (max_classes, logit_margin, pair_weight): see Rule.
void read_shortlist(nb::handle shortlist, Rule& rule) {
    if (!PyTuple_Check(shortlist.ptr()) || nb::len(shortlist) != 3)
        fail_type("shortlist must be a tuple (max_classes, logit_margin, pair_weight)");
    const nb::tuple parts = nb::borrow<nb::tuple>(shortlist);
    ptrdiff_t max_selected = 0;
    if (!nb::try_cast(parts[0], max_selected) || !nb::try_cast(parts[1], rule.logit_margin) ||
        !nb::try_cast(parts[2], rule.pair_weight))
        fail_type("a shortlist must be an integer and two numbers, got " +
                  std::string(nb::repr(shortlist).c_str()));
    rule.max_selected = max_selected < 0 ? 0 : size_t(max_selected);
}

Rule read_rule(const std::string& name, const Maps& maps, bool has_pairs, nb::handle children,
               nb::handle shortlist) {
    Rule rule;
    rule.by_vote = name == "shortlist";
    if (name == "own") {
        rule.kind = Rule::Kind::direct;
    } else if (name == "highest") {
        rule.kind = Rule::Kind::highest;
    } else if (name == "coupled") {
        rule.kind = Rule::Kind::coupled;
    } else if (name == "descend") {
        rule.kind = Rule::Kind::tree;
        const int32_t* numbers = read_int32(ArrayView(children, "children"), {maps.n_maps(), 2});
        rule.children.assign(numbers, numbers + 2 * maps.n_maps());
    } else if (name == "shortlist" || name == "coupled shortlist") {
        rule.kind = Rule::Kind::shortlist;
        read_shortlist(shortlist, rule);
        if (!has_pairs) fail_type("a shortlist needs the maps of pairs");
    } else {
        throw std::invalid_argument(
            "rule must be one of 'own', 'highest', 'coupled', 'descend', "
            "'shortlist', 'coupled shortlist', got '" +
            name + "'");
    }
    return rule;
}

// A Python function as a tie breaker, for any thread. No thread could raise its errors: a function
// that fails returns no class (-1).
TieBreaker wrap_tie_breaker(nb::handle function) {
    if (function.is_none()) return {};
    return [function](const std::vector<double>& values) {
        const nb::gil_scoped_acquire acquire;
        try {
            nb::list numbers;
            for (double value : values) numbers.append(value);
            return nb::cast<int32_t>(function(numbers));
        } catch (const std::exception&) {
            return int32_t(-1);
        }
    };
}

// The core's classifier with the Python objects that it refers to.
class BoundClassifier {
public:
    BoundClassifier(nb::object maps, const std::string& rule, nb::object pairs, nb::object children,
                    nb::object shortlist, nb::object tie_breaker, nb::object exact,
                    double fallback_margin)
        : maps_(maps),
          pairs_(pairs),
          tie_breaker_(tie_breaker),
          exact_(exact),
          classifier_(exact.is_none() ? make(maps, rule, pairs, children, shortlist, tie_breaker)
                                      : make_exact(maps, rule, exact, fallback_margin)) {}

    const Classifier& get() const { return classifier_; }
    size_t n_classes() const { return classifier_.n_classes(); }
    size_t n_features() const { return classifier_.n_features(); }
    int max_exponent() const { return classifier_.max_exponent(); }

    // `table` and `out` are arrays of bytes, one label per line.
    ptrdiff_t label(nb::handle X, nb::handle table, nb::handle out, ptrdiff_t n_threads) const {
        const ArrayView rows(X, "X"), labels(table, "table"), place(out, "out", true);
        if (rows.is_small_integer())
            return label_rows(read_integer_rows(rows, n_features()), labels, place, n_threads);
        return label_rows(read_rows(rows, n_features()), labels, place, n_threads);
    }

    // `out` is a float64 array of shape (n_rows, n_classes).
    ptrdiff_t probabilities(nb::handle X, nb::handle out, ptrdiff_t n_threads) const {
        const ArrayView rows(X, "X"), place(out, "out", true);
        const Rows read = read_rows(rows, n_features());
        const size_t count = read_threads(n_threads);
        place.require_type(place.is_double(), "float64");
        place.require_shape({read.count, n_classes()});
        place.require_contiguous();
        double* to = static_cast<double*>(place.data());
        const nb::gil_scoped_release release;
        return classifier_.probabilities(read, to, count);
    }

    bool has_probabilities() const { return classifier_.has_probabilities(); }

    ptrdiff_t first_out_of_range(nb::handle X) const {
        const ArrayView view(X, "X");
        const Rows rows = read_rows(view, n_features());
        const nb::gil_scoped_release release;
        return classifier_.first_out_of_range(rows);
    }

private:
    template <class AnyRows>
    ptrdiff_t label_rows(const AnyRows& rows, const ArrayView& labels, const ArrayView& place,
                         ptrdiff_t n_threads) const {
        const size_t count = read_threads(n_threads);
        if (labels.item_size() != 1 || labels.dimensions() != 2)
            labels.fail_type("must be bytes of shape (n_classes, size), got elements of format '" +
                             labels.format() + "' of shape " + labels.shape());
        place.require_type(place.item_size() == 1, "bytes");
        const size_t size = labels.extent(1);
        labels.require_shape({n_classes(), size});
        labels.require_contiguous();
        place.require_shape({rows.count, size});
        place.require_contiguous();
        // A copy of the labels: the caller's may change while the threads run.
        const char* from = static_cast<const char*>(labels.data());
        const std::vector<char> copied(from, from + n_classes() * size);
        char* to = static_cast<char*>(place.data());
        const nb::gil_scoped_release release;
        return classifier_.label(rows, copied.data(), size, to, count);
    }

    static Classifier make(nb::handle maps, const std::string& rule, nb::handle pairs,
                           nb::handle children, nb::handle shortlist, nb::handle tie_breaker) {
        const Maps& first = read_maps(maps, "maps");
        const Maps* second = pairs.is_none() ? nullptr : &read_maps(pairs, "pairs");
        return Classifier(first, second,
                          read_rule(rule, first, second != nullptr, children, shortlist),
                          wrap_tie_breaker(tie_breaker));
    }

    // By exact sums, or by a map that leaves ambiguous rows to them.
    static Classifier make_exact(nb::handle maps, const std::string& rule, nb::handle exact,
                                 double fallback_margin) {
        if (maps.is_none()) return Classifier(read_exact(exact));
        if (rule != "own")
            throw std::invalid_argument("exact is for the rule 'own', got '" + rule + "'");
        return Classifier(read_maps(maps, "maps"), read_exact(exact), fallback_margin);
    }

    nb::object maps_, pairs_, tie_breaker_, exact_;
    Classifier classifier_;
};

// Classifies one row at a time, with as little overhead as possible.
class Predictor {
public:
    // `labels` is a tuple with one label per class, or None for class indices.
    Predictor(nb::object classifier, nb::object labels)
        : owner_(classifier),
          labels_(labels),
          classifier_(read_classifier(classifier)),
          single_row_(classifier_),
          numbers_(classifier_.n_features()) {
        const nb::module_ numpy = nb::module_::import_("numpy");
        array_type_ = numpy.attr("ndarray");
        masked_type_ = numpy.attr("ma").attr("MaskedArray");
        if (labels.is_none()) return;
        if (!PyTuple_Check(labels.ptr())) fail_type("labels must be a tuple or None");
        if (nb::len(labels) < classifier_.n_classes())
            throw std::invalid_argument("labels must name " +
                                        std::to_string(classifier_.n_classes()) + " classes, got " +
                                        std::to_string(nb::len(labels)));
    }

    nb::object call(nb::handle row) {
        return PyObject_CheckBuffer(row.ptr()) ? call_array(row) : call_sequence(row);
    }

private:
    static const Classifier& read_classifier(nb::handle object) {
        if (nb::isinstance<BoundClassifier>(object))
            return nb::cast<const BoundClassifier&>(object).get();
        fail_type(std::string("classifier must be a Classifier of the core, got ") +
                  nb::type_name(object.type()).c_str());
    }

    nb::object label_of(int32_t class_index) const {
        if (labels_.is_none()) return nb::int_(class_index);
        return nb::borrow(PyTuple_GetItem(labels_.ptr(), class_index));
    }

    nb::object call_array(nb::handle array) {
        if (!array.type().is(array_type_) && nb::isinstance(array, masked_type_))
            fail_type("row must be an array without a mask, got MaskedArray: fill it first");
        const ArrayView view(array, "row");
        if (view.dimensions() != 1) return call_rows(view);
        view.require_type(view.is_float() || view.is_double(), "float32 or float64");
        require_width(view.extent(0));
        return label_of(single_row_.classify(
            {static_cast<const char*>(view.data()), 1, 0, view.stride(0), view.is_double()}));
    }

    nb::object call_rows(const ArrayView& view) const {
        const Rows rows = read_rows(view, classifier_.n_features());
        nb::list labels;
        for (int32_t class_index : classify(rows)) labels.append(label_of(class_index));
        return labels;
    }

    std::vector<int32_t> classify(const Rows& rows) const {
        const nb::gil_scoped_release release;
        return classifier_.classify(rows);
    }

    // A list, tuple or other ordered sequence; not a set, and not an object with keys (a
    // dictionary, a data frame), whose iteration gives the keys.
    nb::object call_sequence(nb::handle sequence) {
        const bool is_row = PySequence_Check(sequence.ptr()) && !PyUnicode_Check(sequence.ptr()) &&
                            (!nb::hasattr(sequence, "keys") || is_series(sequence));
        PyObject* values = is_row ? PySequence_Tuple(sequence.ptr()) : nullptr;
        if (!values) {
            PyErr_Clear();
            fail_type(std::string("row must be an array or a sequence of real numbers, got ") +
                      nb::type_name(sequence.type()).c_str());
        }
        const nb::tuple items = nb::steal<nb::tuple>(values);
        require_width(items.size());
        // Moved out while it is filled: converting a number may run Python code that calls this
        // predictor again.
        std::vector<double> numbers = std::move(numbers_);
        numbers.resize(items.size());
        for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = read_number(items[k], k);
        const int32_t class_index = single_row_.classify(
            {reinterpret_cast<const char*>(numbers.data()), 1, 0, sizeof(double), true});
        numbers_ = std::move(numbers);
        return label_of(class_index);
    }

    // One row of a data frame: it has keys, but its iteration gives the values.
    static bool is_series(nb::handle object) {
        return nb::hasattr(object, "ndim") && nb::object(object.attr("ndim")).equal(nb::int_(1));
    }

    static double read_number(nb::handle item, size_t place) {
        const double number = PyFloat_AsDouble(item.ptr());
        if (number != -1.0 || !PyErr_Occurred()) return number;
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
        PyErr_Clear();
        fail_type("row must hold real numbers, got " +
                  std::string(nb::type_name(item.type()).c_str()) + " at place " +
                  std::to_string(place) + "; rows of several dimensions must be arrays");
    }

    void require_width(size_t width) const {
        if (width == classifier_.n_features()) return;
        throw std::invalid_argument("row must have " + std::to_string(classifier_.n_features()) +
                                    " features, got " + std::to_string(width));
    }

    nb::object owner_, labels_, array_type_, masked_type_;
    const Classifier& classifier_;
    SingleRowClassifier single_row_;
    std::vector<double> numbers_;
};

}  // namespace

void bind_classifier(nb::module_& m) {
    using namespace nb::literals;
    nb::class_<BoundClassifier>(m, "Classifier")
        .def(nb::init<nb::object, const std::string&, nb::object, nb::object, nb::object,
                      nb::object, nb::object, double>(),
             "maps"_a.none(), "rule"_a, "pairs"_a.none(), "children"_a.none(), "shortlist"_a.none(),
             "tie_breaker"_a.none(), "exact"_a.none() = nb::none(), "fallback_margin"_a = 0.0)
        .def("label", &BoundClassifier::label, "X"_a.none(), "table"_a.none(), "out"_a.none(),
             "n_threads"_a)
        .def("probabilities", &BoundClassifier::probabilities, "X"_a.none(), "out"_a.none(),
             "n_threads"_a)
        .def("first_out_of_range", &BoundClassifier::first_out_of_range, "X"_a.none())
        .def_prop_ro("n_features", &BoundClassifier::n_features)
        .def_prop_ro("n_classes", &BoundClassifier::n_classes)
        .def_prop_ro("has_probabilities", &BoundClassifier::has_probabilities)
        .def_prop_ro("max_exponent", &BoundClassifier::max_exponent);
    nb::class_<Predictor>(m, "Predictor")
        .def(nb::init<nb::object, nb::object>(), "classifier"_a.none(), "labels"_a.none())
        .def("__call__", &Predictor::call, "row"_a.none());
}

}  // namespace limes
