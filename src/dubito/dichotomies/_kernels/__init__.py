"""Formulas of nested dichotomies on arrays: tree structures, node models, node calibration, paths.

Nothing here validates input or imports scikit-learn. Modules named `*_compiled` import numba, so
they are imported inside functions, at the first call. `logistic_node_*` and `*_naive_bayes` fit
the models of nodes; `node_*` calibrate them, by the formulas of `dubito._numerics`.

========================================================  ======================================
formula                                                   module
========================================================  ======================================
random splits of classes, and the tree they grow          `class_splits`
class centroids                                           `class_centroids`
tree by balanced 2-means                                  `balanced_means`
class probabilities, bounds, maximal classes on paths     `tree_paths`
the k most probable classes, best-first search            `top_classes_compiled`
rows held out for external calibration                    `holdout`
rows in the order of a tree's leaves                      `leaf_order`
logistic model of a node: choice of method, folds         `logistic_node_compiled`
its loss, derivatives and line search                     `logistic_node_loss_compiled`
its fit with few rows (Gram matrix)                       `logistic_node_gram_compiled`
its fit with many rows (conjugate gradients)              `logistic_node_columns_compiled`
its fit on sparse rows                                    `logistic_node_sparse_compiled`
log-odds of sparse rows, sparse coefficients              `sparse_scores_compiled`
Gaussian naive Bayes at all nodes                         `gaussian_naive_bayes`
multinomial naive Bayes at all nodes                      `multinomial_naive_bayes`
sigmoids of all nodes: fit (Platt 1999), log-odds         `node_sigmoids_compiled`
their belief and plausibility                             `node_sigmoid_beliefs_compiled`
their bounds at a confidence level                        `node_sigmoid_levels_compiled`
tables of both: Chebyshev series over the score           `node_sigmoid_tables_compiled`
isotonic maps of all nodes: fit, values, bounds           `node_isotonic_compiled`
========================================================  ======================================
"""
