"""The native module. `gpu_gemm` has its public names."""

from os import PathLike
from typing import Any, Literal, TypeVar, final, overload

__all__ = [
    "Array",
    "Check",
    "Prepared",
    "Profile",
    "__version__",
    "_gpus",
    "_lent",
    "_synchronize",
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
__version__: str

_A = TypeVar("_A")
_Out = TypeVar("_Out")
_Activation = Literal["identity", "relu", "gelu", "gelu_tanh", "silu"]
_Compute = Literal["native", "tf32", "bf16x6", "f16x3"]

@final
class Array:
    """A dense array in the memory of a device, for other libraries: by DLPack, or by `__cuda_array_interface__`."""

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: object = None, *, copy: bool | None = None) -> Any: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...

@final
class Prepared:
    """A product whose arguments were checked. A call runs it again, on the same arrays."""

    def __call__(self, *, stream: object = None) -> Any: ...
    @property
    def out(self) -> Any: ...
    def _library_ns(self, calls: int) -> list[int]: ...

@final
class Check:
    """A kernel's findings in some orders of blocks, warps and lanes."""

    @property
    def is_clean(self) -> bool: ...
    @property
    def findings(self) -> list[str]: ...
    @property
    def wrong(self) -> int: ...
    def _repr_html_(self) -> str: ...

@final
class Profile:
    """The accesses of a kernel, counted for each line of its source."""

    @property
    def lines(self) -> list[dict[str, Any]]: ...
    def _repr_html_(self) -> str: ...

@overload
def matmul(
    a: object,
    b: object,
    *,
    out: _Out,
    out_dtype: object = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: object = None,
    activation: _Activation | None = None,
    compute: _Compute | None = None,
    invariant: bool = False,
    tune: bool | str | PathLike[str] | None = None,
    stream: object = None,
    device: str | None = None,
) -> _Out: ...
@overload
def matmul(
    a: _A,
    b: object,
    *,
    out: None = None,
    out_dtype: object = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: object = None,
    activation: _Activation | None = None,
    compute: _Compute | None = None,
    invariant: bool = False,
    tune: bool | str | PathLike[str] | None = None,
    stream: object = None,
    device: str | None = None,
) -> _A: ...
@overload
def scaled_matmul(
    a: object,
    b: object,
    scale_a: object,
    scale_b: object,
    *,
    out: _Out,
    out_dtype: object = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: object = None,
    activation: _Activation | None = None,
    invariant: bool = False,
    tune: bool | str | PathLike[str] | None = None,
    stream: object = None,
    device: str | None = None,
) -> _Out: ...
@overload
def scaled_matmul(
    a: _A,
    b: object,
    scale_a: object,
    scale_b: object,
    *,
    out: None = None,
    out_dtype: object = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: object = None,
    activation: _Activation | None = None,
    invariant: bool = False,
    tune: bool | str | PathLike[str] | None = None,
    stream: object = None,
    device: str | None = None,
) -> _A: ...
def quantise(
    x: _A,
    scales: Literal["rows", "1x128", "128x128"],
    dtype: object,
    *,
    stream: object = None,
) -> tuple[_A, _A]: ...
def prepare(
    a: object,
    b: object,
    *,
    scale_a: object = None,
    scale_b: object = None,
    out: object = None,
    out_dtype: object = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: object = None,
    activation: _Activation | None = None,
    compute: _Compute | None = None,
    invariant: bool = False,
    tune: bool | str | PathLike[str] | None = None,
    device: str | None = None,
) -> Prepared: ...
def default_device() -> tuple[str, str | None]: ...
def devices() -> list[tuple[str, str]]: ...
def kernels() -> list[tuple[str, str]]: ...
def check(kernel: str, m: int = 64, n: int = 64, k: int = 64, *, orders: int = 3) -> Check: ...
def profile(kernel: str, m: int = 64, n: int = 64, k: int = 64, *, every: int = 1) -> Profile: ...
def _gpus() -> int: ...
def _lent() -> int: ...
def _synchronize(index: int) -> None: ...
