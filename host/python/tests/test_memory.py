"""What an object says about memory is checked, and memory is held while it is used.

Each of these objects says what is not so, or changes while it is used. Where it says a wrong address nobody can know it.
"""

import collections.abc
import ctypes
import gc
import sys
import threading
import time
import types
import warnings
import weakref

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from test_dlpack import DELETER, Device, Producer, new_capsule

import gpu_gemm

A, B = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)
C = A @ B


def on_cpu(a, b, **options):
    return gpu_gemm.matmul(a, b, device="cpu", **options)


def prepared(a, b, **options):
    return gpu_gemm.prepare(a, b, device="cpu", **options)


def refused(kind, start, function):
    with pytest.raises(kind) as caught:
        function()
    assert str(caught.value).startswith(start), str(caught.value)


# Ways in which NumPy gives an array other memory, or other elements in the same.
def resize(array):
    array.resize((300, 300), refcheck=False)


def shrink(array):
    array.resize((1, 1), refcheck=False)


def restore(array):
    array.__setstate__(np.ones((5, 5)).__reduce__()[2])



@pytest.mark.parametrize("change", [resize, shrink, restore])
@pytest.mark.parametrize("name", ["a", "b", "out", "bias"])
def test_an_array_of_a_prepared_product_that_has_changed(name, change):
    arrays = {"a": np.ones((50, 50)), "b": np.ones((50, 50)), "out": np.ones((50, 50)), "bias": np.ones((1, 50))}
    product = prepared(**arrays)
    product()
    change(arrays[name])
    with pytest.raises(RuntimeError) as caught:
        product()
    # The system may let the memory grow where it is.
    address = f"{name} has other memory than when the product was prepared"
    assert str(caught.value) == address or str(caught.value).startswith(f"{name}.shape = (")


def test_an_array_of_a_prepared_product_that_is_no_operand_any_more():
    """As the help says, it is a RuntimeError; the error of the array is its cause."""
    for name in ("a", "b", "out", "bias"):
        arrays = {"a": np.ones((2, 2)), "b": np.ones((2, 2)), "out": np.ones((2, 2)), "bias": np.ones(2)}
        product = prepared(**arrays)
        with warnings.catch_warnings():
            # Of NumPy 2.5, for a type that is assigned.
            warnings.simplefilter("ignore")
            arrays[name].dtype = np.int64
        with pytest.raises(RuntimeError) as caught:
            product()
        types = "float32, float16, bfloat16, int8, float8_e4m3fn or float8_e5m2" if name in ("a", "b") else "int32, float32, float16 or bfloat16"
        cause = f"{name}.dtype = int64: must be float64, {types}"
        assert str(caught.value) == f"{cause}: changed after the product was prepared"
        assert type(caught.value.__cause__) is TypeError and str(caught.value.__cause__) == cause


def test_a_prepared_product_whose_out_may_no_longer_be_written():
    out = np.empty((2, 2))
    product = prepared(A, B, out=out)
    out.flags.writeable = False
    refused(RuntimeError, "out.read-only: must be writable", product)
    out.flags.writeable = True
    assert product() is out and np.array_equal(out, C)


class Meanwhile(Producer):
    """An array that does something when it is asked for."""

    def __init__(self, array, what):
        super().__init__(array)
        self.what = what

    def __dlpack__(self, **options):
        self.what()
        return super().__dlpack__(**options)


def test_an_array_that_changes_while_another_is_read():
    def run(change, name):
        arrays = {"a": np.ones((200, 200)), "out": np.ones((200, 200))}
        b = Meanwhile(np.ones((200, 200)), lambda: change(arrays[name]))
        return on_cpu(b=b, **arrays)

    # While it is an operand NumPy does not resize it.
    refused(ValueError, "cannot resize", lambda: run(resize, "a"))
    refused(RuntimeError, "a was changed while the arguments were read", lambda: run(restore, "a"))
    # `out` was not read before b.
    refused(ValueError, "out.shape = (300, 300)", lambda: run(resize, "out"))


