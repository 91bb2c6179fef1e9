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
its bounds at a confidence level                          `joint_logistic_level`
softmax model of several classifiers: belief bounds       `joint_softmax`
its bounds at a confidence level                          `joint_softmax_level`
its likelihood, gradient and Hessian                      `joint_softmax_likelihood_compiled`
maximum of a functional over likelihood level sets        `constrained_maxima_compiled`
Newton step to it, with bounds of the coefficients        `constrained_step_compiled`
the same in closed form, quadratic likelihood             `constrained_maxima_quadratic_compiled`
polynomial extrapolation along a solution path            `extrapolation_compiled`
slope of temperature scaling                              `temperature_scaling`
vector scaling: likelihood, Newton steps                  `vector_scaling`
matrix scaling: likelihood, Newton steps                  `matrix_scaling`
solver with a full Hessian and a penalty                  `hessian_solvers`
variances of log-odds of softmax maps (delta method)      `softmax_covariance`
belief from log-odds and their standard error             `log_odds_bounds`
Dempster's rule on single classes, bounds in O(K)         `dempster_on_singletons`
limited-memory BFGS with a preconditioner                 `quasi_newton`
========================================================  ======================================
"""
