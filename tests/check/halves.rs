//! Scaled slices of f16: their values, and that the recorded loss of a patch is an upper bound.

use gpu::{
    checked::kernels::emulated::split_f16x2::split_f16x2,
    kernels::emulated::{
        planes::plane_pitch,
        scales::{PATCH_COLS, PATCH_ROWS, SLICES, WORDS, patches},
    },
    params::MatrixBatch,
};
use simt::{F16, check::Order};

use super::sliced::{Given, Slice, cut};
use tests::once;

/// The sources that these tests depend on.
const SOURCES: &[&str] = &["gpu/src/kernels/emulated", "gpu/src/collective", "tests/check"];

impl Slice for F16 {
    const SLICES: usize = SLICES;
    const WORDS: usize = WORDS;
    const UNWRITTEN: Self = F16::from_bits(0xffff);

    fn patches(rows: u32, cols: u32) -> (u32, u32) {
        patches(rows, cols)
    }
}

/// A patch: its largest number, and limits of the recorded sum of what is lost of its small
/// numbers, as multiples of the scale.
struct Patch {
    largest: f32,
    lost: f64,
    most: f64,
    /// All bits of the scaled numbers before the point, and whether there are any after it.
    integers: u64,
    is_whole: bool,
    /// Whether each row, and each column, has an element that is not zero.
    rows: [bool; PATCH_ROWS],
    cols: [bool; PATCH_COLS],
}

/// A bit for each of every sixteen.
fn words(filled: &[bool]) -> Vec<u16> {
    let word = |sixteen: &[bool]| (0..16).map(|i| u16::from(sixteen[i]) << i).sum();
    filled.chunks(16).map(word).collect()
}

impl Given<F16> {
    /// Calls `act` with a patch's number, a place in it, and the element there and its slices.
    fn for_each(&self, numbers: &[f32], mut act: impl FnMut(usize, [usize; 2], f32, [F16; 2])) {
        let MatrixBatch { rows, cols, count, pitch, step, .. } = self.source;
        let (rows, cols) = (rows as usize, cols as usize);
        let (down, across) = patches(rows as u32, cols as u32);
        for i in 0..count as usize {
            for row in 0..rows {
                for col in 0..cols {
                    let x = numbers[i * step as usize + row * pitch as usize + col];
                    let slices = [0, 1].map(|s| {
                        self.planes()[((i * SLICES + s) * rows + row) * plane_pitch(cols) + col]
                    });
                    let patch = (i * down as usize + row / PATCH_ROWS) * across as usize;
                    let place = [row % PATCH_ROWS, col % PATCH_COLS];
                    act(patch + col / PATCH_COLS, place, x, slices);
                }
            }
        }
    }

