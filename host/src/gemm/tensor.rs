//! Products by tensor copies: which operands they take, how k is split, and the launches.
//!
//! A kernel reads B along n, and A along k (`nn`) or along m (`tn`). What lies otherwise is put before it in another way
//! ([`Orientation`]): `C = A B` is also `C^T = B^T A^T`, and a copy can be turned over.
//!
//! | A lies along | B along | | kernels |
//! |---|---|---|---|
//! | k | n | as it is | `nn` |
//! | m | k | exchanged: B^T lies along k, A^T along m | `nn` |
//! | k | k | with a copy of B turned over; or exchanged, and of A: of the smaller one | `nn` |
//! | m | n | as it is, or exchanged: so that C lies along the kernel's columns | `tn` |
//!
//! An `nn` with unaligned A (`ua4`, `ua8`) takes rows of A that begin anywhere, without a copy, if the first begins at a multiple of
//! sixteen bytes. So does `ua16`, which copies these rows by whole sectors, but wants sixteen times as many of them for a tile as there
//! are in one.
//!
//! That is of f32. Kernels that round it to tf32 are all `nn`, and what lies as `tn` is put before them with a copy of A or B
//! turned over. Tensor cores read bf16 and f16 either way, so there are four kernels, `nn`, `nt`, `tn` and `tt`, and each takes
//! what lies its way, or a copy of it whose rows begin at multiples of sixteen bytes; or gathers it, wherever rows begin. Those
//! with tiles of 64 x 16 take few rows, too: exchanged, these are columns, and `nn` is `tt`.

use gpu::{
    kernels::{
        gemm::pad::{
            PAD_BYTES, PAD_ROWS, pack_rows, pack_rows_u16, transpose_rows, transpose_rows_u16,
        },
        gemm_sliced::widths::wide_across,
        gemm_wgmma::beside,
    },
    problem::{Matrices, Problem},
    registry::{Access, Product, Scheme, Speed},
};
use simt::{AnyKernel, Bf16, F16, LaunchConfig, Limits, device::BoxShape};

use super::{
    Target,
    choice::{self, Request},
    classes::Class,
    prepared::Prepared,
    scalar::{self, Output, Scalar},
    sliced::{self, Uncut},
};
use crate::{
    boxes::{BoxElement, Boxes},
    buffer::{BufferView, BufferViewMut, Written},
    error::{Error, Result},
    launch::{Named, Stream},
};

/// Blocks of a cluster that every device allows which has clusters.
pub(super) const MOST_SPLITS: u32 = 8;

/// Rows or columns of an operand: coordinates are signed numbers of 32 bits.
const MOST: usize = 1 << 31;

/// Microseconds that it takes a cluster to add up its parts of a sum; those of a byte that is read or written; and of a copy
/// that is launched before, and of each of its bytes. Measured: docs/measurements.md, "The choice of a kernel".
const PARTS_US: f64 = 2.3;
/// Of an element of a tile on its way from tensor cores' registers through shared memory, eight bytes there and back at 128 a
/// cycle: meanwhile the block multiplies nothing. Computed.
const ELEMENT_US: f64 = 3.5e-5;
/// Microseconds that a block takes for each tile after its first beside what it reads, multiplies and writes, where no other
/// block's work goes on meanwhile: until one's first product has come out. Measured of 8192 x 8192 x 64.
const NEXT_TILE_US: f64 = 0.8;
/// Microseconds for a byte that such kernels read or write; how much more than its share of the bandwidth a multiprocessor can
/// draw; and what part of the shorter of two, copies and products, does not go on beside the longer. Fitted to products of
/// 16, 64 and 128 rows or columns.
const STREAMED_BYTE_US: f64 = 1e-6 / 4.2;
/// See [`STREAMED_BYTE_US`].
const MORE_THAN_SHARE: f64 = 3.5;
/// See [`STREAMED_BYTE_US`].
const APART: f64 = 0.25;
/// See [`PARTS_US`].
const BYTE_US: f64 = 1e-6 / 3.2;
/// See [`PARTS_US`].
const COPY_US: f64 = 5.0;
/// See [`PARTS_US`].
const COPY_BYTE_US: f64 = 1e-6;

/// Bytes of a line of the second-level cache. A box has rows of as many: of one that begins within a line, each takes two, and
/// a product of 4095 x 4093 x 4097 a third longer.
const LINE: usize = 128;

/// Elements at whose multiples rows and matrices begin: sixteen bytes.
fn unit(product: &Product) -> usize {
    16 / product.variant.operands.bytes()
}

