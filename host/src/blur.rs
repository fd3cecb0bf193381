//! Image blur on any device, and its reference.
//!
//! Every pixel becomes the mean of the pixels in the (2 radius + 1) x (2 radius + 1) box around it.
//! Pixels outside the image do not count. Each channel is computed separately, and rounded to the
//! nearest integer, half up.
//!
//! ```
//! use host::{Device, blur};
//!
//! // A white pixel in a black row. The boxes at the ends have two pixels, those between them three.
//! let (device, size) = (Device::cpu(), blur::Size::new(4, 1, 1)?);
//! let input = device.upload(&[0, 255, 0, 0])?;
//! let mut output = device.zeros(size.bytes())?;
//! let kernel = blur::find("blur_shared")?;
//! blur::blur(&device.stream()?, kernel, size, 1, &input, &mut output)?;
//! assert_eq!(output.to_vec()?, [128, 85, 85, 0]);
//! assert_eq!(blur::reference(size, 1, &[0, 255, 0, 0])?, [128, 85, 85, 0]);
//! # Ok::<(), host::Error>(())
//! ```

use std::fmt;

use gpu::lessons::blur::{self as kernels, MAX_CHANNELS, MAX_COLS, TILE};
use simt::{
    Kernel, LaunchConfig,
    device::{In, Out},
};

use gpu_gemm::{Buffer, Error, Result, Stream, memory};

/// Parameters of a blur's kernel: width, height, channels, radius, input, output.
pub type Params = (u32, u32, u32, u32, In<u8>, Out<u8>);

/// A kernel that blurs.
#[derive(Debug)]
#[non_exhaustive]
pub struct Blur {
    /// The kernel.
    pub kernel: &'static Kernel<Params>,
    /// Its largest radius.
    pub max_radius: u32,
    /// Why it is the largest.
    reason: &'static str,
}

/// The kernels that blur. The first is the plain one.
pub static BLURS: [Blur; 2] = [
    Blur {
        kernel: &kernels::blur,
        max_radius: kernels::MAX_RADIUS,
        reason: "a larger box's sum does not fit in 32 bits",
    },
    Blur {
        kernel: &kernels::blur_shared,
        max_radius: kernels::MAX_RADIUS_SHARED,
        reason: "its halo has so much shared memory; the kernel blur takes larger ones",
    },
];

impl Blur {
    /// The kernel's name.
    pub fn name(&self) -> &'static str {
        self.kernel.declaration.name
    }
}

/// The kernel with that name.
///
/// # Errors
/// [`Error::Argument`], with all names.
pub fn find(name: &str) -> Result<&'static Blur> {
    BLURS.iter().find(|blur| blur.name() == name).ok_or_else(|| {
        let names = BLURS.each_ref().map(Blur::name).join(" or ");
        Error::argument("kernel", name, format!("must be {names}"))
    })
}

/// The size of an image: rows of `width` pixels of `channels` bytes, without padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    width: u32,
    height: u32,
    channels: u32,
}

impl Size {
    /// Checks the size. An image has pixels of one to four channels, and fits into one launch.
    ///
    /// # Errors
    /// [`Error::Argument`] for a size outside the limits.
    pub fn new(width: u32, height: u32, channels: u32) -> Result<Self> {
        // On every device a grid has at most 65535 rows of blocks.
        let most_rows = 65535 * TILE;
        for (name, value, most) in [
            ("channels", channels, MAX_CHANNELS),
            ("width", width, MAX_COLS / channels.max(1)),
            ("height", height, most_rows),
        ] {
            if !(1..=most).contains(&value) {
                return Err(Error::argument(name, value, format!("must be from 1 to {most}")));
            }
        }
        Ok(Size { width, height, channels })
    }

    /// Pixels of a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Bytes of a pixel.
    pub fn channels(&self) -> u32 {
        self.channels
    }

    /// Bytes of a row.
    fn cols(&self) -> usize {
        self.width as usize * self.channels as usize
    }

    /// Bytes of the image.
    pub fn bytes(&self) -> usize {
        self.cols() * self.height as usize
    }

    /// The launch of a blur.
    pub fn config(&self) -> LaunchConfig {
        let grid = [(self.width * self.channels).div_ceil(TILE), self.height.div_ceil(TILE), 1];
        LaunchConfig::new(grid, [TILE, TILE, 1])
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}x{} pixels of {} channel", self.width, self.height, self.channels)?;
        if self.channels == 1 { Ok(()) } else { f.write_str("s") }
    }
}

/// Checks that a kernel can blur an image of that size by that radius.
///
/// # Errors
/// [`Error::Argument`] for a radius of 0, one above the longer side of the image, and one above the
/// kernel's limit.
pub fn check_radius(blur: &Blur, size: Size, radius: u32) -> Result<()> {
    let side = size.width.max(size.height);
    if !(1..=side).contains(&radius) {
        let limit = format!("must be from 1 to {side}, the longer side of the image");
        return Err(Error::argument("radius", radius, limit));
    }
    let Blur { max_radius, reason, .. } = blur;
    if radius > *max_radius {
        let limit = format!("{} takes at most {max_radius}: {reason}", blur.name());
        return Err(Error::argument("radius", radius, limit));
    }
    Ok(())
}

/// Blurs an image on the stream's device.
///
/// # Errors
/// As [`check_radius`]; as [`Stream::launch`], which also compares the buffers' lengths with the
/// size.
pub fn blur(
    stream: &Stream,
    blur: &Blur,
    size: Size,
    radius: u32,
    input: &Buffer<u8>,
    output: &mut Buffer<u8>,
) -> Result<()> {
    check_radius(blur, size, radius)?;
    let Size { width, height, channels } = size;
    let arguments = (width, height, channels, radius, input, output);
    // SAFETY:
    // 1. The kernels keep inside the image: the launch compares its bytes with the buffers'
    //    lengths. They keep inside their halo up to the largest radius and the most channels, and
    //    both have been checked.
    // 2. Each byte of the output is written by the one thread that computes it.
    // 3. The buffers are borrowed, the output mutably.
    unsafe { stream.launch(blur.kernel, &size.config(), arguments) }
}

