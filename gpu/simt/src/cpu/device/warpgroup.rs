//! Warpgroups of four warps: products on tensor cores (`wgmma`), and the reallocation of registers
//! (`setmaxnreg`).
//!
//! ```text
//!   accumulators.multiply_add(a, b)   begins to accumulate a product (64 x N, DEPTH elements along k)
//!   commit()                          makes a group of the products that have been begun
//!   accumulators.wait::<PENDING>()    waits until at most PENDING groups are in flight: gives the sums
//! ```
//!
//! All 128 threads of a warpgroup call these together, with the same operands. On the CPU sums are
//! rounded as on Hopper, as far as that is known. While a product is in flight, the accumulators
//! read as NaN. A checked launch adds up the registers that warps take.

use std::{marker::PhantomData, mem::size_of, ops::Range, panic::Location};

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

use crate::atoms::wgmma::{MOST, valid};
pub use crate::atoms::{Factor, WgmmaAtom, WgmmaSum};
#[cfg(feature = "cpu")]
use crate::cpu::{
    block::{self, current_cluster, wait_for},
    cluster::Wait,
    tensor_core::{
        format::Format,
        fragment::{self, THREADS},
    },
    warpgroup::{Request, Source, WarpgroupKey},
};
pub use crate::operand::{EitherMajorA, EitherMajorB, KMajor, Layout, MnMajor};
#[cfg(feature = "cpu")]
use crate::operand::{Major, Shape};
use crate::{Element, Tf32};

/// Raises the registers of each thread of this warp to `REGISTERS`, and waits until other warps of
/// the block have given them up. `REGISTERS` is a multiple of 8, from 24 to 256. Every warp of the
/// warpgroup calls it.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline(always)]
#[track_caller]
pub fn take_registers<const REGISTERS: u32>() {
    const { valid_registers(REGISTERS) };
    set_registers(REGISTERS, Location::caller());
}

/// Lowers the registers of each thread of this warp to `REGISTERS`; other warps of the block may
/// then take the rest. As in [`take_registers`].
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline(always)]
#[track_caller]
pub fn give_registers<const REGISTERS: u32>() {
    const { valid_registers(REGISTERS) };
    set_registers(REGISTERS, Location::caller());
}

#[cfg(feature = "cpu")]
fn set_registers(registers: u32, place: &'static Location<'static>) {
    if let Some(checker) = block::checker() {
        checker.set_registers(registers, place);
    }
}

const fn valid_registers(registers: u32) {
    assert!(registers.is_multiple_of(8) && registers >= 24 && registers <= 256);
}

/// An operand in shared memory: 64 rows of A, or N columns of B. Made by
/// [`DynamicShared::operand`](super::DynamicShared).
#[derive(Clone, Copy, Debug)]
pub struct Operand<T, L> {
    /// Bytes from the start of the block's shared memory to its first element, and to the end of
    /// its array.
    start: u32,
    end: u32,
    kind: PhantomData<fn() -> (T, L)>,
}

#[cfg_attr(not(feature = "cpu"), signatures)]
impl<T: Element, L: Layout> Operand<T, L> {
    /// Panics where its start is not aligned as the swizzle requires.
    #[track_caller]
    pub(crate) fn new(start: usize, end: usize) -> Self {
        const { assert!(L::BYTES == size_of::<T>(), "the layout is one of such elements") };
        let align = 8 * L::shape().span;
        let start = start as u32; // below 227 KiB, and the end too
        assert!(
            start.is_multiple_of(align),
            "an operand at byte {start} of shared memory: it begins at a multiple of {align}"
        );
        Operand { start, end: end as u32, kind: PhantomData }
    }

    /// The operand with that number of rows of A, or columns of B.
    #[track_caller]
    fn source(self, count: usize) -> Source {
        let Shape { span, offsets, advance } = L::shape();
        // MN-major rows fill whole boxes of a span.
        let boxed = match L::is_mn_major() {
            true => count.next_multiple_of(span as usize / size_of::<T>()),
            false => count,
        };
        let bytes = (boxed * L::DEPTH * size_of::<T>()) as u32;
        let Operand { start, end, .. } = self;
        assert!(
            bytes <= end.saturating_sub(start),
            "an operand of {bytes} bytes from byte {start} of shared memory on is outside: its array ends at {end}"
        );
        Source { start, mn_major: L::is_mn_major(), span, offsets, advance }
    }
}

/// The running thread's warpgroup, and the thread's number in it.
#[cfg(feature = "cpu")]
#[track_caller]
fn own() -> (WarpgroupKey, usize) {
    let linear = block::linear_index();
    let (group, threads) = (linear / THREADS as u32, block::launch_config().threads());
    assert!(
        u64::from(group + 1) * THREADS as u64 <= threads,
        "a warpgroup has 128 threads, and the last of this block has {}",
        threads % THREADS as u64
    );
    if let Some(checker) = block::checker() {
        checker.count(Location::caller());
    }
    ((block::rank(), group), linear as usize % THREADS)
}

