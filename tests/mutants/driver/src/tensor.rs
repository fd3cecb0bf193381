//! Products by TMA, on CUDA cores and on tensor cores, and products of f32 that is split into
//! slices.

use gpu::{
    collective::background::COUNTERS,
    kernels::emulated::stream_counters,
    params::{COL_BIAS, GELU, MatrixBatch, NO_BIAS, NO_SCALES, RELU, ROW_BIAS, ScaleStrides},
    registry::{Access, Entry, Product, Scheme},
};
use simt::{
    AnyKernel, Bf16, Bound, F16, LaunchConfig,
    check::{Memory, Options},
};

use crate::{
    memory::{Matrix, Number, Place},
    numbers::Numbers,
    product::{self, Case, Outcome, Trial},
    slices::{Slice, Split, split},
};

pub fn trials<T: Number, O: Number>(
    entry: &'static Entry,
    product: &'static Product,
) -> Vec<Trial> {
    match (product.split, product.variant.scheme) {
        (Some(split), Scheme::F16x3) => of_slices::<T, O, F16>(entry, product, split),
        (Some(split), _) => of_slices::<T, O, Bf16>(entry, product, split),
        (None, _) => of_operands::<T, O>(entry, product),
    }
}

/// Makes sums so small that a smooth activation changes them.
const SMALL: f64 = 1.0 / 1024.0;

/// `C = 2 A B`, by this many CTAs or clusters of a persistent kernel.
fn case(sizes: [usize; 3], blocks: u32) -> Case {
    Case { alpha: 2.0, blocks, ..Case::dense(sizes) }
}

/// The same with a bias of the columns, ReLU and beta = -1.
fn full(sizes: [usize; 3]) -> Case {
    Case { beta: -1.0, bias: COL_BIAS, activation: RELU, ..case(sizes, 1) }
}

/// The cases of a lesson: several tiles, one tile, and parts of a tile; more stages than a ring
/// has, and fewer.
fn lessons(product: &Product) -> Vec<Case> {
    let ([rows, cols], steps) = (product.tile().map(|size| size as usize), product.steps());
    // If TMA stores C, its rows are 16-byte aligned.
    let odd = if product.stores.is_some() { 8 } else { 7 };
    let of = |sizes, blocks| Case { blocks, ..Case::dense(sizes) };
    let mut cases = vec![
        of([rows + 9, cols + odd, steps + 8], 1),
        of([rows, cols, 5 * steps + 3], 1),
        of([rows - 1, 2 * cols - 8, 8], 1),
        of([3, odd, 5], 1),
        of([1, 8, 1], 1),
    ];
    if product.persistent {
        // Three clusters for two rows of two tiles; more tiles than a raster group has.
        cases.push(of([rows + 1, cols + 8, 8], 3));
        cases.push(of([2048 + 5, cols + 8, 8], 3));
    }
    cases.into_iter().map(|case| placed(product, case)).collect()
}

