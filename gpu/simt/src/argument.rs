//! Arguments of a launch whose types are known only when the program runs.

use std::any::{Any, TypeId};

use crate::{
    Element,
    device::{BoxShape, TensorDescription},
};

/// An argument of a launch.
#[derive(Clone, Debug)]
pub enum Bound<'a> {
    /// A number, or a [`Record`](crate::Record).
    Value(&'a dyn Any),
    /// Elements of global memory.
    Elements(Elements),
    /// Matrices that TMA copies: one map for each that the parameter has.
    Maps(Vec<Map>),
}

/// Elements of global memory, of any type.
#[derive(Clone, Copy, Debug)]
pub struct Elements {
    pub(crate) address: *mut u8,
    pub(crate) len: usize,
    pub(crate) of: TypeId,
    /// Whether a kernel may write them.
    pub(crate) writable: bool,
    /// Whether they hold values.
    pub(crate) written: bool,
}

impl Elements {
    /// Elements that a kernel reads.
    ///
    /// # Safety
    /// 1. As for [`In::new`](crate::device::In::new).
    pub unsafe fn read<T: Element>(address: *const T, len: usize) -> Self {
        // SAFETY: the caller's.
        unsafe { Elements::of(TypeId::of::<T>(), address.cast_mut().cast(), len, false) }
    }

    /// Elements that a kernel writes and may read.
    ///
    /// # Safety
    /// 1. As for [`Out::new`](crate::device::Out::new).
    pub unsafe fn write<T: Element>(address: *mut T, len: usize) -> Self {
        // SAFETY: the caller's.
        unsafe { Elements::of(TypeId::of::<T>(), address.cast(), len, true) }
    }

    /// Elements of the type `of` that a kernel reads and, if `writable`, may write.
    ///
    /// # Safety
    /// 1. As for [`read`](Self::read) or, if `writable`, [`write`](Self::write).
    /// 2. `of` is the type of the elements.
    pub unsafe fn of(of: TypeId, address: *mut u8, len: usize, writable: bool) -> Self {
        Elements { address, len, of, writable, written: true }
    }

    /// The same elements, which hold no values yet.
    #[must_use]
    pub fn uninit(self) -> Self {
        Elements { written: false, ..self }
    }

    /// Whether a parameter with elements `T` takes them.
    pub(crate) fn are<T: Element>(&self) -> bool {
        T::takes(self.of)
    }
}

/// A [`TensorMap`](crate::device::TensorMap), or one to which kernels store, whose element type is
/// not known at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Map {
    pub(crate) base: *const u8,
    pub(crate) of: TypeId,
    /// Bytes of an element.
    pub(crate) element: usize,
    pub(crate) extents: [usize; 3],
    pub(crate) strides: [usize; 2],
    pub(crate) shape: BoxShape,
    pub(crate) skipped: usize,
    pub(crate) encoded: [u64; 16],
    /// Whether a kernel may write the matrices.
    pub(crate) writable: bool,
    /// Whether they hold values.
    pub(crate) written: bool,
}

impl Map {
    /// A tensor map of matrices at `base`, of elements of the type `of`, which have `element`
    /// bytes. The rest as for [`TensorMap::new`](crate::device::TensorMap::new).
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// 1. As there or, if `writable`, for
    ///    [`TensorMapMut::new`](crate::device::TensorMapMut::new).
    /// 2. `of` is the type of the elements, and `element` its size.
    pub unsafe fn new(
        (of, element): (TypeId, usize),
        base: *const u8,
        extents: [usize; 3],
        strides: [usize; 2],
        shape: BoxShape,
        writable: bool,
    ) -> Result<Self, String> {
        shape.check(element)?;
        if !base.addr().is_multiple_of(16) {
            return Err(format!("address {base:p} is no multiple of sixteen bytes"));
        }
        for (name, extent) in ["matrices", "rows", "columns"].into_iter().zip(extents) {
            // Coordinates are signed 32-bit numbers: what is further away counts as outside.
            if !(1..=1 << 31).contains(&(extent as u64)) {
                return Err(format!("{extent} {name}: a tensor map has 1 to 2147483648"));
            }
        }
        for (name, stride, count) in
            [("matrix", strides[0], extents[0]), ("row", strides[1], extents[1])]
        {
            let bytes = (stride as u64).saturating_mul(element as u64);
            if count > 1 && (!bytes.is_multiple_of(16) || bytes >= 1 << 40) {
                return Err(format!(
                    "{bytes} bytes from one {name} to the next: a tensor map wants a multiple of sixteen \
                     below 2^40"
                ));
            }
        }
        let (skipped, encoded, written) = (0, [0; 16], true);
        Ok(Map { base, of, element, extents, strides, shape, skipped, encoded, writable, written })
    }

    /// The description for the driver's encoder.
    pub fn description(&self) -> TensorDescription {
        let [matrices, rows, cols] = self.extents.map(|extent| extent as u64);
        let size = self.element as u64;
        // A stride that is never used may have any value, but the driver checks it. NVIDIA's
        // documentation requires each stride to be at least as long as a row or a matrix.
        let used = |stride: usize, count: u64, unused: u64| match count {
            1 => unused,
            _ => stride as u64 * size,
        };
        let row = used(self.strides[1], rows, (cols * size).next_multiple_of(16));
        let behind_all_rows = row.saturating_mul(rows).min((1 << 40) - 16);
        TensorDescription {
            extents: [cols, rows, matrices],
            strides: [row, used(self.strides[0], matrices, behind_all_rows)],
            box_extents: [self.shape.cols as u32, self.shape.rows as u32, 1],
            element: self.element,
            swizzle: self.shape.swizzle,
        }
    }

    /// The first element's address.
    pub fn as_ptr(&self) -> *const u8 {
        self.base
    }

    /// The map of rows whose first `cols` columns are no elements of the matrices: what stands
    /// before a row that starts within sixteen bytes. TMA reads whole sixteen bytes, and copies
    /// what is there. On the CPU nobody reads it, and the copy is NaN. So what a kernel computes
    /// must not depend on it, and somebody else may write there.
    #[must_use]
    pub fn skipping(self, cols: usize) -> Self {
        Map { skipped: cols, ..self }
    }

    /// The map with the driver's encoding of its [`description`](Self::description), for a launch
    /// on a GPU.
    #[must_use]
    pub fn with_encoding(self, encoded: [u64; 16]) -> Self {
        Map { encoded, ..self }
    }

    /// The same matrices, which hold no values yet.
    #[must_use]
    pub fn uninit(self) -> Self {
        Map { written: false, ..self }
    }
}
