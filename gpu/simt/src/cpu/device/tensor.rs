//! Tensor maps: matrices in global memory, whose boxes TMA copies (`cp.async.bulk.tensor`).

use std::any::TypeId;

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

use super::box_shape::BoxShape;
#[cfg(feature = "cpu")]
use crate::cpu::{boxes::GlobalBox, tensor_core::swizzle::Swizzle};
use crate::{
    Element,
    argument::Map,
    cpu::{fast::Fast, mode::Mode},
};

/// A batch of matrices in global memory, from which TMA copies boxes. A kernel's parameter.
///
/// A box begins at a multiple of 16 bytes of a row; TMA copies no other.
pub type TensorMap<T> = maps::TensorMap<T, Fast>;
/// `COUNT` [`TensorMap`]s as one parameter of a kernel, which selects one by its index.
pub type TensorMaps<T, const COUNT: usize> = maps::TensorMaps<T, COUNT, Fast>;
/// The boxes of a [`TensorMap`]: `ROWS x COLS` elements, row-major in shared memory, swizzled over
/// spans of `SWIZZLE` bytes (0: not swizzled).
pub type Boxes<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize> =
    maps::Boxes<T, ROWS, COLS, SWIZZLE, Fast>;

/// A batch of matrices in global memory, to which TMA copies boxes. A kernel's parameter.
///
/// A box begins at a multiple of 16 bytes of a row; TMA copies no other.
pub type TensorMapMut<T> = maps::TensorMapMut<T, Fast>;
/// The boxes of a [`TensorMapMut`], as [`Boxes`].
pub type BoxesMut<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize> =
    maps::BoxesMut<T, ROWS, COLS, SWIZZLE, Fast>;

/// The description of a [`TensorMap`] for the driver's encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorDescription {
    /// The number of columns, rows and matrices (innermost first).
    pub extents: [u64; 3],
    /// Bytes from one row to the next, and from one matrix to the next.
    pub strides: [u64; 2],
    /// The columns and rows of a box, and 1.
    pub box_extents: [u32; 3],
    /// Bytes of an element.
    pub element: usize,
    /// Bytes of the swizzle span: 32, 64 or 128; 0 for none.
    pub swizzle: usize,
}

/// The types behind the names, generic in the [`Mode`].
pub(crate) mod maps {
    use super::*;

    /// A batch of matrices in global memory, from which TMA copies boxes.
    #[derive(Debug)]
    pub struct TensorMap<T, M: Mode> {
        base: *const T,
        /// The number of matrices, rows and columns.
        extents: [usize; 3],
        /// Elements from one matrix to the next, and from one row to the next.
        strides: [usize; 2],
        shape: BoxShape,
        /// See [`skipping`](TensorMap::skipping).
        skipped: usize,
        /// The driver's encoding.
        encoded: [u64; 16],
        pub(crate) tag: M::Global,
    }

    impl<T, M: Mode> Clone for TensorMap<T, M> {
        fn clone(&self) -> Self {
            *self
        }
    }

    impl<T, M: Mode> Copy for TensorMap<T, M> {}

    impl<T: Element, M: Mode> TensorMap<T, M> {
        /// A tensor map of the matrices at `base`. `extents` are the numbers of matrices, rows and
        /// columns; `strides` are the elements from one matrix to the next, and from one row to the
        /// next; `shape` is the shape of a box.
        ///
        /// # Errors
        /// What TMA does not support: an address or a stride that is no multiple of 16 bytes, an
        /// extent of 0 or above 2^31, an invalid shape of a box.
        ///
        /// # Safety
        /// 1. Where a kernel uses it, on the CPU in this process and else on the GPU, all of them
        ///    are valid, and nobody writes them.
        pub unsafe fn new(
            base: *const T,
            extents: [usize; 3],
            strides: [usize; 2],
            shape: BoxShape,
        ) -> Result<Self, String> {
            let of = (TypeId::of::<T>(), size_of::<T>());
            // SAFETY: the caller's.
            unsafe { Map::new(of, base.cast(), extents, strides, shape, false) }?;
            let (skipped, encoded, tag) = (0, [0; 16], M::WRITTEN);
            Ok(TensorMap { base, extents, strides, shape, skipped, encoded, tag })
        }

        pub(crate) fn as_ptr(&self) -> *const T {
            self.base
        }

        /// As [`Map::skipping`].
        #[must_use]
        pub fn skipping(self, cols: usize) -> Self {
            TensorMap { skipped: cols, ..self }
        }

