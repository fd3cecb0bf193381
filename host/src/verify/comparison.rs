//! The comparison of C with the product in float64: counts, largest errors, the worst element.

/// The comparison of C with the product in float64.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Elements compared: all of C.
    pub elements: u64,
    /// Among them, elements that must be NaN. They have no error.
    pub nan: u64,
    /// Among them, elements that are not finite, because their sums may have overflowed. They have
    /// no error.
    pub overflowing: u64,
    /// Elements outside the bound, NaN among them.
    pub wrong: u64,
    /// The largest `|c - ref|`; NaN if one is.
    pub max_abs_err: f64,
    /// The largest `|c - ref| / bound`; NaN if one is. At most 1 if nothing is wrong.
    pub max_err_over_bound: f64,
    /// The sum of all `|c - ref|` squared. NaN if one is. Elements that must be NaN or infinite add
    /// nothing.
    pub squared_err: f64,
    /// The sum of all `|ref|` squared, of the same elements.
    pub squared_ref: f64,
    /// The element with the largest error relative to its bound. `None` if C is empty.
    pub worst: Option<Worst>,
}

/// An element of C, and its reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worst {
    /// Its row.
    pub row: usize,
    /// Its column.
    pub col: usize,
    /// The element of C.
    pub got: f64,
    /// The element of the product in float64.
    pub want: f64,
    /// `|got - want| / bound`.
    pub err_over_bound: f64,
}

impl Worst {
    pub(super) fn new(row: usize, col: usize, got: f64, want: f64, bound: f64) -> Self {
        // 0 / 0 is no error: an exact element under an exact criterion.
        let err = distance(got, want);
        let err_over_bound = if err == 0.0 { 0.0 } else { err / bound };
        Worst { row, col, got, want, err_over_bound }
    }
}

/// The criterion for a right element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// Within the a-priori bound of an f32 sum.
    Bound,
    /// Equal, bit for bit apart from the sign of zero.
    Exact,
}

impl Comparison {
    pub(super) const NOTHING: Comparison = Comparison {
        elements: 0,
        nan: 0,
        overflowing: 0,
        wrong: 0,
        max_abs_err: 0.0,
        max_err_over_bound: 0.0,
        squared_err: 0.0,
        squared_ref: 0.0,
        worst: None,
    };

    /// Whether something was compared, and all of it is right.
    pub fn passed(&self) -> bool {
        self.elements > 0 && self.wrong == 0
    }

    /// `|C - ref| / |ref|` in the Frobenius norm: the accuracy of the arithmetic. An f32 sum of a
    /// few thousand products has about 1e-6, in any order. A tf32 sum has 3e-4, and may still be
    /// within the bound. 0 if everything is exact, also for a product of zeros.
    pub fn relative_err(&self) -> f64 {
        if self.squared_err == 0.0 { 0.0 } else { (self.squared_err / self.squared_ref).sqrt() }
    }

    pub(super) fn add(&mut self, element: Worst, bound: f64) {
        let err = distance(element.got, element.want);
        self.elements += 1;
        self.nan += u64::from(element.want.is_nan());
        self.wrong += u64::from(!within(err, bound));
        self.max_abs_err = max_or_nan(self.max_abs_err, err);
        self.max_err_over_bound = max_or_nan(self.max_err_over_bound, element.err_over_bound);
        if element.want.is_finite() {
            self.squared_err += err * err;
            self.squared_ref += element.want * element.want;
        }
        self.worst = worse(self.worst, Some(element));
    }

    /// Merges the comparisons of two parts of C.
    #[must_use]
    pub fn merge(mut self, other: Comparison) -> Comparison {
        self.elements += other.elements;
        self.nan += other.nan;
        self.overflowing += other.overflowing;
        self.wrong += other.wrong;
        self.max_abs_err = max_or_nan(self.max_abs_err, other.max_abs_err);
        self.max_err_over_bound = max_or_nan(self.max_err_over_bound, other.max_err_over_bound);
        self.squared_err += other.squared_err;
        self.squared_ref += other.squared_ref;
        self.worst = worse(self.worst, other.worst);
        self
    }
}

/// `|got - want|`. Zero if both are NaN, or the same infinity.
pub(super) fn distance(got: f64, want: f64) -> f64 {
    let same = got == want || got.is_nan() && want.is_nan();
    if same { 0.0 } else { (got - want).abs() }
}

/// `err <= bound`, for a finite error. An infinite error is wrong even under the infinite bound of
/// an infinite operand. An error of zero is right under any bound, also NaN.
pub(super) fn within(err: f64, bound: f64) -> bool {
    err == 0.0 || err.is_finite() && err <= bound
}

/// The larger one. NaN if one is (`f64::max` would drop it).
pub(super) fn max_or_nan(a: f64, b: f64) -> f64 {
    if a.is_nan() || a >= b { a } else { b }
}

/// The one with the larger error relative to its bound. NaN is the largest. Of equal ones, the
/// first.
pub(super) fn worse(a: Option<Worst>, b: Option<Worst>) -> Option<Worst> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let a_stays = a.err_over_bound.is_nan() || a.err_over_bound >= b.err_over_bound;
            Some(if a_stays { a } else { b })
        }
        (a, b) => a.or(b),
    }
}
