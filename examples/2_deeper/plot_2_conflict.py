"""
Several classifiers that disagree
=================================

Three classifiers of tumours use different features: size, texture and shape. ``EvidentialFusion``
learns the weight of each beside the others and gives one prediction with bounds. It also measures
the conflict between the classifiers, which is high where errors are frequent.

More in the guide: :doc:`/how_to/calibration`.
"""

# %%
# A hundred tumours to train on. Each member is a naive Bayes classifier on its own columns,
# calibrated on held-out folds.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from dubito.calibration import EvidentialFusion

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
X_train, X_new, y_train, y_new = train_test_split(X, y, train_size=100, random_state=0, stratify=y)
views = {
    "size": ["mean radius", "mean perimeter", "mean area"],
    "texture": ["mean texture", "mean smoothness"],
    "shape": ["mean compactness", "mean concavity", "mean concave points"],
}
members = [(name, GaussianNB(), columns) for name, columns in views.items()]
fusion = EvidentialFusion(members, cv=5).fit(X_train, y_train)

# %%
# Is it better than its members?

accuracy = {
    name: member.score(X_new[columns], y_new)
    for (name, columns), member in zip(views.items(), fusion.members_, strict=True)
}
accuracy["together"] = fusion.score(X_new, y_new)
for name, fraction in accuracy.items():
    print(f"{name:<9}{fraction:.1%} right")

# %%
# Conflict and errors
# -------------------
# Conflict is 0 where the members are compatible and 1 where they contradict each other. The new
# tumours are sorted by conflict and divided into four groups of equal size:

conflict = fusion.conflict(X_new)
bounds = fusion.predict_bounds(X_new)
wrong = fusion.predict(X_new) != y_new
groups = pd.qcut(conflict, 4, labels=["least", "little", "some", "most"])
by_conflict = (
    pd.DataFrame({"wrong": wrong, "width": bounds.width.mean(axis=1)})
    .groupby(groups, observed=True)
    .mean()
)
print(by_conflict.round(3))

# %%
# The bounds are wider where the members disagree, because a hundred rows do not determine well
# which member is right there.
#
# The tumour with the largest conflict
# ------------------------------------

disputed = int(np.argmax(conflict))
row = X_new.iloc[[disputed]]
malignant = list(fusion.classes_).index("malignant")
spans = {}
for (name, columns), member in zip(views.items(), fusion.members_, strict=True):
    spans[name] = member.predict_bounds(row[columns])
spans["together"] = fusion.predict_bounds(row)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
by_conflict.plot.bar(ax=left, rot=0, xlabel="conflict", color=["#D55E00", "#56B4E9"])
left.legend(["fraction wrong", "mean width of the bounds"])
for name, span in spans.items():
    low, width = span.lower[0, malignant], span.width[0, malignant]
    right.barh(name, max(width, 0.01), left=low, color="#E69F00" if name != "together" else "0.2")
right.set(xlim=(0, 1), xlabel="malignant, from belief to plausibility")
right.set_title(f"tumour {row.index[0]}, {y_new[disputed]}: conflict {conflict[disputed]:.2f}")
right.invert_yaxis()

# %%
# Evidence that is not independent
# --------------------------------
# ``method="independent"`` calibrates each member alone and combines the beliefs by multiplying
# their contours, as if size and shape were independent. Common information is counted twice, and
# the bounds are too narrow:

independent = EvidentialFusion(members, method="independent", cv=5).fit(X_train, y_train)
for name, model in {"joint": fusion, "independent": independent}.items():
    sure = model.predict_bounds(X_new).lower.max(axis=1) > 0.95
    mistaken = model.predict(X_new)[sure] != y_new[sure]
    print(f"{name}: belief above 95% in {sure.mean():.0%}, {mistaken.mean():.1%} of these wrong")

plt.show()