/// The first case is run in every order, each of the others in one.
fn cases(product: &Product) -> Vec<Case> {
    if product.is_lesson() {
        return lessons(product);
    }
    let classes = product.variant.access.classes();
    let (shifts_a, steps) = (classes > 1, product.steps());
    let tile @ [rows, cols] = product.tile().map(|size| size as usize);
    let mut cases = match product.sharing() {
        Some(_) if shifts_a => cases_of_classes(tile, steps, classes),
        Some(walkers) => cases_of_walkers(tile, steps, walkers as usize),
        None => vec![
            // Parts of tiles; more slabs than there are stages, in one ring and in four.
            full([rows + 5, cols + 10, 110]),
            case([rows, cols, 332], 1),
            // All elements of one tile are inside, and not all of another. C's rows are unaligned.
            case([rows + 2, cols + 3, 129], 1),
            // Whole slabs. The pitch of A is 163 elements: each of four consecutive rows has
            // another shift.
            full([rows - 3, cols / 2, 160]),
        ],
    };
    // So few slabs that one of four rings has none.
    let batch = if shifts_a { full([2, 6, steps + 8]) } else { full([4, 6, 96]) };
    cases.push(Case { count: 2, ..batch });
    // And as many steps as warps have before other warps start.
    cases.extend([case([1, 1, 1], 1), case([3, 5, 16], 1)]);
    if product.variant.access == Access::Pieces {
        // Ends of rows, of two products.
        cases.push(Case { count: 2, ..full([3, cols + 5, steps + 9]) });
    }
    if product.variant.access == Access::Ldg {
        // One stage more than there are teams that load, the last one partial.
        cases.push(case([rows - 1, cols, 203], 1));
    }
    if product.most_splits > 1 {
        cases.push(Case { parts: 2, ..full([rows - 1, cols + 4, 333]) });
        // The rows of a tile are no multiple of the parts, and there are rows below it.
        cases.push(Case { count: 2, parts: 3, ..case([rows + 5, cols, 100], 1) });
        cases.push(Case { parts: 8, ..case([rows, cols, 90], 1) });
        // Fours of several rows, each with a bias of its own.
        cases.push(Case { bias: ROW_BIAS, activation: GELU, ..full([rows - 1, cols + 4, 8]) });
        // C's rows are aligned, and of its last four columns one is outside.
        let c = Place::strided([cols, 1]);
        cases.push(Case { c, parts: 2, ..case([rows, cols - 1, 40], 1) });
    }
    cases.into_iter().map(|case| placed(product, case)).collect()
}

fn cases_of_walkers([rows, cols]: [usize; 2], steps: usize, walkers: usize) -> Vec<Case> {
    // A stage of the largest tiles takes long.
    let (some, more, many, down) = match rows * cols {
        ..0xc000 => (72, 136, 472, 3),
        _ => (steps + 8, steps + 8, 5 * steps + 8, 2),
    };
    let mut cases = vec![
        // Several tiles of a CTA, and parts of tiles; more stages than the ring has, the last one
        // partial.
        full([rows + 9, cols + 12, more]),
        case([rows, cols - 3, many], 1),
        // Two rows of two tiles for three CTAs. C's rows are unaligned, also where all of a tile is
        // inside.
        case([rows + 1, 2 * cols - 3, some], 3),
        // Of the last sixteen bytes of a row the last element is outside.
        case([rows, cols - 1, 8], 1),
        // C's rows are aligned.
        case([rows + 1, 2 * cols - 4, 8], 3),
        // More tiles of a CTA than the ring has stages, and several stages for each.
        case([down * rows, 3 * cols, some], 1),
        // More tiles than a raster group: 2048 rows.
        case([2048 + rows / walkers - 5, cols + 4, 8], 3),
        // All rows of a tile, element by element.
        full([rows, 6, 8]),
        // Bias and activation where the accumulators are: C is not read, and has all columns.
        Case { beta: 0.0, ..full([19, 2 * cols, 8]) },
        Case { bias: NO_BIAS, beta: 0.0, activation: GELU, alpha: SMALL, ..full([9, cols, 8]) },
        // There, too: the old C of aligned rows, a bias of rows, and the last columns' bias.
        full([19, 2 * cols, 8]),
        Case { bias: ROW_BIAS, ..full([19, cols, 8]) },
        Case { beta: 0.0, ..full([19, cols + 4, 8]) },
    ];
    // Columns: sixteen bytes of f32 and of bf16, one element less, and one more than is stored at a
    // time. C's rows are unaligned.
    for (n, between) in [(4, 1), (3, 0), (8, 1), (7, 0), (129, 0)] {
        let c = Place::strided([cols + n + between, 1]);
        cases.push(Case { c, ..case([19, n, 8], 1) });
    }
    cases
}

