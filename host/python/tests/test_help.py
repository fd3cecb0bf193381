"""What `help` shows: every function says what it takes, and what goes wrong."""

import importlib.metadata
import inspect
from pathlib import Path

import pytest

import gpu_gemm


def test_the_version_is_the_package_s():
    assert gpu_gemm.__version__ == importlib.metadata.version("gpu-gemm")
    stub = Path(gpu_gemm.__file__).with_name("_native.pyi").read_text()
    assert "\n__version__: str\n" in stub


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("matmul", "a, b, *, out=None, out_dtype=None, alpha=1.0, beta=0.0, bias=None, activation=None, compute=None, invariant=False, tune=None, stream=None, device=None"),
        ("quantise", "x, scales, dtype, *, stream=None"),
        ("scaled_matmul", "a, b, scale_a, scale_b, *, out=None, out_dtype=None, alpha=1.0, beta=0.0, bias=None, activation=None, invariant=False, tune=None, stream=None, device=None"),
        ("prepare", "a, b, *, scale_a=None, scale_b=None, out=None, out_dtype=None, alpha=1.0, beta=0.0, bias=None, activation=None, compute=None, invariant=False, tune=None, device=None"),
        ("check", "kernel, m=64, n=64, k=64, *, orders=3"),
        ("profile", "kernel, m=64, n=64, k=64, *, every=1"),
    ],
)
def test_signatures(name, arguments):
    assert str(inspect.signature(getattr(gpu_gemm, name))) == f"({arguments})"


def test_the_signature_of_a_prepared_product():
    assert str(inspect.signature(gpu_gemm.Prepared.__call__)) == "(self, /, *, stream=None)"
    assert "stream" in inspect.getdoc(gpu_gemm.Prepared) and not hasattr(gpu_gemm.Prepared, "_call")


def test_the_licences_are_in_the_package():
    files = {file.name: file for file in importlib.metadata.files("gpu-gemm") if "licenses" in file.parts}
    assert set(files) == {"LICENSE-APACHE", "LICENSE-MIT", "LICENSES-OF-OTHERS.txt"}
    others = files["LICENSES-OF-OTHERS.txt"].read_text()
    assert "# pyo3 v" in others and "# hashbrown-" in others and "Permission is hereby granted" in others
    metadata = importlib.metadata.metadata("gpu-gemm")
    assert metadata["License-Expression"] == "MIT OR Apache-2.0" and set(metadata.get_all("License-File")) == set(files)


@pytest.mark.parametrize("name", ["matmul", "scaled_matmul", "check", "profile"])
def test_every_argument_is_explained(name):
    function = getattr(gpu_gemm, name)
    text = inspect.getdoc(function)
    explained = [word for line in text.splitlines() if ": " in line for word in line.split(":")[0].strip().split(", ")]
    missing = [argument for argument in inspect.signature(function).parameters if argument not in explained]
    assert not missing and "Errors" in text


def test_matmul_says_its_types_shapes_and_errors():
    text = inspect.getdoc(gpu_gemm.matmul)
    for word in ("float64", "float32", "float16", "bfloat16", "(.., m, k)", "broadcast", "TypeError", "ValueError", "RuntimeError", "detach()"):
        assert word in text, word


@pytest.mark.parametrize("name", gpu_gemm.__all__)
def test_everything_public_has_a_text(name):
    assert len(inspect.getdoc(getattr(gpu_gemm, name))) > 40