def test_an_array_is_not_resized_during_a_product():
    """Another thread tries, while the product has released the GIL."""
    a = np.ones((64, 64))
    results, ends = [], threading.Event()

    def run():
        while not ends.is_set():
            results.append(on_cpu(a, a)[0, 0])

    thread = threading.Thread(target=run)
    thread.start()
    refusals, end = 0, time.monotonic() + 20
    try:
        while refusals < 3 and thread.is_alive() and time.monotonic() < end:
            for size in (128, 64):
                try:
                    a.resize((size, size), refcheck=False)
                    a[:] = 1
                except ValueError:
                    refusals += 1
    finally:
        ends.set()
        thread.join()
    assert refusals == 3


def test_a_class_that_only_says_that_it_is_numpys():
    class Own:
        @property
        def __array_struct__(self):
            # Of an array that nobody keeps.
            return np.full((300, 300), 2.0).__array_struct__

    for module, name in (("numpy", "ndarray"), ("torch", "Tensor"), ("cupy", "ndarray"), (5, "ndarray")):
        Own.__module__, Own.__qualname__ = module, name
        # A type is looked at once.
        own = type("Own", (Own,), {"__module__": module, "__qualname__": name})
        refused(TypeError, "type(a) = ", lambda: on_cpu(own(), own()))
        refused(TypeError, "type(b) = ", lambda: prepared(A, own()))


class Table(ctypes.Structure):
    """DLPack's table of functions of a type."""

    _fields_ = [("version", ctypes.c_uint32 * 2), ("functions", ctypes.c_void_p * 6)]


def test_a_type_with_the_functions_of_another(monkeypatch):
    """PyTorch's would take an object for a tensor that is none."""
    asked = []
    function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(lambda *_: asked.append(1) or -1)
    table = Table((1, 3), (None, None, None, None, ctypes.cast(function, ctypes.c_void_p).value, None))
    capsule = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)
    tensor = type("Tensor", (), {"__dlpack_c_exchange_api__": capsule})
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=tensor))
    own = type("Own", (Producer,), {"__dlpack_c_exchange_api__": capsule})
    a = own(A)
    assert np.array_equal(np.from_dlpack(on_cpu(a, B)), C) and (a.exported, asked) == (1, [])


class Lying(Producer):
    """A tensor, some fields of which are others."""

    def __init__(self, array, version, **fields):
        super().__init__(array, version)
        self.fields = fields

    def __dlpack__(self, **options):
        capsule = super().__dlpack__(**options)
        tensor = self.keep[-1][0].tensor
        for name, value in self.fields.items():
            if isinstance(value, list):
                value = (ctypes.c_int64 * 20)(*value)
                self.keep.append(value)
            setattr(tensor, name, value)
        return capsule


NULL = ctypes.POINTER(ctypes.c_int64)()


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "fields, message",
    [
        ({"shape": NULL}, ".shape = at 0x0: must point to 2 numbers"),
        ({"shape": NULL, "strides": NULL}, ".shape = at 0x0: must point to 2 numbers"),
        ({"ndim": -2}, ".ndim = -2: must not be negative"),
        ({"ndim": -(2**31)}, ".ndim = -2147483648: must not be negative"),
        ({"ndim": 17}, ".ndim = 17: must be at most 16"),
        ({"shape": [-2, 3]}, ".shape = [-2, 3]: no size may be negative"),
        ({"shape": [-5, 7]}, ".shape = [-5, 7]: no size may be negative"),
        ({"shape": [2**62, 2**62]}, ".shape = (4611686018427387904, 4611686018427387904): more than can be addressed"),
        ({"strides": [2**61, 1]}, ".data = at "),
        ({"strides": [-(2**63), 1]}, ".data = at "),
        ({"data": None}, ".data = at 0x0: no memory has elements of shape (2, 3)"),
        ({"data": None, "byte_offset": 8}, ".data = at 0x0: no memory has elements of shape (2, 3)"),
        ({"data": 2**64 - 8, "byte_offset": 16}, ".data = 0xfffffffffffffff8 and an offset of 16: is no address"),
        ({"data": 2**63}, ".data = at 0x8000000000000000: no memory"),
        ({"device": Device(2, -1)}, ".device = DLPack's device 2, -1: must be host memory or a CUDA device"),
    ],
)
def test_a_tensor_that_cannot_be(version, fields, message):
    for function in (on_cpu, prepared):
        for name in ("a", "b", "out", "bias"):
            array = {"a": A, "b": B.T.copy(), "out": np.ones((2, 3)), "bias": np.ones((2, 3))}[name]
            lying = Lying(array, version, **fields)
            arguments = {"a": A, "b": B, name: lying}
            refused(ValueError, name + message, lambda: function(**arguments))
            assert (lying.exported, lying.deleted) == (1, 1)


