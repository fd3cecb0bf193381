//! Arguments by name, for kernels whose parameters' types are checked at the launch.

use std::any::TypeId;

use simt::{
    AnyKernel, Bf16, Bound, Constants, Element, Elements, F16, Half, LaunchConfig, Named, Tf32,
    cpu, device::*,
};

/// c[i] = a[i], widened.
#[kernel(block = (32), len(a = n, c = n), constants(half = bf16 | f16))]
fn widen(n: u32, a: In<Half>, mut c: Out<f32>) {
    let i = thread::thread_idx_x() as usize;
    if i < n as usize {
        c[i] = a[i].to_f32();
    }
}

fn launch(constants: Constants, arguments: Vec<Named>) -> Result<(), String> {
    let kernel: &dyn AnyKernel = &widen;
    let config = LaunchConfig { constants, ..LaunchConfig::new([1; 3], [32, 1, 1]) };
    // SAFETY: the vectors of the tests outlive the launch, and nobody else uses them.
    unsafe { kernel.launch_named(&config, arguments, &cpu::Options::default()) }
        .map_err(|stop| stop.to_string())
}

#[test]
fn arguments_go_by_their_names_and_their_types() {
    let (n, a, mut c) = (2u32, [F16::from_f32(1.5), F16::from_f32(-3.0)], [0f32; 2]);
    let f16 = Constants::NONE.with_word("half", "f16");
    // SAFETY: as `launch` says.
    let [of_a, of_c, of_f32] = unsafe {
        let c = c.as_mut_ptr();
        [Elements::read(a.as_ptr(), 2), Elements::write(c, 2), Elements::read(c.cast_const(), 2)]
    };
    let all =
        |a, c| vec![("c", Bound::Elements(c)), ("n", Bound::Value(&n)), ("a", Bound::Elements(a))];
    launch(f16, all(of_a, of_c)).unwrap();
    assert_eq!(c, [1.5, -3.0]);
    // The elements must have the type of the constant. Otherwise they would be other numbers.
    let half = "a is of f16, the constant half of bf16: the kernel takes one of both";
    for constants in [Constants::NONE, Constants::NONE.with_word("half", "bf16")] {
        assert!(launch(constants, all(of_a, of_c)).unwrap_err().contains(half));
    }
    for (arguments, what) in [
        (all(of_a, of_f32), "c: the kernel's parameter is out.f32"),
        (all(of_f32, of_c), "a: the kernel's parameter is in.half"),
        (all(of_a, of_c)[..2].to_vec(), "a: is not given"),
        ([all(of_a, of_c), all(of_a, of_c)].concat(), "c: is given twice"),
        (vec![("b", Bound::Value(&n))], "b: the kernel's parameters are n, a, c"),
    ] {
        let error = launch(f16, arguments).unwrap_err();
        assert!(error.contains(what), "{error}");
    }
    let kernel: &dyn AnyKernel = &widen;
    assert!(kernel.of_params::<(u32, In<Half>, Out<f32>)>().is_some());
    assert!(kernel.of_params::<(u32, In<f32>, Out<f32>)>().is_none());
}

#[test]
fn elements_are_taken_for_what_they_are() {
    let of = |id: TypeId| {
        [u16::takes(id), Half::takes(id), f32::takes(id), Tf32::takes(id), F16::takes(id)]
    };
    assert_eq!(of(TypeId::of::<Bf16>()), [true, true, false, false, false]);
    assert_eq!(of(TypeId::of::<F16>()), [true, true, false, false, true]);
    assert_eq!(of(TypeId::of::<f32>()), [false, false, true, true, false]);
    assert_eq!(of(TypeId::of::<Tf32>()), [false, false, false, true, false]);
    assert_eq!(of(TypeId::of::<i16>()), [false; 5]);
}
