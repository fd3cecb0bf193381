//! The kernels to correct, one exercise a file.

use super::device;

pub mod bank_conflict;
pub mod barrier_in_a_branch;
pub mod block_of_b;
pub mod column_of_b;
pub mod one_barrier;
pub mod one_step_too_many;
pub mod prefetch_past_the_end;
pub mod rows_along_x;
pub mod toy_table;
pub mod whole_phases_only;
pub mod wrong_phase_variable;
