//! Tests with barriers behind branches.

use crate::check::tests::{breaks, changed, problems};

/// The good kernel with a constant, and `code` in place of its first barrier.
fn with(code: &str) -> String {
    let place = "mov.u32 %r9, /* simt.constant a */ 0;";
    let code = format!("{place}\n\tsetp.ne.b32 %p1, %r9, 0;\n\t{code}");
    changed("params=", "constants=a:0|1 params=").replace("bar.sync 	0;", &code)
}

const IN_ARM: &str = "is in an arm of the branch of line 16, which depends on the constant `a`";

#[test]
fn a_barrier_in_an_arm_is_found() {
    for code in [
        "@%p1 bra $L; bar.sync 0;\n$L:",
        "@!%p1 bra $M; st.shared.b32 [%r2], %r1; bra.uni $L;\n$M: bar.sync 0;\n$L:",
        "@%p1 ret; bar.sync 0;",
        "@%p1 bra $L; @%p5 bra $L; bar.sync 0;\n$L:",
        // A table that leads behind it.
        "$T: .branchtargets $L, $M; brx.idx %r9, $T; $L: bar.sync 0;\n$M:",
        // The end of a loop.
        "{ $L: bar.sync 0; add.s32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, %r9; @%p2 bra $L; }",
    ] {
        let text = with(code).replace("	barrier.cta.sync.aligned.all 0;\n", "");
        let text = text.replace("barriers=2", "barriers=1");
        breaks(&text, IN_ARM);
        breaks(&text, "`bar.sync 0` (line ");
    }
}

#[test]
fn what_is_made_of_a_constant_depends_on_it() {
    for code in [
        "{ .reg .pred q; and.b32 %r10, %r1, %r9; cvt.u64.u32 %rd4, %r10;\n\
         setp.eq.s64 q|%p8, %rd4, 5; xor.pred %p3, q, %p7; @%p3 bra $L; bar.sync 0; $L: }",
        "selp.b32 %r11, 4, 8, %p1; mov.b64 {%r12, %r13}, {%r11, %r1};\n\
         setp.lt.u32 %p4, %r5, %r13; @%p4 bra $L; bar.sync 0; $L:",
    ] {
        breaks(&with(code), "is in an arm of the branch of line 17");
    }
    breaks(&with("@!%p1 bar.sync 0;"), "has a predicate that depends on the constant `a`");
    let called = with("@%p1 bra $L; call.uni waits, ();\n$L:");
    breaks(&(called + ".func waits()\n{ bar.sync 0; ret; }"), IN_ARM);
}

#[test]
fn other_barriers_are_free() {
    for code in [
        "bar.sync 0;",
        "@%p1 bra $L; st.shared.b32 [%r2], %r1;\n$L: bar.sync 0;",
        // A barrier for some warps.
        "@%p1 bra $L; bar.sync 1, 64;\n$L: bar.sync 0;",
        // A branch that does not depend on the constant, and one that stops all threads.
        "@%p5 bra $L; bar.sync 0;\n$L:",
        "@%p1 bra $L; trap;\n$L: bar.sync 0;",
        "@%p1 bra $L; exit;\n$L: bar.sync 0;",
        // A loop around a branch: the next round is not part of the branch.
        "$M: bar.sync 0; @%p1 bra $L; st.shared.b32 [%r2], %r1;\n$L: @%p5 bra $M;",
        // A table that leads past no barrier.
        "$T: .branchtargets $L, $M; brx.idx %r9, $T; $L: st.shared.b32 [%r2], %r1;\n$M: bar.sync 0;",
        // Values in memory are not followed.
        "ld.shared.b32 %r7, [%r9]; setp.ne.b32 %p2, %r7, 0; @%p2 bra $L; bar.sync 0;\n$L:",
    ] {
        assert_eq!(problems(&with(code)), Vec::<String>::new(), "{code}");
    }
}
