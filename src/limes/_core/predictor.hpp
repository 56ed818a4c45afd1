// One row at a time, with as little around the search as can be.
#pragma once
#include <string>
#include <vector>

#include "maps.hpp"

namespace limes {

class Predictor {
public:
    // `labels` is a tuple with one label a class, or None for the numbers of the classes.
    Predictor(nb::object maps, nb::object labels)
        : owner_(maps), labels_(labels), maps_(nb::cast<const Maps&>(maps)) {
        const size_t n_classes = maps_.n_classes();
        if (labels.is_none()) return;
        if (!PyTuple_Check(labels.ptr())) throw nb::type_error("labels must be a tuple or None");
        if (nb::len(labels) < n_classes) {
            const std::string text = "labels must name " + std::to_string(n_classes) +
                                     " classes, got " + std::to_string(nb::len(labels));
            throw nb::value_error(text.c_str());
        }
    }

    nb::object call(nb::handle row) const {
        return PyObject_CheckBuffer(row.ptr()) ? call_array(row) : call_sequence(row);
    }

private:
    nb::object name(int32_t number) const {
        if (labels_.is_none()) return nb::int_(number);
        return nb::borrow(PyTuple_GetItem(labels_.ptr(), number));
    }

    nb::object call_array(nb::handle array) const {
        const View view(array, "row");
        if (view.dimensions() != 1) return call_rows(view);
        if (!view.is_float() && !view.is_double())
            view.fail_type("must be float32 or float64, got elements of format '" + view.kind() + "'");
        require_width(view.extent(0));
        return name(maps_.classify_one({static_cast<const char*>(view.data()), 1, 0, view.stride(0),
                                        view.is_double()}));
    }

    nb::object call_rows(const View& view) const {
        nb::list names;
        for (int32_t number : maps_.classify_rows(read_rows(view, maps_.n_features())))
            names.append(name(number));
        return names;
    }

    nb::object call_sequence(nb::handle sequence) const {
        PyObject* values = PySequence_Tuple(sequence.ptr());
        if (!values) {
            PyErr_Clear();
            const std::string kind = nb::type_name(sequence.type()).c_str();
            throw nb::type_error(("row must be an array or a sequence of numbers, got " + kind).c_str());
        }
        const nb::tuple items = nb::steal<nb::tuple>(values);
        require_width(items.size());
        std::vector<double> numbers(items.size());
        for (size_t k = 0; k < numbers.size(); ++k) {
            numbers[k] = PyFloat_AsDouble(PyTuple_GetItem(values, Py_ssize_t(k)));
            if (numbers[k] == -1.0 && PyErr_Occurred()) throw nb::python_error();
        }
        return name(maps_.classify_one({reinterpret_cast<const char*>(numbers.data()), 1, 0,
                                        sizeof(double), true}));
    }

    void require_width(size_t width) const {
        if (width == maps_.n_features()) return;
        const std::string text = "row must have " + std::to_string(maps_.n_features()) +
                                 " features, got " + std::to_string(width);
        throw nb::value_error(text.c_str());
    }

    nb::object owner_, labels_;
    const Maps& maps_;
};

}  // namespace limes
