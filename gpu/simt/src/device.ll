; What Rust cannot say about memory, linked into every kernel crate by the PTX builder.
;
; A pointer that is known to be in address space 3 gives `ld.shared` and `st.shared`; one that is not
; gives generic accesses, which are slower. These getters are inlined, so LLVM sees where each pointer
; comes from and keeps the address space through all later arithmetic.

target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; Dynamic shared memory: its size is given at the launch. 1024 bytes is the alignment that the
; tensor-copy engine's widest swizzle needs.
@simt_dynamic_shared = external addrspace(3) global [0 x i8], align 1024

define ptr @simt_dynamic_shared_pointer() alwaysinline {
  ret ptr addrspacecast (ptr addrspace(3) @simt_dynamic_shared to ptr)
}

; A 32-bit shared address (as PTX's `mov.u32 %r, symbol` gives it) as a pointer.
define ptr @simt_shared_pointer(i32 %address) alwaysinline {
  %shared = inttoptr i32 %address to ptr addrspace(3)
  %generic = addrspacecast ptr addrspace(3) %shared to ptr
  ret ptr %generic
}

; The 32-bit shared address of a pointer that is known to be in address space 3, for inline assembly.
define i32 @simt_shared_address(ptr %generic) alwaysinline {
  %shared = addrspacecast ptr %generic to ptr addrspace(3)
  %address = ptrtoint ptr addrspace(3) %shared to i32
  ret i32 %address
}

; The address of a symbol in constant memory (as PTX's `mov.u64 %rd, symbol` gives it) as a pointer, so that
; reads become `ld.const`.
define ptr @simt_constant_pointer(i64 %address) alwaysinline {
  %constant = inttoptr i64 %address to ptr addrspace(4)
  %generic = addrspacecast ptr addrspace(4) %constant to ptr
  ret ptr %generic
}

; An address that was read from memory, and that is known to be one of global memory.
define ptr @simt_global_pointer(i64 %address) alwaysinline {
  %global = inttoptr i64 %address to ptr addrspace(1)
  %generic = addrspacecast ptr addrspace(1) %global to ptr
  ret ptr %generic
}

; Atomic operations. Rust's are for the whole system, and inline assembly hides the address space. Of these
; LLVM makes `atom.global` or `atom.shared`, which PTX reads as `.relaxed.gpu`.

define i32 @simt_atomic_add_u32(ptr %place, i32 %value) alwaysinline {
  %old = atomicrmw add ptr %place, i32 %value syncscope("device") monotonic
  ret i32 %old
}

define i32 @simt_atomic_exchange_u32(ptr %place, i32 %value) alwaysinline {
  %old = atomicrmw xchg ptr %place, i32 %value syncscope("device") monotonic
  ret i32 %old
}

define i32 @simt_atomic_and_u32(ptr %place, i32 %value) alwaysinline {
  %old = atomicrmw and ptr %place, i32 %value syncscope("device") monotonic
  ret i32 %old
}

define i32 @simt_atomic_or_u32(ptr %place, i32 %value) alwaysinline {
  %old = atomicrmw or ptr %place, i32 %value syncscope("device") monotonic
  ret i32 %old
}

define i32 @simt_atomic_xor_u32(ptr %place, i32 %value) alwaysinline {
  %old = atomicrmw xor ptr %place, i32 %value syncscope("device") monotonic
  ret i32 %old
}

define i32 @simt_atomic_min_u32(ptr %place, i32 %value) alwaysinline {
  %old = atomicrmw umin ptr %place, i32 %value syncscope("device") monotonic
  ret i32 %old
}

define i32 @simt_atomic_max_u32(ptr %place, i32 %value) alwaysinline {
  %old = atomicrmw umax ptr %place, i32 %value syncscope("device") monotonic
  ret i32 %old
}

define i32 @simt_atomic_min_i32(ptr %place, i32 %value) alwaysinline {
  %old = atomicrmw min ptr %place, i32 %value syncscope("device") monotonic
  ret i32 %old
}

define i32 @simt_atomic_max_i32(ptr %place, i32 %value) alwaysinline {
  %old = atomicrmw max ptr %place, i32 %value syncscope("device") monotonic
  ret i32 %old
}

define i32 @simt_atomic_compare_exchange_u32(ptr %place, i32 %expected, i32 %value) alwaysinline {
  %pair = cmpxchg ptr %place, i32 %expected, i32 %value syncscope("device") monotonic monotonic
  %old = extractvalue { i32, i1 } %pair, 0
  ret i32 %old
}

define i32 @simt_atomic_load_u32(ptr %place) alwaysinline {
  %value = load atomic i32, ptr %place syncscope("device") monotonic, align 4
  ret i32 %value
}

define void @simt_atomic_store_u32(ptr %place, i32 %value) alwaysinline {
  store atomic i32 %value, ptr %place syncscope("device") monotonic, align 4
  ret void
}

define i64 @simt_atomic_add_u64(ptr %place, i64 %value) alwaysinline {
  %old = atomicrmw add ptr %place, i64 %value syncscope("device") monotonic
  ret i64 %old
}

define i64 @simt_atomic_exchange_u64(ptr %place, i64 %value) alwaysinline {
  %old = atomicrmw xchg ptr %place, i64 %value syncscope("device") monotonic
  ret i64 %old
}

define i64 @simt_atomic_and_u64(ptr %place, i64 %value) alwaysinline {
  %old = atomicrmw and ptr %place, i64 %value syncscope("device") monotonic
  ret i64 %old
}

define i64 @simt_atomic_or_u64(ptr %place, i64 %value) alwaysinline {
  %old = atomicrmw or ptr %place, i64 %value syncscope("device") monotonic
  ret i64 %old
}

define i64 @simt_atomic_xor_u64(ptr %place, i64 %value) alwaysinline {
  %old = atomicrmw xor ptr %place, i64 %value syncscope("device") monotonic
  ret i64 %old
}

define i64 @simt_atomic_min_u64(ptr %place, i64 %value) alwaysinline {
  %old = atomicrmw umin ptr %place, i64 %value syncscope("device") monotonic
  ret i64 %old
}

define i64 @simt_atomic_max_u64(ptr %place, i64 %value) alwaysinline {
  %old = atomicrmw umax ptr %place, i64 %value syncscope("device") monotonic
  ret i64 %old
}

define i64 @simt_atomic_min_i64(ptr %place, i64 %value) alwaysinline {
  %old = atomicrmw min ptr %place, i64 %value syncscope("device") monotonic
  ret i64 %old
}

define i64 @simt_atomic_max_i64(ptr %place, i64 %value) alwaysinline {
  %old = atomicrmw max ptr %place, i64 %value syncscope("device") monotonic
  ret i64 %old
}

define i64 @simt_atomic_compare_exchange_u64(ptr %place, i64 %expected, i64 %value) alwaysinline {
  %pair = cmpxchg ptr %place, i64 %expected, i64 %value syncscope("device") monotonic monotonic
  %old = extractvalue { i64, i1 } %pair, 0
  ret i64 %old
}

define i64 @simt_atomic_load_u64(ptr %place) alwaysinline {
  %value = load atomic i64, ptr %place syncscope("device") monotonic, align 8
  ret i64 %value
}

define void @simt_atomic_store_u64(ptr %place, i64 %value) alwaysinline {
  store atomic i64 %value, ptr %place syncscope("device") monotonic, align 8
  ret void
}

define float @simt_atomic_add_f32(ptr %place, float %value) alwaysinline {
  %old = atomicrmw fadd ptr %place, float %value syncscope("device") monotonic
  ret float %old
}

define double @simt_atomic_add_f64(ptr %place, double %value) alwaysinline {
  %old = atomicrmw fadd ptr %place, double %value syncscope("device") monotonic
  ret double %old
}

define i32 @simt_load_acquire_u32(ptr %place) alwaysinline {
  %value = load atomic i32, ptr %place syncscope("device") acquire, align 4
  ret i32 %value
}

define void @simt_store_release_u32(ptr %place, i32 %value) alwaysinline {
  store atomic i32 %value, ptr %place syncscope("device") release, align 4
  ret void
}

define i64 @simt_load_acquire_u64(ptr %place) alwaysinline {
  %value = load atomic i64, ptr %place syncscope("device") acquire, align 8
  ret i64 %value
}

define void @simt_store_release_u64(ptr %place, i64 %value) alwaysinline {
  store atomic i64 %value, ptr %place syncscope("device") release, align 8
  ret void
}

; Fences, which order a thread's accesses to all memory (CUDA's `__threadfence_block` and so on).

define void @simt_fence_block() alwaysinline {
  fence syncscope("block") seq_cst
  ret void
}

define void @simt_fence_device() alwaysinline {
  fence syncscope("device") seq_cst
  ret void
}

define void @simt_fence_system() alwaysinline {
  fence seq_cst
  ret void
}

; One lane of the whole warp. Rust has no struct that an intrinsic may return.
declare { i32, i1 } @llvm.nvvm.elect.sync(i32)

define i32 @simt_elect() alwaysinline convergent {
  %elected = call { i32, i1 } @llvm.nvvm.elect.sync(i32 -1)
  %is = extractvalue { i32, i1 } %elected, 1
  %word = zext i1 %is to i32
  ret i32 %word
}

; The barrier of the block with a vote.
declare i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32, i1)
declare i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32, i1)
declare i1 @llvm.nvvm.barrier.cta.red.or.aligned.all(i32, i1)

define i32 @simt_sync_threads_count(i32 %predicate) alwaysinline convergent {
  %holds = icmp ne i32 %predicate, 0
  %count = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 %holds)
  ret i32 %count
}

define i32 @simt_sync_threads_and(i32 %predicate) alwaysinline convergent {
  %holds = icmp ne i32 %predicate, 0
  %all = call i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32 0, i1 %holds)
  %word = zext i1 %all to i32
  ret i32 %word
}

define i32 @simt_sync_threads_or(i32 %predicate) alwaysinline convergent {
  %holds = icmp ne i32 %predicate, 0
  %any = call i1 @llvm.nvvm.barrier.cta.red.or.aligned.all(i32 0, i1 %holds)
  %word = zext i1 %any to i32
  ret i32 %word
}
