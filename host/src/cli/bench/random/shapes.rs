//! Random shapes of products, the same number of each class.

use host::{
    Shape,
    baseline::{DenseBatch, Epilogue},
    verify,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The most operations of a product.
const MOST_FLOP: f64 = 2e12;
/// The most elements of A, B and C together: 2 GiB of f32.
const MOST_ELEMENTS: u64 = 1 << 29;
/// The alignment in bytes of the rows of an aligned shape.
const ALIGNMENT: usize = 16;

/// One of so many shapes has an epilogue. There are seven classes and two halves of each, so each
/// has its share.
const EVERY: usize = 3;

/// A class of shapes. `--help` and docs/guide/command-line.md state the ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// m = n = k.
    Square,
    /// m or n is small.
    Skinny,
    /// C is small, k is long.
    LongK,
    /// m is large, n and k are small.
    Tall,
    /// Many small products in one launch.
    Batched,
    /// The products of a transformer's layer.
    Transformer,
    /// A convolution as a product (im2col): a row of A for each pixel, a column of B for each
    /// filter.
    Convolution,
}

impl Class {
    /// All classes, in the order in which they are drawn.
    pub(super) const ALL: [Class; 7] = [
        Class::Square,
        Class::Skinny,
        Class::LongK,
        Class::Tall,
        Class::Batched,
        Class::Transformer,
        Class::Convolution,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Class::Square => "square",
            Class::Skinny => "skinny",
            Class::LongK => "long-k",
            Class::Tall => "tall",
            Class::Batched => "batched",
            Class::Transformer => "transformer",
            Class::Convolution => "convolution",
        }
    }

    /// The number of products, and m, n and k of each.
    fn draw(self, from: &mut Generator) -> (usize, [usize; 3]) {
        match self {
            Class::Square => (1, [from.size(64, 8192); 3]),
            Class::Skinny => {
                let (thin, wide, k) = (from.size(1, 64), from.wide(), from.wide());
                (1, if from.coin() { [thin, wide, k] } else { [wide, thin, k] })
            }
            Class::LongK => {
                (1, [from.size(1, 256), from.size(1, 256), from.size(10_000, 10_000_000)])
            }
            Class::Tall => {
                (1, [from.size(16_384, 1 << 20), from.size(4, 1024), from.size(4, 1024)])
            }
            Class::Batched => {
                let count = from.count(16, 8192);
                (count, [from.size(4, 256), from.size(4, 256), from.size(4, 256)])
            }
            Class::Transformer => from.transformer(),
            Class::Convolution => {
                let (images, side) = (from.size(1, 64), from.count(7, 224));
                let (channels, filters) = (from.size(3, 512), from.size(16, 512));
                let window = [1, 3, 5, 7][from.0.random_range(0..4)];
                (1, [images * side * side, filters, channels * window * window])
            }
        }
    }
}

/// Draws one shape.
struct Generator<'a>(&'a mut ChaCha8Rng, Sizes);

/// The range of sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Bytes of an element of A and B.
    pub(super) element_bytes: usize,
    /// Draw the cube root of each size: shapes for the CPU.
    pub(super) small: bool,
    /// Whether sums have fractions: those of integers have fewer epilogues.
    pub(super) is_float: bool,
    /// Sizes are multiples of this many elements: 1 for a shape that is not aligned.
    granule: usize,
}

impl Sizes {
    pub(super) fn new(element_bytes: usize, small: bool) -> Self {
        Sizes { element_bytes, small, is_float: true, granule: 1 }
    }

    /// Elements in 16 bytes.
    fn aligned(self) -> usize {
        ALIGNMENT / self.element_bytes
    }
}

