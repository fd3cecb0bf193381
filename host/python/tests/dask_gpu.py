"""dask arrays of CuPy's chunks on one GPU: `gpu_gemm.dask.matmul` beside dask's own `matmul`, which is CuPy's.

    python host/python/tests/dask_gpu.py [M K N]

Two worker processes share the first GPU. Both products are computed in turn, three times each. Needs dask, distributed, CuPy.
"""

import sys
import time

import cupy
import dask.array as da
from distributed import Client, wait

import gpu_gemm.dask

ROUNDS = 3


def main():
    m, k, n = (int(size) for size in sys.argv[1:4] or (20_000, 10_000, 15_000))
    with Client(n_workers=2, threads_per_worker=1, processes=True) as client:
        chunk = 5_000
        draw = da.random.RandomState(7, RandomState=cupy.random.RandomState)
        a, b = (
            client.persist((2 * draw.random_sample(size, chunks=chunk) - 1).astype("f4")) for size in ((m, k), (k, n))
        )
        wait([a, b])
        products = {
            "ours": lambda: gpu_gemm.dask.matmul(a, b, memory=16 << 30),
            "CuPy": lambda: da.matmul(a, b),
        }
        times = {name: [] for name in products}
        for _ in range(ROUNDS):
            results = []
            for name, product in products.items():
                begin = time.perf_counter()
                result = client.persist(product())
                wait(result)
                times[name].append(time.perf_counter() - begin)
                results.append(result)
            difference = float(abs(results[0] - results[1]).max().compute())
        for name, taken in times.items():
            print(f"{name}: {', '.join(f'{one:.2f}' for one in taken)} s, {2e-12 * m * n * k / min(taken):.1f} TFLOP/s")
        # Both sum k products of at most 1, in f32.
        print(f"largest difference {difference:.2e}, {difference / (2 * k * k * 2**-24):.3f} of what two orders of f32 sums may have")
        print("workers used:", {where for who in client.who_has(result).values() for where in who})


if __name__ == "__main__":
    main()
