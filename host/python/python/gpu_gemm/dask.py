"""Products of dask arrays whose blocks `gpu_gemm.matmul` multiplies, on the workers of any scheduler.

The bits of a result follow from its chunks and the kind of device, and not from the scheduler or the number of workers.
"""

import functools
import itertools
import math
import os

import numpy as np

import gpu_gemm
from gpu_gemm import _native

try:
    import dask
    import dask.array as da
except ImportError as error:
    raise ImportError("gpu_gemm.dask needs dask: pip install 'gpu-gemm[dask]'") from error

__all__ = ["chunks", "matmul"]

# Chunks have at least so many rows and columns, if the memory allows it: smaller products cost more than they compute.
_LEAST = 512
# C has at least so many chunks along each side, so that several workers have work. A number of workers would decide on the bits.
_PARTS = 4
# The chunks of a product take this part of the memory. The next operands, other results and their sums take the rest.
_SHARE = 4
# Chunks begin at multiples of this, so that they are aligned in every element type.
_UNIT = 64


def matmul(a, b, *, rechunk=None, memory=None, compute=None, device=None):
    """The product of two dask arrays, with the shapes and types of `gpu_gemm.matmul`.

    Each pair of chunks is multiplied by `gpu_gemm.matmul`. The products over k are added by a tree in the order of k: of
    float16 and bfloat16 in float32, rounded once; of int8 in int32.

    rechunk: None keeps the chunks, unless both arrays are of one chunk; "auto" takes those that `chunks` proposes.
    memory: bytes of a worker's thread or of its GPU, for these chunks. None: the least of the workers of the current
        client; without a client twelve times dask's "array.chunk-size".
    compute: as in `gpu_gemm.matmul`.
    device: "cpu", "cuda" or "cuda:1" on every worker. None: worker i of a cluster takes GPU i modulo their number, if its
        name is a number and CUDA_VISIBLE_DEVICES is not set. Otherwise the first GPU that the process sees, or the CPU.
    """
    dtype = _check(a, b, compute)
    if rechunk not in (None, "auto"):
        raise ValueError(f"rechunk = {rechunk!r}: must be None or 'auto'")
    vectors = (a.ndim == 1, b.ndim == 1)
    a, b = a[None, :] if vectors[0] else a, b[:, None] if vectors[1] else b
    if rechunk or a.npartitions == b.npartitions == 1:
        a, b = _rechunked(a, b, _memory() if memory is None else memory)
    # Axes: m, n and k are 0, 1 and 2; those of a batch are 3 and more, from the last one.
    batch = tuple(range(max(a.ndim, b.ndim), 2, -1))
    of_a, of_b = batch[len(batch) + 2 - a.ndim :] + (0, 2), batch[len(batch) + 2 - b.ndim :] + (2, 1)
    chunks_of_k = da.core.unify_chunks(a, of_a, b, of_b)[0][2]
    sums = np.dtype(np.float32) if dtype.itemsize == 2 and len(chunks_of_k) > 1 else dtype
    parts = da.blockwise(
        functools.partial(_product, sums=sums, compute=compute, device=device),
        (*batch, 0, 2, 1),
        a,
        of_a,
        b,
        of_b,
        adjust_chunks={2: 1},
        dtype=sums,
        meta=da.utils.meta_from_array(a, len(batch) + 3, dtype=sums),
    )
    c = da.reduction(
        parts,
        chunk=_as_it_is,
        combine=_sum,
        aggregate=functools.partial(_total, dtype=dtype),
        axis=parts.ndim - 2,
        split_every=2,
        concatenate=False,
        dtype=dtype,
        meta=da.utils.meta_from_array(a, len(batch) + 2, dtype=dtype),
    )
    c = c[..., 0, :] if vectors[0] else c
    return c[..., 0] if vectors[1] else c


def chunks(m, n, k, dtype, memory):
    """Rows of A and C, columns of B and C, and the size along k of the chunks for a product of these sizes.

    C has four or more chunks along each side, with 512 rows and columns or more. Their longest side is halved until the
    chunks of A, B and C take a quarter of `memory` bytes at most. Then k is cut, too, if it is the longest.
    """
    return _chunks((m, n, k), dtype, memory, 1)


