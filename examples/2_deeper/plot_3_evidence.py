"""
Why? The evidence behind a prediction
=====================================

Two tumours are about as probable to be benign or malignant. Of one the model has seen little that
matters; the other contradicts itself. A probability cannot tell these apart. Read as evidence, the
same logistic regression can.

The guide says more: :doc:`/how_to/evidence`.
"""

# %%
# Any linear model, or a network, is wrapped as it is.

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
# About the same probabilities, and not at all the same doubt:

print(ev.classes_, ev.predict_proba(pair).round(2), sep="\n")
print("ignorance", ev.ignorance(pair).round(2))
print("conflict ", ev.conflict(pair).round(2))

# %%
# Each feature is a piece of evidence; its weight says how strongly it speaks, and for which side.

explanation = ev.explain(pair)
for row in range(len(explanation)):
    print(explanation.text(row), end="\n\n")

# %%
# As waterfalls, and where such tumours lie: in the hatched stretch the answer is "either".

from dubito.plots import DecisionRegionDisplay, EvidenceDisplay

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(16, 4.2), layout="constrained")
EvidenceDisplay.from_estimator(ev, pair[:1], ax=left)
EvidenceDisplay.from_estimator(ev, pair[1:], ax=middle)
DecisionRegionDisplay.from_estimator(
    ev, X, y=y, features=("mean radius", "mean concavity"), ax=right
)

# %%
# What one feature says at each of its values, and where it changes sides:

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
EvidenceDisplay.from_estimator(ev, X, y=y, kind="weight", piece="mean concavity", ax=ax)
plt.show()
