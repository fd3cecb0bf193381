//! Launches the kernel that splits: for a product, into the workspace ([`launch`]), or for one
//! matrix, into buffers of its own ([`Planes`]). [`split`](super::split) has the sizes and the
//! grid.

use gpu::params::MatrixBatch;
use simt::{AnyKernel, Bf16};

use super::{
    Target,
    split::{Slice, config, elements, patches},
};
use crate::{
    buffer::{AnyView, Buffer, Pod, Written},
    error::{Error, Result},
    launch::{Named, Value},
    matrix::MatrixView,
    stream::Stream,
};

/// The slices of a matrix, split once for many products.
#[derive(Debug)]
pub(super) struct Planes<S: Slice = Bf16> {
    pub(super) planes: Buffer<S>,
    pub(super) ranges: Buffer<S>,
    /// The matrix's rows, and the contiguous elements of each.
    pub(super) rows: (usize, usize),
}

impl<S: Slice> Planes<S> {
    /// Splits a matrix. `None` for an empty one, and on a GPU that has no kernel for slices.
    ///
    /// # Errors
    /// [`Error::Argument`] for a matrix that is contiguous neither along rows nor along columns;
    /// [`Error::Capture`] on a stream that is prepared or captured; those of the launch.
    pub(super) fn split<T: Pod>(
        stream: &Stream,
        kernel: &'static dyn AnyKernel,
        matrix: MatrixView<T>,
    ) -> Result<Option<Self>> {
        stream.refuse_in_capture("the slices of a matrix")?;
        let (size, strides) = ((matrix.rows(), matrix.cols()), matrix.strides());
        let (device, elements_of) = (stream.device(), matrix.elements());
        device.refuse_elsewhere("matrix", elements_of.device(), "the stream's device")?;
        let (rows, pitch) = match (size, strides) {
            (size, [pitch, 1]) => (size, pitch),
            ((rows, cols), [1, pitch]) => ((cols, rows), pitch),
            _ => {
                let limit = "must have contiguous rows or columns";
                return Err(Error::argument("matrix", format!("strides {strides:?}"), limit));
            }
        };
        let target = Target::of(device);
        if rows.0 * rows.1 == 0 || target.cuda && target.capability != (9, 0) {
            return Ok(None);
        }
        let [of_planes, of_ranges] = elements::<S>(rows, 1);
        let (mut planes, mut ranges) = (device.uninit(of_planes)?, device.uninit(of_ranges)?);
        let (mut no_planes, mut no_ranges) = (device.uninit::<S>(0)?, device.uninit::<S>(0)?);
        let patches = patches::<S>(rows);
        let config = config::<S>([patches, 0])?;
        let source = MatrixBatch {
            rows: rows.0 as u32,
            cols: rows.1 as u32,
            count: 1,
            patches: patches as u32,
            pitch: pitch as u64,
            step: 0,
        };
        let mut arguments: [(_, Box<dyn Named>); 8] = [
            ("of_a", Box::new(Value(source))),
            ("of_b", Box::new(Value(MatrixBatch { patches: 0, ..source }))),
            ("a", Box::new(AnyView::from(elements_of))),
            ("b", Box::new(AnyView::from(elements_of))),
            ("planes_a", written(&mut planes)?),
            ("planes_b", written(&mut no_planes)?),
            ("patches_a", written(&mut ranges)?),
            ("patches_b", written(&mut no_ranges)?),
        ];
        // SAFETY: it reads the matrix, and writes its planes and ranges, each element by a thread
        // of its own.
        unsafe { stream.launch_named(kernel, &config, &mut arguments) }?;
        drop(arguments);
        Ok(Some(Planes { planes, ranges, rows }))
    }
}

/// All of a buffer, which the kernel writes.
fn written<S: Slice>(buffer: &mut Buffer<S>) -> Result<Box<dyn Named + '_>> {
    Ok(Box::new(AnyView::from(Written::from(buffer.view_mut(..)?))))
}
