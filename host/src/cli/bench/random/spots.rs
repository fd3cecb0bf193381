//! Some elements of C, compared with the product in float64: the crossings of some rows and
//! columns.

use host::{BufferView, Shape, baseline::DenseBatch, memory};
use rand::{SeedableRng, seq::index};
use rand_chacha::ChaCha8Rng;

use super::{
    super::verdict::How,
    pool::{Places, Repeated},
};
use crate::cli::{
    Failure,
    args::Verify,
    types::Value,
    verification::{After, Verification},
};

/// The most rows, and columns.
const LINES: usize = 16;
/// The fewest, if the matrix has more.
const LEAST_LINES: usize = 2;
/// The most elements of all these rows of A together, if they are more than the fewest. Also of B's
/// columns.
const ELEMENTS: usize = 1 << 21;

/// The elements of C that are compared. The crossings of rows and columns are a product themselves:
/// of these rows of A and these columns of B.
pub(super) struct Spots {
    /// For a batch three products: the first, one in the middle, and the last.
    products: Vec<usize>,
    rows: Vec<usize>,
    cols: Vec<usize>,
}

impl Spots {
    pub(super) fn of(product: &DenseBatch, seed: u64) -> Self {
        let DenseBatch { shape, count, .. } = *product;
        let mut products = vec![0, count / 2, count.saturating_sub(1)];
        products.dedup();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let most = Spots::lines(shape.k());
        let [rows, cols] = [shape.m(), shape.n()].map(|size| lines(&mut rng, size, most));
        Spots { products, rows, cols }
    }

    fn lines(k: usize) -> usize {
        (ELEMENTS / k.max(1)).clamp(LEAST_LINES, LINES)
    }

    /// The most host memory in bytes that comparing a product takes.
    pub(super) fn bytes<T>(product: &DenseBatch) -> u64 {
        let DenseBatch { shape, count, .. } = *product;
        // A and B, of real numbers and of integers, and one product of each in float64.
        let lines = Spots::lines(shape.k()) * shape.k();
        (2 * 2 * size_of::<T>() * lines * count.min(3) + 2 * 8 * lines) as u64
    }

    /// The sizes of the product of these rows and columns.
    fn shape(&self, k: usize) -> host::Result<Shape> {
        Shape::new(self.rows.len() as u64, self.cols.len() as u64, k as u64)
    }

    /// These rows of A and columns of B, each matrix row-major, for each product.
    pub(super) fn operands<T: Value>(
        &self,
        product: &DenseBatch,
        places: Places,
        numbers: &Repeated<T>,
    ) -> host::Result<Vec<[Vec<T>; 2]>> {
        let DenseBatch { shape, .. } = *product;
        let [of_a, of_b, _] = product.strides();
        let [a, b] = places.operands(0).map(|range| range.start);
        let k = shape.k();
        let mut all = Vec::new();
        for &index in &self.products {
            host::check_interrupt()?;
            let (a, b) = (a + index * shape.a_len(), b + index * shape.b_len());
            let mut of_rows = memory::reserved(self.rows.len() * k)?;
            for row in &self.rows {
                let start = a + row * of_a[0];
                of_rows.extend((0..k).map(|p| numbers.at(start + p * of_a[1])));
            }
            let mut of_cols = memory::reserved(self.cols.len() * k)?;
            for p in 0..k {
                let start = b + p * of_b[0];
                of_cols.extend(self.cols.iter().map(|col| numbers.at(start + col * of_b[1])));
            }
            all.push([of_rows, of_cols]);
        }
        Ok(all)
    }

    /// The elements of C at the crossings, in the order of [`Spots::operands`].
    pub(super) fn read<O: Value>(
        &self,
        product: &DenseBatch,
        c: BufferView<O>,
    ) -> host::Result<Vec<Vec<O>>> {
        let DenseBatch { shape, .. } = *product;
        let mut all = Vec::new();
        for &index in &self.products {
            let mut spots = Vec::new();
            for row in &self.rows {
                // One copy for a row.
                let start = index * shape.c_len() + row * shape.n();
                let row = c.view(start, shape.n())?.to_vec()?;
                spots.extend(self.cols.iter().map(|&col| row[col]));
            }
            all.push(spots);
        }
        Ok(all)
    }

    /// Compares C's elements with those of the product of `operands`, with an epilogue of `drawn`
    /// numbers.
    pub(super) fn compare<T: Value, O: Value>(
        &self,
        product: &DenseBatch,
        operands: &[[Vec<T>; 2]],
        drawn: &Repeated<T>,
        c: &[Vec<O>],
        how: How,
    ) -> Result<Vec<Verification>, Failure> {
        let How { compute, epilogue, criterion } = how;
        let DenseBatch { shape: all, .. } = *product;
        let bias = self.cols.iter().map(|&col| drawn.bias(col)).collect::<Vec<_>>();
        let shape = self.shape(all.k())?;
        let mut found = Vec::new();
        for (&index, ([a, b], c)) in self.products.iter().zip(operands.iter().zip(c)) {
            let of_row = |row: &usize| {
                let start = index * all.c_len() + row * all.n();
                self.cols.iter().map(move |col| drawn.before(start + col))
            };
            let before = self.rows.iter().flat_map(of_row).collect::<Vec<_>>();
            let after = After { epilogue, bias: &bias, before: &before, scaling: None };
            let abc = (&a[..], &b[..], &c[..]);
            let verify = Verify::Full;
            found.extend(Verification::after(verify, shape, abc, after, compute, criterion, 0)?);
        }
        Ok(found)
    }
}

