//! The current context of the caller's thread: whatever is done, it is the one before.

use super::*;
use std::ptr::null_mut;

/// The thread's current context.
fn current() -> cuda_dyn::CUcontext {
    let mut context = null_mut();
    // SAFETY: one handle is written.
    unsafe { cuda_dyn::cuCtxGetCurrent(&mut context) }.unwrap();
    context
}

/// Does a little of everything on the device, and looks after each step at the thread's current
/// context.
pub(super) fn use_everything(index: usize) {
    let before = current();
    let left = || assert_eq!(current(), before);
    let device = crate::Device::cuda(index).unwrap();
    left();
    let stream = device.stream().unwrap();
    left();
    let [a, b, mut c] = square_matrices(&device, 8);
    left();
    let tiled16 = crate::product::find("tiled16").unwrap();
    crate::product::multiply(&stream, tiled16, &a, &b, &mut c).unwrap();
    left();
    let mut pinned = device.pinned::<f32>(64).unwrap();
    left();
    let lines = crate::Lines { count: 1, len: 64, stride: 64 };
    stream.download(c.buffer().view(..).unwrap(), &mut pinned, lines).unwrap();
    left();
    assert_eq!(pinned.as_slice().unwrap(), c.to_row_major().unwrap());
    left();
    let (start, end) = (stream.record().unwrap(), stream.record().unwrap());
    left();
    end.since(&start).unwrap();
    left();
    let mut rows = device.pitched::<f32>(3, 2).unwrap();
    left();
    rows.write(&[1.0; 6]).unwrap();
    left();
    assert_eq!(rows.to_vec().unwrap(), [1.0; 6]);
    left();
    stream.synchronize().unwrap();
    left();
    assert!(crate::Device::cuda(index + 100).is_err());
    left();
    drop((start, end, pinned, rows, stream));
    left();
    drop((a, b, c));
    left();
    drop(device);
    left();
}

with_driver! {
    fn the_current_context_is_left_as_found("devices=2 kernels=2") {
        assert!(current().is_null());
        use_everything(0);
        let other = crate::Device::cuda(1).unwrap();
        other.make_current().unwrap();
        assert!(!current().is_null());
        use_everything(0);
        use_everything(1);
    }

    // Where the call itself fails.
    fn the_current_context_is_left_as_found_by_a_failure("cuMemAlloc_v2=2 cuModuleLoadDataEx=700") {
        let context = open();
        assert!(Memory::alloc(&context, 64).is_err());
        assert!(current().is_null());
        assert!(Module::load(&context, "test.ptx", PTX).is_err());
        assert!(current().is_null());
    }
}
