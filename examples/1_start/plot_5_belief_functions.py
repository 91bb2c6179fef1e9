"""
What belief functions look like
===============================

One score, twelve labelled rows, one new row: the contour of its probability, a level set of that
contour, and the belief and plausibility that follow from it. The figures are explained in
:doc:`/explanation/theory`.
"""

# %%
# A sensor gives each machine part a score; a higher score means that a defect is more likely. For
# twelve parts it is known whether they were defective. A logistic curve turns scores into
# probabilities.

import matplotlib.pyplot as plt
import numpy as np

from dubito.calibration import EvidentialLogisticCalibrator

score = np.array([-2.2, -1.7, -1.3, -0.9, -0.5, -0.1, 0.1, 0.4, 0.8, 1.2, 1.6, 2.1])
defective = np.array([0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 1, 1])
new_score = 0.6
calibrator = EvidentialLogisticCalibrator().fit(score, defective)
estimate = calibrator.predict_proba([new_score])[0, 1]
print(f"probability that the new part is defective: {estimate:.2f}")

# %%
# Colours: blue is for "defective", orange for "ok", grey for "not known".

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#BBBBBB"
scores = np.linspace(-2.6, 2.6, 200)
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.plot(scores, calibrator.predict_proba(scores)[:, 1], color="black", label="logistic fit")
for label, marker, color in ((1, "o", BLUE), (0, "s", ORANGE)):
    rows = defective == label
    name = "defective" if label else "ok"
    ax.plot(score[rows], defective[rows], marker, color=color, label=name)
ax.plot([new_score, new_score, -2.6], [0, estimate, estimate], ":", color="black")
ax.plot(new_score, estimate, "D", color="black", markersize=7, label="new part")
ax.set(xlabel="score", ylabel="probability of a defect", ylim=(-0.06, 1.06), xlim=(-2.6, 2.6))
ax.legend(loc="center right")

# %%
# **The contour.** Other curves fit the twelve rows almost as well, and give the new part another
# probability θ. The contour at θ is the likelihood of the best curve through θ, divided by the
# likelihood of the best curve overall. The level set at γ is the interval of all θ whose relative
# likelihood is at least γ.

theta = np.linspace(0, 1, 2001)
contour = calibrator.contour([new_score], theta)[0]
gamma = 0.26
inside = theta[contour >= gamma]
print(f"level set at {gamma}: {inside[0]:.2f} to {inside[-1]:.2f}")

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.plot(theta, contour, color="black")
ax.fill_between(theta, 0, gamma, where=contour >= gamma, color=GREY)
ax.hlines(gamma, 0, 1, color="black", linestyle=":")
ax.annotate(
    f"level set at {gamma}:\n[{inside[0]:.2f}, {inside[-1]:.2f}]",
    (inside.mean(), gamma / 2),
    ha="center",
    va="center",
)
ax.plot(estimate, 1, "D", color="black", markersize=7)
ax.annotate(f"estimate {estimate:.2f}", (estimate, 1.04), ha="center", va="bottom")
ax.set(xlabel="probability of a defect, θ", ylabel="relative likelihood", xlim=(0, 1))
ax.set(ylim=(0, 1.2), yticks=[0, 0.25, 0.5, 0.75, 1])

# %%
# **Belief and plausibility.** Take the level sets at all γ from 0 to 1. The mean of their left ends
# is the belief in "defective"; the mean of their right ends is its plausibility. The three areas of
# the picture are the three masses; together they fill the unit square.

mass = calibrator.predict_mass([new_score]).mass[0]  # {ok}, {defective}, {ok, defective}
peak = theta[contour.argmax()]
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.fill_between(theta, contour, 1, where=theta <= peak, color=BLUE, alpha=0.75, linewidth=0)
ax.fill_between(theta, contour, 1, where=theta >= peak, color=ORANGE, alpha=0.85, linewidth=0)
ax.fill_between(theta, 0, contour, color=GREY, linewidth=0)
ax.plot(theta, contour, color="black")
ax.annotate(f"m({{defective}})\n= {mass[1]:.2f}", (0.25, 0.72), ha="center", color="white", size=12)
ax.annotate(f"m({{ok, defective}})\n= {mass[2]:.2f}", (0.6, 0.25), ha="center", size=12)
ax.annotate(
    f"m({{ok}})\n= {mass[0]:.2f}",
    (0.975, 0.9),
    (1.03, 0.72),
    annotation_clip=False,
    arrowprops={"arrowstyle": "->"},
    size=12,
)
ax.set(xlabel="probability of a defect, θ", ylabel="relative likelihood", xlim=(0, 1), ylim=(0, 1))

# %%
# **The three subsets.** Belief in a set is the mass that lies inside it, plausibility the mass of
# all sets that have a class in common with it. The grey part of a bar could go either way.

names = ["{ok}", "{defective}", "{ok, defective}"]
belief = np.array([mass[0], mass[1], 1.0])
plausibility = np.array([mass[0] + mass[2], mass[1] + mass[2], 1.0])
figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.1), sharey=True, layout="constrained")
axes[0].barh(names, mass, color=[ORANGE, BLUE, GREY], height=0.55)
for place, value in enumerate(mass):
    axes[0].annotate(f"{value:.2f}", (value + 0.02, place), va="center")
axes[0].set(title="mass m", xlim=(0, 1), xlabel="mass")
axes[1].barh(names, belief, color="#333333", height=0.55, label="belief")
axes[1].barh(
    names, plausibility - belief, left=belief, color=GREY, height=0.55, label="up to plausibility"
)
for place, (low, high) in enumerate(zip(belief, plausibility, strict=True)):
    text = f"[{low:.2f}, {high:.2f}]" if place < 2 else "[1, 1]"
    axes[1].annotate(text, (1.03, place), va="center", annotation_clip=False)
axes[1].set(title="[belief, plausibility]", xlim=(0, 1), xlabel="probability")
figure.legend(loc="outside lower right", ncols=2, frameon=False)

# %%
# **More rows.** With 4 or 16 times as many rows of the same kind the contour is narrower, belief
# and plausibility approach the probability, and the mass of {ok, defective} goes to 0.

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
widths = {}
for times, style in ((1, "-"), (4, "--"), (16, ":")):
    weights = np.full(len(score), times)
    fitted = EvidentialLogisticCalibrator().fit(score, defective, sample_weight=weights)
    lower, upper = fitted.predict_bounds([new_score])
    widths[12 * times] = upper[0, 1] - lower[0, 1]
    label = f"{12 * times} rows: [{lower[0, 1]:.2f}, {upper[0, 1]:.2f}]"
    ax.plot(theta, fitted.contour([new_score], theta)[0], style, color="black", label=label)
ax.set(
    xlabel="probability of a defect, θ", ylabel="relative likelihood", xlim=(0, 1), ylim=(0, 1.1)
)
ax.legend(title="belief, plausibility", loc="upper left")

plt.show()
