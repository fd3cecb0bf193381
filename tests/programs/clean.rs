//! The programs' kernels under the checked launch: in every order the result is right, no thread
//! makes a wrong access, and none leaves out a necessary one.

use gpu::checked::lessons::{
    blur, padded::padded16, tiled_transposed::tiled_transposed, vec_add::vec_add,
};
use host::blur::{Params, Size, reference};
use simt::{
    Kernel, LaunchConfig,
    check::{self, CheckableParams, Options},
    checked::{In, Out},
};

/// A checked launch in twelve orders. `right` checks the result of each.
fn is_clean<P: CheckableParams>(
    kernel: &Kernel<P>,
    config: &LaunchConfig,
    params: P,
    mut right: impl FnMut() -> bool,
) {
    for order in host::check::orders(12, 1) {
        let mut options = Options::default();
        options.order = order;
        options.complete = true;
        // SAFETY: the callers' buffers outlive this, have the lengths that the kernels declare, and
        // are used by nobody else. A view's elements are numbers.
        let report = unsafe { check::launch(kernel, config, params, &options) }.unwrap();
        let context = format!("{}, order {order}", kernel.declaration.name);
        assert!(report.findings.is_empty(), "{context}: {:#?}", report.findings);
        assert!(right(), "{context}: another result");
    }
}

#[test]
fn vector_addition() {
    for n in [1, 256, 257, 1000] {
        let (a, b, mut c) = (vec![1.5f32; n], vec![2.25f32; n], vec![0.0f32; n]);
        let c = c.as_mut_ptr();
        let config = LaunchConfig::new([n.div_ceil(256) as u32, 1, 1], [256, 1, 1]);
        // SAFETY: the vectors outlive the launches, and only these use them.
        let params = unsafe {
            (n as u32, In::new(a.as_ptr(), n), In::new(b.as_ptr(), n), Out::uninit(c, n))
        };
        is_clean(&vec_add, &config, params, || {
            // SAFETY: written by the launch that has just ended.
            unsafe { std::slice::from_raw_parts(c, n) }.iter().all(|&c| c == 3.75)
        });
    }
}

#[test]
fn the_product_with_b_transposed() {
    for [m, n, k] in [[16, 16, 16], [33, 20, 40]] {
        let (a, b, mut c) = (vec![2.0f32; m * k], vec![3.0f32; n * k], vec![0.0f32; m * n]);
        let c = c.as_mut_ptr();
        let grid = [n.div_ceil(16) as u32, m.div_ceil(16) as u32, 1];
        let config = LaunchConfig::new(grid, [16, 16, 1]);
        let (a, b) = (a.as_ptr(), b.as_ptr());
        // SAFETY: the vectors outlive the launches, and only these use them.
        let (a, b, view) = unsafe { (In::new(a, m * k), In::new(b, n * k), Out::uninit(c, m * n)) };
        is_clean(&tiled_transposed, &config, (m as u32, n as u32, k as u32, a, b, view), || {
            // SAFETY: written by the launch that has just ended.
            let c = unsafe { std::slice::from_raw_parts(c, m * n) };
            c.iter().all(|&c| c == 6.0 * k as f32)
        });
    }
}

#[test]
fn the_padded_product() {
    for [m, n, k] in [[16, 16, 16], [32, 48, 64], [48, 16, 0]] {
        let (a, b, mut c) = (vec![2.0f32; m * k], vec![3.0f32; k * n], vec![0.0f32; m * n]);
        let c = c.as_mut_ptr();
        let config = LaunchConfig::new([n as u32 / 16, m as u32 / 16, 1], [16, 16, 1]);
        let (a, b) = (a.as_ptr(), b.as_ptr());
        // SAFETY: the vectors outlive the launches, and only these use them.
        let (a, b, view) = unsafe { (In::new(a, m * k), In::new(b, k * n), Out::uninit(c, m * n)) };
        is_clean(&padded16, &config, (m as u32, n as u32, k as u32, a, b, view), || {
            // SAFETY: written by the launch that has just ended.
            let c = unsafe { std::slice::from_raw_parts(c, m * n) };
            c.iter().all(|&c| c == 6.0 * k as f32)
        });
    }
}

#[test]
fn both_blurs() {
    type Checked = (u32, u32, u32, u32, In<u8>, Out<u8>);
    let kernels: [&Kernel<Checked>; 2] = [&blur::blur, &blur::blur_shared];
    // The same kernels that the host launches.
    let names = kernels.map(|kernel| kernel.declaration.name);
    let launched: [&Kernel<Params>; 2] = host::blur::BLURS.each_ref().map(|blur| blur.kernel);
    assert_eq!(names, launched.map(|kernel| kernel.declaration.name));
    for kernel in kernels {
        for ([width, height, channels], radius) in
            [([1, 1, 1], 1), ([40, 35, 3], 2), ([70, 33, 1], 5), ([9, 70, 4], 32), ([65, 3, 2], 31)]
        {
            let size = Size::new(width, height, channels).unwrap();
            let len = size.bytes();
            let image = (0..len).map(|i| (i * i % 251) as u8).collect::<Vec<_>>();
            let expected = reference(size, radius, &image).unwrap();
            let mut blurred = vec![0u8; len];
            let blurred = blurred.as_mut_ptr();
            // SAFETY: the vectors outlive the launches, and only these use them.
            let (input, output) =
                unsafe { (In::new(image.as_ptr(), len), Out::uninit(blurred, len)) };
            let params = (width, height, channels, radius, input, output);
            is_clean(kernel, &size.config(), params, || {
                // SAFETY: written by the launch that has just ended.
                let blurred = unsafe { std::slice::from_raw_parts(blurred, len) };
                blurred == expected
            });
        }
    }
}
