// The Python module `_native`.
#include <nanobind/nanobind.h>

#include <cmath>

#include "array_view.hpp"
#include "simd_dispatch.hpp"

namespace nb = nanobind;

namespace limes {

void bind_maps(nb::module_& m);
void bind_classifier(nb::module_& m);
void bind_kernel_sums(nb::module_& m);
void bind_trainer(nb::module_& m);

static nb::list list_levels() {
    nb::list names;
    for (const SimdLevel* level : usable_levels()) names.append(level->name);
    return names;
}

// Replaces each x by 1 / (1 + exp(-x)). By the C library: NumPy's own exp depends on the processor.
static void apply_sigmoid(nb::handle numbers) {
    const ArrayView view(numbers, "numbers", true);
    view.require_type(view.is_double(), "an array of float64");
    if (view.dimensions() != 1 || !view.is_contiguous())
        throw std::invalid_argument("numbers must be contiguous and of one dimension.");
    double* const values = static_cast<double*>(view.data());
    const size_t n_values = view.extent(0);
    nb::gil_scoped_release release;
    for (size_t i = 0; i < n_values; ++i) values[i] = 1.0 / (1.0 + std::exp(-values[i]));
}

}  // namespace limes

NB_MODULE(_native, m) {
    m.doc() = "The compiled core of limes.";
    m.def("simd_levels", &limes::list_levels);
    m.def("apply_sigmoid", &limes::apply_sigmoid, nb::arg("numbers"));
    limes::bind_maps(m);
    limes::bind_classifier(m);
    limes::bind_kernel_sums(m);
    limes::bind_trainer(m);
}