def test_a_shape_at_an_odd_address():
    a = Lying(A, 1)
    memory = (ctypes.c_int64 * 8)()
    a.fields = {"shape": ctypes.cast(ctypes.addressof(memory) + 4, ctypes.POINTER(ctypes.c_int64))}
    refused(ValueError, "a.shape = at 0x", lambda: on_cpu(a, B))
    assert a.deleted == 1


def test_an_empty_result_of_more_than_can_be_addressed():
    """Of an unknown module: its arrays are made here."""
    a, b = np.ones((1, 1, 0, 4)), np.ones((1, 1, 4, 4))
    a, b = np.broadcast_to(a, (2**40, 1, 0, 4)), np.broadcast_to(b, (1, 2**40, 4, 4))
    message = "out.shape = (1099511627776, 1099511627776, 0, 4): more than can be addressed"
    refused(ValueError, message, lambda: on_cpu(Producer(a), Producer(b)))


def test_an_empty_tensor_may_be_nowhere():
    empty = Lying(np.ones((0, 3)), 1, data=None)
    assert on_cpu(empty, B).shape == (0, 2)


@pytest.mark.parametrize("device", [(1,), 5, None, ("a", 0), (2, 2**40), (2, -(2**40))])
def test_a_device_that_is_none(device):
    a = Producer(A)
    a.device = device
    refused((TypeError, ValueError), "a.__dlpack_device__() = ", lambda: on_cpu(a, B))
    assert a.exported == 0


@pytest.mark.parametrize(
    "given",
    [
        lambda: None,
        lambda: 5,
        lambda: new_capsule(64, b"other", None),
        lambda: new_capsule(66, b"dltensor", None),
        lambda: new_capsule(66, b"dltensor_versioned", None),
    ],
)
def test_what_is_no_tensor(given):
    class Own(Producer):
        def __dlpack__(self, **_):
            return given()

    refused(BufferError, "a.__dlpack__() gives no capsule that DLPack knows", lambda: on_cpu(Own(A), B))


