//! Four warps together: the tensor cores' products, and the registers that they take from one another.
//!
//! ```text
//!   accumulators.multiply_add(a, b)   begins to add a product of a stage (64 x N, DEPTH steps of k)
//!   commit()                          what has been begun is a group
//!   accumulators.wait::<PENDING>()    until at most so many groups are under way: gives the sums
//! ```
//!
//! All 128 threads of a warpgroup do this together, with the same operands.

use core::{arch::asm, marker::PhantomData};

use super::{thread, wgmma};
use crate::Tf32;
pub use crate::operand::{EitherMajorA, EitherMajorB, Factor, KMajor, Layout, MnMajor};

/// Each thread of this warp may use `REGISTERS` registers from here on, more than before: it waits until others of
/// the block have given them up. A multiple of 8, from 24 to 256; every warp of the warpgroup does it.
#[inline(always)]
pub fn take_registers<const REGISTERS: u32>() {
    const { valid(REGISTERS) };
    // SAFETY: all of the warp come here, as the kernel promises.
    unsafe {
        asm!("setmaxnreg.inc.sync.aligned.u32 {};", const REGISTERS, options(nostack, preserves_flags))
    };
}

/// Each thread of this warp uses no more than `REGISTERS` registers from here on, fewer than before, and others of the
/// block may have them. As in [`take_registers`].
#[inline(always)]
pub fn give_registers<const REGISTERS: u32>() {
    const { valid(REGISTERS) };
    // SAFETY: as in `take_registers`.
    unsafe {
        asm!("setmaxnreg.dec.sync.aligned.u32 {};", const REGISTERS, options(nostack, preserves_flags))
    };
}

