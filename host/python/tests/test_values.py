"""Values, against NumPy in float64, with error bounds."""

import math

import ml_dtypes
import numpy as np
import pytest
from conftest import bound
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_gemm

UNIT = {np.float64: 2.0**-53, np.float32: 2.0**-24, np.float16: 2.0**-11, ml_dtypes.bfloat16: 2.0**-8}
SUMS = {np.float64: 2.0**-53, np.float32: 2.0**-24, np.float16: 2.0**-24, ml_dtypes.bfloat16: 2.0**-24}
sizes = st.integers(0, 9)


@st.composite
def layouts(draw, rng, shape, dtype):
    """An array of that shape: C or Fortran order, reversed, strided, broadcast, at an odd offset."""
    kind = draw(st.sampled_from(["c", "f", "reversed", "strided", "broadcast", "offset", "transposed"]))
    whole = rng.standard_normal(shape).astype(dtype)
    if kind == "f":
        return np.asfortranarray(whole)
    if kind == "reversed":
        return whole[..., ::-1]
    if kind == "strided":
        wide = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)
        wide[..., ::2] = whole
        return wide[..., ::2]
    if kind == "broadcast":
        return np.broadcast_to(whole[..., :1], shape) if shape[-1] else whole
    if kind == "offset":
        raw = np.zeros(whole.nbytes + 1, np.uint8)[1:]
        raw[:] = np.frombuffer(whole.tobytes(), np.uint8)
        return raw.view(dtype).reshape(shape)
    if kind == "transposed":
        return np.swapaxes(np.ascontiguousarray(np.swapaxes(whole, -1, -2)), -1, -2) if len(shape) > 1 else whole
    return whole


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_products(data):
    dtype = data.draw(st.sampled_from(list(UNIT)))
    m, n, k = data.draw(sizes), data.draw(sizes), data.draw(sizes)
    batch = data.draw(st.sampled_from([((), ()), ((2,), ()), ((), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0,), (1,))]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    a = data.draw(layouts(rng, (*batch[0], m, k), dtype))
    b = data.draw(layouts(rng, (*batch[1], k, n), dtype))
    alpha, beta = data.draw(st.sampled_from([(1.0, 0.0), (0.5, 2.0), (-1.0, 1.0)]))
    exact = np.matmul(a.astype(np.float64), b.astype(np.float64))
    out = rng.standard_normal(exact.shape).astype(dtype)
    expected = alpha * exact + beta * out.astype(np.float64)
    limit = bound(a, b, SUMS[dtype], alpha, beta * np.abs(out.astype(np.float64)))
    limit = limit + 2 * UNIT[dtype] * np.abs(expected)
    result = gpu_gemm.matmul(a, b, out=out, alpha=alpha, beta=beta, device="cpu")
    assert result is out and result.dtype == dtype
    error = np.abs(out.astype(np.float64) - expected)
    assert (error <= limit).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_a_result_in_float32(dtype, rng, on_cpu):
    a, b = (rng.standard_normal((17, 17)).astype(dtype) for _ in range(2))
    out = np.empty((17, 17), np.float32)
    on_cpu(a, b, out=out)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert (np.abs(out - exact) <= bound(a, b, 2.0**-24)).all()


def test_bias_and_activation(rng, on_cpu):
    a, b = rng.standard_normal((5, 7)), rng.standard_normal((7, 3))
    row, column = rng.standard_normal(3), rng.standard_normal((5, 1))
    limit = bound(a, b, 2.0**-53, extra=4.0)
    for bias in (row, row[None, :], column):
        result = on_cpu(a, b, bias=bias, activation="relu")
        assert (np.abs(result - np.maximum(a @ b + bias, 0)) <= limit).all()
    # With a matrix and a vector the result is a vector, and so is the bias.
    result = on_cpu(a, b[:, 0].copy(), bias=column[:, 0].copy())
    assert (np.abs(result - (a @ b[:, 0] + column[:, 0])) <= limit[:, 0]).all()
    result = on_cpu(a[0].copy(), b, bias=row[::-1])
    assert (np.abs(result - (a[0] @ b + row[::-1])) <= limit[0]).all()


def erf(x):
    return np.vectorize(math.erf)(x)


# Named as in PyTorch; float64.
SMOOTH = {
    "gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("activation", SMOOTH)
def test_smooth_activations(activation, rng, on_cpu):
    a, b = 3 * rng.standard_normal((50, 7)), rng.standard_normal((7, 30))
    for dtype, unit in ((np.float64, 2.0**-53), (np.float32, 2.0**-24), (np.float16, 2.0**-11)):
        x, y = a.astype(dtype), b.astype(dtype)
        out = np.zeros((50, 30), dtype)
        on_cpu(x, y, out=out, activation=activation)
        product = x.astype(np.float64) @ y.astype(np.float64)
        want = SMOOTH[activation](product)
        # The slope is at most 1.13. The value may be off by four units in the last place, of which one is C's own.
        limit = 1.2 * bound(x, y, min(unit, 2.0**-24)) + 8 * unit * np.abs(want) + 2.0**-24 * (dtype == np.float16)
        assert (np.abs(out - want) <= limit + 2.0**-51 * np.abs(product)).all()


def test_a_batch_with_a_bias_for_each_row(rng, on_cpu):
    """The rows of such a batch cannot become those of one product."""
    a, b, bias = rng.standard_normal((4, 5, 7)), rng.standard_normal((7, 3)), rng.standard_normal((5, 1))
    error = np.abs(on_cpu(a, b, bias=bias) - (a @ b + bias))
    assert (error <= (7 + 4) * 2.0**-53 * (np.abs(a) @ np.abs(b) + np.abs(bias))).all()


@pytest.mark.parametrize("compute", [None, "native", "tf32", "bf16x6", "f16x3"])
def test_arithmetic(compute, rng, on_cpu):
    a, b = (rng.standard_normal((32, 32)).astype(np.float32) for _ in range(2))
    limit = bound(a, b, 2.0**-10 if compute == "tf32" else 2.0**-24)
    assert (np.abs(on_cpu(a, b, compute=compute) - a.astype(np.float64) @ b) <= limit).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_a_row_has_the_same_bits_whatever_is_beside_it(dtype, rng, on_cpu):
    a, b = rng.standard_normal((3, 70, 100)).astype(dtype), rng.standard_normal((100, 40)).astype(dtype)
    all_rows = on_cpu(a, b, invariant=True)
    for rows in (1, 3, 64):
        assert np.array_equal(on_cpu(a[1, 5 : 5 + rows], b, invariant=True), all_rows[1, 5 : 5 + rows])


def test_bytes(rng, on_cpu):
    """Sums of int8 are int32 and exact, in any order, also of the largest products."""

    def drawn(*shape):
        return rng.integers(-128, 128, shape, np.int8)

    for a, b in (
        (drawn(37, 70), drawn(70, 25)),
        (drawn(3, 5, 16), drawn(16, 9)),
        (drawn(2, 1, 4, 7), drawn(3, 7, 8)),
        (drawn(30, 5)[::2].T[::-1], drawn(40, 20)[:15, 3::2]),
        (drawn(9), drawn(9)),
        (drawn(0, 4), drawn(4, 3)),
        (drawn(3, 0), drawn(0, 3)),
        (np.full((2, 300), -128, np.int8), np.full((300, 2), -128, np.int8)),
    ):
        expected = a.astype(np.int32) @ b.astype(np.int32)
        result = on_cpu(a, b)
        assert result.dtype == np.int32 and np.array_equal(result, expected)
        out = np.full(expected.shape, 7, np.int32)
        if out.ndim:
            assert on_cpu(a, b, out=out, alpha=-3, beta=2) is out
            assert np.array_equal(out, 14 - 3 * expected)
    a, b = drawn(6, 8), drawn(8, 5)
    product = gpu_gemm.prepare(a, b, device="cpu")
    for _ in range(2):
        assert product().dtype == np.int32 and np.array_equal(product.out, a.astype(np.int32) @ b)
        a[:] = drawn(6, 8)


def test_a_tuned_product(rng, on_cpu, tmp_path):
    """Small integers: whichever kernel is the fastest is exact. The old elements are read once."""
    a, b, c = (rng.integers(-5, 6, size).astype(np.float32) for size in ((20, 30), (30, 40), (20, 40)))
    file = tmp_path / "answers.txt"
    for tune in (True, True, file, str(file)):
        assert np.array_equal(on_cpu(a, b, tune=tune), a @ b)
        assert np.array_equal(on_cpu(a, b, out=c.copy(), beta=1.0, tune=tune), a @ b + c)
    assert len(file.read_text().splitlines()) == 3
    damaged = tmp_path / "damaged.txt"
    damaged.write_text("no answers")
    with pytest.raises(RuntimeError, match="damaged.txt: line 1 = "):
        on_cpu(a, b, tune=damaged)
    assert damaged.read_text() == "no answers"


def test_out_may_be_anywhere(rng, on_cpu):
    a, b = rng.standard_normal((6, 6)), rng.standard_normal((6, 6))
    expected = on_cpu(a, b)
    wide = np.full((6, 12), np.nan)
    for out in (wide[:, ::2], wide[:, 5::-1], wide[::-1, :6], np.empty((6, 6)).T):
        assert on_cpu(a, b, out=out) is out
        assert np.array_equal(out, expected)
    # Over an operand, as NumPy's.
    into = a.copy()
    on_cpu(into, b, out=into)
    assert np.array_equal(into, expected)
    raw = np.zeros(6 * 6 * 8 + 1, np.uint8)[1:].view(np.float64).reshape(6, 6)
    on_cpu(a, b, out=raw)
    assert np.array_equal(raw, expected)
    swapped = np.zeros((6, 6), ">f8")
    on_cpu(a.astype(">f8"), b, out=swapped)
    assert np.array_equal(swapped, expected)
    # The old elements of a temporary are read, too.
    old = rng.standard_normal((6, 12))[:, ::-2]
    total = expected + old
    on_cpu(a, b, out=old, beta=1.0)
    assert (np.abs(old - total) <= bound(a, b, 2.0**-53, extra=4.0)).all()


def test_a_prepared_product(rng):
    a, b = (rng.standard_normal((8, 8)) for _ in range(2))
    out = np.empty((8, 8))
    product = gpu_gemm.prepare(a, b, out=out, alpha=2.0, device="cpu")
    assert product() is out and product.out is out
    assert np.array_equal(out, gpu_gemm.matmul(a, b, alpha=2.0, device="cpu"))
    a *= 3.0
    product()
    assert np.array_equal(out, gpu_gemm.matmul(a, b, alpha=2.0, device="cpu"))
    made = gpu_gemm.prepare(a, b, device="cpu")
    del a, b
    assert (np.abs(made() * 2.0 - out) <= 1e-12 * np.abs(out).max()).all()
