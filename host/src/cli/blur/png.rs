//! PNG files: read and written.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Write},
    path::Path,
};

use host::{Device, Error, NewFile, blur::Size};
use png::{BitDepth, ColorType, Decoder, Encoder, Info, Reader, Transformations};

/// An image, and its colour information.
pub(super) struct Picture {
    pub(super) size: Size,
    /// The bytes, row by row, pixel by pixel, channel by channel.
    pub(super) bytes: Vec<u8>,
    /// The header of the output file.
    info: Info<'static>,
}

/// The most copies of an image at one time: as read, on the device before and after, the result,
/// the reference, and one for the compressed files.
const COPIES: u64 = 6;

impl Picture {
    /// Reads a file. A palette is replaced by its colours, and fewer than 8 bits become 8. 16 bits
    /// or several frames would be lost, so they are refused.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let refuse = |why: String| Error::argument("--in", path.display(), why);
        let broken = |error: png::DecodingError| refuse(format!("no readable PNG: {error}"));
        let file = host::open_input("--in", path)?;
        let mut decoder = Decoder::new(BufReader::new(file));
        decoder.set_transformations(Transformations::EXPAND);
        decoder.set_ignore_text_chunk(true);
        let mut reader = decoder.read_info().map_err(broken)?;
        let info = reader.info();
        if info.bit_depth == BitDepth::Sixteen {
            return Err(refuse("16 bits a channel: at most 8 are blurred".to_owned()));
        }
        if let Some(animation) = info.animation_control() {
            let frames = animation.num_frames;
            return Err(refuse(format!("an animation of {frames} frames: must be one image")));
        }
        let (color, _) = reader.output_color_type();
        let size = Size::new(info.width, info.height, color.samples() as u32)
            .map_err(|error| refuse(error.to_string()))?;
        // A header of a few bytes can declare an image that fits into no memory.
        Device::cpu().require_memory((size.bytes() as u64).saturating_mul(COPIES))?;
        let mut bytes = vec![0; size.bytes()];
        decode(&mut reader, &mut bytes).map_err(broken)?;
        let info = described(reader.info(), color);
        Ok(Picture { size, bytes, info })
    }
}

/// Reads the image data, and the file to its end: an incomplete file is an error.
fn decode(
    reader: &mut Reader<BufReader<File>>,
    bytes: &mut [u8],
) -> Result<(), png::DecodingError> {
    reader.next_frame(bytes)?;
    reader.finish()
}

/// The header of the new file. Colour profiles and sizes are kept. A palette is not.
fn described(read: &Info<'static>, color: ColorType) -> Info<'static> {
    let mut info = Info::with_size(read.width, read.height);
    info.color_type = color;
    info.bit_depth = BitDepth::Eight;
    info.pixel_dims = read.pixel_dims;
    info.source_gamma = read.source_gamma;
    info.source_chromaticities = read.source_chromaticities;
    info.srgb = read.srgb;
    info.icc_profile = read.icc_profile.clone();
    info.coding_independent_code_points = read.coding_independent_code_points;
    info
}

/// An output file. It appears when it is complete.
pub(super) struct Target(NewFile);

impl Target {
    /// Checks that the file can be written, before anything is computed.
    pub(super) fn new(named: &Path) -> Result<Self, Error> {
        let extension = named.extension().map(|extension| extension.to_ascii_lowercase());
        if extension.is_some_and(|extension| extension != "png") {
            let why = "is written as PNG: must end in .png";
            return Err(Error::argument("--out", named.display(), why));
        }
        NewFile::create("--out", named).map(Target)
    }

    /// Writes the blurred image, and renames the file to its name.
    pub(super) fn write(self, picture: Picture, blurred: &[u8]) -> Result<(), Error> {
        let Target(file) = self;
        encode(file.file(), picture.info, blurred).map_err(|error| file.unwritten(&error))?;
        file.finish()
    }
}

fn encode(file: &File, info: Info, bytes: &[u8]) -> Result<(), png::EncodingError> {
    let mut file = BufWriter::new(file);
    let mut writer = Encoder::with_info(&mut file, info)?.write_header()?;
    writer.write_image_data(bytes)?;
    writer.finish()?;
    file.flush()?;
    Ok(())
}