        /// The same map with another element type of the same size.
        ///
        /// # Panics
        /// If the sizes differ (at compile time).
        pub fn cast<U: Element>(self) -> TensorMap<U, M> {
            const { assert!(size_of::<T>() == size_of::<U>(), "as many bytes") };
            let TensorMap { base, extents, strides, shape, skipped, encoded, tag } = self;
            TensorMap { base: base.cast(), extents, strides, shape, skipped, encoded, tag }
        }

        /// The map without its element type.
        pub fn erased(self) -> Map {
            let TensorMap { base, extents, strides, shape, skipped, encoded, tag: _ } = self;
            let (base, of, element) = (base.cast(), TypeId::of::<T>(), size_of::<T>());
            let (writable, written) = (false, true);
            Map { base, of, element, extents, strides, shape, skipped, encoded, writable, written }
        }

        /// The map with elements `T`, if `map` is of these or of elements that `T`
        /// [takes](Element::takes).
        pub(crate) fn of(map: Map) -> Option<Self> {
            let Map { base, of, extents, strides, shape, skipped, encoded, .. } = map;
            let base = base.cast();
            T::takes(of).then_some(TensorMap {
                base,
                extents,
                strides,
                shape,
                skipped,
                encoded,
                tag: M::WRITTEN,
            })
        }

        pub(crate) fn encoded(&self) -> &[u64; 16] {
            &self.encoded
        }

        /// The number of elements from the first to the last.
        pub(crate) fn len(&self) -> usize {
            let [matrices, rows, cols] = self.extents;
            (matrices - 1) * self.strides[0] + (rows - 1) * self.strides[1] + cols
        }

        /// Lets TMA fetch the map, so that the first copy need not wait for it. A kernel's
        /// parameters do not depend on earlier grids, so this may come before
        /// [`wait_for_earlier`](crate::device::grid::wait_for_earlier). A hint.
        pub fn prefetch(&self) {}

        /// Its boxes. The tensor map must have boxes of this shape.
        #[track_caller]
        pub fn boxes<const ROWS: usize, const COLS: usize, const SWIZZLE: usize>(
            &self,
        ) -> Boxes<T, ROWS, COLS, SWIZZLE, M> {
            let shape = BoxShape { rows: ROWS, cols: COLS, swizzle: SWIZZLE };
            assert_eq!(
                self.shape, shape,
                "the shape of the tensor map's boxes, and what the kernel wants"
            );
            Boxes { map: *self }
        }
    }

    /// `COUNT` [`TensorMap`]s as one parameter of a kernel.
    #[derive(Debug)]
    pub struct TensorMaps<T, const COUNT: usize, M: Mode>(pub(crate) [TensorMap<T, M>; COUNT]);

    impl<T, const COUNT: usize, M: Mode> Clone for TensorMaps<T, COUNT, M> {
        fn clone(&self) -> Self {
            *self
        }
    }

    impl<T, const COUNT: usize, M: Mode> Copy for TensorMaps<T, COUNT, M> {}

    impl<T: Element, const COUNT: usize, M: Mode> TensorMaps<T, COUNT, M> {
        /// The maps as one parameter.
        pub fn new(maps: [TensorMap<T, M>; COUNT]) -> Self {
            const { assert!(COUNT > 0, "a kernel takes one map at least") };
            TensorMaps(maps)
        }

        /// The map with that index, below `COUNT`.
        #[track_caller]
        pub fn numbered(&self, number: u32) -> TensorMap<T, M> {
            self.0[number as usize]
        }
    }

    /// The boxes of a [`TensorMap`].
    #[derive(Debug)]
    pub struct Boxes<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize, M: Mode> {
        map: TensorMap<T, M>,
    }

    impl<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize, M: Mode> Clone
        for Boxes<T, ROWS, COLS, SWIZZLE, M>
    {
        fn clone(&self) -> Self {
            *self
        }
    }

    impl<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize, M: Mode> Copy
        for Boxes<T, ROWS, COLS, SWIZZLE, M>
    {
    }

