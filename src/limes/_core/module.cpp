// The compiled core: what Python sees of it.
#include <nanobind/nanobind.h>

NB_MODULE(_native, m) { m.doc() = "The compiled core of limes."; }
