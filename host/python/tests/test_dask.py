"""Products of dask arrays: on the synchronous scheduler, and on clusters of this machine's CPU devices."""

import os
import pathlib
import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from conftest import bound

import gpu_gemm

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
gemm = pytest.importorskip("gpu_gemm.dask")

PAGE = pathlib.Path(__file__).parents[3] / "docs/guide/dask.md"


def product(a, a_chunks, b, b_chunks, **options):
    """The product, of arrays in these chunks, on the CPU device by this thread."""
    c = gemm.matmul(da.from_array(a, a_chunks), da.from_array(b, b_chunks), device="cpu", **options)
    result = c.compute(scheduler="synchronous")
    assert (result.shape, result.dtype) == (c.shape, c.dtype)
    return result


@pytest.mark.parametrize(
    "a, a_chunks, b, b_chunks",
    [
        ((20, 30), (7, 11), (30, 13), (8, 5)),
        ((20, 30), -1, (30, 13), (30, 5)),
        ((20, 30), ((1, 19), (29, 1)), (30, 13), ((1, 29), (13,))),
        ((30,), 7, (30,), 8),
        ((30,), 7, (3, 30, 13), (2, 8, 5)),
        ((4, 20, 30), (3, 7, 11), (30,), 8),
        ((2, 3, 9, 30), (1, 2, 7, 11), (3, 30, 5), (2, 8, 5)),
        ((2, 1, 9, 30), (1, 1, 7, 11), (1, 3, 30, 5), (1, 2, 8, 3)),
        ((0, 30), (1, 7), (30, 13), (8, 5)),
        ((20, 0), (7, 1), (0, 13), (1, 5)),
        ((0, 4, 5), -1, (5, 6), -1),
    ],
    ids=str,
)
def test_chunks_and_shapes(a, a_chunks, b, b_chunks, rng):
    """Small integers: every order of the sums is exact."""
    a, b = (rng.integers(-5, 6, shape).astype(np.float32) for shape in (a, b))
    expected = np.matmul(a, b)
    for options in ({}, {"rechunk": "auto", "memory": 1 << 20}):
        assert np.array_equal(product(a, a_chunks, b, b_chunks, **options), expected)
    # The same from memory in Fortran order, and as transposes of what lies in C order.
    assert np.array_equal(product(np.asfortranarray(a), a_chunks, b[..., ::-1][..., ::-1], b_chunks), expected)
    if a.ndim == b.ndim == 2:
        a_t, b_t = (da.from_array(np.ascontiguousarray(x.T), chunks=5) for x in (a, b))
        assert np.array_equal(gemm.matmul(a_t.T, b_t.T, device="cpu").compute(scheduler="synchronous"), expected)


@pytest.mark.parametrize(
    "dtype, unit, of_sums",
    [
        (np.float64, 2.0**-53, 2.0**-53),
        (np.float32, 2.0**-24, 2.0**-24),
        (np.float16, 2.0**-11, 2.0**-24),
        (ml_dtypes.bfloat16, 2.0**-8, 2.0**-24),
    ],
)
def test_types(dtype, unit, of_sums, rng):
    """Sums of 16-bit types are added in float32 and rounded once."""
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((17, 150), (150, 23)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    for chunks in (-1, 40):
        c = product(a, chunks, b, chunks)
        assert c.dtype == dtype
        error = np.abs(c.astype(np.float64) - exact)
        assert (error <= bound(a, b, of_sums) + unit * np.abs(exact)).all()


def test_integers_are_exact(rng):
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((17, 150), (150, 23)))
    for chunks in (-1, 40):
        c = product(a, chunks, b, chunks)
        assert c.dtype == np.int32 and np.array_equal(c, a.astype(np.int32) @ b)


def test_the_sums_are_a_tree_in_the_order_of_k(rng):
    """Five products: ((0 + 1) + (2 + 3)) + 4, whoever computes them and in whatever order."""
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((9, 50), (50, 7)))
    p = [gpu_gemm.matmul(a[:, k : k + 10].copy(), b[k : k + 10], device="cpu") for k in range(0, 50, 10)]
    assert np.array_equal(product(a, (9, 10), b, (10, 7)), ((p[0] + p[1]) + (p[2] + p[3])) + p[4])
    # By the chunks of both, where those of a and b differ.
    p = [gpu_gemm.matmul(a[:, of].copy(), b[of], device="cpu") for of in (slice(20), slice(20, 30), slice(30, 50))]
    assert np.array_equal(product(a, (9, (20, 30)), b, ((30, 20), 7)), (p[0] + p[1]) + p[2])


F, G = (da.ones(shape, dtype=np.float32) for shape in ((2, 3), (3, 2)))


