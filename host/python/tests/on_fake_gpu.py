"""The parts of test_fake_gpu.py. Each runs in a process of its own: `on_fake_gpu.py PART`."""

import ctypes
import os
import sys
import types

import numpy as np
from test_dlpack import Device, Producer, Tensor, Type, new_capsule

import gpu_gemm
from gpu_gemm import _native

LOG = os.environ["FAKE_CUDA_LOG"]
A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.arange(20, dtype=np.float32).reshape(4, 5)
C = A @ B


def calls():
    """The driver's functions that were called since the last time, the contexts' switching left out."""
    try:
        with open(LOG) as log:
            names = log.read().split("\n")
        os.remove(LOG)
    except FileNotFoundError:
        return []
    return [name for name in names if name and not name.startswith("cuCtx")]


def handles(names):
    """The streams of other libraries, in the order of the calls."""
    return [int(name.removeprefix("on stream ")) for name in names if name.startswith("on stream ")]


def order(names):
    """Events, launches and waits of the host with the streams of other libraries. Another stream is None."""
    kinds = {"cuEventRecord": "record", "cuStreamWaitEvent": "wait", "cuStreamSynchronize": "synchronize"}
    found = []
    for name, after in zip(names, [*names[1:], ""]):
        kind = "launch" if name.startswith("cuLaunch") else kinds.get(name)
        if kind:
            found.append((kind, *handles([after])) if handles([after]) else (kind, None))
    return found


def copies(names):
    return [name for name in names if "Memcpy" in name or "MemAlloc" in name or "Memset" in name]


def refused(kind, start, function):
    try:
        function()
    except kind as error:
        assert str(error).startswith(start), str(error)
    else:
        raise AssertionError(f"no {kind.__name__}: {start}")


def on_gpu(array, **options):
    return Producer(array, device=(2, 0), **options)


def numpy():
    assert gpu_gemm.default_device() == ("cuda:0", None)
    assert [name for name, _ in gpu_gemm.devices()] == ["cpu", "cuda:0", "cuda:1"]
    calls()
    assert np.array_equal(gpu_gemm.matmul(A, B), C)
    assert [name for name in calls() if name.startswith("cuMemcpy")] == ["cuMemcpyHtoD_v2"] * 2 + ["cuMemcpyDtoH_v2"]
    assert np.array_equal(gpu_gemm.matmul(A, B, device="cuda:1"), C)
    calls()
    # Nothing of the driver for the CPU device.
    assert np.array_equal(gpu_gemm.matmul(A, B, device="cpu"), C) and calls() == []
    # Transposed arrays go as they are; with gaps or backwards, as copies.
    for a, b in ((A.T.copy().T, B.T.copy().T), (A[:, ::-1], B[::-1]), (np.repeat(A, 2, 1)[:, ::2], B)):
        assert np.array_equal(gpu_gemm.matmul(a, b), a @ b)
    wide = np.full((3, 10), -1, np.float32)
    assert gpu_gemm.matmul(A, B, out=wide[:, ::2]).base is wide
    assert np.array_equal(wide[:, ::2], C) and (wide[:, 1::2] == -1).all()
    product = gpu_gemm.prepare(A, B)
    assert product() is product.out and np.array_equal(product.out, C)
    refused(ValueError, "a.strides in elements = ", lambda: gpu_gemm.prepare(np.repeat(A, 2, 1)[:, ::2], B))


