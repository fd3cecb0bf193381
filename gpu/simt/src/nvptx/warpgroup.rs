//! Warpgroups of four warps: products on tensor cores (`wgmma`), and the reallocation of registers
//! (`setmaxnreg`).
//!
//! ```text
//!   accumulators.multiply_add(a, b)   begins to accumulate a product (64 x N, DEPTH elements along k)
//!   commit()                          makes a group of the products that have been begun
//!   accumulators.wait::<PENDING>()    waits until at most PENDING groups are in flight: gives the sums
//! ```
//!
//! All 128 threads of a warpgroup call these together, with the same operands.

use core::{arch::asm, marker::PhantomData};

use super::{thread, wgmma};
use crate::{
    Element, Tf32,
    atoms::wgmma::{MOST, tf32::multiply_add_registers, valid},
};
pub use crate::{
    atoms::{Factor, WgmmaAtom, WgmmaSum},
    operand::{EitherMajorA, EitherMajorB, KMajor, Layout, MnMajor},
};

#[inline(always)]
pub fn take_registers<const REGISTERS: u32>() {
    const { valid_registers(REGISTERS) };
    // SAFETY: all lanes of the warp call it, as the kernel promises.
    unsafe {
        asm!("setmaxnreg.inc.sync.aligned.u32 {};", const REGISTERS, options(nostack, preserves_flags))
    };
}

#[inline(always)]
pub fn give_registers<const REGISTERS: u32>() {
    const { valid_registers(REGISTERS) };
    // SAFETY: as in `take_registers`.
    unsafe {
        asm!("setmaxnreg.dec.sync.aligned.u32 {};", const REGISTERS, options(nostack, preserves_flags))
    };
}

const fn valid_registers(registers: u32) {
    assert!(registers.is_multiple_of(8) && registers >= 24 && registers <= 256);
}

// Intrinsics rather than `asm!`, because LLVM knows that these are convergent.
unsafe extern "C" {
    #[link_name = "llvm.nvvm.wgmma.fence.sync.aligned"]
    safe fn wgmma_fence();
    #[link_name = "llvm.nvvm.wgmma.commit_group.sync.aligned"]
    safe fn wgmma_commit_group();
    #[link_name = "llvm.nvvm.wgmma.wait_group.sync.aligned"]
    safe fn wgmma_wait_group(pending: u64);
}

#[derive(Clone, Copy)]
pub struct Operand<T, L> {
    /// The lower half of its descriptor, which contains the address (PTX ISA, "Matrix Descriptor
    /// Format"). The upper half is the same for all, so that one addition leads to the next
    /// instruction's operand.
    lower: u32,
    kind: PhantomData<fn() -> (T, L)>,
}

/// The descriptor of a layout, without an address.
#[inline(always)]
fn descriptor<L: Layout>() -> u64 {
    let shape = L::shape();
    let (leading, stride) = shape.offsets;
    let swizzle = match shape.span {
        128 => 1,
        64 => 2,
        _ => 3,
    };
    u64::from(leading / 16) << 16 | u64::from(stride / 16) << 32 | swizzle << 62
}

impl<T: Element, L: Layout> Operand<T, L> {
    /// The operand that many bytes after an address in this block's shared memory. The address bits
    /// above 256 KiB tell the block of the cluster.
    #[inline(always)]
    pub(super) fn new(start: u32, bytes: u32) -> Self {
        const { assert!(L::BYTES == size_of::<T>(), "the layout is one of such elements") };
        let address = (start & 0x3ffff) + bytes;
        Operand { lower: (address >> 4) + descriptor::<L>() as u32, kind: PhantomData }
    }

    /// The descriptor of the `number`th instruction's k-step.
    #[inline(always)]
    fn step(self, number: u32) -> u64 {
        let lower = self.lower + number * (L::shape().advance / 16);
        u64::from(lower) | descriptor::<L>() >> 32 << 32
    }
}

pub struct Accumulators<const N: usize, S = f32>(Fragment<N, S>);

impl<const N: usize, S: WgmmaSum> Accumulators<N, S> {
    #[inline(always)]
    pub fn zeroed() -> Self {
        Accumulators(Fragment::zeroed())
    }