/// The reference of a blur. Each row updates the column sums of the row before, and the box moves
/// along the row by one pixel at a time. So the time does not depend on the radius.
///
/// # Errors
/// [`Error::Argument`] if the number of bytes is not that of the size; [`Error::Interrupted`].
pub fn reference(size: Size, radius: u32, image: &[u8]) -> Result<Vec<u8>> {
    if image.len() != size.bytes() {
        let limit = format!("must be {}: {size}", size.bytes());
        return Err(Error::argument("image.len()", image.len(), limit));
    }
    let [width, height, channels, radius] =
        [size.width, size.height, size.channels, radius].map(|value| value as usize);
    let cols = size.cols();
    let row = |number: usize| &image[number * cols..(number + 1) * cols];
    // For each column of bytes, the sum over the rows of the box.
    let mut columns = memory::filled(0u64, cols)?;
    (0..radius.min(height)).for_each(|number| add(&mut columns, row(number)));
    let mut blurred = memory::reserved(image.len())?;
    for y in 0..height {
        gpu_gemm::check_interrupt()?;
        if y + radius < height {
            add(&mut columns, row(y + radius));
        }
        if y > radius {
            let left = row(y - radius - 1);
            columns.iter_mut().zip(left).for_each(|(sum, &byte)| *sum -= u64::from(byte));
        }
        let rows = (y + radius + 1).min(height) - y.saturating_sub(radius);
        // For each channel, the sum over the box.
        let mut sums = vec![0; channels];
        (0..radius.min(width)).for_each(|x| add_pixel(&mut sums, &columns, x));
        for x in 0..width {
            if x + radius < width {
                add_pixel(&mut sums, &columns, x + radius);
            }
            if x > radius {
                let left = &columns[(x - radius - 1) * channels..];
                sums.iter_mut().zip(left).for_each(|(sum, column)| *sum -= column);
            }
            let count = (rows * ((x + radius + 1).min(width) - x.saturating_sub(radius))) as u64;
            blurred.extend(sums.iter().map(|sum| ((sum + count / 2) / count) as u8));
        }
    }
    Ok(blurred)
}

/// Adds a row of the image.
fn add(columns: &mut [u64], row: &[u8]) {
    columns.iter_mut().zip(row).for_each(|(sum, &byte)| *sum += u64::from(byte));
}

/// Adds the columns of a pixel.
fn add_pixel(sums: &mut [u64], columns: &[u64], pixel: usize) {
    let pixel = &columns[pixel * sums.len()..];
    sums.iter_mut().zip(pixel).for_each(|(sum, column)| *sum += column);
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::Device;

    #[test]
    fn sizes_outside_their_limits_are_named() {
        let message = |w, h, c| Size::new(w, h, c).unwrap_err().to_string();
        assert_eq!(message(0, 1, 1), "width = 0: must be from 1 to 2147483647");
        assert_eq!(message(1, 0, 1), "height = 0: must be from 1 to 2097120");
        assert_eq!(message(1, 1, 5), "channels = 5: must be from 1 to 4");
        assert_eq!(message(1 << 29, 1, 4), "width = 536870912: must be from 1 to 536870911");
        assert_eq!(message(1, 2_097_121, 1), "height = 2097121: must be from 1 to 2097120");
        let largest = Size::new(MAX_COLS, 65535 * TILE, 1).unwrap();
        assert_eq!(largest.config().grid, [1 << 26, 65535, 1]);
    }

    #[test]
    fn a_radius_outside_its_limits_is_named() {
        let [plain, shared] = &BLURS;
        let size = Size::new(50, 7, 3).unwrap();
        let message = |blur, radius| check_radius(blur, size, radius).unwrap_err().to_string();
        for radius in [0, 51, u32::MAX] {
            let text = format!("radius = {radius}: must be from 1 to 50, the longer side");
            assert!(message(plain, radius).starts_with(&text), "{}", message(plain, radius));
        }
        assert!(message(shared, 33).starts_with("radius = 33: blur_shared takes at most 32: its"));
        assert!(check_radius(shared, size, 32).is_ok() && check_radius(plain, size, 50).is_ok());
        let wide = Size::new(5000, 1, 1).unwrap();
        let text = check_radius(plain, wide, 2048).unwrap_err().to_string();
        assert!(text.starts_with("radius = 2048: blur takes at most 2047: a larger"), "{text}");
        assert!(find("blurred").unwrap_err().to_string().ends_with("must be blur or blur_shared"));
    }

    #[test]
    fn a_buffer_of_another_size_is_refused() {
        let device = Device::cpu();
        let (stream, size) = (device.stream().unwrap(), Size::new(4, 3, 2).unwrap());
        let [long, short] = [24, 23].map(|len| device.zeros::<u8>(len).unwrap());
        let mut output = device.zeros::<u8>(24).unwrap();
        for kernel in &BLURS {
            blur(&stream, kernel, size, 1, &long, &mut output).unwrap();
            let error = blur(&stream, kernel, size, 1, &short, &mut output).unwrap_err();
            assert!(error.to_string().contains("input has 23 elements"), "{error}");
        }
        let error = reference(size, 1, &[0; 23]).unwrap_err().to_string();
        assert_eq!(error, "image.len() = 23: must be 24: 4x3 pixels of 2 channels");
    }
}
