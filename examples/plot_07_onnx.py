"""
ONNX
====

Your classifier must run where there is no Python: this example writes a fast model as an ONNX
graph and runs it in onnxruntime.

The graph uses standard operators only, so that it runs in browsers, on phones and from C#, Java
or Rust.
"""

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import limes
from limes.export.onnx import to_onnx

X, y = load_digits(return_X_y=True)
X = X.astype("float32")
svc = SVC(C=10, gamma=0.002).fit(X[:1200], y[:1200])
fast = limes.accelerate(svc, X[:1200], scheme="shared", fallback=False)

# %%
# The graph, with the outputs that graphs of skl2onnx have.
graph = to_onnx(fast)
session = onnxruntime.InferenceSession(graph.SerializeToString())
print([output.name for output in session.get_outputs()])
name = session.get_inputs()[0].name
labels, probabilities = session.run(None, {name: X[1200:]})[:2]
print("labels of the graph that are those of Python:", (labels == fast.predict(X[1200:])).mean())

# %%
# Digits of which the graph is least certain, and what it takes them for.
order = np.argsort(np.asarray(probabilities).max(axis=1))[:8]
figure, axes = plt.subplots(1, 8, figsize=(9, 1.9), layout="constrained")
figure.suptitle("Least certain digits: predicted, and true")
for ax, index in zip(axes, order, strict=True):
    ax.imshow(X[1200 + index].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{labels[index]}, {y[1200 + index]}")
    ax.set_axis_off()
plt.show()
