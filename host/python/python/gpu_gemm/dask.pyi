"""Products of dask arrays whose blocks `gpu_gemm.matmul` multiplies, on the workers of any scheduler."""

from typing import Any, Literal

from dask.array import Array

__all__ = ["chunks", "matmul"]

def matmul(
    a: Array,
    b: Array,
    *,
    rechunk: Literal["auto"] | None = None,
    memory: int | None = None,
    compute: Literal["native", "tf32", "bf16x6", "f16x3"] | None = None,
    device: str | None = None,
) -> Array: ...
def chunks(m: int, n: int, k: int, dtype: Any, memory: int) -> tuple[int, int, int]: ...
