//! The time model: a launch of a kernel, part by part.
//!
//! A product has one block for each tile of C, whole tiles at the edges, too. The SM with the most
//! blocks decides: with `q` blocks it needs `q` times a block's operations over its speed. It
//! reaches that speed only with several blocks at work. One block alone reaches a share of it,
//! `alone`. Speed and share were measured for each design, on one H200 and on a CPU core
//! (docs/log/selection.md). On another GPU they scale with its published rates ([`Scale`]).
//!
//! The figures of a design and of its family are in its row of the registry ([`Speed`],
//! [`Costs`]), those of the host and of the other launches in [`times`](super::times).

use gpu::{
    kernels::emulated::two_widths::wide_tiles_across,
    registry::{Costs, Product, Speed},
};

use super::{
    Request, dot,
    layout::{OperandLayout, strided_c_ps},
    scale::Scale,
    times::Times,
};
use crate::gemm::Target;

/// Clusters of so many blocks that run at once. A cluster is within one GPC, of which an H200 has
/// eight: most of 16 or 18 SMs, and a smaller one. Of 32 clusters of four some wait for a second
/// wave, and of 16 clusters of seven (docs/log/selection.md, "All candidates").
fn clusters(blocks: u32, target: &Target) -> f64 {
    let of_h200 = match blocks {
        ..=3 => 40.0,
        4 => 30.0,
        5 => 23.0,
        6 => 20.0,
        _ => 15.0,
    };
    of_h200 * f64::from(target.sms) / f64::from(Target::H200.sms)
}

/// What the blocks of a launch do, on any device and with any split of k.
pub(super) struct Work<'a> {
    product: &'a Product,
    given: &'a Request,
    speed: &'a Speed,
    /// Blocks, if they do not split k.
    blocks: f64,
    /// Rows and columns that a block computes, and its operations for a k-step.
    elements: f64,
    flop: f64,
    /// Pipeline stages along k.
    stages: usize,
    /// The factor by which alignment slows the operations.
    slower: f64,
    /// Microseconds in which a block loads a k-step from L2 while all others do: with several tiles
    /// an SM, and with one.
    load_us: [f64; 2],
    /// Bytes of A and B, and of C.
    bytes: [f64; 2],
    /// Microseconds of a tile after the first.
    tile_us: f64,
    /// Microseconds of each tile for rows of C that are not 16-byte aligned.
    unaligned_c_us: f64,
    strided_us: f64,
}

impl<'a> Work<'a> {
    /// `given`: the request as the kernel sees it, and its operands, if the kernel needs layouts.
    pub(super) fn new(
        product: &'a Product,
        given: &'a Request,
        layouts: Option<&[OperandLayout; 2]>,
        speed: &'a Speed,
    ) -> Self {
        let ([rows, cols], shape) = (product.tile(), given.shape);
        let (m, n, k) = (shape.m(), shape.n(), shape.k());
        let across = n.div_ceil(cols as usize) as f64;
        let tiles = product.tiles_down(m) as f64 * across * given.batch as f64;
        // Each block of a cluster computes some rows of its tile.
        let cluster = product.variant.cluster;
        let rows_of_block = rows / cluster;
        // The part of a tile outside of C is computed too, except by kernels whose threads compute
        // four columns each.
        let computed = match product.is_direct() {
            true => m.min(rows as usize) * n.next_multiple_of(4).min(cols as usize),
            false => rows_of_block as usize * cols as usize,
        };
        // With alignment classes some k-steps before the first element are loaded too.
        let before = product.variant.access.classes() - 1;
        let [full, partial] = speed.tile_us;
        // A tile that extends beyond the columns of C takes longer, the more of its rows it stores.
        let share = match n.is_multiple_of(cols as usize) {
            true => 0.0,
            false => (m as f64 / f64::from(rows)).min(1.0) / across,
        };
        Work {
            product,
            given,
            speed,
            blocks: tiles * f64::from(cluster),
            elements: f64::from(rows_of_block * cols),
            flop: 2.0 * computed as f64,
            stages: (k + before).div_ceil(product.steps().max(1)),
            slower: slower(product, given),
            load_us: layouts.map_or([0.0; 2], |layouts| load_us(product, given, layouts)),
            bytes: bytes(product, given),
            tile_us: full + share * (partial - full),
            unaligned_c_us: unaligned_c_us(product, given, f64::from(rows_of_block * cols)),
            strided_us: strided_c_ps(product, given) as f64 * 1e-6,
        }
    }