/// Each of A's alignment classes, 8 or 16, has tiles of its own, so few rows need as many tiles.
fn cases_of_classes([rows, cols]: [usize; 2], steps: usize, classes: usize) -> Vec<Case> {
    let k = steps + 8;
    let (all, many) = if classes > 8 { (8, 9) } else { (k, 8 * rows + 1) };
    vec![
        // Several tiles of a CTA, and parts of tiles; more stages than the ring has, the last one
        // partial.
        full([2, cols + 12, k]),
        case([1, cols - 3, 5 * steps + 8], 1),
        // Rows of two tiles for three clusters. C's rows are unaligned, or aligned.
        case([3, 2 * cols - 3, k], 3),
        case([3, 2 * cols - 4, 8], 3),
        // All classes, with two rows in one of them. Of the last sixteen bytes of a row of C the
        // last element is outside.
        case([classes + 1, cols - 1, all], 1),
        // More tiles of a CTA than the ring has stages, and several stages for each.
        case([2, 3 * cols, k], 1),
        // More than a raster group of eight tiles down: one of eight classes has two tiles.
        case([many, cols + 4, 8], 3),
        // A packed tail has one column more than a warp copies at a time; its last row is the only
        // one that a warp claims with it, and no gap is between rows.
        case([2, 3 * cols + 1, 9], 1),
        // A packed tail of one column, with gaps between rows.
        case([3, cols + 1, 9], 1),
    ]
}

/// The cases of a kernel that multiplies slices. The first is run in every order, each of the
/// others in one.
fn cases_of_slices<S: Slice>(product: &Product) -> Vec<Case> {
    let [rows, cols] = product.tile().map(|size| size as usize);
    let walkers = product.variant.cluster as usize;
    let case = |sizes, numbers| Case { numbers, ..case(sizes, 1) };
    let [ends, of_sizes] = S::UNCERTAIN;
    // Several patches down and across, in either layout. Patches of f16 have 64 rows and 128
    // columns, the others 32 and 256. A CTA's last tile has one patch in C's rows, and in its
    // columns.
    let patches = match of_sizes {
        Numbers::Scaled => [140, 266, 136],
        _ => [rows + rows / walkers + 1, 257, 40],
    };
    // More slices than the ring has stages, and the last steps are partial.
    let k = if walkers == 1 { 136 } else { 72 };
    let wide = if product.narrow.is_some() { cols } else { 0 };
    let mut cases = vec![
        // Several tiles of a CTA, and parts of tiles.
        Case { wide, ..full([rows / 2 + 9, cols + 12, k]) },
        // One of three clusters is a tile behind. With two widths it has two narrow tiles first,
        // and another one.
        Case { wide, blocks: 3, ..case([rows + 1, cols + 270, 72], Numbers::Full) },
        Case { count: 2, blocks: 2, numbers: Numbers::Special, ..full([70, 140, 75]) },
        Case { count: 9, ..case([20, 20, if ends == Numbers::Far { 72 } else { 40 }], ends) },
        Case { count: 2, wide, ..case(patches, of_sizes) },
        case([1, 1, 1], Numbers::Full),
        // C's rows are unaligned, and alpha is 1: stored without the epilogue; with it; and with
        // uncertain sums.
        Case { alpha: 1.0, ..case([19, 37, 40], Numbers::Full) },
        Case { alpha: 1.0, ..full([19, 37, 40]) },
        Case { alpha: 1.0, ..case([19, 37, 40], Numbers::Special) },
    ];
    if walkers == 1 {
        // More patches along k than a warp reads at a time, for f16. For bf16 so many that a lane
        // reads a third one.
        cases.push(case([3, 5, 2100], Numbers::Last));
    }
    cases.into_iter().map(|case| placed(product, case)).collect()
}

