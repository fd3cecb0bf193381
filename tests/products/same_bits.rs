//! The same bits in every run and on every device. The data are real, so that every change of the
//! order of summation shows.

use gpu::params::GemmParams;
use host::{Device, Result, product};
use simt::{LaunchConfig, device::*};
use tests::{cuda_devices, devices, products};

use crate::check::{Data, operands, shape};

const M: usize = 100;
const N: usize = 90;
const K: usize = 75;

/// The product's bits.
fn multiply(device: &Device, kernel: &str) -> Result<Vec<u32>> {
    let shape = shape(M, N, K);
    let (a, b) = operands(shape, Data::Uniform, 21);
    let (a, b) = (device.upload(&a)?, device.upload(&b)?);
    let mut c = device.upload(&vec![f32::NAN; shape.c_len()])?;
    let entry = gpu::registry::find(kernel).unwrap();
    let views = (a.view(..)?, b.view(..)?, c.view_mut(..)?);
    product::multiply_views(&device.stream()?, entry, shape, views.0, views.1, views.2)?;
    Ok(bits(&c.to_vec()?))
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn from_run_to_run() {
    for device in devices() {
        for (entry, _) in products() {
            let first = multiply(&device, entry.name()).unwrap();
            for run in 0..5 {
                let again = multiply(&device, entry.name()).unwrap();
                assert!(again == first, "{} on {}, run {run}", entry.name(), device.name());
            }
        }
    }
}

#[test]
fn from_any_number_of_cores() {
    for (entry, _) in products() {
        let one = multiply(&Device::cpu_with_workers(1), entry.name()).unwrap();
        for workers in [2, 3, 64] {
            let more = multiply(&Device::cpu_with_workers(workers), entry.name()).unwrap();
            assert!(more == one, "{} on {workers} cores", entry.name());
        }
    }
}

/// A sum goes from p = 0 to k with a fused multiply-add in each step, for any tile.
#[test]
fn from_any_tile_size() {
    for device in devices() {
        let basic = multiply(&device, "basic").unwrap();
        for (entry, product) in products() {
            let kernel = entry.name();
            // `rust_cuda_tiled16` has no fused multiply-add. Threads that split k add partial sums.
            if kernel != "rust_cuda_tiled16" && !product.is_dot() {
                let tiled = multiply(&device, kernel).unwrap();
                assert!(tiled == basic, "{kernel} on {}", device.name());
            }
        }
    }
}

/// Rows of a multiple of four elements may be moved sixteen bytes at a time, but not if the matrix
/// is unaligned.
#[test]
fn from_any_place_in_memory() {
    let shape = shape(132, 260, 36);
    let (a, b) = operands(shape, Data::Uniform, 22);
    for device in devices() {
        for (entry, _) in products() {
            let multiply = |at: usize| -> Result<Vec<u32>> {
                let shifted = |values: &[f32]| [&vec![f32::NAN; at], values].concat();
                let (a, b) = (device.upload(&shifted(&a))?, device.upload(&shifted(&b))?);
                let mut c = device.upload(&vec![f32::NAN; at + shape.c_len()])?;
                let views = (a.view(at..)?, b.view(at..)?, c.view_mut(at..)?);
                let stream = device.stream()?;
                product::multiply_views(&stream, entry, shape, views.0, views.1, views.2)?;
                Ok(bits(&c.to_vec()?[at..]))
            };
            let aligned = multiply(0).unwrap();
            for at in 1..4 {
                let context = format!("{} on {}, {at} elements on", entry.name(), device.name());
                assert!(multiply(at).unwrap() == aligned, "{context}");
            }
        }
    }
}

/// Every operation is rounded as in IEEE 754, on both kinds of device.
#[test]
fn from_a_gpu_and_from_the_cpu() {
    for device in cuda_devices() {
        for (entry, _) in products() {
            let (gpu, cpu) =
                (multiply(&device, entry.name()), multiply(&Device::cpu(), entry.name()));
            assert!(gpu.unwrap() == cpu.unwrap(), "{} on {}", entry.name(), device.name());
        }
    }
}

/// The parameters of lessons, and of general kernels.
type LessonParams = (u32, u32, u32, In<f32>, In<f32>, Out<f32>);
type GeneralParams = (GemmParams, In<f32>, In<f32>, Out<f32>, In<f32>);

/// A kernel is compiled twice for the CPU. A processor without a fused multiply-add instruction
/// runs the portable version. Here that version runs on every processor.
#[test]
fn from_any_processor() {
    let shape = shape(M, N, K);
    let (a, b) = operands(shape, Data::Uniform, 21);
    let mut compared = 0;
    for (entry, product) in products() {
        let mut c = vec![f32::NAN; shape.c_len()];
        let [rows, cols] = product.tile();
        let grid = [(N as u32).div_ceil(cols), (M as u32).div_ceil(rows), 1];
        let (m, n, k) = (M as u32, N as u32, K as u32);
        let constants = entry.constants_of(&GemmParams::dense(m, n, k));
        let dynamic_shared = entry.declaration().dynamic_shared.unwrap_or(0);
        let config =
            LaunchConfig { dynamic_shared, constants, ..LaunchConfig::new(grid, product.block) };
        // SAFETY: an unchanged product of the registry, in its own grid, on buffers of its shape.
        unsafe {
            let (a, b) = (In::new(a.as_ptr(), a.len()), In::new(b.as_ptr(), b.len()));
            let c = Out::new(c.as_mut_ptr(), c.len());
            let options = Default::default();
            if let Some(kernel) = entry.kernel.of_params::<LessonParams>() {
                simt::cpu::launch(&kernel.portable(), &config, (m, n, k, a, b, c), &options)
            } else if let Some(kernel) = entry.kernel.of_params::<GeneralParams>() {
                let params = (GemmParams::dense(m, n, k), a, b, c, In::new(a.as_ptr(), 0));
                simt::cpu::launch(&kernel.portable(), &config, params, &options)
            } else {
                continue;
            }
        }
        .unwrap();
        assert!(bits(&c) == multiply(&Device::cpu(), entry.name()).unwrap(), "{}", entry.name());
        compared += 1;
    }
    assert!(compared >= 3);
}