const fn valid(registers: u32) {
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

/// An operand in shared memory, 64 rows of A or N columns of B: of [`DynamicShared::operand`](super::DynamicShared).
#[derive(Clone, Copy)]
pub struct Operand<T, L> {
    /// The lower half of its descriptor, in which alone the address is (PTX ISA, "Matrix Descriptor Format"). The upper one is the
    /// same for all, so that from one instruction's operand to the next is one addition.
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

impl<T: Factor, L: Layout> Operand<T, L> {
    /// What begins so many bytes behind a place of this block's shared memory. Bits of an address above 256 KiB say which block of
    /// the cluster it is.
    #[inline(always)]
    pub(super) fn new(start: u32, bytes: u32) -> Self {
        const { assert!(L::BYTES == size_of::<T>(), "the layout is one of such elements") };
        let address = (start & 0x3ffff) + bytes;
        Operand { lower: (address >> 4) + descriptor::<L>() as u32, kind: PhantomData }
    }

    /// Of the `number`th instruction's steps of k.
    #[inline(always)]
    fn step(self, number: u32) -> u64 {
        let lower = self.lower + number * (L::shape().advance / 16);
        u64::from(lower) | descriptor::<L>() >> 32 << 32
    }
}

/// The sums of 64 x `N` elements that a warpgroup's products are added to, a thread's part of them. `N` is 16, 32,
/// 64, 96, 128, 192 or 256. It takes N / 2 registers.
///
/// They can be read after [`wait`](Self::wait). Products that go on while others' sums are read (`PENDING` above 0) begin
/// and end in the same round of a loop. Else LLVM copies registers of a product that is under way, and ptxas lets one
/// begin only after another has ended: it says so (C7514), and the build fails.
pub struct Accumulators<const N: usize>(Fragment<N>);

impl<const N: usize> Accumulators<N> {
    /// Zeros.
    #[inline(always)]
    pub fn zeroed() -> Self {
        Accumulators(Fragment::zeroed())
    }

    /// Begins to multiply A and B, whose product takes the place of what was there.
    #[inline(always)]
    pub fn multiply<T: Factor, A: Layout, B: Layout>(
        &mut self,
        a: Operand<T, A>,
        b: Operand<T, B>,
    ) {
        self.multiply_add_if(false, a, b);
    }

    /// Begins to multiply A and B, and to add the product.
    #[inline(always)]
    pub fn multiply_add<T: Factor, A: Layout, B: Layout>(
        &mut self,
        a: Operand<T, A>,
        b: Operand<T, B>,
    ) {
        self.multiply_add_if(true, a, b);
    }

    /// Begins to multiply A and B. The product is added to what was there if that is to be `kept`, and else takes its
    /// place.
    #[inline(always)]
    pub fn multiply_add_if<T: Factor, A: Layout, B: Layout>(
        &mut self,
        kept: bool,
        a: Operand<T, A>,
        b: Operand<T, B>,
    ) {
        const { assert!(A::DEPTH == B::DEPTH, "A and B have as many steps of k") };
        // What was done to the accumulators before is done; and this, being convergent, stays where all threads are.
        wgmma_fence();
        macro_rules! steps {
            ($($step:literal)*) => {$(
                if const { $step * T::STEP < A::DEPTH } {
                    let kept = if $step == 0 { kept } else { true };
                    wgmma::multiply_add::<N, T, A, B>(&mut self.0.0, a.step($step), b.step($step), kept);
                }
            )*};
        }
        steps! { 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 }
    }

    /// [`multiply_add`](Self::multiply_add) of one instruction's steps of k alone, the `number`th's: for an end of k that is less
    /// than the operands have.
    #[inline(always)]
    pub fn multiply_add_step<T: Factor, A: Layout, B: Layout>(
        &mut self,
        number: u32,
        a: Operand<T, A>,
        b: Operand<T, B>,
    ) {
        // As in `multiply_add_if`.
        wgmma_fence();
        wgmma::multiply_add::<N, T, A, B>(&mut self.0.0, a.step(number), b.step(number), true);
    }

    /// Begins to multiply A in registers, of `STEPS` times 8 steps of k, and that part of B which begins at the `first` times
    /// 8th step of k; and to add the product. `a` has for each 8 steps what a thread holds of them: with g = lane / 4 and t =
    /// lane % 4, of the 16 rows of its warp (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4) (PTX ISA, the figure of wgmma's
    /// fragment A of tf32).
    ///
    /// The registers are read while the thread goes on: for the next product there are others, until this one has been waited
    /// for.
    #[inline(always)]
    pub fn multiply_add_registers<B: Layout, const STEPS: usize>(
        &mut self,
        a: &[[Tf32; 4]; STEPS],
        b: Operand<Tf32, B>,
        first: usize,
    ) {
        const { assert!(STEPS <= 4, "a row of B has four times eight steps") };
        // What was done to the accumulators and to A's registers before is done.
        wgmma_fence();
        macro_rules! steps {
            ($($step:literal)*) => {$(
                if const { $step < STEPS } {
                    let b = b.step((first + $step) as u32);
                    wgmma::multiply_add_registers::<N>(&mut self.0.0, a[$step], b);
                }
            )*};
        }
        steps! { 0 1 2 3 }
    }

    /// Waits until at most the last `PENDING` groups of this warpgroup are under way, and gives the sums. Of these
    /// accumulators none may be.
    #[inline(always)]
    pub fn wait<const PENDING: u64>(&mut self) -> &mut Fragment<N> {
        wait::<PENDING>();
        wgmma::finish::<N>(&mut self.0.0);
        &mut self.0
    }
}

/// The products that have been begun since the last call become a group.
#[inline(always)]
pub fn commit() {
    wgmma_commit_group();
}

/// Waits until at most the last `PENDING` groups of this warpgroup are under way: the operands of the others have been
/// read.
#[inline(always)]
pub fn wait<const PENDING: u64>() {
    wgmma_wait_group(const { PENDING });
}

/// A thread's elements of 64 x `N`: two beside each other in every eight columns, of two rows.
pub struct Fragment<const N: usize>(pub(super) [f32; wgmma::MOST]);

impl<const N: usize> Fragment<N> {
    /// Zeros.
    #[inline(always)]
    pub fn zeroed() -> Self {
        const { wgmma::valid(N) };
        Fragment([0.0; wgmma::MOST])
    }

    /// Whatever numbers. For a variable that is written before it is read: what was in it is not kept until then, where the compiler
    /// does not see that by itself (as along a way through a loop on which a flag says so).
    #[inline(always)]
    pub fn unspecified() -> Self {
        const { wgmma::valid(N) };
        let number;
        // SAFETY: it does nothing; all that can be in a register is a number.
        unsafe { asm!("/* {} */", out(reg32) number, options(nomem, nostack, preserves_flags)) };
        Fragment([number; wgmma::MOST])
    }

    /// Adds `other`, each element rounded once.
    #[inline(always)]
    pub fn add(&mut self, other: &Fragment<N>) {
        wgmma::each!(|i| if i < N / 2 {
            self.0[i] += other.0[i];
        });
    }

    /// Puts in place of each element what `with` makes of it.
    #[inline(always)]
    pub fn map(&mut self, mut with: impl FnMut(f32) -> f32) {
        wgmma::each!(|i| if i < N / 2 {
            self.0[i] = with(self.0[i]);
        });
    }

    /// Puts in place of each element what `with` makes of it and that of `other`. It is told which
    /// 64 columns it is of.
    #[inline(always)]
    pub fn update(&mut self, other: &Fragment<N>, mut with: impl FnMut(usize, f32, f32) -> f32) {
        wgmma::each!(|i| if i < N / 2 {
            // Four elements are of the same eight columns.
            self.0[i] = with(i / 32, self.0[i], other.0[i]);
        });
    }

    /// Calls `act` with row and column of the first of two elements beside each other, and both, for all of this thread.
    #[inline(always)]
    pub fn for_each_pair(&self, mut act: impl FnMut(u32, u32, [f32; 2])) {
        let (row, col) = place();
        wgmma::each_pair!(|i| if i < N / 4 {
            act(
                row + 8 * (i as u32 % 2),
                col + 8 * (i as u32 / 2),
                [self.0[2 * i], self.0[2 * i + 1]],
            );
        });
    }

    /// [`for_each_pair`](Self::for_each_pair) of `COLS` columns, the `PART`th: what is too much at a time is done part by part.
    /// Columns are counted from the part's first. There is nothing in a part past the last.
    #[inline(always)]
    pub fn for_each_pair_of<const COLS: usize, const PART: usize>(
        &self,
        mut act: impl FnMut(u32, u32, [f32; 2]),
    ) {
        let (row, col) = place();
        wgmma::each_pair!(|i| if i < N / 4 && i / (COLS / 4) == PART {
            act(
                row + 8 * (i as u32 % 2),
                col + 8 * ((i % (COLS / 4)) as u32 / 2),
                [self.0[2 * i], self.0[2 * i + 1]],
            );
        });
    }

    /// Calls `act` with row and column of the first of four elements, and these, for those of the `PART`th 64 columns: in
    /// two rows, eight apart, two elements beside each other. Columns are counted from the part's first.
    #[inline(always)]
    pub fn for_each_square_of<const PART: usize>(
        &self,
        mut act: impl FnMut(u32, u32, [[f32; 2]; 2]),
    ) {
        let (row, col) = place();
        wgmma::each_square!(|i| if i < N / 8 && i / 8 == PART {
            let [a, b, c, d] = [0, 1, 2, 3].map(|j| self.0[4 * i + j]);
            act(row, col + 8 * (i as u32 % 8), [[a, b], [c, d]]);
        });
    }

    /// Calls `act` with row, column and value of each of this thread's elements.
    #[inline(always)]
    pub fn for_each(&self, mut act: impl FnMut(u32, u32, f32)) {
        self.for_each_pair(|row, col, [first, second]| {
            act(row, col, first);
            act(row, col + 1, second);
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
