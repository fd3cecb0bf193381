"""The way of arrays on a GPU, on a machine without one: with the driver that the tests of `cuda-dyn` load, whose device memory is host memory.

It shows what is called and with which pointers, not how a GPU orders its work. On a GPU: gpu.py.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
DRIVER = HERE.parents[1] / "cuda-dyn/tests/fake/driver.rs"


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The folder with the driver."""
    rustc = os.environ.get("RUSTC") or shutil.which("rustc")
    if not rustc or not DRIVER.exists():
        pytest.skip("no rustc, or no checkout, for the tests' driver")
    folder = tmp_path_factory.mktemp("driver")
    target = folder / "libcuda.so.1"
    flags = ["--edition=2024", "--crate-type=cdylib", "--crate-name=fake_cuda", "-Clink-arg=-Wl,-soname,libcuda.so.1"]
    subprocess.run([rustc, *flags, "-o", target, DRIVER], check=True, capture_output=True, cwd=HERE)
    return folder


@pytest.mark.parametrize("part", ["numpy", "dlpack", "interface", "cupy", "torch", "ready", "mixed", "changed", "streams", "fork", "errors", "dask"])
def test_on_the_fake_gpu(part, library, tmp_path):
    if part == "dask":
        pytest.importorskip("distributed")
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(library),
        "FAKE_CUDA": "kernels=2 foreign=1 devices=2 major=8 minor=0",
        "FAKE_CUDA_LOG": str(tmp_path / "log"),
        "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        [sys.executable, HERE / "on_fake_gpu.py", part], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"{part}: passed\n"
