//! How A and B are brought into the layout that a kernel needs, if it needs a certain one: swapped,
//! transposed, packed, or as they are.
//!
//! A kernel for f32 reads B along n, and A along k (`nn`) or along m (`tn`). An [`OperandPlan`]
//! brings other operands into one of these forms: `C = A B` is also `C^T = B^T A^T` (A and B are
//! swapped), and an operand can be copied into its transpose.
//!
//! | A is contiguous along | B is contiguous along | | kernels |
//! |---|---|---|---|
//! | k | n | as it is | `nn` |
//! | m | k | swapped: B^T is contiguous along k, A^T along m | `nn` |
//! | k | k | B is transposed, or A and B are swapped and A is transposed: whichever is smaller | `nn` |
//! | m | n | as it is, or swapped: so that C is contiguous along the kernel's columns | `tn` |
//!
//! An `nn` kernel with alignment classes (`ua4`, `ua8`, `ua16`) reads an A with unaligned rows
//! without a copy. Only the first element must be 16-byte aligned. In `ua8` and `ua16` kernels a
//! tile has rows of one class, so an A with few rows leaves most of each tile unused. With 16-bit
//! elements `ua16` always loads whole sectors; `ua8` may load halves.
//!
//! Kernels for tf32 are all `nn`: for a `tn` request A or B is transposed. Tensor cores read bf16
//! and f16 in either layout, so there are four kernels, `nn`, `nt`, `tn` and `tt`. Each reads
//! operands of its own layout, or packed copies of them with 16-byte aligned rows. The `ldg`
//! kernels read rows of any alignment. 64 x 16 tiles are for few columns. For few rows, A and B are
//! swapped; `nn` then becomes `tt`.
//!
//! They read 8-bit operands along k alone, as those of `mma` do. So these kernels are all `nt`, and
//! A or B or both are transposed. A swap changes nothing of that.

use gpu::{
    collective::wgmma_shape::WGMMA_M,
    kernels::{
        pack::{
            PACK_BYTES, PACK_ROWS, WARP_BYTES, pack_rows, pack_rows_f64, pack_rows_u8,
            pack_rows_u16,
        },
        transpose::{transpose_rows, transpose_rows_u16},
        transpose_bytes,
    },
    params::BLOCKS,
    registry::{Access, Family, Layout, Product, Scheme},
};
use simt::{AnyKernel, Bf16, F16, LaunchConfig, Limits, device::BoxShape};

use super::Request;
use crate::{
    error::{Error, Result},
    gemm::split,
};

/// Rows or columns of an operand: TMA's coordinates are signed 32-bit numbers.
const MOST_TMA_EXTENT: usize = 1 << 31;

/// Bytes of an L2 cache line, and of a row of a TMA box. A row that starts inside a line touches
/// two lines. This makes 4095 x 4093 x 4097 a third slower.
const LINE: usize = 128;

/// Elements in sixteen bytes: TMA needs rows and matrices that begin at multiples of sixteen bytes.
pub(in crate::gemm) fn unit(product: &Product) -> usize {
    16 / product.variant.operands.bytes()
}

/// What is done to A and B before a kernel reads them. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::gemm) struct OperandPlan {
    /// Computes `C^T = B^T A^T`: the kernel's A is B^T, and its B is A^T.
    pub swap_ab: bool,
    /// The kernel's A, or B, is copied into its transpose.
    pub transpose: [bool; 2],
    /// Bytes of all copies in the workspace, and their number.
    bytes: u64,
    copies: u32,
}

impl OperandPlan {
    /// Operands that are swapped or not, and are not copied.
    pub(super) fn swapped_if(swap_ab: bool) -> Self {
        OperandPlan { swap_ab, ..OperandPlan::default() }
    }

    /// The request as the kernel sees it.
    pub(in crate::gemm) fn apply(self, request: &Request) -> Request {
        if self.swap_ab { request.swapped() } else { *request }
    }

    /// Bytes of workspace for copies.
    pub(in crate::gemm) fn workspace_bytes(self) -> u64 {
        self.bytes
    }

    /// Launches that copy.
    pub(super) fn copies(self) -> u32 {
        self.copies
    }

    /// The plan with the copies of these operands.
    pub(super) fn sized(
        self,
        product: &Product,
        given: &Request,
        layouts: &[OperandLayout; 2],
    ) -> Self {
        let element = product.variant.operands.bytes() as u64;
        let copied = layouts.iter().zip(given.aligned).map(|(layout, aligned)| {
            match product.variant.scheme {
                Scheme::F16x3 => split::workspace_bytes::<F16>(layout.rows(), given.batch),
                Scheme::Bf16x6 => split::workspace_bytes::<Bf16>(layout.rows(), given.batch),
                _ => (layout.copied(given.batch, aligned) as u64).saturating_mul(element),
            }
        });
        let (bytes, copies) = copied.fold((0, 0), |(all, copies), bytes: u64| {
            (bytes.saturating_add(all), copies + u32::from(bytes > 0))
        });
        let bytes = stored_bytes(product, given).saturating_add(bytes);
        OperandPlan { bytes, copies, ..self }
    }
}