def dlpack():
    a, b = on_gpu(A), on_gpu(B)
    result = gpu_gemm.matmul(a, b)
    assert (result.device, result.__dlpack_device__()) == ("cuda:0", (2, 0))
    assert [(it.exported, it.deleted) for it in (a, b)] == [(1, 1)] * 2
    # The driver's device memory is host memory.
    interface = result.__cuda_array_interface__
    values = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_float * 15).from_address(interface["data"][0]))
    assert (interface["shape"], interface["typestr"], interface["version"]) == ((3, 5), "<f4", 3)
    assert np.array_equal(values.reshape(3, 5), C)
    # With `out=` nothing is allocated or copied, and the arrays' memory is the kernel's.
    out = np.zeros((3, 5), np.float32)
    calls()
    into = on_gpu(out)
    assert gpu_gemm.matmul(on_gpu(A), on_gpu(B), out=into) is into
    names = calls()
    assert copies(names) == [] and "cuStreamSynchronize" in names, names
    assert np.array_equal(out, C)
    product = gpu_gemm.prepare(on_gpu(A), on_gpu(B), out=into)
    out[:] = 0
    calls()
    product()
    assert np.array_equal(out, C) and copies(calls()) == []
    # At each call an array is asked to be ready on the product's stream.
    a, b = on_gpu(A), on_gpu(B)
    product = gpu_gemm.prepare(a, b, out=into)
    before = a.exported
    product()
    product(stream=9)
    assert (a.exported, b.exported) == (before + 2, before + 2) and a.deleted == b.deleted == before + 1
    a.array = A.copy()
    refused(RuntimeError, "a has other memory", product)
    product = gpu_gemm.prepare(on_gpu(A), on_gpu(B), out=into)
    assert len(product._library_ns(3)) == 3
    # Each library frees its own: the result's memory goes with its last user.
    lent = _native._lent()
    capsule = result.__dlpack__(max_version=(1, 0), stream=1)
    del values, result
    assert "cuMemFree_v2" not in calls() and _native._lent() == lent + 1
    del capsule
    assert "cuMemFree_v2" in calls() and _native._lent() == lent


class Interface:
    """An array of which only the CUDA array interface is known."""

    def __init__(self, array, stream=None, read_only=False):
        self.array = array
        self.device = types.SimpleNamespace(id=0)
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "strides": array.strides,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, read_only),
            "stream": stream,
        }


def interface():
    out = np.zeros((3, 5), np.float32)
    gpu_gemm.matmul(Interface(A), Interface(B), out=Interface(out))
    assert np.array_equal(out, C)
    calls()
    gpu_gemm.matmul(Interface(A, stream=2), Interface(B), out=Interface(out))
    names = calls()
    # The product's stream waits on the device for the array's.
    assert "cuEventRecord" in names and "cuStreamWaitEvent" in names, names
    # So does that of each call of a prepared product, for the stream that the array says then.
    a = Interface(A)
    product = gpu_gemm.prepare(a, Interface(B), out=Interface(out))
    calls()
    product()
    assert "cuStreamWaitEvent" not in calls()
    for handle in (7, 8):
        a.__cuda_array_interface__["stream"] = handle
        out[:] = 0
        product()
        names = calls()
        assert "cuStreamWaitEvent" in names and handles(names) == [handle] and np.array_equal(out, C), names
    a.__cuda_array_interface__["data"] = (A.copy().ctypes.data, False)
    refused(RuntimeError, "a has other memory than when the product was prepared", product)
    # What is no array any more is one that has changed, too.
    for key, value in (("data", (0, False)), ("data", None), ("typestr", "<i8"), ("shape", (1,) * 17), ("mask", A)):
        before = dict(a.__cuda_array_interface__)
        a.__cuda_array_interface__[key] = value
        refused(RuntimeError, "a", product)
        a.__cuda_array_interface__.update(before, mask=None)
    refused(ValueError, "out = read-only", lambda: gpu_gemm.matmul(Interface(A), Interface(B), out=Interface(out, read_only=True)))
    refused(ValueError, "a.strides in elements = [4, -1]: must not be negative", lambda: gpu_gemm.matmul(Interface(A[:, ::-1]), Interface(B)))
    halves = Interface(A)
    halves.__cuda_array_interface__["strides"] = (16, 2)
    refused(ValueError, "a = an array: must be aligned", lambda: gpu_gemm.matmul(halves, Interface(B)))
    nowhere = Interface(A)
    del nowhere.device
    refused(ValueError, "a.device.id = none: is not said, and there are 2 GPUs", lambda: gpu_gemm.matmul(nowhere, Interface(B)))


class Asked(Producer):
    """A producer that notes the streams on which it was asked to be ready."""

    def __init__(self, array):
        super().__init__(array, device=(2, 0))
        self.asked = []

    def __dlpack__(self, **options):
        self.asked.append(options.get("stream"))
        return super().__dlpack__(**options)