impl Generator<'_> {
    /// An integer whose logarithm is uniform.
    fn count(&mut self, from: usize, to: usize) -> usize {
        let (low, high) = ((from as f64).ln(), (to as f64).ln());
        let value = self.0.random_range(low..=high).exp();
        let value = if self.1.small { value.cbrt() } else { value };
        (value.round() as usize).clamp(1, to)
    }

    /// A size, drawn as [`count`](Self::count). For an aligned shape it is the nearest multiple.
    fn size(&mut self, from: usize, to: usize) -> usize {
        let granule = self.1.granule;
        let value = self.count(from.max(granule), to);
        let nearest = (value + granule / 2) / granule * granule;
        nearest.clamp(granule, (to / granule * granule).max(granule))
    }

    fn wide(&mut self) -> usize {
        self.size(256, 16_384)
    }

    fn coin(&mut self) -> bool {
        self.0.random()
    }

    fn transformer(&mut self) -> (usize, [usize; 3]) {
        let which = self.0.random_range(0..6);
        if which < 4 {
            let (tokens, width) = (self.size(16, 16_384), self.size(512, 8192));
            let size = match which {
                // Queries, keys and values; the projection; up and down.
                0 => [tokens, 3 * width, width],
                1 => [tokens, width, width],
                2 => [tokens, 4 * width, width],
                _ => [tokens, width, 4 * width],
            };
            return (1, size);
        }
        // For each head the scores, and the weighted values.
        let heads = self.count(8, 128);
        let (tokens, head) = (self.size(128, 4096), self.size(32, 128));
        (heads, if which == 4 { [tokens, tokens, head] } else { [tokens, head, tokens] })
    }
}

/// A shape that was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drawn {
    /// Counted from 1.
    pub(super) number: usize,
    pub(super) class: Class,
    /// Whether m, n, k and all leading dimensions are multiples of 16 bytes. Otherwise a leading
    /// dimension is not.
    pub(super) aligned: bool,
    pub(super) product: DenseBatch,
    /// Every third shape has one.
    pub(super) epilogue: Epilogue,
}

/// The first `count` shapes of a seed. Each shape has a random stream of its own, so the first
/// shapes are the same for every `count`. The classes alternate, and every second shape of a class
/// is aligned.
pub(super) fn draw(seed: u64, count: usize, sizes: Sizes) -> host::Result<Vec<Drawn>> {
    (1..=count).map(|number| draw_one(seed, number, sizes)).collect()
}

fn draw_one(seed: u64, number: usize, sizes: Sizes) -> host::Result<Drawn> {
    let (round, place) = ((number - 1) / Class::ALL.len(), (number - 1) % Class::ALL.len());
    // In even rounds the classes at even places have aligned shapes, in odd rounds the others.
    let (class, aligned) = (Class::ALL[place], (round + place).is_multiple_of(2));
    let granule = if aligned { sizes.aligned() } else { 1 };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number as u64);
    loop {
        let mut from = Generator(&mut rng, Sizes { granule, ..sizes });
        let (count, [m, n, k]) = class.draw(&mut from);
        let transposed = [from.coin(), from.coin()];
        let shape = Shape::new(m as u64, n as u64, k as u64)?;
        let product = DenseBatch { shape, transposed, count };
        if is_within_limits(&product) && is_aligned(&product, sizes) == aligned {
            let epilogue = draw_epilogue(seed, number, sizes.is_float);
            return Ok(Drawn { number, class, aligned, product, epilogue });
        }
    }
}

/// The epilogue of the shape with that number: of every third. It has a random stream of its own,
/// so that shapes are the same with and without.
///
/// Sums of integers have no bias and no activation, and integer factors: one of two has beta.
fn draw_epilogue(seed: u64, number: usize, is_float: bool) -> Epilogue {
    let mut epilogue = Epilogue::PLAIN;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(1 << 63 | number as u64);
    if !is_float {
        let has_beta = number.is_multiple_of(EVERY) && rng.random_range(0..2) == 0;
        return Epilogue { beta: if has_beta { 1.0 } else { 0.0 }, ..Epilogue::PLAIN };
    }
    let activations = verify::activations().collect::<Vec<_>>();
    while number.is_multiple_of(EVERY) && epilogue.is_plain() {
        // Three of four have a bias. One of four has alpha, and one beta.
        let mut quarter = || rng.random_range(0..4) == 0;
        let [no_bias, alpha, beta] = [quarter(), quarter(), quarter()];
        epilogue = Epilogue {
            alpha: if alpha { 0.5 } else { 1.0 },
            beta: if beta { 1.0 } else { 0.0 },
            bias: !no_bias,
            activation: activations[rng.random_range(0..activations.len())],
            scales: None,
        };
    }
    epilogue
}