/// Whether the kernel reads A as it reads B, or has a twin that does. Then a swap of A and B
/// replaces no copy.
fn is_symmetric(product: &Product) -> bool {
    product.has_all_layouts || product.variant.layout == Some(Layout::NT)
}

/// Whether the kernel's tile has fewer columns than its MMA has rows. It is for few columns. For
/// few rows, A and B are swapped.
pub(super) fn is_narrow(product: &Product) -> bool {
    let least = (product.variant.tile[2] as usize).min(WGMMA_M);
    is_symmetric(product) && (product.tile()[1] as usize) < least
}

/// A and B before a kernel: what is done to them, the request as the kernel sees it, and how it
/// reads them.
pub(super) type Prepared = (OperandPlan, Request, [OperandLayout; 2]);

/// The operand plan with the fewest bytes to copy. Among equal plans it prefers few columns for a
/// narrow tile. Then it prefers a C that is contiguous along the kernel's columns, which allows
/// 16-byte stores.
///
/// # Errors
/// The operand that is contiguous along none of the sides that the kernel can use (`A` or `B`), and
/// the side that it needs (`k`, `m` or `n`).
pub(super) fn operand_plan(
    product: &Product,
    request: &Request,
) -> std::result::Result<Prepared, (&'static str, &'static str)> {
    // Nothing is transposed for a `tn` kernel: a swap keeps its form, and `nn` kernels take the
    // other layouts. Nothing is transposed if each layout has its own kernel. A lesson takes
    // row-major matrices alone.
    let has_all_layouts = product.has_all_layouts || product.is_lesson();
    let transposes = match product.variant.k_major()[0] && !has_all_layouts {
        // On tensor cores a copy of A costs less than the alternatives.
        true if matches!(product.variant.family, Family::Mma | Family::Wgmma) => {
            &[[false; 2], [false, true], [true, false], [true; 2]][..]
        }
        true => &[[false; 2], [false, true]],
        false => &[[false; 2]],
    };
    let is_narrow = is_narrow(product);
    let is_symmetric = product.is_lesson() || is_symmetric(product);
    // Scales of blocks are not alike for A and B.
    let is_unswapped = is_symmetric && !is_narrow || request.scales == BLOCKS;
    let swaps = if is_unswapped { &[false][..] } else { &[false, true] };
    let (mut best, mut fewest_missing) = (None, (usize::MAX, ("A", "k")));
    for &swap_ab in swaps {
        let given = OperandPlan::swapped_if(swap_ab).apply(request);
        for &transpose in transposes {
            let plan = OperandPlan { swap_ab, transpose, ..OperandPlan::default() };
            let layouts = layouts_of(product, plan, &given);
            let mut unfit = layouts.iter().filter(|layout| !layout.is_contiguous());
            if let Some(OperandLayout { operand, contiguous: (side, ..), .. }) = unfit.next() {
                let count = 1 + unfit.count();
                // The error speaks of the operands themselves, not of copies.
                if transpose == [false; 2] && count < fewest_missing.0 {
                    fewest_missing = (count, (operand, side));
                }
                continue;
            }
            let plan = plan.sized(product, &given, &layouts);
            let is_wide = is_narrow && given.shape.n() > given.shape.m();
            // Without room for its copies a plan is the last resort.
            let has_room = plan.bytes <= request.workspace_limit;
            let ps =
                plan.bytes as f64 * product.costs.copied_ps + strided_c_ps(product, &given) as f64;
            let cost = (!has_room, ps, is_wide, given.strides[2][1] != 1);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, (plan, given, layouts)));
            }
        }
    }
    best.map(|(_, prepared)| prepared).ok_or(fewest_missing.1)
}

/// Picoseconds for a C whose elements are not contiguous along the kernel's columns. Where those of
/// a column are, a kernel may store whole sectors of it. Other elements are stored one by one.
pub(super) fn strided_c_ps(product: &Product, given: &Request) -> u64 {
    let [between_rows, between_cols] = given.strides[2];
    if between_cols == 1 {
        return 0;
    }
    let [whole, parts, single] = product.costs.strided_ps;
    let has_whole_sectors =
        between_cols.saturating_mul(product.variant.c.bytes()).is_multiple_of(32)
            || given.shape.m() <= product.tile()[0] as usize;
    let each = match between_rows == 1 && product.variant.access.classes() == 1 {
        true if has_whole_sectors => whole,
        true => parts,
        false => single,
    };
    (given.shape.c_len() as u64).saturating_mul(given.batch as u64).saturating_mul(each)
}

