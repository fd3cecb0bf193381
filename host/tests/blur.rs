//! The built command's `blur`: images in and out, and a refused run leaves no files.

#[allow(dead_code, reason = "not every file of tests needs all of it")]
mod common;
#[path = "common/folder.rs"]
mod folder;

use std::{
    fs::{self, File},
    io::{BufReader, BufWriter},
    path::Path,
    process::Command,
};

use png::{BitDepth, ColorType, Decoder, Encoder};
use serde_json::json;

use self::common::{
    fails, finish, has, has_no_noise, host, is_interrupted, object, objects, on, succeeds,
};
use self::folder::Folder;

/// The size of the images: no multiples of a block.
const SIZE: (u32, u32) = (37, 41);

impl Folder {
    /// One with an image.
    fn with_picture() -> Self {
        let folder = Folder::new();
        write(&folder.path("in.png"), SIZE, ColorType::Rgb, BitDepth::Eight, &noise(3 * 37 * 41));
        folder
    }

    /// `blur --in IN --out OUT ...`, both in this folder, on a machine with that driver.
    fn blur_on(&self, driver: &str, input: &str, output: &str, more: &[&str]) -> Command {
        let args = ["blur", "--in", &self.text(input), "--out", &self.text(output)];
        on(driver, &[&args[..], more].concat())
    }

