//! Matrices for TMA: tensor maps.

#[cfg(feature = "cuda")]
use cuda_dyn::CUtensorMapDataType;
pub use simt::device::BoxShape;
use simt::{Map, types::Typed};

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{
    buffer::{AnyView, BufferView, BufferViewMut, ElementType, Pod, Written},
    device::Device,
    error::{Error, Result},
    launch::{Unbound, check_device},
    matrix::{MatrixView, MatrixViewMut},
    stream::Stream,
};

/// Matrices on a device from which a kernel loads boxes by TMA. It is the argument for a parameter
/// of type [`TensorMap`](simt::device::TensorMap).
///
/// The elements of a row are contiguous. A launch needs a GPU of compute capability 9.0 or later,
/// or the CPU device. It refuses a first element, a row or a matrix that is not 16-byte aligned.
/// Elements of a box outside of the matrices are zero. A kernel must load boxes that start at
/// multiples of 16 bytes in a row.
///
/// ```
/// use gpu_gemm::{BoxShape, Boxes, Device, Matrix};
///
/// let device = Device::cpu();
/// let shape = BoxShape { rows: 8, cols: 16, swizzle: 64 };
/// // A matrix, and its right half. For a column-major matrix take the transpose.
/// let matrix = Matrix::<f32>::zeros(&device, 100, 64)?;
/// Boxes::of(matrix.view(), shape)?;
/// Boxes::of(matrix.view().sub(0..100, 32..64)?, shape)?;
///
/// // Five matrices of 20 rows and 64 columns, one after another.
/// let buffer = device.zeros::<f32>(100 * 64)?;
/// Boxes::new(buffer.view(..)?, [5, 20, 64], [20 * 64, 64], shape)?;
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct Boxes<'a, T> {
    elements: BufferView<'a, T>,
    /// Matrices, rows, columns.
    extents: [usize; 3],
    /// Elements from one matrix to the next, and from one row to the next.
    strides: [usize; 2],
    shape: BoxShape,
}

// Not derived: `T` need not be `Copy`.
impl<T> Clone for Boxes<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Boxes<'_, T> {}

impl<'a, T: Pod> Boxes<'a, T> {
    /// Matrices that start at the first of `elements`. `extents`: matrices, rows, columns.
    /// `strides`: elements from one matrix to the next, and from one row to the next. `shape`: the
    /// shape of a box.
    ///
    /// # Errors
    /// [`Error::Argument`] for too few elements.
    pub fn new(
        elements: BufferView<'a, T>,
        extents: [usize; 3],
        strides: [usize; 2],
        shape: BoxShape,
    ) -> Result<Self> {
        check_len(elements.len(), extents, strides)?;
        Ok(Boxes { elements, extents, strides, shape })
    }

    /// One matrix.
    ///
    /// # Errors
    /// [`Error::Argument`] if the elements of its rows are not contiguous.
    pub fn of(matrix: MatrixView<'a, T>, shape: BoxShape) -> Result<Self> {
        let (extents, strides) = of_matrix(matrix)?;
        Boxes::new(matrix.elements(), extents, strides, shape)
    }

    /// The device whose memory they are in.
    pub fn device(&self) -> &'a Device {
        self.elements.device()
    }
}

/// Matrices on a device to which a kernel stores boxes by TMA. It is the argument for a parameter
/// of type [`TensorMapMut`](simt::device::TensorMapMut). As [`Boxes`]; elements of a box outside of
/// the matrices are not written.
///
/// ```
/// use gpu_gemm::{BoxShape, BoxesMut, Device, Matrix};
///
/// let shape = BoxShape { rows: 8, cols: 16, swizzle: 64 };
/// let mut matrix = Matrix::<f32>::zeros(&Device::cpu(), 100, 64)?;
/// BoxesMut::of(matrix.view_mut().sub(0..100, 32..64)?, shape)?;
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct BoxesMut<'a, T> {
    elements: Written<'a, T>,
    /// As in [`Boxes`].
    extents: [usize; 3],
    strides: [usize; 2],
    shape: BoxShape,
}

impl<'a, T: Pod> BoxesMut<'a, T> {
    /// As [`Boxes::new`].
    ///
    /// # Errors
    /// As [`Boxes::new`].
    pub fn new(
        elements: BufferViewMut<'a, T>,
        extents: [usize; 3],
        strides: [usize; 2],
        shape: BoxShape,
    ) -> Result<Self> {
        check_len(elements.len(), extents, strides)?;
        Ok(BoxesMut { elements: elements.into(), extents, strides, shape })
    }

    /// One matrix.
    ///
    /// # Errors
    /// As [`Boxes::of`].
    pub fn of(matrix: MatrixViewMut<'a, T>, shape: BoxShape) -> Result<Self> {
        let (extents, strides) = of_matrix(matrix.as_view())?;
        let elements = matrix.into_elements();
        check_len(elements.len(), extents, strides)?;
        Ok(BoxesMut { elements, extents, strides, shape })
    }

    /// The device whose memory they are in.
    pub fn device(&self) -> &'a Device {
        self.elements.device()
    }
}

/// Checks that `len` elements are enough.
fn check_len(len: usize, extents: [usize; 3], strides: [usize; 2]) -> Result<()> {
    let needed = match extents {
        [0, _, _] | [_, 0, _] | [_, _, 0] => 0,
        [matrices, rows, cols] => [(matrices, strides[0]), (rows, strides[1])]
            .map(|(count, stride)| (count as u128 - 1).saturating_mul(stride as u128))
            .into_iter()
            .fold(cols as u128, u128::saturating_add),
    };
    if needed > len as u128 {
        let limit =
            format!("must be at least {needed} for extents {extents:?}, strides {strides:?}");
        return Err(Error::argument("elements.len()", len, limit));
    }
    Ok(())
}