/// How a product is put before a kernel, so that its operands lie the way the kernel reads them. [`orientation`] alone makes
/// one that is not the default: as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Orientation {
    /// As `C^T = B^T A^T`: then the kernel's A is B^T, and its B is A^T.
    pub exchanged: bool,
    /// With a copy of the kernel's A, or B, that is turned over.
    pub turned: [bool; 2],
    /// Bytes of all copies, turned over and not; and how many copies there are.
    copied: u64,
    copies: u32,
}

impl Orientation {
    /// What the kernel is given.
    pub(super) fn apply(self, request: &Request) -> Request {
        if self.exchanged { request.exchanged() } else { *request }
    }

    /// Bytes of copies.
    pub(super) fn workspace_bytes(self) -> u64 {
        self.copied
    }
}

/// Is its tile for few columns, and by an exchange for few rows? Narrower than a stage is deep, of tensor cores.
pub(super) fn is_narrow(product: &Product) -> bool {
    product.has_all_layouts && product.tile()[1] < product.variant.tile[2]
}

/// The way with the least to copy; of those that copy as much, one in which C has few columns, if the tile is for such; or one
/// in which it lies along the kernel's columns, so that it writes four elements at a time.
///
/// # Errors
/// The operand that lies along neither side that would do, and along which it should: `A` or `B`, `k`, `m` or `n`.
pub(super) fn orientation(
    product: &Product,
    request: &Request,
) -> std::result::Result<Orientation, (&'static str, &'static str)> {
    // A is read along m by kernels that take what an exchange does not change: nothing is turned over for these. And where
    // there is a kernel for every way, nothing is done for any.
    let one_of_four = product.has_all_layouts;
    let turns = match product.variant.k_major()[0] && !one_of_four {
        // Tensor cores pay for a copy of A, too: it is small beside what else there would be.
        true if product.variant.scheme == Scheme::Tf32 => {
            &[[false; 2], [false, true], [true, false]][..]
        }
        true => &[[false; 2], [false, true]],
        false => &[[false; 2]],
    };
    let is_narrow = is_narrow(product);
    let exchanges = if one_of_four && !is_narrow { &[false][..] } else { &[false, true] };
    let ways = exchanges.iter().flat_map(|&exchanged| {
        turns.iter().map(move |&turned| Orientation { exchanged, turned, ..Orientation::default() })
    });
    let (mut best, mut fewest_across) = (None, (usize::MAX, ("A", "k")));
    for way in ways {
        let given = way.apply(request);
        let sides = sides_of(product, way, &given);
        let mut across = sides.iter().filter(|sides| !sides.lies());
        if let Some(Sides { operand, inner: (side, ..), .. }) = across.next() {
            let count = 1 + across.count();
            // What is missing is said of the operands as they are, not of copies.
            if way.turned == [false; 2] && count < fewest_across.0 {
                fewest_across = (count, (operand, side));
            }
            continue;
        }
        let copied = sides.iter().zip(given.aligned).map(|(sides, aligned)| {
            let bytes = product.variant.operands.bytes() as u64;
            match product.variant.scheme {
                Scheme::F16x3 => sliced::workspace_bytes::<F16>(sides, request.batch),
                Scheme::Bf16x6 => sliced::workspace_bytes::<Bf16>(sides, request.batch),
                _ => (sides.copied(request.batch, aligned) as u64).saturating_mul(bytes),
            }
        });
        let (copied, copies) = copied.fold((0, 0), |(all, copies), copied: u64| {
            (copied.saturating_add(all), copies + u32::from(copied > 0))
        });
        let is_turned_wrong = is_narrow && given.shape.n() > given.shape.m();
        let cost = (copied, is_turned_wrong, given.strides[2][1] != 1);
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, Orientation { copied, copies, ..way }));
        }
    }
    best.map(|(_, way)| way).ok_or(fewest_across.1)
}

/// An operand as it is copied.
pub(super) struct Sides {
    pub(super) operand: &'static str,
    /// The side along which its elements are to lie: its name, size and stride.
    pub(super) inner: (&'static str, usize, usize),
    /// The other's size and stride.
    pub(super) outer: (usize, usize),
    /// Is it copied turned over, so that its elements are to lie along the other side before?
    turned: bool,
    /// May its rows begin anywhere, but the first?
    shifted: bool,
    /// May all its rows begin anywhere?
    gathered: bool,
    /// See [`unit`].
    unit: usize,
    pub(super) shape: BoxShape,
}

impl Sides {
    /// Does it lie the way it is to be copied? A side of one element is no obstacle. What is gathered has rows one behind the
    /// other: of those that overlap, or are all one, pieces of sixteen bytes might reach beyond the operand's ends.
    fn lies(&self) -> bool {
        let ((_, len, stride), (count, pitch)) = (self.inner, self.outer);
        if self.gathered && !self.are_apart() {
            return false;
        }
        match self.turned {
            true => count <= 1 || pitch == 1,
            false => len <= 1 || stride == 1,
        }
    }

