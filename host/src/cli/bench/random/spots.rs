//! Some elements of C, compared with the product in float64: the crossings of some rows and
//! columns.

use host::{
    BufferView, Compute, Shape,
    baseline::DenseBatch,
    memory,
    verify::{Criterion, Format},
};
use rand::{SeedableRng, seq::index};
use rand_chacha::ChaCha8Rng;

use super::pool::{Places, Repeated};
use crate::cli::{Failure, args::Verify, types::Value, verification::Verification};

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
    pub(super) fn bytes(product: &DenseBatch) -> u64 {
        let DenseBatch { shape, count, .. } = *product;
        // A and B as f32, of real numbers and of integers, and one product of each in float64.
        let lines = Spots::lines(shape.k()) * shape.k();
        (2 * 2 * size_of::<f32>() * lines * count.min(3) + 2 * 8 * lines) as u64
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
    ) -> host::Result<Vec<[Vec<f32>; 2]>> {
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
    ) -> host::Result<Vec<Vec<f32>>> {
        let DenseBatch { shape, .. } = *product;
        let mut all = Vec::new();
        for &index in &self.products {
            let mut spots = Vec::new();
            for row in &self.rows {
                // One copy for a row.
                let start = index * shape.c_len() + row * shape.n();
                let row = O::widened(c.view(start, shape.n())?.to_vec()?);
                spots.extend(self.cols.iter().map(|&col| row[col]));
            }
            all.push(spots);
        }
        Ok(all)
    }

    /// Compares C's elements with those of the product of `operands`.
    pub(super) fn compare(
        &self,
        operands: &[[Vec<f32>; 2]],
        c: &[Vec<f32>],
        k: usize,
        how: (Compute, Format),
        criterion: Criterion,
    ) -> Result<Vec<Verification>, Failure> {
        let shape = self.shape(k)?;
        let mut found = Vec::new();
        for ([a, b], c) in operands.iter().zip(c) {
            let one = Verification::run(Verify::Full, shape, [a, b, c], how, criterion, 0)?;
            found.extend(one);
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
    use host::{Device, Gemm};

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
    ) -> (Case, Places, Pool<f32, f32>) {
        let device = Device::cpu();
        let shape = Shape::new(m, n, k).unwrap();
        let case =
            Case { group: None, draw: None, product: DenseBatch { shape, transposed, count } };
        let places = Places::new::<f32, f32>(&case, &device).unwrap();
        let needed = Needed::for_all([places].into_iter());
        let pool = Pool::new(&device, needed, 3, true).unwrap();
        (case, places, pool)
    }

    #[test]
    fn what_is_right_passes_and_a_wrong_element_of_a_spot_does_not() {
        for transposed in [[false, false], [true, false], [false, true], [true, true]] {
            let (case, places, mut pool) = product(transposed, 5, [40, 33, 21]);
            let spots = Spots::of(&case.product, 1);
            assert_eq!((spots.products.len(), spots.rows.len(), spots.cols.len()), (3, 16, 16));
            let integers = pool.integers.as_ref().unwrap();
            let known = spots.operands(&case.product, places, integers).unwrap();
            let mut sets = pool.integers_of(places).unwrap();
            let Views { a, b, mut c } = sets.views(0).unwrap();
            let stream = Device::cpu().stream().unwrap();
            case.product.launch(&Gemm::new(), &stream, a, b, c.reborrow()).unwrap();
            let passes = |c: BufferView<f32>| {
                let c = spots.read(&case.product, c).unwrap();
                let how = (Compute::Native, Format::F32);
                let found = spots.compare(&known, &c, 21, how, Criterion::Exact).unwrap();
                assert_eq!(found.len(), 3);
                found.iter().all(Verification::passed)
            };
            assert!(passes(c.as_view()));
            // The last product's last element.
            let last = c.len() - 1;
            let was = c.as_view().to_vec().unwrap()[last];
            c.write(last, &[was + 1.0]).unwrap();
            assert!(!passes(c.as_view()));
            c.write(last, &[f32::NAN]).unwrap();
            assert!(!passes(c.as_view()));
        }
    }

    #[test]
    fn sets_of_operands_do_not_overlap() {
        let (case, places, mut pool) = product([false, false], 2, [3, 5, 7]);
        let mut sets = pool.of(Places::new::<f32, f32>(&case, &Device::cpu()).unwrap());
        assert_eq!(sets.count(), 1);
        let Views { a, b, c } = sets.views(0).unwrap();
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
        assert!(Spots::bytes(&DenseBatch::one(shape)) < 1 << 30);
    }
}
