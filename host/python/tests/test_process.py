"""Forks, threads, and what the module exports."""

import multiprocessing
import os
import subprocess
import threading
import time

import numpy as np
import pytest

import gpu_gemm
from gpu_gemm import _native


def product():
    a = np.arange(64.0).reshape(8, 8)
    return gpu_gemm.matmul(a, a, device="cpu")


def test_a_child_after_a_fork():
    """The CPU device works in it, though the parent's threads do not exist there."""
    expected = product()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        # No pytest here, whatever happens.
        try:
            os.write(write, product().tobytes())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        received = pipe.read()
    os.waitpid(child, 0)
    assert received == expected.tobytes()


def test_a_pool_of_processes():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert np.array_equal(pool.apply(product), product())


def test_the_gil_is_released():
    """Another thread of Python counts during a product."""
    counted, ends = [0], [False]

    def count():
        while not ends[0]:
            counted[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    size, took, during = 64, 0.0, 0
    try:
        # A product that takes a while, in whatever profile the wheel was built.
        while took < 0.1 and size <= 4096:
            size *= 2
            a = np.ones((size, size))
            start, began = counted[0], time.perf_counter()
            gpu_gemm.matmul(a, a, device="cpu")
            took, during = time.perf_counter() - began, counted[0] - start
    finally:
        ends[0] = True
        thread.join()
    # With the GIL held it would count in the interpreter's switches before and after, of 5 ms each.
    assert took >= 0.1 and during >= 100


def test_threads_share_nothing():
    rng = np.random.default_rng(1)
    operands = [rng.standard_normal((40, 40)) for _ in range(8)]
    expected = [gpu_gemm.matmul(a, a, device="cpu") for a in operands]
    results = [None] * len(operands)

    def run(index):
        for _ in range(5):
            results[index] = gpu_gemm.matmul(operands[index], operands[index], device="cpu")

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(operands))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(one, other) for one, other in zip(results, expected))


def test_what_the_library_exports():
    """Its own start, and no function of the driver's, which a program may link beside."""
    try:
        listing = subprocess.run(["nm", "-D", "--defined-only", _native.__file__], capture_output=True, text=True, check=True)
    except FileNotFoundError:
        pytest.skip("no nm here")
    names = {line.split()[-1] for line in listing.stdout.splitlines()}
    assert "PyInit__native" in names
    assert not {name for name in names if name.startswith("cu")}


def test_devices():
    name, why = gpu_gemm.default_device()
    assert (name == "cpu") == (why is not None)
    assert "cpu" in dict(gpu_gemm.devices())
