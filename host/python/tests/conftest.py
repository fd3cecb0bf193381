"""What all tests share: they run on the CPU device, which every machine has."""

import numpy as np
import pytest

import gpu_gemm


def bound(a, b, unit, alpha=1.0, extra=0.0):
    """The largest error that an element of a product may have, by its terms and the unit roundoff of the sums.

    k rounded multiply-adds, and a few roundings at the end. `extra`: absolute values of what is added.
    """
    a, b = np.atleast_2d(np.abs(a).astype(np.float64)), np.abs(b).astype(np.float64)
    b = b[:, None] if b.ndim == 1 else b
    k = a.shape[-1]
    return (k + 4) * unit * (abs(alpha) * (a @ b) + extra) + 1e-300


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def on_cpu():
    """`matmul` on the CPU device."""

    def matmul(a, b, **options):
        return gpu_gemm.matmul(a, b, device="cpu", **options)

    return matmul
