"""Products over several GPUs by PyTorch: what the library's example `several_devices` is compared with.

    python host/python/tests/devices.py links            bandwidths and latencies, without products
    python host/python/tests/devices.py MxNxK gather     A by rows, B and C by columns
    python host/python/tests/devices.py MxNxK scatter    A by columns, B by rows, C by rows

A process a GPU. bf16. NCCL and cuBLAS one after the other, and PyTorch's symmetric memory, whose operations overlap them.
A call is timed from a barrier until the last GPU is done: the median. "Queued" is the time of a call among twenty that
nobody waits for. Needs PyTorch alone.
"""

import os
import statistics
import sys
import time

# NVLink multicast stays off, also in processes that inherit nothing.
os.environ.update(NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1", NVSHMEM_DISABLE_NVLS="1")

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

ROUNDS = 30
QUEUED = 20


def copies(sources, targets, size):
    """Seconds of copies that run at once: the shortest of five. A source is a GPU's number, "pinned" or "pageable"."""
    devices = range(torch.cuda.device_count())
    streams = [torch.cuda.Stream(device=target) for target in targets]
    place = lambda source: {"device": f"cuda:{source}"} if source in devices else {"pin_memory": source == "pinned"}
    here = [torch.zeros(size, dtype=torch.uint8, **place(source)) for source in sources]
    there = [torch.zeros(size, dtype=torch.uint8, device=f"cuda:{target}") for target in targets]
    best = float("inf")
    for _ in range(5):
        for device in devices:
            torch.cuda.synchronize(device)
        begin = time.perf_counter()
        for stream, source, target in zip(streams, here, there):
            with torch.cuda.stream(stream):
                target.copy_(source, non_blocking=True)
        for device in devices:
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - begin)
    return best


def links():
    """Prints what the links give."""
    count = torch.cuda.device_count()
    pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
    large = 1 << 30
    for source, target in pairs:
        print(f"GPU {source} to {target}: {large / copies([source], [target], large) / 1e9:.0f} GB/s, "
              f"8 bytes in {copies([source], [target], 8) * 1e6:.0f} us, waited for")
    if len(pairs) > 1:
        together = copies(*zip(*pairs), large)
        print(f"all pairs at once: {len(pairs) * large / together / 1e9:.0f} GB/s in sum")
    for kind in ("pinned", "pageable"):
        for number in sorted({1, count}):
            taken = copies([kind] * number, range(number), large)
            print(f"{kind} host memory to {number} GPUs at once: {number * large / taken / 1e9:.1f} GB/s in sum")


def timed(run, what, flops):
    """Times a call over all ranks, and prints it on the first."""
    rank = dist.get_rank()
    for _ in range(5):
        run()
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        taken = torch.tensor([time.perf_counter() - begin], device="cuda")
        dist.all_reduce(taken, op=dist.ReduceOp.MAX)
        times.append(taken.item())
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    dist.barrier()
    start.record()
    for _ in range(QUEUED):
        run()
    end.record()
    torch.cuda.synchronize()
    queued = start.elapsed_time(end) * 1e-3 / QUEUED
    if rank == 0:
        median = statistics.median(times)
        print(f"{what}: {median * 1e6:.1f} us, {flops / median / 1e12:.1f} TFLOP/s; queued {queued * 1e6:.1f} us, "
              f"{flops / queued / 1e12:.1f} TFLOP/s", flush=True)


def product(rank, count, sizes, layout):
    """One process's part."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=count, device_id=torch.device("cuda", rank))
    m, n, k = sizes
    flops = 2.0 * m * n * k
    draw = lambda rows, cols: (torch.rand(rows, cols, device="cuda") * 2 - 1).bfloat16()
    name = dist.group.WORLD.group_name
    if layout == "gather":
        a, b = draw(m // count, k), draw(k, n // count)
        whole, c = (torch.empty(m, cols, device="cuda", dtype=torch.bfloat16) for cols in (k, n // count))

        def by_nccl():
            dist.all_gather_into_tensor(whole, a)
            torch.mm(whole, b, out=c)

        def fused():
            return torch.ops.symm_mem.fused_all_gather_matmul(a, [b], gather_dim=0, group_name=name)
    else:
        a, b = draw(m, k // count), draw(k // count, n)
        part = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        c = torch.empty(m // count, n, device="cuda", dtype=torch.bfloat16)

        def by_nccl():
            torch.mm(a, b, out=part)
            dist.reduce_scatter_tensor(c, part)

        def fused():
            return torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, "sum", scatter_dim=0, group_name=name)

    timed(by_nccl, f"NCCL + cuBLAS, {layout}", flops)
    try:
        import torch.distributed._symmetric_memory as symmetric

        symmetric.enable_symm_mem_for_group(name)
        fused()
        timed(fused, f"symmetric memory, {layout}", flops)
    except Exception as error:  # noqa: BLE001 - the rest is still worth having
        if rank == 0:
            print(f"symmetric memory, {layout}: {type(error).__name__}: {error}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1:] == ["links"]:
        links()
    else:
        sizes = [int(size) for size in sys.argv[1].split("x")]
        count = torch.cuda.device_count()
        processes.spawn(product, args=(count, sizes, sys.argv[2]), nprocs=count)
