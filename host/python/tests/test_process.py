"""Forks, threads, and what the module exports."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import gpu_gemm
from gpu_gemm import _native


ONES = "gpu_gemm.matmul(np.ones((2, 2)), np.ones((2, 2)), device='cpu')[0, 0]"
IMPORTS = {
    "of a patched sys.modules": f"""
import sys, unittest.mock
import numpy as np

with unittest.mock.patch.dict(sys.modules):
    import gpu_gemm
    print({ONES})
import gpu_gemm
print({ONES})
""",
    "of entries that were removed": f"""
import sys
import numpy as np
import gpu_gemm as first

for name in [name for name in sys.modules if name.startswith("gpu_gemm")]:
    del sys.modules[name]
import gpu_gemm
prepared = gpu_gemm.prepare(np.ones((2, 2)), np.ones((2, 2)), device="cpu")
print({ONES})
print(prepared()[0, 0] if isinstance(prepared, first.Prepared) and first is not gpu_gemm else None)
""",
}


def run(program):
    """The code of its end, and what it prints."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("program", IMPORTS.values(), ids=IMPORTS)
def test_a_second_import(program):
    assert run(program) == (0, "2.0\n2.0\n")


SUBINTERPRETER = f"""
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

SCRIPT = '''
try:
    import gpu_gemm
except ImportError as error:
    # Python itself refuses it in one with a GIL of its own.
    own, pythons = "gpu_gemm serves no subinterpreters", "does not support loading in subinterpreters"
    print(own in str(error) or pythons in str(error), flush=True)
'''
other = interpreters.create()
for _ in range(2):
    interpreters.run_string(other, SCRIPT)
    import gpu_gemm
    import numpy as np
    print({ONES}, flush=True)
"""


def test_a_subinterpreter_is_refused():
    """Before the main interpreter imports the module, and after it."""
    assert run(SUBINTERPRETER) == (0, 2 * "True\n2.0\n")


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


AT_EXIT = """
import threading, time
import numpy as np
import gpu_gemm

a = np.ones((64, 64))
began = threading.Event()


def run():
    product = gpu_gemm.prepare(a, a, device="cpu")
    while True:
        began.set()
        {call}


class Slow:
    def __del__(self):
        # The interpreter is ending. The threads come back from their products meanwhile.
        time.sleep(0.3)


slow = Slow()
for _ in range(2):
    threading.Thread(target=run, daemon=True).start()
began.wait()
"""


@pytest.mark.parametrize("call", ['gpu_gemm.matmul(a, a, device="cpu")', "product()", 'gpu_gemm.check("tiled16", 16, 16, 16)'])
def test_a_daemon_thread_is_in_a_product_at_exit(call):
    """Python ends such a thread by unwinding its frames."""
    done = subprocess.run([sys.executable, "-c", AT_EXIT.format(call=call)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_library_unwinds_as_python_does():
    """By the system's libgcc_s: an unwinder of its own would be called with another's state."""
    try:
        listing = subprocess.run(["nm", "-D", _native.__file__], capture_output=True, text=True, check=True)
    except FileNotFoundError:
        pytest.skip("no nm here")
    unwinder = {tuple(line.split()[-2:]) for line in listing.stdout.splitlines() if "_Unwind_" in line}
    assert unwinder and all(kind == "U" for kind, _ in unwinder), unwinder


@pytest.mark.parametrize(
    "call",
    ['gpu_gemm.check("tiled16", 64, 64, 64, orders=10000)', 'gpu_gemm.profile("tiled16", 256, 256, 256)', 'gpu_gemm.check("basic", 256, 256, 256, orders=10000)'],
)
def test_an_interrupt_ends_a_check(call):
    # A program in a shell's background does not handle the signal by itself.
    handles = "import gpu_gemm, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program = handles + f"print('begins', flush=True)\ntry:\n    {call}\nexcept KeyboardInterrupt:\n    print('interrupted')"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "begins\n"
            time.sleep(0.3)
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            said, _ = child.communicate(timeout=60)
            took = time.monotonic() - sent
        finally:
            child.kill()
    assert (said, child.returncode) == ("interrupted\n", 0) and took <= 10


def test_a_handler_of_a_signal_may_end_a_check_by_another_exception():
    class Ended(Exception):
        pass

    def end(*_):
        raise Ended

    old = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Ended):
            gpu_gemm.check("tiled16", 64, 64, 64, orders=10000)
        # One that raises nothing ends nothing.
        handled = []
        signal.signal(signal.SIGALRM, lambda *_: handled.append(True))
        signal.setitimer(signal.ITIMER_REAL, 0.06, 0.02)
        assert gpu_gemm.check("tiled16", 32, 32, 32, orders=240).is_clean
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert handled


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
