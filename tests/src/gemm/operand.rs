//! Matrices among NaN: between guard bands, padded, strided, in batches.

use std::ops::Range;

use super::{Data, Number, Random, bytes};

/// Elements of a guard band: more than the rows and columns of the largest tile that exceed a small
/// matrix, and a multiple of sixteen bytes.
pub const BAND: usize = 4096;

/// The elements that are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Those of a row.
    Rows,
    /// Those of a column.
    Columns,
}

impl Order {
    /// Both.
    pub const BOTH: [Order; 2] = [Order::Rows, Order::Columns];
}

/// The places of the elements of a matrix, or of a batch of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Elements between rows, and between columns.
    pub strides: [usize; 2],
    /// Elements between the guard band, which ends at a multiple of sixteen bytes, and the first
    /// element.
    pub offset: usize,
    /// The number of matrices. `None` if it is no batch.
    pub count: Option<usize>,
    /// Elements from one of them to the next.
    pub step: usize,
    /// Whether its view is made as the transpose of its transpose.
    pub transposed: bool,
}

impl Place {
    /// With these strides.
    pub fn strided(strides: [usize; 2]) -> Self {
        Place { strides, offset: 0, count: None, step: 0, transposed: false }
    }

    /// A matrix of that size without padding.
    pub fn dense(size: (usize, usize), order: Order) -> Self {
        Place::padded(size, order, 0)
    }

    /// With this padding after every row, or column.
    pub fn padded((rows, cols): (usize, usize), order: Order, padding: usize) -> Self {
        Place::strided(match order {
            Order::Rows => [cols + padding, 1],
            Order::Columns => [1, rows + padding],
        })
    }

    /// With this misalignment.
    pub fn at(self, offset: usize) -> Self {
        Place { offset, ..self }
    }

    /// This many matrices, with this distance.
    pub fn batch(self, count: usize, step: usize) -> Self {
        Place { count: Some(count), step, ..self }
    }

    /// The same place, viewed as the transpose of its transpose.
    pub fn transposed(self) -> Self {
        Place { transposed: true, ..self }
    }

    /// Elements from the first to the last of a matrix, with both.
    pub fn extent(&self, (rows, cols): (usize, usize)) -> usize {
        match (rows, cols) {
            (0, _) | (_, 0) => 0,
            _ => (rows - 1) * self.strides[0] + (cols - 1) * self.strides[1] + 1,
        }
    }
}

/// A matrix, or a batch of matrices, and the memory around it.
#[derive(Clone, Debug)]
pub struct Operand<T> {
    /// Rows and columns.
    pub size: (usize, usize),
    /// Their places.
    pub place: Place,
    /// A band, the elements with what is between them, a band.
    pub stored: Vec<T>,
}

impl<T: Number> Operand<T> {
    /// An operand whose elements are all NaN, and everything around it.
    pub fn noise(size: (usize, usize), place: Place) -> Self {
        let mut operand = Operand { size, place, stored: Vec::new() };
        let len = BAND + place.offset + operand.extent() + BAND;
        // Different NaNs around different operands.
        let pool = T::noise();
        let mut start = (len * 31 + size.0 * 7 + size.1) % pool.len();
        while operand.stored.len() < len {
            let part = &pool[start..];
            let wanted = len - operand.stored.len();
            operand.stored.extend_from_slice(&part[..part.len().min(wanted)]);
            start = 0;
        }
        operand
    }

    /// An operand whose element (row, col) of product i is `value(i, row, col)`.
    pub fn new(
        size: (usize, usize),
        place: Place,
        mut value: impl FnMut(usize, usize, usize) -> T,
    ) -> Self {
        let mut operand = Operand::noise(size, place);
        for (i, row, col) in operand.places() {
            let at = operand.index(i, row, col);
            operand.stored[at] = value(i, row, col);
        }
        operand
    }

    /// Row-major and dense, with these elements, row by row.
    ///
    /// # Panics
    /// If their number is not that of a matrix of that size.
    pub fn dense(size: (usize, usize), values: &[T]) -> Self {
        let mut operand = Operand::noise(size, Place::dense(size, Order::Rows));
        let range = operand.range();
        operand.stored[range].copy_from_slice(values);
        operand
    }

