//! The built command's `blur`: images in and out, and a refused run leaves no files.

mod common;

use std::{
    fs::{self, File},
    io::{BufReader, BufWriter},
    path::{Path, PathBuf},
    process::Command,
};

use png::{BitDepth, ColorType, Decoder, Encoder};
use tempfile::TempDir;

use self::common::{fails, finish, has_no_noise, host, is_interrupted, objects, on, succeeds};

/// The size of the images: no multiples of a block.
const SIZE: (u32, u32) = (37, 41);

/// A folder with an image.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Folder(TempDir::new().unwrap());
        write(&folder.path("in.png"), SIZE, ColorType::Rgb, BitDepth::Eight, &noise(3 * 37 * 41));
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `blur --in IN --out OUT ...`, both in this folder.
    fn args(&self, input: &str, output: &str, more: &[&str]) -> Vec<String> {
        let path = |name| self.path(name).to_str().unwrap().to_owned();
        let mut args =
            ["blur", "--in", &path(input), "--out", &path(output)].map(str::to_owned).to_vec();
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        args
    }

    fn blur(&self, input: &str, output: &str, more: &[&str]) -> Command {
        let args = self.args(input, output, more);
        host(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Its files.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect::<Vec<_>>();
        names.sort();
        names
    }
}

fn noise(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8).collect()
}

fn write(
    path: &Path,
    (width, height): (u32, u32),
    color: ColorType,
    depth: BitDepth,
    bytes: &[u8],
) {
    let mut encoder = Encoder::new(BufWriter::new(File::create(path).unwrap()), width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == ColorType::Indexed {
        // Black, red, white, and a transparent blue.
        encoder.set_palette(vec![0, 0, 0, 255, 0, 0, 255, 255, 255, 0, 0, 255]);
        encoder.set_trns(vec![255, 255, 255, 0]);
    }
    encoder.write_header().unwrap().write_image_data(bytes).unwrap();
}

fn read(path: &Path) -> (ColorType, (u32, u32), Vec<u8>) {
    let mut reader = Decoder::new(BufReader::new(File::open(path).unwrap())).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut bytes).unwrap();
    assert_eq!(frame.bit_depth, BitDepth::Eight);
    (frame.color_type, (frame.width, frame.height), bytes)
}

/// The mean of the box around every byte of a channel.
fn naive((width, height): (u32, u32), channels: usize, radius: i64, image: &[u8]) -> Vec<u8> {
    let (width, height) = (i64::from(width), i64::from(height));
    let pixel = |y: i64, x: i64, channel: usize| {
        let (mut sum, mut count) = (0, 0);
        for row in (y - radius).max(0)..(y + radius + 1).min(height) {
            for col in (x - radius).max(0)..(x + radius + 1).min(width) {
                sum += u32::from(image[(row * width + col) as usize * channels + channel]);
                count += 1;
            }
        }
        ((sum + count / 2) / count) as u8
    };
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (y, x)));
    places
        .flat_map(|(y, x)| (0..channels).map(move |c| (y, x, c)))
        .map(|(y, x, c)| pixel(y, x, c))
        .collect()
}

#[test]
fn every_kind_of_picture_is_blurred() {
    let folder = Folder::new();
    for (color, channels) in [
        (ColorType::Grayscale, 1),
        (ColorType::GrayscaleAlpha, 2),
        (ColorType::Rgb, 3),
        (ColorType::Rgba, 4),
    ] {
        let image = noise(37 * 41 * channels);
        write(&folder.path("in.png"), SIZE, color, BitDepth::Eight, &image);
        for kernel in ["blur", "blur_shared"] {
            for radius in ["1", "4", "32"] {
                let stdout = succeeds(folder.blur(
                    "in.png",
                    "out.png",
                    &["--radius", radius, "--kernel", kernel],
                ));
                assert!(stdout.contains("\nverified  each of "), "{stdout}");
                let expected = naive(SIZE, channels, radius.parse().unwrap(), &image);
                assert_eq!(
                    read(&folder.path("out.png")),
                    (color, SIZE, expected),
                    "{kernel} {radius}"
                );
            }
        }
    }
    assert_eq!(folder.files(), ["in.png", "out.png"]);
}

