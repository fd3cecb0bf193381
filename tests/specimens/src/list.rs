//! The list of all specimens, and what is wrong with each.

use simt::{
    Declaration, Kernel, LaunchConfig,
    check::{
        self,
        Kind::{self, *},
        Report,
    },
    checked,
    cpu::{self, Stop},
    device::{self, BoxShape},
};

/// `n`, x, y.
pub type Params = (u32, device::In<f32>, device::Out<f32>);
/// The same, for a checked launch.
pub type CheckedParams = (u32, checked::In<f32>, checked::Out<f32>);
/// `n`, x as a matrix of [`COLS`] columns, y.
pub type BoxParams = (u32, device::TensorMap<f32>, device::Out<f32>);
/// The same, for a checked launch.
pub type CheckedBoxParams = (u32, checked::TensorMap<f32>, checked::Out<f32>);

/// `n`, x, y as a matrix of [`COLS`] columns.
pub type StoreParams = (u32, device::In<f32>, device::TensorMapMut<f32>);
/// The same, for a checked launch.
pub type CheckedStoreParams = (u32, checked::In<f32>, checked::TensorMapMut<f32>);

/// `n`, x, y, and [`WORDS`] words, which the launch begins with as zeros.
pub type WordsParams = (u32, device::In<f32>, device::Out<f32>, device::Out<u32>);
/// The same, for a checked launch.
pub type CheckedWordsParams = (u32, checked::In<f32>, checked::Out<f32>, checked::Out<u32>);

/// Words of a kernel that takes some.
pub const WORDS: usize = 32;
/// Columns of x (or y) in kernels that copy boxes of it.
pub const COLS: usize = 16;
/// The shape of those boxes.
pub const SHAPE: BoxShape = BoxShape { rows: 4, cols: COLS, swizzle: 0 };

/// The files of the specimens, and their text.
pub const SOURCES: [(&str, &str); 17] = [
    ("kernels/races.rs", include_str!("kernels/races.rs")),
    ("kernels/memory.rs", include_str!("kernels/memory.rs")),
    ("kernels/barriers.rs", include_str!("kernels/barriers.rs")),
    ("kernels/warps.rs", include_str!("kernels/warps.rs")),
    ("kernels/named.rs", include_str!("kernels/named.rs")),
    ("kernels/copies.rs", include_str!("kernels/copies.rs")),
    ("kernels/pipelines.rs", include_str!("kernels/pipelines.rs")),
    ("kernels/tma.rs", include_str!("kernels/tma.rs")),
    ("kernels/clusters.rs", include_str!("kernels/clusters.rs")),
    ("kernels/multicast.rs", include_str!("kernels/multicast.rs")),
    ("kernels/stores.rs", include_str!("kernels/stores.rs")),
    ("kernels/grids.rs", include_str!("kernels/grids.rs")),
    ("kernels/votes.rs", include_str!("kernels/votes.rs")),
    ("kernels/bulk.rs", include_str!("kernels/bulk.rs")),
    ("kernels/atomics.rs", include_str!("kernels/atomics.rs")),
    ("kernels/registers.rs", include_str!("kernels/registers.rs")),
    ("kernels/clean.rs", include_str!("kernels/clean.rs")),
];

/// A kernel in two versions: for running and for checking.
#[derive(Clone, Copy, Debug)]
pub enum Versions {
    /// For a kernel that takes views.
    Views(&'static Kernel<Params>, &'static Kernel<CheckedParams>),
    /// For a kernel that copies boxes of x.
    Boxes(&'static Kernel<BoxParams>, &'static Kernel<CheckedBoxParams>),
    /// For a kernel that copies boxes to y.
    Stores(&'static Kernel<StoreParams>, &'static Kernel<CheckedStoreParams>),
    /// For a kernel that takes words.
    Words(&'static Kernel<WordsParams>, &'static Kernel<CheckedWordsParams>),
}

/// A kernel, its launch, and the expected findings of a checked launch.
#[derive(Debug)]
pub struct Specimen {
    /// The kernel.
    pub kernel: Versions,
    /// Elements of x and of y.
    pub n: u32,
    /// Blocks, along x.
    pub blocks: u32,
    /// Whether y is zero at the launch.
    pub zeroed: bool,
    /// The kinds of findings: these and no others.
    pub finds: &'static [Kind],
}

