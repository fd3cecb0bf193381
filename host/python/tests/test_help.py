"""What `help` shows: every function says what it takes, and what goes wrong."""

import inspect

import pytest

import gpu_gemm


@pytest.mark.parametrize("name", ["matmul", "check", "profile"])
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
