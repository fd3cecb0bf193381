//! The first product: matrices of this machine's memory in, and out.
//!
//! ```console
//! $ cargo run -p gpu-gemm --example first_product
//! ```

use gpu_gemm::{Device, Gemm, Result, SliceView, SliceViewMut};

/// C = A B and C = A B / 2 + C, by slices.
pub fn products(device: &Device) -> Result<[Vec<f32>; 2]> {
    // A queue of work on the device.
    let stream = device.stream()?;

    // A is 2 x 3, row by row. B is 3 x 2, column by column, as Fortran and nalgebra have it.
    let a = SliceView::row_major(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3)?;
    let b = SliceView::col_major(&[1.0, 0.0, 1.0, 0.0, 1.0, 1.0], 3, 2)?;

    // What C holds before does not matter: with beta = 0 it is not read.
    let mut c = vec![f32::NAN; 4];
    let choice = Gemm::new().run_slices(&stream, a, b, SliceViewMut::row_major(&mut c, 2, 2)?)?;
    println!("{choice}");

    let mut sum = c.clone();
    let onto = SliceViewMut::row_major(&mut sum, 2, 2)?;
    Gemm::new().alpha(0.5).beta(1.0).run_slices(&stream, a, b, onto)?;
    Ok([c, sum])
}

fn main() -> Result<()> {
    // A GPU where there is one, otherwise this machine's cores.
    let device = Device::best().device;
    let [c, sum] = products(&device)?;
    println!("on {device}");
    println!("A B         = {c:?}");
    println!("A B / 2 + C = {sum:?}");
    Ok(())
}
