"""Map two real scenes, GeoTIFF to GeoTIFF, on one thread, and compare with the least that it takes.

    LIMES_SCENES=... python benchmarks/scene.py [--picture FOLDER] [--no-memory]

Three things are printed for each scene: the time of predicting, against ``fast.predict`` of the
same valid pixels in one array; that of reading and writing, against a bare copy with rasterio by
the same blocks; and whether every label is that of ``fast.predict``, and every invalid pixel
nodata. Maps are written to the folder that TMPDIR names. limes waits for the disk, so that a crash
of the computer leaves a whole map or none; the time is compared with that of a copy which does not
wait, and of one which does. Then the peak memory of mapping a virtual raster of 5000 x 5000 and of
20 000 x 20 000 pixels that repeats a scene, over that of a process after its imports and after
loading the model.
"""

import argparse
import os
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.features import rasterize
from rasterio.windows import Window
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import limes
from limes.raster import predict as raster
from limes.raster.geotiff import TILE
from limes.raster.labels import PixelClassifier
from limes.raster.scene import block_places, open_scene

N_REPEATS = 15
N_BANDS = 6
LANDSAT7 = {1: "developed", 3: "herbaceous", 4: "shrubland", 5: "forest", 6: "water", 7: "sediment"}
COLOURS7 = {1: "#d7191c", 3: "#fdae61", 4: "#c2a5cf", 5: "#1a9641", 6: "#2b83ba", 7: "#ffffbf"}
COLOURS8 = {"crop": "#fdae61", "developed": "#d7191c", "tree": "#1a9641", "water": "#2b83ba"}

TITLES = (
    "scene",
    "pixels",
    "valid",
    "model",
    "agreement",
    "SVC, µs/pixel",
    "limes, ns/pixel",
    "predicting / fast.predict",
    "reading and writing / copy",
    "the same / copy that survives a crash",
    "labels equal",
)


