//! The general product of bf16 and of f16 on Hopper's tensor cores: sums of f32.
//!
//! An instruction of the tensor cores (`wgmma`) multiplies 64 rows of A by up to 256 columns of B, both in shared memory,
//! and adds to sums in the registers of four warps, a *warpgroup*. In the time in which it does 16 steps of k of 64 x 256,
//! 128 cycles, a multiprocessor must be brought what the next one multiplies. Hence:
//!
//! * **a tile** is 128 x 256 elements of C: two warpgroups compute 64 rows each and share the columns of B. What they read
//!   from the second-level cache is 48 KiB for 64 steps of k, and the tensor cores take 1024 cycles for it;
//! * **a third warpgroup** begins copies (one lane of it does), as far ahead as there are stages. It gives its
//!   registers up to the others, which have 128 sums a thread;
//! * **a product is always under way**: a warpgroup begins the next stage's before it waits for the one before to end, and
//!   only then says that that one's stage may be filled again;
//! * **a tile ends** for one warpgroup after the other ([`turns`]): of its last four stages, a whole ring, first the one multiplies,
//!   and while it writes its sums, the other. Of the last stage only those instructions are begun that have steps of k;
//! * **a block** goes on to its next tile ([`walk`]) with the ring of stages as it is: while sums are written
//!   ([`output`]), the next tile's first stages are filled;
//! * **warps that have nothing to do** may copy B's last columns meanwhile, whose tiles come last ([`beside`]);
//! * **two blocks of a cluster** may have tiles one below the other. Each copies half of their columns of B, to both
//!   (*multicast*): then 32 KiB a block and stage are read from the second-level cache, in place of 48. Of 192 columns,
//!   tiles for where those of 256 leave most of the last round of blocks idle, each copies half of the steps of k.
//!
//! ```text
//!   kernel               warpgroups   a warpgroup's part   stages of 64 steps   blocks of a cluster
//!   wgmma_half_128x256x64      2 + 1          64 x 256               4                  1
//!   wgmma_half_256x256x64_c2      2 + 1          64 x 256               4                  2
//!   wgmma_half_256x192x64_c2      2 + 1          64 x 192               4                  2
//! ```
//!
//! A multiprocessor has one block. Smaller tiles, for where there are fewer of these than multiprocessors, are another source
//! ([`parts`]), and so is one for rows that begin anywhere ([`gathered`]). [`entries`] lists the kernels: each has a C of its
//! operands' type, or of f32.
//!
//! Three constants are set when a kernel is loaded ([`simt::Constants`]): whether A and B are bf16 or f16 (`half`), and whether
//! A, and B, are K-major or MN-major (`a_mn_major`, `b_mn_major`). Names say it as BLAS does: `nn` of A and B row by row, `nt`,
//! `tn`, `tt`. The tensor cores read both ways, and only what copies the operands knows of it ([`operand`]).
//!
//! Row starts are 16-byte aligned, except in the kernels whose warps load A and B themselves, and for a K-major A beside an
//! N-major B in tiles of two blocks (`ua8`, `ua16`: [`shifted`]). k is positive: an empty matrix has no tensor map.
//!
//! The sums are rounded as the tensor cores do: 16 products and the sum before are added exactly to 25 bits below the
//! greatest, and what is below is cut off, also of the f32 that comes out (measured elsewhere: MMA-Sim).

mod ldg;
mod main_loop;
mod persistent;
mod split_k;
mod table;

pub use self::{ldg::*, table::*};
use super::{collective, device};