#[test]
fn palettes_and_few_bits_are_expanded_without_loss() {
    let folder = Folder::new();
    // Two pixels of two bits in each of two rows: red and transparent blue, white and black.
    write(
        &folder.path("in.png"),
        (2, 2),
        ColorType::Indexed,
        BitDepth::Two,
        &[0b0111_0000, 0b1000_0000],
    );
    let (code, _, stderr) = finish(folder.blur("in.png", "out.png", &["--radius", "1"]));
    assert_eq!(code, 0, "{stderr}");
    // Every box has all four pixels: 510/4, 255/4, 510/4, 765/4.
    let mean = [128, 64, 128, 191];
    assert_eq!(read(&folder.path("out.png")), (ColorType::Rgba, (2, 2), mean.repeat(4)));
    // One bit: black, white, white.
    write(&folder.path("in.png"), (3, 1), ColorType::Grayscale, BitDepth::One, &[0b0110_0000]);
    finish(folder.blur("in.png", "out.png", &["--radius", "1"]));
    assert_eq!(read(&folder.path("out.png")), (ColorType::Grayscale, (3, 1), vec![128, 170, 255]));
}

#[test]
fn a_blur_in_json_is_one_object() {
    let folder = Folder::new();
    let args = ["--radius", "2", "--kernel", "blur_shared", "--iters", "3", "--json"];
    let (code, stdout, _) = finish(folder.blur("in.png", "out.png", &args));
    let [object] = &objects(&stdout)[..] else { panic!("{stdout}") };
    assert_eq!(code, 0);
    for (key, value) in
        [("width", 37), ("height", 41), ("channels", 3), ("radius", 2), ("iters", 3)]
    {
        assert_eq!(object[key], value, "{key}");
    }
    assert_eq!((&object["kernel"], &object["device"]), (&"blur_shared".into(), &"cpu".into()));
    assert_eq!(object["out"], folder.path("out.png").to_str().unwrap());
    assert_eq!(object["verified"], true);
    for key in ["time_us", "mpixel_per_s", "upload_us", "download_us"] {
        assert!(object[key].as_f64().unwrap() > 0.0, "{key}: {stdout}");
    }
    has_no_noise(object);
}

#[test]
fn steps_are_told_on_standard_error() {
    let folder = Folder::new();
    let (_, stdout, stderr) = finish(folder.blur("in.png", "out.png", &["--radius", "1", "-v"]));
    for step in ["read ", "kernel blur", "verification", "write "] {
        assert!(
            stderr.contains(&format!("\n{step}")) || stderr.starts_with(step),
            "{step}: {stderr}"
        );
    }
    assert!(!stdout.contains(" ..."), "{stdout}");
}

#[test]
fn a_picture_may_be_blurred_in_its_place() {
    let folder = Folder::new();
    let (_, _, image) = read(&folder.path("in.png"));
    let (code, _, stderr) = finish(folder.blur("in.png", "in.png", &["--radius", "3", "--force"]));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(read(&folder.path("in.png")).2, naive(SIZE, 3, 3, &image));
    assert_eq!(folder.files(), ["in.png"]);
}

