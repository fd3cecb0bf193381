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

; Atomic additions. Rust's are for the whole system, and inline assembly hides the address space. Of these
; LLVM makes `atom.global.add` or `atom.shared.add`, which PTX reads as `.relaxed.gpu`.

define i32 @simt_atomic_add_u32(ptr %place, i32 %value) alwaysinline {
  %old = atomicrmw add ptr %place, i32 %value syncscope("device") monotonic
  ret i32 %old
}

define i64 @simt_atomic_add_u64(ptr %place, i64 %value) alwaysinline {
  %old = atomicrmw add ptr %place, i64 %value syncscope("device") monotonic
  ret i64 %old
}

define float @simt_atomic_add_f32(ptr %place, float %value) alwaysinline {
  %old = atomicrmw fadd ptr %place, float %value syncscope("device") monotonic
  ret float %old
}

define double @simt_atomic_add_f64(ptr %place, double %value) alwaysinline {
  %old = atomicrmw fadd ptr %place, double %value syncscope("device") monotonic
  ret double %old
}

; One lane of the whole warp. Rust has no struct that an intrinsic may return.
declare { i32, i1 } @llvm.nvvm.elect.sync(i32)

define i32 @simt_elect() alwaysinline convergent {
  %elected = call { i32, i1 } @llvm.nvvm.elect.sync(i32 -1)
  %is = extractvalue { i32, i1 } %elected, 1
  %word = zext i1 %is to i32
  ret i32 %word
}