/// A case with its operands in the kernel's layouts.
fn placed(product: &Product, case: Case) -> Case {
    let variant = &product.variant;
    let (access, unit) = (variant.access, 16 / variant.operands.bytes());
    let case = Case { along_k: variant.k_major(), ..case };
    let [a, b] = [0, 1].map(|which| {
        let [_, rows, cols] = case.size(which);
        let unaligned = |between: usize, offset| {
            let pitch = cols + between;
            let step = (rows * pitch).next_multiple_of(unit);
            Place { offset, step, ..Place::strided([pitch, 1]) }
        };
        match which {
            _ if variant.scheme.is_split() => {
                let place = unaligned(1 + which, 1);
                Place { step: rows * place.strides[0] + 1 + which, ..place }
            }
            // With gaps between rows or without.
            _ if access == Access::Ldg => unaligned([0, 1, 3][case.sizes[0] % 3], 1 + which),
            0 if access.classes() > 1 => unaligned(3, 0),
            _ => Place::padded(rows, cols.next_multiple_of(unit)),
        }
    });
    Case { a, b, ..case }
}

fn config(entry: &Entry, product: &Product, case: &Case) -> LaunchConfig {
    let [m, n, _] = case.sizes.map(|size| size as u32);
    let [rows, cols] = product.tile();
    let [down, across] = [m.div_ceil(rows), n.div_ceil(cols)];
    let (count, parts) = (case.count as u32, case.parts);
    let grid = match product.sharing() {
        Some(_) if parts > 1 => [across * down * count, 1, parts],
        Some(together) => [case.blocks * together, 1, 1],
        None => [across, down, count * parts],
    };
    LaunchConfig {
        dynamic_shared: entry.declaration().dynamic_shared.expect("the stages"),
        cluster: [1, 1, parts],
        constants: entry.constants_of(&case.problem()),
        ..LaunchConfig::new(grid, product.block)
    }
}

/// Trials of a kernel that takes A and B.
fn of_operands<T: Number, O: Number>(
    entry: &'static Entry,
    product: &'static Product,
) -> Vec<Trial> {
    let kernel = entry.checked.expect("a product");
    product::trials(cases(product), 1, move |case, options| {
        let config = config(entry, product, case);
        let (mut a, mut b) = (case.operand::<T>(0), case.operand::<T>(1));
        let (access, [of_a, of_b]) = (product.variant.access, product.boxes);
        if product.packs_tail {
            return with_tail::<T, O>(entry, product, case, &config, options);
        }
        let operands = match access {
            Access::Ldg | Access::Pieces => [a.view(), b.view()],
            _ => [a.maps(of_a, access.classes()), b.maps(of_b, 1)],
        };
        let [of_a, of_b] = operands;
        let mut options = options;
        options.gaps = [a.gaps(), b.gaps()].concat();
        let operands = [("a", of_a), ("b", of_b)];
        if entry.has_scales() {
            return with_scales::<O>(entry, product, case, config, options, operands);
        }
        case.launch::<O>(kernel, &config, options, operands.into(), product)
    })
}

