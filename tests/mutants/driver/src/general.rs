//! Products whose operands are views or pointers: lessons, and general kernels without TMA.

use gpu::{
    params::{COL_BIAS, GELU, GELU_TANH, RELU, ROW_BIAS, SILU},
    registry::{Entry, Family, PointerParams, Product, Type},
};
use simt::{LaunchConfig, check::Memory};

use crate::{
    memory::{Number, Place},
    numbers::Numbers,
    product::{self, Case, Trial},
};

/// The cases of a lesson. Those without special values are run in every order.
fn lessons(product: &Product) -> Vec<Case> {
    // Ragged, with several blocks and phases; one that fits; small and empty ones.
    let aligned = [[33, 17, 49], [40, 70, 51], [16, 16, 16], [1, 1, 1], [5, 7, 3], [20, 35, 0]];
    // Several large blocks, whose rows may be read sixteen bytes at a time; and such rows of
    // unaligned matrices.
    let wide = [([132, 260, 8], 0), ([12, 20, 8], 1)];
    // Several stages of a large tile.
    let deep = [([131, 35, 200], 0), ([40, 264, 136], 0)];
    let deep = deep.into_iter().filter(|_| product.variant.operands == Type::BF16);
    let shapes = aligned.map(|sizes| (sizes, 0)).into_iter().chain(wide).chain(deep);
    let case = |(numbers, (sizes, offset))| {
        let case = Case { numbers, ..Case::dense(sizes) };
        let [a, b, c] = [case.a, case.b, case.c].map(|place| Place { offset, ..place });
        Case { a, b, c, ..case }
    };
    let all = [Numbers::Integers, Numbers::Corners];
    all.into_iter()
        .flat_map(|numbers| shapes.clone().map(move |shape| case((numbers, shape))))
        .collect()
}

