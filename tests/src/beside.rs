//! Parts for tests with many threads: a watcher for hangs, and a variable that is written and read.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use gpu::lessons::memories::{BLOCK, COEFFICIENTS, COEFFICIENTS_LEN, constant_polynomial};
use host::{Device, Stream};
use simt::LaunchConfig;

/// Runs `work`. Another thread calls `look` at intervals.
pub fn watched(every: Duration, mut look: impl FnMut() + Send, work: impl FnOnce()) {
    /// Also if `work` panics.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Acquire) {
                look();
                thread::sleep(every);
            }
        });
        let _end = End(&ended);
        work();
    });
}

/// Sets all coefficients of the polynomial, a variable of the device, to that number.
pub fn write_coefficients(device: &Device, number: f32) {
    device.symbol(&COEFFICIENTS).unwrap().write(&[number; COEFFICIENTS_LEN]).unwrap();
}

/// Launches the kernel that reads the coefficients, and returns them: one number that all had at
/// the same time.
pub fn read_coefficients(stream: &Stream) -> f32 {
    let numbers: [f32; 64] = std::array::from_fn(|i| (i % 3) as f32);
    let x = stream.device().upload(&numbers).unwrap();
    let mut y = stream.device().zeros::<f32>(numbers.len()).unwrap();
    let config = LaunchConfig::new([1, 1, 1], [BLOCK as u32, 1, 1]);
    // SAFETY: the kernel keeps inside the 64 elements.
    unsafe { stream.launch(&constant_polynomial, &config, (numbers.len() as u32, &x, &mut y)) }
        .unwrap();
    let y = y.to_vec().unwrap();
    // At 0 the polynomial is its constant term.
    let number = y[0];
    for (x, y) in numbers.into_iter().zip(y) {
        let powers = (0..COEFFICIENTS_LEN as i32).map(|power| x.powi(power));
        assert_eq!(y, number * powers.sum::<f32>(), "of {x}, where the coefficients are {number}");
    }
    number
}
