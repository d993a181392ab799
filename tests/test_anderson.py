"""Anderson's acceleration: exact where the iteration is linear and small, harmless elsewhere."""

import numpy as np
import pytest

from tvsvm.solvers._anderson import MEMORY, Anderson


def contraction(n):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, n))
    A = A @ A.T  # as with splittings of convex problems, slow in a few directions
    A *= 0.95 / np.linalg.norm(A, 2)
    b = rng.standard_normal((n, 1))
    return lambda z: A @ z + b, np.linalg.solve(np.eye(n) - A, b)


@pytest.mark.parametrize("n", range(1, MEMORY + 1))
def test_as_many_steps_as_there_are_numbers_are_enough(n):
    step, fixed = contraction(n)
    past, z = Anderson(), np.zeros((n, 1))
    for _ in range(n + 1):
        z = past.next(z, step(z))
    np.testing.assert_allclose(z, fixed, atol=1e-6)


def test_fewer_steps_than_without():
    step, fixed = contraction(30)

    def steps(go_on):
        z, count = np.zeros((30, 1)), 0
        while np.linalg.norm(z - fixed) > 1e-6:
            z, count = go_on(z, step(z)), count + 1
        return count

    assert steps(Anderson().next) < 0.7 * steps(lambda z, end: end)


def test_forgets_a_past_that_misleads():
    past = Anderson()
    past.next(np.array([0.0]), np.array([1.0]))
    past.next(np.array([1.0]), np.array([1.5]))
    np.testing.assert_array_equal(past.next(np.array([2.0]), np.array([9.0])), [9.0])


def test_stays_at_a_fixed_point_and_begins_anew():
    past, z = Anderson(), np.ones((3, 2))
    for _ in range(4):
        np.testing.assert_array_equal(past.next(z, z), z)
    past.forget()
    np.testing.assert_array_equal(past.next(z, 2 * z), 2 * z)
