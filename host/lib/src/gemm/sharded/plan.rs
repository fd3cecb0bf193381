//! The plan of a product over several places, as data.

use std::{fmt, ops::Range};

use simt::types::MultipliesTo;

use crate::{
    devices::ShardLayout,
    gemm::{Choice, Output, Plan, Scalar},
    shape::Shape,
};

/// The types of a product over several devices: those of [`Scalar`], whose partial products are
/// products, too.
pub trait ShardedScalar<O: Output = Self>:
    Scalar<O> + Scalar<<Self as MultipliesTo<O>>::Sums>
{
}

impl<T, O: Output> ShardedScalar<O> for T where T: Scalar<O> + Scalar<<T as MultipliesTo<O>>::Sums> {}

/// The type of the sums.
pub(super) type Sums<T, O> = <T as MultipliesTo<O>>::Sums;

/// How a product is computed over several places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Each place computes its part of C, and gets the rows of A and the columns of B that it has
    /// not.
    AllGather,
    /// The same, and all comes before the product: for products of which a part would fill no GPU.
    GatherFirst,
    /// Each place computes the partial products whose range of k it holds. Those of a part of C
    /// are added where it is.
    ReduceScatter,
    /// Of a replicated C each place computes some rows, and sends them to the others.
    SplitRows,
    /// The first place computes all of C.
    OnePlace,
}

/// The plan of a product over several places: panels that travel, products and sums, each at a
/// place and after the steps that it needs.
///
/// It displays its steps by place, with predicted times.
#[derive(Debug)]
pub struct ShardedPlan {
    pub(super) algorithm: Algorithm,
    pub(super) choice: Choice,
    pub(super) shape: Shape,
    pub(super) layouts: [ShardLayout; 3],
    pub(super) steps: Vec<Step>,
    /// Elements of the buffers of each place.
    pub(super) scratch: Vec<Scratch>,
    pub(super) predicted_us: f64,
}

/// The buffers of a place besides the shards, by their lengths in elements.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// For panels of A and of B.
    pub(super) operands: Vec<usize>,
    /// For a C that is stored elsewhere.
    pub(super) result: usize,
    /// For partial products: those that are added here, and those that travel.
    pub(super) sums: [usize; 3],
}

/// Lanes of a place: products and sums run on the first, panels of A and B and sums come on the
/// second, parts of C on the third.
pub(super) const LANES: usize = 3;
pub(super) const COMPUTE: usize = 0;
pub(super) const OPERANDS: usize = 1;
pub(super) const RESULTS: usize = 2;

/// A step.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) place: usize,
    pub(super) lane: usize,
    /// The steps that it waits for, besides those before it on its lane.
    pub(super) after: Vec<usize>,
    pub(super) what: What,
    /// The predicted time in microseconds.
    pub(super) us: f64,
}

/// What a step does. Its memory is of its place, but for what a transfer reads.
#[derive(Debug)]
pub(super) enum What {
    /// A copy from this place or another.
    Transfer { from: Rect, to: Rect },
    /// A product of parts of A and B, or a partial product of them. `at`: the first row and column
    /// of all of C that it computes.
    Multiply { operands: [Rect; 2], c: Rect, at: [usize; 2], plan: Box<Plan> },
    /// Partial products are added.
    Sum { partials: Rect, c: Rect, plan: Box<Plan> },
}

/// A memory of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Memory {
    A,
    B,
    C,
    /// A panel of A or B.
    Operand(usize),
    Result,
    Sums(usize),
}

/// Rows and columns in a memory: the first element, elements from one row to the next, and the
/// size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rect {
    pub(super) place: usize,
    pub(super) memory: Memory,
    pub(super) start: usize,
    pub(super) pitch: usize,
    pub(super) size: [usize; 2],
    /// Which panel is to be there, of those that a buffer takes in turn.
    pub(super) panel: usize,
}

impl Rect {
    /// From the first element to the end of the last.
    pub(super) fn range(&self) -> Range<usize> {
        let [rows, cols] = self.size;
        let len = if rows * cols == 0 { 0 } else { (rows - 1) * self.pitch + cols };
        self.start..self.start + len
    }

    pub(super) fn strides(&self) -> [usize; 2] {
        [self.pitch, 1]
    }
}

impl ShardedPlan {
    /// How it computes the product.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The choice for the whole product, which all places follow.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The predicted time in microseconds.
    pub fn predicted_us(&self) -> f64 {
        self.predicted_us
    }

    /// Copies between two places.
    pub fn transfers(&self) -> usize {
        let travels = |step: &&Step| matches!(&step.what, What::Transfer { from, to } if from.place != to.place);
        self.steps.iter().filter(travels).count()
    }

    /// Launches that multiply, over all places.
    pub fn products(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.what, What::Multiply { .. })).count()
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Algorithm::AllGather => "all-gather + product",
            Algorithm::GatherFirst => "all-gather, then product",
            Algorithm::ReduceScatter => "product + reduce-scatter",
            Algorithm::SplitRows => "rows of C, sent to all",
            Algorithm::OnePlace => "on the first place",
        })
    }
}

impl fmt::Display for ShardedPlan {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = match (self.algorithm, self.transfers()) {
            (Algorithm::AllGather, 0) => "no communication".to_owned(),
            (algorithm, _) => algorithm.to_string(),
        };
        let [a, b, c] = &self.layouts;
        writeln!(f, "{} over {} places: {name}", self.shape, self.scratch.len())?;
        writeln!(
            f,
            "kernel {}, for the whole product: {}",
            self.choice.entry.name(),
            self.choice.reason
        )?;
        writeln!(f, "A: {a}\nB: {b}\nC: {c}")?;
        for place in 0..self.scratch.len() {
            let of = |lanes: &[usize]| {
                let steps = self
                    .steps
                    .iter()
                    .filter(|step| step.place == place && lanes.contains(&step.lane));
                steps.fold((0, 0.0), |(count, us), step| (count + 1, us + step.us))
            };
            let ((launches, launched_us), (copies, copied_us)) =
                (of(&[COMPUTE]), of(&[OPERANDS, RESULTS]));
            writeln!(
                f,
                "place {place}: {launches} products and sums, predicted {launched_us:.0} us; {copies} copies, {copied_us:.0} us"
            )?;
        }
        write!(f, "predicted {:.0} us in all", self.predicted_us)
    }
}
