"""Products of PyTorch's, CuPy's and JAX's arrays on a GPU: values, pointers, streams, forks, host time.

    python host/python/tests/gpu.py [torch] [cupy] [jax] [numpy] [time] [epilogues]

Needs the package (installed, or its folder on PYTHONPATH) and NumPy; a library that is missing is named and left out. The
exit code is 1 if anything failed. Without names everything runs but `epilogues`, which times for minutes.
"""

import os
import statistics
import sys
import time
import traceback

# JAX leaves memory to the others.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np

import gpu_gemm
from gpu_gemm import _native

ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
SUMS = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-24, "bfloat16": 2.0**-24}
failures = []
checks = 0


def check(holds, what):
    """Counts a check, and remembers it if it fails."""
    global checks
    checks += 1
    if not holds:
        failures.append(what)
        print(f"FAILED: {what}", flush=True)


def within(result, a, b, dtype, what, extra=0.0, sums=None, factor=1.0):
    """Checks a product against float64. Arrays are NumPy's of float64, `a` and `b` as they were rounded."""
    exact = factor * np.matmul(a, b) + extra
    k = a.shape[-1]
    # Tensor cores truncate sums of bf16 and f16: two units of float32 for each step.
    unit = sums or (2 if dtype in ("float16", "bfloat16") else 1) * SUMS[dtype]
    limit = (k + 8) * unit * (abs(factor) * np.matmul(np.abs(a), np.abs(b)) + np.abs(extra))
    limit = limit + 2 * ROUNDOFF[dtype] * np.abs(exact) + 2.0**-24 * (dtype == "float16") + 1e-300
    error = np.abs(result - exact)
    largest = np.max(error / limit, initial=0.0)
    check(bool((error <= limit).all()), f"{what}: {largest} of the error bound")


def fails(kind, text, function, what):
    """Checks that a call raises an exception of that kind, with that text in it."""
    try:
        function()
    except kind as error:
        check(text in str(error), f"{what}: `{error}` does not say `{text}`")
    else:
        check(False, f"{what}: no {kind.__name__}")


class Interface:
    """An array of which only `__cuda_array_interface__` is known."""

    def __init__(self, tensor, stream=None):
        self.tensor, self.stream = tensor, stream
        self.device = type("Device", (), {"id": tensor.get_device()})()

    @property
    def __cuda_array_interface__(self):
        return {**self.tensor.__cuda_array_interface__, "stream": self.stream, "version": 3}


class Dlpack:
    """An array of which only DLPack is known."""

    def __init__(self, tensor):
        self.tensor, self.streams = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options):
        self.streams.append(options.get("stream"))
        return self.tensor.__dlpack__(**options)


