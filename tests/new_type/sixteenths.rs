//! The type: its row, in the words of the table, and what its bits mean.

use simt::{Element, element_type, types::NumberFormat};

element_type! { {}
    Q16: Sixteenths = "q16" signed(16) "i2" "int16" 0 1 20, f32 => [Sixteenths, f32];
}

/// A multiple of 1/16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Sixteenths(pub i16);

// SAFETY: sixteen bits; every pattern is a number.
unsafe impl Element for Sixteenths {}
// SAFETY: as above.
unsafe impl bytemuck::Zeroable for Sixteenths {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Sixteenths {}

impl Sixteenths {
    pub fn to_f32(self) -> f32 {
        f32::from(self.0) / 16.0
    }

    /// The nearest; beyond the ends the end.
    pub fn from_f32(value: f32) -> Self {
        Sixteenths(NumberFormat::signed(16).nearest(f64::from(value) * 16.0) as i16)
    }
}