@pytest.mark.parametrize(
    "arguments, options, kind, message",
    [
        ((F, F), {}, ValueError, "a.shape[-1] = 3: must be b.shape[-2] = 2"),
        ((F, da.ones(2, dtype=np.float32)), {}, ValueError, "a.shape[-1] = 3: must be b.shape[-1] = 2"),
        ((np.ones((2, 3)), F), {}, TypeError, "type(a) = numpy.ndarray: must be dask.array.Array"),
        ((F, G.astype(np.int64)), {}, TypeError, "b.dtype = int64: must be float64, float32, float16, bfloat16, int8, float8_e4m3fn or float8_e5m2"),
        ((F, G.astype(np.float64)), {}, TypeError, "b.dtype = float64: must be float32, as a"),
        ((F.sum(), G), {}, ValueError, "a.ndim = 0: must be at least 1"),
        ((da.ones((2, 2, 3)), da.ones((3, 3, 2))), {}, ValueError, "b.shape = (3, 3, 2): cannot be broadcast with a.shape = (2, 2, 3)"),
        ((F[F[:, 0] > 0], G), {}, ValueError, "a.shape = (nan, 3): must be known: a.compute_chunk_sizes()"),
        ((F, G), {"rechunk": "all"}, ValueError, "rechunk = 'all': must be None or 'auto'"),
        ((F, G), {"compute": "fp8"}, ValueError, "compute = 'fp8': must be None, 'native', 'tf32', 'bf16x6' or 'f16x3'"),
        ((F, G), {"memory": 100}, ValueError, "memory = 100: must be at least 256 bytes, for chunks of 64"),
    ],
)
def test_errors_are_there_before_the_graph(arguments, options, kind, message):
    with pytest.raises(kind) as caught:
        gemm.matmul(*arguments, **options)
    assert str(caught.value) == message


def test_a_device_that_is_not_there_is_an_error_of_the_worker():
    c = gemm.matmul(F, G, device="cuda:63")
    with pytest.raises(RuntimeError, match="cuda:63|driver"):
        c.compute(scheduler="synchronous")


@pytest.mark.parametrize("memory", [1 << 20, 1 << 26, 1 << 30, 1 << 36])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (2000, 1500, 1000), (20_000, 15_000, 10_000), (5, 7, 10**7), (10**6, 100, 64)])
@pytest.mark.parametrize("dtype, of_sum", [("f2", 4), ("f4", 4), ("f8", 8)])
def test_proposed_chunks_fit_into_memory(sizes, dtype, of_sum, memory):
    (m, n, k), (rows, cols, depth) = sizes, gemm.chunks(*sizes, dtype, memory)
    element = np.dtype(dtype).itemsize
    assert 4 * (element * depth * (rows + cols) + of_sum * rows * cols) <= memory
    for size, side in ((m, rows), (n, cols), (k, depth)):
        assert 0 < side <= size and (side == size or side % 64 == 0)
    # With more memory there are not more chunks, but enough for some workers.
    if memory == 1 << 36:
        assert depth == k and all(-(-size // side) == min(4, -(-size // 512)) for size, side in ((m, rows), (n, cols)))


def test_a_worker_takes_the_gpu_of_its_number(monkeypatch):
    class Worker:
        name = 3

    monkeypatch.setattr(distributed, "get_worker", Worker)
    monkeypatch.setattr(gemm._native, "_gpus", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gemm._device() == "cuda:1"
    monkeypatch.setattr(Worker, "name", "tcp://10.0.0.1:4000")
    assert gemm._device() is None
    monkeypatch.setattr(Worker, "name", "2")
    assert gemm._device() == "cuda:0"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    assert gemm._device() is None


def test_without_dask():
    program = "import sys; sys.modules['dask'] = None; import gpu_gemm.dask"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "ImportError: gpu_gemm.dask needs dask: pip install 'gpu-gemm[dask]'" in done.stderr


# 2,000 x 1,500 x 1,000 takes 40 CPU seconds in the dev profile, twice. DASK_FULL=1 multiplies that.
M, N, K, CHUNK = (2000, 1500, 1000, 350) if os.environ.get("DASK_FULL") else (1000, 750, 500, 175)


@pytest.mark.filterwarnings("default")
def test_clusters(rng):
    """Right, and the same bits by two processes of one thread and by one process of two."""
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((M, K), (K, N)))
    results = []
    for layout in ({"n_workers": 2, "threads_per_worker": 1}, {"n_workers": 1, "threads_per_worker": 2, "processes": False}):
        with distributed.LocalCluster(**layout, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
            workers = client.scheduler_info()["workers"].values()
            # The least of the workers' memory, for a thread.
            assert gemm._memory() == min(worker["memory_limit"] // worker["nthreads"] for worker in workers)
            c = gemm.matmul(da.from_array(a, CHUNK), da.from_array(b, CHUNK), device="cpu").persist()
            distributed.wait(c)
            used = {worker for places in client.who_has(c).values() for worker in places}
            assert len(used) == len(workers) == layout["n_workers"]
            results.append(c.compute())
    assert (np.abs(results[0] - a.astype(np.float64) @ b) <= bound(a, b, 2.0**-24)).all()
    assert np.array_equal(results[0].view(np.uint32), results[1].view(np.uint32))


def test_the_program_of_the_guide(tmp_path):
    """With small arrays."""
    if not PAGE.exists():
        pytest.skip("no checkout")
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(program.splitlines()) <= 10
    (tmp_path / "program.py").write_text(program.replace("000", ""))
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(20, 15) 200.0\n"