def _chunks(sizes, dtype, memory, matrices):
    """As `chunks`, for chunks of so many matrices."""
    m, n, k = sizes
    bytes_of, of_sum = np.dtype(dtype).itemsize, max(np.dtype(dtype).itemsize, 4)
    sides = [min(size, max(_LEAST, _up(-(-size // _PARTS)))) for size in (m, n)] + [k]
    while (needed := _SHARE * matrices * (bytes_of * sides[2] * (sides[0] + sides[1]) + of_sum * sides[0] * sides[1])) > memory:
        longest = max(range(3), key=lambda side: sides[side])
        if sides[longest] <= _UNIT:
            raise ValueError(f"memory = {memory}: must be at least {needed} bytes, for chunks of {_UNIT}")
        sides[longest] = _up(sides[longest] // 2)
    # Chunks of nearly the same size.
    even = (_up(-(-size // max(1, -(-size // max(side, 1))))) for size, side in zip(sizes, sides))
    rows, cols, depth = (min(size, side) for size, side in zip(sizes, even))
    return rows, cols, depth


def _up(size):
    return -(-size // _UNIT) * _UNIT


def _check(a, b, compute):
    """The type of the result. Refuses operands before there is a graph, in the words of `gpu_gemm.matmul`."""
    for name, array in (("a", a), ("b", b)):
        if not isinstance(array, da.Array):
            raise TypeError(f"type({name}) = {type(array).__module__}.{type(array).__qualname__}: must be dask.array.Array")
        if array.ndim == 0:
            raise ValueError(f"{name}.ndim = 0: must be at least 1")
        if any(math.isnan(size) for size in array.shape):
            raise ValueError(f"{name}.shape = {array.shape}: must be known: {name}.compute_chunk_sizes()")
    # Types and arithmetic.
    dtype = gpu_gemm.matmul(np.empty((0, 0), a.dtype), np.empty((0, 0), b.dtype), compute=compute, device="cpu").dtype
    rows_of_b = -2 if b.ndim > 1 else -1
    if a.shape[-1] != b.shape[rows_of_b]:
        raise ValueError(f"a.shape[-1] = {a.shape[-1]}: must be b.shape[{rows_of_b}] = {b.shape[rows_of_b]}")
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(f"b.shape = {b.shape}: cannot be broadcast with a.shape = {a.shape}") from None
    return dtype


def _memory():
    """The least memory of a worker's thread, in bytes."""
    try:
        from distributed import get_client

        workers = get_client().scheduler_info(n_workers=-1)["workers"].values()
    except (ImportError, ValueError):
        workers = ()
    limits = [worker["memory_limit"] // worker["nthreads"] for worker in workers if worker["memory_limit"]]
    return min(limits, default=3 * _SHARE * dask.utils.parse_bytes(dask.config.get("array.chunk-size")))


def _rechunked(a, b, memory):
    """Both in the proposed chunks. The axes of a batch keep theirs."""
    # Those of A and B are broadcast with each other.
    batches = ([max(of, default=1) for of in array.chunks[-3::-1]] for array in (a, b))
    matrices = math.prod(max(pair) for pair in itertools.zip_longest(*batches, fillvalue=1))
    sizes = (a.shape[-2], b.shape[-1], a.shape[-1])
    rows, cols, depth = _chunks(sizes, a.dtype, memory, max(matrices, 1))
    return a.rechunk({a.ndim - 2: rows, a.ndim - 1: depth}), b.rechunk({b.ndim - 2: depth, b.ndim - 1: cols})


def _device():
    """The GPU of this worker, if its name is a number. None: the first that the process sees."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return None
    try:
        from distributed import get_worker

        name = str(get_worker().name)
    except (ImportError, ValueError):
        return None
    gpus = _native._gpus()
    return f"cuda:{int(name) % gpus}" if gpus and name.isdecimal() else None


def _product(a, b, sums, compute, device):
    """The product of two chunks, with an axis for k."""
    out = None
    if a.dtype != sums:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        out = np.empty_like(a, shape=(*batch, a.shape[-2], b.shape[-1]), dtype=sums)
    # Chunks on a GPU are multiplied where they are.
    device = device or _device() if isinstance(a, np.ndarray) else None
    c = gpu_gemm.matmul(a, b, out=out, compute=compute, device=device)
    return c[..., :, None, :]


def _as_it_is(part, axis, keepdims):
    return part


def _sum(parts, axis, keepdims):
    """The sum of two neighbours along k."""
    return functools.reduce(np.add, parts) if isinstance(parts, list) else parts


def _total(parts, dtype, axis, keepdims):
    """The sum of the last ones, rounded, without the axis of k."""
    return _sum(parts, axis, keepdims)[..., 0, :].astype(dtype, copy=False)
