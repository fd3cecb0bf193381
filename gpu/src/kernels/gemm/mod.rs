//! The general product: `C = activation(alpha A B + beta C + bias)`, any strides, a batch of them at once.
//!
//! What the lessons of the ladder found, as a family: a kernel's text is [`multiply`], and each kernel is that
//! with another tile.
//!
//! * **A block** computes a `TILE x TILE` tile of one product's C, in phases of `BLOCK_K` steps of k. It holds the
//!   tiles of `STAGES` phases: one in use, the others on their way, as in [`async_copy`](super::async_copy).
//! * **A thread** copies four elements of each operand in a phase ([`operand`]) and computes `EACH x EACH`
//!   elements of C, in groups of 4 x 4.
//! * Before it writes them, it does with them what the [`epilogue`] says, while they are in registers.
//!
//! An element is one sum in the order of k, by fused multiply-adds, whatever the tile: all kernels give the same
//! bits. (Steps past k add zeros, which can turn a -0 of underflow into 0.) Operands of bf16 and f16 are widened to f32 on
//! their way to shared memory ([`stored`]), and an element of such a C is rounded once, at the end.
//!
//! Where C has few rows or columns, most of a tile would be zeros: kernels of [`direct`] have none.
//!
//! A large tile reads less: its ratio is `TILE / 4` FLOP a byte of f32. A small one leaves fewer multiprocessors idle
//! where C is small. Which to take is the host's choice.

pub mod direct;
mod main_loop;
mod operand;
mod table;

pub use self::table::*;
use super::{collective, device};