    /// Do rows begin at multiples of sixteen bytes, if the first does and they must? And one behind the other: of rows that
    /// overlap, or are all one, NVIDIA's documentation does not say that the accelerator takes them.
    fn is_even(&self) -> bool {
        let (count, pitch) = self.outer;
        let is_even = count <= 1 || self.shifted || pitch.is_multiple_of(self.unit);
        is_even && self.are_apart()
    }

    /// Does no row begin before the one before it ends?
    fn are_apart(&self) -> bool {
        let (count, pitch) = self.outer;
        count <= 1 || pitch >= self.inner.1
    }

    /// The launch that makes a copy of so many matrices, of so many elements of each row.
    fn copy(
        &self,
        matrices: usize,
        inner: usize,
        limits: &Limits,
    ) -> Result<(&'static dyn AnyKernel, LaunchConfig)> {
        let bytes = 16 / self.unit;
        let [pack, transpose]: [&'static dyn AnyKernel; 2] = match bytes {
            2 => [&pack_rows_u16, &transpose_rows_u16],
            4 => [&pack_rows, &transpose_rows],
            _ => {
                let limit =
                    "must lie as the kernel reads it: elements of eight bytes are not copied";
                return Err(Error::argument(self.operand, "a matrix", limit));
            }
        };
        let outer = self.outer.0;
        // Of a block, and of rows further ones after these.
        let (kernel, rows, cols, tile_rows, tile_cols) = match self.turned {
            true => (transpose, inner, outer, 32, 32),
            false => (pack, outer, inner, PAD_ROWS, PAD_BYTES / bytes),
        };
        let limit = limits.grid[1] as usize;
        let grid = [cols.div_ceil(tile_cols), rows.div_ceil(tile_rows).min(limit), matrices];
        Ok((kernel, LaunchConfig::new(grid.map(|blocks| blocks as u32), [32, 8, 1])))
    }

    /// Elements from one row to the next of a copy: a multiple of sixteen bytes, and of [lines](LINE) where a row has several.
    pub(super) fn padded_pitch(&self) -> usize {
        let (len, line) = (self.inner.1, LINE / 16 * self.unit);
        len.next_multiple_of(if len >= 4 * line { line } else { self.unit })
    }