/// The cases of a general kernel. The first two are run in every order.
fn cases([tile, cols]: [usize; 2], on_tensor_cores: bool, is_dot: bool) -> Vec<Case> {
    // Several blocks of the smallest tile, and a part of one of other tiles. More phases than there
    // are stages, the last one partial.
    let (m, n, k) = match tile {
        // A wide one: several rows and columns of blocks.
        _ if cols > tile => (37, cols + 11, 35),
        32 => (37, 45, 67),
        // A tall one: several rows and columns of blocks.
        64 if cols < tile => (69, cols + 17, 35),
        _ if on_tensor_cores => (tile + 11, tile + 7, 65),
        tile => (tile / 2 + 5, tile / 2 + 11, 35),
    };
    let strided = Place::strided;
    let at = |place: Place, offset: usize| Place { offset, ..place };
    let by = |place: Place, step: usize| Place { step, ..place };
    let (four_m, four_n) = (m.next_multiple_of(4), n.next_multiple_of(4));
    // K-major: elements are loaded one by one.
    let plain = Case { b: strided([1, k]), ..Case::dense([m, n, k]) };
    // Four elements at a time, if there are four.
    let [a, b, c] = [strided([1, four_m]), strided([four_n, 1]), strided([four_n, 1])];
    let wide = Case { a, b, c, alpha: 2.0, beta: -1.0, ..plain };
    let unaligned = Case { a: at(a, 1), b: at(b, 1), c: at(c, 1), ..wide };
    let small = Case { sizes: [6, 11, 5], ..wide };
    let special = Case { numbers: Numbers::Corners, ..small };
    // A C of 20 x 32, at the ends of activations.
    let of_ends = strided([four_n.max(32), 1]);
    let ends = Case { sizes: [20, 32, 0], c: of_ends, numbers: Numbers::Ends, ..wide };
    let batch = |count, [of_a, of_b, of_c]: [usize; 3]| {
        let (a, b) = (by(a, 6 * four_m + of_a), by(b, 5 * four_n + of_b));
        Case { count, a, b, c: by(c, 6 * four_n + of_c), ..small }
    };
    let mut cases = vec![
        plain,
        wide,
        unaligned,
        Case { beta: 0.5, bias: ROW_BIAS, activation: RELU, ..wide },
        // Leading dimensions that are no multiples of four.
        Case { a: strided([1, m]), b: strided([n, 1]), c: plain.c, ..wide },
        // Four neighbours are not contiguous, although they are aligned. All rows of A are the same
        // one.
        Case {
            sizes: [m, 11, 5],
            a: strided([0, 4]),
            b: strided([8, 3]),
            c: strided([24, 2]),
            bias: COL_BIAS,
            ..plain
        },
        // Products of a batch are aligned to four elements, or not.
        Case { alpha: 0.0625, bias: COL_BIAS, activation: GELU, ..batch(3, [0, 0, 4]) },
        batch(2, [2, 1, 3]),
        Case { activation: RELU, beta: 0.0, ..special },
        Case { a: strided([5, 1]), b: strided([1, 5]), ..special },
        // k = 0.
        Case { sizes: [6, 11, 0], bias: ROW_BIAS, ..unaligned },
        Case { beta: 1.0, activation: GELU, ..ends },
        Case { beta: 2.0, activation: GELU_TANH, ..ends },
        Case { beta: 70.0, activation: SILU, ..ends },
        // Negative zeros.
        Case { numbers: Numbers::Zeros, beta: 0.0, alpha: -1.0, activation: GELU, ..small },
        Case { numbers: Numbers::Zeros, beta: 0.0, alpha: -1.0, activation: RELU, ..small },
        Case { sizes: [1, 1, 1], ..wide },
        // All of it fits.
        Case { a: strided([1, 32]), alpha: 2.0, beta: -1.0, ..Case::dense([32, 64, 16]) },
    ];
    if tile == 128 && !on_tensor_cores {
        // A whole tile, whose elements are stored by fours and one by one.
        cases.extend([[132, 136, 50], [131, 133, 20]].map(Case::dense));
    }
    if is_dot {
        // More k-steps than a block takes at a time. Three partial products, of which the last is
        // two k-steps shorter.
        cases.push(Case { b: strided([1, 1100]), ..Case::dense([5, 6, 1100]) });
        let [a, b] = [by(strided([30, 1]), 10), by(strided([11, 1]), 110)];
        cases.push(Case { a, b, count: 3, wide: 28, ..Case::dense([6, 11, 10]) });
    }
    if on_tensor_cores {
        // Operands on tensor cores are copied in more ways. More stages than the ring has; rows of
        // which every second one starts between two copies, as long as a tile, and one element
        // longer; and rows of A that are all the same one.
        let one_row = Case { sizes: [20, 20, 40], a: strided([0, 1]), ..plain };
        cases.extend([
            Case { sizes: [9, 20, 330], a: strided([330, 1]), ..wide },
            Case { sizes: [tile, tile, 64], a: strided([65, 1]), ..unaligned },
            Case { sizes: [tile, tile + 1, 65], b: strided([tile + 1, 1]), ..unaligned },
            // All of a tile except one k-step, and except one row and one column.
            Case { a: strided([64, 1]), b: strided([64, 1]), ..Case::dense([64, 64, 63]) },
            Case { a: strided([64, 1]), b: strided([64, 1]), ..Case::dense([63, 63, 64]) },
            one_row,
            Case { a: at(one_row.a, 1), b: strided([1, 40]), ..one_row },
        ]);
    }
    cases
}

pub fn trials<T: Number, O: Number>(
    entry: &'static Entry,
    product: &'static Product,
) -> Vec<Trial> {
    let (kernel, [rows, cols]) = (entry.checked.expect("a product"), product.tile());
    let on_tensor_cores = product.variant.family == Family::Mma;
    // How many of the first cases are run in all orders.
    let (cases, in_all_orders) = match product.is_lesson() {
        true => (lessons(product), 8),
        false => {
            let tile = [rows, cols].map(|size| size as usize);
            (cases(tile, on_tensor_cores, product.is_dot()), 2)
        }
    };
    let by_pointers = entry.kernel.of_params::<PointerParams>().is_some();
    product::trials(cases, in_all_orders, move |case, mut options| {
        let (mut a, mut b) = (case.operand::<T>(0), case.operand::<T>(1));
        let [m, n, _] = case.sizes.map(|size| size as u32);
        let grid = [n.div_ceil(cols), m.div_ceil(rows), case.count as u32];
        let config = LaunchConfig {
            dynamic_shared: entry.declaration().dynamic_shared.unwrap_or(0),
            constants: entry.constants_of(&case.problem()),
            ..LaunchConfig::new(grid, product.block)
        };
        // The last partial product has fewer k-steps than its operands.
        options.complete = a.is_dense() && b.is_dense() && case.wide == 0;
        if by_pointers {
            // A view knows its elements.
            let memory = [(a.pointer(), a.len), (b.pointer(), b.len)];
            options.memory = memory.map(|(pointer, len)| Memory::new(pointer, len, true)).into();
        }
        options.gaps = [a.gaps(), b.gaps()].concat();
        let operands = vec![("a", a.view()), ("b", b.view())];
        case.launch::<O>(kernel, &config, options, operands, product)
    })
}