def of_torch_with_scales(torch, wide):
    """8-bit floats with scales of all three kinds, as the layers of servers have them: both contiguous along k."""
    generator = torch.Generator("cuda").manual_seed(2)

    def scales(*shape):
        return torch.rand(*shape, device="cuda", generator=generator) + 0.5

    def spread(scale, rows, cols):
        every = [1 if count == size else size if count == 1 else 128 for size, count in zip((rows, cols), scale.shape)]
        return np.repeat(np.repeat(wide(scale), every[0], 0), every[1], 1)[:rows, :cols]

    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        for m, n, k in [(64, 64, 128), (1000, 704, 512), (1, 333, 1040), (77, 1, 1024), (300, 130, 257), (0, 4, 4), (2048, 2048, 2048)]:
            # Without subnormal factors, which may cost more of a sum.
            a, b = ((torch.randint(8, 16, size, device="cuda", generator=generator) / 8).to(dtype) for size in ((m, k), (n, k)))
            of_k, of_n = -(-k // 128), -(-n // 128)
            kinds = {
                "tensor": (scales(1, 1), scales(1, 1)),
                "row and column": (scales(m, 1), scales(1, n)),
                "row and tensor": (scales(m, 1), scales(1, 1)),
                "blocks": (scales(of_k, m).t(), scales(of_n, of_k).t()),
            }
            for kind, (of_a, of_b) in kinds.items():
                for out in (torch.float32, torch.bfloat16, torch.float16):
                    what, name = f"torch {dtype} {kind} {m}x{n}x{k} to {out}", str(out).removeprefix("torch.")
                    scaled = [wide(a) * spread(of_a, m, k), wide(b.t()) * spread(of_b, k, n)]
                    # Stages of 128 steps are cut off after 13 bits; float16 holds what these give.
                    small = 2.0**-6 if out == torch.float16 else 1.0
                    result = gpu_gemm.scaled_matmul(a, b.t(), of_a, of_b, out_dtype=out, alpha=small)
                    check(result.dtype == out and result.is_cuda, f"type of {what}")
                    within(wide(result), *scaled, name, what, sums=34 * 4 * 2.0**-13 / (k + 8), factor=small)
                    into = torch.empty(m, n, dtype=out, device="cuda")
                    product = gpu_gemm.prepare(a, b.t(), scale_a=of_a, scale_b=of_b, out=into, alpha=small)
                    check(product() is into and torch.equal(into, result), f"prepared {what}")
                    # From host memory, by copies.
                    copied = gpu_gemm.scaled_matmul(a.cpu(), b.cpu().t(), of_a.cpu(), of_b.cpu(), out_dtype=out, alpha=small, device="cuda")
                    check(not copied.is_cuda, f"place of {what}")
                    within(wide(copied), *scaled, name, f"copied {what}", sums=34 * 4 * 2.0**-13 / (k + 8), factor=small)
    one = torch.ones(1, device="cuda")
    powers = one.to(torch.float8_e8m0fnu)
    fails(TypeError, "must be float32", lambda: gpu_gemm.scaled_matmul(a, b.t(), powers, one), "scales of powers of two")
    fails(ValueError, "scale_a.device", lambda: gpu_gemm.scaled_matmul(a, b.t(), one.cpu(), one), "scales in host memory")


def with_torch():
    import torch

    print(f"torch {torch.__version__}, table of functions: {hasattr(torch.Tensor, '__dlpack_c_exchange_api__')}")
    generator = torch.Generator("cuda").manual_seed(1)

    def draw(*shape, dtype=torch.float32):
        return torch.randn(*shape, device="cuda", generator=generator).to(dtype)

    def wide(tensor):
        return tensor.double().cpu().numpy()

    matmul = gpu_gemm.matmul
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        for m, n, k in [(64, 64, 64), (1000, 700, 513), (1, 333, 65), (77, 1, 1025), (5, 3, 0), (0, 4, 4), (2048, 2048, 2048)]:
            a, b = draw(m, k, dtype=dtype), draw(k, n, dtype=dtype)
            result = matmul(a, b)
            check(type(result) is torch.Tensor and result.dtype == dtype and result.is_cuda, f"type of {name}")
            within(wide(result), wide(a), wide(b), name, f"torch {name} {m}x{n}x{k}")
        # Layouts: transposed, with gaps, at an odd place, repeated.
        base = draw(130, 131, dtype=dtype)
        for a, b in [
            (base.t(), base),
            (base[::2, 1:], draw(130, 9, dtype=dtype)),
            (base[1:, 3:67], draw(64, 5, dtype=dtype)),
            (base[:1].expand(7, 131), draw(131, 4, dtype=dtype)),
        ]:
            within(wide(matmul(a, b)), wide(a), wide(b), name, f"torch {name} strides {a.stride()}")
        # Batches and vectors, as numpy.matmul.
        for left, right in [((3, 4, 5), (5, 6)), ((4, 5), (3, 5, 6)), ((2, 1, 4, 5), (3, 5, 6)), ((5,), (5, 6)), ((4, 5), (5,)), ((5,), (5,)), ((0, 4, 5), (5, 6))]:
            a, b = draw(*left, dtype=dtype), draw(*right, dtype=dtype)
            result = matmul(a, b)
            expected = torch.matmul(a, b)
            check(result.shape == expected.shape, f"torch shape {left} {right}")
            if a.ndim > 1 and b.ndim > 1:
                within(wide(result), wide(a), wide(b), name, f"torch {name} batch {left} {right}")
            else:
                error = np.abs(wide(result) - np.matmul(wide(a), wide(b)))
                check(bool((error <= 40 * ROUNDOFF[name] * 30).all()), f"torch {name} vectors {left} {right}")
        heads = draw(3, 50, 4, 16, dtype=dtype)
        a, b = heads.permute(0, 2, 1, 3), heads.permute(0, 2, 3, 1)
        within(wide(matmul(a, b)), wide(a), wide(b), name, f"torch {name} heads")

    if torch.cuda.get_device_capability() == (9, 0):
        of_torch_with_scales(torch, wide)

    # A C of another type, the epilogue, the arithmetic.
    for dtype in (torch.float16, torch.bfloat16):
        a, b = draw(200, 300, dtype=dtype), draw(300, 100, dtype=dtype)
        out = torch.empty(200, 100, device="cuda")
        check(matmul(a, b, out=out) is out, "out is returned")
        within(wide(out), wide(a), wide(b), "float32", f"torch {dtype} with a float32 result", sums=2.0**-23)
    a, b, bias = draw(65, 130), draw(130, 67), draw(67)
    out = draw(65, 67)
    old = wide(out)
    matmul(a, b, out=out, alpha=0.5, beta=2.0, bias=bias)
    within(wide(out), wide(a), wide(b), "float32", "torch epilogue", extra=2 * old + wide(bias), factor=0.5)
    relu = matmul(a, b, bias=bias, activation="relu")
    check(bool((relu >= 0).all()), "relu")
    for compute, unit in (("tf32", 2.0**-9), ("bf16x6", 2.0**-24), ("f16x3", 2.0**-24)):
        a, b = draw(1024, 1024), draw(1024, 1024)
        within(wide(matmul(a, b, compute=compute)), wide(a), wide(b), "float32", f"torch {compute}", sums=unit)

    # No copies: no memory is taken, and pointers are the tensors'.
    a, b, out = draw(512, 512), draw(512, 512), torch.empty(512, 512, device="cuda")
    torch.cuda.synchronize()
    before, pointer = torch.cuda.memory_allocated(), out.data_ptr()
    matmul(a, b, out=out)
    check(torch.cuda.memory_allocated() == before and out.data_ptr() == pointer, "no copy with out=")
    product = gpu_gemm.prepare(a, b, out=out)
    a.fill_(1.0)
    b.fill_(2.0)
    check(product() is out and bool((out == 1024).all()), "a prepared product reads the tensors where they are")
    for kind in (Interface, Dlpack):
        lent = _native._lent()
        result = matmul(kind(a), kind(b))
        check(isinstance(result, gpu_gemm.Array) and result.device == "cuda:0", f"{kind.__name__} gives an Array")
        address = result.__cuda_array_interface__["data"][0]
        tensor = torch.from_dlpack(result)
        check(tensor.data_ptr() == address, "DLPack out: the same pointer")
        check(torch.as_tensor(result, device="cuda").data_ptr() == address, "interface out: the same pointer")
        check(_native._lent() == lent + 1, "one tensor is lent")
        check(bool((tensor == 1024).all()), f"{kind.__name__} values")
        del result
        check(bool((tensor == 1024).all()), "the memory outlives the array")
        del tensor
        check(_native._lent() == lent, "the tensor was given back once")
        into = kind(out.zero_())
        matmul(kind(a), kind(b), out=into)
        check(bool((out == 1024).all()), f"{kind.__name__} out=")
    seen = Dlpack(a)
    matmul(seen, Dlpack(b), stream=torch.cuda.current_stream())
    check(seen.streams == [1], f"DLPack is told the stream: {seen.streams}")
    moved = draw(8, 8)
    product = gpu_gemm.prepare(moved, moved)
    moved.set_(draw(8, 8))
    fails(RuntimeError, "other memory", product, "a tensor that was moved")
    for change, said in ((lambda it: it.resize_(4, 8), "a.shape = (4, 8): must be (8, 8)"), (lambda it: it.t_(), "a.strides")):
        changed = draw(8, 8)
        product = gpu_gemm.prepare(changed, draw(8, 8))
        change(changed)
        fails(RuntimeError, said, product, "a tensor that has changed at the same address")
    # PyTorch is told of writes, so it computes no gradient by old elements.
    weights = draw(512, 512).requires_grad_()
    for write in (lambda: matmul(a, b, out=out), gpu_gemm.prepare(a, b, out=out)):
        loss = (weights * out).sum()
        write()
        fails(RuntimeError, "modified by an inplace operation", loss.backward, "a saved tensor that was written")
    fails(RuntimeError, "out= does not support", lambda: matmul(a, b, out=weights), "out= with a gradient")

    # Streams: the current one, a named one, by object and by handle. The sleep shows an order that is not kept.
    side = torch.cuda.Stream()
    sleep = 20_000_000
    # The workspace of the stream is there before.
    matmul(a, b, out=out, stream=side)
    # A prepared product waits for the stream that an array names at the call.
    late = Interface(a)
    product = gpu_gemm.prepare(late, Interface(b), out=Interface(out))
    a.fill_(0.0)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(sleep)
        a.fill_(1.0)
    late.stream = side.cuda_stream
    product()
    check(bool((out == 1024).all()), "a prepared product waits for an array's stream")
    torch.cuda.synchronize()
    for how in ("current", "object", "handle"):
        a.fill_(0.0)
        out.fill_(-1.0)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(sleep)
            a.fill_(1.0)
            if how == "current":
                matmul(a, b, out=out)
        if how == "object":
            matmul(a, b, out=out, stream=side)
        if how == "handle":
            matmul(a, b, out=out, stream=side.cuda_stream)
        check(not side.query(), f"stream by {how}: the call does not wait")
        side.synchronize()
        check(bool((out == 1024).all()), f"stream by {how}: after the work before it")
    # A stream that sleeps does not hold up a product on another.
    torch.cuda._sleep(20 * sleep)
    with torch.cuda.stream(side):
        matmul(a, b, out=out)
    side.synchronize()
    check(not torch.cuda.default_stream().query(), "a product on another stream does not wait for the default one")
    torch.cuda.synchronize()
    # An array that says on which stream it is ready.
    a.fill_(0.0)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(sleep)
        a.fill_(1.0)
    tensor = torch.from_dlpack(matmul(Interface(a, side.cuda_stream), Interface(b)))
    check(bool((tensor == 1024).all()), "the interface's stream is waited for")

    # The product is on PyTorch's stream, and the producer of B works on another.
    class Late(Dlpack):
        def __dlpack__(self, **options):
            with torch.cuda.stream(side):
                return super().__dlpack__(**options)

    product = gpu_gemm.prepare(a, Late(b), out=out)
    for run, what in ((lambda: matmul(a, Late(b), out=out), "matmul"), (product, "a prepared product")):
        b.fill_(0.0)
        out.fill_(-1.0)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(sleep)
            b.fill_(2.0)
        run()
        torch.cuda.synchronize()
        check(bool((out == 1024).all()), f"{what} waits for a producer of DLPack on another stream than its own")
    # Errors.
    fails(ValueError, "b.device = host memory: must be cuda:0, as a", lambda: matmul(a, b.cpu()), "two places")
    fails(ValueError, "device = 'cpu'", lambda: matmul(a, b, device="cpu"), "another device")
    fails(ValueError, "must not overlap out", lambda: matmul(a, b, out=a), "an overlap")
    fails(ValueError, "might share memory", lambda: matmul(a, b, out=out[:1].expand(512, 512)), "a repeated out")
    fails(ValueError, "bias.strides", lambda: matmul(a, b, bias=draw(1024)[::2]), "a bias with gaps")
    fails(RuntimeError, "requires_grad", lambda: matmul(a.clone().requires_grad_(), b), "a gradient")
    fails(TypeError, "int32", lambda: matmul(a.int(), b.int()), "integers")
    with torch.no_grad():
        matmul(torch.nn.Parameter(a), b)
    check(torch.cuda.current_device() == 0, "the current device")

    # A child after a fork says why it cannot.
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = "another exception"
        try:
            try:
                gpu_gemm.matmul(np.ones((2, 2)), np.ones((2, 2)))
                said = "no error"
            except RuntimeError as error:
                said = str(error)
            one = gpu_gemm.matmul(np.ones((2, 2)), np.ones((2, 2)), device="cpu")
            said += ": cpu works" if (one == 2).all() else ": cpu is wrong"
        finally:
            os.write(write, said.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    check("after a fork" in said and "cpu works" in said, f"fork: {said}")

    # Under a graph's capture. Everything was loaded by the product before.
    x, y, z = draw(256, 256), draw(256, 256), torch.zeros(256, 256, device="cuda")
    with torch.cuda.stream(side):
        matmul(x, y, out=z)
    side.synchronize()
    expected = z.clone()
    z.zero_()
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            matmul(x, y, out=z)
        graph.replay()
        torch.cuda.synchronize()
        print(f"note: captured and replayed in a CUDA graph, same bits: {bool((z == expected).all())}")
    except Exception as error:
        print(f"note: not captured in a CUDA graph: {type(error).__name__}: {error}")
        torch.cuda.synchronize()


def with_cupy():
    import cupy

    print(f"cupy {cupy.__version__}")
    random = cupy.random.RandomState(1)

    def draw(*shape, dtype="float32"):
        return random.standard_normal(shape).astype(dtype)

    def wide(array):
        return cupy.asnumpy(array).astype(np.float64)

    for name in ("float64", "float32", "float16"):
        for left, right in [((100, 70), (70, 51)), ((3, 1, 10, 7), (2, 7, 5)), ((1000, 513), (513, 700))]:
            a, b = draw(*left, dtype=name), draw(*right, dtype=name)
            result = gpu_gemm.matmul(a, b)
            check(type(result) is cupy.ndarray and result.dtype == name, f"type of cupy {name}")
            within(wide(result), wide(a), wide(b), name, f"cupy {name} {left}")
        a, b = draw(70, 100, dtype=name).T, draw(70, 102, dtype=name)[:, ::2]
        within(wide(gpu_gemm.matmul(a, b)), wide(a), wide(b), name, f"cupy {name} strides")
    a, b = cupy.full((512, 512), 1.0, "float32"), cupy.full((512, 512), 2.0, "float32")
    out = cupy.empty((512, 512), "float32")
    pool, pointer = cupy.get_default_memory_pool(), out.data.ptr
    before = pool.used_bytes()
    check(gpu_gemm.matmul(a, b, out=out) is out, "cupy out is returned")
    check(pool.used_bytes() == before and out.data.ptr == pointer, "cupy: no copy with out=")
    check(bool((out == 1024).all()), "cupy values")
    fails(ValueError, "must not be negative", lambda: gpu_gemm.matmul(a[::-1], b), "cupy: a negative stride")
    stream = cupy.cuda.Stream(non_blocking=True)
    delay = cupy.RawKernel(
        'extern "C" __global__ void delay(float* x) { long long t = clock64(); while (clock64() - t < 20000000) {} '
        "for (int i = threadIdx.x; i < 512 * 512; i += blockDim.x) x[i] = 3; }",
        "delay",
    )
    for how in ("current", "object", "handle"):
        a[...] = 0
        out[...] = -1
        cupy.cuda.Device().synchronize()
        with stream:
            delay((1,), (256,), (a,))
            if how == "current":
                gpu_gemm.matmul(a, b, out=out)
        if how == "object":
            gpu_gemm.matmul(a, b, out=out, stream=stream)
        if how == "handle":
            gpu_gemm.matmul(a, b, out=out, stream=stream.ptr)
        stream.synchronize()
        check(bool((out == 3072).all()), f"cupy stream by {how}")


def with_jax():
    import jax
    import jax.numpy as jnp

    print(f"jax {jax.__version__} on {jax.devices()}")
    if jax.devices()[0].platform != "gpu":
        print("LEFT OUT: jax has no GPU here: its arrays are in host memory")
    generator = np.random.default_rng(1)
    for name in ("float32", "float16", "bfloat16"):
        for left, right in [((100, 70), (70, 51)), ((3, 10, 7), (7, 5)), ((1000, 513), (513, 700))]:
            a, b = (jnp.asarray(generator.standard_normal(shape), dtype=name) for shape in (left, right))
            lent = _native._lent()
            # On the GPU, a GPU's; JAX on the CPU is told the device, so that nothing is copied.
            options = {} if jax.devices()[0].platform == "gpu" else {"device": "cpu"}
            result = gpu_gemm.matmul(a, b, **options)
            check(isinstance(result, jax.Array) and result.dtype == name, f"type of jax {name}")
            check(_native._lent() == lent + 1, f"jax {name}: the result is lent, not copied")
            a, b, values = (np.asarray(array.astype("float32")).astype(np.float64) for array in (a, b, result))
            within(values, a, b, name, f"jax {name} {left}")
            del result
            check(_native._lent() == lent, f"jax {name}: the result was given back once")
    a = jnp.ones((4, 4))
    fails(ValueError, "read-only", lambda: gpu_gemm.matmul(a, a, out=a + 1), "jax: out")
    # The operand is being computed when the product is called.
    big = jnp.ones((4096, 4096))
    late = jnp.tanh(big @ big @ big) * 2
    result = gpu_gemm.matmul(late, big, **options)
    check(bool((result == 8192).all()), "jax: work before the product is waited for")


def with_numpy():
    name, why = gpu_gemm.default_device()
    print(f"numpy {np.__version__}; default device {name} {why or ''}")
    generator = np.random.default_rng(1)
    for dtype in (np.float64, np.float32, np.float16):
        a, b = (generator.standard_normal(shape).astype(dtype) for shape in ((3, 65, 70), (70, 33)))
        for left, right in ((a, b), (a[:, ::-1], b[:, ::-2]), (a.swapaxes(1, 2).copy().swapaxes(1, 2), b.T.copy().T)):
            result = gpu_gemm.matmul(left, right, device="cuda")
            values = (array.astype(np.float64) for array in (result, left, right))
            within(*values, np.dtype(dtype).name, f"numpy on the GPU, {np.dtype(dtype).name}")
        wide = np.full((3, 65, 66), 7, dtype)
        gpu_gemm.matmul(a, b, out=wide[..., ::2], beta=1.0, device="cuda")
        check(bool((wide[..., 1::2] == 7).all()), "numpy: what is between the elements of out stays")
        values = (array.astype(np.float64) for array in (wide[..., ::2], a, b))
        within(*values, np.dtype(dtype).name, "numpy: beta", extra=7.0)
    check(gpu_gemm.default_device()[0] == "cuda:0", "the default device is the GPU")


def median_ns(call, synchronize, calls=10_000):
    """The host time of a call: the median, with a pause of the queue after each hundred."""
    times = []
    clock = time.perf_counter_ns
    for index in range(calls + 200):
        start = clock()
        call()
        took = clock() - start
        if index >= 200:
            times.append(took)
        if index % 100 == 99:
            synchronize()
    return statistics.median(times)


def host_time():
    """64 x 64 x 64 with `out=`, and what the library's call takes by itself."""
    import torch

    a, b, out = (torch.ones(64, 64, device="cuda") for _ in range(3))
    synchronize = torch.cuda.synchronize
    product = gpu_gemm.prepare(a, b, out=out)
    library = []
    for _ in range(102):
        library += product._library_ns(100)
        synchronize()
    library = statistics.median(library[200:])
    empty = median_ns(lambda: None, synchronize)
    print(f"host time at 64^3, median of 10,000 calls, ns; an empty call takes {empty:.0f}")
    print(f"  the library's call, in Rust           {library:8.0f}")
    rows = [
        ("prepared", product, 5_000),
        ("three torch tensors", lambda: gpu_gemm.matmul(a, b, out=out), 15_000),
        ("torch.matmul(out=)", lambda: torch.matmul(a, b, out=out), None),
        ("two torch tensors, without out", lambda: gpu_gemm.matmul(a, b), None),
    ]
    try:
        import cupy

        x, y, z = (cupy.ones((64, 64), "float32") for _ in range(3))
        rows.append(("three cupy arrays", lambda: gpu_gemm.matmul(x, y, out=z), None))
        rows.append(("cupy.matmul(out=)", lambda: cupy.matmul(x, y, out=z), None))
    except ImportError:
        pass
    for name, call, target in rows:
        took = median_ns(call, synchronize)
        beyond = took - library
        aim = f"aim {target}" if target else ""
        print(f"  {name:<36}  {took:8.0f}  beyond the library's {beyond:8.0f}  {aim}", flush=True)
        if target:
            check(beyond <= target, f"host time of {name}: {beyond} ns beyond the library's, aim {target}")


def epilogue_times():
    import epilogues

    epilogues.main(check)


def main():
    print(f"python {sys.version.split()[0]}; {dict(gpu_gemm.devices())}", flush=True)
    parts = {"torch": with_torch, "cupy": with_cupy, "jax": with_jax, "numpy": with_numpy, "time": host_time}
    left_out, usual = [], list(parts)
    parts["epilogues"] = epilogue_times
    for name in sys.argv[1:] or usual:
        try:
            parts[name]()
            print(f"{name}: done, {checks} checks so far", flush=True)
        except ImportError as error:
            left_out.append(name)
            print(f"LEFT OUT: {name}: {error}", flush=True)
        except Exception:
            failures.append(name)
            traceback.print_exc()
    print(f"{checks} checks, {len(failures)} failed, left out: {left_out or 'nothing'}")
    for what in failures:
        print(f"FAILED: {what}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
