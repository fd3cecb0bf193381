"""The built-in kernels under the checker."""

import pytest

import gpu_gemm


def test_kernels_are_clean():
    names = [name for name, _ in gpu_gemm.kernels()]
    assert len(names) >= 50 and "tiled16" in names
    for name in ("tiled16", "gemm_f64_64x64x16", "gemm_bf16_64x64x16", "gemm_i8_i32_64x64x16"):
        report = gpu_gemm.check(name, 33, 20, 17)
        assert report.is_clean and report.findings == [] and report.wrong == 0, report
        assert repr(report) == f"{name} 33x20x17, 3 orders: nothing found; C is right"
        assert "&#10003;" in report._repr_html_()


def test_a_profile():
    profile = gpu_gemm.profile("tiled16", 64, 64, 32)
    loads = [line for line in profile.lines if line["operation"] == "global-load"]
    # 16 blocks of 8 warps load twice in each of 2 phases, each time two rows of two sectors.
    assert sum(line["units"] for line in loads) == 2048
    assert all(line["file"].endswith("lessons/tiled.rs") and line["source"] for line in loads)
    head, columns, place, *counts = repr(profile).splitlines()
    assert head == "tiled16 64x64x32" and columns.startswith("column  operation ")
    # As the command prints it: the whole path, the line, and its text.
    first = profile.lines[0]
    assert place == f"{first['file']}:{first['line']}  {first['source']}"
    assert first["file"].endswith("gpu/src/lessons/tiled.rs")
    assert counts[0].split() == ["15", "shared-store", "4", "256", "32.0", "1.00", "wavefronts", "1.00"]
    html = profile._repr_html_()
    assert f"<td>{first['file']}:{first['line']}</td>" in html
    assert html.count("<tr>") == len(profile.lines) + 1 and "<svg" in html
    # The source's text does not end the markup.
    assert "<f32>" not in html


SIZE = "must be a whole number from 0 to 256"
ORDERS = "must be a whole number from 1 to 10000"
EVERY = "must be a whole number from 1 to 4294967295"


@pytest.mark.parametrize(
    "argument, value, kind, limit",
    [
        ("m", 257, ValueError, SIZE),
        ("m", -1, ValueError, SIZE),
        ("n", 1 << 70, ValueError, SIZE),
        ("n", "64", TypeError, SIZE),
        ("k", 64.0, TypeError, SIZE),
        ("k", None, TypeError, SIZE),
        ("orders", 0, ValueError, ORDERS),
        ("orders", 1 << 40, ValueError, ORDERS),
        ("orders", [3], TypeError, ORDERS),
        ("every", 0, ValueError, EVERY),
        ("every", -1, ValueError, EVERY),
        ("every", 1 << 40, ValueError, EVERY),
        ("every", 0.5, TypeError, EVERY),
        ("kernel", 16, TypeError, "must be a name of kernels()"),
        ("kernel", None, TypeError, "must be a name of kernels()"),
    ],
)
def test_an_argument_is_named_with_its_limit(argument, value, kind, limit):
    for function, own in ((gpu_gemm.check, "orders"), (gpu_gemm.profile, "every")):
        if argument in (own, "kernel", "m", "n", "k"):
            with pytest.raises(kind) as caught:
                function(**{"kernel": "tiled16", argument: value})
            assert str(caught.value) == f"{argument} = {value!r}: {limit}"


def test_an_unknown_kernel_leads_to_the_nearest():
    for function in (gpu_gemm.check, gpu_gemm.profile):
        for name, limit in (
            ("tild16", f"did you mean tiled16? It must be one of {len(gpu_gemm.kernels())} names"),
            ("vec_add", "is a program, and computes no product: "),
            ("mine", "must be one of basic, "),
        ):
            with pytest.raises(ValueError) as caught:
                function(name)
            assert str(caught.value).startswith(f"kernel = {name!r}: {limit}")


def test_what_the_command_does_not_count_is_not_counted_here():
    counted = "must be a lesson, or a kernel of f32 or f64 on CUDA cores and not one by TMA: the accesses of others are not counted"
    for name in ("tma_f32_64x64x64_nn", "gemm_bf16_64x64x16", "mma_tf32_64x64x32"):
        with pytest.raises(ValueError) as caught:
            gpu_gemm.profile(name, 64, 64, 64)
        assert str(caught.value) == f"kernel = {name!r}: {counted}"
    for name in ("tensor_tma", "gemm_f32_64x64x16", "gemm_f64_64x64x16"):
        assert gpu_gemm.profile(name, 64, 64, 64).lines
