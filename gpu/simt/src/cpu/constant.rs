//! The constants of the launch that this worker runs.
//!
//! They are kept per operating-system thread, apart from the running block: elements
//! ([`Half`](crate::Half)) and operands ask for them, and know nothing of blocks.

use std::cell::{Cell, RefCell};

use crate::{Constants, Value};

thread_local! {
    static CONSTANTS: RefCell<Constants> = const { RefCell::new(Constants::NONE) };
    /// Whether a `Half` is an `F16`. It is kept apart because it is read for each element.
    static IS_F16: Cell<Option<bool>> = const { Cell::new(None) };
    /// Whether an `Fp8` is an `E5m2`.
    static IS_E5M2: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Sets the constants for this worker; [`Constants::NONE`] where it runs no launch.
pub(super) fn set(constants: Constants) {
    IS_F16.set(constants.is_f16());
    IS_E5M2.set(constants.is_e5m2());
    CONSTANTS.set(constants);
}

/// The value of a numeric constant. Panics where the kernel declares none of that name.
#[track_caller]
pub(crate) fn constant(name: &str) -> u32 {
    match CONSTANTS.with_borrow(|constants| constants.get(name)) {
        Some(Value::Number(number)) => number,
        _ => panic!("the kernel declares no constant `{name}` that is a number"),
    }
}

/// Whether a `Half` of this launch is an `F16` (else a `Bf16`). Panics where the kernel declares no
/// constant `half`.
#[inline(always)]
#[track_caller]
pub(crate) fn is_f16() -> bool {
    match IS_F16.get() {
        Some(is_f16) => is_f16,
        None => not_declared("half", "bf16 or f16"),
    }
}

/// Whether an `Fp8` of this launch is an `E5m2` (else an `E4m3`). Panics where the kernel declares
/// no constant `fp8`.
#[inline(always)]
#[track_caller]
pub(crate) fn is_e5m2() -> bool {
    match IS_E5M2.get() {
        Some(is_e5m2) => is_e5m2,
        None => not_declared("fp8", "e4m3 or e5m2"),
    }
}

#[cold]
#[track_caller]
fn not_declared(name: &str, values: &str) -> ! {
    panic!("the kernel declares no constant `{name}`, which is {values}")
}
