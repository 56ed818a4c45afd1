// The Python module `_native`.
#include <nanobind/nanobind.h>

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

}  // namespace limes

NB_MODULE(_native, m) {
    m.doc() = "The compiled core of limes.";
    m.def("cpu_paths", &limes::list_levels);
    limes::bind_maps(m);
    limes::bind_classifier(m);
    limes::bind_kernel_sums(m);
    limes::bind_trainer(m);
}
