//! Products of bf16, f16, i8, e4m3 and e5m2 on tensor cores, as the kernels are launched: operands
//! in either layout, whole and partial tiles, several of them for each block.

use gpu::registry::{Access, Family, Scheme, Type};
use simt::{Bf16, E4m3, E5m2, F16, check::Order};
use tests::{
    Turns,
    kernels::{Kernel, kernels},
    once,
};

use super::{
    given::{
        Given, Number,
        Work::{self, Parts, Walkers},
    },
    operand::{INTEGERS, integer},
};

/// The sources that these tests depend on.
const SOURCES: &[&str] = &["gpu/src/collective", "gpu/src/kernels/wgmma", "tests/check"];

/// The kernels for A and B of the first type, with C of the second one, in an order that is the
/// same for all types.
fn kernels_of(of: [Type; 2]) -> Vec<Kernel> {
    kernels(|product| {
        let variant = product.variant;
        // The `ldg` kernels are tested in `gathered`.
        let is_text = variant.family == Family::Wgmma && variant.access != Access::Ldg;
        is_text && variant.scheme == Scheme::Native && [variant.operands, variant.c] == of
    })
}

/// How many texts there are: kernels that differ in more than the types.
fn texts() -> usize {
    kernels_of([Type::BF16, Type::F32]).len()
}

/// The kernels for A and B of `T`, with C of `O`: one of each text.
fn cases<T: Number, O: Number>() -> Vec<Kernel> {
    let cases = kernels_of([T::TYPE, O::TYPE]);
    let texts = if T::TYPE.bytes() == 1 { cases.len() } else { texts() };
    assert_eq!(cases.len(), texts, "each text has a kernel for each pair of types");
    assert!(!cases.is_empty());
    cases
}

fn integers_are_exact<T: Number>(turns: &mut Turns) {
    for case in cases::<T, f32>() {
        let shapes = [
            ([200, 300, 130], 1, (1.0, 0.0), false),
            ([200, 304, 64], 3, (2.0, -1.0), false),
            ([128, 256, 192], 1, (1.0, 0.0), false),
            // Unaligned rows of C, in whole and partial tiles.
            ([200, 301, 64], 2, (2.0, 0.0), false),
            ([37, 9, 8], 2, (1.0, 1.0), true),
        ];
        for (shape, blocks, scales, full) in
            turns.next_case().into_iter().map(|shape| shapes[shape])
        {
            let given = Given::<T, f32>::new(case, shape, scales, full, (integer, INTEGERS));
            given.is_exact(case, &given.run(case, Walkers(blocks)));
            if case.1.most_splits > 1 {
                // By as many blocks as there are stages, and by more.
                given.is_exact(case, &given.run(case, Parts(3)));
            }
        }
    }
}

#[test]
fn integers_are_exact_whatever_way_operands_lie() {
    once!(SOURCES);
    // Each kernel has another shape with the other type.
    let mut turns = Turns::of(5);
    integers_are_exact::<Bf16>(&mut turns);
    integers_are_exact::<F16>(&mut turns);
}

fn is_clean<T: Number, O: Number>(text: usize, order: Order, shape: [usize; 3], work: Work) {
    let case = cases::<T, O>()[text];
    // Unaligned rows have a store of their own if C is only the product.
    let full = shape[1].is_multiple_of(2);
    let scales = if full { (2.0, 1.0) } else { (2.0, 0.0) };
    let given = Given::<T, O>::new(case, shape, scales, full, (integer, INTEGERS));
    given.is_exact(case, &given.run_watched(case, work, order));
}

/// A product of ragged sizes: several tiles of the one block (or cluster), and more stages than the
/// ring has. If the kernel can split k, also two tiles, one of which is whole along m or n. By
/// default such a kernel runs one of the two in turn.
fn both_are_clean<T: Number, O: Number>(text: usize, order: Order, turns: &mut Turns) {
    let case = cases::<T, O>()[text];
    let [rows, cols] = case.1.tile().map(|size| size as usize);
    let launches = if case.1.most_splits > 1 { &[0, 1][..] } else { &[0] };
    // A stage has 128 bytes.
    let longer = 2 / size_of::<T>();
    for launch in turns.among(launches) {
        match launch {
            0 => is_clean::<T, O>(text, order, [rows + 72, cols + 48, 136 * longer], Walkers(1)),
            _ => {
                let parts = Parts(2 + text as u32 % 3);
                is_clean::<T, O>(text, order, [rows - 24, cols + 24, 200 * longer], parts);
            }
        }
    }
}

fn is_clean_in_every_order<T: Number>() {
    let orders = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];
    let (mut with_f32, mut with_own, mut both) = (Turns::of(2), Turns::of(2), Turns::of(2));
    for (text, order) in (0..texts()).zip(orders.into_iter().cycle()) {
        // With either type of C.
        for which in with_f32.next_case() {
            match which {
                0 => both_are_clean::<T, f32>(text, order, &mut both),
                _ => is_clean::<T, f32>(text, order, [130, 265, 64], Walkers(1)),
            }
        }
        // The first one has a tile below the last row.
        for shape in
            with_own.next_case().into_iter().map(|shape| [[264, 256, 64], [130, 323, 64]][shape])
        {
            is_clean::<T, T>(text, order, shape, Walkers(1));
        }
    }
}

#[test]
fn checked_launches_are_clean_in_every_order() {
    once!(SOURCES);
    is_clean_in_every_order::<Bf16>();
    is_clean_in_every_order::<F16>();
}

