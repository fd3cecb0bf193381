"""Errors name the argument, its value and the limit."""

import decimal
import fractions
import types
import warnings

import ml_dtypes
import numpy as np
import pytest

from test_dlpack import Producer

import gpu_gemm

F = np.ones((2, 3), np.float32)
G = np.ones((3, 2), np.float32)
I = np.ones((2, 3), np.int8)
READ_ONLY = np.ones((2, 2), np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "arguments, options, kind, message",
    [
        ((F, F), {}, ValueError, "a.shape[-1] = 3: must be b.shape[-2] = 2"),
        ((np.float32(1) + F[0, 0] * np.ones(()), F), {}, TypeError, "type(a) = numpy.float64: must be an array of NumPy"),
        ((np.ones(()), np.ones(2)), {}, ValueError, "a.ndim = 0: must be at least 1"),
        (([1.0], F), {}, TypeError, "type(a) = builtins.list: must be an array of NumPy"),
        ((np.ma.masked_array(F), G), {}, TypeError, "type(a) = numpy.ma.MaskedArray: must be numpy.ndarray and no subclass"),
        ((F, G.astype(np.int64)), {}, TypeError, "b.dtype = int64: must be float64, float32, float16, bfloat16, int8, float8_e4m3fn or float8_e5m2"),
        ((F.astype(np.uint16), G), {}, TypeError, "a.dtype = uint16: must be a float's: bfloat16 is ml_dtypes.bfloat16"),
        ((F, G.astype(np.float64)), {}, TypeError, "b.dtype = float64: must be float32, as a"),
        ((np.ones((2, 2, 3), np.float32), np.ones((3, 3, 2), np.float32)), {}, ValueError, "b.shape = (3, 3, 2): cannot be broadcast with a.shape = (2, 2, 3)"),
        ((np.ones((1,) * 17, np.float32), G), {}, ValueError, "a.ndim = 17: must be at most 16"),
        ((F, G), {"out": np.ones((2, 3), np.float32)}, ValueError, "out.shape = (2, 3): is non-broadcastable: must be (2, 2), the result's"),
        ((F, G), {"out": np.ones((2, 2))}, TypeError, "out.dtype = float64: must be float32, as a"),
        ((I, I.T), {"out": np.ones((2, 2), np.int8)}, TypeError, "out.dtype = int8: must be int32, where a is int8"),
        ((I, I.T), {"bias": np.ones(2, np.int32)}, ValueError, "bias = a vector: must be none with a C of i32"),
        ((I, I.T), {"alpha": 0.5}, ValueError, "alpha = 0.5: must be an integer of i32"),
        ((I.astype(np.int32), I), {}, TypeError, "a.dtype = int32: must be float64, float32, float16, bfloat16, int8, float8_e4m3fn or float8_e5m2"),
        ((F, G), {"out": READ_ONLY}, ValueError, "out = read-only: must be writable"),
        ((F, G), {"beta": 1.0}, ValueError, "beta = 1: must be 0 without out"),
        ((F, G), {"bias": np.ones(3, np.float32)}, ValueError, "bias.shape = (3,): must be (2,), (1, 2) or (2, 1)"),
        ((F, G), {"bias": np.ones(2)}, TypeError, "bias.dtype = float64: must be float32, as the result"),
        ((F, G), {"activation": "tanh"}, ValueError, "activation = 'tanh': must be None, 'relu', 'gelu', 'gelu_tanh' or 'silu'"),
        ((F, G), {"compute": "fp8"}, ValueError, "compute = 'fp8': must be None, 'native', 'tf32', 'bf16x6' or 'f16x3'"),
        ((F, G), {"device": "gpu"}, ValueError, "device = 'gpu': must be None, 'cpu', 'cuda' or 'cuda:' and an index"),
        ((F, G), {"stream": 7}, ValueError, "stream = 7: must be None for arrays in host memory"),
        ((F, G), {"stream": 0}, ValueError, "stream = 0: must be None for arrays in host memory"),
        ((F, G), {"stream": "main"}, TypeError, "stream = 'main': must be a handle (an int of 64 bits)"),
    ],
)
def test_messages(arguments, options, kind, message):
    options = {"device": "cpu", **options}
    with pytest.raises(kind) as caught:
        gpu_gemm.matmul(*arguments, **options)
    assert str(caught.value).startswith(message)


