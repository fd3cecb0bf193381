//! Constants that a launch sets: numbers that a kernel reads, and the type of its elements.

use host::{Buffer, Device, Pod};
use simt::{
    Bf16, Constants, F16, Half, LaunchConfig, Value,
    check::{self, Kind},
    checked, cpu, device,
};

mod kernels;

#[path = "."]
mod watched {
    use simt::checked as device;

    #[path = "kernels.rs"]
    pub mod kernels;
}

use kernels::every_step;

const N: usize = 40;

fn config(constants: Constants) -> LaunchConfig {
    LaunchConfig { constants, ..LaunchConfig::new([2, 1, 1], [32, 1, 1]) }
}

/// A launch on the CPU device for one third of the elements of that type.
fn launched<T: Pod, U: Pod>(constants: Constants, x: &[T], y: &mut Buffer<U>) -> host::Result<()>
where
    for<'a> &'a Buffer<T>: host::Argument<device::In<Half>>,
    for<'a> &'a mut Buffer<U>: host::Argument<device::Out<Half>>,
{
    let device = Device::cpu();
    let x = device.upload(x)?;
    // SAFETY: it keeps inside its buffers, and each thread writes an element of its own.
    unsafe {
        let arguments = (N as u32, 1.0 / 3.0, &x, y);
        device.stream()?.launch(&every_step, &config(constants), arguments)
    }
}

#[test]
fn a_kernel_declares_them_in_its_ptx() {
    let declared = every_step.declaration.to_ptx_comment();
    assert!(declared.contains(" constants=step:1|2|4,half:bf16|f16 params="), "{declared}");
    assert!(declared.ends_with(",in.half,out.half"), "{declared}");
    assert_eq!(every_step.declaration.specialisations().len(), 6);
}

#[test]
fn numbers_and_types_are_what_the_launch_says_and_the_arguments_hold() {
    let bf16 = (0..4 * N).map(|i| Bf16::from_f32(i as f32)).collect::<Vec<_>>();
    let f16 = (0..4 * N).map(|i| F16::from_f32(i as f32)).collect::<Vec<_>>();
    for (constants, step) in [
        (Constants::NONE, 1),
        (Constants::NONE.with("step", 2), 2),
        (Constants::NONE.with("step", 4), 4),
    ] {
        let mut y = Device::cpu().zeros::<Bf16>(N).unwrap();
        launched(constants, &bf16, &mut y).unwrap();
        let third = |i: usize| (1.0 / 3.0) * (step * i) as f32;
        let wanted = (0..N).map(|i| Bf16::from_f32(third(i))).collect::<Vec<_>>();
        assert_eq!(y.to_vec().unwrap(), wanted, "bf16, {step}");
        let mut y = Device::cpu().zeros::<F16>(N).unwrap();
        launched(constants, &f16, &mut y).unwrap();
        let wanted = (0..N).map(|i| F16::from_f32(third(i))).collect::<Vec<_>>();
        assert_eq!(y.to_vec().unwrap(), wanted, "f16, {step}");
    }
}

#[test]
fn a_checked_launch_has_them_too() {
    let x = (0..4 * N).map(|i| F16::from_f32(i as f32)).collect::<Vec<_>>();
    let found = |step: u32| {
        let mut y = [F16::from_bits(0); N];
        let constants = Constants::NONE.with("step", step).with_word("half", "f16");
        let mut options = check::Options::default();
        options.complete = true;
        // SAFETY: the arrays outlive the launch, and nobody else uses them.
        let report = unsafe {
            let x = checked::In::new(x.as_ptr().cast(), x.len());
            let y = checked::Out::uninit(y.as_mut_ptr().cast(), y.len());
            let kernel = &watched::kernels::every_step;
            check::launch(kernel, &config(constants), (N as u32, 0.5, x, y), &options)
        };
        assert_eq!(y[N - 1].to_f32(), 0.5 * (step as usize * (N - 1)) as f32);
        report.unwrap().findings.into_iter().map(|finding| finding.kind).collect::<Vec<_>>()
    };
    // With four times as many elements, the others are not read.
    assert_eq!([1, 2, 4].map(found), [[Kind::NeverRead]; 3]);
}

#[test]
fn what_is_wrong_with_them_is_named() {
    let x = [Bf16::from_f32(1.0); 4 * N];
    let refused = |constants| {
        let mut y = Device::cpu().zeros::<Bf16>(N).unwrap();
        launched(constants, &x, &mut y).unwrap_err().to_string()
    };
    let none = Constants::NONE;
    for (constants, words) in [
        (none.with("step", 3), "constant step = 3: may be 1, 2, 4"),
        (none.with("stride", 1), "constant stride = 1: the kernel has step, half"),
        (none.with_word("step", "one"), "constant step = one: may be 1, 2, 4"),
        (none.with_word("half", "f16"), "x is of bf16, the constant half of f16"),
        (none.with_word("half", "f32"), "x is of bf16, the constant half of f32"),
    ] {
        let error = refused(constants);
        assert!(error.contains("every_step") && error.contains(words), "{error}");
    }
    // Arguments of different types.
    let mut y = Device::cpu().zeros::<F16>(N).unwrap();
    let error = launched(none, &x, &mut y).unwrap_err().to_string();
    assert!(error.contains("y is of f16, x of bf16: the kernel takes one of both"), "{error}");
    // If nothing says the type of the views, it is the kernel's first.
    let mut y = [0.0_f32.to_bits() as u16; N];
    // SAFETY: the arrays outlive the launch, and nobody else uses them.
    unsafe {
        let (x, y) = (
            device::In::new(x.as_ptr().cast(), x.len()),
            device::Out::new(y.as_mut_ptr().cast(), N),
        );
        cpu::launch(&every_step, &config(none), (N as u32, 2.0, x, y), &Default::default())
            .unwrap();
    }
    assert_eq!(y.map(|bits| Bf16::from_bits(bits).to_f32()), [2.0; N]);
    assert_eq!(none.with("step", 4).get("step"), Some(Value::Number(4)));
}