/// A thread's part of a warpgroup's accumulators of 64 x `N` elements of type `S`. `N` is 16, 32,
/// 64, 96, 128, 192 or 256; of i32 also 8, 24, 48, and the other multiples of 16 to 256. It takes
/// N / 2 registers.
///
/// They can be read after [`wait`](Self::wait). A product that is in flight while other
/// accumulators are read (`PENDING` above 0) must begin and end in the same iteration of a loop.
/// Otherwise, on a GPU, LLVM copies registers of a product in flight, ptxas serialises the products
/// with warning C7514, and the build fails.
#[derive(Debug)]
pub struct Accumulators<const N: usize, S = f32> {
    sums: Fragment<N, S>,
    /// The numbers of the products that have not been accumulated yet.
    under_way: Vec<u64>,
    /// What can be read while a product is in flight.
    unknown: Fragment<N, S>,
}

#[cfg_attr(not(feature = "cpu"), signatures)]
impl<const N: usize, S: WgmmaSum> Accumulators<N, S> {
    /// Zeros.
    pub fn zeroed() -> Self {
        let unknown = Fragment::unspecified();
        Accumulators { sums: Fragment::zeroed(), under_way: Vec::new(), unknown }
    }

    /// Begins the product of A and B, which overwrites the accumulators.
    #[track_caller]
    pub fn multiply<T: Factor<Sum = S>, A: Layout, B: Layout>(
        &mut self,
        a: Operand<T, A>,
        b: Operand<T, B>,
    ) {
        self.multiply_add_if(false, a, b);
    }

    /// Begins the product of A and B, which is added to the accumulators.
    #[track_caller]
    pub fn multiply_add<T: Factor<Sum = S>, A: Layout, B: Layout>(
        &mut self,
        a: Operand<T, A>,
        b: Operand<T, B>,
    ) {
        self.multiply_add_if(true, a, b);
    }

    /// Begins the product of A and B. It is added to the accumulators if these are `kept`, and
    /// overwrites them otherwise.
    #[track_caller]
    pub fn multiply_add_if<T: Factor<Sum = S>, A: Layout, B: Layout>(
        &mut self,
        kept: bool,
        a: Operand<T, A>,
        b: Operand<T, B>,
    ) {
        self.multiply_add_steps(kept, (0, A::DEPTH / T::STEP), a, b);
    }

    /// [`multiply_add`](Self::multiply_add) of the `number`th instruction's k-step only: for the
    /// end of k, where there are fewer elements than the operands have.
    #[track_caller]
    pub fn multiply_add_step<T: Factor<Sum = S>, A: Layout, B: Layout>(
        &mut self,
        number: u32,
        a: Operand<T, A>,
        b: Operand<T, B>,
    ) {
        let all = A::DEPTH / T::STEP;
        assert!((number as usize) < all, "instruction {number} of operands that have {all}");
        self.multiply_add_steps(true, (number as usize, 1), a, b);
    }

    /// The products of `steps` instructions, from the `first` on.
    #[track_caller]
    fn multiply_add_steps<T: Factor<Sum = S>, A: Layout, B: Layout>(
        &mut self,
        kept: bool,
        (first, steps): (usize, usize),
        a: Operand<T, A>,
        b: Operand<T, B>,
    ) {
        const {
            assert!(A::DEPTH == B::DEPTH, "A and B have as many k-steps");
            assert!(
                matches!(A::MAJOR, Major::OfA) == matches!(B::MAJOR, Major::OfB)
                    && !matches!(A::MAJOR, Major::OfB)
                    && !matches!(B::MAJOR, Major::OfA),
                "A is EitherMajorA and B EitherMajorB, or neither"
            );
        }
        let request = Request {
            format: T::Atom::format(),
            columns: N,
            steps,
            first,
            kept,
            a: Some(a.source(fragment::ROWS)),
            b: b.source(N),
            place: Location::caller(),
        };
        self.begin(request, &[]);
    }

    #[track_caller]
    fn begin(&mut self, request: Request, registers: &[u32]) {
        let (key, thread) = own();
        let cluster = current_cluster();
        let (number, all) = cluster
            .begin_product(key, thread, request, registers)
            .unwrap_or_else(|reason| panic!("{reason}"));
        self.under_way.push(number);
        match block::checker() {
            None if all => cluster.read_product(key, number),
            None => {}
            Some(checker) => {
                checker.begin_product(key, number, all, &request);
                if all {
                    cluster.defer_product(key, number);
                }
            }
        }
    }