    /// Elements of the copies of so many matrices that it takes, where these begin at multiples of sixteen bytes or not: whole
    /// lines, so that another copy behind them begins with one.
    pub(super) fn copied(&self, matrices: usize, aligned: bool) -> usize {
        match !self.turned && (self.gathered || aligned && self.is_even()) {
            true => 0,
            false => {
                let elements = matrices.saturating_mul(self.outer.0);
                let (elements, line) =
                    (elements.saturating_mul(self.padded_pitch()), LINE / 16 * self.unit);
                elements.checked_next_multiple_of(line).unwrap_or(usize::MAX)
            }
        }
    }
}

/// A and B as a kernel reads them.
pub(super) fn sides(
    product: &Product,
    way: Orientation,
    [m, n, k]: [usize; 3],
    strides: [[usize; 2]; 2],
) -> [Sides; 2] {
    // Named as in the request.
    let names = [("A", "m"), ("B", "n")];
    let [of_a, of_b] = if way.exchanged { [names[1], names[0]] } else { names };
    let (shapes, access) = (product.boxes, product.variant.access);
    let shifted = [access.classes() > 1, false];
    let sides = |number: usize, (operand, side), turned, outer: (usize, usize), k_stride| {
        let (inner, outer) = match product.variant.k_major()[number] {
            true => (("k", k, k_stride), outer),
            false => ((side, outer.0, outer.1), (k, k_stride)),
        };
        let (shape, shifted) = (shapes[number], shifted[number]);
        let (gathered, unit) = (access == Access::Ldg, unit(product));
        Sides { operand, inner, outer, turned, shifted, gathered, unit, shape }
    };
    let [a, b] = strides;
    let [turned_a, turned_b] = way.turned;
    [sides(0, of_a, turned_a, (m, a[0]), a[1]), sides(1, of_b, turned_b, (n, b[1]), b[0])]
}

/// Those of a request that has been put before the kernel in that way.
fn sides_of(product: &Product, way: Orientation, given: &Request) -> [Sides; 2] {
    let (shape, [a, b, _]) = (given.shape, given.strides);
    sides(product, way, [shape.m(), shape.n(), shape.k()], [a, b])
}

/// A size beyond what the accelerator counts to.
pub(super) fn too_long(request: &Request) -> Option<usize> {
    let shape = request.shape;
    [shape.m(), shape.n(), shape.k()].into_iter().find(|&size| size > MOST)
}

/// Blocks that split k between them: as many as were asked for, or as give the shortest time on an H200, so that the same product has
/// the same bits on every device; and its time there, in microseconds, of a kernel of which these speeds were measured.
pub(super) fn split_k(
    product: &Product,
    way: Orientation,
    request: &Request,
    target: &Target,
    speed: &Speed,
) -> (u32, f64) {
    let given = way.apply(request);
    let of = |blocks, target| time(product, way, &given, target, speed, blocks);
    let blocks = match request.split_k {
        Some(blocks) => blocks.clamp(1, product.most_splits),
        None => {
            let timed = (1..=product.most_splits).map(|blocks| (of(blocks, &Target::H200), blocks));
            let shorter = |best: (f64, u32), timed: (f64, u32)| {
                if timed.0 < best.0 { timed } else { best }
            };
            timed.fold((f64::INFINITY, 1), shorter).1
        }
    };
    let copies = match product.variant.scheme {
        Scheme::F16x3 => sliced::cut_us::<F16>(way.workspace_bytes()),
        Scheme::Bf16x6 => sliced::cut_us::<Bf16>(way.workspace_bytes()),
        _ => f64::from(way.copies) * COPY_US + way.workspace_bytes() as f64 * COPY_BYTE_US,
    };
    (blocks, of(blocks, target) + copies)
}

/// The time of a product that has been put before the kernel, split so.
fn time(
    product: &Product,
    way: Orientation,
    given: &Request,
    target: &Target,
    speed: &Speed,
    blocks: u32,
) -> f64 {
    let tiles = |size: usize, tile: u32| size.div_ceil(tile as usize) as f64;
    let ([rows, cols], shape) = (product.tile(), given.shape);
    // Blocks that share a tile have a part of its rows each.
    let sharing = product.variant.cluster;
    let down = product.tiles_down(shape.m()) as f64;
    let tiles = down * tiles(shape.n(), cols) * given.batch as f64;
    let (tiles, rows) = (tiles * f64::from(sharing), rows / sharing);
    // A block takes whole stages; of rows that begin anywhere, with some steps before the first.
    let shift = product.variant.access.classes() - 1;
    let steps = (shape.k() + shift).div_ceil(product.steps()).div_ceil(blocks as usize);
    let steps = (steps * product.steps()) as f64;
    let of_one = 2.0 * f64::from(rows) * f64::from(cols) * steps;
    let multiprocessors = f64::from(target.multiprocessors);
    let each = tiles * f64::from(blocks) / multiprocessors;
    let on_the_fullest = match (blocks, two_widths(product, given, target)) {
        (_, Some((_, end))) => f64::from(end) / 3.0,
        // Of many blocks one after the other the last do not begin together, and few are left over.
        (1, None) if each > 4.0 => each + 0.3,
        (1 | 2, None) => each.ceil(),
        // A cluster lies within one of the groups that multiprocessors come in, where a few are left over: of 32 clusters
        // of four with a multiprocessor a block not all find place, and some come after all others.
        _ if each <= 0.93 => 1.0,
        _ => 2.0 * each.ceil(),
    };
    let (m, n, k) = (shape.m() as f64, shape.n() as f64, shape.k() as f64);
    let [of_ab, of_c] = [product.variant.operands, product.variant.c].map(|ty| ty.bytes() as f64);
    let bytes = (of_ab * (m * k + k * n) + of_c * m * n) * given.batch as f64;
    let multiplied = choice::time(speed, of_one, on_the_fullest) * sectors(product, given);
    // In a round all draw at once, in the last one those that have a tile left.
    let (of_round, drawn) =
        (multiplied / on_the_fullest, steps * drawn_us(product, way, given, each));
    let beyond = |share: f64| (share * drawn - of_round).max(0.0);
    let multiplied = multiplied + each.floor() * beyond(1.0) + beyond(each.fract());
    let beside = |multiplied: f64, copied: f64, apart: f64| {
        multiplied.max(copied) + apart * multiplied.min(copied)
    };
    let (parts, time) = match product.persistent {
        false => (PARTS_US, beside(multiplied, bytes * BYTE_US, 0.0)),
        true => {
            let written = on_the_fullest * f64::from(rows * cols) * ELEMENT_US / f64::from(blocks);
            let drawing = (MORE_THAN_SHARE * each).min(1.0);
            let streamed = bytes * STREAMED_BYTE_US / drawing;
            let next = (on_the_fullest - 1.0).max(0.0) * NEXT_TILE_US * speed.alone;
            (sent_parts_us(shape.n()), beside(multiplied + written + next, streamed, APART))
        }
    };
    speed.fixed_us + time + if blocks > 1 { parts } else { 0.0 }
}

/// Microseconds in which a block draws one step of k of a tile from the second-level cache, by boxes, while all others do: how fast
/// depends on where rows begin. Measured of kernels that are limited by it (docs/measurements.md, "What a multiprocessor draws"), of which
/// a multiprocessor has so many tiles `each`: of one, by whole lines, their speed says it all.
fn drawn_us(product: &Product, way: Orientation, given: &Request, each: f64) -> f64 {
    let ([rows, cols], variant) = (product.tile(), &product.variant);
    let (sharing, element) = (variant.cluster, variant.operands.bytes());
    if !product.persistent || variant.access == Access::Ldg || variant.scheme.is_split() {
        return 0.0;
    }
    let of_class = [variant.access.classes(), 1];
    let sides = sides_of(product, way, given);
    let begins = sides.iter().zip(given.aligned).zip(of_class).map(
        |((sides, aligned), classes)| match sides.copied(given.batch, aligned) {
            0 if !sides.outer.1.is_multiple_of(classes) => classes * element,
            0 => sides.outer.1 * element,
            _ => sides.padded_pitch() * element,
        },
    );
    let us_of_byte = |begins: usize| match begins.trailing_zeros() {
        0..=4 => 1e-3 / 39.0,
        5 => 1e-3 / 57.0,
        6 => 1e-3 / 63.0,
        _ if each > 1.0 => 1e-3 / 70.0,
        _ => 0.0,
    };
    // Blocks that share a tile copy a part of either operand each, and what is the same for all once.
    let bytes = [rows, cols].map(|size| f64::from(size / sharing) * element as f64);
    begins.zip(bytes).map(|(begins, bytes)| us_of_byte(begins) * bytes).sum()
}

/// How much longer products take where A's classes of rows begin at odd multiples of sixteen bytes, in halves of sectors, though they are
/// not limited by what they [draw](drawn_us). Measured of 4095 x 4093 x 4097 in bf16.
fn sectors(product: &Product, given: &Request) -> f64 {
    let in_halves = !given.strides[0][0].is_multiple_of(2 * unit(product));
    match product.variant.access {
        Access::UnalignedA(8) if in_halves && product.variant.scheme == Scheme::Native => 1.025,
        _ => 1.0,
    }
}

/// Of a kernel of two widths, how many wide tiles C has across, and when the last cluster ends, in thirds of a wide tile.
fn two_widths(product: &Product, given: &Request, target: &Target) -> Option<(usize, u32)> {
    let widths = (product.tile()[1] as usize, product.narrow? as usize);
    let clusters = target.multiprocessors / product.variant.cluster;
    let down = product.tiles_down(given.shape.m()).saturating_mul(given.batch);
    let (across, end) = wide_across((down, given.shape.n()), widths, clusters as usize);
    Some((across, end as u32))
}

/// Would a kernel of two widths have narrow tiles alone? Another has these, in a ring that is made for them.
pub(super) fn is_narrow_alone(product: &Product, given: &Request, target: &Target) -> bool {
    two_widths(product, given, target).is_some_and(|(across, _)| across == 0)
}

/// Does a kernel take A in classes whose rows begin at multiples of sixteen bytes as they are? By one map they come as fast, of fewer
/// tiles (measured of 3000 x 3000 x 3000, 4096 x 4096 x 4104, 8192 x 8192 x 8200, in tf32 of 4096 x 4096 x 4100).
pub(super) fn needs_no_classes(product: &Product, given: &Request) -> bool {
    let [pitch, step] = given.strides[0];
    let is_even = given.aligned[0] && step == 1 && pitch.is_multiple_of(unit(product));
    product.variant.access.classes() > 1 && is_even
}

/// [`PARTS_US`] of tiles of tensor cores, whose blocks have their parts sent to them. Measured of C of 16 and of 4096 columns.
fn sent_parts_us(n: usize) -> f64 {
    if n <= 64 { 2.0 } else { 5.0 }
}

/// Dynamic shared memory for a launch of a kernel that declares so many bytes: more where all blocks find a multiprocessor
/// for themselves, so that none gets two, be it the next launch's second, which begins early and would make it wait.
pub(super) fn dynamic_shared(declared: u32, grid: [u32; 3], multiprocessors: u32) -> u32 {
    /// More than half of what a multiprocessor of compute capability 9.0 has.
    const MORE_THAN_HALF: u32 = 116 << 10;
    let blocks = grid.iter().map(|&count| u64::from(count)).product::<u64>();
    match blocks <= multiprocessors.into() {
        true => declared.max(MORE_THAN_HALF),
        false => declared,
    }
}

/// Columns that make half of the rounds of tiles, where B is copied for a kernel that copies beside what it multiplies: then only
/// these are copied before, and the others by the kernel. (It takes no rows that overlap.)
fn first_columns(
    product: &Product,
    of_b: &Sides,
    copied: [usize; 2],
    [m, n]: [usize; 2],
    products: usize,
    config: &LaunchConfig,
) -> Option<usize> {
    let is_beside = product.packs_tail && of_b.are_apart();
    let clusters = (config.grid[0] / product.variant.cluster) as usize;
    let (down, across) = (product.tiles_down(m).max(1), n.div_ceil(product.tile()[1] as usize));
    let rounds = (down * across).div_ceil(clusters.max(1));
    let of_first = (rounds / 2).max(1) * clusters;
    let first = (of_first / down).max(1) * product.tile()[1] as usize;
    let is_split = is_beside && products == 1 && copied[0] == 0 && copied[1] > 0 && first < n;
    is_split.then_some(first)
}

/// The launches of so many products of such sizes: of copies, and of the kernel, which is launched as `config` says.
pub(super) fn launches(
    scalar::Kernel { entry, product }: scalar::Kernel,
    way: Orientation,
    given: &Request,
    sizes: [usize; 3],
    products: usize,
    (limits, config): (&Limits, LaunchConfig),
) -> Result<Vec<(&'static str, LaunchConfig)>> {
    let kernel = entry.name();
    let [a, b, _] = given.strides;
    let operands = sides(product, way, sizes, [a, b]);
    if let Some(split) = product.split {
        let split_config = match product.variant.scheme {
            Scheme::F16x3 => sliced::cut_config::<F16>(&operands, products)?,
            _ => sliced::cut_config::<Bf16>(&operands, products)?,
        };
        return Ok(vec![(split.declaration().name, split_config), (kernel, config)]);
    }
    let copied = [0, 1].map(|i| operands[i].copied(products, given.aligned[i]));
    let [m, n, _] = sizes;
    let first = first_columns(product, &operands[1], copied, [m, n], products, &config);
    let mut launches = Vec::new();
    for (sides, _) in operands.iter().zip(copied).filter(|(_, copied)| *copied > 0) {
        let inner = first.unwrap_or(sides.inner.1);
        let (kernel, config) = sides.copy(products, inner, limits)?;
        launches.push((kernel.declaration().name, config));
    }
    launches.push((kernel, config));
    Ok(launches)
}

/// What a launch is of: operands that have been put before the kernel in the way that `orientation` says.
#[derive(Debug)]
pub(super) struct TensorOperands<'a, T, O> {
    pub(super) problem: &'a Problem,
    pub(super) products: usize,
    /// A and B.
    pub(super) matrices: [BufferView<'a, T>; 2],
    /// From one matrix to the next, and within one.
    pub(super) strides: [(usize, [usize; 2]); 2],
    /// What was cut of them before.
    pub(super) planes: [Option<&'a Prepared>; 2],
    pub(super) orientation: Orientation,
    pub(super) c: Written<'a, O>,
    pub(super) bias: BufferView<'a, O>,
}

/// An operand of a launch.
struct Source<'a, T> {
    elements: BufferView<'a, T>,
    sides: Sides,
    matrices: usize,
    step: usize,
    /// Elements of its copy, where it needs one.
    copied: usize,
}

/// Copies operands that need it, and launches.
///
/// # Safety
/// As for [`Stream::launch`].
pub(super) unsafe fn launch<T: Scalar<O>, O: Output>(
    stream: &Stream,
    kernel @ scalar::Kernel { entry, product }: scalar::Kernel,
    config: &LaunchConfig,
    operands: TensorOperands<T, O>,
) -> Result<()> {
    let TensorOperands { problem, products, matrices, strides, planes, orientation, c, bias } =
        operands;
    let sizes = [problem.m, problem.n, problem.k].map(|size| size as usize);
    let [of_a, of_b] = sides(product, orientation, sizes, strides.map(|(_, strides)| strides));
    if let Some(split) = product.split {
        let (kernels, of) = ((split, entry.kernel), (problem, products));
        let operands = (matrices, [of_a, of_b], strides.map(|(step, _)| step));
        // SAFETY: the caller's.
        return unsafe {
            match product.variant.scheme {
                Scheme::F16x3 => {
                    let planes = planes.map(|planes| planes.and_then(Prepared::f16));
                    let operands = Uncut::of(operands, planes);
                    sliced::launch(stream, kernels, config, of, operands, (c, bias))
                }
                _ => {
                    let planes = planes.map(|planes| planes.and_then(Prepared::bf16));
                    let operands = Uncut::of(operands, planes);
                    sliced::launch(stream, kernels, config, of, operands, (c, bias))
                }
            }
        };
    }
    let a = Source::new(matrices[0], of_a, strides[0].0, products);
    let b = Source::new(matrices[1], of_b, strides[1].0, products);
    if a.copied + b.copied == 0 {
        let operands = (problem, a.as_it_lies(), b.as_it_lies(), c, bias);
        // SAFETY: the caller's.
        return unsafe { begin(stream, kernel, config, operands, None) };
    }
    let [m, n, _] = sizes;
    let copied = [a.copied, b.copied];
    if let Some(first) = first_columns(product, &b.sides, copied, [m, n], products, config) {
        // SAFETY: the caller's.
        return unsafe {
            begin_beside(stream, kernel, config, (problem, a.as_it_lies(), &b, c, bias), first)
        };
    }
    stream.with_workspace(a.copied + b.copied, |workspace| {
        for (source, start) in [(&a, 0), (&b, a.copied)] {
            if source.copied > 0 {
                let to = workspace.view_mut(start..start + source.copied)?;
                source.copy(stream, products, source.sides.inner.1, to)?;
            }
        }
        let copies = workspace.view(..)?;
        let (a, b) = (a.or_copy(copies, 0)?, b.or_copy(copies, a.copied)?);
        // SAFETY: the caller's; and the copies are of the operands' size.
        unsafe { begin(stream, kernel, config, (problem, a, b, c, bias), None) }
    })
}

/// Copies so many of B's columns, and launches the kernel, which copies the others beside the product of these.
///
/// # Safety
/// As for [`Stream::launch`].
unsafe fn begin_beside<T: Scalar<O>, O: Output>(
    stream: &Stream,
    kernel: scalar::Kernel,
    config: &LaunchConfig,
    (problem, a, b, c, bias): (&Problem, Rows<T>, &Source<T>, Written<O>, BufferView<O>),
    first: usize,
) -> Result<()> {
    let (pitch, last) = (b.sides.padded_pitch(), b.sides.inner.1 - first);
    stream.with_workspace(b.copied, |copy| {
        b.copy(stream, 1, first, copy.view_mut(..b.copied)?)?;
        let (start, address) = (first * size_of::<T>(), copy.address());
        // SAFETY: the workspace's elements from the first column's on that has not been copied. The kernel writes these columns
        // alone, and reads them when they have been written; it is on the stream that has the workspace.
        let mut others =
            unsafe { stream.device().foreign::<T>(address + start as u64, b.copied - first)? };
        let b_rows = b.or_copy(copy.view(..)?, 0)?;
        let (pitches, lies) = ([pitch as u64, 1], b.as_it_lies());
        let problem = &Problem { b: pitches, ..*problem };
        let matrix = Matrices {
            rows: lies.count as u32,
            cols: last as u32,
            count: 1,
            pitch: lies.pitch as u64,
            ..Matrices::default()
        };
        let from = lies.elements.view(first, lies.elements.len() - first)?;
        stream.with_zeros::<{ beside::WORDS }>(|words| {
            let beside = Some((matrix, from, others.view_mut(..)?, words.view_mut(..)?));
            // SAFETY: the caller's.
            unsafe { begin(stream, kernel, config, (problem, a, b_rows, c, bias), beside) }
        })
    })
}

/// What a launch copies beside its product: such a matrix, from there, to there, and the words that it counts by.
type Beside<'a, T> = (Matrices, BufferView<'a, T>, BufferViewMut<'a, T>, BufferViewMut<'a, u32>);

