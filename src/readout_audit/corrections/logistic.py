"""A small logistic regression: Newton's method, a light ridge, predictions out of fold."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve
from scipy.special import expit

Floats = npt.NDArray[np.float64]

RIDGE = 1.0
"""Penalty RIDGE/2 · ‖b‖² on the coefficients of standardised features, none on the intercept.

It keeps the fit finite where the classes can be separated; among thousands of rows it changes nothing else.
"""

_ITERATIONS = 100
_TOLERANCE = 1e-10


class Model(NamedTuple):
    """A fitted model: log-odds = intercept + coefficients · (x − centre) / scale."""

    intercept: float
    coefficients: Floats
    centre: Floats
    scale: Floats

    def log_odds(self, features: Floats) -> Floats:
        """Return the log-odds of each row of shape (n, p)."""
        return np.asarray(self.intercept + (features - self.centre) / self.scale @ self.coefficients)


def fit(features: Floats, positive: npt.NDArray[np.bool_], ridge: float = RIDGE) -> Model:
    """Fit P(positive) to features by penalised maximum likelihood (iteratively reweighted least squares).

    Args:
        features: shape (n, p), finite; a column that does not vary gets coefficient 0.
        positive: shape (n,); at least one row of each kind.
        ridge: strength of the penalty.

    Raises:
        ValueError: all rows are of one kind, or the iteration does not converge.
    """
    if positive.all() or not positive.any():
        raise ValueError("a logistic model needs rows of both kinds")
    centre, scale = features.mean(axis=0), features.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    design = np.concatenate([np.ones((len(features), 1)), (features - centre) / scale], axis=1)
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = 0.0
    weights = np.zeros(design.shape[1])
    loss = _loss(design, positive, weights, penalty)
    for _ in range(_ITERATIONS):
        chance = expit(design @ weights)
        gradient = design.T @ (chance - positive) + penalty * weights
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design + np.diag(penalty)
        step = solve(curvature, gradient, assume_a="pos")
        # A full Newton step can overshoot far from the optimum; the loss is convex, so halving it suffices.
        while (new := _loss(design, positive, weights - step, penalty)) > loss + _TOLERANCE * abs(loss):
            step = step / 2
        weights, loss = weights - step, new
        if np.abs(step).max() < _TOLERANCE * (1 + np.abs(weights).max()):
            return Model(float(weights[0]), weights[1:], centre, scale)
    raise ValueError(f"the logistic model did not converge in {_ITERATIONS} steps")


def _loss(design: Floats, positive: npt.NDArray[np.bool_], weights: Floats, penalty: Floats) -> float:
    """Return the penalised negative log-likelihood."""
    odds = design @ weights
    return float(np.logaddexp(0, odds).sum() - odds[positive].sum() + (penalty * weights**2).sum() / 2)


def out_of_fold(
    features: Floats, positive: npt.NDArray[np.bool_], fold: npt.NDArray[np.int64]
) -> Floats | None:
    """Return each row's log-odds from a model fitted on the other folds, shape (n,).

    None where the rows outside some fold are all of one kind, so that no model can be fitted for it.
    """
    predicted = np.empty(len(positive))
    for k in np.unique(fold):
        others = fold != k
        if positive[others].all() or not positive[others].any():
            return None
        predicted[~others] = fit(features[others], positive[others]).log_odds(features[~others])
    return predicted
