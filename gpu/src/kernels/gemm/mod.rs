//! The general product on CUDA cores: `C = activation(alpha A B + beta C + bias)`, any strides, a
//! batch at once, any GPU.
//!
//! The lessons of the course as a family: one main loop ([`main_loop`]), and a table of kernels
//! with different tiles and types ([`table`]).
//!
//! * **A block** computes a `TILE x TILE` tile of C, in phases of `BLOCK_K` k-steps. It holds
//!   the tiles of several phases in shared memory: one in use, the others in flight, as in the
//!   lesson `async_copy`.
//! * **A warp** copies rows or columns of a tile, whichever are contiguous ([`operand`]).
//! * **A thread** copies four elements of each operand in a phase, and computes `EACH x EACH`
//!   elements of C, in groups of 4 x 4. It applies the [`epilogue`](super::collective::epilogue) to
//!   them in registers.
//!
//! An element is one sum in the order of k, by fused multiply-adds, whatever the tile. So all
//! kernels give the same bits. (Steps past k add zeros, which can turn a -0 of an underflow into
//! 0.) bf16 and f16 are widened to f32 on the way to shared memory
//! ([`stored`](super::collective::stored)). A C of these types is rounded once, at the end.
//!
//! Large products of f32 have a main loop of their own ([`stream`]): a thread has a larger part.
//!
//! If C has few rows or columns, most of a tile would be zeros. The kernels of [`direct`] and
//! [`dot`] have no tiles in shared memory. Those of [`dot`] split k among the threads of a block,
//! so their bits are others.
//!
//! A large tile reads less: its arithmetic intensity is `TILE / 4` FLOP a byte of f32. A small tile
//! leaves fewer SMs idle if C is small. The host chooses.

pub mod direct;
pub mod dot;
pub mod main_loop;
pub mod operand;
pub mod stream;
pub mod table;
pub mod through_registers;

pub use self::table::*;
use super::{collective, device};
