"""Anomalies, from a mixture
=========================

Find wines with one falsified measurement, and which measurement it is.

Every falsified value is in the range of its feature; only together with the others it is unusual.
"""

import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

import heatsketch as hs
from heatsketch import plot

data = load_wine()
X = StandardScaler().fit_transform(data.data)  # (178, 13)

# Twelve wines get, in one feature each, the value of the wine at the other end of its range.
rng = np.random.default_rng(0)
planted = rng.choice(len(X), 12, replace=False)
features = rng.integers(X.shape[1], size=12)
low, high = X.min(axis=0)[features], X.max(axis=0)[features]
falsified = X.copy()
falsified[planted, features] = np.where(X[planted, features] > (low + high) / 2, low, high)

mixture = GaussianMixture(3, covariance_type="tied", reg_covar=0.01, random_state=0)
kernel = hs.MixtureKernel.from_sklearn(mixture.fit(falsified), epsilon=0.1)
score = kernel.anomaly_score(falsified)  # -log ν
area = roc_auc_score(np.isin(np.arange(len(X)), planted), score)
slopes = kernel.gradient(falsified[planted], kind="density")
blamed = np.abs(slopes).argmax(axis=1) == features
print(f"a falsified wine has a higher score than a genuine one with probability {area:.3f}")
print(f"for {blamed.sum()} of 12 the steepest slope is that of the falsified measurement")
assert area > 0.85
assert blamed.sum() >= 10

Y = PCA(2).fit_transform(falsified)
figure = plot.new_figure(6.0, 4.5)
ax = figure.subplots()
drawn = ax.scatter(*Y.T, c=score, s=14, cmap="viridis")
ax.scatter(*Y[planted].T, s=90, facecolors="none", edgecolors="black", label="falsified")
figure.colorbar(drawn, label="anomaly score")
ax.set(xlabel="principal component 1", ylabel="principal component 2")
ax.legend(frameon=False)
plot.save(figure, "anomalies.png")