impl Specimen {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.declaration().name
    }

    /// The kernel's declaration.
    pub fn declaration(&self) -> &'static Declaration {
        match self.kernel {
            Versions::Views(kernel, _) => &kernel.declaration,
            Versions::Boxes(kernel, _) => &kernel.declaration,
            Versions::Stores(kernel, _) => &kernel.declaration,
            Versions::Words(kernel, _) => &kernel.declaration,
        }
    }

    /// Whether it is in the PTX. The builder refuses a wrong declaration of shared memory.
    pub fn on_gpu(&self) -> bool {
        !self.finds.contains(&SharedSize)
    }

    /// The input: small integers, so that sums are exact in any order.
    pub fn x(&self) -> Vec<f32> {
        (0..self.n).map(|i| (i * 7 % 19) as f32).collect()
    }

    /// The output before the launch.
    pub fn y(&self) -> Vec<f32> {
        vec![if self.zeroed { 0.0 } else { f32::NAN }; self.n as usize]
    }

    /// The shape of its launch.
    pub fn config(&self) -> LaunchConfig {
        let declaration = self.declaration();
        // Every specimen declares its block.
        let block = declaration.block.unwrap_or([1; 3]);
        let dynamic_shared = declaration.dynamic_shared.unwrap_or(0);
        LaunchConfig { dynamic_shared, ..LaunchConfig::new([self.blocks, 1, 1], block) }
    }

    /// Launches it on the CPU.
    ///
    /// # Errors
    /// As a launch; if x is not aligned for TMA.
    ///
    /// # Safety
    /// 1. It is a clean one.
    pub unsafe fn run(&self, x: &[f32], y: &mut [f32]) -> Result<(), Stop> {
        let (config, options) = (self.config(), cpu::Options::default());
        // SAFETY: both outlive the launch, and the kernel is clean, as the caller promises.
        unsafe {
            let out = device::Out::new(y.as_mut_ptr(), y.len());
            match self.kernel {
                Versions::Views(kernel, _) => {
                    let params = (self.n, device::In::new(x.as_ptr(), x.len()), out);
                    cpu::launch(kernel, &config, params, &options)
                }
                Versions::Boxes(kernel, _) => {
                    let extents = [1, x.len() / COLS, COLS];
                    let map = device::TensorMap::new(x.as_ptr(), extents, [0, COLS], SHAPE);
                    let params = (self.n, map.map_err(Stop::Config)?, out);
                    cpu::launch(kernel, &config, params, &options)
                }
                Versions::Stores(kernel, _) => {
                    let extents = [1, y.len() / COLS, COLS];
                    let map = device::TensorMapMut::new(y.as_mut_ptr(), extents, [0, COLS], SHAPE);
                    let x = device::In::new(x.as_ptr(), x.len());
                    let params = (self.n, x, map.map_err(Stop::Config)?);
                    cpu::launch(kernel, &config, params, &options)
                }
                Versions::Words(kernel, _) => {
                    let (x, mut words) = (device::In::new(x.as_ptr(), x.len()), [0; WORDS]);
                    let words = device::Out::new(words.as_mut_ptr(), WORDS);
                    cpu::launch(kernel, &config, (self.n, x, out, words), &options)
                }
            }
        }
    }

    /// Launches it with all checks.
    ///
    /// # Errors
    /// As [`check::launch`]; if x is not aligned for TMA.
    pub fn check(
        &self,
        x: &[f32],
        y: &mut [f32],
        options: &check::Options,
    ) -> Result<Report, Stop> {
        let config = self.config();
        // SAFETY: both outlive the launch and nobody else uses them. Specimens take views, whose
        // bounds are checked.
        unsafe {
            let out = match self.zeroed {
                true => checked::Out::new(y.as_mut_ptr(), y.len()),
                false => checked::Out::uninit(y.as_mut_ptr(), y.len()),
            };
            match self.kernel {
                Versions::Views(_, kernel) => {
                    let params = (self.n, checked::In::new(x.as_ptr(), x.len()), out);
                    check::launch(kernel, &config, params, options)
                }
                Versions::Boxes(_, kernel) => {
                    let extents = [1, x.len() / COLS, COLS];
                    let map = checked::TensorMap::new(x.as_ptr(), extents, [0, COLS], SHAPE);
                    let params = (self.n, map.map_err(Stop::Config)?, out);
                    check::launch(kernel, &config, params, options)
                }
                Versions::Stores(_, kernel) => {
                    let (extents, strides) = ([1, y.len() / COLS, COLS], [0, COLS]);
                    let y = y.as_mut_ptr();
                    let map = checked::TensorMapMut::uninit(y, extents, strides, SHAPE);
                    let x = checked::In::new(x.as_ptr(), x.len());
                    let params = (self.n, x, map.map_err(Stop::Config)?);
                    check::launch(kernel, &config, params, options)
                }
                Versions::Words(_, kernel) => {
                    let (x, mut words) = (checked::In::new(x.as_ptr(), x.len()), [0; WORDS]);
                    let words = checked::Out::new(words.as_mut_ptr(), WORDS);
                    check::launch(kernel, &config, (self.n, x, out, words), options)
                }
            }
        }
    }
}

