//! Pitched memory: arrays of two and three dimensions with padded rows.

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{
    buffer::{Buffer, Pod},
    device::{Device, Kind},
    error::{Error, Result},
    memory,
    rows::{Place, Rows},
};

/// The pitch on the CPU device is a multiple of this, as it is on GPUs. So a kernel that ignores
/// the pitch gives a wrong result here, too.
const CPU_PITCH: usize = 512;

/// An array of `width x height` or `width x height x depth` elements in the memory of a device. The
/// driver chooses the [`pitch`](Pitched::pitch), the bytes from one row to the next. Element (x, y,
/// z) is `z * slice_pitch + y * pitch` bytes and x elements after the first.
///
/// It is an argument for `In` and `Out`, with all rows and their padding. The kernel needs the
/// pitch as another argument.
///
/// ```
/// use gpu_gemm::{Device, Region};
///
/// let device = Device::best().device;
/// let mut image = device.pitched::<f32>(3, 2)?;
/// image.write(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let mut column = [0.0; 2];
/// image.read_region(Region { origin: [1, 0, 0], extent: [1, 2, 1] }, &mut column)?;
/// assert_eq!(column, [2.0, 5.0]);
/// assert!(image.pitch() >= 3 * size_of::<f32>());
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct Pitched<T> {
    pub(crate) buffer: Buffer<T>,
    size: [usize; 3],
    pitch: usize,
}

/// A part of an array: `extent` elements in x, y and z, from `origin` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first element.
    pub origin: [usize; 3],
    /// Elements of a row, rows of a slice, and slices.
    pub extent: [usize; 3],
}

impl Device {
    /// An array of zeros with `height` rows of `width` elements.
    ///
    /// # Errors
    /// As [`Device::pitched_3d`].
    pub fn pitched<T: Pod>(&self, width: usize, height: usize) -> Result<Pitched<T>> {
        self.pitched_3d(width, height, 1)
    }

    /// An array of zeros with `depth` slices of `height` rows of `width` elements.
    ///
    /// # Errors
    /// [`Error::Argument`] for a size of zero, and for more bytes than can be addressed;
    /// [`Error::OutOfMemory`].
    pub fn pitched_3d<T: Pod>(
        &self,
        width: usize,
        height: usize,
        depth: usize,
    ) -> Result<Pitched<T>> {
        const {
            let bytes = size_of::<T>();
            assert!(
                bytes.is_power_of_two() && bytes <= 16,
                "a pitch is a whole number of elements of 1, 2, 4, 8 and 16 bytes"
            );
        }
        let size = [width, height, depth];
        for (name, value) in ["width", "height", "depth"].into_iter().zip(size) {
            if value == 0 {
                return Err(Error::argument(name, value, "must be at least 1"));
            }
        }
        // A pitch is less than twice a row, for rows that are not short.
        let most = isize::MAX as u128 / 4;
        let bytes =
            size.iter().fold(size_of::<T>() as u128, |n, &size| n.saturating_mul(size as u128));
        if bytes > most || height.checked_mul(depth).is_none() {
            let value = format!("{width} x {height} x {depth}");
            let limit = format!("an array has at most {most} bytes");
            return Err(Error::argument("width x height x depth", value, limit));
        }
        let row_bytes = width * size_of::<T>();
        let (mut buffer, pitch) = match &*self.0 {
            Kind::Cpu(_) => {
                let pitch = row_bytes.next_multiple_of(CPU_PITCH);
                let Some(bytes) = pitch.checked_mul(height * depth) else {
                    let value = format!("{width} x {height} x {depth}");
                    return Err(Error::argument("width x height x depth", value, "too many bytes"));
                };
                (self.uninit(bytes / size_of::<T>())?, pitch)
            }
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => {
                let (memory, pitch) =
                    cuda::Memory::alloc_pitched(&gpu.context, row_bytes, height * depth)?;
                (Buffer::from_cuda(self, memory), pitch)
            }
        };
        buffer.fill_bytes(0)?;
        Ok(Pitched { buffer, size, pitch })
    }
}

impl<T: Pod> Pitched<T> {
    /// Elements of a row.
    pub fn width(&self) -> usize {
        self.size[0]
    }

