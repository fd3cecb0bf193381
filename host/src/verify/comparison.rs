//! How C compares with the product in float64: counts, largest errors, the worst element.

/// How C compares with the product in float64.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Elements compared: all of C.
    pub elements: u64,
    /// Of these, elements that must be NaN. Where they are, there is no error to be measured.
    pub nan: u64,
    /// Of these, elements that are not finite, whose sums may have become too large. There is no error either.
    pub overflowing: u64,
    /// Elements outside the bound, NaN among them.
    pub wrong: u64,
    /// The largest `|c - ref|`; NaN if one is.
    pub max_abs_err: f64,
    /// The largest `|c - ref| / bound`; NaN if one is. At most 1 if nothing is wrong.
    pub max_err_over_bound: f64,
    /// The sum of all `|c - ref|` squared; NaN if one is. Of elements that must be NaN or infinite nothing is added.
    pub squared_err: f64,
    /// The sum of all `|ref|` squared, of the same elements.
    pub squared_ref: f64,
    /// The element furthest outside its bound, or nearest to it; `None` if C is empty.
    pub worst: Option<Worst>,
}

/// An element of C beside what it should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worst {
    /// Its row.
    pub row: usize,
    /// Its column.
    pub col: usize,
    /// What C has there.
    pub got: f64,
    /// What the product in float64 is there.
    pub want: f64,
    /// `|got - want| / bound`.
    pub err_over_bound: f64,
}

impl Worst {
    pub(super) fn new(row: usize, col: usize, got: f64, want: f64, bound: f64) -> Self {
        // 0 / 0 is no error at all: an exact element under an exact criterion.
        let err = distance(got, want);
        let err_over_bound = if err == 0.0 { 0.0 } else { err / bound };
        Worst { row, col, got, want, err_over_bound }
    }
}

/// What counts as right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// Within the a-priori bound of a float32 sum.
    Bound,
    /// Equal, bit for bit but for the sign of zero.
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

    /// Has something been compared, and is all of it right?
    pub fn passed(&self) -> bool {
        self.elements > 0 && self.wrong == 0
    }

    /// `|C - ref| / |ref|` in the Frobenius norm: how exact the arithmetic is. A float32 sum of a few thousand products
    /// shows about 1e-6, whatever their order; one of TF32 shows 3e-4, and may still be within the bound. 0 where
    /// everything is exact, a product of zeros too.
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

    /// The comparison of two parts of C together.
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

/// `|got - want|`; zero where both are NaN, or the same infinity.
pub(super) fn distance(got: f64, want: f64) -> f64 {
    let same = got == want || got.is_nan() && want.is_nan();
    if same { 0.0 } else { (got - want).abs() }
}

/// `err <= bound`, for a finite error: an infinite one is wrong even under an infinite bound, which an
/// infinite operand makes. No error at all is right under any, NaN included.
pub(super) fn within(err: f64, bound: f64) -> bool {
    err == 0.0 || err.is_finite() && err <= bound
}

/// The larger; NaN if one is (`f64::max` would drop it).
pub(super) fn max_or_nan(a: f64, b: f64) -> f64 {
    if a.is_nan() || a >= b { a } else { b }
}

/// The one further from its bound; NaN is furthest, and of equals the first.
pub(super) fn worse(a: Option<Worst>, b: Option<Worst>) -> Option<Worst> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let a_stays = a.err_over_bound.is_nan() || a.err_over_bound >= b.err_over_bound;
            Some(if a_stays { a } else { b })
        }
        (a, b) => a.or(b),
    }
}