class Endless(collections.abc.Sequence):
    """A sequence that says a length for which there is no memory."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return 2


@pytest.mark.parametrize(
    "key, value, kind, message",
    [
        ("strides", (8,), ValueError, 'len(a.strides) = 1: must be 2, one for each size'),
        ("strides", (), ValueError, "len(a.strides) = 0: must be 2, one for each size"),
        ("strides", (24, 8, 8), ValueError, "len(a.strides) = 3: must be 2, one for each size"),
        ("strides", (2**63, 8), ValueError, 'a.__cuda_array_interface__["strides"] = (9223372036854775808, 8): must be a tuple of whole numbers'),
        ("strides", (-(2**63), 8), ValueError, "a.data = at 0x"),
        ("strides", Endless(2**62), TypeError, 'a.__cuda_array_interface__["strides"] = <'),
        ("shape", Endless(2**62), TypeError, 'a.__cuda_array_interface__["shape"] = <'),
        ("shape", Endless(2**40), TypeError, 'a.__cuda_array_interface__["shape"] = <'),
        ("shape", (-2, 3), ValueError, 'a.__cuda_array_interface__["shape"] = (-2, 3): must be a tuple of whole numbers'),
        ("shape", (2.0, 3), TypeError, 'a.__cuda_array_interface__["shape"] = (2.0, 3): must be a tuple of whole numbers'),
        ("shape", "23", TypeError, "a.__cuda_array_interface__[\"shape\"] = '23': must be a tuple of whole numbers"),
        ("shape", (1,) * 17, ValueError, "a.ndim = 17: must be at most 16"),
        ("shape", None, TypeError, "a.__cuda_array_interface__ has no `shape`"),
        ("data", (0, False), ValueError, "a.data = at 0x0: no memory has elements of shape (2, 3)"),
        ("data", (-8, False), ValueError, 'a.__cuda_array_interface__["data"] = (-8, False): must be an address'),
        ("data", 8, TypeError, 'a.__cuda_array_interface__["data"] = 8: must be an address'),
        ("typestr", 8, TypeError, 'a.__cuda_array_interface__["typestr"] = 8: must be a text'),
        ("typestr", "<i8", TypeError, "a.dtype = <i8: must be float64"),
        ("stream", "x", TypeError, "a.__cuda_array_interface__[\"stream\"] = 'x': must be a handle"),
        ("mask", A, ValueError, "a has a mask, which a product does not know"),
        (None, [], TypeError, "a.__cuda_array_interface__ = []: must be a dictionary"),
    ],
)
def test_a_cuda_array_interface_that_cannot_be(key, value, kind, message):
    """It is refused before any driver is asked."""
    interface = {"version": 3, "shape": (2, 3), "typestr": "<f8", "data": (A.ctypes.data, False), key: value}
    a = types.SimpleNamespace(device=types.SimpleNamespace(id=0))
    a.__cuda_array_interface__ = interface if key else value
    for function in (gpu_gemm.matmul, gpu_gemm.prepare):
        refused(kind, message, lambda: function(a, B))


def test_an_index_of_a_gpu_that_is_none():
    for index in (-1, 2**64, -(2**64)):
        a = types.SimpleNamespace(device=types.SimpleNamespace(id=index))
        a.__cuda_array_interface__ = {"version": 3, "shape": (2, 3), "typestr": "<f8", "data": (A.ctypes.data, False)}
        refused(ValueError, f"a.device.id = {index}: must be the index of a GPU", lambda: gpu_gemm.matmul(a, B))


def test_strides_of_numpy_that_reach_nowhere():
    for strides in ((2**60, 8), (-(2**63), 8), (2**62, 2**62)):
        refused(ValueError, "a.data = at 0x", lambda: on_cpu(as_strided(np.ones(1), (64, 3), strides), B))


def overlapping():
    memory = np.arange(64.0)
    for shape, strides in (
        ((3, 2, 2), (0, 16, 8)),
        ((2, 2, 2), (8, 16, 8)),
        ((3, 2, 2), (16, 16, 8)),
        ((2, 2, 2, 2), (0, 32, 16, 8)),
        ((2, 3, 2, 2), (32, 32, 16, 8)),
        ((2, 2), (-8, -8)),
        ((2, 2), (8, 8)),
        ((2, 2), (0, 8)),
        ((2, 2), (8, -8)),
        ((3, 2, 2), (-16, 16, 8)),
        ((2, 2), (0, 0)),
        ((2,), (0,)),
    ):
        yield shape, as_strided(memory[32:], shape, strides)


@pytest.mark.parametrize("shape, out", list(overlapping()), ids=str)
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_an_out_with_two_elements_in_one_place(shape, out, beta):
    a, b = np.ones((*shape[:-1], 2)), np.ones((2, shape[-1]))
    if len(shape) == 1:
        a, b = np.ones(2), np.ones((2, *shape))
    before = out.copy()
    for function in (on_cpu, prepared):
        refused(ValueError, "out.strides in elements = [", lambda: function(a, b, out=out, beta=beta))
    assert np.array_equal(out, before)


# Of float64, in bytes: an element is in its own 8, and where it begins is no matter.
@pytest.mark.parametrize("strides", [(12, 18), (18, 12), (-12, 18), (4, 100), (100, 7), (15, 15), (8, 15), (16, 9), (1, 8)])
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_an_out_whose_elements_share_a_part(strides, beta):
    memory = np.zeros(512, np.uint8)
    out = as_strided(memory[256:264].view(np.float64), (2, 2), strides)
    for function in (on_cpu, prepared):
        refused(ValueError, f"out.strides in bytes = {list(strides)}: two elements of [2, 2]", lambda: function(A, B, out=out, beta=beta))
    assert not memory.any()


@pytest.mark.parametrize("strides", [(20, 9), (9, 20), (-17, 8), (-9, -25), (100, -12), (33, 16)])
def test_elements_that_are_no_whole_elements_apart(strides, rng):
    """They are read and written where they are, and nothing between them."""

    def view(of, between=0):
        memory = np.full(512, between, np.uint8)
        array = as_strided(memory[256:264].view(np.float64), (2, 2), strides)
        array[...] = of
        return array, memory

    a, b, c = (rng.standard_normal((2, 2)) for _ in range(3))
    expected = on_cpu(a, b, out=c.copy(), beta=1.0)
    assert np.array_equal(on_cpu(view(a)[0], view(b)[0], out=c.copy(), beta=1.0), expected)
    out, memory = view(c, 170)
    assert on_cpu(a, b, out=out, beta=1.0) is out
    assert np.array_equal(out, expected) and np.array_equal(memory, view(expected, 170)[1])
    for name in ("a", "b", "out", "bias"):
        arguments = {"a": a, "b": b, name: view(c)[0][:1] if name == "bias" else view(c)[0]}
        if strides[1] % 8 or name != "bias":
            refused(ValueError, f"{name} = an array: must be aligned", lambda: prepared(**arguments))


def test_an_out_whose_matrices_interleave(rng):
    """It has no two elements in one place."""
    a, b = rng.standard_normal((4, 5, 3)), rng.standard_normal((3, 2))
    for axes in ((0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0)):
        memory = np.empty(np.array((4, 5, 2))[list(axes)])
        out = memory.transpose(np.argsort(axes))
        assert on_cpu(a, b, out=out) is out and np.array_equal(out, on_cpu(a, b))
        wide = np.zeros((4, 10, 6))[:, ::2, 1::4][..., :2]
        on_cpu(a, b, out=wide)
        assert np.array_equal(wide, out)




class Lasting(Producer):
    """A producer whose tensors live until their deleter is called, as DLPack wants it. Those of `Producer` die with it."""

    deleted_ones, tensors = [], []

    def __dlpack__(self, **options):
        capsule = super().__dlpack__(**options)
        managed, *numbers, _ = self.keep.pop()
        managed.deleter = ctypes.cast(DELETED, ctypes.c_void_p)
        self.tensors.append((managed, *numbers, self.array))
        return capsule


DELETED = DELETER(Lasting.deleted_ones.append)


def test_a_cycle_is_collected(tmp_path):
    np.ones((2, 2)).tofile(tmp_path / "memory")
    # NumPy's array that has attributes.
    a = np.memmap(tmp_path / "memory", np.float64, shape=(2, 2))
    a.product = prepared(a, np.ones((2, 2)))
    a.product()
    b = Lasting(np.ones((2, 2)))
    b.product = prepared(b, b, out=np.ones((2, 2)))
    dead = [weakref.ref(a), weakref.ref(b)]
    before = len(Lasting.deleted_ones)
    del a, b
    gc.collect()
    assert [it() for it in dead] == [None, None] and len(Lasting.deleted_ones) == before + 2


def test_a_finalizer_may_still_call_a_product_of_its_cycle():
    said = []

    class Last(Lasting):
        def __del__(self):
            said.append(self.product() is self.product.out)

    a = Last(np.ones((2, 2)))
    a.product = prepared(a, np.ones((2, 2)), out=np.ones((2, 2)))
    before = len(Lasting.deleted_ones)
    del a
    gc.collect()
    assert said == [True] and len(Lasting.deleted_ones) == before + 1


def test_an_array_of_this_package_is_an_array_for_numpy():
    array = on_cpu(Producer(A), B)
    assert type(array) is gpu_gemm.Array
    shared = np.asarray(array)
    assert shared.dtype == np.float64 and np.array_equal(shared, C)
    # The memory is the array's, and lives as long as NumPy's.
    assert np.shares_memory(shared, np.asarray(array)) and not np.shares_memory(shared, np.array(array))
    assert np.array_equal(np.asarray(array, np.float32), C.astype(np.float32))
    assert np.sum(array) == C.sum() and np.array_equal(np.add(array, 1), C + 1)
    assert np.array_equal(np.concatenate([array, array]), np.concatenate([C, C]))
    refused(ValueError, "copy = False", lambda: array.__array__(np.float32, copy=False))
    assert array.__array__(copy=False).ctypes.data == shared.ctypes.data
    del array
    gc.collect()
    assert np.array_equal(shared, C)
