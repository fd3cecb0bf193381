//! Kernels for either 16-bit type. The constant `half` says which one; it follows from the
//! arguments.

use std::any::TypeId;

use simt::{
    Bf16, Constants, Declaration, F16, Half, Value,
    device::{In, Out, TensorMap},
};

use super::{Argument, Unbound, check_device};
use crate::{
    boxes::Boxes,
    buffer::{Buffer, BufferView, BufferViewMut, Written},
    stream::Stream,
};

/// Implements [`Argument`] for buffers of bf16 and f16 where the parameter has elements of
/// [`Half`].
macro_rules! taken_for_halves {
    ($half:ident: $($param:ident <- $ty:ty, |$argument:ident, $stream:ident, $name:ident| $bound:expr;)*) => {$(
        impl Argument<$param<Half>> for $ty {
            unsafe fn bind(self, $stream: &Stream, $name: &str) -> Result<$param<Half>, Unbound> {
                let $argument = self;
                $bound
            }

            fn half(&self) -> Option<&'static str> {
                Half::word(TypeId::of::<$half>())
            }
        }
    )*};
    ($($half:ident)*) => {$(
        taken_for_halves! {
            $half:
            In <- BufferView<'_, $half>, |view, stream, name| {
                check_device(stream.device(), view.device(), name)?;
                // SAFETY: as for a view of the elements themselves, whose bits, aligned alike, are
                // a `Half`'s.
                Ok(unsafe { In::new(view.address_on(stream)?.cast(), view.len()) })
            };
            In <- &Buffer<$half>, |buffer, stream, name| {
                // SAFETY: the caller's.
                unsafe { buffer.view(..)?.bind(stream, name) }
            };
            Out <- Written<'_, $half>, |view, stream, name| {
                check_device(stream.device(), view.device(), name)?;
                let len = view.len();
                let mut view = view;
                // SAFETY: as above.
                Ok(unsafe { Out::new(view.address_on(stream)?.cast(), len) })
            };
            Out <- BufferViewMut<'_, $half>, |view, stream, name| {
                // SAFETY: the caller's.
                unsafe { Written::from(view).bind(stream, name) }
            };
            Out <- &mut Buffer<$half>, |buffer, stream, name| {
                // SAFETY: the caller's.
                unsafe { buffer.view_mut(..)?.bind(stream, name) }
            };
            TensorMap <- Boxes<'_, $half>, |boxes, stream, name| Ok(boxes.described(stream, name, false)?.cast());
        }
    )*};
}

taken_for_halves! { Bf16 F16 }

/// The constants of a launch, with `half` from its arguments. `halves`: [`Argument::half`] of each
/// argument.
pub(super) fn with_half(
    declaration: &Declaration,
    constants: Constants,
    halves: impl FnOnce() -> Vec<Option<&'static str>>,
) -> Result<Constants, String> {
    if !declaration.constants.iter().any(|constant| constant.name == "half") {
        return Ok(constants);
    }
    let mut known = match constants.get("half") {
        Some(Value::Word(word)) => Some(("the constant half", word)),
        _ => None,
    };
    let is_said = known.is_some();
    for (param, half) in declaration.params.iter().zip(halves()) {
        match (known, half) {
            (Some((other, word)), Some(half)) if word != half => {
                return Err(format!(
                    "{} is of {half}, {other} of {word}: the kernel takes one of both",
                    param.name
                ));
            }
            (None, Some(half)) => known = Some((param.name, half)),
            _ => {}
        }
    }
    Ok(match known {
        Some((_, word)) if !is_said => constants.with_word("half", word),
        _ => constants,
    })
}
