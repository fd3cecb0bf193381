//! Arguments of a launch whose types the compiler compares with the parameters'.
//!
//! Each becomes a [`Named`], which has no parameter's type: there is one way from an argument to
//! what a kernel is given.

#[cfg(feature = "cpu")]
use simt::checked;
use simt::{
    Bf16, E4m3, E5m2, F16, Fp8, Half, Record, Tf32,
    device::{In, Out, TensorMap, TensorMapMut, TensorMaps},
};

use super::named::{Named, Value};
use crate::{
    boxes::{AnyBoxes, BoxElement, Boxes, BoxesMut},
    buffer::{AnyView, Buffer, BufferView, BufferViewMut, Pod, Written},
    error::Result,
    pitched::Pitched,
};

/// A value that can be passed for a kernel's parameter of type `P`. [`Stream::launch`] lists them.
///
/// Only this crate implements it, and [`Arguments`]: what an argument becomes has no public name. A
/// kernel is given the address that it says.
///
/// [`Stream::launch`]: crate::Stream::launch
#[diagnostic::on_unimplemented(
    message = "the kernel's parameter is `{P}`, which `{Self}` cannot be passed for",
    note = "numbers go by value, a `Record` by reference; `&Buffer` or `BufferView` for `In`; `&mut Buffer` or `BufferViewMut` for `Out`; `Boxes` for `TensorMap` and an array of them for `TensorMaps`, `BoxesMut` for `TensorMapMut`"
)]
pub trait Argument<P> {
    /// The argument, for a parameter of any type.
    #[doc(hidden)]
    fn named<'a>(self) -> Result<Box<dyn Named + 'a>>
    where
        Self: 'a;
}

/// An [`Argument`] for each type of parameter, from the value that has no parameter's type.
macro_rules! arguments {
    (@ [$($generics:tt)*] $argument:ty => $param:ty, |$given:ident| $named:expr) => {
        impl<$($generics)*> Argument<$param> for $argument {
            fn named<'a>(self) -> Result<Box<dyn Named + 'a>>
            where
                Self: 'a,
            {
                let $given = self;
                Ok(Box::new($named))
            }
        }
    };
    ($($generics:tt $argument:ty => $($param:ty)*, |$given:ident| $named:expr;)*) => {$($(
        arguments! { @ $generics $argument => $param, |$given| $named }
    )*)*};
}

arguments! {
    [] u32 => u32, |number| Value(number);
    [] i32 => i32, |number| Value(number);
    [] u64 => u64, |number| Value(number);
    [] i64 => i64, |number| Value(number);
    [] f32 => f32, |number| Value(number);
    [] f64 => f64, |number| Value(number);
    [R: Record] &R => R, |record| Value(*record);

    [T: Pod] BufferView<'_, T> => In<T> *const T, |view| AnyView::from(view);
    [T: Pod] &Buffer<T> => In<T> *const T, |buffer| AnyView::from(buffer.view(..)?);
    [T: Pod] &Pitched<T> => In<T>, |pitched| AnyView::from(pitched.buffer.view(..)?);
    [H: AHalf] BufferView<'_, H> => In<Half>, |view| AnyView::from(view);
    [H: AHalf] &Buffer<H> => In<Half>, |buffer| AnyView::from(buffer.view(..)?);
    [F: AnFp8] BufferView<'_, F> => In<Fp8>, |view| AnyView::from(view);
    [F: AnFp8] &Buffer<F> => In<Fp8>, |buffer| AnyView::from(buffer.view(..)?);

    [T: Pod] Written<'_, T> => Out<T> *mut T, |elements| AnyView::from(elements);
    [T: Pod] BufferViewMut<'_, T> => Out<T> *mut T, |view| AnyView::from(Written::from(view));
    [T: Pod] &mut Buffer<T> => Out<T> *mut T, |buffer| AnyView::from(Written::from(buffer.view_mut(..)?));
    [T: Pod] &mut Pitched<T> => Out<T>, |pitched| AnyView::from(Written::from(pitched.buffer.view_mut(..)?));
    [H: AHalf] Written<'_, H> => Out<Half>, |elements| AnyView::from(elements);
    [H: AHalf] BufferViewMut<'_, H> => Out<Half>, |view| AnyView::from(Written::from(view));
    [H: AHalf] &mut Buffer<H> => Out<Half>, |buffer| AnyView::from(Written::from(buffer.view_mut(..)?));

    [T: BoxElement] Boxes<'_, T> => TensorMap<T>, |boxes| vec![AnyBoxes::from(boxes)];
    [T: BoxElement, const COUNT: usize] [Boxes<'_, T>; COUNT] => TensorMaps<T, COUNT>, |boxes| Vec::from(boxes.map(AnyBoxes::from));
    [H: AHalf] Boxes<'_, H> => TensorMap<Half>, |boxes| vec![AnyBoxes::from(boxes)];
    [F: AnFp8] Boxes<'_, F> => TensorMap<Fp8>, |boxes| vec![AnyBoxes::from(boxes)];
    [H: AHalf, const COUNT: usize] [Boxes<'_, H>; COUNT] => TensorMaps<Half, COUNT>, |boxes| Vec::from(boxes.map(AnyBoxes::from));
    [] Boxes<'_, f32> => TensorMap<Tf32>, |boxes| vec![AnyBoxes::from(boxes)];
    [const COUNT: usize] [Boxes<'_, f32>; COUNT] => TensorMaps<Tf32, COUNT>, |boxes| Vec::from(boxes.map(AnyBoxes::from));
    [T: BoxElement] BoxesMut<'_, T> => TensorMapMut<T>, |boxes| vec![AnyBoxes::from(boxes)];
}

#[cfg(feature = "cpu")]
arguments! {
    [T: BoxElement] Boxes<'_, T> => checked::TensorMap<T>, |boxes| vec![AnyBoxes::from(boxes)];
    [T: BoxElement, const COUNT: usize] [Boxes<'_, T>; COUNT] => checked::TensorMaps<T, COUNT>, |boxes| Vec::from(boxes.map(AnyBoxes::from));
    [T: BoxElement] BoxesMut<'_, T> => checked::TensorMapMut<T>, |boxes| vec![AnyBoxes::from(boxes)];
}

/// The types that a parameter of [`Half`] is given.
trait AHalf: BoxElement {}
impl AHalf for Bf16 {}
impl AHalf for F16 {}

/// The types that a parameter of [`Fp8`] is given.
trait AnFp8: BoxElement {}
impl AnFp8 for E4m3 {}
impl AnFp8 for E5m2 {}

/// A tuple of [`Argument`]s for a kernel whose parameters are the tuple `P`.
pub trait Arguments<P> {
    /// [`Argument::named`] of each.
    #[doc(hidden)]
    fn named<'a>(self) -> Result<Vec<Box<dyn Named + 'a>>>
    where
        Self: 'a;
}

macro_rules! tuples {
    ($($($argument:ident $param:ident)+;)*) => {$(
        impl<$($param, $argument: Argument<$param>),+> Arguments<($($param,)+)> for ($($argument,)+) {
            fn named<'a>(self) -> Result<Vec<Box<dyn Named + 'a>>>
            where
                Self: 'a,
            {
                #[allow(non_snake_case, reason = "a type's name names its value here")]
                let ($($argument,)+) = self;
                Ok(vec![$($argument.named()?),+])
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
