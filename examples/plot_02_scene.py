"""
A satellite scene
=================

You have a raster of millions of pixels and an SVM that takes hours for it: this example maps
such a scene by the block, with invalid pixels left out.

The scene is generated. With ``LIMES_SCENES`` set to the folder of the two Landsat scenes,
``benchmarks/scene.py`` measures the same lines on real ones; :doc:`/scenes` shows their maps.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.colors import ListedColormap
from scipy.ndimage import gaussian_filter
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import limes
from limes.plotting import COLOURS

# %%
# Three kinds of ground, each with its reflectances in three bands, and a cloud that hides a
# part.
rng = np.random.default_rng(0)
size = 400
height = gaussian_filter(rng.normal(size=(size, size)), 25)
ground = np.digitize(height, np.quantile(height, [0.35, 0.7]))
reflectances = np.array([[0.05, 0.03, 0.02], [0.08, 0.10, 0.45], [0.25, 0.28, 0.32]])
bands = reflectances[ground].transpose(2, 0, 1)
bands = (10_000 * bands * rng.lognormal(sigma=0.35, size=bands.shape)).astype("uint16")
rows, columns = np.ogrid[:size, :size]
bands[:, (rows - 90) ** 2 + (columns - 300) ** 2 < 55**2] = 0  # nodata
scene = xr.DataArray(
    bands, dims=("band", "y", "x"), attrs={"_FillValue": 0, "long_name": ("green", "red", "nir")}
)

# %%
# The SVM is trained on 1500 labelled pixels. Rows for the fast model are drawn from the scene
# itself: they show where it will be used.
valid = np.flatnonzero(bands.all(axis=0))
labelled = rng.choice(valid, 1500, replace=False)
pixels = bands.reshape(3, -1).T
svc = make_pipeline(StandardScaler(), SVC(C=10, gamma=0.5))
svc.fit(pixels[labelled], 1 + ground.ravel()[labelled])
fast = limes.accelerate(svc, scene)
classes = limes.predict_raster(fast, scene)
sample = rng.choice(valid, 5000, replace=False)
same = classes.to_numpy().ravel()[sample] == svc.predict(pixels[sample])
print(f"Same class as the SVM on {same.mean():.2%} of 5000 pixels.")

# %%
# ``classes`` is an array with the coordinates of the scene; invalid pixels are 0.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
left.imshow(np.clip(bands[::-1].transpose(1, 2, 0) / 6000, 0, 1))
left.set_title("near infrared, red, green")
colours = ListedColormap(["white", COLOURS[0], COLOURS[2], COLOURS[4]])
drawn = right.imshow(classes, cmap=colours, vmin=-0.5, vmax=3.5, interpolation="nearest")
right.set_title("classes of the fast model")
bar = figure.colorbar(drawn, ax=right, ticks=range(4), shrink=0.8)
bar.ax.set_yticklabels(["no data", "water", "plants", "soil"])
for ax in (left, right):
    ax.set_axis_off()
plt.show()