/// Launches the kernel.
///
/// # Safety
/// As for [`Stream::launch`].
unsafe fn begin<T: Scalar<O>, O: Output>(
    stream: &Stream,
    scalar::Kernel { entry, product }: scalar::Kernel,
    config: &LaunchConfig,
    (problem, a, b, mut c, mut bias): (&Problem, Rows<T>, Rows<T>, Written<O>, BufferView<O>),
    beside: Option<Beside<T>>,
) -> Result<()> {
    let (mut problem, access) = (*problem, product.variant.access);
    if access.classes() > 1 {
        // It asks where rows begin.
        problem.a = [a.pitch as u64, 1];
    }
    let [mut a, mut b]: [Box<dyn Named + '_>; 2] = match access {
        Access::Ldg => [Box::new(a.elements), Box::new(b.elements)],
        Access::UnalignedA(classes) => {
            [Box::new(a.classes(classes as usize)?), Box::new(b.boxes()?)]
        }
        _ => [Box::new(a.boxes()?), Box::new(b.boxes()?)],
    };
    let mut arguments: Vec<(_, &mut dyn Named)> = vec![
        ("problem", &mut problem),
        ("a", &mut *a),
        ("b", &mut *b),
        ("c", &mut c),
        ("bias", &mut bias),
    ];
    if !product.packs_tail {
        // SAFETY: the caller's.
        return unsafe { stream.launch_named(entry.kernel, config, &mut arguments) };
    }
    let (mut no_elements, mut no_words) = (stream.device().uninit(0)?, stream.device().uninit(0)?);
    let nothing = stream.device().uninit(0)?;
    let nothing_beside =
        (Matrices::default(), nothing.view(..)?, no_elements.view_mut(..)?, no_words.view_mut(..)?);
    let (mut last, mut from, to, words) = beside.unwrap_or(nothing_beside);
    let (mut to, mut words) = (Written::from(to), Written::from(words));
    let of_tail: [(_, &mut dyn Named); 4] =
        [("last", &mut last), ("from", &mut from), ("to", &mut to), ("words", &mut words)];
    arguments.extend(of_tail);
    // SAFETY: the caller's.
    unsafe { stream.launch_named(entry.kernel, config, &mut arguments) }
}

