//! Questions whose answers are numbers. The answers are counted or computed, not written down.

use std::num::NonZeroU32;

use occupancy::{Block, Sm, occupancy};
use simt::{
    Kernel, LaunchConfig,
    check::{self, Operation, Options, Order, Profile},
    checked::Out,
};

use crate::{
    attempt::attempt,
    counted::{reads_a_column, stores_a_column},
    problem::Launch,
    solutions::toy_table::toy_table,
};

/// A question.
#[derive(Debug)]
pub struct Question {
    /// Its name.
    pub name: &'static str,
    /// The rung to which it belongs.
    pub rung: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// The question.
    pub ask: &'static str,
    /// The answer, or why it cannot be counted.
    pub answer: fn() -> Result<f64, String>,
    /// The explanation.
    pub why: &'static str,
}

/// Every question.
pub static QUESTIONS: &[Question] = &[
    Question {
        name: "sectors_of_a_store",
        rung: "basic",
        about: "coalescing",
        ask: "Blocks are 16 x 16, n = 64, and thread (tx, ty) stores C[row * n + col] with row = 16 * blockIdx.x + tx \
              and col = 16 * blockIdx.y + ty. How many sectors of 32 bytes does a warp's store touch?",
        answer: || {
            let profile = count(&stores_a_column, 64)?;
            Ok(per_request(&profile, Operation::GlobalStore))
        },
        why: "A warp has sixteen tx and two ty: two neighbouring elements in each of sixteen rows. Rows are 256 \
              bytes apart, so each takes a sector of its own.",
    },
    Question {
        name: "wavefronts_of_a_column",
        rung: "tiled_uncoalesced",
        about: "bank conflicts",
        ask: "A tile of 16 x 16 floats lies in shared memory, 32 banks of 4 bytes, and thread (tx, ty) of a 16 x 16 \
              block reads tile[tx][i]. How many wavefronts does a warp's read take?",
        answer: || {
            let profile = count(&reads_a_column, 16)?;
            Ok(per_request(&profile, Operation::SharedLoad))
        },
        why: "The sixteen addresses 16 tx + i lie in two banks, i and i + 16, eight in each. Both ty read the same \
              addresses, which costs nothing.",
    },
    Question {
        name: "flop_a_byte",
        rung: "outer_product",
        about: "computation to memory",
        ask: "A block computes a 16 x 64 tile of C from a 16 x 16 tile of A and a 16 x 64 tile of B in each phase. How \
              many FLOP does it do for each byte that it loads?",
        answer: || Ok(flop_per_byte(16, 64)),
        why: "In a k-step: 2 * 16 * 64 FLOP for 16 + 64 elements of 4 bytes. Document 003 says that the ratio stays \
              that of the 16 x 16 tile, which is 4.",
    },
    Question {
        name: "zeros_of_3x3",
        rung: "edges",
        about: "boundary checks",
        ask: "Matrices are 3 x 3 and tiles 2 x 2, as in document 004. How many zeros do all threads of all blocks write \
              into their tiles, because the element does not exist?",
        answer: zeros_of_the_3x3_example,
        why: "Four blocks of four threads load two elements in each of two phases: 64. Of these, 9 elements of A are \
              loaded by two columns of blocks and 9 of B by two rows of blocks: 36. The rest are zeros.",
    },
    Question {
        name: "blocks_of_16x16",
        rung: "tiled32",
        about: "occupancy",
        ask: "An SM has 16 KB of shared memory and holds 1536 threads, as on the slides of document 004. How \
              many blocks with 16 x 16 tiles (2 KB, 256 threads) does it hold?",
        answer: || Ok(f64::from(blocks_on_the_slides_multiprocessor(16))),
        why: "Shared memory is enough for eight, as the slide says, but threads are enough for 1536 / 256 only.",
    },
    Question {
        name: "loads_on_their_way",
        rung: "prefetched",
        about: "Little's law",
        ask: "L2 answers an SM after 281 cycles, with 64 bytes a cycle. A warp loads 16 bytes a lane, and waits for \
              each load. How many warps must the SM have, so that L2's port is always busy?",
        answer: || Ok((281.0 * 64.0 / (32.0 * 16.0_f64)).ceil()),
        why: "281 x 64 = 17,984 bytes must be on their way, and a load of a warp is 512 bytes: 35.1 loads. Two \
              independent loads a warp need half as many warps.",
    },
];

/// The questions of a rung.
pub fn of_rung(rung: &str) -> impl Iterator<Item = &'static Question> {
    QUESTIONS.iter().filter(move |question| question.rung == rung)
}

/// The question of that name.
///
/// # Errors
/// There is none; with the names.
pub fn find(name: &str) -> Result<&'static Question, String> {
    let names = || QUESTIONS.iter().map(|question| question.name).collect::<Vec<_>>().join(", ");
    let found = QUESTIONS.iter().find(|question| question.name == name);
    found.ok_or_else(|| format!("there is no question `{name}`: there are {}", names()))
}

/// Counts one of the small kernels on an n x n output. n is a multiple of 16.
fn count(kernel: &Kernel<(u32, Out<f32>)>, n: u32) -> Result<Profile, String> {
    let mut y = vec![f32::NAN; (n * n) as usize];
    let mut options = Options::default();
    options.profile = Some(NonZeroU32::MIN);
    let config = LaunchConfig::new([n / 16, n / 16, 1], [16, 16, 1]);
    // SAFETY:
    // 1. The vector outlives the launch, and nobody else uses it.
    // 2. These kernels take views.
    // 3. and 4. An element of a view is a float that is copied, and no local has a destructor.
    let report = unsafe {
        let y = Out::uninit(y.as_mut_ptr(), y.len());
        check::launch(kernel, &config, (n, y), &options)
    };
    let report = report.map_err(|stop| stop.to_string())?;
    Ok(report.profile.unwrap_or_default())
}

/// Sectors or wavefronts of a warp's access of that kind.
fn per_request(profile: &Profile, operation: Operation) -> f64 {
    profile.total(operation, |line| line.units) / profile.total(operation, |line| line.requests)
}

/// FLOP per byte that a block loads, if a rows x cols tile of C needs rows elements of A and cols
/// of B for each k-step.
fn flop_per_byte(rows: u32, cols: u32) -> f64 {
    f64::from(2 * rows * cols) / f64::from(4 * (rows + cols))
}

/// Elements that threads write to tiles, minus those that they load.
fn zeros_of_the_3x3_example() -> Result<f64, String> {
    let (launch, shape) = (Launch::product(2, 2), [3; 3]);
    let data = launch.problem.data(shape);
    let profile = attempt(&toy_table, &launch, shape, &data, Order::Forward, true)?.profile;
    let threads = |operation| profile.total(operation, |line| line.lanes);
    Ok(threads(Operation::SharedStore) - threads(Operation::GlobalLoad))
}

/// Blocks with `tile x tile` threads and two tiles on the slides' SM. The slides name neither
/// registers nor a largest number of blocks, so neither limits here.
fn blocks_on_the_slides_multiprocessor(tile: u32) -> u32 {
    let slides = Sm { warps: 1536 / 32, shared: 16 << 10, shared_reserved: 0, ..Sm::SM_80 };
    let block = Block { threads: tile * tile, registers: 16, shared: 2 * 4 * tile * tile };
    occupancy(&slides, &block).blocks
}
