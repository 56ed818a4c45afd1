// Arrays of the caller through Python's buffer protocol: checked, not copied.
#pragma once
#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "types.hpp"

namespace limes {

namespace nb = nanobind;

class ArrayView {
public:
    ArrayView(nb::handle object, const char* name, bool is_writable = false) : name_(name) {
        const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (is_writable ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) {
            const std::string wanted = is_writable ? "a writable array" : "an array of numbers";
            const std::string got = nb::type_name(object.type()).c_str();
            fail_type("must be " + wanted + ", got " + got + take_reason());
        }
    }
    ~ArrayView() { PyBuffer_Release(&buffer_); }
    ArrayView(const ArrayView&) = delete;
    ArrayView& operator=(const ArrayView&) = delete;

    size_t dimensions() const { return size_t(buffer_.ndim); }
    size_t extent(size_t axis) const { return size_t(buffer_.shape[axis]); }
    // Some exporters, such as ctypes, leave out the strides of contiguous arrays.
    ptrdiff_t stride(size_t axis) const {
        if (buffer_.strides) return buffer_.strides[axis];
        ptrdiff_t step = buffer_.itemsize;
        for (size_t i = dimensions(); --i > axis;) step *= buffer_.shape[i];
        return step;
    }
    void* data() const { return buffer_.buf; }
    size_t item_size() const { return size_t(buffer_.itemsize); }
    const char* name() const { return name_; }

    // The type code of elements in native byte order, 0 for any other.
    char type_code() const {
        const char* format = buffer_.format ? buffer_.format : "B";
        if (*format == '@' || *format == '=' || *format == native_order) ++format;
        return format[0] != '\0' && format[1] == '\0' ? format[0] : '\0';
    }
    bool is_float() const { return type_code() == 'f' && buffer_.itemsize == 4; }
    bool is_double() const { return type_code() == 'd' && buffer_.itemsize == 8; }
    bool is_small_integer() const { return integer_size() == buffer_.itemsize; }
    IntegerType integer_type() const {
        return type_code() == 'B' ? IntegerType::uint8
                                  : type_code() == 'h' ? IntegerType::int16 : IntegerType::uint16;
    }
    bool is_int32() const {
        return (type_code() == 'i' || type_code() == 'l') && buffer_.itemsize == 4;
    }
    void require_type(bool is_right, const char* wanted) const {
        if (!is_right)
            fail_type(std::string("must be ") + wanted + ", got elements of format '" + format() +
                      "'");
    }
    std::string format() const { return buffer_.format ? buffer_.format : "bytes"; }

    std::string shape() const {
        std::string text = "(";
        for (size_t i = 0; i < dimensions(); ++i)
            text += (i ? ", " : "") + std::to_string(extent(i));
        return text + (dimensions() == 1 ? ",)" : ")");
    }

    void require_shape(const std::vector<size_t>& wanted) const {
        bool is_right = dimensions() == wanted.size();
        std::string text = "(";
        for (size_t i = 0; i < wanted.size(); ++i) {
            is_right = is_right && extent(i) == wanted[i];
            text += (i ? ", " : "") + std::to_string(wanted[i]);
        }
        text += wanted.size() == 1 ? ",)" : ")";
        if (!is_right) fail_value("must have shape " + text + ", got " + shape());
    }

    // Whether the array is aligned and C-contiguous.
    bool is_contiguous() const {
        ptrdiff_t step = buffer_.itemsize;
        for (size_t i = dimensions(); i-- > 0;) {
            if (extent(i) == 0) return true;
            if (extent(i) > 1 && stride(i) != step) return false;
            step *= ptrdiff_t(extent(i));
        }
        return reinterpret_cast<uintptr_t>(data()) % size_t(buffer_.itemsize) == 0;
    }
    void require_contiguous() const {
        if (!is_contiguous())
            fail_value("must be aligned and C-contiguous; use numpy.ascontiguousarray");
    }

    [[noreturn]] void fail_type(const std::string& text) const {
        throw nb::type_error((std::string(name_) + " " + text).c_str());
    }
    [[noreturn]] void fail_value(const std::string& text) const {
        throw std::invalid_argument(std::string(name_) + " " + text);
    }

private:
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    static constexpr char native_order = '>';
#else
    static constexpr char native_order = '<';
#endif
    ptrdiff_t integer_size() const {
        const char code = type_code();
        return code == 'B' ? 1 : code == 'h' || code == 'H' ? 2 : 0;
    }
    // Python's reason for refusing the buffer of an object that has one.
    static std::string take_reason() {
        const nb::python_error error;
        if (error.matches(PyExc_TypeError)) return "";
        return std::string(" (") + nb::str(error.value()).c_str() + ")";
    }

    const char* name_;
    Py_buffer buffer_{};
};

// Copy a float64 array of known shape.
inline std::vector<double> read_doubles(const ArrayView& view, const std::vector<size_t>& shape) {
    view.require_type(view.is_double(), "float64");
    view.require_shape(shape);
    view.require_contiguous();
    size_t n = 1;
    for (size_t extent : shape) n *= extent;
    const double* data = static_cast<const double*>(view.data());
    return n ? std::vector<double>(data, data + n) : std::vector<double>();
}

// The elements of an int32 array of known shape.
inline const int32_t* read_int32(const ArrayView& view, const std::vector<size_t>& shape) {
    view.require_type(view.is_int32(), "int32");
    view.require_shape(shape);
    view.require_contiguous();
    return static_cast<const int32_t*>(view.data());
}

inline void require_features(const ArrayView& view, size_t n_features) {
    if (view.dimensions() != 2 || view.extent(1) != n_features)
        view.fail_value("must have shape (n_rows, " + std::to_string(n_features) + "), got " +
                        view.shape());
}

// Rows with the right number of features.
inline Rows read_rows(const ArrayView& view, size_t n_features) {
    if (!view.is_float() && !view.is_double())
        view.fail_type("must be float32 or float64 in native byte order, got elements of format '" +
                       view.format() + "'; use X.astype(numpy.float32)");
    require_features(view, n_features);
    return {static_cast<const char*>(view.data()), view.extent(0), view.stride(0), view.stride(1),
            view.is_double()};
}

inline IntegerRows read_integer_rows(const ArrayView& view, size_t n_features) {
    require_features(view, n_features);
    return {static_cast<const char*>(view.data()), view.extent(0), view.stride(0), view.stride(1),
            view.integer_type()};
}

// A number of threads.
inline size_t read_threads(ptrdiff_t n_threads) {
    if (n_threads >= 1) return size_t(n_threads);
    throw std::invalid_argument("n_threads must be at least 1, got " + std::to_string(n_threads) +
                                "; limes._core.thread_count converts an n_jobs");
}

}  // namespace limes
