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
        kernels: &["async_copy"],
        operator: "halve-index",
        line: "tiles_b.copy_async::<4>(to, b, from, row_inside && self.cols_inside[0]);",
        from: "0",
        to: "0 / 2",
        reason: "the half of zero",
    },
];