/// Matrices as the accelerator is given them: so many rows of so many elements, which are so far apart.
#[derive(Clone, Copy)]
struct Rows<'a, T> {
    elements: BufferView<'a, T>,
    matrices: usize,
    step: usize,
    count: usize,
    pitch: usize,
    len: usize,
    shape: BoxShape,
}

impl<'a, T: BoxElement> Rows<'a, T> {
    fn boxes(&self) -> Result<Boxes<'a, T>> {
        let extents = [self.matrices, self.count, self.len];
        Boxes::new(self.elements, extents, [self.step, self.pitch], self.shape)
    }

    /// A map for each class of rows, of so many.
    fn classes(&self, count: usize) -> Result<Vec<Boxes<'a, T>>> {
        let of_class = |class| {
            let Class { start, rows, len } =
                Class::new((class, count), self.count, self.len, self.pitch);
            let elements = self.elements.view(start, self.elements.len() - start)?;
            let strides = [self.step, self.pitch.saturating_mul(count)];
            Boxes::new(elements, [self.matrices, rows, len], strides, self.shape)
        };
        (0..count).map(of_class).collect()
    }
}

impl<'a, T: BoxElement> Source<'a, T> {
    fn new(elements: BufferView<'a, T>, sides: Sides, step: usize, matrices: usize) -> Self {
        let even_step = matrices <= 1 || step.is_multiple_of(sides.unit);
        let aligned = elements.address().addr().is_multiple_of(16);
        let copied = sides.copied(matrices, aligned && even_step);
        Source { elements, sides, matrices, step, copied }
    }

