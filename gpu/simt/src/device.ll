; What Rust cannot say about shared memory, linked into every kernel crate by the PTX builder.
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