    /// An operand of random numbers.
    pub fn draw(size: (usize, usize), place: Place, data: Data, seed: u64) -> Self {
        let mut random = Random::new(seed);
        Operand::new(size, place, |_, _, _| random.number(data))
    }

    /// Row-major and dense, with these elements.
    pub fn rows<const COLS: usize>(rows: &[[T; COLS]]) -> Self {
        let size = (rows.len(), COLS);
        Operand::new(size, Place::dense(size, Order::Rows), |_, row, col| rows[row][col])
    }

    /// The same numbers at the same places in the type of the sums, with its own NaNs around them.
    pub fn widened(&self) -> Operand<T::Sum> {
        Operand::new(self.size, self.place, |i, row, col| self.get(i, row, col).widened())
    }

    /// The number of matrices.
    pub fn count(&self) -> usize {
        self.place.count.unwrap_or(1)
    }

    /// Elements from the first of the first matrix to the last of the last.
    pub fn extent(&self) -> usize {
        match (self.count(), self.place.extent(self.size)) {
            (0, _) | (_, 0) => 0,
            (count, one) => (count - 1) * self.place.step + one,
        }
    }

    /// The coordinates of its elements: product, row, column.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize, usize)> + use<T> {
        let (count, (rows, cols)) = (self.count(), self.size);
        (0..count * rows * cols).map(move |n| (n / (rows * cols), n / cols % rows, n % cols))
    }

    /// The index of an element in `stored`.
    pub fn index(&self, i: usize, row: usize, col: usize) -> usize {
        let [between_rows, between_cols] = self.place.strides;
        let first = BAND + self.place.offset + i * self.place.step;
        first + row * between_rows + col * between_cols
    }

    /// The range of its elements, from the first to the last.
    pub fn range(&self) -> Range<usize> {
        let start = BAND + self.place.offset;
        start..start + self.extent()
    }

    /// Whether it is one dense row-major matrix, so that its elements are a slice.
    fn is_slice(&self) -> bool {
        self.place.count.is_none() && self.place.strides == [self.size.1, 1]
    }

    /// An element.
    pub fn get(&self, i: usize, row: usize, col: usize) -> T {
        self.stored[self.index(i, row, col)]
    }

    /// Changes an element.
    pub fn set(&mut self, i: usize, row: usize, col: usize, value: T) {
        let index = self.index(i, row, col);
        self.stored[index] = value;
    }

    /// All of its elements: product by product, row by row.
    pub fn values(&self) -> Vec<T> {
        if self.is_slice() {
            return self.stored[self.range()].to_vec();
        }
        self.places().map(|(i, row, col)| self.get(i, row, col)).collect()
    }

    /// Checks that `after` is equal to what is stored, bit by bit: elements, padding and bands.
    ///
    /// # Errors
    /// The first place that differs.
    pub fn unchanged(&self, after: &[T]) -> Result<(), String> {
        same(&self.stored, after, self.range().start)
    }

    /// The elements of `after`: product by product, row by row. Padding and bands must be equal to
    /// what is stored.
    ///
    /// # Errors
    /// The first place that differs.
    pub fn written(&self, after: &[T]) -> Result<Vec<T>, String> {
        let mut expected = self.stored.clone();
        if self.is_slice() {
            let elements = &after[self.range()];
            expected[self.range()].copy_from_slice(elements);
            return same(&expected, after, self.range().start).map(|()| elements.to_vec());
        }
        let elements = self.places().map(|(i, row, col)| {
            let at = self.index(i, row, col);
            expected[at] = after[at];
            after[at]
        });
        let elements = elements.collect();
        same(&expected, after, self.range().start).map(|()| elements)
    }

    /// Elements of one matrix.
    pub fn len(&self) -> usize {
        self.size.0 * self.size.1
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Refuses memory that differs in a bit. `first` is the index of its first element.
fn same<T: Number>(expected: &[T], found: &[T], first: usize) -> Result<(), String> {
    // All at once first: element by element would take most of the tests' time.
    if bytes(expected) == bytes(found) {
        return Ok(());
    }
    let differs = |at: &usize| bytes(&expected[*at..=*at]) != bytes(&found[*at..=*at]);
    let at = (0..expected.len().min(found.len())).find(differs).unwrap_or_default();
    Err(format!("{} elements from its first", at as i128 - first as i128))
}
