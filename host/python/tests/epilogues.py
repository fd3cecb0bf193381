"""Bias, activations and residuals beside PyTorch's: the part `epilogues` of gpu.py.

PyTorch's `addmm` with a vector and `_addmm_activation` are cublasLt's fused epilogues: ReLU, and GELU in the form with tanh.
For exact GELU and SiLU PyTorch launches a second kernel. The names of the kernels that a call launches are printed, so that
it can be seen which is which.

Each operation is timed twice: called one after the other, as a program does, and as one CUDA graph of many launches, which
leaves out the time of the calls. Both sides take turns. The figures are medians over the rounds, and the ratio is PyTorch's
time over ours, round by round.
"""

import statistics

import gpu_gemm

SHAPES = [(4096, 4096, 512), (4096, 4096, 4096), (8192, 2048, 8192), (512, 14336, 4096), (2048, 3072, 768), (16, 4096, 4096)]
TOKENS = [16, 512, 8192]
ROUNDS = 31
BATCH_US = 1000.0
# More than twice the L2 of an H100 or H200: no launch finds its operands there.
SETS_BYTES = 130 << 20


def torch_call(torch, bias, activation, residual=False):
    """PyTorch's fastest form of an operation: a function of a, b, the bias, out, and a temporary."""
    aten = torch.ops.aten
    after = {
        None: lambda out: out,
        "relu": torch.relu_,
        "gelu": lambda out: aten.gelu_(out, approximate="none"),
        "gelu_tanh": lambda out: aten.gelu_(out, approximate="tanh"),
        "silu": lambda out: aten.silu_(out),
    }[activation]

    def call(a, b, vector, out, temporary):
        if residual and bias:
            torch.addmm(vector, a, b, out=temporary)
            out.add_(temporary)
        elif residual:
            out.addmm_(a, b)
        elif bias and activation in ("relu", "gelu_tanh"):
            torch._addmm_activation(vector, a, b, use_gelu=activation == "gelu_tanh", out=out)
        elif bias:
            after(torch.addmm(vector, a, b, out=out))
        else:
            after(torch.mm(a, b, out=out))

    return call


OPERATIONS = [
    ("plain", False, None),
    ("bias", True, None),
    ("ReLU", False, "relu"),
    ("bias + ReLU", True, "relu"),
    ("bias + GELU (tanh)", True, "gelu_tanh"),
    ("bias + GELU (exact)", True, "gelu"),
    ("bias + SiLU", True, "silu"),
]


def prepare(a, b, **options):
    """Our product, or None where this version of the package lacks the activation."""
    try:
        return gpu_gemm.prepare(a, b, **options)
    except ValueError as error:
        if "activation" not in str(error):
            raise
        return None


class Clock:
    """Times calls on the current stream."""

    def __init__(self, torch):
        self.torch = torch
        self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def time_us(self, run, launches=1):
        self.start.record()
        run()
        self.end.record()
        self.end.synchronize()
        return self.start.elapsed_time(self.end) * 1e3 / launches

    def turns(self, sides, launches):
        """The times of each side, round by round: `sides` are functions that launch so often."""
        for run in sides:
            for _ in range(3):
                self.time_us(run)
        return [[self.time_us(run, launches) for run in sides] for _ in range(ROUNDS)]


def captured(torch, run):
    """A graph of what `run` launches, or None, with a note, where it cannot be captured."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    # Workspaces and kernels are there before.
    with torch.cuda.stream(side):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, stream=side):
            run()
    except Exception as error:
        print(f"note: not captured: {type(error).__name__}: {error}", flush=True)
        torch.cuda.synchronize()
        return None
    torch.cuda.synchronize()
    return graph


def kernels(torch, run):
    """The names of the kernels that a call launches, shortened; None where the profiler does not say."""
    try:
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            run()
            torch.cuda.synchronize()
        names = [event.name for event in seen.events() if "cuda" in str(event.device_type).lower()]
        return [name[:70] for name in names if not name.startswith(("Memcpy", "Memset", "cuda", "cu"))] or names
    except Exception as error:
        print(f"note: the profiler does not say: {type(error).__name__}: {error}")
        return None


def figures(rounds):
    """The medians of both sides, and of the ratio with its quartiles. Ours is the first side."""
    ours, theirs = (statistics.median(times) for times in zip(*rounds))
    low, middle, high = statistics.quantiles([times[1] / times[0] for times in rounds], n=4)
    return ours, theirs, middle, low, high


def exact(torch, a, b, vector, activation, old=None):
    """The result in float64, and the limit of its error: the sum's, enlarged by the slope, and the rounding of C."""
    value = a.double() @ b.double()
    size = a.abs().double() @ b.abs().double()
    for term in (vector, old):
        if term is not None:
            value += term.double()
            size += term.abs().double()
    limit = 1.13 * 2 * (a.shape[1] + 8) * 2.0**-24 * size
    functional = torch.nn.functional
    functions = {
        None: lambda x: x,
        "relu": torch.relu,
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "silu": functional.silu,
    }
    value = functions[activation](value)
    # An activation has an error of its own, of a part of C's last place.
    rounding = (1.02 if activation in (None, "relu") else 1.5) * (2.0**-8 if a.dtype == torch.bfloat16 else 2.0**-11)
    return value, limit + rounding * (value.abs() + limit) + 2.0**-24


