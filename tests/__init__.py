"""Tests, one package for each of the library's."""

import os

# One worker runs on each processor, so OpenMP and BLAS find no idle ones; threads that spin while
# they wait for one would more than double the processor time. OMP_NUM_THREADS stays as it is: the
# library obeys it too, and its own threads are tested.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
