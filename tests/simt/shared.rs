//! Each block has its own shared memory, which starts as NaN.

use super::*;

/// Every thread reports the content before any write, and then writes something.
#[kernel(block = (64), shared = 64 * 4 + 64 * 8, len(found = blocks * 192))]
fn reads_before_it_writes(blocks: u32, mut found: Out<f64>) {
    let mut single = shared![f32; 64];
    let mut double = shared![f64; 64];
    let mut dynamic = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    let at = (thread::block_idx_x() as usize * 64 + t) * 3;
    found[at] = single[t].into();
    found[at + 1] = double[t];
    found[at + 2] = dynamic[t].into();
    thread::sync_threads();
    (single[t], double[t], dynamic[t]) = (1.0, 2.0, 3.0);
}

#[test]
fn nothing_leaks_from_block_to_block() {
    let config = LaunchConfig { dynamic_shared: 256, ..LaunchConfig::new([50, 1, 1], [64, 1, 1]) };
    // A second launch sees no more of the first launch's content than another block does.
    for _ in 0..2 {
        let mut found = vec![0.0; 50 * 192];
        launch_with(&reads_before_it_writes, config, (50, write(&mut found)), &Options::default())
            .unwrap();
        let seen = found.iter().position(|x| !x.is_nan());
        assert!(seen.is_none(), "{seen:?}: {:?}", seen.map(|at| found[at]));
    }
}

/// Three arrays and the dynamic one, filled with different values.
#[kernel(block = (32), shared = 32 * 4 + 3 + 8 * 8)]
fn several_arrays(mut out: Out<u32>, mut addresses: Out<u64>) {
    let mut words = shared![u32; 32];
    let mut bytes = shared![u8; 3];
    let mut table = shared![u64; 4, 2];
    let mut dynamic = dynamic_shared![u32];
    let t = thread::thread_idx_x() as usize;
    words[t] = t as u32;
    dynamic[t] = 1000 + t as u32;
    if t < 8 {
        table[(t / 2, t % 2)] = 2000 + t as u64;
    }
    if t < 3 {
        bytes[t] = 100 + t as u8;
    }
    thread::sync_threads();
    out[t] = words[31 - t];
    out[32 + t] = dynamic[31 - t];
    // The same element by one index and by two.
    out[64 + t] = table[t % 8] as u32;
    out[96 + t] = u32::from(bytes[t % 3]);
    if t == 0 {
        addresses[0] = words.as_mut_ptr() as u64;
        addresses[1] = bytes.as_mut_ptr() as u64;
        addresses[2] = table.as_mut_ptr() as u64;
    }
}

#[test]
fn arrays_do_not_overlap_and_are_aligned() {
    let (mut out, mut addresses) = (vec![0; 128], vec![0; 3]);
    let config = LaunchConfig { dynamic_shared: 128, ..LaunchConfig::new([1, 1, 1], [32, 1, 1]) };
    let params = (write(&mut out), write(&mut addresses));
    launch_with(&several_arrays, config, params, &Options::default()).unwrap();
    for t in 0..32 {
        let place = t as usize;
        let found = [out[place], out[32 + place], out[64 + place], out[96 + place]];
        assert_eq!(found, [31 - t, 1031 - t, 2000 + t % 8, 100 + t % 3], "thread {t}");
    }
    assert!(addresses.iter().all(|&address| address > 0 && address % 16 == 0), "{addresses:x?}");
}

/// One array of the largest possible size.
#[kernel(block = (1), shared = 227 * 1024)]
fn all_of_it(mut out: Out<u32>) {
    let mut all = shared![u32; 227 * 256];
    out[0] = all[227 * 256 - 1];
    all[227 * 256 - 1] = 5;
    out[1] = all[227 * 256 - 1];
}

#[test]
fn all_shared_memory_can_be_had() {
    let mut out = vec![0; 2];
    launch(&all_of_it, [3, 1, 1], [1, 1, 1], (write(&mut out),)).unwrap();
    assert_eq!(out, [u32::MAX, 5]);
}
