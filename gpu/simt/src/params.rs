//! The types of a kernel's parameters, and how their values are passed to the driver.

use crate::{
    Element,
    argument::Bound,
    cpu::{
        device::{
            tensor::maps::{TensorMap, TensorMapMut, TensorMaps},
            views::{In, Out},
        },
        mode::Mode,
    },
};

/// Compiles only for a type that a kernel may take.
#[doc(hidden)]
pub fn require_param<T: Param>() {}

/// A type that a kernel may take.
///
/// # Safety
/// 1. [`Param::push`] appends the value as the kernel's PTX entry reads it: from the first byte on,
///    little-endian.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot take a `{Self}`",
    note = "it takes u32, i32, u64, i64, f32, f64, `In<T>`, `Out<T>`, tensor maps, raw pointers, and a `simt::Record`"
)]
pub unsafe trait Param: Copy + 'static {
    /// Whether its accesses are reported to the checker: then the parameter is of a checked launch.
    #[doc(hidden)]
    const WATCHED: bool = false;

    /// Appends the value as the driver takes it, in whole 64-bit words.
    fn push(&self, words: &mut Vec<u64>);

    /// The number of a buffer's elements; `None` for a number and for a raw pointer.
    fn elements(&self) -> Option<usize> {
        None
    }

    /// Whether its elements are rounded to tf32 when TMA copies them.
    #[doc(hidden)]
    const ROUNDS: bool = false;

    /// The argument as this type; `None` where the argument is of another type.
    #[doc(hidden)]
    #[inline(never)]
    fn from_bound(argument: &Bound) -> Option<Self> {
        match argument {
            Bound::Value(value) => value.downcast_ref().copied(),
            Bound::Elements(_) | Bound::Maps(_) => None,
        }
    }
}

macro_rules! scalars {
    ($($ty:ty => |$value:ident| $bits:expr;)*) => {$(
        // SAFETY: the type's own bits, widened.
        unsafe impl Param for $ty {
            #[inline(never)]
            fn push(&self, words: &mut Vec<u64>) {
                let $value = *self;
                words.push($bits);
            }
        }
    )*};
}

scalars! {
    u32 => |v| v.into();
    i32 => |v| (v as u32).into();
    u64 => |v| v;
    i64 => |v| v as u64;
    f32 => |v| v.to_bits().into();
    f64 => |v| v.to_bits();
}

macro_rules! addresses {
    ($([$($mode:tt)*] $ty:ty, $watched:expr => |$value:ident| ($address:expr, $len:expr), |$of:ident| $from:expr;)*) => {$(
        // SAFETY: a view and a pointer are one 64-bit address in PTX.
        unsafe impl<T: Element, $($mode)*> Param for $ty {
            const WATCHED: bool = $watched;

            // Once for each type, and not in each list of parameters: this is no hot path.
            #[inline(never)]
            fn push(&self, words: &mut Vec<u64>) {
                let $value = self;
                words.push($address as u64);
            }

            fn elements(&self) -> Option<usize> {
                let $value = self;
                let _ = $value; // a raw pointer has no length
                $len
            }

            #[allow(unused_unsafe, reason = "what makes a pointer is safe")]
            #[inline(never)]
            fn from_bound(argument: &Bound) -> Option<Self> {
                match argument {
                    // SAFETY: such elements, as whoever made the argument has promised.
                    Bound::Elements($of) if $of.are::<T>() => unsafe { $from },
                    _ => None,
                }
            }
        }
    )*};
}

addresses! {
    [M: Mode] In<T, M>, M::WATCHED => |view| (view.as_ptr(), Some(view.len())),
        |of| Some(In::new(of.address.cast(), of.len));
    [M: Mode] Out<T, M>, M::WATCHED => |view| (view.as_ptr(), Some(view.len())),
        |of| of.writable.then(|| match of.written {
            true => Out::new(of.address.cast(), of.len),
            false => Out::uninit(of.address.cast(), of.len),
        });
    [] *const T, false => |pointer| (*pointer, None), |of| Some(of.address.cast_const().cast());
    [] *mut T, false => |pointer| (*pointer, None), |of| of.writable.then(|| of.address.cast());
}

// SAFETY: the driver's encoding of the map, which the kernel's entry takes as it is.
unsafe impl<T: Element, M: Mode> Param for TensorMap<T, M> {
    const WATCHED: bool = M::WATCHED;

    #[inline(never)]
    fn push(&self, words: &mut Vec<u64>) {
        words.extend(self.encoded());
    }

    fn elements(&self) -> Option<usize> {
        Some(self.len())
    }

    const ROUNDS: bool = T::IS_TF32;

    #[inline(never)]
    fn from_bound(argument: &Bound) -> Option<Self> {
        match argument {
            Bound::Maps(maps) => match maps[..] {
                [map] => TensorMap::of(map),
                _ => None,
            },
            _ => None,
        }
    }
}

// SAFETY: as for a `TensorMap`, one after another.
unsafe impl<T: Element, const COUNT: usize, M: Mode> Param for TensorMaps<T, COUNT, M> {
    const WATCHED: bool = M::WATCHED;

    #[inline(never)]
    fn push(&self, words: &mut Vec<u64>) {
        self.0.iter().for_each(|map| map.push(words));
    }

    fn elements(&self) -> Option<usize> {
        Some(self.0.iter().map(TensorMap::len).sum())
    }