    #[inline(always)]
    pub fn multiply<T: Factor<Sum = S>, A: Layout, B: Layout>(
        &mut self,
        a: Operand<T, A>,
        b: Operand<T, B>,
    ) {
        self.multiply_add_if(false, a, b);
    }

    #[inline(always)]
    pub fn multiply_add<T: Factor<Sum = S>, A: Layout, B: Layout>(
        &mut self,
        a: Operand<T, A>,
        b: Operand<T, B>,
    ) {
        self.multiply_add_if(true, a, b);
    }

    #[inline(always)]
    pub fn multiply_add_if<T: Factor<Sum = S>, A: Layout, B: Layout>(
        &mut self,
        kept: bool,
        a: Operand<T, A>,
        b: Operand<T, B>,
    ) {
        const { assert!(A::DEPTH == B::DEPTH, "A and B have as many k-steps") };
        // Earlier writes of the accumulators are complete after it; it is convergent, so it is not
        // moved to where some threads do not run.
        wgmma_fence();
        macro_rules! steps {
            ($($step:literal)*) => {$(
                if const { $step * T::STEP < A::DEPTH } {
                    let kept = if $step == 0 { kept } else { true };
                    T::Atom::multiply_add::<N, A, B>(&mut self.0.0, a.step($step), b.step($step), kept);
                }
            )*};
        }
        steps! { 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 }
    }

    #[inline(always)]
    pub fn multiply_add_step<T: Factor<Sum = S>, A: Layout, B: Layout>(
        &mut self,
        number: u32,
        a: Operand<T, A>,
        b: Operand<T, B>,
    ) {
        // As in `multiply_add_if`.
        wgmma_fence();
        T::Atom::multiply_add::<N, A, B>(&mut self.0.0, a.step(number), b.step(number), true);
    }

    #[inline(always)]
    pub fn wait<const PENDING: u64>(&mut self) -> &mut Fragment<N, S> {
        wait::<PENDING>();
        S::finish::<N>(&mut self.0.0);
        &mut self.0
    }
}

impl<const N: usize> Accumulators<N> {
    #[inline(always)]
    pub fn multiply_add_registers<B: Layout, const STEPS: usize>(
        &mut self,
        a: &[[Tf32; 4]; STEPS],
        b: Operand<Tf32, B>,
        first: usize,
    ) {
        const { assert!(STEPS <= 4, "a row of B has four times eight steps") };
        // Earlier writes of the accumulators and of A's registers are complete after it.
        wgmma_fence();
        macro_rules! steps {
            ($($step:literal)*) => {$(
                if const { $step < STEPS } {
                    let b = b.step((first + $step) as u32);
                    multiply_add_registers::<N>(&mut self.0.0, a[$step], b);
                }
            )*};
        }
        steps! { 0 1 2 3 }
    }
}

#[inline(always)]
pub fn commit() {
    wgmma_commit_group();
}

#[inline(always)]
pub fn wait<const PENDING: u64>() {
    wgmma_wait_group(const { PENDING });
}

pub struct Fragment<const N: usize, S = f32>(pub(super) [S; MOST]);

impl<const N: usize, S: WgmmaSum> Fragment<N, S> {
    #[inline(always)]
    pub fn zeroed() -> Self {
        const { valid::<S>(N) };
        Fragment([S::ZERO; MOST])
    }

    /// Unspecified numbers, for a variable that is written before it is read. Its registers need
    /// not be kept until then, even where the compiler does not see that by itself.
    #[inline(always)]
    pub fn unspecified() -> Self {
        const { valid::<S>(N) };
        Fragment([S::unspecified(); MOST])
    }

    #[inline(always)]
    pub fn map(&mut self, mut with: impl FnMut(S) -> S) {
        wgmma::each!(|i| if i < N / 2 {
            self.0[i] = with(self.0[i]);
        });
    }

    #[inline(always)]
    pub fn set<R: WgmmaSum>(&mut self, other: &Fragment<N, R>, mut with: impl FnMut(R) -> S) {
        wgmma::each!(|i| if i < N / 2 {
            self.0[i] = with(other.0[i]);
        });
    }

