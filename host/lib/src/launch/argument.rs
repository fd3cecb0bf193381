//! Arguments of a launch, with their types.

use simt::{
    Record,
    device::{In, Out},
};

use super::Unbound;
use crate::{
    buffer::{Buffer, BufferView, BufferViewMut, Pod, Written},
    device::Device,
    stream::Stream,
};

/// A value that can be passed for a kernel's parameter of type `P`. [`Stream::launch`] lists them.
///
/// Only this crate implements it, and [`Arguments`]: the error's type has no public name. A kernel
/// is given the address that it says.
#[diagnostic::on_unimplemented(
    message = "the kernel's parameter is `{P}`, which `{Self}` cannot be passed for",
    note = "numbers go by value, a `Record` by reference; `&Buffer` or `BufferView` for `In`; `&mut Buffer` or `BufferViewMut` for `Out`; `Boxes` for `TensorMap` and an array of them for `TensorMaps`, `BoxesMut` for `TensorMapMut`"
)]
pub trait Argument<P> {
    /// The parameter's value.
    ///
    /// # Safety
    /// 1. The result is used while the borrow of `self` lasts, or by work that was launched during
    ///    it.
    #[doc(hidden)]
    unsafe fn bind(self, stream: &Stream, name: &str) -> Result<P, Unbound>;

    /// The value of the kernel's constant `half` that follows from the argument's type. `None`:
    /// none does.
    #[doc(hidden)]
    fn half(&self) -> Option<&'static str> {
        None
    }
}

macro_rules! numbers {
    ($($ty:ty)*) => {$(
        impl Argument<$ty> for $ty {
            unsafe fn bind(self, _: &Stream, _: &str) -> Result<$ty, Unbound> {
                Ok(self)
            }
        }
    )*};
}

numbers! { u32 i32 u64 i64 f32 f64 }

impl<R: Record> Argument<R> for &R {
    unsafe fn bind(self, _: &Stream, _: &str) -> Result<R, Unbound> {
        Ok(*self)
    }
}

pub(crate) fn check_device(wanted: &Device, actual: &Device, name: &str) -> Result<(), Unbound> {
    if wanted == actual {
        return Ok(());
    }
    let what = format!("{name} is on {}, the launch is on {}", actual.name(), wanted.name());
    Err(Unbound::Refused(what))
}

impl<T: Pod> Argument<In<T>> for BufferView<'_, T> {
    unsafe fn bind(self, stream: &Stream, name: &str) -> Result<In<T>, Unbound> {
        check_device(stream.device(), self.device(), name)?;
        // SAFETY: the kernel runs while the buffer is borrowed (CPU), or the buffer's memory
        // outlives the work that was launched before it is freed (CUDA).
        Ok(unsafe { In::new(self.address_on(stream)?, self.len()) })
    }
}

impl<T: Pod> Argument<Out<T>> for Written<'_, T> {
    unsafe fn bind(mut self, stream: &Stream, name: &str) -> Result<Out<T>, Unbound> {
        check_device(stream.device(), self.device(), name)?;
        let len = self.len();
        // SAFETY: as for `In`; the elements are borrowed mutably, so nobody else reads them.
        Ok(unsafe { Out::new(self.address_on(stream)?, len) })
    }
}

impl<T: Pod> Argument<*const T> for BufferView<'_, T> {
    unsafe fn bind(self, stream: &Stream, name: &str) -> Result<*const T, Unbound> {
        check_device(stream.device(), self.device(), name)?;
        Ok(self.address_on(stream)?)
    }
}

impl<T: Pod> Argument<*mut T> for Written<'_, T> {
    unsafe fn bind(mut self, stream: &Stream, name: &str) -> Result<*mut T, Unbound> {
        check_device(stream.device(), self.device(), name)?;
        Ok(self.address_on(stream)?)
    }
}

impl<T: Pod> Argument<Out<T>> for BufferViewMut<'_, T> {
    unsafe fn bind(self, stream: &Stream, name: &str) -> Result<Out<T>, Unbound> {
        // SAFETY: the caller's.
        unsafe { Written::from(self).bind(stream, name) }
    }
}

impl<T: Pod> Argument<*mut T> for BufferViewMut<'_, T> {
    unsafe fn bind(self, stream: &Stream, name: &str) -> Result<*mut T, Unbound> {
        // SAFETY: the caller's.
        unsafe { Written::from(self).bind(stream, name) }
    }
}

