"""Matrix products of NumPy, PyTorch, CuPy and JAX arrays by kernels written in Rust.

A GPU needs its driver, and no CUDA toolkit. Without a GPU the same kernels run on the CPU.
"""

from ._native import (
    Array,
    Check,
    Prepared,
    Profile,
    __version__,
    check,
    default_device,
    devices,
    kernels,
    matmul,
    prepare,
    profile,
    quantise,
    scaled_matmul,
)

__all__ = [
    "Array",
    "Check",
    "Prepared",
    "Profile",
    "check",
    "default_device",
    "devices",
    "kernels",
    "matmul",
    "prepare",
    "profile",
    "quantise",
    "scaled_matmul",
]
