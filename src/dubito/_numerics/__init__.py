"""Numerical building blocks that several packages use: arrays in, arrays out, no validation.

Modules named `*_compiled` import numba, so they are imported inside functions, at the first call.

==============================================================  ================================
formula                                                         module
==============================================================  ================================
raw, smoothed and light targets (Platt 1999; Xu et al. 2015)    `targets`
base rates with rows of unknown label                           `targets`
log-odds with a floor on probabilities                          `log_odds`
logistic fit: Newton, sign constraints, ridge                   `logistic_fit`
second derivatives of the logistic log-likelihood               `logistic_curvature`
logistic profile likelihood, belief and plausibility            `logistic_profile`
bounds of a logistic curve at a confidence level                `logistic_level`
chi-square cut of a contour                                     `contour_cut`
secant search for the ends of a cut                             `contour_cut_compiled`
rows condensed to few points of the same likelihood             `condensed_rows`
isotonic regression (PAV), its contour, belief and bounds       `isotonic`
Venn-Abers p0 and p1: fits with a row inserted                  `isotonic`
Bernoulli contour, belief, Clopper-Pearson limits               `bernoulli`
weights of evidence under Dempster's rule (Denœux 2019)        `evidence_weights`
softmax and log-softmax                                         `softmax`
sum, log-sum or maximum of the other entries of a row           `sums_of_others`
mass above lower bounds, distributed in order                   `spare_mass`
utility of set-valued predictions (u65, u80)                    `set_utility`
Gauss-Kronrod rule, Gauss-Legendre rules on panels              `quadrature`
Gauss rule of a discrete measure (Golub and Welsch 1969)        `quadrature_compiled`
exp, log(1 + x), sigmoid, softplus, dot products, compiled      `vector_math_compiled`
Cholesky factor and solve                                       `cholesky_compiled`
chunks and random samples of rows                               `row_subsets`
compilation; threads over rows                                  `jit`; `threads`
==============================================================  ================================
"""
