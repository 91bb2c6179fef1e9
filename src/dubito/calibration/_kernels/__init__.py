"""Formulas of the calibrators on arrays: likelihoods, fits, beliefs, bounds at a confidence level.

Nothing here validates input or imports scikit-learn. Modules named `*_compiled` import numba, so
they are imported inside functions, at the first call. Formulas that nested dichotomies use too
(sigmoids, isotonic fits, Bernoulli contours, targets) are in `dubito._numerics`.

========================================================  ======================================
formula                                                   module
========================================================  ======================================
likelihood of one softmax slope (Xu et al. 2015)          `slope_likelihood`
belief and plausibility from level sets of the slope      `slope_couplings`
quadrature points over relative likelihoods               `slope_quadrature`
bounds of the slope at a confidence level                 `slope_level`
profile likelihood of a logistic model of several scores  `joint_logistic`
logistic model of several scores: bounds at a level       `joint_logistic_level`
softmax model of several classifiers: belief bounds       `joint_softmax`
softmax model of several classifiers: bounds at a level   `joint_softmax_level`
softmax model: likelihood, gradient and Hessian           `joint_softmax_likelihood_compiled`
maximum of a functional over likelihood level sets        `constrained_maxima_compiled`
constrained maximum: Newton step, bounded coefficients    `constrained_step_compiled`
constrained maximum: closed form, quadratic likelihood    `constrained_maxima_quadratic_compiled`
polynomial extrapolation along a solution path            `extrapolation_compiled`
slope of temperature scaling                              `temperature_scaling`
temperature scaling of limited scores                     `limited_slope`
vector scaling: log normaliser, derivatives, solver       `vector_scaling`
vector scaling: penalised likelihood                      `vector_likelihood`
matrix scaling: log normaliser, derivatives, solver       `matrix_scaling`
matrix scaling: penalised likelihood                      `matrix_likelihood`
fit of a map with a ridge, and refits for bounds          `penalised_fit`
ridge by the marginal likelihood (MacKay 1992)            `marginal_likelihood`
labels with light targets, sums of the targets            `light_labels`
solver with a full Hessian and a penalty                  `hessian_solvers`
bounds by the delta method                                `delta_method`
standard errors of log-odds of softmax maps               `softmax_covariance`
slope that all classes share, its standard error          `shared_slope`
belief from log-odds and their standard error             `log_odds_bounds`
Dempster's rule on single classes, bounds in O(K)         `dempster_on_singletons`
limited-memory BFGS with a preconditioner                 `quasi_newton`
weights of several maps in a mean of probabilities        `pool_weights`
whether scores contradict the labels                      `label_mismatch`
whether rows contradict the form of a map                 `misfit`
========================================================  ======================================
"""
