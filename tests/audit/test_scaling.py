"""Classical scaling gives points in the plane back, and its axes are held to what they go with."""

import numpy as np
import pytest
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist
from sklearn.manifold import ClassicalMDS

from oracle import InputError
from validation.audit.scaling import axis_fit, classical_scaling


def plane(seed=0, heads=13):
    return np.random.default_rng(seed).standard_normal((heads, 2)) * [3, 1]


def test_points_in_the_plane_come_back_up_to_a_rotation():
    points = plane()
    found = classical_scaling(cdist(points, points))
    assert np.abs(cdist(found.points, found.points) - cdist(points, points)).max() < 1e-12
    assert procrustes(points, found.points)[2] < 1e-24
    assert sum(found.explained) == pytest.approx(1, abs=1e-12)
    assert found.explained[0] > found.explained[1]
    assert found.negative == 0
    assert not np.signbit(found.negative)  # which a table would show as -0.0%


def test_it_is_the_scaling_of_scikit_learn_and_of_the_coordinates():
    points = np.random.default_rng(1).standard_normal((17, 5))
    found = classical_scaling(cdist(points, points))
    theirs = ClassicalMDS(n_components=2, metric="precomputed").fit(cdist(points, points))
    assert np.abs(np.abs(found.points) - np.abs(theirs.embedding_)).max() < 1e-12
    centred = points - points.mean(axis=0)
    variances = np.linalg.svd(centred, compute_uv=False) ** 2
    assert found.explained == pytest.approx(variances[:2] / variances.sum(), rel=1e-12)


def test_the_axes_have_their_signs_by_a_rule():
    points = classical_scaling(cdist(plane(), plane())).points
    assert (points[np.abs(points).argmax(axis=0), [0, 1]] > 0).all()
    assert np.abs(points.mean(axis=0)).max() < 1e-13


def test_what_is_not_euclidean_has_a_negative_share():
    # Four points around a centre that is nearer to them than half their distances: no space has such points.
    star = np.full((5, 5), 2.0)
    star[0] = star[:, 0] = 0.5
    np.fill_diagonal(star, 0)
    found = classical_scaling(star)
    centred = np.eye(5) - 1 / 5
    values = np.linalg.eigvalsh(-centred @ star**2 @ centred / 2)
    assert found.negative == pytest.approx(-values.min() / np.abs(values).sum(), rel=1e-12)
    assert found.negative > 0.1


def test_equal_heads_have_no_shares_and_lie_on_one_point():
    found = classical_scaling(np.zeros((4, 4)))
    assert not found.points.any()
    assert np.isnan([*found.explained, found.negative]).all()


def test_points_on_a_line_have_no_second_axis():
    line = np.arange(6.0)
    found = classical_scaling(np.abs(line[:, None] - line))
    assert found.explained[0] == pytest.approx(1, abs=1e-12)
    assert not found.points[:, 1].any()
    assert found.explained[1] == 0


def test_nan_is_refused_with_its_count():
    distances = np.zeros((3, 3))
    distances[0, 1] = distances[1, 0] = np.nan
    with pytest.raises(InputError, match="finite distance for every pair of heads; found 2 that are not"):
        classical_scaling(distances)


def test_a_covariate_made_of_the_axes_is_found():
    points = classical_scaling(cdist(plane(), plane())).points
    assert axis_fit(points, 5 - 2 * points[:, 0]) == pytest.approx((-1, 1, 13), abs=1e-12)
    assert axis_fit(points, points[:, 1]) == pytest.approx((0, 1, 13), abs=1e-12)
    both = points[:, 0] / points[:, 0].std() + points[:, 1] / points[:, 1].std()
    assert axis_fit(points, both) == pytest.approx((np.sqrt(0.5), 1, 13), abs=1e-12)


def test_the_fit_is_that_of_ordinary_least_squares():
    rng = np.random.default_rng(2)
    points, covariate = plane(3, 30), rng.standard_normal(30)
    design = np.column_stack([np.ones(30), points])
    rest = covariate - design @ np.linalg.solve(design.T @ design, design.T @ covariate)
    found = axis_fit(points, covariate)
    assert found.r_squared == pytest.approx(1 - rest @ rest / (covariate.var() * 30), abs=1e-13)
    assert found.correlation == pytest.approx(np.corrcoef(covariate, points[:, 0])[0, 1], abs=1e-13)


def test_noise_gives_two_over_heads_less_one():
    rng = np.random.default_rng(4)
    points = plane(5, 21)
    found = [axis_fit(points, rng.standard_normal(21)).r_squared for _ in range(400)]
    assert np.mean(found) == pytest.approx(2 / 20, abs=0.012)  # five standard errors of 400 draws


def test_heads_without_the_covariate_are_left_out():
    points = plane(6, 12)
    covariate = points @ [1.0, 2.0]
    covariate[[2, 7]] = np.nan
    assert axis_fit(points, covariate)[1:] == pytest.approx((1, 10), abs=1e-12)


@pytest.mark.parametrize("covariate", [[0.1] * 5, [np.nan, np.nan, 1, 2, 3]])
def test_a_constant_or_too_few_heads_say_nothing(covariate):
    found = axis_fit(plane(7, 5), np.array(covariate))
    assert np.isnan(found[:2]).all()
    assert found.n_heads == np.isfinite(covariate).sum()


def test_axes_of_zero_say_nothing():
    assert np.isnan(axis_fit(np.zeros((5, 2)), np.arange(5.0))[:2]).all()