TENSOR_OF = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
CURRENT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    """DLPack's table of functions of a type."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 3),
        ("tensor_of", TENSOR_OF),
        ("current", CURRENT),
    ]


def tabled(stream, describes=True, base=Asked):
    """A type with a table of functions, whose current stream is that."""

    def tensor_of(it, to):
        array = it.array
        it.kept = [(ctypes.c_int64 * array.ndim)(*array.shape), (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))]
        to[0] = Tensor(array.ctypes.data, Device(*it.device), array.ndim, Type(2, 8 * array.itemsize, 1), *it.kept, 0)
        return 0

    def current(kind, index, to):
        to[0] = stream
        return 0

    table = Table(1, 3, None, (ctypes.c_void_p * 3)(), TENSOR_OF(tensor_of) if describes else TENSOR_OF(), CURRENT(current))
    capsule = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)
    return type("Tabled", (base,), {"__dlpack_c_exchange_api__": capsule, "table": table})


def cupy_module():
    """A module with the names that are used of CuPy's."""
    module = types.ModuleType("cupy")
    entered = []

    class Gpu:
        id = 0

        def __enter__(self):
            entered.append(self)

        def __exit__(self, *_):
            entered.append(None)

    class ndarray(Interface):
        def __init__(self, array):
            super().__init__(array, stream=7)
            self.dtype, self.device = array.dtype, Gpu()

    ndarray.__module__ = "cupy"
    ndarray.__qualname__ = "ndarray"
    module.ndarray = ndarray
    module.empty = lambda shape, dtype: ndarray(np.empty(shape, dtype))
    cuda = types.ModuleType("cupy.cuda")
    cuda.get_current_stream = lambda index: types.SimpleNamespace(ptr=7 + index)
    module.cuda = cuda
    sys.modules.update({"cupy": module, "cupy.cuda": cuda})
    return ndarray, entered


def cupy():
    ndarray, entered = cupy_module()
    result = gpu_gemm.matmul(ndarray(A), ndarray(B))
    assert type(result) is ndarray and np.array_equal(result.array, C) and len(entered) == 2
    calls()
    out = ndarray(np.zeros((3, 5), np.float32))
    assert gpu_gemm.matmul(ndarray(A), ndarray(B), out=out) is out
    # Nothing is waited for, by the host or on the device: the current stream is the arrays' stream.
    names = calls()
    # The library asks once whether somebody captures the stream.
    assert names[0] == "cuStreamIsCapturing" and "cuLaunch" in names[1], names
    assert handles(names) == [7] and len(names) == 4, names
    # Another stream waits for it.
    gpu_gemm.matmul(ndarray(A), ndarray(B), out=out, stream=9)
    names = calls()
    assert "cuStreamWaitEvent" in names and set(handles(names)) == {7, 9} and handles(names)[-1] == 9, names
    # A prepared product does the same.
    product = gpu_gemm.prepare(ndarray(A), ndarray(B), out=out)
    calls()
    product()
    names = calls()
    assert "cuStreamWaitEvent" not in names and handles(names) == [7], names
    product(stream=9)
    names = calls()
    assert "cuStreamWaitEvent" in names and set(handles(names)) == {7, 9} and handles(names)[-1] == 9, names