/// The same for a kernel with scales: in turn none, of rows and columns, and of blocks if it has
/// these.
fn with_scales<O: Number>(
    entry: &Entry,
    product: &Product,
    case: &Case,
    mut config: LaunchConfig,
    options: Options,
    operands: [(&'static str, Bound); 2],
) -> Outcome {
    let [m, n, k] = case.sizes;
    let stages = k.div_ceil(product.steps()).max(1);
    // A power of two, so that all sums stay exact.
    let scale = |[_, row, col]: [usize; 3]| [0.5, 1.0, 2.0][(row + 2 * col) % 3];
    let of = |rows, cols: usize| {
        Matrix::<f32>::new([1, rows, cols], Place::strided([cols + 1, 1])).filled(scale)
    };
    let (mut of_a, mut of_b) = (of(m, stages), of(stages, n));
    let strides = ScaleStrides { a: [stages as u64 + 1, 1], b: [n as u64 + 1, 1] };
    let kind = ((m + n + k) % 3) as u32;
    let kind = if entry.takes_scales(kind) { kind } else { NO_SCALES };
    config.constants = entry.with_scales(config.constants, kind);
    let [a, b] = operands;
    let strides = ("strides", Bound::Value(&strides));
    let scales = [("scales_a", of_a.view()), ("scales_b", of_b.view())];
    let operands = [a, b, strides].into_iter().chain(scales).collect();
    let kernel = entry.checked.expect("a product");
    case.launch::<O>(kernel, &config, options, operands, product)
}

/// The same for a kernel that packs the tail of B itself: the columns of the last tiles across, of
/// many tiles those of all but the first.
fn with_tail<T: Number, O: Number>(
    entry: &Entry,
    product: &Product,
    case: &Case,
    config: &LaunchConfig,
    options: Options,
) -> Outcome {
    let ([_, n, k], [_, tile]) = (case.sizes, product.tile().map(|size| size as usize));
    let mut options = options;
    let first = match (n - 1) / tile {
        _ if case.count > 1 => n,
        3.. => tile,
        last => last * tile,
    };
    let number = |[i, p, col]: [usize; 3]| case.numbers.at(1, [i, col, p], [n, k]).into();
    let (mut a, b) = (case.operand::<T>(0), case.operand::<T>(1));
    let mut b = b.filled(|at| if at[2] < first { number(at) } else { f64::NAN });
    // With gaps between B's rows or without.
    let row = n + [3, 1, 0][case.sizes[0] % 3];
    let place = Place { offset: 1, ..Place::strided([row, 1]) };
    let mut from = Matrix::<T>::new([1, k, n - first], place)
        .filled(|[i, p, col]| number([i, p, first + col]));
    let mut words = Matrix::<u32>::vector(COUNTERS).filled(|_| 0.0);
    let (rows, cols, pitch) = (k as u32, (n - first) as u32, row as u64);
    let last = MatrixBatch { rows, cols, count: 1, pitch, ..MatrixBatch::default() };
    let [of_a, of_b] = product.boxes;
    // What follows B's rows. Before them are its other columns.
    let is_gap = |at: &usize| (n - first..row - first).contains(&(at % row));
    let start = from.pointer().cast_const();
    let gap = |at| Memory::new(start.wrapping_add(at), 1, true);
    options.gaps = (0..from.len).filter(is_gap).map(gap).collect();
    let operands = vec![
        ("a", a.maps(of_a, product.variant.access.classes())),
        ("b", b.maps(of_b, 1)),
        ("last", Bound::Value(&last)),
        ("from", from.view()),
        ("to", b.out(first, true)),
        ("words", words.out(0, true)),
    ];
    let kernel = entry.checked.expect("a product");
    case.launch::<O>(kernel, config, options, operands, product).and(&b).and(&words)
}

/// The trials of a kernel that multiplies slices, which another kernel makes.
fn of_slices<T: Number, O: Number, S: Slice>(
    entry: &'static Entry,
    product: &'static Product,
    kernel_that_splits: &'static dyn AnyKernel,
) -> Vec<Trial> {
    let kernel = entry.checked.expect("a product");
    product::trials(cases_of_slices::<S>(product), 1, move |case, options| {
        let config = config(entry, product, case);
        let [mut a, mut b] = [0, 1].map(|which| Split::<T, S>::new(case.operand(which)));
        split(kernel_that_splits, &mut a, &mut b);
        // So that the count of recomputed elements overflows into the next word.
        let before = |word| if word == stream_counters::RECOMPUTED { u32::MAX - 3 } else { 0 };
        let mut words =
            Matrix::<u32>::vector(stream_counters::LEN).filled(|[.., word]| before(word).into());
        let [of_a, of_b] = product.boxes;
        let operands = vec![
            ("a", a.planes.maps(of_a, 1)),
            ("b", b.planes.maps(of_b, 1)),
            ("a_itself", a.source.view()),
            ("b_itself", b.source.view()),
            ("patches_a", a.ranges.view()),
            ("patches_b", b.ranges.view()),
            ("board", words.out(0, true)),
        ];
        case.launch::<O>(kernel, &config, options, operands, product).and(&words)
    })
}