NUMBER = "must be a real number"
RANGE = "must be within the range of float64"
ACTIVATION = "must be None, 'relu', 'gelu', 'gelu_tanh' or 'silu'"
COMPUTE = "must be None, 'native', 'tf32', 'bf16x6' or 'f16x3'"
DEVICE = "must be None, 'cpu', 'cuda' or 'cuda:' and an index"
STREAM = "must be a handle (an int of 64 bits), a stream of PyTorch or CuPy, or have __cuda_stream__"


class Odd:
    """No number, and no stream: what Python asks it for fails."""

    def __repr__(self):
        return "Odd()"

    def __float__(self):
        raise RuntimeError("no")

    def __cuda_stream__(self):
        return "no"


class Interrupted(Odd):
    def __float__(self):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    "argument, value, shown, kind, limit",
    [
        ("alpha", "2", "'2'", TypeError, NUMBER),
        ("invariant", 1, "1", TypeError, "must be True or False"),
        ("tune", 1, "1", TypeError, "must be None, True, False or the path of a file"),
        ("alpha", None, "None", TypeError, NUMBER),
        ("alpha", 10**400, "1" + 59 * "0" + "...", ValueError, RANGE),
        ("beta", -(10**400), "-1" + 58 * "0" + "...", ValueError, RANGE),
        ("alpha", np.longdouble("1e4000"), "np.longdouble('1e+4000')", ValueError, RANGE),
        ("alpha", decimal.Decimal("-1e400"), "Decimal('-1E+400')", ValueError, RANGE),
        ("alpha", fractions.Fraction(10**400), "Fraction(1" + 50 * "0" + "...", ValueError, RANGE),
        ("alpha", Odd(), "Odd()", TypeError, NUMBER),
        ("beta", 1j, "1j", TypeError, NUMBER),
        ("beta", np.eye(2), "array([[1., 0.],...", TypeError, NUMBER),
        ("activation", 3, "3", TypeError, ACTIVATION),
        ("activation", "", "''", ValueError, ACTIVATION),
        ("activation", "\udc80", "'\\udc80'", ValueError, ACTIVATION),
        ("compute", b"tf32", "b'tf32'", TypeError, COMPUTE),
        ("device", 0, "0", TypeError, DEVICE),
        ("device", "cuda:-1", "'cuda:-1'", ValueError, DEVICE),
        ("device", "cuda:+1", "'cuda:+1'", ValueError, DEVICE),
        ("stream", -1, "-1", ValueError, STREAM),
        ("stream", 1 << 64, str(1 << 64), ValueError, STREAM),
        ("stream", 1.5, "1.5", TypeError, STREAM),
        ("stream", True, "True", TypeError, STREAM),
        ("stream", Odd(), "Odd()", TypeError, STREAM),
    ],
)
def test_an_argument_that_is_no_array_is_named(argument, value, shown, kind, limit):
    for function in (gpu_gemm.matmul, gpu_gemm.prepare):
        if (function, argument) != (gpu_gemm.prepare, "stream"):
            with pytest.raises(kind) as caught:
                function(F, G, **{"device": "cpu", argument: value})
            assert str(caught.value) == f"{argument} = {shown}: {limit}"


class OnlyComplex:
    """A number of a library that nobody knows."""

    dtype = "its own"

    def __init__(self, value):
        self.value = value

    def __complex__(self):
        return complex(self.value)

    def __float__(self):
        return complex(self.value).real


class Elsewhere:
    """A scalar of PyTorch's, or of JAX's: what its type says."""

    def __init__(self, ndim=0, **dtype):
        self.ndim, self.dtype = ndim, types.SimpleNamespace(**dtype)

    def __float__(self):
        return 2.0


@pytest.mark.parametrize(
    "value",
    [
        1 + 2j,
        2 + 0j,
        np.complex64(1 + 2j),
        np.complex128(2),
        np.clongdouble(1 + 2j),
        np.array(1 + 2j),
        np.array(1 + 2j, object),
        np.str_("2"),
        np.array("2"),
        np.array(b"2"),
        np.timedelta64(2, "s"),
        np.datetime64(2, "s"),
        np.array([2.0]),
        np.array([[2.0]]),
        bytearray(b"2"),
        OnlyComplex(1 + 2j),
        Elsewhere(is_complex=True),
        Elsewhere(kind="c"),
        Elsewhere(1, kind="f"),
    ],
    ids=repr,
)
def test_what_is_no_real_number_is_no_factor(value):
    for argument in ("alpha", "beta"):
        for function in (gpu_gemm.matmul, gpu_gemm.prepare):
            with warnings.catch_warnings():
                # NumPy's, of the conversions that would go wrong.
                warnings.simplefilter("error")
                with pytest.raises(TypeError) as caught:
                    function(F, G, out=np.ones((2, 2), np.float32), device="cpu", **{argument: value})
            assert str(caught.value).startswith(f"{argument} = ") and str(caught.value).endswith(f": {NUMBER}")