#[test]
fn checked_launches_of_integers_are_clean_and_exact() {
    once!(SOURCES);
    let orders = host::check::orders(4, 1);
    let mut both = Turns::of(2);
    let cases = cases::<i8, i32>();
    for ((text, case), order) in cases.iter().enumerate().zip(orders.into_iter().cycle()) {
        both_are_clean::<i8, i32>(text, order, &mut both);
        // Unaligned rows of C, without alpha and beta.
        is_clean::<i8, i32>(text, order, [70, 75, 300], Walkers(1));
        let given =
            Given::<i8, i32>::new(*case, [200, 301, 416], (-3.0, 2.0), false, (integer, INTEGERS));
        given.is_exact(*case, &given.run(*case, Walkers(1)));
    }
}

/// Each kernel of 8-bit floating-point numbers, in orders that continue those of the last type.
fn of_8_bits_are_clean<T: Number, O: Number>(
    both: &mut Turns,
    orders: &mut impl Iterator<Item = Order>,
) {
    for (text, case) in cases::<T, O>().into_iter().enumerate() {
        both_are_clean::<T, O>(text, orders.next().unwrap(), both);
        // Unaligned rows of C.
        let shape = ([70, 75, 300], (2.0, 0.0));
        let given = Given::<T, O>::new(case, shape.0, shape.1, false, (integer, INTEGERS));
        given.is_exact(case, &given.run_watched(case, Walkers(1), orders.next().unwrap()));
    }
}

#[test]
fn checked_launches_of_8_bit_floats_are_clean_and_exact() {
    once!(SOURCES);
    let mut orders = host::check::orders(4, 1).into_iter().cycle();
    let mut both = Turns::of(2);
    of_8_bits_are_clean::<E4m3, f32>(&mut both, &mut orders);
    of_8_bits_are_clean::<E5m2, Bf16>(&mut both, &mut orders);
    of_8_bits_are_clean::<E4m3, F16>(&mut both, &mut orders);
}

/// Each kernel in one of ten orders, or all: five with C of f32, and five with C of the operands'
/// type.
fn is_clean_in_ten_random_orders<T: Number>(texts: impl Iterator<Item = usize>) {
    let (mut turns, mut both) = (Turns::of(10), Turns::of(2));
    for text in texts {
        for seed in turns.next_case().into_iter().map(|order| order + 1) {
            let order = Order::Random(seed as u64);
            match (seed + text) % 2 {
                0 => both_are_clean::<T, f32>(text, order, &mut both),
                _ => both_are_clean::<T, T>(text, order, &mut both),
            }
        }
    }
    turns.each_had_one();
}

#[test]
fn checked_launches_are_clean_in_ten_random_orders() {
    once!(SOURCES);
    is_clean_in_ten_random_orders::<Bf16>(0..texts());
}

#[test]
fn checked_launches_of_f16_are_clean_in_ten_random_orders() {
    once!(SOURCES);
    // From the last to the first, so that a kernel has other orders than with bf16.
    is_clean_in_ten_random_orders::<F16>((0..texts()).rev());
}

/// The sum is truncated at each of `k / 16` steps, and each of 16 products once more: at most 2^-23
/// of the largest sum each.
fn real_numbers_are_within_the_bound<T: Number>() {
    let case = cases::<T, f32>()[0];
    let [m, n, k] = [70, 40, 1000];
    let real = |row: usize, col: usize, salt: usize| {
        let bits = (row * 2_654_435_761 + col * 40_503 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let given = Given::<T, f32>::new(case, [m, n, k], (1.0, 0.0), false, (real, usize::MAX));
    let c = given.run(case, Walkers(1));
    let steps = k.div_ceil(16) as f64;
    for (i, &c) in c.iter().enumerate() {
        let bound = (steps + 17.0) * 2f64.powi(-23) * given.magnitudes[i];
        let error = (f64::from(c) - given.expected[i]).abs();
        assert!(error <= bound, "element {i}: {c} is {error:e} off, over {bound:e}");
    }
}

#[test]
fn real_numbers_are_within_the_bound_of_truncated_sums() {
    once!(SOURCES);
    real_numbers_are_within_the_bound::<Bf16>();
    real_numbers_are_within_the_bound::<F16>();
}

/// A product of f16 may have bits down to 2^-48, and subnormal numbers are kept. C of f16 is
/// infinite if the nearest number would be 2^16.
#[test]
fn f16_is_subnormal_and_overflows_as_ieee_has_it() {
    once!(SOURCES);
    let case = cases::<F16, f32>()[0];
    let tiny = 2f32.powi(-24);
    let given = Given::<F16, f32>::new(
        case,
        [40, 24, 33],
        (1.0, 0.0),
        false,
        (
            |row: usize, col: usize, salt: usize| match salt {
                // Multiples of the smallest number, all of them subnormal.
                1 => tiny * (1 + row * 3 + col) as f32,
                _ => (row % 2 + col + 1) as f32,
            },
            usize::MAX,
        ),
    );
    given.is_exact(case, &given.run(case, Walkers(1)));
    let case = cases::<F16, F16>()[0];
    // 32 sums of 65504 + 8 i: from i = 2 on, 65520, they are nearer to 2^16 or as near.
    let given = Given::<F16, F16>::new(
        case,
        [32, 8, 2],
        (1.0, 0.0),
        false,
        (
            |row: usize, col: usize, salt: usize| match (salt, col) {
                (1, 0) => 65504.0,
                (1, _) => 8.0 * row as f32,
                _ => 1.0,
            },
            usize::MAX,
        ),
    );
    let c = given.run(case, Walkers(1));
    given.is_exact(case, &c);
    assert_eq!((c[8].to_f32(), c[16].to_f32()), (65504.0, f32::INFINITY));
}