def torch_module():
    """A module with the names that are used of PyTorch's, before it had the table of functions."""
    module = types.ModuleType("torch")
    recorded = []

    class Tensor:
        requires_grad, is_cuda, is_cpu, dtype = False, True, False, "float32"

        def __init__(self, array):
            self.array, self.shape, self.version = array, array.shape, 0

        def is_neg(self):
            return False

        def get_device(self):
            return 0

        def data_ptr(self):
            return self.array.ctypes.data

        def stride(self):
            return tuple(stride // 4 for stride in self.array.strides)

        def new_empty(self, shape):
            return Tensor(np.empty(shape, np.float32))

        def record_stream(self, stream):
            recorded.append(stream)

    Tensor.__module__ = "torch"
    Tensor.__qualname__ = "Tensor"
    module.Tensor = Tensor
    module.float64, module.float32, module.float16, module.bfloat16 = "float64", Tensor.dtype, "float16", "bfloat16"
    module.is_grad_enabled = lambda: True
    module.autograd = types.ModuleType("torch.autograd")
    module.autograd.graph = types.ModuleType("torch.autograd.graph")

    def increment_version(tensor):
        tensor.version += 1

    module.autograd.graph.increment_version = increment_version
    cuda = types.ModuleType("torch.cuda")
    cuda.current_stream = lambda index: types.SimpleNamespace(cuda_stream=5)
    cuda.ExternalStream = lambda handle, device: (handle, device)
    module.cuda = cuda
    sys.modules.update({"torch": module, "torch.cuda": cuda})
    sys.modules.update({"torch.autograd": module.autograd, "torch.autograd.graph": module.autograd.graph})
    return Tensor, recorded


def torch():
    Tensor, recorded = torch_module()
    result = gpu_gemm.matmul(Tensor(A), Tensor(B))
    assert type(result) is Tensor and np.array_equal(result.array, C) and recorded == []
    calls()
    out = Tensor(np.zeros((3, 5), np.float32))
    assert gpu_gemm.matmul(Tensor(A), Tensor(B), out=out) is out and np.array_equal(out.array, C)
    names = calls()
    # The library asks once whether somebody captures the stream.
    assert names[0] == "cuStreamIsCapturing" and "cuLaunch" in names[1], names
    assert handles(names) == [5] and len(names) == 4, names
    gpu_gemm.matmul(Tensor(A), Tensor(B), out=out, stream=6)
    assert recorded == [(6, "cuda:0")] * 3
    # PyTorch is told of each write.
    assert out.version == 2
    a, b = Tensor(A), Tensor(B)
    product = gpu_gemm.prepare(a, b, out=out)
    assert out.version == 2
    out.array[:] = 0
    assert product() is out and np.array_equal(out.array, C) and out.version == 3
    recorded.clear()
    product(stream=6)
    assert recorded == [(6, "cuda:0")] * 3 and out.version == 4 and a.version == b.version == 0
    # An array of another module is no tensor.
    both = gpu_gemm.prepare(Tensor(A), on_gpu(B), out=out)
    recorded.clear()
    both(stream=6)
    assert recorded == [(6, "cuda:0")] * 2 and out.version == 5
    gpu_gemm.matmul(on_gpu(A), Tensor(B), out=out)
    assert out.version == 6
    leaf = Tensor(np.zeros((3, 5), np.float32))
    leaf.requires_grad = True
    refused(RuntimeError, "out.requires_grad = True: out= does not support automatic differentiation", lambda: gpu_gemm.matmul(a, b, out=leaf))
    assert leaf.version == 0 and not leaf.array.any()
    leaf.shape, leaf.array = A.shape, A
    refused(RuntimeError, "a.requires_grad = True: the product records no gradient. Pass a.detach()", lambda: gpu_gemm.matmul(leaf, b))
    out.array = out.array.copy()
    refused(RuntimeError, "out has other memory", product)


def ready():
    """An array is asked to be ready on the product's stream."""
    Tensor, _ = torch_module()
    ndarray, _ = cupy_module()
    target = np.zeros((3, 5), np.float32)
    # The product is on A's stream, whatever module the others are from. An array without a current stream is kept until its end.
    for a, out, stream in ((Tensor(A), Tensor(target), 5), (ndarray(A), ndarray(target), 7), (tabled(6)(A), tabled(6)(target), 6)):
        for explicit in (None, 9):
            on = explicit or stream
            b = Asked(B)
            calls()
            gpu_gemm.matmul(a, b, out=out, stream=explicit)
            assert b.asked == [on] and b.deleted == 1, (b.asked, on)
            found = order(calls())
            assert found[-2:] == [("launch", on), ("synchronize", None)] and np.array_equal(target, C), found
            product = gpu_gemm.prepare(a, b, out=out)
            b.asked.clear()
            target[:] = 0
            calls()
            product(stream=explicit)
            found = order(calls())
            assert b.asked == [on] and found[-2:] == [("launch", on), ("synchronize", None)], (b.asked, found)
            assert np.array_equal(target, C)
    # A itself, too: it is known before A is read. DLPack's number of the default stream is 1.
    for kind, explicit, on in ((tabled(6, describes=False), None, 6), (tabled(6, describes=False), 9, 9), (Asked, 9, 9), (Asked, 0, 1)):
        a, b, out = kind(A), kind(B), kind(target)
        gpu_gemm.matmul(a, b, out=out, stream=explicit)
        assert a.asked == b.asked == out.asked == [on], (a.asked, b.asked, out.asked, on)
        product = gpu_gemm.prepare(a, b, out=out)
        a.asked.clear()
        product(stream=explicit)
        assert a.asked == [on]
    # The result of an unknown module is an array of this package, which is asked as what it is.
    product = gpu_gemm.prepare(tabled(6)(A), tabled(6)(B))
    assert type(product()) is gpu_gemm.Array
    # Without any current stream: the library's own.
    a, b = Asked(A), Tensor(B)
    calls()
    gpu_gemm.matmul(a, Asked(B), out=Asked(target))
    found = order(calls())
    assert a.asked[0] not in (None, 1, 5, 9) and found == [("launch", None), ("synchronize", None)], (a.asked, found)
    # It waits for PyTorch's, which has no other way to say what its tensors wait for.
    gpu_gemm.matmul(a, b, out=Asked(target))
    found = order(calls())
    assert found == [("record", 5), ("wait", None), ("launch", None), ("synchronize", None)], found


def mixed():
    """A product of two modules' arrays waits for the streams of both."""
    Tensor, _ = torch_module()
    ndarray, _ = cupy_module()
    target = np.zeros((3, 5), np.float32)
    other = tabled(6)
    both = ("synchronize", None)
    for a, b, out, found in (
        (ndarray(A), Tensor(B), ndarray(target), [("record", 5), ("wait", 7), ("launch", 7), both]),
        (ndarray(A), ndarray(B), Tensor(target), [("record", 5), ("wait", 7), ("launch", 7), both]),
        (Tensor(A), ndarray(B), Tensor(target), [("record", 7), ("wait", 5), ("launch", 5), both]),
        (Tensor(A), Tensor(B), other(target), [("record", 6), ("wait", 5), ("launch", 5), both]),
        (other(A), Tensor(B), other(target), [("record", 5), ("wait", 6), ("launch", 6), both]),
        (other(A), tabled(8)(B), other(target), [("record", 8), ("wait", 6), ("launch", 6), both]),
        (other(A), tabled(6)(B), other(target), [("launch", 6), both]),
        (Tensor(A), Tensor(B), Tensor(target), [("launch", 5)]),
    ):
        calls()
        gpu_gemm.matmul(a, b, out=out)
        first = order(calls())
        product = gpu_gemm.prepare(a, b, out=out)
        target[:] = 0
        calls()
        product()
        second = order(calls())
        assert np.array_equal(target, C)
        assert first == second == found, (first, second, found)
    # Memory of a new result may be in use on its module's stream.
    calls()
    gpu_gemm.matmul(Tensor(A), Tensor(B), stream=9)
    found = order(calls())
    assert found == [("record", 5), ("wait", 9), ("launch", 9)], found


def changed():
    """An array of a prepared product that has changed at the same address."""
    Tensor, _ = torch_module()
    memory = np.zeros((3, 5), np.float32)
    asking = tabled(6, describes=False)
    for kind in (Tensor, tabled(6), asking, Asked):
        a, b, out = kind(A), kind(B), kind(memory)
        product = gpu_gemm.prepare(a, b, out=out)
        product()
        as_before = "as when the product was prepared"

        def to(array, of=a):
            of.array, of.shape = array, array.shape

        to(A[:2])
        refused(RuntimeError, f"a.shape = (2, 4): must be (3, 4), {as_before}", product)
        to(np.lib.stride_tricks.as_strided(A, (3, 4), (12, 4)))
        refused(RuntimeError, f"a.strides in elements = [3, 1]: must be [4, 1], {as_before}", product)
        to(A.copy())
        refused(RuntimeError, "a has other memory than when the product was prepared", product)
        to(A)
        to(memory[:, :4], out)
        refused(RuntimeError, f"out.shape = (3, 4): must be (3, 5), {as_before}", product)
        to(memory, out)
        if kind is not Tensor:
            to(np.lib.stride_tricks.as_strided(A.view(np.float16), (3, 4), (8, 2)))
            refused(RuntimeError, f"a.dtype = float16: must be float32, {as_before}", product)
            to(A)
        # The stub without that function says the stream of cuda:0 for all GPUs, which the driver refuses.
        if kind not in (Tensor, asking):
            a.device = (2, 1)
            refused(RuntimeError, f"a.device = cuda:1: must be cuda:0, {as_before}", product)
            a.device = (2, 0)
        if kind is Asked:
            out.flags = 1
            refused(RuntimeError, "out.read-only: must be writable", product)
            out.flags = 0
        memory[:] = 0
        product()
        assert np.array_equal(memory, C)


def streams():
    out = on_gpu(np.zeros((3, 5), np.float32))
    for stream in (0, 77, types.SimpleNamespace(cuda_stream=78), types.SimpleNamespace(ptr=79)):
        gpu_gemm.matmul(on_gpu(A), on_gpu(B), out=out, stream=stream)
        assert np.array_equal(out.array, C)
        out.array[:] = 0
    assert handles(calls()) == [0, 77, 78, 79]

    class Protocol:
        def __cuda_stream__(self):
            return (0, 80)

    # More handles than are kept.
    calls()
    for handle in range(100, 150):
        gpu_gemm.matmul(on_gpu(A), on_gpu(B), out=out, stream=handle)
    gpu_gemm.matmul(on_gpu(A), on_gpu(B), out=out, stream=Protocol())
    names = calls()
    assert np.array_equal(out.array, C) and handles(names) == [*range(100, 150), 80]
    # Other libraries' streams are not destroyed, and none is made.
    assert not [name for name in names if "StreamCreate" in name or "StreamDestroy" in name]


def fork():
    assert np.array_equal(gpu_gemm.matmul(A, B), C)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing"
        try:
            gpu_gemm.matmul(A, B)
        except RuntimeError as error:
            said = str(error)
        if np.array_equal(gpu_gemm.matmul(A, B, device="cpu"), C):
            said += " The CPU works."
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    assert said.startswith(f"CUDA was started in process {os.getpid()}, and a child after a fork cannot use it"), said
    assert said.endswith("The CPU works."), said


def errors():
    a, b = on_gpu(A), on_gpu(B)
    refused(ValueError, "b.device = host memory: must be cuda:0, as a", lambda: gpu_gemm.matmul(a, B))
    refused(ValueError, "b.device = cuda:1: must be cuda:0, as a", lambda: gpu_gemm.matmul(a, Producer(B, device=(2, 1))))
    refused(ValueError, "device = 'cpu': must be None or 'cuda:0': the arrays are there", lambda: gpu_gemm.matmul(a, b, device="cpu"))
    square = np.ones((4, 4), np.float32)
    both = on_gpu(square)
    refused(ValueError, "a = at 0x", lambda: gpu_gemm.matmul(both, on_gpu(np.ones((4, 4), np.float32)), out=both))
    repeated = on_gpu(np.broadcast_to(np.ones((1, 5), np.float32), (3, 5)))
    refused(ValueError, "out.strides in elements = [0, 1]", lambda: gpu_gemm.matmul(a, b, out=repeated))
    # Over all of `out`: in batches, and on a GPU by copies, too.
    stack, memory = np.ones((2, 3, 4), np.float32), np.ones(64, np.float32)
    for strides in ((0, 20, 4), (4, 20, 4), (20, 20, 4)):
        overlapping = np.lib.stride_tricks.as_strided(memory, (2, 3, 5), strides)
        start = f"out.strides in elements = [{strides[0] // 4}, 5, 1]: two elements"
        for function in (gpu_gemm.matmul, gpu_gemm.prepare):
            refused(ValueError, start, lambda: function(on_gpu(stack), b, out=on_gpu(overlapping)))
            refused(ValueError, start, lambda: function(stack, B, out=overlapping))
    nowhere = on_gpu(A)
    nowhere.device = (2, -1)
    refused(ValueError, "a.device = DLPack's device 2, -1", lambda: gpu_gemm.matmul(nowhere, b))
    gaps = on_gpu(np.ones(10, np.float32)[::2])
    refused(ValueError, "bias.strides in elements = [2]: must be contiguous", lambda: gpu_gemm.matmul(a, b, bias=gaps))
    refused(RuntimeError, "cuda:63", lambda: gpu_gemm.matmul(A, B, device="cuda:63"))


def dask():
    """Worker i has GPU i modulo their number, and multiplies there."""
    import dask.array
    import distributed

    import gpu_gemm.dask

    with distributed.Client(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=None) as client:
        workers = client.scheduler_info()["workers"].items()
        of_worker = lambda address: client.submit(gpu_gemm.dask._device, workers=[address], pure=False).result()
        assert {worker["name"]: of_worker(address) for address, worker in workers} == {0: "cuda:0", 1: "cuda:1", 2: "cuda:0"}
        a, b = (dask.array.from_array(x, chunks=(2, 3)) for x in (A, B))
        calls()
        assert np.array_equal(gpu_gemm.dask.matmul(a, b).compute(), C)
        # A pair of chunks is a launch: 2 of rows, 3 of k, where either is cut, and 2 of columns.
        assert len([name for name in calls() if name.startswith("cuLaunchKernel")]) == 12


if __name__ == "__main__":
    part = sys.argv[1]
    globals()[part]()
    print(f"{part}: passed")