macro_rules! specimens {
    ($($module:ident::$name:ident $([$of:ident])? ($n:literal, $blocks:literal $(, $zeroed:ident)?): $finds:expr;)*) => {
        &[$(Specimen {
            kernel: specimens!(@ $($of)? crate::kernels::$module::$name, crate::checked::kernels::$module::$name),
            n: $n,
            blocks: $blocks,
            zeroed: [$(stringify!($zeroed),)? ""].len() > 1,
            finds: &$finds,
        },)*]
    };
    (@ boxes $kernel:path, $checked:path) => { Versions::Boxes(&$kernel, &$checked) };
    (@ stores $kernel:path, $checked:path) => { Versions::Stores(&$kernel, &$checked) };
    (@ words $kernel:path, $checked:path) => { Versions::Words(&$kernel, &$checked) };
    (@ $kernel:path, $checked:path) => { Versions::Views(&$kernel, &$checked) };
}

/// Every specimen: its elements and blocks, and what is wrong with it.
pub static SPECIMENS: &[Specimen] = specimens! {
    races::read_too_early(128, 2): [ReadAfterWrite, Uninitialised, WriteAfterRead];
    races::written_too_early(100, 2): [WriteAfterRead, ReadAfterWrite];
    races::two_writers(100, 2): [WriteAfterWrite];
    races::all_write_one_value(100, 2): [WriteAfterWrite];
    races::one_writes_for_all(100, 2): [];
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
    copies::copy_in_no_group(100, 2): [ReadAfterWrite];
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
    clean::softmax(96, 2): [];
    clean::vectors(64, 2): [];
    clean::copies_in_two_stages(100, 2): [];
    pipelines::read_without_a_wait[boxes](1024, 2): [ReadAfterWrite, WriteAfterRead, Uninitialised, Deadlock, NeverRead];
    pipelines::waits_for_another_stage[boxes](1024, 2): [ReadAfterWrite, WriteAfterRead];
    pipelines::released_before_the_read[boxes](1024, 2): [WriteAfterRead];
    pipelines::released_for_the_warp[boxes](1024, 2): [ReadAfterWrite, WriteAfterRead];
    pipelines::filled_without_a_wait[boxes](1024, 2): [WriteAfterRead];
    pipelines::one_reader_too_few[boxes](1024, 2): [WriteAfterRead];
    pipelines::one_addition_too_few[boxes](128, 2): [ReadAfterWrite, NeverRead];
    pipelines::one_reader_too_many[boxes](1024, 2): [Deadlock, NeverRead, NeverWritten];
    tma::begins_inside_sixteen_bytes[boxes](128, 2): [Misaligned, Deadlock, NeverRead, NeverWritten];
    tma::bytes_that_never_come[boxes](128, 2): [Deadlock, NeverWritten];
    tma::bytes_not_announced[boxes](128, 2): [Transaction, NeverWritten];
    tma::bytes_of_one_box[boxes](256, 2): [Transaction, ReadAfterWrite];
    tma::parity_not_turned[boxes](512, 2): [ReadAfterWrite, WriteAfterRead, BarrierMisuse, NeverRead, NeverWritten];
    tma::no_barrier_after_init[boxes](128, 2): [ReadAfterWrite, Uninitialised, BarrierMisuse, NeverRead, NeverWritten];
    tma::no_fence_after_init[boxes](128, 2): [ReadAfterWrite];
    tma::initialised_again[boxes](256, 2): [BarrierMisuse, NeverRead, NeverWritten];
    pipelines::overlapping_stages[boxes](1024, 2): [ReadAfterWrite, WriteAfterRead];
    tma::written_before_all_reads[boxes](128, 2): [ReadAfterWrite, WriteAfterRead];
    tma::written_before_the_copy[boxes](128, 2): [WriteAfterWrite];
    tma::ends_before_its_copy[boxes](256, 2): [EndedBlock, NeverWritten];
    pipelines::released_without_a_fence[boxes](1024, 2): [WriteAfterRead];
    pipelines::fenced_by_the_producer[boxes](1024, 2): [];
    pipelines::producer_and_consumers[boxes](2048, 2): [];
    pipelines::one_lane_for_its_warp[boxes](2048, 2): [];
    tma::boxes_partly_outside[boxes](352, 6): [];
    tma::written_after_all_reads[boxes](128, 2): [];
    tma::fenced_before_the_copy[boxes](128, 2): [];
    clusters::remote_read_too_early(256, 4): [ReadAfterWrite, WriteAfterRead, Uninitialised, UnbegunBlock];
    clusters::barrier_of_the_block_alone(256, 4): [ReadAfterWrite, UnbegunBlock];
    clusters::writes_before_the_other_begins(256, 4): [UnbegunBlock];
    clusters::writes_before_it_has_waited(256, 4): [UnbegunBlock];
    clusters::waits_for_no_arrival(256, 4): [BarrierMisuse, NeverRead, NeverWritten];
    clusters::a_barrier_within_another(256, 4): [BarrierMisuse, NeverRead, NeverWritten];
    clusters::ends_before_the_last_read(256, 4): [EndedBlock];
    clusters::ends_before_the_last_arrival(256, 4): [EndedBlock];
    clusters::arrives_before_the_init(256, 4): [ReadAfterWrite, UnbegunBlock];
    clusters::two_cluster_barriers(256, 4): [BarrierMismatch];
    clusters::a_relaxed_arrival_tells_no_writes(256, 4): [ReadAfterWrite];
    clusters::a_relaxed_arrival_tells_of_mbarriers(256, 4): [];
    clusters::a_barrier_in_halves(256, 4): [];
    clusters::remote_reads(256, 4): [];
    clusters::remote_arrivals(256, 4): [];
    multicast::released_to_its_block_alone[boxes](2048, 4): [ReadAfterWrite, WriteAfterWrite];
    multicast::announces_its_own_copy_alone[boxes](2048, 4): [ReadAfterWrite, WriteAfterWrite, Transaction, BarrierMisuse, NeverRead, NeverWritten];
    multicast::sent_before_the_init[boxes](2048, 4): [ReadAfterWrite, UnbegunBlock];
    multicast::ends_without_a_drain[boxes](2048, 4): [EndedBlock];
    multicast::sent_to_an_ended_block[boxes](128, 2): [EndedBlock, NeverRead, NeverWritten];
    multicast::each_block_sends_half[boxes](2048, 4): [];
    multicast::warps_of_both_blocks[boxes](2048, 4): [];
    stores::written_under_a_store[stores](1024, 2): [WriteAfterRead];
    stores::waited_behind_the_barrier[stores](1024, 2): [WriteAfterRead];
    stores::one_store_too_few[stores](1024, 2): [WriteAfterRead];
    stores::stored_without_a_fence[stores](128, 2): [ProxyFence];
    stores::stored_before_the_barrier[stores](128, 2): [ReadAfterWrite, WriteAfterRead, Uninitialised];
    stores::ends_under_a_store[stores](128, 2): [EndedBlock];
    stores::stored_in_no_group[stores](128, 2): [EndedBlock];
    stores::two_blocks_store[stores](128, 4): [WriteAfterWrite];
    stores::stored_again_too_early[stores](128, 2): [WriteAfterWrite];
    stores::stored_inside_sixteen_bytes[stores](128, 2): [Misaligned, NeverWritten];
    stores::stored_in_turns[stores](1024, 2): [];
    stores::stored_again[stores](128, 2): [];
    stores::stored_partly_outside[stores](352, 6): [];
    named::barrier_of_its_half_alone(256, 2): [ReadAfterWrite, WriteAfterRead, Uninitialised];
    named::one_barrier_for_both_halves(256, 2): [ReadAfterWrite, BarrierMismatch];
    named::one_warp_too_many(256, 2): [Deadlock, NeverWritten];
    named::half_a_warp_comes(256, 2): [Deadlock, NeverWritten];
    named::arrives_before_it_writes(128, 2): [ReadAfterWrite];
    named::arrives_and_does_not_wait(128, 2): [ReadAfterWrite, WriteAfterRead, Uninitialised];
    named::arrives_again(128, 2): [BarrierMisuse, NeverRead, NeverWritten];
    named::one_id_for_two(256, 2): [BarrierMisuse, NeverRead, NeverWritten];
    named::halves_by_themselves(256, 2): [];
    named::written_and_read_in_turns(1024, 2): [];
    grids::read_before_the_wait(128, 2): [BeforeWait];
    grids::one_more(100, 2): [];
    registers::registers_that_there_are(512, 2): [];
    registers::more_registers_than_there_are(512, 2): [Deadlock];
    votes::votes_of_the_block(100, 2): [];
    votes::reductions_of_the_warp(100, 2): [];
    votes::added_by_those_who_are_here(100, 2, zeroed): [];
    votes::one_warp_votes(128, 2): [BarrierMismatch];
    bulk::copied_in_bulk(256, 4): [];
    bulk::told_by_a_flag(256, 4): [];
    bulk::bulk_not_waited_for(256, 4): [ReadAfterWrite, WriteAfterWrite];
    bulk::bulk_not_fenced(256, 4): [ProxyFence];
    bulk::bulk_announced_by_half(256, 4): [Transaction, NeverWritten];
    bulk::bulk_under_a_store(256, 4): [WriteAfterWrite];
    atomics::operations_of_integers[words](128, 2, zeroed): [];
    atomics::one_value_by_atomic_stores[words](1, 4, zeroed): [];
    atomics::locked[words](1, 5, zeroed): [];
    atomics::locked_by_exchange[words](1, 5, zeroed): [];
    atomics::given_back_by_a_release[words](1, 5, zeroed): [];
    atomics::not_locked[words](1, 5, zeroed): [WriteAfterWrite];
    atomics::no_fence_behind_the_lock[words](1, 5, zeroed): [WriteAfterWrite];
    atomics::no_fence_before_the_unlock[words](1, 5, zeroed): [WriteAfterWrite];
    atomics::locked_by_fences_of_the_block[words](1, 5, zeroed): [WriteAfterWrite];
    atomics::last_block_by_one_fence[words](321, 5, zeroed): [];
    atomics::last_block_by_all_fences[words](321, 5, zeroed): [];
    atomics::last_block_whose_threads_read[words](321, 5, zeroed): [];
    atomics::last_block_by_a_counter[words](321, 5, zeroed): [];
    atomics::last_block_without_a_fence[words](321, 5, zeroed): [ReadAfterWrite];
    atomics::last_block_by_a_fence_of_the_block[words](321, 5, zeroed): [ReadAfterWrite];
    atomics::last_block_by_the_fence_of_another[words](321, 5, zeroed): [ReadAfterWrite];
    atomics::last_block_without_a_barrier[words](321, 5, zeroed): [ReadAfterWrite];
    atomics::each_block_is_the_last[words](321, 5, zeroed): [WriteAfterRead, WriteAfterWrite];
    atomics::look_back_by_orders[words](10, 5, zeroed): [];
    atomics::look_back_by_fences[words](10, 5, zeroed): [];
    atomics::look_back_relaxed_store[words](10, 5, zeroed): [ReadAfterWrite];
    atomics::look_back_relaxed_load[words](10, 5, zeroed): [ReadAfterWrite];
    atomics::look_back_plain_flag[words](10, 5, zeroed): [ReadAfterWrite, WriteAfterWrite];
    atomics::look_back_without_a_barrier[words](10, 5, zeroed): [ReadAfterWrite, WriteAfterRead];
    atomics::shared_flag_by_orders[words](64, 2, zeroed): [];
    atomics::shared_flag_by_fences[words](64, 2, zeroed): [];
    atomics::shared_flag_relaxed[words](64, 2, zeroed): [ReadAfterWrite];
    atomics::shared_flag_for_one_lane[words](64, 2, zeroed): [ReadAfterWrite, WriteAfterRead, Uninitialised];
};

/// The specimen of a name.
pub fn find(name: &str) -> Option<&'static Specimen> {
    SPECIMENS.iter().find(|specimen| specimen.name() == name)
}