    fn blur(&self, input: &str, output: &str, more: &[&str]) -> Command {
        self.blur_on("no driver", input, output, more)
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
    let folder = Folder::with_picture();
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
    let folder = Folder::with_picture();
    // Two pixels of two bits in each of two rows: red and transparent blue, white and black.
    write(
        &folder.path("in.png"),
        (2, 2),
        ColorType::Indexed,
        BitDepth::Two,
        &[0b0111_0000, 0b1000_0000],
    );
    succeeds(folder.blur("in.png", "out.png", &["--radius", "1"]));
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
    let folder = Folder::with_picture();
    let args = ["--radius", "2", "--kernel", "blur_shared", "--iters", "3", "--json"];
    let object = &object(folder.blur("in.png", "out.png", &args));
    has(object, json!({"width": 37, "height": 41, "channels": 3, "radius": 2, "iters": 3}));
    has(object, json!({"kernel": "blur_shared", "device": "cpu", "verified": true}));
    assert_eq!(object["out"], folder.path("out.png").to_str().unwrap());
    for key in ["time_us", "mpixel_per_s", "upload_us", "download_us"] {
        assert!(object[key].as_f64().unwrap() > 0.0, "{key}: {object}");
    }
    has_no_noise(object);
}

#[test]
fn steps_are_told_on_standard_error() {
    let folder = Folder::with_picture();
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
    let folder = Folder::with_picture();
    let (_, _, image) = read(&folder.path("in.png"));
    succeeds(folder.blur("in.png", "in.png", &["--radius", "3", "--force"]));
    assert_eq!(read(&folder.path("in.png")).2, naive(SIZE, 3, 3, &image));
    assert_eq!(folder.files(), ["in.png"]);
}

#[cfg(unix)]
#[test]
fn what_is_replaced_keeps_its_permissions_and_a_link_stays_one() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let folder = Folder::with_picture();
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

/// A refused run: words of its message, and no files written.
#[track_caller]
fn refused(folder: &Folder, input: &str, output: &str, more: &[&str], words: &[&str]) {
    let before = folder.files();
    fails(folder.blur(input, output, more), 2, words);
    assert_eq!(folder.files(), before);
}

const RADIUS: [&str; 2] = ["--radius", "1"];

#[test]
fn what_is_no_picture_is_refused() {
    let folder = Folder::with_picture();
    let whole = fs::read(folder.path("in.png")).unwrap();
    refused(&folder, "none.png", "out.png", &RADIUS, &["--in = ", "none.png", "cannot be read"]);
    refused(&folder, ".", "out.png", &RADIUS, &["--in = ", "is no file but a folder"]);
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
        let (code, stdout, stderr) = finish(folder.blur("bad.png", "out.png", &RADIUS));
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
    let folder = Folder::with_picture();
    let deep = folder.path("deep.png");
    write(&deep, (3, 2), ColorType::Grayscale, BitDepth::Sixteen, &noise(12));
    refused(&folder, "deep.png", "out.png", &RADIUS, &["deep.png: 16 bits", "at most 8"]);
    let file = BufWriter::new(File::create(folder.path("film.png")).unwrap());
    let mut encoder = Encoder::new(file, 2, 2);
    encoder.set_animated(2, 0).unwrap();
    let mut writer = encoder.write_header().unwrap();
    (0..2).for_each(|_| writer.write_image_data(&[7; 4]).unwrap());
    writer.finish().unwrap();
    refused(&folder, "film.png", "out.png", &RADIUS, &["film.png", "2 frames", "one image"]);
}

/// A header can declare any size. Nothing is allocated for it.
#[test]
fn a_picture_larger_than_memory_is_refused() {
    let folder = Folder::with_picture();
    let mut encoder =
        Encoder::new(File::create(folder.path("huge.png")).unwrap(), 10_000_000, 2_000_000);
    encoder.set_color(ColorType::Rgba);
    let mut writer = encoder.write_header().unwrap();
    // The data are not read.
    writer.write_chunk(png::chunk::IDAT, &[0x78, 0x9c]).unwrap();
    drop(writer);
    let before = folder.files();
    let words = ["out of memory on cpu", "bytes needed"];
    fails(folder.blur("huge.png", "out.png", &RADIUS), 4, &words);
    assert_eq!(folder.files(), before);
    let encoder = Encoder::new(File::create(folder.path("tall.png")).unwrap(), 1, 2_097_121);
    encoder.write_header().unwrap().write_chunk(png::chunk::IDAT, &[0x78, 0x9c]).unwrap();
    refused(&folder, "tall.png", "out.png", &RADIUS, &["height = 2097121", "1 to 2097120"]);
}

#[test]
fn a_radius_outside_its_limits_is_refused() {
    let folder = Folder::with_picture();
    for value in ["0", "-1", "2048", "3.5", "wide", ""] {
        let words = ["--radius", &format!("'{value}'"), "1 to 2047"];
        refused(&folder, "in.png", "out.png", &["--radius", value], &words);
    }
    let words = ["radius = 42: must be from 1 to 41", "the image"];
    refused(&folder, "in.png", "out.png", &["--radius", "42"], &words);
    let args = ["--radius", "33", "--kernel", "blur_shared"];
    refused(&folder, "in.png", "out.png", &args, &["radius = 33: blur_shared takes at most 32"]);
    succeeds(folder.blur("in.png", "out.png", &["--radius", "41"]));
    refused(&folder, "in.png", "new.png", &[], &["required", "--radius"]);
    let kernel = ["--radius", "1", "--kernel", "tiled16"];
    let words = ["--kernel", "'tiled16'", "blur or blur_shared"];
    refused(&folder, "in.png", "new.png", &kernel, &words);
}

#[test]
fn an_output_that_cannot_be_written_is_refused() {
    let folder = Folder::with_picture();
    let to = |output: &str, words: &[&str]| {
        refused(&folder, "in.png", output, &RADIUS, &[&["--out = "], words].concat());
    };
    fs::create_dir(folder.path("folder")).unwrap();
    let words = "nowhere/out.png: cannot be written: there is no folder ";
    to("nowhere/out.png", &[words, "nowhere"]);
    to("folder", &["folder", "is there, and no file"]);
    to("..", &["names no file"]);
    to("out.jpg", &["must end in .png"]);
    fs::write(folder.path("locked.png"), "old").unwrap();
    let mut permissions = fs::metadata(folder.path("locked.png")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(folder.path("locked.png"), permissions).unwrap();
    to("locked.png", &["locked.png", "read-only"]);
    assert_eq!(fs::read(folder.path("locked.png")).unwrap(), b"old");
    // A device file is never replaced.
    let args = ["blur", "--in", &folder.text("in.png"), "--out", "/dev/null", "--radius", "1"];
    fails(host(&args), 2, &["--out = /dev/null", "no file"]);
}

#[test]
fn a_wrong_picture_is_not_written() {
    // Kernels that do nothing.
    let folder = Folder::with_picture();
    let blur = |more: &[&str]| {
        let args = [&["--radius", "1", "--device", "cuda"], more].concat();
        finish(folder.blur_on("kernels=1", "in.png", "out.png", &args))
    };
    let (code, stdout, stderr) = blur(&[]);
    assert!(code == 1 && stdout.contains("\nWRONG ") && !stdout.contains("verified"), "{stdout}");
    assert!(
        stderr.contains("error: the pixel at row 0, column ") && stderr.contains("reproduce: "),
        "{stderr}"
    );
    let (_, stdout, _) = blur(&["--json"]);
    assert_eq!(objects(&stdout)[0]["verified"], false);
    assert_eq!(folder.files(), ["in.png"]);
}

#[test]
fn without_a_gpu_none_is_pretended() {
    let folder = Folder::with_picture();
    let more = ["--radius", "1", "--device", "cuda"];
    fails(folder.blur("in.png", "out.png", &more), 3, &["no NVIDIA driver"]);
    let driver = "cuCtxSynchronize=700 cuStreamSynchronize=700";
    fails(folder.blur_on(driver, "in.png", "out.png", &more), 4, &["700"]);
    assert_eq!(folder.files(), ["in.png"]);
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let folder = Folder::with_picture();
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