fn is_within_limits(product: &DenseBatch) -> bool {
    let elements = product.lens().map_or(u64::MAX, |lens| lens.iter().map(|&len| len as u64).sum());
    product.flop() <= MOST_FLOP && elements <= MOST_ELEMENTS
}

/// Whether all leading dimensions are multiples of 16 bytes.
fn is_aligned(product: &DenseBatch, sizes: Sizes) -> bool {
    let leading = product.strides().map(|strides| strides[0].max(strides[1]));
    leading.iter().all(|leading| leading.is_multiple_of(sizes.aligned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_integers_have_beta_alone() {
        let sizes = Sizes { is_float: false, ..Sizes::new(1, true) };
        let drawn = draw(7, 90, sizes).unwrap();
        let beta = drawn.iter().filter(|drawn| drawn.epilogue.beta == 1.0).count();
        assert!((8..=22).contains(&beta), "about half of thirty: {beta}");
        for Drawn { epilogue, .. } in drawn {
            assert_eq!(Epilogue { beta: 0.0, ..epilogue }, Epilogue::PLAIN);
        }
    }

    fn sizes(drawn: &Drawn) -> [usize; 4] {
        let DenseBatch { shape, count, .. } = drawn.product;
        [count, shape.m(), shape.n(), shape.k()]
    }

    #[test]
    fn a_seed_fixes_the_shapes_and_more_of_them_begin_alike() {
        let of = |seed, count| draw(seed, count, Sizes::new(4, false)).unwrap();
        let all = of(7, 200);
        assert_eq!(all, of(7, 200));
        assert_eq!(all[..50], of(7, 50));
        assert_ne!(all, of(8, 200));
        // Pinned: if the shapes changed, a published seed could not be reproduced.
        let seen = all[..7].iter().map(sizes).collect::<Vec<_>>();
        assert_eq!(seen, PINNED);
    }

    const PINNED: [[usize; 4]; 7] = [
        [1, 7884, 7884, 7884],
        [1, 1231, 3, 722],
        [1, 8, 8, 8_649_976],
        [1, 1_001_755, 112, 51],
        [1180, 108, 76, 212],
        [1, 3137, 2681, 10_724],
        [1, 18_928, 64, 1764],
    ];

    #[test]
    fn each_class_and_half_has_the_same_number() {
        for element_bytes in [4, 2] {
            let all = draw(1, 14 * 20, Sizes::new(element_bytes, false)).unwrap();
            for class in Class::ALL {
                for aligned in [true, false] {
                    let of = |drawn: &&Drawn| drawn.class == class && drawn.aligned == aligned;
                    assert_eq!(all.iter().filter(of).count(), 20, "{class:?} {aligned}");
                }
            }
            let layout = |drawn: &Drawn| drawn.product.transposed;
            for transposed in [[false, false], [false, true], [true, false], [true, true]] {
                assert!(all.iter().filter(|drawn| layout(drawn) == transposed).count() > 40);
            }
        }
        // Also for a count that is no multiple of the number of classes.
        let all = draw(1, 200, Sizes::new(4, false)).unwrap();
        assert_eq!(all.iter().filter(|drawn| drawn.aligned).count(), 100);
        for class in Class::ALL {
            let count = all.iter().filter(|drawn| drawn.class == class).count();
            assert!((28..=29).contains(&count), "{class:?}: {count}");
        }
    }

    #[test]
    fn an_aligned_shape_has_multiples_of_sixteen_bytes_and_another_has_a_row_that_is_none() {
        for element_bytes in [4, 2] {
            let granule = 16 / element_bytes;
            for drawn in draw(3, 700, Sizes::new(element_bytes, false)).unwrap() {
                let [_, m, n, k] = sizes(&drawn);
                let [a, b] = drawn.product.transposed;
                let leading = [if a { m } else { k }, if b { k } else { n }, n];
                let whole = |sizes: &[usize]| sizes.iter().all(|size| size % granule == 0);
                assert_eq!(whole(&leading), drawn.aligned, "{drawn:?}");
                assert!(!drawn.aligned || whole(&[m, n, k]), "{drawn:?}");
            }
        }
    }

    #[test]
    fn shapes_keep_within_the_limits_and_the_ranges_of_their_class() {
        let mut longest = 0;
        for drawn in draw(5, 2100, Sizes::new(2, false)).unwrap() {
            let [count, m, n, k] = sizes(&drawn);
            let elements = count * (m * k + k * n + m * n);
            let flop = 2.0 * count as f64 * m as f64 * n as f64 * k as f64;
            assert!(elements <= 1 << 29 && flop <= 2e12, "{drawn:?}");
            let right = match drawn.class {
                Class::Square => m == n && n == k && (64..=8192).contains(&m),
                Class::Skinny => m.min(n) <= 64 && m.max(n) >= 256 && (256..=16_384).contains(&k),
                Class::LongK => m.max(n) <= 256 && (10_000..=10_000_000).contains(&k),
                Class::Tall => (16_384..=1 << 20).contains(&m) && n.max(k) <= 1024,
                Class::Batched => (16..=8192).contains(&count) && m.max(n).max(k) <= 256,
                Class::Transformer => count == 1 && m <= 16_384 || (8..=128).contains(&count),
                Class::Convolution => n <= 512 && k <= 512 * 49,
            };
            assert!(right, "{drawn:?}");
            if drawn.class == Class::LongK {
                longest = longest.max(k);
            }
        }
        assert!(longest > 5_000_000, "{longest}");
    }

    #[test]
    fn every_third_shape_has_an_epilogue_in_each_class_and_half() {
        let all = draw(9, 42 * 10, Sizes::new(2, false)).unwrap();
        let with = all.iter().filter(|drawn| !drawn.epilogue.is_plain()).collect::<Vec<_>>();
        for class in Class::ALL {
            for aligned in [true, false] {
                let of = |drawn: &&&Drawn| drawn.class == class && drawn.aligned == aligned;
                assert_eq!(with.iter().filter(of).count(), 10, "{class:?} {aligned}");
            }
        }
        let share = |of: fn(&Epilogue) -> bool| {
            with.iter().filter(|drawn| of(&drawn.epilogue)).count() as f64 / with.len() as f64
        };
        assert!((0.6..0.9).contains(&share(|epilogue| epilogue.bias)));
        assert!((0.15..0.4).contains(&share(|epilogue| epilogue.alpha == 0.5)));
        assert!((0.15..0.4).contains(&share(|epilogue| epilogue.beta == 1.0)));
        for activation in verify::activations() {
            assert!(with.iter().any(|drawn| drawn.epilogue.activation == activation));
        }
        // The same for every count.
        let epilogues = |all: &[Drawn]| all.iter().map(|one| one.epilogue).collect::<Vec<_>>();
        let fewer = draw(9, 42, Sizes::new(2, false)).unwrap();
        assert_eq!(epilogues(&fewer), epilogues(&all[..42]));
    }

    #[test]
    fn small_shapes_are_the_cube_roots() {
        for drawn in draw(5, 700, Sizes::new(2, true)).unwrap() {
            let [count, m, n, k] = sizes(&drawn);
            assert!(count <= 20 && m <= 500 && n <= 104 && k <= 400, "{drawn:?}");
        }
    }
}