    /// Checks the planes and scales.
    fn check_halves(&mut self) {
        let numbers = self.numbers_mut().to_vec();
        let patches = self.source.patches as usize;
        let patch = || Patch {
            largest: 0.0,
            lost: 0.0,
            most: 0.0,
            integers: 0,
            is_whole: true,
            rows: [false; PATCH_ROWS],
            cols: [false; PATCH_COLS],
        };
        let mut of_patches = (0..patches).map(|_| patch()).collect::<Vec<_>>();
        self.for_each(&numbers, |patch, [row, col], x, _| {
            let patch = &mut of_patches[patch];
            if x.is_finite() {
                patch.largest = x.abs().max(patch.largest);
            }
            patch.rows[row] |= x != 0.0;
            patch.cols[col] |= x != 0.0;
        });
        let exponents = of_patches.iter().enumerate().map(|(number, patch)| {
            let written = i32::from(self.ranges[2 * number].to_bits()) & 0x1ff;
            if patch.largest == 0.0 {
                assert_eq!(written, 0, "{number}: of zeros");
                return -110;
            }
            // Powers of two that small have no inverse in f32.
            let largest = f64::from(patch.largest).log2().floor() as i32;
            assert_eq!(written - 256, (largest - 14).max(-110), "{number}: {:e}", patch.largest);
            written - 256
        });
        let exponents = exponents.collect::<Vec<_>>();
        self.for_each(&numbers, |patch, _, x, [first, second]| {
            let (one, other) = (f64::from(first.to_f32()), f64::from(second.to_f32()));
            if !x.is_finite() {
                assert!(one == f64::from(x) || one.is_nan() && x.is_nan(), "{x}: {first:?}");
                assert!(other.is_nan(), "{x}: {second:?}");
                return;
            }
            let scaled = f64::from(x) * 2f64.powi(-exponents[patch]);
            let off = (scaled - one - other).abs();
            assert!(
                (scaled - one).abs() <= 2f64.powi(-11) * scaled.abs() + 2f64.powi(-25),
                "{x:e}"
            );
            if scaled.fract() == 0.0 {
                of_patches[patch].integers |= scaled.abs() as u64;
            } else {
                of_patches[patch].is_whole = false;
            }
            if scaled.abs() >= 2f64.powi(-2) {
                assert!(off <= 2f64.powi(-23) * scaled.abs(), "{x:e}: {first:?} {second:?}");
            } else if x != 0.0 {
                assert!(off <= 2f64.powi(-25), "{x:e}: {first:?} {second:?}");
                let patch = &mut of_patches[patch];
                // With the term that a product leaves out.
                let lost = off + (scaled - one).abs() * 2f64.powi(-11);
                patch.lost += lost;
                if lost > 0.0 || scaled.abs() < 2f64.powi(-60) {
                    patch.most += lost.max(2f64.powi(-60));
                }
            }
        });
        for (number, patch) in of_patches.into_iter().enumerate() {
            let lost =
                f64::from(f32::from_bits(u32::from(self.ranges[2 * number + 1].to_bits()) << 16));
            assert!(
                lost >= patch.lost * (1.0 - 2f64.powi(-20)),
                "{number}: {lost:e} of {:e}",
                patch.lost
            );
            // It is rounded up to eight bits.
            let most = patch.most * (1.0 + 2f64.powi(-6));
            assert!(lost <= most, "{number}: {lost:e}, at most {most:e}");
            let unit = self.ranges[2 * number].to_bits() >> 9;
            if patch.largest > 0.0 {
                let want = match patch.is_whole {
                    true => 1 + patch.integers.trailing_zeros().min(14) as u16,
                    false => 0,
                };
                assert_eq!(unit, want, "{number}: {:b}", patch.integers);
            }
            let filled = &self.ranges[2 * patches + (WORDS - 2) * number..][..WORDS - 2];
            let filled = filled.iter().map(|word| word.to_bits()).collect::<Vec<_>>();
            assert_eq!(filled, [words(&patch.rows), words(&patch.cols)].concat(), "{number}");
        }
    }
}

#[test]
fn slices_are_the_number() {
    once!(SOURCES);
    // Of one size; of all sizes one by one; with special ones among them.
    let spread = (0..2000u32).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b1)));
    let all = spread.filter(|x| x.is_finite()).collect::<Vec<_>>();
    let near = all.iter().map(|x| f32::from_bits(x.to_bits() & 0x83ff_ffff | 0x3c00_0000));
    let near = near.collect::<Vec<_>>();
    let wide = all.iter().map(|x| f32::from_bits(x.to_bits() & 0x8fff_ffff | 0x3000_0000));
    let wide = wide.collect::<Vec<_>>();
    let small = all.iter().map(|x| f32::from_bits(x.to_bits() & 0x81ff_ffff)).collect::<Vec<_>>();
    let mut special = near.clone();
    let specials = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE];
    specials.iter().enumerate().for_each(|(i, x)| special[37 * i] = *x);
    let zeros = vec![0.0];
    // Some rows and columns are zeros. And multiples of 8, of 1/4 (which the scale makes larger),
    // and numbers with more bits than an integer of the scale.
    let sparse = (0..3600).map(|i| if i % 61 < 48 || i > 2000 { 0.0 } else { near[i % 600] });
    let sparse = sparse.collect::<Vec<_>>();
    let eights = (0..997).map(|i| (i * 8 % 3000) as f32).collect::<Vec<_>>();
    let quarters = (0..997).map(|i| (i % 50) as f32 / 4.0).collect::<Vec<_>>();
    let long = (0..997).map(|i| (i * 73) as f32).collect::<Vec<_>>();
    let orders = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];
    let shapes = [
        ([1, 1, 1], [1, 3, 300]),
        ([2, 65, 40], [1, 130, 256]),
        ([1, 64, 256], [3, 31, 7]),
        ([1, 65, 515], [1, 8, 2048]),
    ];
    let kinds = [near, wide, all, small, special, zeros, sparse, eights, quarters, long];
    for (number, (of_a, of_b)) in shapes.into_iter().enumerate() {
        for (gap, start) in [(0, 0), (1, 1), (3, 2), (4, 3)] {
            for kind in 0..kinds.len() {
                let mut a = Given::<F16>::new(of_a, gap, start, &kinds[kind]);
                let mut b = Given::new(of_b, gap, 3 - start, &kinds[(kind + 1) % kinds.len()]);
                cut((&split_f16x2, 8), [&mut a, &mut b], orders[(number + gap) % 4]);
                a.check_halves();
                b.check_halves();
            }
        }
    }
}