@dataclass(frozen=True, eq=False)
class Case:
    """A scene with a classifier for it."""

    name: str
    files: list[Path]
    nodata: Any
    svc: Any
    fast: Any
    options: dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.worker:
        measure_memory(*args.worker)
        return
    scenes = Path(os.environ["LIMES_SCENES"])
    cases = [landsat7(scenes), landsat8(scenes)]
    print(f"| {' | '.join(TITLES)} |\n|{' --- |' * len(TITLES)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in cases:
            measure_case(case, folder)
            if args.picture:
                draw(case, folder / f"{case.name}.tif", args.picture)
        compare_types(cases[0])
        if not args.no_memory:
            compare_memory(cases[0], scenes / "landsat8" / "scene.tif", folder)


def landsat7(scenes: Path) -> Case:
    """Six files; the labels are a raster."""
    files = [scenes / "landsat7" / f"lsat7_2000_{band}.tif" for band in (10, 20, 30, 40, 50, 70)]
    with rasterio.open(scenes / "landsat7" / "landsat96_labelled_pixels.tif") as file:
        labels = file.read(1)
    bands, is_valid = read_all(files, ...)
    chosen = is_valid & (labels > 0)
    options = {"class_names": LANDSAT7, "colors": COLOURS7}
    return make_case(
        "landsat7", files, ..., bands[:, chosen].T, labels[chosen].astype(int), options
    )


def landsat8(scenes: Path) -> Case:
    """One file of three bands; the labels are polygons."""
    path = scenes / "landsat8" / "scene.tif"
    shapes = read_polygons(scenes / "landsat8" / "polygons.gpkg")
    names = sorted({name for name, _ in shapes})
    with rasterio.open(path) as file:
        numbers = rasterize(
            [(shape, names.index(name) + 1) for name, shape in shapes],
            out_shape=file.shape,
            transform=file.transform,
            dtype="uint8",
        )
    bands, is_valid = read_all([path], 0)
    chosen = is_valid & (numbers > 0)
    labels = np.array(names)[numbers[chosen] - 1]
    return make_case("landsat8", [path], 0, bands[:, chosen].T, labels, {"colors": COLOURS8})


def make_case(
    name: str, files: list[Path], nodata: Any, X: Any, y: Any, options: dict[str, Any]
) -> Case:
    """Train an SVM on the labelled pixels, and accelerate it on a sample of the scene."""
    svc = make_pipeline(StandardScaler(), SVC(C=50, gamma=0.5)).fit(X.astype(float), y)
    sample = raster.sample_rows(files, 50_000, np.random.SeedSequence(0), nodata=nodata)
    return Case(name, files, nodata, svc, limes.accelerate(svc, sample), options)


def read_all(files: list[Path], nodata: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return all bands, and where all have a value, by another way than limes."""
    bands, valid = [], []
    for path in files:
        with rasterio.open(path) as file:
            for index in file.indexes:
                band = file.read(index)
                value = file.nodatavals[index - 1] if nodata is ... else nodata
                bands.append(band.astype(np.float32))
                valid.append(np.isfinite(band) & (band != value))
    return np.array(bands), np.all(valid, axis=0)


def read_polygons(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the polygons of a GeoPackage with the column `name`."""
    with sqlite3.connect(path) as base:
        table, column = base.execute(
            "SELECT table_name, column_name FROM gpkg_geometry_columns"
        ).fetchone()
        rows = base.execute(f'SELECT name, "{column}" FROM "{table}"').fetchall()
    return [(name, parse_geometry(data)) for name, data in rows]


def parse_geometry(data: bytes) -> dict[str, Any]:
    """Return a polygon or several, from the bytes of a GeoPackage."""
    envelope = {0: 0, 1: 32, 2: 48, 3: 48, 4: 64}[(data[3] >> 1) & 7]
    return parse_wkb(data, 8 + envelope)[0]


def parse_wkb(data: bytes, at: int) -> tuple[dict[str, Any], int]:
    """Return a geometry in well-known binary, and where it ends."""
    order = "<" if data[at] else ">"
    kind, count = struct.unpack_from(f"{order}II", data, at + 1)
    at += 9
    if kind % 1000 == 6:
        parts = []
        for _ in range(count):
            part, at = parse_wkb(data, at)
            parts.append(part["coordinates"])
        return {"type": "MultiPolygon", "coordinates": parts}, at
    size = 3 if kind >= 1000 else 2
    rings = []
    for _ in range(count):
        (n_points,) = struct.unpack_from(f"{order}I", data, at)
        numbers = struct.unpack_from(f"{order}{n_points * size}d", data, at + 4)
        rings.append([numbers[k : k + 2] for k in range(0, len(numbers), size)])
        at += 4 + 8 * size * n_points
    return {"type": "Polygon", "coordinates": rings}, at


def measure_case(case: Case, folder: Path) -> None:
    """Print the line of one scene."""
    bands, is_valid = read_all(case.files, case.nodata)
    rows = np.ascontiguousarray(bands[:, is_valid].T)
    expected = np.full(is_valid.shape, -1, dtype=object)
    expected[is_valid] = case.fast.predict(rows)
    output = folder / f"{case.name}.tif"
    predicting, others, copies, arrays = [], [], [], []
    for _ in range(N_REPEATS):  # the four in turn, so that all meet the same load
        arrays.append(timed(lambda: case.fast.predict(rows)))
        inside, total = time_map(case, output)
        predicting.append(inside)
        others.append(total - inside)
        copies.append(time_copy(case, output, folder / "copy.tif"))
    some = rows[:20_000].astype(float)
    source = timed(lambda: case.svc.predict(some)) / len(some)
    with rasterio.open(output) as file:
        found, nodata = file.read(1), file.nodata
    codes = {label: index for index, label in enumerate(case.fast.classes_.tolist(), start=1)}
    is_text = isinstance(case.fast.classes_.tolist()[0], str)
    wanted = np.array([codes[label] if is_text else label for label in expected[is_valid]])
    is_equal = (found[is_valid] == wanted).all() and (found[~is_valid] == nodata).all()
    model = f"{case.fast.scheme_.name}, {case.fast.n_borders_} points"
    agreement = np.mean(case.fast.predict(some) == case.svc.predict(some))
    plain, synced = (min(pair[k] for pair in copies) for k in (0, 1))
    inside, other, array = min(predicting), min(others), min(arrays)
    cells = [
        case.name,
        f"{is_valid.size:,}",
        f"{is_valid.sum():,}",
        model,
        f"{agreement:.4f}",
        f"{source * 1e6:.2f}",
        f"{inside / is_valid.sum() * 1e9:.1f}",
        f"{inside / array:.2f} ({inside * 1e3:.1f} / {array * 1e3:.1f} ms)",
        f"{other / plain:.2f} ({other * 1e3:.1f} / {plain * 1e3:.1f} ms)",
        f"{other / synced:.2f} ({other * 1e3:.1f} / {synced * 1e3:.1f} ms)",
        "yes" if is_equal else "NO",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


def compare_types(case: Case) -> None:
    """Print the time of rows of integers against that of float32."""
    rows = np.random.default_rng(0).integers(1, 255, (1_000_000, case.fast.n_features_in_))
    kinds = (np.float32, np.uint8, np.int16, np.uint16)
    given = {np.dtype(kind).name: rows.astype(kind) for kind in kinds}
    times: dict[str, list[float]] = {name: [] for name in given}
    for _ in range(N_REPEATS):
        for name, array in given.items():
            times[name].append(timed(lambda array=array: case.fast.predict(array)))
    ratios = [f"{name} {min(times[name]) / min(times['float32']):.3f}" for name in given]
    print(f"time of a million rows / float32: {', '.join(ratios)}", flush=True)


def timed(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def time_map(case: Case, output: Path) -> tuple[float, float]:
    """Return the time inside the classifier, and that of all."""
    inside = 0.0
    plain = PixelClassifier.__call__

    def call(self: PixelClassifier, *args: Any) -> Any:
        nonlocal inside
        start = time.perf_counter()
        found = plain(self, *args)
        inside += time.perf_counter() - start
        return found

    output.unlink(missing_ok=True)
    PixelClassifier.__call__ = call  # type: ignore[method-assign]
    try:
        total = timed(
            lambda: limes.predict_raster(
                case.fast, case.files, output=output, nodata_input=case.nodata, **case.options
            )
        )
    finally:
        PixelClassifier.__call__ = plain  # type: ignore[method-assign]
    return inside, total


def time_copy(case: Case, labels: Path, copy: Path) -> tuple[float, float]:
    """Return the time of reading all bands and writing a map, by the blocks of limes.

    The second time is that of a copy that survives a crash of the computer, as a map of limes does:
    written under another name, synchronised to the disk and renamed, the folder synchronised too.
    """
    with rasterio.open(labels) as file:
        pixels, profile = file.read(1), file.profile
    with open_scene(case.files) as scene:
        places = block_places(scene, raster.MAX_BLOCK_PIXELS, TILE)

    def run(is_synced: bool) -> None:
        copy.unlink(missing_ok=True)
        name = copy.with_suffix(".tmp") if is_synced else copy
        files = [rasterio.open(path) for path in case.files]
        with rasterio.open(name, "w", **profile, BIGTIFF="IF_SAFER") as target:
            for rows, columns in places:
                window = Window.from_slices(rows, columns)
                for file in files:
                    file.read(window=window)
                target.write(pixels[rows, columns], 1, window=window)
        for file in files:
            file.close()
        if is_synced:
            for path, flags in ((name, os.O_RDWR), (copy.parent, os.O_RDONLY)):
                descriptor = os.open(path, flags)
                os.fsync(descriptor)
                os.close(descriptor)
                if path == name:
                    name.replace(copy)

    return timed(lambda: run(False)), timed(lambda: run(True))


def compare_memory(case: Case, source: Path, folder: Path) -> None:
    """Print the peak memory for a small and a large raster."""
    model = folder / "model.limes"
    case.fast.save(model)
    for max_memory in (256, 64):
        for size in (5000, 20_000):
            path = folder / f"{size}.vrt"
            write_vrt(path, source, size)
            words = [sys.executable, __file__, "--worker", model, path, folder / "out.tif"]
            found = subprocess.run(
                [*map(str, words), str(max_memory)], check=True, capture_output=True, text=True
            )
            print(
                f"{size} x {size}, max_memory_mb={max_memory}: {found.stdout.strip()}", flush=True
            )


def measure_memory(model: str, scene: str, output: str, max_memory: str) -> None:
    """Print the peak memory of a map over that before it."""
    fast = limes.load(model)
    fast.predict(np.ones((10, fast.n_features_in_), dtype=np.float32))
    rasterio.open(scene).close()
    before = peak_memory()
    start = time.perf_counter()
    limes.predict_raster(fast, scene, output=output, nodata_input=0, max_memory_mb=int(max_memory))
    seconds = time.perf_counter() - start
    print(f"{(peak_memory() - before) / 1e6:.0f} MB, {seconds:.1f} s")


def peak_memory() -> int:
    """Return the peak memory of this process; getrusage has that of its parent, if it is larger."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def write_vrt(path: Path, source: Path, size: int) -> None:
    """Write a virtual raster of six bands that repeats a scene of three."""
    with rasterio.open(source) as file:
        (height, width), n_stored, crs = file.shape, file.count, file.crs.to_wkt()
    lines = [
        f'<VRTDataset rasterXSize="{size}" rasterYSize="{size}"><SRS>{crs}</SRS>',
        "<GeoTransform>717345, 30, 0, -2776995, 0, -30</GeoTransform>",
    ]
    for band in range(N_BANDS):
        lines.append(f'<VRTRasterBand dataType="UInt16" band="{band + 1}">')
        for top in range(0, size, height):
            for left in range(0, size, width):
                box = f'xSize="{min(width, size - left)}" ySize="{min(height, size - top)}"'
                lines.append(
                    f"<SimpleSource><SourceFilename>{source}</SourceFilename>"
                    f"<SourceBand>{band % n_stored + 1}</SourceBand>"
                    f'<SrcRect xOff="0" yOff="0" {box}/><DstRect xOff="{left}" yOff="{top}" {box}/>'
                    "</SimpleSource>"
                )
        lines.append("</VRTRasterBand>")
    path.write_text("\n".join([*lines, "</VRTDataset>"]))


def draw(case: Case, path: Path, folder: Path) -> None:
    """Draw the scene beside its map."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    folder.mkdir(parents=True, exist_ok=True)
    bands, is_valid = read_all(case.files, case.nodata)
    picture = bands[[2, 1, 0]]
    low, high = np.percentile(picture[:, is_valid], [2, 98], axis=1)[:, :, None, None]
    picture = np.where(is_valid, np.clip((picture - low) / (high - low), 0, 1), 1)
    with rasterio.open(path) as file:
        labels, colours = file.read(1), file.colormap(1)
    drawn = np.array([colours[value] for value in range(256)], dtype=np.uint8)[labels]
    figure, axes = plt.subplots(1, 2, figsize=(11, 5.6), layout="constrained")
    step = max(1, labels.shape[0] // 900)
    axes[0].imshow(np.moveaxis(picture, 0, -1)[::step, ::step])
    axes[1].imshow(drawn[::step, ::step], interpolation="nearest")
    for axis, title in zip(axes, (f"{case.name}: red, green, blue", "classes"), strict=True):
        axis.set(title=title, xticks=[], yticks=[])
    names = case.options.get("class_names") or {name: name for name in case.fast.classes_}
    patches = [Patch(color=case.options["colors"][key], label=name) for key, name in names.items()]
    axes[1].legend(handles=patches, loc="lower right", fontsize=8)
    figure.savefig(folder / f"{case.name}.png", dpi=80)
    plt.close(figure)


if __name__ == "__main__":
    main()