    const ROUNDS: bool = T::IS_TF32;

    #[inline(never)]
    fn from_bound(argument: &Bound) -> Option<Self> {
        let Bound::Maps(maps) = argument else { return None };
        let maps = maps.iter().map(|&map| TensorMap::of(map)).collect::<Option<Vec<_>>>()?;
        Some(TensorMaps(maps.try_into().ok()?))
    }
}

// SAFETY: as for a `TensorMap`.
unsafe impl<T: Element, M: Mode> Param for TensorMapMut<T, M> {
    const WATCHED: bool = M::WATCHED;

    fn push(&self, words: &mut Vec<u64>) {
        self.0.push(words);
    }

    fn elements(&self) -> Option<usize> {
        self.0.elements()
    }

    #[inline(never)]
    fn from_bound(argument: &Bound) -> Option<Self> {
        match argument {
            Bound::Maps(maps) => match maps[..] {
                [map] => TensorMapMut::of(map),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A struct of numbers that a kernel takes as one parameter.
///
/// # Safety
/// 1. The type is `#[repr(C)]`, and its fields are u32, i32, u64, i64, f32, f64, such types, and
///    arrays of them.
/// 2. It has no padding, and its size is a multiple of eight bytes.
pub unsafe trait Record: Copy + 'static {}

// SAFETY: the struct's own bytes, whose layout is C's on the GPU and here.
unsafe impl<T: Record> Param for T {
    #[inline(never)]
    fn push(&self, words: &mut Vec<u64>) {
        const {
            assert!(
                size_of::<T>().is_multiple_of(8),
                "a record's size is a multiple of eight bytes"
            )
        };
        let start = (&raw const *self).cast::<u64>();
        // SAFETY: that number of words, all initialised since there is no padding; they may be
        // unaligned.
        words.extend((0..size_of::<T>() / 8).map(|i| unsafe { start.add(i).read_unaligned() }));
    }
}

/// The values of a kernel's parameters as the driver takes them.
#[derive(Clone, Debug)]
pub struct Slots {
    words: Vec<u64>,
    /// Where each parameter begins in `words`.
    starts: Vec<usize>,
}

impl Slots {
    /// The first word of each parameter, in order.
    pub fn first_words(&self) -> impl Iterator<Item = u64> {
        self.starts.iter().map(|&start| self.words[start])
    }

    /// Where each parameter's value begins, in order.
    pub fn pointers(&mut self) -> impl Iterator<Item = *mut u64> {
        let words = self.words.as_mut_ptr();
        self.starts.iter().map(move |&start| words.wrapping_add(start))
    }
}

/// The parameters of a kernel: a tuple of [`Param`]s.
///
/// # Safety
/// 1. [`Params::slots`] has the value of each [`Param`] of the kernel, in order. The driver reads
///    all that the kernel has.
pub unsafe trait Params: Copy + 'static {
    /// The values as the driver takes them, in order.
    fn slots(&self) -> Slots;

    /// Whether the elements of the `param`th parameter are rounded to tf32 when TMA copies them.
    #[doc(hidden)]
    fn rounds(param: usize) -> bool;

    /// The arguments as this tuple.
    ///
    /// # Errors
    /// The number of an argument of another type; `usize::MAX` where the number of arguments
    /// differs.
    #[doc(hidden)]
    fn from_bound(arguments: &[Bound]) -> Result<Self, usize>;
}

/// Calls a macro with the type parameters of every tuple that may be a kernel's parameters.
macro_rules! for_each_tuple {
    ($then:ident) => {
        $then! {
            A;
            A B;
            A B C;
            A B C D;
            A B C D E;
            A B C D E F;
            A B C D E F G;
            A B C D E F G H;
            A B C D E F G H I;
            A B C D E F G H I J;
            A B C D E F G H I J K;
            A B C D E F G H I J K L;
            A B C D E F G H I J K L M;
            A B C D E F G H I J K L M N;
            A B C D E F G H I J K L M N O;
            A B C D E F G H I J K L M N O Q;
        }
    };
}

#[cfg(feature = "cpu")]
pub(crate) use for_each_tuple;

macro_rules! tuples {
    ($($($name:ident)+;)*) => {$(
        // SAFETY: each value of the tuple, in order.
        unsafe impl<$($name: Param),+> Params for ($($name,)+) {
            fn slots(&self) -> Slots {
                #[allow(non_snake_case, reason = "a type's name names its value here")]
                let ($($name,)+) = self;
                // Room for a problem and two tensor maps.
                let (mut words, mut starts) = (Vec::with_capacity(64), Vec::with_capacity(16));
                $(
                    starts.push(words.len());
                    $name.push(&mut words);
                )+
                Slots { words, starts }
            }

            fn rounds(param: usize) -> bool {
                [$($name::ROUNDS),+].get(param).is_some_and(|&rounds| rounds)
            }

            fn from_bound(arguments: &[Bound]) -> Result<Self, usize> {
                let mut numbered = arguments.iter().enumerate();
                let params = ($(
                    match numbered.next() {
                        Some((number, argument)) => $name::from_bound(argument).ok_or(number)?,
                        None => return Err(usize::MAX),
                    },
                )+);
                match numbered.next() {
                    None => Ok(params),
                    Some(_) => Err(usize::MAX),
                }
            }
        }
    )*};
}

for_each_tuple!(tuples);