    /// Rows of a slice.
    pub fn height(&self) -> usize {
        self.size[1]
    }

    /// Slices. 1 in two dimensions.
    pub fn depth(&self) -> usize {
        self.size[2]
    }

    /// Bytes from one row to the next.
    pub fn pitch(&self) -> usize {
        self.pitch
    }

    /// Bytes from one slice to the next.
    pub fn slice_pitch(&self) -> usize {
        self.pitch * self.height()
    }

    /// The device whose memory it is in.
    pub fn device(&self) -> &Device {
        self.buffer.device()
    }

    /// The region of all elements.
    pub fn region(&self) -> Region {
        Region { origin: [0; 3], extent: self.size }
    }

    /// Copies dense `values` to all of it, row by row. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of values: nothing is written.
    /// [`Error::Interrupted`]; errors of kernels launched before.
    pub fn write(&mut self, values: &[T]) -> Result<()> {
        self.write_region(self.region(), values)
    }

    /// Copies all of it to dense `values`, row by row. Waits for all work on the device.
    ///
    /// # Errors
    /// As [`Pitched::write`].
    pub fn read(&self, values: &mut [T]) -> Result<()> {
        self.read_region(self.region(), values)
    }

    /// A copy of all elements, without the padding. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] of the host; [`Error::Interrupted`]; errors of kernels launched
    /// before.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut values = memory::filled(T::zeroed(), self.size.iter().product())?;
        self.read(&mut values)?;
        Ok(values)
    }

    /// Copies dense `values` to a part of it.
    ///
    /// # Errors
    /// [`Error::Argument`] for a region beyond the array, and for another number of values than the
    /// region has: nothing is written. As [`Pitched::write`].
    pub fn write_region(&mut self, region: Region, values: &[T]) -> Result<()> {
        let to = self.rows(&region, "region")?;
        let from = dense(&region, values.as_ptr(), values.len())?;
        // SAFETY: the region is inside this array, there is a value for each of its elements, and
        // both are borrowed.
        unsafe { self.copy((Place::Host, from), (Place::Device, to), region.extent) }
    }

    /// Copies a part of it to dense `values`.
    ///
    /// # Errors
    /// As [`Pitched::write_region`].
    pub fn read_region(&self, region: Region, values: &mut [T]) -> Result<()> {
        let from = self.rows(&region, "region")?;
        let to = dense(&region, values.as_mut_ptr(), values.len())?;
        // SAFETY: as in `write_region`.
        unsafe { self.copy((Place::Device, from), (Place::Host, to), region.extent) }
    }

    /// Copies rows of `values`, `pitch` bytes apart, to all of it, as CUDA's `cudaMemcpy2D` does.
    ///
    /// # Errors
    /// [`Error::Argument`] for a pitch that is shorter than a row or no whole number of elements,
    /// and for too few values: nothing is written. As [`Pitched::write`].
    pub fn write_pitched(&mut self, values: &[T], pitch: usize) -> Result<()> {
        let from = self.host_rows(values.as_ptr(), values.len(), pitch)?;
        let to = self.rows(&self.region(), "region")?;
        // SAFETY: the values hold all rows, and both are borrowed.
        unsafe { self.copy((Place::Host, from), (Place::Device, to), self.size) }
    }

    /// Copies all of it to rows in `values`, `pitch` bytes apart. Elements between the rows do not
    /// change.
    ///
    /// # Errors
    /// As [`Pitched::write_pitched`].
    pub fn read_pitched(&self, values: &mut [T], pitch: usize) -> Result<()> {
        let to = self.host_rows(values.as_mut_ptr(), values.len(), pitch)?;
        let from = self.rows(&self.region(), "region")?;
        // SAFETY: as in `write_pitched`.
        unsafe { self.copy((Place::Device, from), (Place::Host, to), self.size) }
    }

    /// Copies a part of `source`, on the same device, to the elements from `origin` on.
    ///
    /// # Errors
    /// [`Error::Argument`] for a part beyond either array, and for another device: nothing is
    /// written. As [`Pitched::write`].
    pub fn copy_from(
        &mut self,
        origin: [usize; 3],
        source: &Pitched<T>,
        region: Region,
    ) -> Result<()> {
        if source.device() != self.device() {
            let limit = format!("must be {}", self.device().name());
            return Err(Error::argument("source.device()", source.device().name(), limit));
        }
        let from = source.rows(&region, "region")?;
        let to = self.rows(&Region { origin, extent: region.extent }, "target region")?;
        // SAFETY: both parts are inside their arrays. These are two arrays of one device.
        unsafe { self.copy((Place::Device, from), (Place::Device, to), region.extent) }
    }

    /// Sets every byte, of the padding, too. With 0xff every float becomes NaN.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; errors of kernels launched before.
    pub fn fill_bytes(&mut self, byte: u8) -> Result<()> {
        self.buffer.fill_bytes(byte)
    }

    /// The rows of a part of it, in the device's memory.
    fn rows(&self, region: &Region, name: &str) -> Result<Rows> {
        let Region { origin, extent } = *region;
        for axis in 0..3 {
            let end = origin[axis].checked_add(extent[axis]);
            if end.is_none_or(|end| end > self.size[axis]) {
                let argument = format!("{name}.{}", ["x", "y", "z"][axis]);
                let value = format!("{} elements from {}", extent[axis], origin[axis]);
                let limit = format!("the array has {}", self.size[axis]);
                return Err(Error::argument(argument, value, limit));
            }
        }
        let [x, y, z] = origin;
        let offset = z * self.slice_pitch() + y * self.pitch + x * size_of::<T>();
        let start = self.buffer.address() + offset as u64;
        Ok(Rows { start, pitch: self.pitch, slice_rows: self.height() })
    }

    /// The rows of all of it in host memory, `pitch` bytes apart.
    fn host_rows(&self, values: *const T, len: usize, pitch: usize) -> Result<Rows> {
        let (element, [width, height, depth]) = (size_of::<T>(), self.size);
        let row = width * element;
        if pitch < row {
            let limit = format!("a row of {width} elements has {row} bytes");
            return Err(Error::argument("pitch", pitch, limit));
        }
        if !pitch.is_multiple_of(element) {
            let limit = format!("must be a multiple of an element's {element} bytes");
            return Err(Error::argument("pitch", pitch, limit));
        }
        let needed = (pitch / element) as u128 * (height * depth - 1) as u128 + width as u128;
        if (len as u128) < needed {
            let limit = format!("{needed} are needed for {} rows of this pitch", height * depth);
            return Err(Error::argument("values.len()", len, limit));
        }
        Ok(Rows { start: values as u64, pitch, slice_rows: height })
    }

    /// Copies `width x height x depth` elements.
    ///
    /// # Safety
    /// 1. All rows are valid in the memory that is named, and the two boxes do not overlap.
    unsafe fn copy(
        &self,
        (from_place, from): (Place, Rows),
        (to_place, to): (Place, Rows),
        [width, height, depth]: [usize; 3],
    ) -> Result<()> {
        crate::check_interrupt()?;
        let bytes = width * size_of::<T>();
        if bytes * height * depth == 0 {
            return Ok(());
        }
        match &*self.device().0 {
            Kind::Cpu(_) => {
                let _ = (from_place, to_place); // Both are memory of this process.
                for slice in 0..depth {
                    crate::check_interrupt()?;
                    for row in 0..height {
                        let (from, to) = (from.row(row, slice), to.row(row, slice));
                        // SAFETY: the caller's.
                        unsafe { to.copy_from_nonoverlapping(from, bytes) }
                    }
                }
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => {
                let (from, to) = ((from_place, from), (to_place, to));
                // SAFETY: the caller's. A row is at most its pitch.
                unsafe { cuda::copy_rows(&gpu.context, from, to, [bytes, height, depth]) }
            }
        }
    }
}

/// The rows of a region in dense host memory.
fn dense<T>(region: &Region, values: *const T, len: usize) -> Result<Rows> {
    let [width, height, depth] = region.extent;
    // The region is inside an array, so this does not overflow.
    let needed = width * height * depth;
    if len != needed {
        let limit = format!("{width} x {height} x {depth} = {needed} are needed");
        return Err(Error::argument("values.len()", len, limit));
    }
    Ok(Rows { start: values as u64, pitch: width * size_of::<T>(), slice_rows: height })
}