/// An operand as a kernel reads it: rows of contiguous elements.
#[derive(Clone, Copy, Debug)]
pub(in crate::gemm) struct OperandLayout {
    /// Its name in the request.
    pub(in crate::gemm) operand: &'static str,
    /// The side that is to be contiguous: name, size and stride.
    pub(in crate::gemm) contiguous: (&'static str, usize, usize),
    /// The other side's size and stride.
    pub(in crate::gemm) strided: (usize, usize),
    /// The kernel reads a transposed copy, so the operand itself is to be contiguous along the
    /// other side.
    pub(in crate::gemm) transposed: bool,
    /// Only the first row need be 16-byte aligned: the kernel has a tensor map for each alignment
    /// class.
    has_classes: bool,
    /// No row need be 16-byte aligned: threads load the operand.
    ldg: bool,
    /// Elements in sixteen bytes.
    unit: usize,
    pub(in crate::gemm) shape: BoxShape,
}

impl OperandLayout {
    /// Its rows, and the contiguous elements of each.
    pub(in crate::gemm) fn rows(&self) -> (usize, usize) {
        (self.strided.0, self.contiguous.1)
    }

    /// Whether it is contiguous along the side that the kernel reads. A side of one element counts
    /// as contiguous. Rows that threads load must not overlap: a load of sixteen bytes could exceed
    /// the operand's end.
    fn is_contiguous(&self) -> bool {
        let ((_, len, stride), (count, pitch)) = (self.contiguous, self.strided);
        if self.ldg && !self.are_apart() {
            return false;
        }
        match self.transposed {
            true => count <= 1 || pitch == 1,
            false => len <= 1 || stride == 1,
        }
    }

    /// Whether TMA can read the rows, if the first row is aligned. (NVIDIA's documentation does not
    /// allow overlapping rows.)
    fn is_even(&self) -> bool {
        let (count, pitch) = self.strided;
        let is_even = count <= 1 || self.has_classes || pitch.is_multiple_of(self.unit);
        is_even && self.are_apart()
    }

    /// Whether each row ends before the next one begins.
    pub(in crate::gemm) fn are_apart(&self) -> bool {
        let (count, pitch) = self.strided;
        count <= 1 || pitch >= self.contiguous.1
    }

    /// The kernel that copies `len` elements of each row of `matrices` operands, and its launch.
    ///
    /// # Errors
    /// [`Error::Argument`] for a transpose of elements of eight bytes, for which there is no
    /// kernel: no plan has one.
    pub(in crate::gemm) fn copy(
        &self,
        matrices: usize,
        len: usize,
        limits: &Limits,
    ) -> Result<(&'static dyn AnyKernel, LaunchConfig)> {
        let bytes = 16 / self.unit;
        let kernel: &'static dyn AnyKernel = match (bytes, self.transposed) {
            (1, false) => &pack_rows_u8,
            (1, true) => &transpose_bytes::transpose_rows_u8,
            (2, false) => &pack_rows_u16,
            (2, true) => &transpose_rows_u16,
            (4, false) => &pack_rows,
            (4, true) => &transpose_rows,
            (8, false) => &pack_rows_f64,
            _ => {
                let limit = "must have the layout that the kernel reads: elements of eight bytes are not transposed";
                return Err(Error::argument(self.operand, "a matrix", limit));
            }
        };
        let count = self.strided.0;
        let (rows, cols, tile_rows, tile_cols) = match self.transposed {
            true if bytes == 1 => (len, count, transpose_bytes::TILE, transpose_bytes::TILE),
            true => (len, count, 32, 32),
            false => (count, len, PACK_ROWS, PACK_BYTES / bytes),
        };
        // After its rows, a block continues with the rows a grid further down.
        let limit = limits.grid[1] as usize;
        let grid = [cols.div_ceil(tile_cols), rows.div_ceil(tile_rows).min(limit), matrices];
        Ok((kernel, LaunchConfig::new(grid.map(|blocks| blocks as u32), [32, 8, 1])))
    }

    /// Elements in sixteen bytes.
    pub(in crate::gemm) fn unit(&self) -> usize {
        self.unit
    }

    /// Elements from one row of a copy to the next.
    pub(in crate::gemm) fn padded_pitch(&self) -> usize {
        padded(self.contiguous.1, self.unit)
    }

