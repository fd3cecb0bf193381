"""dask arrays of CuPy's chunks on one GPU: `gpu_gemm.dask.matmul` beside dask's own `matmul`, which is CuPy's.

    python host/python/tests/dask_gpu.py [M K N]

Two worker processes share the first GPU. Both products are computed in turn, eight times each. Needs dask, distributed, CuPy.
"""

import statistics
import sys
import time

import cupy
import dask.array as da
from distributed import Client, wait

import gpu_gemm.dask

ROUNDS = 8


def main():
    m, k, n = (int(size) for size in sys.argv[1:4] or (20_000, 10_000, 15_000))
    with Client(n_workers=2, threads_per_worker=1, processes=True) as client:
        chunk = 5_000
        draw = da.random.RandomState(7, RandomState=cupy.random.RandomState)
        a, b = (
            client.persist((2 * draw.random_sample(size, chunks=chunk) - 1).astype("f4")) for size in ((m, k), (k, n))
        )
        wait([a, b])
        held = len(client.futures)
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
            workers = {where for who in client.who_has(result).values() for where in who}
            # What is still held would not be computed again.
            del result, results
            while len(client.futures) > held:
                time.sleep(0.05)
        for name, taken in times.items():
            median = statistics.median(taken)
            print(f"{name}: {', '.join(f'{one:.2f}' for one in taken)} s, median {median:.2f}, {2e-12 * m * n * k / median:.1f} TFLOP/s")
        # Both sum k products of at most 1, in f32.
        print(f"largest difference {difference:.2e}, {difference / (2 * k * k * 2**-24):.3f} of what two orders of f32 sums may have")
        print("workers used:", workers)


if __name__ == "__main__":
    main()
