//! Variables accessed from the host: addresses, sizes, copies, and refused calls.

use std::thread;

use gpu::lessons::memories::*;
use host::Device;
use tests::{cuda_devices, devices};

use super::{line, variables};

#[test]
fn a_symbol_has_an_address_and_a_size() {
    for device in devices() {
        let coefficients = device.symbol(&COEFFICIENTS).unwrap();
        let count = device.symbol(&THREADS_SO_FAR).unwrap();
        let pointer = device.pointer_symbol(&NUMBERS).unwrap();
        assert_eq!((coefficients.bytes(), count.bytes()), (4 * COEFFICIENTS_LEN, 4), "{device}");
        // On the CPU the pointer knows its buffer's length.
        assert_eq!(pointer.bytes(), if device.is_cuda() { 8 } else { 16 }, "{device}");
        let mut addresses = [coefficients.address(), count.address(), pointer.address()];
        addresses.sort_unstable();
        assert!(addresses[0] > 0 && addresses[0] < addresses[1] && addresses[1] < addresses[2]);
        let again = device.symbol(&COEFFICIENTS).unwrap().address();
        assert_eq!(coefficients.address(), again, "{device}");
    }
}

/// Otherwise safe code could hold a reference into a variable that another thread writes, or read
/// through a null pointer.
#[test]
fn only_a_kernel_accesses_a_variable_by_itself() {
    let accesses: [fn(); 5] = [
        || _ = COEFFICIENTS[0],
        || _ = THREADS_SO_FAR.load(0),
        || THREADS_SO_FAR.store(0, 1),
        || _ = THREADS_SO_FAR.atomic_add(0, 1),
        || _ = NUMBERS.view(),
    ];
    for access in accesses {
        let panic = std::panic::catch_unwind(access).unwrap_err();
        let text = panic.downcast_ref::<&str>().expect("a message");
        assert!(text.starts_with("only a kernel accesses its variables"), "{text}");
    }
}

#[test]
fn another_number_of_elements_is_refused_and_nothing_written() {
    let _alone = variables();
    for device in devices() {
        let coefficients = device.symbol(&COEFFICIENTS).unwrap();
        coefficients.write(&[2.0; COEFFICIENTS_LEN]).unwrap();
        for len in [0, COEFFICIENTS_LEN - 1, COEFFICIENTS_LEN + 1] {
            let error = coefficients.write(&vec![9.0; len]).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            let expected =
                format!("values.len() = {len}: the variable COEFFICIENTS has 8 elements");
            assert_eq!(error.to_string(), expected);
        }
        assert_eq!(coefficients.read().unwrap(), [2.0; COEFFICIENTS_LEN], "{device}");
    }
}

#[test]
fn a_pointer_stays_on_its_device() {
    let _alone = variables();
    for device in devices() {
        let other = devices().into_iter().find(|other| *other != device);
        let Some(other) = other else { continue }; // `devices` has counted the GPU that is missing
        let pointer = device.pointer_symbol(&NUMBERS).unwrap();
        // SAFETY: it is refused.
        let error = unsafe { pointer.point_to(&mut other.zeros(4).unwrap()) };
        let error = error.unwrap_err().to_string();
        let expected = format!("buffer = {}: NUMBERS is on {}", other.name(), device.name());
        assert_eq!(error, expected);
    }
}

/// The host writes a variable while another thread launches. No launch sees a half-written value.
#[test]
fn no_launch_of_the_cpu_sees_a_variable_change() {
    let _alone = variables();
    let device = Device::cpu();
    let coefficients = device.symbol(&COEFFICIENTS).unwrap();
    coefficients.write(&[1.0; COEFFICIENTS_LEN]).unwrap();
    const N: usize = 20 * BLOCK;
    let x = device.upload(&[1.0f32; N]).unwrap();
    let mut y = device.zeros::<f32>(N).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..200 {
                let value = (round % 2 + 1) as f32;
                coefficients.write(&[value; COEFFICIENTS_LEN]).unwrap();
            }
        });
        let stream = device.stream().unwrap();
        let mut launches = 0;
        while launches < 100 || !writer.is_finished() {
            // SAFETY: each thread writes its own element, and there are enough.
            unsafe {
                let arguments = (N as u32, &x, &mut y);
                stream.launch(&constant_polynomial, &line(20, BLOCK), arguments).unwrap();
            }
            let sums = y.to_vec().unwrap();
            // Eight ones or eight twos.
            assert!(sums[0] == 8.0 || sums[0] == 16.0, "{}", sums[0]);
            assert!(sums.iter().all(|&sum| sum == sums[0]));
            launches += 1;
        }
    });
}

#[test]
fn an_index_past_the_end_of_a_pointed_buffer_is_a_fault_on_the_cpu() {
    let _alone = variables();
    let device = Device::cpu();
    let pointer = device.pointer_symbol(&NUMBERS).unwrap();
    let mut three = device.upload(&[1.0f32; 3]).unwrap();
    // SAFETY: the buffer outlives the launch, and only this test uses the variables.
    unsafe { pointer.point_to(&mut three) }.unwrap();
    let stream = device.stream().unwrap();
    // SAFETY: on this device views are bounds-checked.
    let error = unsafe { stream.launch(&pointed_negation, &line(1, BLOCK), (4,)) }.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("index 3 is outside: there are 3 elements"), "{text}");
    assert!(text.contains("memories.rs"), "{text}");
}

/// A pointer variable cannot be written as a number, whatever its name: otherwise the kernel could
/// be made to read any address.
#[test]
fn a_pointer_variable_is_not_found_as_a_number() {
    mod other {
        simt::global! {
            pub static NUMBERS: [u64; 1];
        }
    }
    for device in cuda_devices() {
        let error = device.symbol(&other::NUMBERS).unwrap_err().to_string();
        assert!(error.contains("NUMBERS"), "{error}");
        device.pointer_symbol(&NUMBERS).unwrap();
    }
}
