//! Totals of a launch, under Nsight Compute's names.

use simt::{
    check::{Line, Operation, Profile},
    types::NumberFormat,
};

use gpu_gemm::Shape;

/// A count over all blocks of the grid. The count of a sample is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Total {
    /// The metric for `ncu --metrics`. `barriers` has no such name.
    pub name: &'static str,
    /// The count of the kernel as written.
    pub value: u64,
    /// The count if neighbouring reads of shared memory are merged to 128 bits, as ptxas does in
    /// loops that it unrolls. `None` for what is not merged.
    pub merged: Option<u64>,
}

/// A field of a line, to be summed.
type Field = fn(&Line) -> u64;

const METRICS: [(&str, Operation, Field, Option<Field>); 16] = {
    use Operation::*;
    const REQUESTS: Field = |line| line.requests;
    const UNITS: Field = |line| line.units;
    const MOVED: Field = |line| line.moved;
    const MERGED: Option<Field> = Some(|line| line.merged_requests);
    const MERGED_UNITS: Option<Field> = Some(|line| line.merged_units);
    [
        ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", GlobalLoad, REQUESTS, None),
        ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", GlobalStore, REQUESTS, None),
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", GlobalLoad, UNITS, None),
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", GlobalStore, UNITS, None),
        ("smsp__sass_inst_executed_op_shared_ld.sum", SharedLoad, REQUESTS, MERGED),
        ("smsp__sass_inst_executed_op_shared_st.sum", SharedStore, REQUESTS, None),
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", SharedLoad, UNITS, MERGED_UNITS),
        (
            "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
            SharedStore,
            UNITS,
            None,
        ),
        ("smsp__inst_executed_op_ldgsts.sum", SharedCopy, REQUESTS, None),
        (
            "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
            SharedCopy,
            UNITS,
            None,
        ),
        ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", Fma, |line| line.lanes, None),
        ("barriers", Barrier, REQUESTS, None),
        ("l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum", TmaLoad, MOVED, None),
        ("l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum", TmaStore, MOVED, None),
        ("sm__inst_executed_pipe_tensor_op_hmma.sum", Mma, REQUESTS, None),
        ("sm__inst_executed_pipe_tensor_op_gmma.sum", Wgmma, REQUESTS, None),
    ]
};

/// Multiply-adds of f64.
const OF_F64: &str = "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum";

/// The totals of a profile of a kernel that multiplies and adds in that format. Atomic additions
/// are in its lines only. Multiply-adds are those by `fma`: arithmetic by operators is not counted.
/// Barriers are counted for each warp. Asynchronous copies, TMA copies and tensor cores are listed
/// only if the kernel uses them.
pub fn totals(profile: &Profile, computed: NumberFormat) -> Vec<Total> {
    let sum = |operation, field: Field| profile.total(operation, field).round() as u64;
    let of_f64 = computed == NumberFormat::F64;
    let total = |&(name, operation, field, merged): &(_, _, _, Option<Field>)| Total {
        name: if of_f64 && operation == Operation::Fma { OF_F64 } else { name },
        value: sum(operation, field),
        merged: merged.map(|field| sum(operation, field)),
    };
    let is_used = |operation| profile.lines.iter().any(|line| line.operation == operation);
    let everywhere = |of: Operation| {
        use Operation::*;
        !matches!(of, SharedCopy | TmaLoad | TmaStore | Mma | Wgmma)
    };
    let metrics = METRICS.iter().filter(|(_, of, ..)| everywhere(*of) || is_used(*of));
    metrics.map(total).collect()
}

/// FLOP of the product per byte that `operation` moves between L1 and the threads, in sectors of 32
/// bytes. The FLOP are [`Shape::flop`], whatever the kernel computes besides. `None` if no byte is
/// moved.
pub fn flop_per_byte(profile: &Profile, operation: Operation, shape: Shape) -> Option<f64> {
    let bytes = 32.0 * profile.total(operation, |line| line.units);
    (bytes > 0.0).then(|| shape.flop() / bytes)
}

/// The share of intervals between waits, counted for each warp, in which the lanes took different
/// branches.
pub fn divergent_share(profile: &Profile) -> f64 {
    profile.divergent_intervals as f64 / profile.warp_intervals.max(1) as f64
}
