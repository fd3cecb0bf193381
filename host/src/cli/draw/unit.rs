//! One unit for all speeds of a picture.

/// The unit of a picture's speeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::cli) struct Unit {
    pub(in crate::cli) name: &'static str,
    /// The unit in GFLOP/s.
    gflops: f64,
}

impl Unit {
    /// The unit for a picture with this highest speed in GFLOP/s.
    pub(in crate::cli) fn of(fastest: f64) -> Self {
        match fastest >= 1000.0 {
            true => Unit { name: "TFLOP/s", gflops: 1000.0 },
            false => Unit { name: "GFLOP/s", gflops: 1.0 },
        }
    }

    /// A speed in GFLOP/s, in this unit.
    pub(in crate::cli) fn value(self, gflops: f64) -> f64 {
        gflops / self.gflops
    }

    /// A speed in GFLOP/s, in this unit, with as many digits as a reader compares.
    pub(in crate::cli) fn words(self, gflops: f64) -> String {
        let value = self.value(gflops);
        let decimals = match value {
            fast if fast >= 99.95 => 0,
            fast if fast >= 9.995 => 1,
            slow if slow >= 0.9995 => 2,
            _ => 3,
        };
        format!("{value:.decimals$} {}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_speeds_of_a_picture_are_in_one_unit() {
        let gpu = Unit::of(66_900.0);
        let words = [66_900.0, 5_073.6, 999.9, 3.0].map(|gflops| gpu.words(gflops));
        assert_eq!(words, ["66.9 TFLOP/s", "5.07 TFLOP/s", "1.00 TFLOP/s", "0.003 TFLOP/s"]);
        let cpu = Unit::of(120.4);
        let words = [120.4, 19.4, 0.05].map(|gflops| cpu.words(gflops));
        assert_eq!(words, ["120 GFLOP/s", "19.4 GFLOP/s", "0.050 GFLOP/s"]);
    }
}
