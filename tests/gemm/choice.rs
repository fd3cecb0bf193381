//! The choice of a kernel: a launch uses the kernel that was named before.

use host::{
    Gemm, Layout, Matrix, Shape,
    gemm::{Request, Scalar, Target},
};
use tests::gemm::each_device;

/// A, B and C dense, all in this layout.
fn request(shape: [usize; 3], layout: Layout) -> Request {
    let [m, n, k] = shape;
    let strides = [(m, k), (k, n), (m, n)].map(|(rows, cols)| match layout {
        Layout::RowMajor => [cols, 1],
        Layout::ColMajor => [1, rows],
    });
    let shape = Shape::new(m as u64, n as u64, k as u64).unwrap();
    Request::new(shape, strides)
}

/// The fastest kernel, and each that is asked for by name. For column-major matrices A and B are
/// swapped, so that lessons' kernels can run, and tiles count along the other sides.
#[test]
fn what_is_chosen_is_what_runs() {
    each_device("choice::what_is_chosen_is_what_runs", |device, count| {
        let (stream, target) = (device.stream().unwrap(), Target::of(&device));
        for layout in [Layout::RowMajor, Layout::ColMajor] {
            for shape @ [m, n, k] in [[40, 70, 30], [700, 70, 30], [70, 700, 30], [1300, 1100, 40]]
            {
                let request = request(shape, layout);
                let matrix = |rows, cols| {
                    let leading = if layout == Layout::RowMajor { cols } else { rows };
                    Matrix::<f32>::with_layout(&device, rows, cols, layout, leading).unwrap()
                };
                let (a, b, mut c) = (matrix(m, k), matrix(k, n), matrix(m, n));
                let mut same = |gemm: Gemm<f32>| {
                    let said = gemm.choose(&request, &target).unwrap();
                    let taken = gemm.run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
                    let names = [said, taken].map(|choice| choice.entry.name());
                    assert!(
                        names[0] == names[1] && said.reason == taken.reason,
                        "{device}: {names:?}"
                    );
                };
                same(Gemm::new());
                for name in f32::kernels().map(|kernel| kernel.entry.name()) {
                    // The largest only where it takes no time, and those that take such operands.
                    let gemm = Gemm::new().kernel(name).unwrap();
                    if (m < 1000 || device.is_cuda()) && gemm.choose(&request, &target).is_ok() {
                        same(gemm);
                    }
                }
                *count += 1;
            }
        }
    });
}
