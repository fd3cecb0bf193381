"""Products of float8_e4m3fn with scales on a GPU: this package beside cublasLt by PyTorch, and DeepGEMM if it can be imported.

    python host/python/tests/fp8.py [MxNxK ...]

C is of bfloat16. Each is timed in turn, seven times, on operands that do not stay in L2, and compared with the product in float64 of
some rows. `off` is the largest difference over the sum of the terms' absolute values.
"""

import math
import statistics
import sys

import torch

import gpu_gemm

SIZES = "4096x4096x4096 8192x8192x8192 4096x7168x16384 4096x4096x7168 64x7168x4096 128x7168x2048"
LARGEST = 448.0
ROUNDS = 7
SAMPLE = 32


def scaled(values, down, across):
    """The numbers in e4m3 and the scales of blocks of `down` x `across`."""
    rows, cols = values.shape
    down, across = min(down, rows), min(across, cols)
    blocks = values.view(rows // down, down, cols // across, across)
    scales = blocks.abs().amax((1, 3), keepdim=True) / LARGEST
    return (blocks / scales).view(rows, cols).to(torch.float8_e4m3fn), scales.view(rows // down, cols // across)


def operands(m, n, k, kind):
    a, b = (torch.randn(rows, k, device="cuda") for rows in (m, n))
    if kind == "blocks":
        (a, of_a), (b, of_b) = scaled(a, 1, 128), scaled(b, 128, 128)
    elif kind == "rows":
        (a, of_a), (b, of_b) = scaled(a, 1, k), scaled(b, 1, k)
    else:
        (a, of_a), (b, of_b) = scaled(a, m, k), scaled(b, n, k)
    return a, b, of_a, of_b, of_a.t().contiguous().t()


def products(kind):
    """The products' names and functions of (a, b, scales of a, scales of b, scales of a column by column). B is n x k."""
    bf16 = torch.bfloat16

    def torchs(fast, recipe=None):
        def product(a, b, of_a, of_b, by_columns):
            if recipe is not None:
                from torch.nn.functional import ScalingType, scaled_mm

                one, two = recipe
                kinds = getattr(ScalingType, one), getattr(ScalingType, two)
                # cuBLAS reads B's scales by columns of B, n / 128 of them.
                return scaled_mm(a, b.t(), by_columns, kinds[0], of_b.t(), kinds[1], output_dtype=bf16)
            of_b = of_b.t() if kind == "rows" else of_b
            return torch._scaled_mm(a, b.t(), of_a, of_b, out_dtype=bf16, use_fast_accum=fast)

        return product

    all = {"ours": lambda a, b, of_a, of_b, _: gpu_gemm.scaled_matmul(a, b.t(), of_a, of_b.t(), out_dtype=bf16)}
    if kind == "blocks":
        all["ours, A's by columns"] = lambda a, b, _, of_b, by_columns: gpu_gemm.scaled_matmul(
            a, b.t(), by_columns, of_b.t(), out_dtype=bf16
        )
        all["cublasLt"] = torchs(False, ("BlockWise1x128", "BlockWise128x128"))
        try:
            import deep_gemm

            def deep(a, b, _, of_b, by_columns):
                out = torch.empty(a.shape[0], b.shape[0], dtype=bf16, device="cuda")
                deep_gemm.fp8_gemm_nt((a, by_columns), (b, of_b), out)
                return out

            all["DeepGEMM"] = deep
        except Exception as why:
            print(f"no DeepGEMM: {why!r}"[:300])
    else:
        all["cublasLt"] = torchs(False)
        all["cublasLt, fast"] = torchs(True)
    return all


def main():
    print(torch.cuda.get_device_name(), torch.__version__, torch.version.cuda)
    torch.manual_seed(8)
    for sizes in sys.argv[1:] or SIZES.split():
        m, n, k = map(int, sizes.split("x"))
        sets = max(1, math.ceil((256 << 20) / (k * (m + n))))
        for kind in ("matrix", "rows", "blocks"):
            several = [operands(m, n, k, kind) for _ in range(sets)]
            a, b, of_a, of_b, _ = several[0]
            rows = torch.randint(m, (SAMPLE,), device="cuda")
            spread = [
                one.double().repeat_interleave(len_ // one.shape[0], 0).repeat_interleave(k // one.shape[1], 1)
                for one, len_ in ((of_a, m), (of_b, n))
            ]
            wide_a, wide_b = (a.double() * spread[0])[rows], b.double() * spread[1]
            want, size = wide_a @ wide_b.t(), wide_a.abs() @ wide_b.abs().t()
            del wide_b, spread
            times, graphs, off = {}, {}, {}
            for name, product in products(kind).items():
                try:
                    got = product(*several[0])
                    off[name] = ((got[rows].double() - want).abs() / size).max().item()
                    launches = max(sets, 20)
                    stream = torch.cuda.Stream()
                    stream.wait_stream(torch.cuda.current_stream())
                    with torch.cuda.stream(stream):
                        product(*several[0])
                        graph = torch.cuda.CUDAGraph()
                        with torch.cuda.graph(graph, stream=stream):
                            for i in range(launches):
                                product(*several[i % sets])
                    graphs[name], times[name] = (graph, launches), []
                except Exception as why:
                    print(f"{sizes} {kind} {name}: {why!r}"[:400])
            for _ in range(ROUNDS):
                for name, (graph, launches) in graphs.items():
                    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    begin.record()
                    graph.replay()
                    end.record()
                    end.synchronize()
                    times[name].append(begin.elapsed_time(end) * 1e3 / launches)
            for name, taken in times.items():
                time = statistics.median(taken)
                speed = 2e-6 * m * n * k / time
                print(f"{sizes} {kind:7} {name:22} {time:8.2f} us {speed:7.0f} TFLOP/s  off {off[name]:.1e}", flush=True)
            del several, graphs
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