    /// Waits until at most the last `PENDING` groups of this warpgroup are in flight, and gives the
    /// sums. No product of these accumulators may be in flight then.
    #[track_caller]
    pub fn wait<const PENDING: u64>(&mut self) -> &mut Fragment<N, S> {
        let ended = wait_until::<PENDING>(Location::caller());
        let (key, thread) = own();
        let cluster = current_cluster();
        let sums = &mut self.sums.0[..N / 2];
        self.under_way.retain(|&number| {
            let operands = (number < ended).then(|| cluster.take_operands(key, number)).flatten();
            let Some(operands) = operands else { return true };
            if !operands.are_kept() {
                sums.fill(S::ZERO);
            }
            operands.for_each_step(thread, &mut |step| S::add(sums, step));
            false
        });
        if self.under_way.is_empty() {
            &mut self.sums
        } else {
            self.unknown.0.fill(S::UNSPECIFIED);
            &mut self.unknown
        }
    }
}

#[cfg_attr(not(feature = "cpu"), signatures)]
impl<const N: usize> Accumulators<N> {
    /// Begins the product of A in registers, with 8 `STEPS` elements along k, and the part of B
    /// from element 8 `first` along k on. It is added to the accumulators. For each 8 elements
    /// along k, `a` has a thread's four elements: with g = lane / 4 and t = lane % 4, these are (g,
    /// t), (g + 8, t), (g, t + 4), (g + 8, t + 4) of its warp's 16 rows (PTX ISA, the figure of
    /// wgmma's fragment A of tf32).
    ///
    /// On a GPU the registers are read asynchronously: use other ones for the next product until
    /// this one has been waited for.
    #[track_caller]
    pub fn multiply_add_registers<B: Layout, const STEPS: usize>(
        &mut self,
        a: &[[Tf32; 4]; STEPS],
        b: Operand<Tf32, B>,
        first: usize,
    ) {
        assert!((first + STEPS) * Tf32::STEP <= B::DEPTH, "B has {} k-steps", B::DEPTH);
        let request = Request {
            format: Format::Tf32,
            columns: N,
            steps: STEPS,
            first,
            kept: true,
            a: None,
            b: b.source(N),
            place: Location::caller(),
        };
        let registers = a.as_flattened().iter().map(|number| number.to_bits());
        self.begin(request, &registers.collect::<Vec<_>>());
    }
}

/// Makes a group of the products that have been begun since the last call.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn commit() {
    let (key, thread) = own();
    current_cluster().warpgroup(key).commit(thread);
}

/// Waits until at most the last `PENDING` groups of this warpgroup are in flight. The operands of
/// the others have been read then.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn wait<const PENDING: u64>() {
    wait_until::<PENDING>(Location::caller());
}

/// Waits likewise, and gives the number below which all products have been read.
#[cfg(feature = "cpu")]
#[track_caller]
fn wait_until<const PENDING: u64>(place: &'static Location<'static>) -> u64 {
    let (key, thread) = own();
    let cluster = current_cluster();
    let number = cluster.warpgroup(key).waited_for(thread, PENDING as usize);
    let have_been_read = cluster.warpgroup(key).have_been_read(number);
    if !have_been_read {
        wait_for(Wait::Products(key, number), place);
    }
    let clock = cluster.warpgroup(key).clock_before(number);
    if let (Some(checker), Some(clock)) = (block::checker(), clock) {
        checker.waited_for_products(key, number, clock);
    }
    number
}

/// A thread's elements of 64 x `N`: two neighbours in every eight columns, in each of two rows.
#[derive(Debug)]
pub struct Fragment<const N: usize, S = f32>([S; MOST]);

#[cfg_attr(not(feature = "cpu"), signatures)]
impl<const N: usize, S: WgmmaSum> Fragment<N, S> {
    /// Zeros.
    pub fn zeroed() -> Self {
        const { valid::<S>(N) };
        Fragment([S::ZERO; MOST])
    }

    /// Unspecified numbers: here of f32 NaN, which cannot be taken for a sum.
    pub fn unspecified() -> Self {
        Fragment([S::UNSPECIFIED; MOST])
    }

    /// Replaces each element by `with(element)`.
    pub fn map(&mut self, mut with: impl FnMut(S) -> S) {
        for sum in self.0.iter_mut().take(N / 2) {
            *sum = with(*sum);
        }
    }

    /// Sets each element to `with(element of other)`.
    pub fn set<R: WgmmaSum>(&mut self, other: &Fragment<N, R>, mut with: impl FnMut(R) -> S) {
        for (sum, value) in self.0.iter_mut().zip(other.0).take(N / 2) {
            *sum = with(value);
        }
    }

    /// Replaces each two neighbours by `with(row, column of the first, both)`.
    #[track_caller]
    pub fn map_pairs(&mut self, mut with: impl FnMut(u32, u32, [S; 2]) -> [S; 2]) {
        let (_, thread) = own();
        for i in (0..N / 2).step_by(2) {
            let (row, col) = fragment::accumulator(thread, i);
            let two = [self.0[i], self.0[i + 1]];
            [self.0[i], self.0[i + 1]] = with(row as u32, col as u32, two);
        }
    }

