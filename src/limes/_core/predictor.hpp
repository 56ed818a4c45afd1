// One row at a time, with as little around the search as can be.
#pragma once
#include <string>
#include <vector>

#include "classifier.hpp"

namespace limes {

class Predictor {
public:
    // `labels` is a tuple with one label a class, or None for the numbers of the classes.
    Predictor(nb::object classifier, nb::object labels)
        : owner_(classifier), labels_(labels), classifier_(as_classifier(classifier)),
          single_(classifier_), numbers_(classifier_.n_features()) {
        const nb::module_ numpy = nb::module_::import_("numpy");
        array_type_ = numpy.attr("ndarray");
        masked_type_ = numpy.attr("ma").attr("MaskedArray");
        if (labels.is_none()) return;
        if (!PyTuple_Check(labels.ptr())) throw nb::type_error("labels must be a tuple or None");
        if (nb::len(labels) < classifier_.n_classes()) {
            const std::string text = "labels must name " + std::to_string(classifier_.n_classes()) +
                                     " classes, got " + std::to_string(nb::len(labels));
            throw nb::value_error(text.c_str());
        }
    }

    nb::object call(nb::handle row) {
        return PyObject_CheckBuffer(row.ptr()) ? call_array(row) : call_sequence(row);
    }

private:
    static const Classifier& as_classifier(nb::handle object) {
        if (nb::isinstance<Classifier>(object)) return nb::cast<const Classifier&>(object);
        const std::string kind = nb::type_name(object.type()).c_str();
        throw nb::type_error(("classifier must be a Classifier of the core, got " + kind).c_str());
    }

    nb::object name(int32_t number) const {
        if (labels_.is_none()) return nb::int_(number);
        return nb::borrow(PyTuple_GetItem(labels_.ptr(), number));
    }

    nb::object call_array(nb::handle array) {
        if (!array.type().is(array_type_) && nb::isinstance(array, masked_type_))
            throw nb::type_error("row must be an array without a mask, got MaskedArray: fill what is "
                                 "masked first");
        const View view(array, "row");
        if (view.dimensions() != 1) return call_rows(view);
        if (!view.is_float() && !view.is_double())
            view.fail_type("must be float32 or float64, got elements of format '" + view.kind() + "'");
        require_width(view.extent(0));
        return name(single_.classify({static_cast<const char*>(view.data()), 1, 0, view.stride(0),
                                      view.is_double()}));
    }

    nb::object call_rows(const View& view) const {
        nb::list names;
        for (int32_t number : classifier_.classify(read_rows(view, classifier_.n_features())))
            names.append(name(number));
        return names;
    }

    // A list, a tuple or whatever has an order: a set has none, and what has keys (a dictionary, a
    // data frame) would give those.
    nb::object call_sequence(nb::handle sequence) {
        const bool is_row = PySequence_Check(sequence.ptr()) && !PyUnicode_Check(sequence.ptr()) &&
                            (!nb::hasattr(sequence, "keys") || is_series(sequence));
        PyObject* values = is_row ? PySequence_Tuple(sequence.ptr()) : nullptr;
        if (!values) {
            PyErr_Clear();
            const std::string kind = nb::type_name(sequence.type()).c_str();
            throw nb::type_error(
                ("row must be an array or a sequence of real numbers, got " + kind).c_str());
        }
        const nb::tuple items = nb::steal<nb::tuple>(values);
        require_width(items.size());
        // Read apart from what is kept: a number of one's own may run Python, and this again.
        std::vector<double> numbers = std::move(numbers_);
        numbers.resize(items.size());
        for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = read_number(items[k], k);
        const int32_t code = single_.classify(
            {reinterpret_cast<const char*>(numbers.data()), 1, 0, sizeof(double), true});
        numbers_ = std::move(numbers);
        return name(code);
    }

    // What has keys and yet gives its values in order, as one row of a data frame does.
    static bool is_series(nb::handle object) {
        return nb::hasattr(object, "ndim") && nb::object(object.attr("ndim")).equal(nb::int_(1));
    }

    static double read_number(nb::handle item, size_t place) {
        const double number = PyFloat_AsDouble(item.ptr());
        if (number != -1.0 || !PyErr_Occurred()) return number;
        const bool is_type = PyErr_ExceptionMatches(PyExc_TypeError);
        if (!is_type) throw nb::python_error();
        PyErr_Clear();
        const std::string text = "row must hold real numbers, got " +
                                 std::string(nb::type_name(item.type()).c_str()) + " at place " +
                                 std::to_string(place) + "; rows of several dimensions must be arrays";
        throw nb::type_error(text.c_str());
    }

    void require_width(size_t width) const {
        if (width == classifier_.n_features()) return;
        const std::string text = "row must have " + std::to_string(classifier_.n_features()) +
                                 " features, got " + std::to_string(width);
        throw nb::value_error(text.c_str());
    }

    nb::object owner_, labels_, array_type_, masked_type_;
    const Classifier& classifier_;
    Classifier::Single single_;
    std::vector<double> numbers_;
};

}  // namespace limes
