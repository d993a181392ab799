"""What all tests share: the same random numbers in every run."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def same_random_numbers():
    """What ``random_state=None`` draws from: by chance, one run in twenty failed where it drew."""
    np.random.seed(0)  # noqa: NPY002 -- this is the generator that None stands for


@pytest.fixture(scope="module")
def single_thread():
    """For files of few rows: BLAS wakes its threads for each of them and then waits longer."""
    with threadpool_limits(1):
        yield
