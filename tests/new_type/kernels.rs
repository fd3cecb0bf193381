//! The kernels of a type of the test's own: the main loop of the family, for this type.

use super::{collective::stored::Stored, device::*, gemm::main_loop::multiply, params::GemmParams};
use crate::sixteenths::Sixteenths;

impl Stored for Sixteenths {
    type Real = f32;

    fn widened(self) -> f32 {
        self.to_f32()
    }

    fn nearest(value: f32) -> Self {
        Sixteenths::from_f32(value)
    }
}

#[kernel(block = (256), shared = 2 * 32 * 68 * size_of::<f32>(), barriers = 1)]
pub fn wide(
    problem: GemmParams,
    a: In<Sixteenths>,
    b: In<Sixteenths>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let tiles = (shared![f32; 32, 68], shared![f32; 32, 68]);
    multiply::<_, _, 64, 4, 16, 32, 68>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

#[kernel(block = (256), shared = 2 * 32 * 68 * size_of::<f32>(), barriers = 1)]
pub fn narrow(
    problem: GemmParams,
    a: In<Sixteenths>,
    b: In<Sixteenths>,
    mut c: Out<Sixteenths>,
    bias: In<Sixteenths>,
) {
    let tiles = (shared![f32; 32, 68], shared![f32; 32, 68]);
    multiply::<_, _, 64, 4, 16, 32, 68>(&problem, (&a, &b), (&mut c, &bias), tiles);
}
