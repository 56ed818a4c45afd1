"""Dask on a cluster of two processes, one of which is killed. `make test-cluster`."""

import os
import signal
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from limes.dask_arrays import _load
from tests.raster.conftest import make_fast

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]
N_ROWS = 20_000_000
CHUNK = 500_000


def make_rows(block_info=None):
    """Return rows that are computed from their number."""
    start, stop = block_info[None]["array-location"][0]
    number = np.arange(start, stop)
    columns = [(number * (7 + 2 * k)) % 199 for k in range(4)]
    return np.stack(columns, axis=1).astype(np.float32)


@pytest.fixture(scope="module")
def client():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def pids(client):
    return {address: info["pid"] for address, info in client.run(_describe).items()}


def _describe():
    return {"pid": os.getpid()}


def count_loads():
    return _load.cache_info().misses


@pytest.fixture(scope="module")
def fast():
    return make_fast([3, 7, 9])


def lazy_rows():
    import dask.array as da

    chunks = ((CHUNK,) * (N_ROWS // CHUNK), (4,))
    return da.map_blocks(make_rows, chunks=chunks, dtype=np.float32, meta=np.empty((0, 0), "f4"))


def expected_labels(fast):
    return np.concatenate(
        [
            fast.predict(make_rows({None: {"array-location": [(start, start + CHUNK)]}}))
            for start in range(0, N_ROWS, CHUNK)
        ]
    )


def test_twenty_million_rows_survive_a_killed_worker(client, fast):
    future = client.compute(fast.predict(lazy_rows()).astype("u1"))
    time.sleep(0.7)
    assert not future.done()
    victim = next(iter(pids(client).values()))
    os.kill(victim, signal.SIGKILL)
    found = future.result(timeout=300)
    assert victim not in pids(client).values()
    assert_array_equal(found, expected_labels(fast))
    assert max(client.run(count_loads).values()) <= 1


def test_a_scene_is_mapped_on_the_cluster(client, fast):
    import xarray

    pixels = np.random.default_rng(3).integers(1, 200, (4, 600, 700)).astype(np.uint16)
    scene = xarray.DataArray(pixels, dims=("band", "y", "x"))
    found = fast.predict(scene.chunk({"y": 100, "x": 150})).compute()
    assert_array_equal(found.values, fast.predict(scene).values)