    /// Elements of workspace for copies of `matrices` operands, rounded up to whole lines. 0 if no
    /// copy is needed. `aligned`: every matrix is 16-byte aligned.
    pub(in crate::gemm) fn copied(&self, matrices: usize, aligned: bool) -> usize {
        match !self.transposed && (self.ldg || aligned && self.is_even()) {
            true => 0,
            false => {
                let elements = matrices.saturating_mul(self.strided.0);
                let (elements, line) =
                    (elements.saturating_mul(self.padded_pitch()), LINE / 16 * self.unit);
                elements.checked_next_multiple_of(line).unwrap_or(usize::MAX)
            }
        }
    }
}

/// `len` elements and padding: a multiple of sixteen bytes, which are `unit` elements, and of a
/// [`LINE`] where a row has several.
fn padded(len: usize, unit: usize) -> usize {
    let line = LINE / 16 * unit;
    len.next_multiple_of(if len >= 4 * line { line } else { unit })
}

/// Bytes of a copy as its time counts them: of a transpose whole parts of tiles, of a packed row
/// whole [`WARP_BYTES`].
pub(super) fn timed_bytes(layout: &OperandLayout, matrices: usize, aligned: bool) -> f64 {
    let bytes = 16 / layout.unit;
    match layout.copied(matrices, aligned) {
        0 => 0.0,
        // Tiles of 32 x 32 elements, of which half a tile takes half the time; of bytes 128 x 128,
        // of which a quarter takes a quarter.
        _ if layout.transposed => {
            let part = if bytes == 1 { 32 } else { 16 };
            let whole = |size: usize| size.next_multiple_of(part) as f64;
            let (rows, cols) = layout.rows();
            matrices as f64 * whole(rows) * whole(cols) * bytes as f64
        }
        _ => {
            let row = layout.contiguous.1.saturating_mul(bytes).div_ceil(WARP_BYTES);
            matrices as f64 * layout.strided.0 as f64 * (row * WARP_BYTES) as f64
        }
    }
}

/// Elements from one row of C to the next in the workspace, for a kernel that stores C by TMA,
/// where C's own rows are not 16-byte aligned. They are whole lines, as of a packed operand.
pub(in crate::gemm) fn stored_pitch(product: &Product, given: &Request) -> Option<usize> {
    let (unit, [pitch, _]) = (unit(product), given.strides[2]);
    let is_even = given.aligned[2] && pitch.is_multiple_of(unit);
    let is_copied = product.stores.is_some() && !is_even;
    is_copied.then(|| padded(given.shape.n(), unit))
}

/// Bytes of that copy of C.
fn stored_bytes(product: &Product, given: &Request) -> u64 {
    let pitch = stored_pitch(product, given).unwrap_or(0);
    (given.shape.m() as u64).saturating_mul((pitch * product.variant.c.bytes()) as u64)
}

/// A (m x k) and B (k x n) with these strides, as a kernel reads them under that operand plan.
pub(in crate::gemm) fn layouts(
    product: &Product,
    plan: OperandPlan,
    [m, n, k]: [usize; 3],
    strides: [[usize; 2]; 2],
) -> [OperandLayout; 2] {
    // Named as in the request.
    let names = [("A", "m"), ("B", "n")];
    let [of_a, of_b] = if plan.swap_ab { [names[1], names[0]] } else { names };
    let (shapes, access) = (product.boxes, product.variant.access);
    let has_classes = [access.classes() > 1, false];
    let layout = |number: usize, (operand, side), outer: (usize, usize), k_stride| {
        let (contiguous, strided) = match product.variant.k_major()[number] {
            true => (("k", k, k_stride), outer),
            false => ((side, outer.0, outer.1), (k, k_stride)),
        };
        OperandLayout {
            operand,
            contiguous,
            strided,
            transposed: plan.transpose[number],
            has_classes: has_classes[number],
            ldg: access == Access::Ldg,
            unit: unit(product),
            shape: shapes[number],
        }
    };
    let [a, b] = strides;
    [layout(0, of_a, (m, a[0]), a[1]), layout(1, of_b, (n, b[1]), b[0])]
}

/// The operands of a request to which that operand plan has been applied.
pub(super) fn layouts_of(
    product: &Product,
    plan: OperandPlan,
    given: &Request,
) -> [OperandLayout; 2] {
    let (shape, [a, b, _]) = (given.shape, given.strides);
    layouts(product, plan, [shape.m(), shape.n(), shape.k()], [a, b])
}

/// A size that TMA's coordinates do not reach.
pub(super) fn too_long(request: &Request) -> Option<usize> {
    let shape = request.shape;
    [shape.m(), shape.n(), shape.k()].into_iter().find(|&size| size > MOST_TMA_EXTENT)
}