    fn as_it_lies(&self) -> Rows<'a, T> {
        let Sides { inner: (_, len, _), outer: (count, pitch), shape, .. } = self.sides;
        let &Source { elements, matrices, step, .. } = self;
        Rows { elements, matrices, step, count, pitch, len, shape }
    }

    /// The operand, or its copy among others, which begins there.
    fn or_copy(&self, copies: BufferView<'a, T>, start: usize) -> Result<Rows<'a, T>> {
        let rows = self.as_it_lies();
        if self.copied == 0 {
            return Ok(rows);
        }
        let pitch = self.sides.padded_pitch();
        let elements = copies.view(start, self.copied)?;
        Ok(Rows { elements, step: rows.count * pitch, pitch, ..rows })
    }

    /// Copies so many elements of each of the operand's rows to where these begin at multiples of sixteen bytes, turned over where
    /// it is to be.
    fn copy(
        &self,
        stream: &Stream,
        matrices: usize,
        len: usize,
        to: BufferViewMut<T>,
    ) -> Result<()> {
        let Sides { inner: (_, _, stride), outer: (count, pitch), turned, .. } = self.sides;
        let padded = self.sides.padded_pitch();
        // What are rows and columns before.
        let (rows, cols, pitch) = match turned {
            true => (len, count, stride),
            false => (count, len, pitch),
        };
        let (kernel, config) = self.sides.copy(matrices, len, &stream.device().limits())?;
        let words = [pitch, self.step, padded, count * padded].map(|elements| elements as u64);
        let [mut from_pitch, mut from_step, mut to_pitch, mut to_step] = words;
        let (mut rows, mut cols) = (rows as u32, cols as u32);
        let (mut from, mut to) = (self.elements, Written::from(to));
        let arguments: &mut [(_, &mut dyn Named)] = &mut [
            ("rows", &mut rows),
            ("cols", &mut cols),
            ("from_pitch", &mut from_pitch),
            ("from_step", &mut from_step),
            ("to_pitch", &mut to_pitch),
            ("to_step", &mut to_step),
            ("from", &mut from),
            ("to", &mut to),
        ];
        // SAFETY: it reads what the operand has, and writes a copy of it, each element by a thread of its own.
        unsafe { stream.launch_named(kernel, &config, arguments) }
    }
}
