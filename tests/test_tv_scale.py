"""Order and scale of the graph-TV prox: what numpy would make of it, and back to the last digit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tvsvm.solvers._tv_scale import bring_in, bring_out, location_and_scale, rounding_floor

law = settings(deadline=None, derandomize=True, max_examples=50)
functions = hnp.arrays(
    st.sampled_from([np.float32, np.float64]),
    st.tuples(st.integers(1, 9), st.integers(1, 5)),
    elements=st.floats(-1e6, 1e6, width=32),
)


@law
@given(functions, st.randoms(use_true_random=False))
def test_in_is_what_numpy_makes_and_out_is_the_way_back(z, random):
    order = np.array(random.sample(range(len(z)), len(z)))
    shift, scale = location_and_scale(z)
    assert shift.dtype == scale.dtype == z.dtype
    inside, outside = np.empty_like(z), np.empty_like(z)
    bring_in(z, order, shift, scale, inside)
    np.testing.assert_array_equal(inside, ((z - shift) / scale)[order])
    assert np.abs(inside).max() <= 1.0
    bring_out(inside, order, shift, scale, outside)
    np.testing.assert_allclose(outside, z, atol=4 * np.finfo(z.dtype).eps * np.abs(z).max())


@law
@given(functions)
def test_the_floor_is_rounding_of_what_varies(z):
    variance = np.var(z.astype(np.float64), axis=0)
    expected = 0.5 * float(np.finfo(z.dtype).eps) * len(z) * variance
    size = float(np.abs(z).max()) * np.finfo(z.dtype).eps
    np.testing.assert_allclose(rounding_floor(z), expected, rtol=1e-3, atol=size**2 * len(z))


@pytest.mark.parametrize("value", [0.0, 5e-324, 1e300, -1.7e308])
def test_a_constant_has_no_scale(value):
    shift, scale = location_and_scale(np.full((4, 2), value))
    np.testing.assert_array_equal(scale, 1.0)
    np.testing.assert_allclose(shift, value, atol=1e-323)
