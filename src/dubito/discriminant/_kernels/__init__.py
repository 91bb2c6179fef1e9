"""Formulas of imprecise Gaussian discriminants on arrays (Carranza Alarcón and Destercke 2019).

Nothing here validates input or imports scikit-learn. Modules named `*_compiled` import numba, so
they are imported inside functions, at the first call.

========================================================  ======================================
formula                                                   module
========================================================  ======================================
means, covariances, shrinkage, pseudo-inverses            `moments`
half widths of boxes; classes with means in boxes         `class_boxes`
energy bounds, sets, critical c of many rows, in blocks   `row_searches`
nearest point of a box, Mahalanobis (convex QP)           `box_nearest_compiled`
farthest point of a box (branch and bound)                `box_farthest_compiled`
diagonal above a matrix, for the bounds of that search    `diagonal_majorant`
distances of one row; smallest and largest energy there   `boxed_distances_compiled`
the same of all rows; maximal classes                     `boxed_sets_compiled`
critical c: the imprecision at which a class enters       `boxed_critical_compiled`
posterior bounds, maximal acts of a loss                  `posterior`
========================================================  ======================================
"""
