"""8-bit numbers, and scales of them, against NumPy in float64, with the bound of docs/design/numerics.md."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_dlpack import Producer

import gpu_gemm

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
# Of the terms: tensor cores cut the sums of 128 steps off after 13 bits. Without subnormal factors.
SUMS = 34 * 4 * 2.0**-13
UNIT = {np.float32: 2.0**-24, np.float16: 2.0**-11, ml_dtypes.bfloat16: 2.0**-8}
NAMES = {np.float32: "float32", np.float16: np.dtype(np.float16), ml_dtypes.bfloat16: ml_dtypes.bfloat16}
KINDS = ["one", "one and columns", "rows and one", "rows and columns", "blocks"]


def wide(array):
    return array.astype(np.float64)


def eighths(rng, shape, dtype):
    """Numbers of either sign from 1/8 to 15/8 (e5m2: 7/4): no sum loses more than the bound says."""
    return (rng.integers(1, 16, shape) * rng.choice([-0.125, 0.125], shape)).astype(dtype)


def parts(kind, m, n, k):
    """The shapes of the scales."""
    if kind == "blocks":
        return (m, -(-k // 128)), (-(-k // 128), -(-n // 128))
    return (m if "rows" in kind else 1, 1), (1, n if "columns" in kind else 1)


def spread(scales, rows, cols, block):
    """Scales for each element of a matrix."""
    if block:
        scales = np.repeat(np.repeat(wide(scales), block[0], -2), block[1], -1)[..., :rows, :cols]
    return np.broadcast_to(wide(scales), (*scales.shape[:-2], rows, cols))


def exact(a, b, scale_a, scale_b, kind):
    """The product, and that of the absolute values."""
    (m, k), n = a.shape[-2:], b.shape[-1]
    blocks = [(1, 128), (128, 128)] if kind == "blocks" else [None, None]
    a, b = wide(a) * spread(scale_a, m, k, blocks[0]), wide(b) * spread(scale_b, k, n, blocks[1])
    return a @ b, np.abs(a) @ np.abs(b)


def within(result, product, terms, dtype, extra=0.0):
    limit = SUMS * terms + 2 * UNIT[dtype] * (np.abs(product) + extra) + 2.0**-20 * (terms + extra)
    assert result.dtype == dtype and (np.abs(wide(result) - product) <= limit).all()


def view(data, rng, values):
    """The same values at other strides."""
    kind = data.draw(st.sampled_from(["c", "f", "reversed", "gaps"]))
    if kind == "f":
        return np.asfortranarray(values)
    if kind == "reversed":
        return np.ascontiguousarray(values[..., ::-1])[..., ::-1]
    if kind == "gaps":
        wide_one = rng.random((*values.shape[:-1], 3 * values.shape[-1])).astype(values.dtype)
        wide_one[..., 1::3] = values
        return wide_one[..., 1::3]
    return values


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_products(data):
    of = data.draw(st.sampled_from([E4M3, E5M2]))
    dtype = data.draw(st.sampled_from(list(UNIT)))
    kind = data.draw(st.sampled_from(KINDS))
    m, n, k = (data.draw(st.sampled_from(sizes)) for sizes in ([0, 1, 3, 70], [0, 1, 5, 130], [0, 1, 40, 300]))
    batch = data.draw(st.sampled_from([((), ()), ((2,), ()), ((), (2,)), ((2, 1), (3,))]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    a, b = eighths(rng, (*batch[0], m, k), of), eighths(rng, (*batch[1], k, n), of)
    leading = data.draw(st.sampled_from([batch, ((), ())]))
    scales = [
        view(data, rng, rng.uniform(0.25, 4, (*of_batch, *shape)).astype(np.float32))
        for of_batch, shape in zip(leading, parts(kind, m, n, k))
    ]
    product, terms = exact(a, b, *scales, kind)
    bias = rng.standard_normal(n).astype(dtype) if data.draw(st.booleans()) else None
    if bias is not None:
        product = product + wide(bias)
    if data.draw(st.booleans()):
        product, activation = np.maximum(product, 0), "relu"
    else:
        activation = None
    a, b = view(data, rng, a), view(data, rng, b)
    result = gpu_gemm.scaled_matmul(a, b, *scales, out_dtype=NAMES[dtype], bias=bias, activation=activation, device="cpu")
    within(result, product, terms, dtype, 4.0)
    out = np.full(product.shape, 3, dtype)
    assert gpu_gemm.scaled_matmul(a, b, *scales, out=out, alpha=2, beta=0.5, device="cpu") is out
    plain, _ = exact(a, b, *scales, kind)
    within(out, 2 * plain + 1.5, 2 * terms, dtype, 4.0)


@pytest.mark.parametrize("of", [E4M3, E5M2])
def test_without_scales(of, rng, on_cpu):
    a, b = eighths(rng, (3, 40, 200), of), eighths(rng, (200, 30), of)
    product, terms = wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b))
    within(on_cpu(a, b), product, terms, np.float32)
    for dtype, named in NAMES.items():
        within(on_cpu(a, b, out_dtype=named), product, terms, dtype)
        out = np.empty(product.shape, dtype)
        assert on_cpu(a, b, out=out, out_dtype=named) is out
        within(out, product, terms, dtype)
    made = gpu_gemm.prepare(a, b, out_dtype="bfloat16", device="cpu")
    within(made(), product, terms, ml_dtypes.bfloat16)


@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("kind", ["one", "one and columns", "rows and columns"])
def test_int8(kind, dtype):
    """Sums of int8 are exact: what is off is rounded after them."""
    rng = np.random.default_rng(9)
    m, n, k = 70, 33, 300
    a, b = (rng.integers(-128, 128, size, np.int8) for size in ((m, k), (k, n)))
    scale_a, scale_b = (rng.uniform(2.0**-12, 2.0**-9, size).astype(np.float32) for size in parts(kind, m, n, k))
    result = gpu_gemm.scaled_matmul(a, b, scale_a, scale_b, out_dtype=NAMES[dtype], device="cpu")
    product, _ = exact(a, b, scale_a, scale_b, kind)
    limit = (UNIT[dtype] + 4 * 2.0**-24) * np.abs(product) + 2.0**-24
    assert result.dtype == dtype and (np.abs(wide(result) - product) <= limit).all()
    assert gpu_gemm.scaled_matmul(a, b, scale_a, scale_b, device="cpu").dtype == np.float32
    assert (gpu_gemm.matmul(a, b, out_dtype="float32", device="cpu") == wide(a) @ wide(b)).all()


def test_scales_of_blocks_of_int8():
    a, b = np.ones((5, 300), np.int8), np.ones((300, 200), np.int8)
    with pytest.raises(ValueError, match="scales = of blocks: must be of rows and columns for integers"):
        gpu_gemm.scaled_matmul(a, b, np.ones((5, 3), np.float32), np.ones((3, 2), np.float32), device="cpu")
    with pytest.raises(ValueError, match="must be of 8-bit numbers with a C of floating-point numbers"):
        gpu_gemm.scaled_matmul(a, b, np.ones((5, 1), np.float32), np.ones((1, 200), np.float32), out_dtype="int32", device="cpu")


def test_out_dtype_of_other_types(rng, on_cpu):
    a = rng.integers(-9, 10, (5, 5)).astype(np.float16)
    result = on_cpu(a, a, out_dtype=np.float32)
    assert result.dtype == np.float32 and np.array_equal(result, wide(a) @ wide(a))


def test_dlpack(rng):
    """NumPy gives no 8-bit floats by DLPack: these are those of another library."""
    a, b = eighths(rng, (5, 140), E4M3), eighths(rng, (140, 9), E4M3)

    scales = [Producer(rng.uniform(0.5, 2, shape).astype(np.float32)) for shape in parts("blocks", 5, 9, 140)]
    operands = [Producer(array.view(np.uint8), code=10) for array in (a, b)]
    result = np.asarray(gpu_gemm.scaled_matmul(*operands, *scales, device="cpu"))
    within(result, *exact(a, b, *(scale.array for scale in scales), "blocks"), np.float32)


def test_a_prepared_product_reads_its_scales_again(rng):
    a, b = eighths(rng, (6, 200), E4M3), eighths(rng, (200, 8), E4M3)
    scales = [np.ones((6, 1), np.float32), np.ones((1, 1), np.float32)]
    product = gpu_gemm.prepare(a, b, scale_a=scales[0], scale_b=scales[1], device="cpu")
    first = product().copy()
    scales[0][2] = 4
    scales[1][:] = 0.5
    want = first * 0.5
    want[2] *= 4
    assert np.array_equal(product(), want)
    scales[0].resize((7, 1), refcheck=False)
    with pytest.raises(RuntimeError, match="scale_a"):
        product()


def test_a_row_has_the_same_bits_whatever_is_beside_it(rng):
    a, b = eighths(rng, (2, 70, 300), E4M3), eighths(rng, (300, 40), E4M3)
    for kind in KINDS:
        of_a, of_b = (rng.uniform(0.5, 2, shape).astype(np.float32) for shape in parts(kind, 70, 40, 300))

        def product(a, scales):
            return gpu_gemm.scaled_matmul(a, b, scales, of_b, invariant=True, device="cpu")

        one_row = product(a[1, 5:6], of_a[5:6] if len(of_a) > 1 else of_a)
        assert np.array_equal(product(a, of_a)[1, 5:6], one_row)


def test_out_over_scales(rng):
    a, b = np.ones((4, 4), E4M3), np.ones((4, 4), E4M3)
    out = np.full((4, 4), 2, np.float32)
    gpu_gemm.scaled_matmul(a, b, out[:, :1], out[:1], out=out, device="cpu")
    assert (out == 16).all()


A, B = np.ones((5, 300), E4M3), np.ones((300, 200), E4M3)
ROWS, COLS = np.ones((5, 1), np.float32), np.ones((1, 200), np.float32)
BLOCKS = np.ones((5, 3), np.float32), np.ones((3, 2), np.float32)


@pytest.mark.parametrize(
    "scales, kind, message",
    [
        ((ROWS.T, COLS), ValueError, "scale_a.shape = (1, 5): must be (1, 1), (5, 1) for each row of a or (5, 3) for blocks of 1 x 128"),
        ((ROWS, COLS.T), ValueError, "scale_b.shape = (200, 1): must be (1, 1), (1, 200) for each column of b or (3, 2) for blocks of 128 x 128"),
        ((ROWS, BLOCKS[1]), ValueError, "scale_b.shape = (3, 2): must be (1, 1) or (1, 200): scale_a is of no blocks"),
        ((BLOCKS[0], COLS), ValueError, "scale_b.shape = (1, 200): must be (3, 2): scale_a is of blocks of 1 x 128"),
        ((ROWS[None].repeat(2, 0), COLS), ValueError, "scale_a.shape = (2, 5, 1): the leading dimensions of a and b are ()"),
        ((ROWS.astype(np.float64), COLS), TypeError, "scale_a.dtype = float64: must be float32"),
        ((ROWS, COLS.astype(ml_dtypes.float8_e8m0fnu)), TypeError, "scale_b.dtype = float8_e8m0fnu: must be float32"),
        ((2.0, COLS), TypeError, "type(scale_a) = builtins.float: must be an array of NumPy"),
    ],
)
def test_wrong_scales(scales, kind, message):
    with pytest.raises(kind) as caught:
        gpu_gemm.scaled_matmul(A, B, *scales, device="cpu")
    assert str(caught.value).startswith(message)


def test_powers_of_two_of_another_library():
    powers = Producer(np.ones((5, 1), np.uint8), code=14)
    with pytest.raises(TypeError, match="scale_a.dtype = float8_e8m0fnu: must be float32"):
        gpu_gemm.scaled_matmul(A, B, powers, COLS, device="cpu")


F = np.ones((2, 2), np.float32)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: gpu_gemm.scaled_matmul(F, F, F[:1, :1], F[:1, :1], device="cpu"), ValueError, "scales = of f32: must be of 8-bit numbers with a C of floating-point numbers"),
        (lambda: gpu_gemm.matmul(A, B.astype(E5M2), device="cpu"), TypeError, "b.dtype = float8_e5m2: must be float8_e4m3fn, as a"),
        (lambda: gpu_gemm.matmul(A.astype(ml_dtypes.float8_e4m3), B, device="cpu"), TypeError, "a.dtype = float8_e4m3: must be float64"),
        (lambda: gpu_gemm.prepare(A, B, scale_a=ROWS, device="cpu"), ValueError, "scale_a, scale_b = one of them: must be both arrays, or both None"),
        (lambda: gpu_gemm.prepare(A, B, scale_b=COLS, device="cpu"), ValueError, "scale_a, scale_b = one of them: must be both arrays, or both None"),
        (lambda: gpu_gemm.matmul(A, B, out_dtype="float64", device="cpu"), ValueError, "out_dtype = float64: must be float32, where a is float8_e4m3fn, or bfloat16, or float16"),
        (lambda: gpu_gemm.matmul(F, F, out_dtype=float, device="cpu"), ValueError, "out_dtype = <class 'float'>: must be None, float64, int32, float32, float16 or bfloat16"),
        (lambda: gpu_gemm.matmul(A, B, out=np.ones((5, 200), np.float32), out_dtype="bfloat16", device="cpu"), TypeError, "out.dtype = float32: must be bfloat16, out_dtype"),
        (lambda: gpu_gemm.prepare(A, B[:, ::2], scale_a=ROWS, scale_b=COLS[:, ::2], device="cpu"), ValueError, "b.strides in elements = [200, 2]: must be 1 along a side, with scales"),
        (lambda: gpu_gemm.scaled_matmul(A, B, *BLOCKS, out=np.ones((200, 5), np.float32).T, device="cpu"), ValueError, "scales = of blocks: must be with a C whose rows are contiguous"),
    ],
)
def test_refusals(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("dtype, largest", [(E4M3, 448), (E5M2, 57344), (np.int8, 127)])
@pytest.mark.parametrize("kind, block", [("rows", (1, 10**6)), ("1x128", (1, 128)), ("128x128", (128, 128))])
@pytest.mark.parametrize("of", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_quantise_is_the_documented_rounding(of, kind, block, dtype, largest):
    rng = np.random.default_rng(7)
    m, k = 130, 275
    x = (rng.standard_normal((m, k)) * rng.choice([0, 1, 2.0**-9, 64], (m, 1))).astype(of)
    for given_x in [x, np.asfortranarray(x)]:
        q, scales = gpu_gemm.quantise(given_x, kind, dtype)
        down, across = min(block[0], m), min(block[1], k)
        assert q.dtype == dtype and scales.dtype == np.float32 and q.shape == x.shape
        assert scales.shape == (-(-m // down), -(-k // across))
        for i, j in np.ndindex(*scales.shape):
            part = np.s_[i * down : (i + 1) * down, j * across : (j + 1) * across]
            most = np.abs(x[part].astype(np.float32)).max()
            scale = most / np.float32(largest) if most else np.float32(1)
            assert scales[i, j] == scale
            divided = x[part].astype(np.float32) * (np.float32(1) / scale)
            rounded = np.rint(divided) if dtype == np.int8 else divided
            assert (wide(q[part]) == wide(rounded.astype(dtype))).all()


def test_a_type_by_its_name_where_nobody_has_imported_ml_dtypes():
    program = (
        "import numpy, gpu_gemm; "
        "print(gpu_gemm.quantise(numpy.ones((2, 3), numpy.float32), 'rows', 'float8_e4m3fn')[0].dtype)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.returncode) == ("float8_e4m3fn", 0), done.stderr


def test_what_was_quantised_is_multiplied():
    rng = np.random.default_rng(8)
    x, w = rng.standard_normal((5, 300), np.float32), rng.standard_normal((200, 300), np.float32)
    for kinds in [("rows", "rows"), ("1x128", "128x128")]:
        (qx, of_x), (qw, of_w) = (gpu_gemm.quantise(a, kind, E4M3) for a, kind in zip((x, w), kinds))
        c = gpu_gemm.scaled_matmul(qx, qw.T, of_x, of_w.T, device="cpu")
        assert (np.abs(c - x @ w.T) <= (2 * 2.0**-4 + 0.02) * (np.abs(x) @ np.abs(w).T)).all()


def test_quantise_names_what_is_wrong():
    x = np.ones((3, 4), np.float32)
    for arguments, error, message in [
        ((x, "columns", E4M3), ValueError, "scales = 'columns': must be 'rows', '1x128' or '128x128'"),
        ((x, "rows", "float32"), ValueError, "dtype = 'float32': must be float8_e4m3fn, float8_e5m2 or int8"),
        ((x[0], "rows", E4M3), ValueError, "x.ndim = 1: must be 2"),
        ((x.astype(np.float64), "rows", E4M3), TypeError, "x.dtype = float64: must be float32, bfloat16 or float16"),
    ]:
        with pytest.raises(error) as raised:
            gpu_gemm.quantise(*arguments)
        assert message in str(raised.value)
