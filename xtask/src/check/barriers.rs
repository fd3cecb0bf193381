//! Barriers of a block.

use crate::ptx::Statement;

/// Whether an instruction is a barrier of the block, in any of PTX's spellings: `bar.sync`, `bar.red`,
/// `bar.arrive`, `barrier.sync`, `barrier.cta.sync.aligned`. Not those of a warp or of a cluster, nor named barriers, which
/// say for how many threads they are: they are for some of the block's warps.
pub(super) fn is_barrier(statement: &Statement) -> bool {
    let parts: Vec<&str> = statement.opcode().collect();
    matches!(parts[0], "bar" | "barrier")
        && !parts.iter().any(|part| matches!(*part, "warp" | "cluster"))
        && match () {
            () if parts.contains(&"red") => true,
            () if parts.contains(&"sync") || parts.contains(&"arrive") => {
                !statement.text.contains(',')
            }
            () => false,
        }
}
