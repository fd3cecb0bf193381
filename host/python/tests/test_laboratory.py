"""The built-in kernels under the checker."""

import pytest

import gpu_gemm


def test_kernels_are_clean():
    names = [name for name, _ in gpu_gemm.kernels()]
    assert len(names) >= 50 and "tiled16" in names
    for name in ("tiled16", "gemm_f64_64x64x16", "gemm_bf16_64x64x16"):
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


def test_refusals():
    for call, message in (
        (lambda: gpu_gemm.check("tiled"), "kernel = tiled: "),
        (lambda: gpu_gemm.check("tiled16", 257), "m = 257: must be at most 256"),
        (lambda: gpu_gemm.check("tiled16", orders=0), "orders = 0: must be at least 1"),
        (lambda: gpu_gemm.profile("tiled16", every=0), "every = 0: must be at least 1"),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        assert str(caught.value).startswith(message)