/// Random rows or columns, in order. The last one is always among them, because tiles are partial
/// there.
fn lines(rng: &mut ChaCha8Rng, size: usize, most: usize) -> Vec<usize> {
    let others = size.saturating_sub(1);
    let mut lines = index::sample(rng, others, others.min(most - 1)).into_vec();
    lines.sort_unstable();
    lines.push(others);
    lines
}

#[cfg(test)]
mod tests {
    use host::{Activation, Compute, Device, Gemm, baseline::Epilogue, verify::Criterion};

    use super::{
        super::super::case::{Case, Sets, Views},
        *,
    };
    use crate::cli::bench::random::pool::{Needed, Pool};

    /// C of a pool's operands, computed by the library.
    fn product(
        transposed: [bool; 2],
        count: usize,
        [m, n, k]: [u64; 3],
        epilogue: Epilogue,
    ) -> (Case, Places, Pool<f32, f32>) {
        let device = Device::cpu();
        let shape = Shape::new(m, n, k).unwrap();
        let product = DenseBatch { shape, transposed, count };
        let case = Case { group: None, draw: None, product, epilogues: vec![epilogue] };
        let places = Places::new::<f32, f32>(&case, &device).unwrap();
        let needed = Needed::for_all([places].into_iter());
        let pool = Pool::new(&device, needed, 3, true).unwrap();
        (case, places, pool)
    }

    /// Launches the case with an epilogue on integers.
    fn launch(case: &Case, places: Places, pool: &mut Pool<f32, f32>, epilogue: Epilogue) {
        let sets = pool.integers_of(places).unwrap();
        let Views { a, b, bias, c, .. } = sets.start(epilogue.beta != 0.0).unwrap();
        let stream = Device::cpu().stream().unwrap();
        case.product.launch(&epilogue.of(Gemm::new(), bias, None), &stream, a, b, c).unwrap();
    }

    /// Whether C is the product of integers with an epilogue.
    fn passes(case: &Case, places: Places, pool: &mut Pool<f32, f32>, epilogue: Epilogue) -> bool {
        let spots = Spots::of(&case.product, 1);
        let c = pool.integers_of(places).unwrap().into_views(0).unwrap().c;
        let c = spots.read(&case.product, c.as_view()).unwrap();
        let integers = pool.integers.as_ref().unwrap();
        let known = spots.operands(&case.product, places, integers).unwrap();
        let how = How { compute: Compute::Native, epilogue, criterion: Criterion::Exact };
        let found = spots.compare(&case.product, &known, integers, &c, how).unwrap();
        assert_eq!(found.len(), 3);
        found.iter().all(Verification::passed)
    }

    #[test]
    fn what_is_right_passes_and_a_wrong_element_of_a_spot_does_not() {
        for transposed in [[false, false], [true, false], [false, true], [true, true]] {
            let plain = Epilogue::PLAIN;
            let (case, places, mut pool) = product(transposed, 5, [40, 33, 21], plain);
            let spots = Spots::of(&case.product, 1);
            assert_eq!((spots.products.len(), spots.rows.len(), spots.cols.len()), (3, 16, 16));
            launch(&case, places, &mut pool, plain);
            assert!(passes(&case, places, &mut pool, plain));
            // The last product's last element.
            let mut change = |by: f32| {
                let mut c = pool.integers_of(places).unwrap().into_views(0).unwrap().c;
                let last = c.len() - 1;
                let was = c.as_view().to_vec().unwrap()[last];
                c.write(last, &[was + by]).unwrap();
                passes(&case, places, &mut pool, plain)
            };
            assert!(!change(1.0) && change(-1.0) && !change(f32::NAN));
        }
    }

    /// The epilogue of a shape is compared, with its bias and its old C, and what lacks a part of
    /// it is wrong.
    #[test]
    fn an_epilogue_is_compared() {
        let activation = Activation::Relu;
        let all = Epilogue { alpha: 0.5, beta: 1.0, bias: true, activation, ..Epilogue::PLAIN };
        let (case, places, mut pool) = product([false, true], 5, [40, 33, 21], all);
        launch(&case, places, &mut pool, all);
        assert!(passes(&case, places, &mut pool, all));
        for other in [
            Epilogue { alpha: 1.0, ..all },
            Epilogue { beta: 0.0, ..all },
            Epilogue { bias: false, ..all },
            Epilogue { activation: Activation::Identity, ..all },
        ] {
            assert!(!passes(&case, places, &mut pool, other), "{other}");
            launch(&case, places, &mut pool, other);
            assert!(!passes(&case, places, &mut pool, all), "{other}");
            launch(&case, places, &mut pool, all);
        }
    }

    #[test]
    fn sets_of_operands_do_not_overlap() {
        let (case, places, mut pool) = product([false, false], 2, [3, 5, 7], Epilogue::PLAIN);
        let mut sets = pool.of(Places::new::<f32, f32>(&case, &Device::cpu()).unwrap());
        assert_eq!(sets.count(), 1);
        let Views { a, b, bias, c, .. } = sets.views(0).unwrap();
        assert!(bias.is_none());
        assert_eq!((a.len(), b.len(), c.len()), (42, 70, 30));
        let [a, b] = places.operands(0);
        assert!(a.end <= b.start && b.start.is_multiple_of(64));
        let [next, _] = places.operands(1);
        assert!(b.end <= next.start && next.start.is_multiple_of(64));
    }

    #[test]
    fn a_long_k_is_compared_at_few_elements() {
        let shape = Shape::new(200, 1, 10_000_000).unwrap();
        let spots = Spots::of(&DenseBatch::one(shape), 1);
        assert_eq!((spots.rows.len(), spots.rows[1]), (2, 199));
        assert_eq!(spots.cols, [0]);
        assert!(Spots::bytes::<f32>(&DenseBatch::one(shape)) < 1 << 30);
    }
}
