//! Mutants that are no mistakes: each was looked at, and each says why nothing can find it.

use super::mutant::Mutant;

/// A change of a kernel that makes no difference. It names no line number: those change.
#[derive(Debug)]
pub struct Equivalent {
    /// The kernels that it is true of.
    pub kernels: &'static [&'static str],
    /// The operator's name.
    pub operator: &'static str,
    /// The line that it stands in, without the space around it.
    pub line: &'static str,
    /// What stood there.
    pub from: &'static str,
    /// What stands there now.
    pub to: &'static str,
    /// Why it makes no difference.
    pub reason: &'static str,
}

impl Equivalent {
    /// Is this mutant of this kernel the one that is meant?
    pub fn is(&self, kernel: &str, mutant: &Mutant) -> bool {
        self.kernels.contains(&kernel)
            && self.operator == mutant.operator.name()
            && (self.line, self.from, self.to) == (&mutant.line, &mutant.from, &mutant.to)
    }
}

/// All of them. One that is found after all, or that is no mutant any more, is an error.
pub const EQUIVALENT: &[Equivalent] = &[
    Equivalent {
        kernels: &["async_copy"],
        operator: "weaken-comparison",
        line: "if phases - phase > STAGES as u32 - 1 {",
        from: "phases - phase > STAGES as u32 - 1",
        to: "phases - phase >= STAGES as u32 - 1",
        reason: "one more phase is begun past the last: zeros, which nobody reads",
    },
    Equivalent {
        kernels: &["async_copy"],
        operator: "weaken-comparison",
        line: "wide: n % 4 == 0 && b.is_aligned128(),",
        from: "n % 4 == 0",
        to: "n % 4 <= 0",
        reason: "no remainder is below zero",
    },
    Equivalent {
        kernels: &["async_copy"],
        operator: "strengthen-comparison",
        line: "wide: n % 4 == 0 && b.is_aligned128(),",
        from: "n % 4 == 0",
        to: "false",
        reason: "the same elements come one by one, only slower",
    },
    Equivalent {
        kernels: &["vectorised", "warp_tiled"],
        operator: "weaken-comparison",
        line: "let wide_a = k % 4 == 0 && a.is_aligned128();",
        from: "k % 4 == 0",
        to: "k % 4 <= 0",
        reason: "no remainder is below zero",
    },
    Equivalent {
        kernels: &["vectorised", "warp_tiled"],
        operator: "strengthen-comparison",
        line: "let wide_a = k % 4 == 0 && a.is_aligned128();",
        from: "k % 4 == 0",
        to: "false",
        reason: "the same elements come one by one, only slower",
    },
    Equivalent {
        kernels: &["vectorised", "warp_tiled"],
        operator: "weaken-comparison",
        line: "let wide_b = n % 4 == 0 && b.is_aligned128();",
        from: "n % 4 == 0",
        to: "n % 4 <= 0",
        reason: "no remainder is below zero",
    },
    Equivalent {
        kernels: &["vectorised", "warp_tiled"],
        operator: "strengthen-comparison",
        line: "let wide_b = n % 4 == 0 && b.is_aligned128();",
        from: "n % 4 == 0",
        to: "false",
        reason: "the same elements come one by one, only slower",
    },
    Equivalent {
        kernels: &["vectorised", "warp_tiled"],
        operator: "weaken-comparison",
        line: "let wide = n % 4 == 0 && c.is_aligned128();",
        from: "n % 4 == 0",
        to: "n % 4 <= 0",
        reason: "no remainder is below zero",
    },
    Equivalent {
        kernels: &["vectorised", "warp_tiled"],
        operator: "strengthen-comparison",
        line: "let wide = n % 4 == 0 && c.is_aligned128();",
        from: "n % 4 == 0",
        to: "false",
        reason: "the same elements come one by one, only slower",
    },
    Equivalent {
        kernels: &["async_copy"],
        operator: "index-plus-one",
        line: "tiles_b.copy_async::<4>(to, b, from, row_inside && self.cols_inside[0]);",
        from: "0",
        to: "0 + 1",
        reason: "n is a multiple of four here: four columns are inside together",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "strengthen-comparison",
        line: "now = if now + stage < end { now + stage } else { 0 };",
        from: "now + stage < end",
        to: "now + stage + 1 < end",
        reason: "stages begin further than one element apart",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "remove-wait",
        line: "1 => copies::wait_group::<1>(),",
        from: "copies::wait_group::<1>()",
        to: "()",
        reason: "no kernel has three stages",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "wait-for-less",
        line: "1 => copies::wait_group::<1>(),",
        from: "1",
        to: "{ 1 + 1 }",
        reason: "no kernel has three stages",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "index-plus-one",
        line: "let even = start.is_multiple_of(FOUR) && problem.c[0].is_multiple_of(FOUR as u64);",
        from: "0",
        to: "0 + 1",
        reason: "no stride is one and a multiple of four: the same elements come one by one, only slower",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "weaken-comparison",
        line: "let wide = problem.c[1] == 1 && even && c.is_aligned128();",
        from: "problem.c[1] == 1",
        to: "problem.c[1] <= 1",
        reason: "only where C has a single column are columns none apart, and no four are inside",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "strengthen-comparison",
        line: "let wide = problem.c[1] == 1 && even && c.is_aligned128();",
        from: "problem.c[1] == 1",
        to: "false",
        reason: "the same elements come one by one, only slower",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "index-minus-one",
        line: "let wide = problem.c[1] == 1 && even && c.is_aligned128();",
        from: "1",
        to: "1 - 1",
        reason: "no stride is one and a multiple of four: the same elements come one by one, only slower",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "halve-index",
        line: "let wide = problem.c[1] == 1 && even && c.is_aligned128();",
        from: "1",
        to: "1 / 2",
        reason: "no stride is one and a multiple of four: the same elements come one by one, only slower",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "weaken-comparison",
        line: "self.problem.bias == NO_BIAS && self.problem.activation == IDENTITY",
        from: "self.problem.bias == NO_BIAS",
        to: "self.problem.bias <= NO_BIAS",
        reason: "no number of an unsigned type is below zero",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "strengthen-comparison",
        line: "self.problem.bias == NO_BIAS && self.problem.activation == IDENTITY",
        from: "self.problem.bias == NO_BIAS",
        to: "false",
        reason: "asked for each element, there is nothing to do all the same",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "weaken-comparison",
        line: "self.problem.bias == NO_BIAS && self.problem.activation == IDENTITY",
        from: "self.problem.activation == IDENTITY",
        to: "self.problem.activation <= IDENTITY",
        reason: "no number of an unsigned type is below zero",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "strengthen-comparison",
        line: "self.problem.bias == NO_BIAS && self.problem.activation == IDENTITY",
        from: "self.problem.activation == IDENTITY",
        to: "false",
        reason: "asked for each element, there is nothing to do all the same",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "drop-operand",
        line: "if row >= m || col >= n {",
        from: "|| col >= n",
        to: "",
        reason: "no column outside is written either way: this only spares looking at each",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "strengthen-comparison",
        line: "if row >= m || col >= n {",
        from: "col >= n",
        to: "col > n",
        reason: "no column outside is written either way: this only spares looking at each",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "strengthen-comparison",
        line: "let wide = self.wide && col + FOUR <= n;",
        from: "col + FOUR <= n",
        to: "col + FOUR < n",
        reason: "the same elements come one by one, only slower",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "weaken-comparison",
        line: "RELU if value < T::ZERO => T::ZERO,",
        from: "value < T::ZERO",
        to: "value <= T::ZERO",
        reason: "zero becomes zero",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "strengthen-comparison",
        line: "let along_outer = strides.0 == 1;",
        from: "strides.0 == 1",
        to: "false",
        reason: "the same elements come one by one, only slower",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "strengthen-comparison",
        line: "wide: aligned && inside == FOUR as u32,",
        from: "inside == FOUR as u32",
        to: "false",
        reason: "the same elements come one by one, only slower",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "weaken-comparison",
        line: "let x = if self > $end { $end } else { self };",
        from: "self > $end",
        to: "self >= $end",
        reason: "the end becomes the end",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "weaken-comparison",
        line: "let x = if x < -$end { -$end } else { x };",
        from: "x < -$end",
        to: "x <= (-$end)",
        reason: "the end becomes the end",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "drop-operand",
        line: "let erf = if erf > 1.0 || self > $end { 1.0 } else { erf };",
        from: "|| self > $end",
        to: "",
        reason: "1 + erf is rounded to 2 from there on, whatever the polynomials' last digit",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "weaken-comparison",
        line: "let erf = if erf > 1.0 || self > $end { 1.0 } else { erf };",
        from: "erf > 1.0",
        to: "erf >= 1.0",
        reason: "one becomes one",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "weaken-comparison",
        line: "let erf = if erf > 1.0 || self > $end { 1.0 } else { erf };",
        from: "self > $end",
        to: "self >= $end",
        reason: "1 + erf is rounded to 2 at the end too",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "weaken-comparison",
        line: "if erf < -1.0 || self < -$end { -1.0 } else { erf }",
        from: "erf < -1.0",
        to: "erf <= (-1.0)",
        reason: "one becomes one",
    },
    Equivalent {
        kernels: &["gemm"],
        operator: "weaken-comparison",
        line: "if erf < -1.0 || self < -$end { -1.0 } else { erf }",
        from: "self < -$end",
        to: "self <= (-$end)",
        reason: "at the very end GELU differs by less than it may be off",
    },
];
