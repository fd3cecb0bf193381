"""PyTorch's and JAX's arrays in host memory, where these are installed. On a GPU: gpu.py."""

import gc

import numpy as np
import pytest
from conftest import bound

import gpu_gemm
from gpu_gemm import _native


def test_torch(rng):
    torch = pytest.importorskip("torch")
    a, b = (torch.from_numpy(rng.standard_normal((6, 6))) for _ in range(2))
    result = gpu_gemm.matmul(a, b, device="cpu")
    assert type(result) is torch.Tensor
    assert (np.abs(result.numpy() - a.numpy() @ b.numpy()) <= bound(a.numpy(), b.numpy(), 2.0**-53)).all()
    out = torch.empty(6, 12, dtype=torch.float64)[:, ::2]
    assert gpu_gemm.matmul(a, b, out=out, device="cpu") is out and torch.equal(out, result)
    # Over an operand.
    into = a.clone()
    gpu_gemm.matmul(into, b, out=into, device="cpu")
    assert torch.equal(into, result)
    # The same elements by the methods that versions without the table of functions have.
    assert torch.equal(gpu_gemm.matmul(a.t().contiguous().t(), b, device="cpu"), result)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        assert gpu_gemm.matmul(a.to(dtype), b.to(dtype), device="cpu").dtype == dtype
    bytes_of = torch.from_numpy(rng.integers(-128, 128, (6, 6), np.int8))
    result = gpu_gemm.matmul(bytes_of, bytes_of.t(), device="cpu")
    assert result.dtype == torch.int32 and torch.equal(result, bytes_of.int() @ bytes_of.int().t())
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        eighths = torch.from_numpy(rng.integers(-12, 13, (6, 6)) / 8).to(dtype)
        rows = torch.from_numpy(2.0 ** rng.integers(-3, 4, (6, 1))).float()
        want = (rows.double() * eighths.double()) @ eighths.double().t()
        result = gpu_gemm.scaled_matmul(eighths, eighths.t(), rows, torch.ones(()), out_dtype=torch.bfloat16, device="cpu")
        # 36 / 64 of a power of two are exact in the sums, and bfloat16 rounds once.
        assert torch.equal(result, want.to(torch.bfloat16))
        with pytest.raises(TypeError, match="scale_a.dtype = .*float8_e8m0fnu: must be float32"):
            gpu_gemm.scaled_matmul(eighths, eighths, rows.to(torch.float8_e8m0fnu), torch.ones(()), device="cpu")
    moved = a.clone()
    product = gpu_gemm.prepare(moved, b, device="cpu")
    moved.set_(b.clone())
    with pytest.raises(RuntimeError) as caught:
        product()
    assert str(caught.value) == "a has other memory than when the product was prepared"


def test_torch_knows_what_is_written():
    torch = pytest.importorskip("torch")
    a, w, out = torch.ones(3, 3), torch.ones(3, 3, requires_grad=True), torch.ones(3, 3)
    product = gpu_gemm.prepare(a, a, out=out, device="cpu")
    for write in (lambda: gpu_gemm.matmul(a, a, out=out, device="cpu"), product):
        # The gradient of w is by the old elements of out.
        loss, before = (w * out).sum(), out._version
        write()
        assert out._version > before and a._version == 0
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    with pytest.raises(RuntimeError) as caught:
        gpu_gemm.matmul(a, a, out=w, device="cpu")
    assert str(caught.value).startswith("out.requires_grad = True: out= does not support automatic differentiation")
    with torch.inference_mode():
        assert torch.equal(gpu_gemm.matmul(a, a, out=torch.empty(3, 3), device="cpu"), a @ a)


def test_torch_refusals():
    torch = pytest.importorskip("torch")
    a = torch.ones(3, 3)
    negated = torch.ones(3, 3, dtype=torch.complex64).conj().imag

    class Own(torch.Tensor):
        pass

    for wrong, kind, message in (
        (torch.nn.Parameter(a), RuntimeError, "a.requires_grad = True: the product records no gradient"),
        (negated, ValueError, "a.is_neg() = True: must be False"),
        (a.int(), TypeError, "a.dtype = int32: must be float64"),
        (a.to("meta"), ValueError, "a.device = meta: must be host memory or a CUDA device"),
        (a.as_subclass(Own), TypeError, "type(a) = "),
        (a.to_sparse(), RuntimeError, ""),
    ):
        with pytest.raises(kind) as caught:
            gpu_gemm.matmul(wrong, a, device="cpu")
        assert str(caught.value).startswith(message)
    with torch.no_grad():
        assert torch.equal(gpu_gemm.matmul(torch.nn.Parameter(a), a, device="cpu"), a @ a)


def test_jax(rng):
    jax = pytest.importorskip("jax")
    # Where there is a GPU, JAX's arrays are on it if nothing is said.
    host = jax.devices("cpu")[0]
    for dtype in ("float32", "bfloat16", "float16"):
        with jax.default_device(host):
            a, b = (jax.numpy.asarray(rng.standard_normal((5, 5)), dtype=dtype) for _ in range(2))
        assert a.devices() == b.devices() == {host}
        before = _native._lent()
        result = gpu_gemm.matmul(a, b, device="cpu")
        assert isinstance(result, jax.Array) and result.dtype == dtype and result.devices() == {host}
        # It is this package's memory.
        assert _native._lent() == before + 1
        exact = np.asarray(a).astype(np.float64) @ np.asarray(b).astype(np.float64)
        assert (np.abs(np.asarray(result).astype(np.float64) - exact) <= 0.02 * np.abs(exact).max()).all()
        with pytest.raises(ValueError) as caught:
            gpu_gemm.matmul(a, b, out=result, device="cpu")
        assert str(caught.value) == "out = read-only: must be writable"
        del result, caught
        gc.collect()
        assert _native._lent() == before
