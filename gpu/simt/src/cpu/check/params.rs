//! The parameters of a kernel that can be checked: what the checker knows of their memory.

use super::{
    global::{Buffer, Region},
    watched::Watched,
};
use crate::{
    Element, Param, Params, Record,
    cpu::device::{
        self,
        tensor::maps::{TensorMap, TensorMapMut, TensorMaps},
    },
    params::for_each_tuple,
};

/// A parameter of a kernel that can be checked. Sealed: the checker believes what it says of its
/// memory.
///
/// ```compile_fail,E0277
/// # use simt::{Param, check::{Checkable, Region}};
/// #[derive(Clone, Copy)]
/// struct Wrong;
/// # // SAFETY: it has no bytes.
/// # unsafe impl Param for Wrong {
/// #     fn push(&self, _: &mut Vec<u64>) {}
/// # }
/// impl Checkable for Wrong {
///     fn regions(&self, _: usize) -> Vec<Region> {
///         Vec::new()
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a checked launch cannot watch a `{Self}`",
    note = "compile the kernel a second time, against `simt::checked` instead of `simt::device`: see \
            the documentation of `simt::check`"
)]
pub trait Checkable: Param + sealed::Sealed {
    /// The memory of the view, as regions that do not overlap.
    #[doc(hidden)]
    fn regions(&self, _param: usize) -> Vec<Region> {
        Vec::new()
    }

    /// Attaches the view to the launch's buffers.
    #[doc(hidden)]
    fn attach(&mut self, _buffers: &[Buffer]) {}
}

mod sealed {
    use super::{TensorMap, TensorMapMut, TensorMaps, Watched, device::views};
    use crate::{Element, Record};

    pub trait Sealed {}

    macro_rules! sealed {
        ($($ty:ty)*) => {$( impl Sealed for $ty {} )*};
    }

    sealed! { u32 i32 u64 i64 f32 f64 }
    impl<T: Record> Sealed for T {}
    impl<T: Element> Sealed for *const T {}
    impl<T: Element> Sealed for *mut T {}
    impl<T: Element> Sealed for views::In<T, Watched> {}
    impl<T: Element> Sealed for views::Out<T, Watched> {}
    impl<T: Element> Sealed for TensorMap<T, Watched> {}
    impl<T: Element, const COUNT: usize> Sealed for TensorMaps<T, COUNT, Watched> {}
    impl<T: Element> Sealed for TensorMapMut<T, Watched> {}
}

macro_rules! scalars {
    ($($ty:ty)*) => {$( impl Checkable for $ty {} )*};
}

scalars! { u32 i32 u64 i64 f32 f64 }
impl<T: Record> Checkable for T {}
impl<T: Element> Checkable for *const T {}
impl<T: Element> Checkable for *mut T {}

macro_rules! views {
    ($($view:ty: $written:expr;)*) => {$(
        impl<T: Element> Checkable for $view {
            fn regions(&self, param: usize) -> Vec<Region> {
                let element = size_of::<T>();
                let (address, bytes) = (self.as_ptr().addr(), self.len() * element);
                let written = $written || self.tag.written;
                vec![Region { address, bytes, element, written, param, variable: None }]
            }

            fn attach(&mut self, buffers: &[Buffer]) {
                let address = self.as_ptr().addr();
                let holds = |b: &&Buffer| (b.address..b.address + b.bytes).contains(&address);
                if let Some(buffer) = buffers.iter().find(holds) {
                    self.tag.buffer = buffer;
                }
            }
        }
    )*};
}

views! {
    device::views::In<T, Watched>: true;
    device::views::Out<T, Watched>: false;
    TensorMap<T, Watched>: false;
}

impl<T: Element, const COUNT: usize> Checkable for TensorMaps<T, COUNT, Watched> {
    /// Overlapping matrices are one region.
    fn regions(&self, param: usize) -> Vec<Region> {
        let mut of_maps: Vec<_> = self.0.iter().flat_map(|map| map.regions(param)).collect();
        of_maps.sort_unstable_by_key(|region| region.address);
        let mut regions: Vec<Region> = Vec::new();
        for region in of_maps {
            match regions.last_mut() {
                Some(last) if region.address < last.address + last.bytes => {
                    let end = region.address + region.bytes;
                    last.bytes = last.bytes.max(end - last.address);
                    last.written &= region.written;
                }
                _ => regions.push(region),
            }
        }
        regions
    }

    fn attach(&mut self, buffers: &[Buffer]) {
        self.0.iter_mut().for_each(|map| map.attach(buffers));
    }
}

impl<T: Element> Checkable for TensorMapMut<T, Watched> {
    fn regions(&self, param: usize) -> Vec<Region> {
        self.0.regions(param)
    }

    fn attach(&mut self, buffers: &[Buffer]) {
        self.0.attach(buffers);
    }
}

/// The parameters of a kernel that can be checked: a tuple of [`Checkable`]s. Sealed, as these.
pub trait CheckableParams: Params + sealed::Sealed {
    /// The memory of all views.
    #[doc(hidden)]
    fn regions(&self) -> Vec<Region>;

    /// The number of elements of each parameter that is a view.
    #[doc(hidden)]
    fn elements(&self) -> Vec<Option<usize>>;

    /// Attaches the views to the launch's buffers.
    #[doc(hidden)]
    fn attach(&mut self, buffers: &[Buffer]);
}

macro_rules! tuples {
    ($($($name:ident)+;)*) => {$(
        impl<$($name: Checkable),+> sealed::Sealed for ($($name,)+) {}

        impl<$($name: Checkable),+> CheckableParams for ($($name,)+) {
            fn regions(&self) -> Vec<Region> {
                #[allow(non_snake_case, reason = "a type's name names its value here")]
                let ($($name,)+) = self;
                let mut params = 0..;
                [$($name.regions(params.next().unwrap_or_default())),+].concat()
            }

            fn elements(&self) -> Vec<Option<usize>> {
                #[allow(non_snake_case, reason = "a type's name names its value here")]
                let ($($name,)+) = self;
                vec![$(Param::elements($name)),+]
            }

            fn attach(&mut self, buffers: &[Buffer]) {
                #[allow(non_snake_case, reason = "a type's name names its value here")]
                let ($($name,)+) = self;
                $($name.attach(buffers);)+
            }
        }
    )*};
}

for_each_tuple!(tuples);