#[cfg(unix)]
#[test]
fn what_is_replaced_keeps_its_permissions_and_a_link_stays_one() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let folder = Folder::new();
    let mode = |name| fs::metadata(folder.path(name)).unwrap().mode() & 0o777;
    File::create(folder.path("out.png")).unwrap();
    let new = mode("out.png");
    fs::set_permissions(folder.path("out.png"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("out.png", folder.path("link.png")).unwrap();
    let (code, _, stderr) = finish(folder.blur("in.png", "link.png", &["--radius", "1"]));
    assert_eq!((code, mode("out.png")), (0, 0o640), "{stderr}");
    assert!(fs::symlink_metadata(folder.path("link.png")).unwrap().is_symlink());
    assert_eq!(read(&folder.path("out.png")).1, SIZE);
    // A file that did not exist is like any other new file.
    finish(folder.blur("in.png", "new.png", &["--radius", "1"]));
    assert_eq!(mode("new.png"), new);
}

/// A refused run: its exit code, words of its message, and no files written.
#[track_caller]
fn refused(folder: &Folder, input: &str, output: &str, more: &[&str], code: i32, words: &[&str]) {
    let before = folder.files();
    fails(folder.blur(input, output, more), code, words);
    assert_eq!(folder.files(), before);
}

#[test]
fn what_is_no_picture_is_refused() {
    let folder = Folder::new();
    let radius = ["--radius", "1"];
    let whole = fs::read(folder.path("in.png")).unwrap();
    refused(&folder, "none.png", "out.png", &radius, 2, &["--in = ", "none.png", "cannot be read"]);
    refused(&folder, ".", "out.png", &radius, 2, &["--in = ", "is no file but a folder"]);
    for (name, bytes) in [
        ("empty", vec![]),
        ("text", b"not a picture".to_vec()),
        ("signature", whole[..8].to_vec()),
        ("half", whole[..whole.len() / 2].to_vec()),
        ("without its end", whole[..whole.len() - 12].to_vec()),
        ("damaged", {
            let mut bytes = whole.clone();
            bytes[whole.len() / 2] ^= 0xff;
            bytes
        }),
    ] {
        fs::write(folder.path("bad.png"), bytes).unwrap();
        let before = folder.files();
        let (code, stdout, stderr) = finish(folder.blur("bad.png", "out.png", &radius));
        assert_eq!((code, &*stdout), (2, ""), "{name}: {stderr}");
        assert!(
            stderr.contains("--in = ") && stderr.contains("bad.png: no readable PNG: "),
            "{name}: {stderr}"
        );
        assert_eq!(folder.files(), before, "{name}");
    }
}

#[test]
fn pictures_that_would_lose_something_are_refused() {
    let folder = Folder::new();
    let deep = folder.path("deep.png");
    write(&deep, (3, 2), ColorType::Grayscale, BitDepth::Sixteen, &noise(12));
    refused(
        &folder,
        "deep.png",
        "out.png",
        &["--radius", "1"],
        2,
        &["deep.png: 16 bits", "at most 8"],
    );
    let file = BufWriter::new(File::create(folder.path("film.png")).unwrap());
    let mut encoder = Encoder::new(file, 2, 2);
    encoder.set_animated(2, 0).unwrap();
    let mut writer = encoder.write_header().unwrap();
    (0..2).for_each(|_| writer.write_image_data(&[7; 4]).unwrap());
    writer.finish().unwrap();
    refused(
        &folder,
        "film.png",
        "out.png",
        &["--radius", "1"],
        2,
        &["film.png", "2 frames", "one image"],
    );
}

/// A header can declare any size. Nothing is allocated for it.
#[test]
fn a_picture_larger_than_memory_is_refused() {
    let folder = Folder::new();
    let mut encoder =
        Encoder::new(File::create(folder.path("huge.png")).unwrap(), 10_000_000, 2_000_000);
    encoder.set_color(ColorType::Rgba);
    let mut writer = encoder.write_header().unwrap();
    // The data are not read.
    writer.write_chunk(png::chunk::IDAT, &[0x78, 0x9c]).unwrap();
    drop(writer);
    refused(
        &folder,
        "huge.png",
        "out.png",
        &["--radius", "1"],
        4,
        &["out of memory on cpu", "bytes needed"],
    );
    let encoder = Encoder::new(File::create(folder.path("tall.png")).unwrap(), 1, 2_097_121);
    encoder.write_header().unwrap().write_chunk(png::chunk::IDAT, &[0x78, 0x9c]).unwrap();
    refused(
        &folder,
        "tall.png",
        "out.png",
        &["--radius", "1"],
        2,
        &["height = 2097121", "1 to 2097120"],
    );
}

#[test]
fn a_radius_outside_its_limits_is_refused() {
    let folder = Folder::new();
    for value in ["0", "-1", "2048", "3.5", "wide", ""] {
        let words = ["--radius", &format!("'{value}'"), "1 to 2047"];
        refused(&folder, "in.png", "out.png", &["--radius", value], 2, &words);
    }
    let words = ["radius = 42: must be from 1 to 41", "the image"];
    refused(&folder, "in.png", "out.png", &["--radius", "42"], 2, &words);
    let args = ["--radius", "33", "--kernel", "blur_shared"];
    refused(&folder, "in.png", "out.png", &args, 2, &["radius = 33: blur_shared takes at most 32"]);
    let (code, _, stderr) = finish(folder.blur("in.png", "out.png", &["--radius", "41"]));
    assert_eq!(code, 0, "{stderr}");
    refused(&folder, "in.png", "new.png", &[], 2, &["required", "--radius"]);
    let kernel = ["--radius", "1", "--kernel", "tiled16"];
    refused(
        &folder,
        "in.png",
        "new.png",
        &kernel,
        2,
        &["--kernel", "'tiled16'", "blur or blur_shared"],
    );
}

#[test]
fn an_output_that_cannot_be_written_is_refused() {
    let folder = Folder::new();
    let radius = ["--radius", "1"];
    fs::create_dir(folder.path("folder")).unwrap();
    refused(
        &folder,
        "in.png",
        "nowhere/out.png",
        &radius,
        2,
        &["--out = ", "nowhere/out.png: cannot be written: there is no folder ", "nowhere"],
    );
    refused(
        &folder,
        "in.png",
        "folder",
        &radius,
        2,
        &["--out = ", "folder", "is there, and no file"],
    );
    refused(&folder, "in.png", "..", &radius, 2, &["--out = ", "names no file"]);
    refused(&folder, "in.png", "out.jpg", &radius, 2, &["--out = ", "must end in .png"]);
    fs::write(folder.path("locked.png"), "old").unwrap();
    let mut permissions = fs::metadata(folder.path("locked.png")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(folder.path("locked.png"), permissions).unwrap();
    refused(&folder, "in.png", "locked.png", &radius, 2, &["--out = ", "locked.png", "read-only"]);
    assert_eq!(fs::read(folder.path("locked.png")).unwrap(), b"old");
    // A device file is never replaced.
    let input = folder.path("in.png");
    let args = ["blur", "--in", input.to_str().unwrap(), "--out", "/dev/null", "--radius", "1"];
    fails(host(&args), 2, &["--out = /dev/null", "no file"]);
}

#[test]
fn a_wrong_picture_is_not_written() {
    // Kernels that do nothing.
    let folder = Folder::new();
    let args = folder.args("in.png", "out.png", &["--radius", "1", "--device", "cuda"]);
    let args = args.iter().map(String::as_str).collect::<Vec<_>>();
    let (code, stdout, stderr) = finish(on("kernels=1", &args));
    assert!(code == 1 && stdout.contains("\nWRONG ") && !stdout.contains("verified"), "{stdout}");
    assert!(
        stderr.contains("error: the pixel at row 0, column ") && stderr.contains("reproduce: "),
        "{stderr}"
    );
    let (_, stdout, _) = finish(on("kernels=1", &[&args[..], &["--json"]].concat()));
    assert_eq!(objects(&stdout)[0]["verified"], false);
    assert_eq!(folder.files(), ["in.png"]);
}

#[test]
fn without_a_gpu_none_is_pretended() {
    let folder = Folder::new();
    let radius = ["--radius", "1", "--device", "cuda"];
    refused(&folder, "in.png", "out.png", &radius, 3, &["no NVIDIA driver"]);
    let args = folder.args("in.png", "out.png", &radius);
    let args = args.iter().map(String::as_str).collect::<Vec<_>>();
    fails(on("cuCtxSynchronize=700 cuStreamSynchronize=700", &args), 4, &["700"]);
    assert_eq!(folder.files(), ["in.png"]);
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let folder = Folder::new();
    write(
        &folder.path("in.png"),
        (1000, 1000),
        ColorType::Grayscale,
        BitDepth::Eight,
        &noise(1_000_000),
    );
    // A minute of work in one launch.
    is_interrupted(folder.blur("in.png", "out.png", &["--radius", "100", "-v"]), "kernel blur");
    assert_eq!(folder.files(), ["in.png"]);
}