macro_rules! whole_buffers {
    ($($(#[$mut:tt])? $buffer:ty => $view:ident => $($param:ty)*;)*) => {$($(
        impl<T: Pod> Argument<$param> for $buffer {
            unsafe fn bind(self, stream: &Stream, name: &str) -> Result<$param, Unbound> {
                let view = self.$view(..)?;
                // SAFETY: the caller's.
                unsafe { Argument::<$param>::bind(view, stream, name) }
            }
        }
    )*)*};
}

whole_buffers! {
    &Buffer<T> => view => In<T> *const T;
    &mut Buffer<T> => view_mut => Out<T> *mut T;
}

/// A tuple of [`Argument`]s for a kernel whose parameters are the tuple `P`.
pub trait Arguments<P> {
    /// The parameters' values.
    ///
    /// # Safety
    /// As [`Argument::bind`].
    #[doc(hidden)]
    unsafe fn bind(
        self,
        stream: &Stream,
        names: &mut dyn Iterator<Item = &'static str>,
    ) -> Result<P, Unbound>;

    /// [`Argument::half`] of each.
    #[doc(hidden)]
    fn halves(&self) -> Vec<Option<&'static str>>;
}

macro_rules! tuples {
    ($($($argument:ident $param:ident)+;)*) => {$(
        impl<$($param, $argument: Argument<$param>),+> Arguments<($($param,)+)> for ($($argument,)+) {
            unsafe fn bind(
                self,
                stream: &Stream,
                names: &mut dyn Iterator<Item = &'static str>,
            ) -> Result<($($param,)+), Unbound> {
                #[allow(non_snake_case, reason = "a type's name names its value here")]
                let ($($argument,)+) = self;
                // SAFETY: the caller's.
                unsafe { Ok(($($argument.bind(stream, names.next().unwrap_or("an argument"))?,)+)) }
            }

            fn halves(&self) -> Vec<Option<&'static str>> {
                #[allow(non_snake_case, reason = "a type's name names its value here")]
                let ($($argument,)+) = self;
                vec![$($argument.half()),+]
            }
        }
    )*};
}

tuples! {
    A0 P0;
    A0 P0 A1 P1;
    A0 P0 A1 P1 A2 P2;
    A0 P0 A1 P1 A2 P2 A3 P3;
    A0 P0 A1 P1 A2 P2 A3 P3 A4 P4;
    A0 P0 A1 P1 A2 P2 A3 P3 A4 P4 A5 P5;
    A0 P0 A1 P1 A2 P2 A3 P3 A4 P4 A5 P5 A6 P6;
    A0 P0 A1 P1 A2 P2 A3 P3 A4 P4 A5 P5 A6 P6 A7 P7;
    A0 P0 A1 P1 A2 P2 A3 P3 A4 P4 A5 P5 A6 P6 A7 P7 A8 P8;
    A0 P0 A1 P1 A2 P2 A3 P3 A4 P4 A5 P5 A6 P6 A7 P7 A8 P8 A9 P9;
    A0 P0 A1 P1 A2 P2 A3 P3 A4 P4 A5 P5 A6 P6 A7 P7 A8 P8 A9 P9 A10 P10;
    A0 P0 A1 P1 A2 P2 A3 P3 A4 P4 A5 P5 A6 P6 A7 P7 A8 P8 A9 P9 A10 P10 A11 P11;
    A0 P0 A1 P1 A2 P2 A3 P3 A4 P4 A5 P5 A6 P6 A7 P7 A8 P8 A9 P9 A10 P10 A11 P11 A12 P12;
    A0 P0 A1 P1 A2 P2 A3 P3 A4 P4 A5 P5 A6 P6 A7 P7 A8 P8 A9 P9 A10 P10 A11 P11 A12 P12 A13 P13;
    A0 P0 A1 P1 A2 P2 A3 P3 A4 P4 A5 P5 A6 P6 A7 P7 A8 P8 A9 P9 A10 P10 A11 P11 A12 P12 A13 P13 A14 P14;
    A0 P0 A1 P1 A2 P2 A3 P3 A4 P4 A5 P5 A6 P6 A7 P7 A8 P8 A9 P9 A10 P10 A11 P11 A12 P12 A13 P13 A14 P14 A15 P15;
}