    #[inline(always)]
    pub fn map_pairs(&mut self, mut with: impl FnMut(u32, u32, [S; 2]) -> [S; 2]) {
        let (row, col) = place();
        wgmma::each_pair!(|i| if i < N / 4 {
            let two = [self.0[2 * i], self.0[2 * i + 1]];
            [self.0[2 * i], self.0[2 * i + 1]] =
                with(row + 8 * (i as u32 % 2), col + 8 * (i as u32 / 2), two);
        });
    }

    #[inline(always)]
    pub fn map_pairs_of<const COLS: usize>(
        &mut self,
        part: usize,
        mut with: impl FnMut(u32, u32, [S; 2]) -> [S; 2],
    ) {
        let (row, col) = place();
        wgmma::each_pair!(|i| if i < N / 4 && i / (COLS / 4) == part {
            let two = [self.0[2 * i], self.0[2 * i + 1]];
            let (row, col) = (row + 8 * (i as u32 % 2), col + 8 * ((i % (COLS / 4)) as u32 / 2));
            [self.0[2 * i], self.0[2 * i + 1]] = with(row, col, two);
        });
    }

    #[inline(always)]
    pub fn update(&mut self, other: &Fragment<N, S>, mut with: impl FnMut(usize, S, S) -> S) {
        wgmma::each!(|i| if i < N / 2 {
            // Four elements are in the same eight columns.
            self.0[i] = with(i / 32, self.0[i], other.0[i]);
        });
    }

    #[inline(always)]
    pub fn update_rows(&mut self, other: &Fragment<N, S>, mut with: impl FnMut(usize, S, S) -> S) {
        wgmma::each!(|i| if i < N / 2 {
            self.0[i] = with(i / 2 % 2, self.0[i], other.0[i]);
        });
    }

    #[inline(always)]
    pub fn for_each_pair(&self, mut act: impl FnMut(u32, u32, [S; 2])) {
        let (row, col) = place();
        wgmma::each_pair!(|i| if i < N / 4 {
            act(
                row + 8 * (i as u32 % 2),
                col + 8 * (i as u32 / 2),
                [self.0[2 * i], self.0[2 * i + 1]],
            );
        });
    }

    #[inline(always)]
    pub fn for_each_pair_of<const COLS: usize>(
        &self,
        part: usize,
        mut act: impl FnMut(u32, u32, [S; 2]),
    ) {
        let (row, col) = place();
        wgmma::each_pair!(|i| if i < N / 4 && i / (COLS / 4) == part {
            act(
                row + 8 * (i as u32 % 2),
                col + 8 * ((i % (COLS / 4)) as u32 / 2),
                [self.0[2 * i], self.0[2 * i + 1]],
            );
        });
    }

    #[inline(always)]
    pub fn for_each_square_of(&self, part: usize, mut act: impl FnMut(u32, u32, [[S; 2]; 2])) {
        let (row, col) = place();
        wgmma::each_square!(|i| if i < N / 8 && i / 8 == part {
            let [a, b, c, d] = [0, 1, 2, 3].map(|j| self.0[4 * i + j]);
            act(row, col + 8 * (i as u32 % 8), [[a, b], [c, d]]);
        });
    }

    #[inline(always)]
    pub fn for_each(&self, mut act: impl FnMut(u32, u32, S)) {
        self.for_each_pair(|row, col, [first, second]| {
            act(row, col, first);
            act(row, col + 1, second);
        });
    }
}

impl<const N: usize> Fragment<N> {
    #[inline(always)]
    pub fn add(&mut self, other: &Fragment<N>) {
        wgmma::each!(|i| if i < N / 2 {
            self.0[i] += other.0[i];
        });
    }
}

/// Row and column of this thread's first element (PTX ISA, the figure of wgmma's fragment D).
#[inline(always)]
fn place() -> (u32, u32) {
    let row = thread::thread_idx_z() * thread::block_dim_y() + thread::thread_idx_y();
    let linear = row * thread::block_dim_x() + thread::thread_idx_x();
    (linear % 128 / 32 * 16 + linear % 32 / 4, linear % 4 * 2)
}
