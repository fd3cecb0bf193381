//! Times the bf16 kernels on tensor cores, in every way that operands lie, and compares elements of C with float64.
//!
//! ```console
//! $ cargo run --release -p host --example wgmma                       # 1024, 2048, 4096, 8192
//! $ cargo run --release -p host --example wgmma -- 8192 4096x8192x1024
//! ```

use std::{cell::RefCell, env, error::Error};

use host::{
    BoxShape, Boxes, Device, Shape,
    gpu::{kernels::gemm_wgmma::*, problem::Problem},
    operands,
    simt::{
        Bf16, Kernel, LaunchConfig,
        device::{In, Out, TensorMap},
    },
    timing::{self, Candidate, Options},
};

type Product = Kernel<(Problem, TensorMap<Bf16>, TensorMap<Bf16>, Out<f32>, In<f32>)>;

/// Rows and columns of a tile of C, a kernel, and whether A and B lie along k.
type Variant = ([usize; 2], &'static Product, [bool; 2]);

static VARIANTS: [Variant; 4] = [
    ([128, 256], &gemm_wgmma_f32_128x256_nn, [true, false]),
    ([128, 256], &gemm_wgmma_f32_128x256_nt, [true, true]),
    ([128, 256], &gemm_wgmma_f32_128x256_tn, [false, false]),
    ([128, 256], &gemm_wgmma_f32_128x256_tt, [false, true]),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut sizes = Vec::new();
    for text in env::args().skip(1) {
        let numbers = text.split('x').map(str::parse).collect::<Result<Vec<usize>, _>>();
        sizes.push(match numbers.map_err(|error| format!("{text}: {error}"))?[..] {
            [size] => [size; 3],
            [m, n, k] => [m, n, k],
            _ => return Err(format!("{text}: a size, or m, n and k: 4096x8192x1024").into()),
        });
    }
    if sizes.is_empty() {
        sizes.extend([1024, 2048, 4096, 8192].map(|size| [size; 3]));
    }
    let device = Device::best().device;
    println!("{device}");
    sizes.into_iter().try_for_each(|size| measure(&device, size))
}

fn measure(device: &Device, [m, n, k]: [usize; 3]) -> Result<(), Box<dyn Error>> {
    if [m, n, k].iter().any(|size| !size.is_multiple_of(8) || *size == 0) {
        return Err(format!("{m}x{n}x{k}: sizes must be multiples of 8").into());
    }
    let draw = |seed, len| {
        let values = operands::uniform(seed, len)?;
        Ok::<_, host::Error>(values.into_iter().map(Bf16::from_f32).collect::<Vec<_>>())
    };
    // One set of numbers, which each kernel takes to lie its way.
    let (a, b) = (draw(1, m * k)?, draw(2, k * n)?);
    let (on_a, on_b) = (device.upload(&a)?, device.upload(&b)?);
    let bias = device.uninit::<f32>(0)?;
    let c = RefCell::new(device.zeros::<f32>(m * n)?);
    let stream = device.stream()?;
    let launch = |([rows, cols], kernel, [a_along, b_along]): Variant| {
        let tiles = m.div_ceil(rows) * n.div_ceil(cols);
        let blocks = tiles.min(device.multiprocessors() as usize) as u32;
        let declaration = &kernel.declaration;
        let (block, shared) = (declaration.block, declaration.dynamic_shared);
        let config = LaunchConfig {
            dynamic_shared: shared.unwrap_or_default(),
            ..LaunchConfig::new([blocks, 1, 1], block.unwrap_or_default())
        };
        let boxes = |outer, along, tile| match along {
            true => ([1, outer, k], [0, k], BoxShape { rows: tile, cols: 64, swizzle: 128 }),
            false => ([1, k, outer], [0, outer], BoxShape { rows: 64, cols: 64, swizzle: 128 }),
        };
        let (extents, strides, shape) = boxes(m, a_along, rows);
        let a = Boxes::new(on_a.view(..)?, extents, strides, shape)?;
        let (extents, strides, shape) = boxes(n, b_along, cols);
        let b = Boxes::new(on_b.view(..)?, extents, strides, shape)?;
        let problem = Problem::dense(m as u32, n as u32, k as u32);
        let mut c = c.borrow_mut();
        // SAFETY:
        // 1. The kernel keeps inside matrices of these sizes.
        // 2. A tile of C is one block's, and an element one thread's.
        // 3., 4. There are no variables.
        unsafe { stream.launch(kernel, &config, (&problem, a, b, &mut *c, &bias)) }
    };
    for variant in VARIANTS {
        launch(variant)?;
        compare(variant, [m, n, k], (&a, &b), &c.borrow().to_vec()?)?;
    }
    let mut candidates = Vec::<Candidate>::new();
    for variant in VARIANTS {
        let launch = &launch;
        candidates.push(Box::new(move |_| launch(variant)));
    }
    let options = Options::new(device, VARIANTS.len());
    let measured = timing::compare(&stream, &mut candidates, 1, &options)?;
    for ((_, kernel, _), measured) in VARIANTS.iter().zip(&measured) {
        let (summary, flop) =
            (measured.summary(), Shape::new(m as u64, n as u64, k as u64)?.flop());
        println!(
            "{m}x{n}x{k}  {}  {:.2} us  {:.1} TFLOP/s",
            kernel.declaration.name,
            summary.median,
            flop / summary.median * 1e-6,
        );
    }
    Ok(())
}

/// A few hundred elements, the last among them.
fn compare(
    (_, kernel, [a_along, b_along]): Variant,
    [m, n, k]: [usize; 3],
    (a, b): (&[Bf16], &[Bf16]),
    c: &[f32],
) -> Result<(), String> {
    for i in (0..m * n).step_by((m * n / 499).max(1)).chain([m * n - 1]) {
        let (row, col) = (i / n, i % n);
        let a = |p: usize| if a_along { a[row * k + p] } else { a[p * m + row] };
        let b = |p: usize| if b_along { b[col * k + p] } else { b[p * n + col] };
        let products =
            (0..k).map(|p| f64::from(a(p).to_f32()) * f64::from(b(p).to_f32())).collect::<Vec<_>>();
        let sum = products.iter().sum::<f64>();
        let magnitude = products.iter().map(|product| product.abs()).sum::<f64>();
        // The tensor cores cut the sum off at each 16 steps of k.
        let bound = (k as f64 / 16.0 + 17.0) * 2f64.powi(-23) * magnitude;
        let error = (f64::from(c[i]) - sum).abs();
        // Written so that NaN is refused.
        if !matches!(
            error.partial_cmp(&bound),
            Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)
        ) {
            let name = kernel.declaration.name;
            return Err(format!("{name}: C({row}, {col}) = {}, not {sum}", c[i]));
        }
    }
    Ok(())
}
