//! Elements of 16 bits for kernels that take either kind: the constant that says which they are follows from the arguments.

use simt::{
    Bf16, Constants, Declaration, F16, Half, Taken, Value,
    device::{In, Out, TensorMap},
};

use super::{Argument, Stream, Unbound, check_device};
use crate::{
    boxes::Boxes,
    buffer::{Buffer, BufferView, BufferViewMut, Pod, Written},
};

/// Elements passed for others of as many bytes, of which a kernel moves every bit as it is and asks for no more; or which it takes
/// for [`Half`]s.
pub(crate) struct Bits<V>(pub(crate) V);

impl<T: Pod + Taken, B: Pod> Argument<In<B>> for Bits<BufferView<'_, T>> {
    fn bind(self, stream: &Stream, name: &str) -> Result<In<B>, Unbound> {
        const { assert!(size_of::<T>() == size_of::<B>() && align_of::<T>() == align_of::<B>()) };
        let Bits(view) = self;
        check_device(stream.device(), view.device(), name)?;
        // SAFETY: as for a view of the elements themselves, whose bytes, aligned alike, are elements of any `Pod`.
        Ok(unsafe { In::new(view.address_on(stream)?.cast(), view.len()) })
    }

    fn half(&self) -> Option<&'static str> {
        T::HALF
    }
}

impl<T: Pod + Taken, B: Pod> Argument<Out<B>> for Bits<Written<'_, T>> {
    fn bind(self, stream: &Stream, name: &str) -> Result<Out<B>, Unbound> {
        const { assert!(size_of::<T>() == size_of::<B>() && align_of::<T>() == align_of::<B>()) };
        let Bits(mut view) = self;
        check_device(stream.device(), view.device(), name)?;
        let len = view.len();
        // SAFETY: as for a view of the elements themselves; and every `Pod` may be written to their bytes.
        Ok(unsafe { Out::new(view.address_on(stream)?.cast(), len) })
    }

    fn half(&self) -> Option<&'static str> {
        T::HALF
    }
}

impl<T: Pod + Taken, B: Pod> Argument<Out<B>> for Bits<BufferViewMut<'_, T>> {
    fn bind(self, stream: &Stream, name: &str) -> Result<Out<B>, Unbound> {
        Bits(Written::from(self.0)).bind(stream, name)
    }

    fn half(&self) -> Option<&'static str> {
        T::HALF
    }
}

/// What a kernel may take for [`Half`]s: the constant that says which they are follows from it.
macro_rules! taken_for_halves {
    ($half:ident: $($param:ident <- $ty:ty, |$argument:ident| $bits:expr;)*) => {$(
        impl Argument<$param<Half>> for $ty {
            fn bind(self, stream: &Stream, name: &str) -> Result<$param<Half>, Unbound> {
                let $argument = self;
                $bits.bind(stream, name)
            }

            fn half(&self) -> Option<&'static str> {
                $half::HALF
            }
        }
    )*};
    ($($half:ident)*) => {$(
        taken_for_halves! {
            $half:
            In <- BufferView<'_, $half>, |view| Bits(view);
            In <- &Buffer<$half>, |buffer| Bits(buffer.view(..)?);
            Out <- Written<'_, $half>, |view| Bits(view);
            Out <- BufferViewMut<'_, $half>, |view| Bits(view);
            Out <- &mut Buffer<$half>, |buffer| Bits(buffer.view_mut(..)?);
            TensorMap <- Boxes<'_, $half>, |boxes| Bits(boxes);
        }
    )*};
}

taken_for_halves! { Bf16 F16 }

/// The constants of a launch, with `half` as its arguments have it, of each what [`Argument::half`] says.
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