def test_what_is_as_good_as_a_number_is_taken():
    others = (fractions.Fraction(2), decimal.Decimal(2), ml_dtypes.bfloat16(2), np.bool_(True), np.array(2, object), OnlyComplex(2))
    plain = (2, True, np.float16(2), np.float32(2), np.longdouble(2), np.array(2), np.array(2.0, "f4"), np.int64(2))
    for alpha in (*plain, *others, Elsewhere(kind="f"), Elsewhere(is_complex=False)):
        assert gpu_gemm.matmul(F, G, alpha=alpha, device="cpu")[0, 0] == 3 * float(alpha)


def test_an_infinite_factor_is_one():
    for alpha in (np.inf, np.float32("inf"), np.longdouble("inf"), decimal.Decimal("Infinity")):
        assert gpu_gemm.matmul(F, G, alpha=alpha, device="cpu")[0, 0] == np.inf


def test_what_a_prepared_product_does_not_take():
    product = gpu_gemm.prepare(F, G, device="cpu")
    for call, message in (
        (lambda: product(1), "Prepared.__call__() takes 1 positional argument but 2 were given"),
        (lambda: product(None, 2, stream=None), "Prepared.__call__() takes 1 positional argument but 3 were given"),
        (lambda: product(flow=1), "Prepared.__call__() got an unexpected keyword argument 'flow'"),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == message
    assert product(**{}) is product.out


def test_a_namespace_that_makes_no_arrays():
    """It is asked before the product is computed."""

    class Own(Producer):
        def __array_namespace__(self):
            return self.namespace

    a = Own(F)
    for namespace, shown in ((None, "None"), (types.SimpleNamespace(), "namespace()"), (5, "5")):
        a.namespace = namespace
        out = np.full((2, 2), 7, np.float32)
        with pytest.raises(TypeError) as caught:
            gpu_gemm.matmul(a, G, device="cpu")
        assert str(caught.value) == f"a.__array_namespace__() = {shown}: must have from_dlpack, which makes the result"
        # With `out` there is nothing to make.
        assert gpu_gemm.matmul(a, G, out=out, device="cpu") is out and (out == 3).all()
    a.namespace = np
    assert type(gpu_gemm.matmul(a, G, device="cpu")) is np.ndarray


def test_a_prepared_product_has_no_stream_in_host_memory():
    product = gpu_gemm.prepare(F, G, device="cpu")
    with pytest.raises(ValueError) as caught:
        product(stream=7)
    assert str(caught.value) == "stream = 7: must be None for arrays in host memory"


def test_an_interrupt_is_no_wrong_argument():
    with pytest.raises(KeyboardInterrupt):
        gpu_gemm.matmul(F, G, alpha=Interrupted(), device="cpu")


def test_a_prepared_product_copies_nothing():
    for a, message in (
        (F[:, ::-1], "a.strides in elements = [3, -1]: must not be negative here"),
        (F.astype(">f4"), "a = an array: must be aligned, in the machine's order of bytes"),
    ):
        with pytest.raises(ValueError) as caught:
            gpu_gemm.prepare(a, G, device="cpu")
        assert str(caught.value).startswith(message)


def test_too_much_memory():
    a = np.broadcast_to(np.float64(1), (1 << 22, 1))
    b = np.broadcast_to(np.float64(1), (1, 1 << 22))
    with pytest.raises(MemoryError):
        gpu_gemm.matmul(a, b, device="cpu")


def test_a_named_gpu_that_is_not_there():
    with pytest.raises(RuntimeError) as caught:
        gpu_gemm.matmul(F, G, device="cuda:63")
    assert "cuda:63" in str(caught.value) or "driver" in str(caught.value)


def test_positional_arguments():
    with pytest.raises(TypeError):
        gpu_gemm.matmul(F, G, np.ones((2, 2), np.float32))
