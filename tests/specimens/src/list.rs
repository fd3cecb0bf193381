//! The list of all specimens: what is wrong with each.

use simt::{
    Kernel, LaunchConfig,
    check::Kind::{self, *},
    checked, device,
};

/// `n`, x, y.
pub type Params = (u32, device::In<f32>, device::Out<f32>);
/// The same, for a checked launch.
pub type CheckedParams = (u32, checked::In<f32>, checked::Out<f32>);

/// A kernel, how it is launched, and what a checked launch must find.
#[derive(Debug)]
pub struct Specimen {
    /// The kernel.
    pub kernel: &'static Kernel<Params>,
    /// The kernel, to be checked.
    pub checked: &'static Kernel<CheckedParams>,
    /// Elements of x and of y.
    pub n: u32,
    /// Blocks, along x.
    pub blocks: u32,
    /// Does y hold zeros at the launch?
    pub zeroed: bool,
    /// What is to be found: these kinds and no others.
    pub finds: &'static [Kind],
}

impl Specimen {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.kernel.declaration.name
    }

    /// Is it in the PTX? The builder refuses one that declares other shared memory than it has.
    pub fn on_gpu(&self) -> bool {
        !self.finds.contains(&SharedSize)
    }

    /// The input: small integers, so that sums are exact in any order.
    pub fn x(&self) -> Vec<f32> {
        (0..self.n).map(|i| (i * 7 % 19) as f32).collect()
    }

    /// The shape of its launch.
    pub fn config(&self) -> LaunchConfig {
        // Every specimen declares its block.
        LaunchConfig::new([self.blocks, 1, 1], self.kernel.declaration.block.unwrap_or([1; 3]))
    }
}

macro_rules! specimens {
    ($($module:ident::$name:ident($n:literal, $blocks:literal $(, $zeroed:ident)?): $finds:expr;)*) => {
        &[$(Specimen {
            kernel: &crate::kernels::$module::$name,
            checked: &crate::checked::kernels::$module::$name,
            n: $n,
            blocks: $blocks,
            zeroed: [$(stringify!($zeroed),)? ""].len() > 1,
            finds: &$finds,
        },)*]
    };
}

/// Every specimen: its elements and blocks, and what is wrong with it.
pub static SPECIMENS: &[Specimen] = specimens! {
    races::read_too_early(128, 2): [ReadAfterWrite, Uninitialised, WriteAfterRead];
    races::written_too_early(100, 2): [WriteAfterRead, ReadAfterWrite];
    races::two_writers(100, 2): [WriteAfterWrite];
    races::bytes_read_too_early(128, 2): [ReadAfterWrite, Uninitialised, WriteAfterRead];
    races::counted_too_early(100, 2): [WriteAfterWrite, Uninitialised];
    races::sum_read_too_early(100, 2): [ReadAfterWrite, WriteAfterRead];
    races::two_blocks_write(128, 4): [WriteAfterWrite];
    races::reads_another_block(256, 4): [ReadAfterWrite, WriteAfterRead, Uninitialised];
    races::reads_its_neighbour(128, 2): [ReadAfterWrite, WriteAfterRead, Uninitialised];
    memory::unwritten_shared(100, 2): [Uninitialised];
    memory::unwritten_global(100, 2): [Uninitialised];
    memory::outside_buffer(100, 2): [OutOfBounds];
    memory::far_outside_buffer(100, 2): [OutOfBounds];
    memory::outside_shared(128, 2): [OutOfBounds];
    memory::misaligned(64, 2): [Misaligned, NeverRead, NeverWritten];
    memory::shared_not_as_declared(128, 2): [SharedSize];
    memory::incomplete(128, 2): [NeverRead, NeverWritten];
    memory::array_in_a_branch(100, 2): [SharedSize];
    barriers::skipped_barrier(100, 2): [BarrierSkipped];
    barriers::two_barriers(128, 2): [BarrierMismatch];
    warps::warp_without_sync(64, 2): [ReadAfterWrite, Uninitialised, WriteAfterRead];
    warps::half_a_sync(64, 2): [ReadAfterWrite];
    warps::exited_lanes(50, 2): [Deadlock, NeverWritten];
    warps::wrong_mask(64, 2): [Deadlock, NeverRead, NeverWritten];
    warps::lane_outside_the_mask(64, 2): [Deadlock, NeverWritten];
    warps::written_after_half_of_the_reads(100, 2): [WriteAfterRead];
    copies::copy_not_waited_for(100, 2): [ReadAfterWrite];
    copies::copy_without_a_barrier(128, 2): [ReadAfterWrite, Uninitialised, WriteAfterRead];
    copies::one_group_too_few(128, 2): [ReadAfterWrite];
    copies::copied_too_early(100, 2): [WriteAfterRead, ReadAfterWrite];
    copies::one_buffer_for_two_copies(100, 2): [WriteAfterWrite];
    copies::written_under_a_copy(100, 2): [WriteAfterWrite];
    copies::copy_and_sync_warp(128, 2): [WriteAfterWrite];
    clean::warp_exchange(100, 2): [];
    clean::half_warp_exchange(50, 2): [];
    clean::padded_transpose(2000, 2): [];
    clean::atomics(100, 2, zeroed): [];
    clean::atomic_types(100, 2, zeroed): [];
    clean::overlapping_reads(100, 2): [];
    clean::double_buffer(100, 2): [];
    clean::early_exit(100, 2): [];
    clean::neighbouring_bytes(100, 2): [];
    clean::warp_sum(100, 2): [];
    clean::half_warp_sum(50, 2): [];
    clean::vectors(64, 2): [];
    clean::copies_in_two_stages(100, 2): [];
};

/// The specimen of a name.
pub fn find(name: &str) -> Option<&'static Specimen> {
    SPECIMENS.iter().find(|specimen| specimen.name() == name)
}
