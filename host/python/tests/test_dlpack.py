"""DLPack: what is taken and given, without copies, and deleters that are called once."""

import ctypes
import gc

import ml_dtypes
import numpy as np
import pytest

import gpu_gemm
from gpu_gemm import _native


class Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("index", ctypes.c_int32)]


class Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype = ctypes.c_char_p
capsule_name.argtypes = [ctypes.py_object]


class Producer:
    """An array of a library that nobody knows. It counts what a consumer does."""

    def __init__(self, array, version=1, flags=0, byte_offset=0, strides=True, device=(1, 0), code=2):
        self.array, self.version, self.flags, self.device = array, version, flags, device
        self.byte_offset, self.has_strides, self.code = byte_offset, strides, code
        self.exported, self.deleted, self.capsules, self.keep = 0, 0, [], []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if self.version == 0 and "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        array, item = self.array, self.array.itemsize
        managed = Versioned() if self.version else Managed()
        tensor = managed.tensor
        tensor.data = array.ctypes.data - self.byte_offset
        tensor.byte_offset = self.byte_offset
        tensor.device = Device(*self.device)
        tensor.ndim = array.ndim
        tensor.dtype = Type(self.code, 8 * item, 1)
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        strides = (ctypes.c_int64 * array.ndim)(*(stride // item for stride in array.strides))
        tensor.shape = shape
        if self.has_strides:
            tensor.strides = strides
        if self.version:
            managed.major, managed.flags = self.version, self.flags

        def delete(_):
            self.deleted += 1

        deleter = DELETER(delete)
        managed.deleter = ctypes.cast(deleter, ctypes.c_void_p)
        self.exported += 1
        self.keep.append((managed, shape, strides, deleter))
        name = b"dltensor_versioned" if self.version else b"dltensor"
        capsule = new_capsule(ctypes.addressof(managed), name, None)
        self.capsules.append(capsule)
        return capsule


@pytest.fixture
def arrays(rng):
    return rng.standard_normal((4, 5)), rng.standard_normal((5, 6))


@pytest.mark.parametrize("version", [0, 1])
def test_a_tensor_is_deleted_once(version, arrays, on_cpu):
    a, b = (Producer(array, version) for array in arrays)
    before = _native._lent()
    result = on_cpu(a, b)
    for producer in (a, b):
        assert (producer.exported, producer.deleted) == (1, 1)
        used = b"used_dltensor_versioned" if version else b"used_dltensor"
        assert capsule_name(producer.capsules[0]) == used
    assert isinstance(result, gpu_gemm.Array) and result.shape == (4, 6)
    assert result.dtype == "float64" and result.device == "cpu"
    as_numpy = np.from_dlpack(result)
    assert _native._lent() == before + 1
    assert np.array_equal(as_numpy, on_cpu(*arrays))
    # The memory lives on without the array.
    del result
    gc.collect()
    assert np.array_equal(as_numpy, on_cpu(*arrays))
    del as_numpy
    gc.collect()
    assert _native._lent() == before


def test_a_prepared_product_keeps_its_tensors(arrays):
    a, b, out = (Producer(array) for array in (*arrays, np.empty((4, 6))))
    product = gpu_gemm.prepare(a, b, out=out, device="cpu")
    for _ in range(3):
        assert product() is out
    assert [it.deleted for it in (a, b, out)] == [0, 0, 0]
    del product
    assert [(it.exported, it.deleted) for it in (a, b, out)] == [(1, 1)] * 3
    assert np.array_equal(out.array, gpu_gemm.matmul(*arrays, device="cpu"))


@pytest.mark.parametrize(
    "wrong, kind, message",
    [
        ({"version": 2}, BufferError, "a: DLPack of version 2: must be 1"),
        ({"device": (10, 0)}, ValueError, "a.device = DLPack's device 10, 0: must be host memory or a CUDA device"),
    ],
)
def test_a_refused_tensor_is_deleted_too(wrong, kind, message, arrays, on_cpu):
    a = Producer(arrays[0], **wrong)
    with pytest.raises(kind) as caught:
        on_cpu(a, arrays[1])
    assert str(caught.value).startswith(message)
    assert (a.exported, a.deleted) == (1, 1)


def test_a_refused_product_deletes_its_tensors(arrays, on_cpu):
    a = Producer(arrays[0])
    with pytest.raises(ValueError):
        on_cpu(a, arrays[0])
    assert (a.exported, a.deleted) == (1, 1)


def test_flags_offsets_and_strides(arrays, on_cpu):
    expected = on_cpu(*arrays)
    with pytest.raises(ValueError) as caught:
        on_cpu(*arrays, out=Producer(np.empty((4, 6)), flags=1))
    assert str(caught.value) == "out = read-only: must be writable"
    a = Producer(arrays[0], byte_offset=16)
    assert np.array_equal(np.from_dlpack(on_cpu(a, arrays[1])), expected)
    a = Producer(arrays[0], strides=False)
    assert np.array_equal(np.from_dlpack(on_cpu(a, arrays[1])), expected)
    a = Producer(arrays[0][:, ::-1])
    with pytest.raises(ValueError) as caught:
        on_cpu(a, arrays[1])
    assert str(caught.value).startswith("a.strides in elements = [5, -1]: must not be negative here")
    repeated = np.broadcast_to(arrays[0][:1], (4, 5))
    assert np.array_equal(np.from_dlpack(on_cpu(Producer(repeated), arrays[1])), on_cpu(repeated, arrays[1]))


class Copying(Producer):
    """It gives a copy unless it is told not to, and then an error: as the standard of the array API has it."""

    refuses = True

    def __dlpack__(self, *, copy=None, **options):
        if copy is False and self.refuses:
            raise BufferError("the memory is not one piece")
        self.own, self.array, self.flags = self.array, self.array.copy(), 2
        try:
            return super().__dlpack__(**options)
        finally:
            self.array = self.own


class Unaware(Copying):
    """One that does not know `copy`."""

    def __dlpack__(self, **options):
        if "copy" in options:
            raise TypeError("unexpected keyword argument 'copy'")
        return super().__dlpack__(**options)


class Stubborn(Copying):
    """One that gives a copy whatever it is asked for."""

    refuses = False


OWN = ".__dlpack__(copy=False) = BufferError: the memory is not one piece: must give the array's own memory"
FLAG = " = a copy: must be the array's own memory, and its __dlpack__ gives a copy"


@pytest.mark.parametrize("kind, message", [(Copying, OWN), (Unaware, FLAG), (Stubborn, FLAG)])
def test_a_copy_is_not_the_array(kind, message, arrays, on_cpu):
    a, b = arrays
    expected = on_cpu(a, b)
    # An operand that is read once may be a copy.
    once = kind(a)
    assert np.array_equal(np.from_dlpack(on_cpu(once, b, bias=kind(np.zeros(6)))), expected)
    assert (once.exported, once.deleted) == (1, 1)
    out = kind(np.zeros((4, 6)))
    for function in (on_cpu, lambda *arrays, **options: gpu_gemm.prepare(*arrays, **options, device="cpu")):
        with pytest.raises(ValueError) as caught:
            function(a, b, out=out)
        assert str(caught.value).startswith(f"out{message}")
        assert out.exported == out.deleted and not out.array.any()
    for name in ("a", "b", "bias"):
        copied = kind({"a": a, "b": b, "bias": np.zeros(6)}[name])
        with pytest.raises(ValueError) as caught:
            gpu_gemm.prepare(**{"a": a, "b": b, name: copied}, device="cpu")
        assert str(caught.value).startswith(f"{name}{message}")
        assert copied.exported == copied.deleted


def test_what_gives_its_own_memory_when_asked_for_it(arrays):
    class Willing(Producer):
        asked = []

        def __dlpack__(self, *, copy=None, **options):
            self.asked.append(copy)
            self.flags = 0 if copy is False else 2
            return super().__dlpack__(**options)

    a, b, out = (Willing(array) for array in (*arrays, np.zeros((4, 6))))
    product = gpu_gemm.prepare(a, b, out=out, device="cpu")
    a.array[:] = 1
    assert product() is out and np.array_equal(out.array, gpu_gemm.matmul(np.ones((4, 5)), b.array, device="cpu"))
    assert Willing.asked == [False] * 3
    # What `matmul` reads once may be a copy.
    gpu_gemm.matmul(a, b, out=out, device="cpu")
    assert Willing.asked[3:] == [None, None, False]


def test_what_is_given(arrays, on_cpu):
    result = on_cpu(Producer(arrays[0]), arrays[1])
    before = _native._lent()
    # Capsules that nobody takes.
    for options, name in (({}, b"dltensor"), ({"max_version": (1, 1)}, b"dltensor_versioned")):
        capsule = result.__dlpack__(**options)
        assert capsule_name(capsule) == name and _native._lent() == before + 1
        del capsule
        assert _native._lent() == before
    for options in ({"copy": True}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError):
            result.__dlpack__(**options)
    for argument, value, kind in (
        ("max_version", (-1, 0), ValueError),
        ("max_version", (1,), ValueError),
        ("max_version", (2**40, 0), ValueError),
        ("max_version", "1.0", TypeError),
        ("max_version", 1, TypeError),
        ("dl_device", (1, 2**40), ValueError),
        ("dl_device", (1, None), TypeError),
        ("dl_device", (), ValueError),
    ):
        with pytest.raises(kind) as caught:
            result.__dlpack__(**{argument: value})
        assert str(caught.value).startswith(f"{argument} = {value!r}: must be None or a ")
    assert result.__dlpack_device__() == (1, 0)
    assert not hasattr(result, "__cuda_array_interface__")
    # The array itself is an operand.
    again = on_cpu(result, np.eye(6))
    assert np.array_equal(np.from_dlpack(again), np.from_dlpack(result))
    # Of bfloat16, which NumPy's DLPack does not know, the other libraries' does.
    half = [array.astype(ml_dtypes.bfloat16) for array in arrays]
    assert on_cpu(*half).dtype == ml_dtypes.bfloat16


def test_numpys_arrays_are_not_copied(arrays):
    """Their addresses are the operands' addresses: a product that is prepared sees what is written later."""
    a, b = (array.astype(ml_dtypes.bfloat16) for array in arrays)
    out = np.zeros((4, 6), np.float32)
    product = gpu_gemm.prepare(a, b.T.copy().T, out=out, device="cpu")
    a[:] = 0
    out[:] = 1
    product()
    assert not out.any()