    /// [`map_pairs`](Self::map_pairs) for the `part`th `COLS` columns only. Columns are counted
    /// from the part's first column. A part past the last is empty. On a GPU `part` is a number
    /// that the compiler knows, or the elements are found by branches.
    pub fn map_pairs_of<const COLS: usize>(
        &mut self,
        part: usize,
        mut with: impl FnMut(u32, u32, [S; 2]) -> [S; 2],
    ) {
        let (_, thread) = own();
        for i in elements_of::<N>(COLS, part).step_by(2) {
            let (row, col) = fragment::accumulator(thread, i);
            let two = [self.0[i], self.0[i + 1]];
            [self.0[i], self.0[i + 1]] = with(row as u32, (col % COLS) as u32, two);
        }
    }

    /// Replaces each element by `with(i, element, element of other)`, where `i` is the number of
    /// the element's 64 columns.
    pub fn update(&mut self, other: &Fragment<N, S>, mut with: impl FnMut(usize, S, S) -> S) {
        for (i, (sum, value)) in self.0.iter_mut().zip(other.0).enumerate().take(N / 2) {
            // Four elements are in the same eight columns.
            *sum = with(i / 32, *sum, value);
        }
    }

    /// As [`update`](Self::update), where `i` is 0 for the thread's first row and 1 for the one
    /// eight rows below.
    pub fn update_rows(&mut self, other: &Fragment<N, S>, mut with: impl FnMut(usize, S, S) -> S) {
        for (i, (sum, value)) in self.0.iter_mut().zip(other.0).enumerate().take(N / 2) {
            *sum = with(i / 2 % 2, *sum, value);
        }
    }

    /// Calls `act` with the row and column of the first of two neighbouring elements, and both
    /// elements, for all elements of this thread.
    #[track_caller]
    pub fn for_each_pair(&self, mut act: impl FnMut(u32, u32, [S; 2])) {
        let (_, thread) = own();
        for i in (0..N / 2).step_by(2) {
            let (row, col) = fragment::accumulator(thread, i);
            act(row as u32, col as u32, [self.0[i], self.0[i + 1]]);
        }
    }

    /// [`for_each_pair`](Self::for_each_pair) for the `part`th `COLS` columns only. Columns are
    /// counted from the part's first column. A part past the last is empty. On a GPU `part` is a
    /// number that the compiler knows, or the elements are found by branches.
    #[track_caller]
    pub fn for_each_pair_of<const COLS: usize>(
        &self,
        part: usize,
        mut act: impl FnMut(u32, u32, [S; 2]),
    ) {
        let (_, thread) = own();
        for i in elements_of::<N>(COLS, part).step_by(2) {
            let (row, col) = fragment::accumulator(thread, i);
            act(row as u32, (col % COLS) as u32, [self.0[i], self.0[i + 1]]);
        }
    }

    /// Calls `act` with the row and column of the first of four elements, and the elements, for the
    /// `part`th 64 columns. The four are two neighbours in each of two rows, which are eight apart.
    /// Columns are counted from the part's first column. On a GPU `part` is a number that the
    /// compiler knows, or the elements are found by branches.
    #[track_caller]
    pub fn for_each_square_of(&self, part: usize, mut act: impl FnMut(u32, u32, [[S; 2]; 2])) {
        let (_, thread) = own();
        for i in elements_of::<N>(64, part).step_by(4) {
            let (row, col) = fragment::accumulator(thread, i);
            let [a, b, c, d] = [0, 1, 2, 3].map(|j| self.0[i + j]);
            act(row as u32, (col % 64) as u32, [[a, b], [c, d]]);
        }
    }

    /// Calls `act` with the row, column and value of each of this thread's elements.
    #[track_caller]
    pub fn for_each(&self, mut act: impl FnMut(u32, u32, S)) {
        self.for_each_pair(|row, col, [first, second]| {
            act(row, col, first);
            act(row, col + 1, second);
        });
    }
}

#[cfg_attr(not(feature = "cpu"), signatures)]
impl<const N: usize> Fragment<N> {
    /// Adds `other`, each element rounded once.
    pub fn add(&mut self, other: &Fragment<N>) {
        for (sum, value) in self.0.iter_mut().zip(other.0) {
            *sum += value;
        }
    }
}

/// The elements of a thread, of a fragment of `N` columns, that are in the `part`th `cols` columns.
fn elements_of<const N: usize>(cols: usize, part: usize) -> Range<usize> {
    let [start, end] = [part, part + 1].map(|part| (cols / 2 * part).min(N / 2));
    start..end
}