    #[cfg_attr(not(feature = "cpu"), signatures)]
    impl<T: Element, const ROWS: usize, const COLS: usize, const SWIZZLE: usize, M: Mode>
        Boxes<T, ROWS, COLS, SWIZZLE, M>
    {
        /// Bytes of a box.
        pub const BYTES: u32 = (ROWS * COLS * size_of::<T>()) as u32;

        pub(crate) fn tag(&self) -> M::Global {
            self.map.tag
        }

        /// [`TensorMap::prefetch`] of its map.
        pub fn prefetch(&self) {
            self.map.prefetch();
        }

        pub(crate) fn at(&self, (matrix, row, col): (u32, u32, u32)) -> GlobalBox {
            let TensorMap { base, extents: [matrices, rows, cols], strides, skipped, .. } =
                self.map;
            // Rows and columns are signed numbers: a box may begin before the first ones.
            let [row, col] = [row, col].map(|of| of.cast_signed() as isize);
            let before = |of: isize, extent: usize| of.min(0).unsigned_abs().min(extent);
            let inside = |of: isize, extent: usize| extent.saturating_sub(of.max(0) as usize);
            let rows_before = before(row, ROWS);
            let cols_before = before(col, COLS);
            let cols_within = inside(col, cols).min(COLS - cols_before);
            let cols_skipped = inside(col, skipped).min(cols_within);
            let first = base.wrapping_add(matrix as usize * strides[0]).wrapping_offset(col);
            let rows_inside = inside(row, rows).min(ROWS - rows_before);
            GlobalBox {
                first: first.wrapping_offset(row * strides[1] as isize).cast(),
                element: size_of::<T>(),
                rows: ROWS,
                cols: COLS,
                rows_before,
                rows_inside: matrices.saturating_sub(matrix as usize).min(1) * rows_inside,
                cols_before,
                cols_skipped,
                cols_inside: cols_within - cols_skipped,
                row_stride: strides[1] * size_of::<T>(),
                swizzle: const { Swizzle::of_span(SWIZZLE as u32) },
                rounds: T::IS_TF32,
            }
        }
    }

    /// A batch of matrices in global memory, to which TMA copies boxes.
    #[derive(Debug)]
    pub struct TensorMapMut<T, M: Mode>(pub(crate) TensorMap<T, M>);

    impl<T, M: Mode> Clone for TensorMapMut<T, M> {
        fn clone(&self) -> Self {
            *self
        }
    }

    impl<T, M: Mode> Copy for TensorMapMut<T, M> {}

    impl<T: Element, M: Mode> TensorMapMut<T, M> {
        /// As [`TensorMap::new`].
        ///
        /// # Errors
        /// As there.
        ///
        /// # Safety
        /// 1. Where a kernel uses it, on the CPU in this process and else on the GPU, all of them
        ///    are valid, and nobody else reads or writes them.
        pub unsafe fn new(
            base: *mut T,
            extents: [usize; 3],
            strides: [usize; 2],
            shape: BoxShape,
        ) -> Result<Self, String> {
            // SAFETY: the caller's.
            unsafe { TensorMap::new(base, extents, strides, shape) }.map(TensorMapMut)
        }

        /// A tensor map of matrices whose elements hold no values yet.
        ///
        /// # Errors
        /// As [`TensorMap::new`].
        ///
        /// # Safety
        /// 1. As for `new`.
        pub unsafe fn uninit(
            base: *mut T,
            extents: [usize; 3],
            strides: [usize; 2],
            shape: BoxShape,
        ) -> Result<Self, String> {
            // SAFETY: the caller's.
            let TensorMapMut(map) = unsafe { Self::new(base, extents, strides, shape) }?;
            Ok(TensorMapMut(TensorMap { tag: M::UNWRITTEN, ..map }))
        }

        /// The map without its element type.
        pub fn erased(self) -> Map {
            Map { writable: true, ..self.0.erased() }
        }

        /// The map with elements `T`, if `map` is of these and may be written.
        pub(crate) fn of(map: Map) -> Option<Self> {
            let tag = if map.written { M::WRITTEN } else { M::UNWRITTEN };
            let of = TensorMap::of(map).filter(|_| map.writable)?;
            Some(TensorMapMut(TensorMap { tag, ..of }))
        }

        /// Its boxes. The tensor map must have boxes of this shape.
        #[track_caller]
        pub fn boxes<const ROWS: usize, const COLS: usize, const SWIZZLE: usize>(
            &self,
        ) -> BoxesMut<T, ROWS, COLS, SWIZZLE, M> {
            BoxesMut(self.0.boxes())
        }
    }

    /// The boxes of a [`TensorMapMut`].
    #[derive(Debug)]
    pub struct BoxesMut<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize, M: Mode>(
        pub(crate) Boxes<T, ROWS, COLS, SWIZZLE, M>,
    );

    impl<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize, M: Mode> Clone
        for BoxesMut<T, ROWS, COLS, SWIZZLE, M>
    {
        fn clone(&self) -> Self {
            *self
        }
    }

    impl<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize, M: Mode> Copy
        for BoxesMut<T, ROWS, COLS, SWIZZLE, M>
    {
    }
}
