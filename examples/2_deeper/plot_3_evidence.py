"""
The evidence behind a prediction
================================

Two tumours have nearly the same probabilities of being benign or malignant. For one the features
give little evidence; for the other they contradict each other. Probabilities do not show the
difference; the weights of evidence of the same logistic regression do.

More in the guide: :doc:`/how_to/evidence`.
"""

# %%
# ``EvidentialClassifier`` wraps any linear model or network.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dubito.evidence import EvidentialClassifier

data = load_breast_cancer(as_frame=True)
X = data.data[["mean radius", "mean texture", "mean concavity"]]
y = data.target_names[data.target]
ev = EvidentialClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, y)
pair = X.loc[[199, 68]]

# %%
# Nearly the same probabilities, but different ignorance and conflict:

print(ev.classes_, ev.predict_proba(pair).round(2), sep="\n")
print("ignorance", ev.ignorance(pair).round(2))
print("conflict ", ev.conflict(pair).round(2))

# %%
# Each feature is a piece of evidence; its weight is the strength, for one class or the other.

explanation = ev.explain(pair)
for row in range(len(explanation)):
    print(explanation.text(row), end="\n\n")

# %%
# As waterfall charts, and decision regions: in the hatched region both classes are predicted.

from dubito.plots import DecisionRegionDisplay, EvidenceDisplay

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(16, 4.2), layout="constrained")
EvidenceDisplay.from_estimator(ev, pair[:1], ax=left)
EvidenceDisplay.from_estimator(ev, pair[1:], ax=middle)
DecisionRegionDisplay.from_estimator(
    ev, X, y=y, features=("mean radius", "mean concavity"), ax=right
)

# %%
# The weight of evidence of one feature as a function of its value:

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
EvidenceDisplay.from_estimator(ev, X, y=y, kind="weight", piece="mean concavity", ax=ax)
plt.show()
