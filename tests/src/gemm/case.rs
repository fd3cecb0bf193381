//! A product to be tested.

use std::fmt;

use host::Activation;

use super::{Data, Number, Operand, Order, Place, Random};

/// The side of C to which a bias is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Element i to row i.
    Row,
    /// Element j to column j.
    Col,
}

impl Side {
    /// Both.
    pub const BOTH: [Side; 2] = [Side::Row, Side::Col];
}

/// `C = activation(alpha A B + beta C + bias)`, with its operands: A and B of `T`, C and the bias
/// of `O`.
#[derive(Clone, Debug)]
pub struct Case<T, O = T> {
    /// m x k.
    pub a: Operand<T>,
    /// k x n.
    pub b: Operand<T>,
    /// m x n: the old C.
    pub c: Operand<O>,
    /// The factor of A B.
    pub alpha: f64,
    /// The factor of C.
    pub beta: f64,
    /// The bias.
    pub bias: Option<(Side, Vec<O>)>,
    /// The activation.
    pub activation: Activation,
}

impl<T: Number> Case<T> {
    /// `C = A B`. C is full of NaN before.
    pub fn plain(a: Operand<T>, b: Operand<T>, c: Place) -> Self {
        let c = Operand::noise((a.size.0, b.size.1), c);
        Case { a, b, c, alpha: 1.0, beta: 0.0, bias: None, activation: Activation::Identity }
    }

    /// `C = A B` of dense row-major matrices.
    pub fn dense([m, n, k]: [usize; 3], data: Data, seed: u64) -> Self {
        let rows = |size| Place::dense(size, Order::Rows);
        let a = Operand::draw((m, k), rows((m, k)), data, seed);
        let b = Operand::draw((k, n), rows((k, n)), data, !seed);
        Case::plain(a, b, rows((m, n)))
    }

    /// `C = A B` of these elements: of A row by row, of B in that order.
    pub fn of([m, n, k]: [usize; 3], a: &[T], (b, order): (&[T], Order)) -> Self {
        let index = |p: usize, col: usize| match order {
            Order::Rows => p * n + col,
            Order::Columns => col * k + p,
        };
        let place = Place::dense((k, n), order);
        let b = Operand::new((k, n), place, |_, p, col| b[index(p, col)]);
        Case::plain(Operand::dense((m, k), a), b, Place::dense((m, n), Order::Rows))
    }

    /// `C = A B` of matrices in any order, padded or not, with any misalignment.
    pub fn anywhere([m, n, k]: [usize; 3], data: Data, random: &mut Random) -> Self {
        let mut place = |size| {
            let place = Place::padded(size, random.choose(&Order::BOTH), random.below(5));
            let place = place.at(random.below(4));
            if random.below(2) == 0 { place } else { place.transposed() }
        };
        let [a, b, c] = [(m, k), (k, n), (m, n)].map(&mut place);
        let a = Operand::draw((m, k), a, data, random.next());
        let b = Operand::draw((k, n), b, data, random.next());
        Case::plain(a, b, c)
    }

    /// The case with a drawn C, and these scalars.
    pub fn scaled(self, alpha: f64, beta: f64, data: Data, seed: u64) -> Self {
        let c = Operand::draw(self.c.size, self.c.place, data, seed.wrapping_add(1 << 32));
        Case { c, alpha, beta, ..self }
    }

    /// The case with a drawn bias.
    pub fn biased(self, side: Side, data: Data, seed: u64) -> Self {
        let (rows, cols) = self.c.size;
        let len = if side == Side::Row { rows } else { cols };
        let dense = Place::dense((1, len), Order::Rows);
        let bias = Operand::draw((1, len), dense, data, seed.wrapping_add(2 << 32)).values();
        Case { bias: Some((side, bias)), ..self }
    }

    /// The case with an activation.
    pub fn activated(self, activation: Activation) -> Self {
        Case { activation, ..self }
    }

    /// The case with C at another place: C's elements, and NaN around them.
    pub fn c_at(self, place: Place) -> Self {
        let c = Operand::new(self.c.size, place, |i, row, col| self.c.get(i, row, col));
        Case { c, ..self }
    }

    /// The same product with the numbers of C and the bias in the type of the sums.
    pub fn widened(&self) -> Case<T, T::Sum> {
        let Case { a, b, alpha, beta, activation, .. } = self.clone();
        let c = self.c.widened();
        let bias = self.bias.as_ref();
        let bias = bias.map(|(side, bias)| (*side, bias.iter().map(|x| x.widened()).collect()));
        Case { a, b, c, alpha, beta, bias, activation }
    }

    /// m, n, k.
    pub fn sizes(&self) -> [usize; 3] {
        [self.c.size.0, self.c.size.1, self.a.size.1]
    }

    /// Whether A and B are multiplied. Otherwise they are not read.
    pub fn multiplies(&self) -> bool {
        self.a.size.1 > 0 && T::Sum::nearest(self.alpha).into() != 0.0
    }
}

/// Everything but the elements.
impl<T: Number, O: Number> fmt::Display for Case<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let [m, n, k] = [self.c.size.0, self.c.size.1, self.a.size.1];
        let Case { alpha, beta, activation, .. } = self;
        write!(f, "{} m={m} n={n} k={k} alpha={alpha:?} beta={beta:?}, {activation}", T::name())?;
        if let Some((side, _)) = self.bias {
            write!(f, ", bias per {side:?}")?;
        }
        for (name, place) in [("A", self.a.place), ("B", self.b.place), ("C", self.c.place)] {
            let Place { strides, offset, count, step, transposed } = place;
            write!(f, ", {name} {strides:?} at {offset}")?;
            if let Some(count) = count {
                write!(f, " x {count} step {step}")?;
            }
            if transposed {
                write!(f, " as a transpose")?;
            }
        }
        Ok(())
    }
}
