//! The table of scopes and lifetimes, row by row.

use gpu::lessons::memories::*;
use tests::streams;

use super::{line, variables};

const BLOCKS: u32 = 5;
const THREADS: u32 = BLOCKS * BLOCK as u32;

#[test]
fn a_register_belongs_to_its_thread_and_begins_with_it() {
    for (device, stream) in streams() {
        let mut counts = device.zeros::<u32>(THREADS as usize).unwrap();
        for _ in 0..2 {
            let arguments = (THREADS, 3, &mut counts);
            // SAFETY: each thread writes its own element, and there are enough.
            unsafe { stream.launch(&register_counter, &line(BLOCKS, BLOCK), arguments) }.unwrap();
            assert_eq!(counts.to_vec().unwrap(), [3; THREADS as usize], "{device}");
        }
    }
}

#[test]
fn shared_memory_belongs_to_its_block_and_begins_with_it() {
    for (device, stream) in streams() {
        let mut counts = device.zeros::<u32>(BLOCKS as usize).unwrap();
        for _ in 0..2 {
            let arguments = (BLOCKS, &mut counts);
            // SAFETY: each block writes its own element, and there are enough.
            unsafe { stream.launch(&shared_counter, &line(BLOCKS, BLOCK), arguments) }.unwrap();
            assert_eq!(counts.to_vec().unwrap(), [BLOCK as u32; BLOCKS as usize], "{device}");
        }
    }
}

#[test]
fn global_memory_belongs_to_all_and_outlives_the_launch() {
    let _alone = variables();
    for (device, stream) in streams() {
        let count = device.symbol(&THREADS_SO_FAR).unwrap();
        count.write(&[0]).unwrap();
        let mut seen = Vec::new();
        for launch in 1..=3 {
            let mut numbers = device.zeros::<u32>(THREADS as usize).unwrap();
            let arguments = (THREADS, &mut numbers);
            // SAFETY: each thread writes its own element, there are enough, and additions are
            // atomic.
            unsafe { stream.launch(&global_counter, &line(BLOCKS, BLOCK), arguments) }.unwrap();
            assert_eq!(count.read().unwrap(), [launch * THREADS], "{device}");
            seen.extend(numbers.to_vec().unwrap());
        }
        // No thread of any launch saw another thread's count.
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..3 * THREADS), "{device}");
    }
}

#[test]
fn constant_memory_is_read_by_all_and_stays_until_the_host_writes_it() {
    let _alone = variables();
    for (device, stream) in streams() {
        let coefficients = device.symbol(&COEFFICIENTS).unwrap();
        let x: Vec<_> = (0..THREADS).map(|i| i as f32 / 256.0 - 1.0).collect();
        let on_device = device.upload(&x).unwrap();
        let mut y = device.zeros::<f32>(x.len()).unwrap();
        for c in [[1.0; COEFFICIENTS_LEN], [0.5, -1.0, 0.25, 3.0, 0.0, -2.0, 1.5, 8.0]] {
            coefficients.write(&c).unwrap();
            let horner = |x: &f32| c.iter().rev().fold(0.0f32, |sum, c| sum.mul_add(*x, *c));
            let expected: Vec<_> = x.iter().map(horner).collect();
            for _ in 0..2 {
                let arguments = (THREADS, &on_device, &mut y);
                // SAFETY: each thread writes its own element, and there are enough.
                unsafe { stream.launch(&constant_polynomial, &line(BLOCKS, BLOCK), arguments) }
                    .unwrap();
                assert_eq!(y.to_vec().unwrap(), expected, "{device}");
            }
            assert_eq!(coefficients.read().unwrap(), c, "{device}");
        }
    }
}

#[test]
fn a_global_pointer_leads_to_a_buffer_until_it_is_set_anew() {
    let _alone = variables();
    for (device, stream) in streams() {
        let pointer = device.pointer_symbol(&NUMBERS).unwrap();
        let mut first = device.upload(&[1.0f32; THREADS as usize]).unwrap();
        let mut second = device.upload(&[5.0f32; 7]).unwrap();
        // SAFETY: the pointer's buffer has enough elements and exists.
        let negate =
            |n: u32| unsafe { stream.launch(&pointed_negation, &line(BLOCKS, BLOCK), (n,)) };
        // SAFETY: the buffer outlives the launches, and only this test uses the variables.
        unsafe { pointer.point_to(&mut first) }.unwrap();
        negate(THREADS).unwrap();
        negate(3).unwrap();
        // SAFETY: the buffer outlives the launches, and only this test uses the variables.
        unsafe { pointer.point_to(&mut second) }.unwrap();
        negate(7).unwrap();
        let first = first.to_vec().unwrap();
        assert_eq!((&first[..4], first[THREADS as usize - 1]), (&[1.0, 1.0, 1.0, -1.0][..], -1.0));
        assert_eq!(second.to_vec().unwrap(), [-5.0; 7], "{device}");
    }
}