/// The extents and strides of one matrix.
fn of_matrix<T: Pod>(matrix: MatrixView<T>) -> Result<([usize; 3], [usize; 2])> {
    let (rows, cols, strides) = (matrix.rows(), matrix.cols(), matrix.strides());
    if cols > 1 && strides[1] != 1 {
        let limit = "the elements of a row must be contiguous; perhaps the transpose is meant";
        return Err(Error::argument("matrix.strides()", format!("{strides:?}"), limit));
    }
    Ok(([1, rows, cols], [0, strides[0]]))
}

/// An element that TMA copies: 8 to 64 bits.
///
/// It is a type of the table: TMA copies as many bytes as its row says.
///
/// ```compile_fail,E0277
/// # use gpu_gemm::{BoxElement, simt::Element};
/// #[derive(Clone, Copy)]
/// #[repr(transparent)]
/// struct Wide([u8; 16]);
/// # // SAFETY: bytes.
/// # unsafe impl Element for Wide {}
/// # // SAFETY: bytes.
/// # unsafe impl bytemuck::Zeroable for Wide {}
/// # // SAFETY: bytes.
/// # unsafe impl bytemuck::Pod for Wide {}
/// fn copied<T: BoxElement>() {}
/// copied::<Wide>();
/// ```
pub trait BoxElement: Pod + Typed {}

impl<T: Pod + Typed> BoxElement for T {}

/// [`Boxes`] or [`BoxesMut`] of any element type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnyBoxes<'a> {
    elements: AnyView<'a>,
    /// As in [`Boxes`].
    extents: [usize; 3],
    strides: [usize; 2],
    shape: BoxShape,
    /// Columns at the start of each row that are no elements ([`Map::skipping`]).
    skipped: usize,
}

impl<'a, T: BoxElement> From<Boxes<'a, T>> for AnyBoxes<'a> {
    fn from(boxes: Boxes<'a, T>) -> Self {
        let Boxes { elements, extents, strides, shape } = boxes;
        let elements = AnyView::from(elements).for_boxes::<T>();
        AnyBoxes { elements, extents, strides, shape, skipped: 0 }
    }
}

impl<'a, T: BoxElement> From<BoxesMut<'a, T>> for AnyBoxes<'a> {
    fn from(boxes: BoxesMut<'a, T>) -> Self {
        let BoxesMut { elements, extents, strides, shape } = boxes;
        let elements = AnyView::from(elements).for_boxes::<T>();
        AnyBoxes { elements, extents, strides, shape, skipped: 0 }
    }
}

impl<'a> AnyBoxes<'a> {
    /// As [`Boxes::new`], of rows whose first `skipped` columns are no elements.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn new(
        elements: AnyView<'a>,
        extents: [usize; 3],
        strides: [usize; 2],
        shape: BoxShape,
        skipped: usize,
    ) -> Result<Self> {
        check_len(elements.len(), extents, strides)?;
        Ok(AnyBoxes { elements, extents, strides, shape, skipped })
    }

    /// The type of the elements.
    pub(crate) fn element(&self) -> ElementType {
        self.elements.element()
    }

    /// The tensor map for the argument `name` of a launch on `stream`. `rounds`: TMA rounds the
    /// elements to tf32.
    pub(crate) fn described(
        &self,
        stream: &Stream,
        name: &str,
        rounds: bool,
    ) -> std::result::Result<Map, Unbound> {
        let AnyBoxes { elements, extents, strides, shape, skipped } = *self;
        check_device(stream.device(), elements.device(), name)?;
        let (element, address) = (elements.element(), elements.address());
        let of = (element.id, element.bytes);
        // SAFETY: the matrices are inside the buffer, as `new` has checked, and borrowed: mutably
        // if they are written, so that nobody else reads or writes them. On the CPU the kernel runs
        // during the borrow. On a GPU the memory is freed after work that was launched before.
        let map = unsafe { Map::new(of, address, extents, strides, shape, elements.is_written()) };
        let map = map.map_err(|what| Unbound::Refused(format!("{name}: {what}")))?;
        let map = map.skipping(skipped);
        #[cfg(feature = "cuda")]
        let map = match (stream.cuda(), element.tma) {
            (None, _) => map,
            (Some(_), None) => {
                let what = format!("{name}: TMA copies no {}", element.name());
                return Err(Unbound::Refused(what));
            }
            (Some(stream), Some(tma)) => {
                let tma = CUtensorMapDataType(tma);
                let element = if rounds { CUtensorMapDataType::TFLOAT32 } else { tma };
                let description = map.description();
                map.with_encoding(encode(stream, name, address as u64, element, &description)?)
            }
        };
        #[cfg(not(feature = "cuda"))]
        let _ = rounds;
        // This comes last: a launch that is refused waits for nothing.
        elements.address_on(stream)?;
        Ok(map)
    }
}

/// The driver's encoding of a tensor map.
#[cfg(feature = "cuda")]
fn encode(
    stream: &cuda::Stream,
    name: &str,
    address: u64,
    element: CUtensorMapDataType,
    description: &simt::device::TensorDescription,
) -> std::result::Result<[u64; 16], Unbound> {
    let context = stream.context();
    let (major, minor) = context.properties().capability;
    if (major, minor) < (9, 0) {
        let label = context.label();
        let what =
            format!("{label} has compute capability {major}.{minor}, a tensor map needs 9.0");
        return Err(Unbound::Refused(format!("{name}: {what}")));
    }
    cuda::encode(context, address, element, description)?.ok_or_else(|| {
        let what = format!("at {address:#x}, the driver refuses {description:?}");
        Unbound::Refused(format!("{name}: {what}"))
    })
}

#[cfg(test)]
mod tests;
