//! The atoms of f64 on a GPU, bit for bit as their model on the CPU.
//!
//! The PTX is written here, an instruction and its loads and stores, so that nothing else is
//! compared. Without a GPU this is skipped, and says so.

use std::fmt::Write;

use host::Device;
use simt::LaunchConfig;
use tests::cuda_devices;

use super::atoms::{ADVERSARIAL, OF_F64, number};

/// The PTX of a kernel of [`kernels`](super::kernels): twice the product of 32 x `steps` by `steps`
/// x 32 elements. An instruction has so many `rows` of A.
fn ptx(name: &str, rows: usize, steps: usize) -> String {
    let target = if rows == 16 { "7.8\n.target sm_90" } else { "7.1\n.target sm_80" };
    let shape = format!("m{rows}n8k{steps}");
    // Registers of a fragment.
    let each = steps / 2;
    let list = |of: &dyn Fn(usize) -> String, count: usize| {
        (0..count).map(of).collect::<Vec<_>>().join(", ")
    };
    let mut body = String::new();
    for (matrix, of) in ["a", "b"].iter().enumerate() {
        for (first, i) in (0..2).flat_map(|first| (0..each).map(move |i| (first, i))) {
            let at = 8 * ((16 * first + i % 2 * 8) * steps + i / 2 * 4);
            let _ = writeln!(body, "ld.global.f64 %{of}{}, [%p{matrix}+{at}];", first * each + i);
        }
    }
    for sum in 0..32 {
        let _ = writeln!(body, "mov.f64 %d{sum}, 0d0000000000000000;");
    }
    for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)].repeat(2) {
        for right in 0..2 {
            let first = (2 * i + j) * 8 + 4 * right;
            // B's registers of eight columns.
            let b = list(&|k| format!("%b{}", j * each + 2 * k + right), each / 2);
            let halves = if rows == 16 { 1 } else { 2 };
            for below in 0..halves {
                let sums = 4 / halves;
                let d = list(&|sum| format!("%d{}", first + sums * below + sum), sums);
                let a = list(&|k| format!("%a{}", i * each + k + below), each / halves);
                let _ = writeln!(
                    body,
                    "mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64 {{{d}}}, {{{a}}}, {{{b}}}, {{{d}}};"
                );
            }
        }
    }
    for sum in 0..32 {
        let (tile, of) = (sum / 8, sum % 8);
        let row = tile / 2 * 16 + of / 2 % 2 * 8;
        let col = tile % 2 * 16 + of / 4 * 8 + of % 2;
        let _ = writeln!(body, "st.global.f64 [%p2+{}], %d{sum};", 8 * (row * 32 + col));
    }
    format!(
        ".version {target}
.address_size 64
.visible .entry {name}(.param .u64 {name}_param_0, .param .u64 {name}_param_1, .param .u64 {name}_param_2)
.reqntid 32, 1, 1
{{
.reg .b32 %r<6>;
.reg .b64 %p<12>;
.reg .f64 %a<16>;
.reg .f64 %b<16>;
.reg .f64 %d<32>;
// simt.kernel name={name} block=32,1,1 barriers=0 params=in.f64,in.f64,out.f64
ld.param.b64 %p3, [{name}_param_0];
cvta.to.global.u64 %p0, %p3;
ld.param.b64 %p4, [{name}_param_1];
cvta.to.global.u64 %p1, %p4;
ld.param.b64 %p5, [{name}_param_2];
cvta.to.global.u64 %p2, %p5;
mov.u32 %r0, %laneid;
shr.u32 %r1, %r0, 2;
and.b32 %r2, %r0, 3;
mad.lo.u32 %r3, %r1, {steps}, %r2;
mul.wide.u32 %p6, %r3, 8;
add.s64 %p0, %p0, %p6;
add.s64 %p1, %p1, %p6;
shl.b32 %r2, %r2, 1;
mad.lo.u32 %r3, %r1, 32, %r2;
mul.wide.u32 %p6, %r3, 8;
add.s64 %p2, %p2, %p6;
{body}ret;
}}
"
    )
}

/// The product of `a` by `b`, by the kernel's model or its PTX.
fn run(device: &Device, kernel: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let stream = device.stream().unwrap();
    let (a, b) = (device.upload(a).unwrap(), device.upload(b).unwrap());
    let mut c = device.zeros::<f64>(1024).unwrap();
    // SAFETY: the operands have 32 rows and columns of the kernel's steps, and C 32 x 32 elements.
    unsafe {
        let config = LaunchConfig::new([1; 3], [32, 1, 1]);
        stream.launch(OF_F64[kernel].0, &config, (&a, &b, &mut c)).unwrap();
    }
    c.to_vec().unwrap()
}

/// Random numbers of narrow and of wide ranges; cancellation, subnormal numbers, signed zeros,
/// infinities, NaN.
#[test]
fn f64_has_the_bits_of_its_model() {
    const SHAPES: [(&str, usize, usize); 4] = [
        ("f64_m8n8k4", 8, 4),
        ("f64_m16n8k4", 16, 4),
        ("f64_m16n8k8", 16, 8),
        ("f64_m16n8k16", 16, 16),
    ];
    let cpu = Device::cpu();
    for device in cuda_devices() {
        let description = device.description();
        let of_8 = description.contains("compute capability 8.");
        for (kernel, (name, rows, steps)) in SHAPES.into_iter().enumerate() {
            if rows == 16 && of_8 {
                continue;
            }
            // SAFETY: it does what the kernel of this name does.
            unsafe { device.load_ptx(name, &ptx(name, rows, steps)).unwrap() };
            let random = (0..2000).map(|salt| {
                let spread = [0, 2, 30, 300, 530][salt as usize % 5];
                [salt, !salt].map(|salt| {
                    (0..32 * steps)
                        .map(move |i| number(i / steps, i % steps, salt, spread))
                        .collect()
                })
            });
            let adversarial = (0..1000).map(|salt| {
                let count = ADVERSARIAL.len() - salt % 3;
                [salt, salt + 1].map(|salt| {
                    let pick = move |i: usize| (i * 7 + i / 13 * salt + salt * 31) % count;
                    (0..32 * steps).map(move |i| ADVERSARIAL[pick(i)]).collect::<Vec<f64>>()
                })
            });
            for (case, [a, b]) in random.chain(adversarial).enumerate() {
                let [on_gpu, on_cpu] = [&device, &cpu].map(|device| run(device, kernel, &a, &b));
                for (at, (gpu, cpu)) in on_gpu.into_iter().zip(on_cpu).enumerate() {
                    let same = gpu.to_bits() == cpu.to_bits() || gpu.is_nan() && cpu.is_nan();
                    assert!(
                        same,
                        "{name} on {device}, case {case}, ({}, {}): {gpu:e}, not {cpu:e}",
                        at / 32,
                        at % 32
                    );
                }
            }
        }
    }
}