    /// The time on a device if so many blocks split k.
    pub(super) fn times(&self, target: &Target, split_k: u32) -> Times {
        let Work { product, given, speed, .. } = *self;
        if product.is_dot() {
            return dot::times(product, given, target, speed);
        }
        let scale = Scale::new(product, speed, target);
        let costs = &product.costs;
        let steps = (self.stages.div_ceil(split_k as usize) * product.steps().max(1)) as f64;
        let each = self.blocks * f64::from(split_k) / f64::from(target.sms);
        let most_blocks = self.most_blocks(target, split_k, each);
        // Few blocks reach a share of the speed.
        let share = (scale.alone * most_blocks).min(1.0);
        let multiplied = match most_blocks {
            0.0 => 0.0,
            blocks => blocks * (self.flop * steps) / (scale.gflops * share) * 1e-3 * self.slower,
        };
        // In a full wave all SMs load at once, in the last one those that have a tile.
        let loaded = steps * self.load_us[usize::from(each <= 1.0)];
        let beyond = |share: f64| (share * loaded - multiplied / most_blocks).max(0.0);
        let l2 = match loaded {
            0.0 => 0.0,
            _ => each.floor() * beyond(1.0) + beyond(each.fract()),
        };
        let stored = self.elements * costs.staged_us + self.unaligned_c_us;
        let epilogue =
            (most_blocks - 1.0).max(0.0) * self.tile_us + most_blocks * stored / f64::from(split_k);
        let memory = match target.cuda {
            true => {
                let all = self.bytes.into_iter().zip(costs.memory_us);
                let memory_us = all.map(|(bytes, us)| bytes * scale.byte_us(us)).sum::<f64>();
                memory_us / (costs.more_than_share * each).min(1.0)
            }
            false => 0.0,
        };
        let busy = multiplied + l2 + epilogue;
        let overlapped = busy.max(memory) + costs.apart * busy.min(memory);
        let sum_us = match split_k {
            1 => 0.0,
            _ => costs.cluster_sum_us[usize::from(given.shape.n() > 64)],
        };
        Times {
            host_us: 0.0,
            device_us: speed.fixed_us + overlapped + self.strided_us + sum_us,
            copies_us: 0.0,
            fixed_us: speed.fixed_us,
            multiply_us: multiplied,
            l2_us: l2,
            epilogue_us: epilogue + self.strided_us,
            memory_us: overlapped - busy,
            sum_us,
        }
    }

    /// Blocks of the fullest SM, `each` of the average.
    fn most_blocks(&self, target: &Target, split_k: u32, each: f64) -> f64 {
        let Work { product, given, speed, .. } = *self;
        let many = product.costs.many_tiles[usize::from(speed.alone >= 1.0)];
        match (split_k, two_widths(product, given, target)) {
            (_, Some((_, end))) => f64::from(end) / 3.0,
            // In many waves the last blocks do not begin together, and few are left over.
            (1, None) if each > many => each + 0.3,
            (1 | 2, None) => each.ceil(),
            _ if self.blocks <= clusters(split_k, target) => 1.0,
            _ => 2.0 * each.ceil(),
        }
    }
}

/// Microseconds of a tile of so many elements for rows of C that are not 16-byte aligned.
fn unaligned_c_us(product: &Product, given: &Request, elements: f64) -> f64 {
    let [pitch, step] = given.strides[2];
    let of_c = product.variant.c.bytes();
    match step != 1 || pitch.saturating_mul(of_c).is_multiple_of(16) {
        true => 0.0,
        false => elements * product.costs.unaligned_c_us[usize::from(!given.plain)],
    }
}

/// Bytes of A and B, and of C.
pub(super) fn bytes(product: &Product, given: &Request) -> [f64; 2] {
    let [of_ab, of_c] = [product.variant.operands, product.variant.c].map(|ty| ty.bytes() as f64);
    let [a, b, c] = given.dense_steps().map(|len| len as f64 * given.batch as f64);
    [of_ab * (a + b), of_c * c]
}

/// The factor by which operations take longer because of the alignment of rows, though L2 does not
/// limit them.
fn slower(product: &Product, given: &Request) -> f64 {
    let Costs { unaligned, half_sectors, .. } = product.costs;
    let element = product.variant.operands.bytes();
    match () {
        () if unaligned > 1.0 && !given.has_aligned_rows(element) => unaligned,
        () if !given.strides[0][0].is_multiple_of(32 / element) => half_sectors,
        () => 1.0,
    }
}

/// Microseconds in which a block loads the boxes of one k-step from L2 while all others do: with
/// several tiles an SM, and with one. With whole lines and one tile the kernel's measured speed
/// contains it.
fn load_us(product: &Product, given: &Request, layouts: &[OperandLayout; 2]) -> [f64; 2] {
    let (variant, costs) = (&product.variant, &product.costs);
    if costs.l2[0].is_infinite() {
        return [0.0; 2];
    }
    let (classes, element) = ([variant.access.classes(), 1], variant.operands.bytes());
    let of = |i: usize| {
        let (layout, classes) = (&layouts[i], classes[i]);
        let pitch = match layout.copied(given.batch, given.aligned[i]) {
            0 if !layout.strided.1.is_multiple_of(classes) => classes,
            0 => layout.strided.1,
            _ => layout.padded_pitch(),
        };
        let multiple = pitch.saturating_mul(element).trailing_zeros().clamp(4, 7) as usize - 4;
        // Each block of a cluster loads a part of both operands; what they share is loaded once
        // (multicast).
        let bytes = (product.tile()[i] / variant.cluster) as usize * element;
        let us = bytes as f64 * 1e-3 / costs.l2[multiple];
        [us, if multiple == 3 { 0.0 } else { us }]
    };
    let [a, b] = [of(0), of(1)];
    [a[0] + b[0], a[1] + b[1]]
}

/// For a kernel with two tile widths: wide tiles across C, and when the last cluster ends, in
/// thirds of a wide tile.
pub(super) fn two_widths(
    product: &Product,
    given: &Request,
    target: &Target,
) -> Option<(usize, u32)> {
    let widths = (product.tile()[1] as usize, product.narrow? as usize);
    let clusters = target.sms / product.variant.cluster;
    let down = product.tiles_down(given.shape.m()).saturating_mul(given.batch);
    let (across, end) = wide_tiles_across((down, given.shape.n()), widths, clusters as usize);
    Some((across, end as u32))
}