def compared(check, result, value, limit, what):
    error = (result.double() - value).abs()
    check(bool((error <= limit).all()), f"{what}: {float((error / limit).max()):.3f} of the error bound")


def shapes(torch, check, dtype, sizes=None):
    clock, generator = Clock(torch), torch.Generator("cuda").manual_seed(58)

    def draw(*shape):
        return torch.randn(*shape, device="cuda", generator=generator).to(dtype)

    print(f"\n{dtype}, us; ratio: PyTorch's time over ours, with quartiles; over: beyond our plain product")
    print(f"{'m x n x k':<18}{'':<22}{'ours':>8}{'PyTorch':>9}  {'ratio':<24}{'over':>8}  {'in a graph: ours':>17}{'PyTorch':>9}  {'ratio':<24}{'over':>8}")
    for m, n, k in sizes or SHAPES:
        each = (m * k + k * n + m * n) * dtype.itemsize
        count = max(2, min(24, -(-SETS_BYTES // each)))
        sets = [(draw(m, k), draw(k, n), draw(n), draw(m, n), draw(m, n)) for _ in range(count)]
        plain = None
        for name, has_bias, activation in OPERATIONS:
            what = f"{m}x{n}x{k} {name}"
            call = torch_call(torch, has_bias, activation)
            options = {"activation": activation} if activation else {}
            ours = []
            for a, b, vector, out, _ in sets:
                bias = {"bias": vector} if has_bias else {}
                ours.append(prepare(a, b, out=out, **bias, **options))
            if None in ours:
                print(f"{f'{m} x {n} x {k}':<18}{name:<22} LEFT OUT: the package has no activation {activation}", flush=True)
                continue
            theirs = [lambda s=s: call(s[0], s[1], s[2], s[3], s[4]) for s in sets]
            # Both results are compared with float64, and so neither leaves the other's in out.
            a, b, vector, out, _ = sets[0]
            value, limit = exact(torch, a, b, vector if has_bias else None, activation)
            for who, run in (("ours", ours[0]), ("PyTorch", theirs[0])):
                out.fill_(float("nan"))
                run()
                torch.cuda.synchronize()
                if who == "ours":
                    compared(check, out, value, limit, what)
                    continue
                largest = float(((out.double() - value).abs() / limit).max())
                if not largest <= 1:
                    print(f"note: PyTorch's {what} is at {largest:.2f} of the error bound")
            del value, limit

            def batch(runs, launches):
                def run():
                    for index in range(launches):
                        runs[index % count]()

                return run

            once = min(clock.time_us(batch(side, count), count) for side in (ours, theirs) for _ in range(3))
            launches = max(count, round(BATCH_US / max(once, 1.0)))
            in_turn = figures(clock.turns([batch(side, launches) for side in (ours, theirs)], launches))
            graphs = [captured(torch, batch(side, launches)) for side in (ours, theirs)]
            in_graph = None
            if None not in graphs:
                in_graph = figures(clock.turns([graph.replay for graph in graphs], launches))
            if name == "plain":
                plain = in_turn[0], in_graph[0] if in_graph else None
            columns = []
            for found, before in zip((in_turn, in_graph), plain or (None, None)):
                if found is None:
                    columns.append("-")
                    continue
                own, other, middle, low, high = found
                over = f"{own - before:+.1f}" if before else "-"
                mark = " <" if middle < 1 else ""
                columns.append(f"{own:8.1f}{other:9.1f}  {f'{middle:.3f} ({low:.3f} to {high:.3f}){mark}':<24}{over:>8}")
            print(f"{f'{m} x {n} x {k}':<18}{name:<22}{columns[0]}           {columns[1]}", flush=True)
            del graphs
        if (m, n, k) == SHAPES[-2]:
            print("PyTorch's kernels at that shape:")
            for name, has_bias, activation in OPERATIONS:
                a, b, vector, out, temporary = sets[0]
                call = torch_call(torch, has_bias, activation)
                print(f"  {name:<22} {kernels(torch, lambda: call(a, b, vector, out, temporary))}", flush=True)


class Layer:
    """A product of a block: x of m tokens, weights as torch.nn.Linear has them, n x k."""

    def __init__(self, name, n, k, bias=False, activation=None, residual=False):
        self.name, self.n, self.k = name, n, k
        self.bias, self.activation, self.residual = bias, activation, residual


# Llama's block of 8 billion parameters; how often it is there, so that the weights exceed the L2.
LLAMA = 1, [
    Layer("q, k, v", 6144, 4096),
    Layer("o + residual", 4096, 4096, residual=True),
    Layer("gate, SiLU", 14336, 4096, activation="silu"),
    Layer("up", 14336, 4096),
    Layer("down + residual", 4096, 14336, residual=True),
]
# BERT-large's.
BERT = 6, [
    Layer("q, k, v, bias", 3072, 1024, bias=True),
    Layer("o, bias + residual", 1024, 1024, bias=True, residual=True),
    Layer("up, bias, GELU (tanh)", 4096, 1024, bias=True, activation="gelu_tanh"),
    Layer("down, bias + residual", 1024, 4096, bias=True, residual=True),
]


def blocks(torch, check, dtype, tokens=None):
    clock, generator = Clock(torch), torch.Generator("cuda").manual_seed(58)

    def draw(*shape, scale=1.0):
        return (scale * torch.randn(*shape, device="cuda", generator=generator)).to(dtype)

    print(f"\nthe products of a block in one graph, {dtype}, us")
    print(f"{'':<12}{'m':>6}{'ours':>10}{'PyTorch':>10}  ratio")
    for block, (times, layers) in (("Llama", LLAMA), ("BERT", BERT)):
        for m in tokens or TOKENS:
            sides, lacks = ([], []), set()
            for number in range(times):
                for layer in layers:
                    what = f"{block}, m = {m}, {layer.name}"
                    x, weights = draw(m, layer.k), draw(layer.n, layer.k, scale=layer.k**-0.5).t()
                    vector, old = draw(layer.n), draw(m, layer.n)
                    outs, temporary = (old.clone(), old.clone()), torch.empty_like(old)
                    options = {"bias": vector} if layer.bias else {}
                    if layer.residual:
                        options["beta"] = 1.0
                    activation = layer.activation
                    ours = prepare(x, weights, out=outs[0], **options, **({"activation": activation} if activation else {}))
                    if ours is None:
                        # Both sides do without it.
                        lacks.add(activation)
                        activation = None
                        ours = prepare(x, weights, out=outs[0], **options)
                    call = torch_call(torch, layer.bias, activation, layer.residual)
                    theirs = lambda a=(x, weights, vector, outs[1], temporary), call=call: call(*a)  # noqa: E731
                    if number == 0:
                        ours()
                        theirs()
                        torch.cuda.synchronize()
                        values = (vector if layer.bias else None, activation, old if layer.residual else None)
                        value, limit = exact(torch, x, weights, *values)
                        compared(check, outs[0], value, limit, what)
                        # PyTorch may round between its kernels, and parts of sums.
                        apart = (outs[1].double() - value).abs() / (16 * limit)
                        check(bool((apart <= 1).all()), f"PyTorch computes another {what}: {float(apart.max())}")
                        del value, limit, apart
                    sides[0].append(ours)
                    sides[1].append(theirs)
            if lacks:
                print(f"note: without {sorted(lacks)} on both sides: the package does not have it")

            def run_all(runs):
                for run in runs:
                    run()

            graphs = [captured(torch, lambda runs=runs: run_all(runs)) for runs in sides]
            if None in graphs:
                print(f"{block:<12}{m:>6} LEFT OUT: no graph", flush=True)
                continue
            once = clock.time_us(graphs[0].replay)
            replays = max(1, round(BATCH_US / max(once, 1.0)))

            def again(graph):
                def run():
                    for _ in range(replays):
                        graph.replay()

                return run

            own, other, middle, low, high = figures(clock.turns([again(graph) for graph in graphs], replays))
            mark = " <" if middle < 1 else ""
            print(f"{block:<12}{m:>6}{own:10.1f}{other:10.1f}  {middle:.3f} ({low:.3f} to {high:.3f}){mark}", flush=True)
            del graphs, sides


def main(check):
    import torch

    properties = torch.cuda.get_device_properties(0)
    print(f"torch {torch.__version__}, CUDA {torch.version.cuda}, {properties.name}; medians of {ROUNDS} rounds")
    with torch.no_grad():
        for dtype in (torch.bfloat16, torch.float16):
            shapes(torch, check, dtype)
        # cublasLt for products without bias and activation, too.
        torch.backends.cuda.preferred_blas_library("cublaslt")
        blocks(torch, check, torch.bfloat16)
