//! The memories of a GPU, with a kernel for each: the scope and the lifetime of a variable.
//!
//! | variable | memory | scope | lifetime | kernel |
//! |---|---|---|---|---|
//! | `let mut count` | register | thread | thread | [`register_counter`] |
//! | `shared![..]` | shared | block | block | [`shared_counter`] |
//! | `global! { .. }` | global | grid | program | [`global_counter`] |
//! | `global_pointer! { .. }` | global | grid | program | [`pointed_negation`] |
//! | `constant! { .. }` | constant | grid, which only reads it | program | [`constant_polynomial`] |
//!
//! Each counter counts steps of threads. They end at different numbers.

use super::device::*;

/// Threads of a block of each kernel here.
pub const BLOCK: usize = 128;
/// Coefficients of [`constant_polynomial`].
pub const COEFFICIENTS_LEN: usize = 8;

global! {
    /// Counts every thread of every launch.
    pub static THREADS_SO_FAR: [u32; 1];
}

global_pointer! {
    /// Where [`pointed_negation`] finds its numbers.
    pub static NUMBERS: f32;
}

constant! {
    /// The polynomial's coefficients, the constant term first.
    pub static COEFFICIENTS: [f32; COEFFICIENTS_LEN];
}

/// This thread's number in the grid.
#[inline(always)]
fn number() -> usize {
    thread::block_idx_x() as usize * thread::block_dim_x() as usize
        + thread::thread_idx_x() as usize
}

/// A variable in a register: every thread has its own, which lives as long as the thread. Each
/// counts to `steps`, whatever the number of threads.
#[kernel(block = (BLOCK), shared = 0, len(counts = n))]
pub fn register_counter(n: u32, steps: u32, mut counts: Out<u32>) {
    let mut count = 0;
    for _ in 0..steps {
        count += 1;
    }
    if number() < n as usize {
        counts[number()] = count;
    }
}

/// A variable in shared memory: a block's threads count together, and every block counts from zero.
/// Before the first write the variable may hold anything, for example a value of an earlier block.
#[kernel(block = (BLOCK), shared = size_of::<u32>(), barriers = 2, len(counts = blocks))]
pub fn shared_counter(blocks: u32, mut counts: Out<u32>) {
    let mut count = shared![u32; 1];
    let is_first = thread::thread_idx_x() == 0;
    if is_first {
        count[0] = 0;
    }
    thread::sync_threads();
    count.atomic_add(0, 1);
    thread::sync_threads();
    if is_first && thread::block_idx_x() < blocks {
        counts[thread::block_idx_x() as usize] = count[0];
    }
}

/// A variable in global memory: all threads of all blocks count together, and the next launch
/// continues the count. A thread stores the count before its own step to `numbers`. So no two of
/// `numbers` are equal.
#[kernel(block = (BLOCK), shared = 0, len(numbers = n))]
pub fn global_counter(n: u32, mut numbers: Out<u32>) {
    if number() < n as usize {
        numbers[number()] = THREADS_SO_FAR.atomic_add(0, 1);
    }
}

/// A pointer in global memory: the kernel finds the buffer without a parameter.
#[kernel(block = (BLOCK), shared = 0)]
pub fn pointed_negation(n: u32) {
    if number() < n as usize {
        let mut numbers = NUMBERS.view();
        let negated = -numbers[number()];
        numbers[number()] = negated;
    }
}

/// Variables in constant memory, which is fast if all threads of a warp read the same address. Here
/// every thread reads the same coefficients in the same order. `y = c0 + c1 x + c2 x^2 ...`, by
/// Horner's rule.
#[kernel(block = (BLOCK), shared = 0, len(x = n, y = n))]
pub fn constant_polynomial(n: u32, x: In<f32>, mut y: Out<f32>) {
    if number() < n as usize {
        let mut sum = 0.0;
        for i in (0..COEFFICIENTS_LEN).rev() {
            sum = fma(sum, x[number()], COEFFICIENTS[i]);
        }
        y[number()] = sum;
    }
}
