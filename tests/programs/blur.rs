//! Image blur: both kernels, on every device.

use host::{
    Error,
    blur::{BLURS, Size, blur, reference},
    operands,
};
use tests::{devices, streams};

/// Width, height and channels: less than a block, more, one row, one column, one pixel, and sizes
/// that no block divides, for every number of channels.
const SIZES: [[u32; 3]; 9] = [
    [1, 1, 1],
    [33, 9, 1],
    [70, 41, 4],
    [32, 32, 1],
    [64, 32, 3],
    [101, 1, 2],
    [1, 75, 3],
    [45, 67, 2],
    [37, 70, 3],
];

const RADII: [u32; 7] = [1, 2, 3, 7, 16, 32, 67];

/// Bytes without a pattern.
fn noise(size: Size) -> Vec<u8> {
    let seed = u64::from(size.width() * 7 + size.height());
    let uniform = operands::uniform::<f32>(seed, size.bytes()).unwrap();
    uniform.into_iter().map(|x| ((x + 1.0) * 128.0) as u8).collect()
}

/// The mean of the box around every byte of a channel, by four loops.
fn naive(size: Size, radius: u32, image: &[u8]) -> Vec<u8> {
    let [width, height, channels, radius] =
        [size.width(), size.height(), size.channels(), radius].map(i64::from);
    let mut blurred = Vec::new();
    for y in 0..height {
        for x in 0..width {
            for channel in 0..channels {
                let (mut sum, mut count) = (0, 0);
                for row in (y - radius).max(0)..(y + radius + 1).min(height) {
                    for col in (x - radius).max(0)..(x + radius + 1).min(width) {
                        let place = (row * width + col) * channels + channel;
                        sum += i64::from(image[place as usize]);
                        count += 1;
                    }
                }
                // Rounded to the nearest, half up.
                blurred.push(((2 * sum + count) / (2 * count)) as u8);
            }
        }
    }
    blurred
}

#[test]
fn every_byte_is_that_of_four_plain_loops() {
    let mut compared = 0;
    for [width, height, channels] in SIZES {
        let size = Size::new(width, height, channels).unwrap();
        let image = noise(size);
        for radius in RADII.into_iter().filter(|&radius| radius <= width.max(height)) {
            let expected = naive(size, radius, &image);
            assert_eq!(
                reference(size, radius, &image).unwrap(),
                expected,
                "{size}, radius {radius}"
            );
            for device in devices() {
                let input = device.upload(&image).unwrap();
                for kernel in BLURS.iter().filter(|kernel| radius <= kernel.max_radius) {
                    let mut output = device.upload(&vec![0xa5; image.len()]).unwrap();
                    blur(&device.stream().unwrap(), kernel, size, radius, &input, &mut output)
                        .unwrap();
                    let context = format!("{device}: {}, {size}, radius {radius}", kernel.name());
                    assert_eq!(output.to_vec().unwrap(), expected, "{context}");
                    compared += 1;
                }
            }
        }
    }
    // One radius for the single pixel, and so on. Radius 67 is for the plain kernel only.
    let radii = |side: u32| RADII.into_iter().filter(|&radius| radius <= side).count();
    let all = SIZES.map(|[width, height, _]| radii(width.max(height))).iter().sum::<usize>();
    let large = SIZES.iter().filter(|[width, height, _]| *width.max(height) >= 67).count();
    assert_eq!(compared, (2 * all - large) * devices().len());
}

#[test]
fn a_mean_of_white_is_white_and_halves_are_rounded_up() {
    for (device, stream) in streams() {
        for kernel in &BLURS {
            let run = |size, radius, image: &[u8]| {
                let mut output = device.zeros(image.len()).unwrap();
                let input = device.upload(image).unwrap();
                blur(&stream, kernel, size, radius, &input, &mut output).unwrap();
                output.to_vec().unwrap()
            };
            let white = Size::new(65, 40, 4).unwrap();
            let bytes = vec![255; white.bytes()];
            assert_eq!(run(white, 32, &bytes), bytes, "{device}: {}", kernel.name());
            // 0.5, 1.5 and 254.5.
            let pair = Size::new(2, 1, 1).unwrap();
            for (image, mean) in [([0, 1], 1), ([1, 2], 2), ([254, 255], 255)] {
                assert_eq!(run(pair, 1, &image), [mean; 2], "{device}: {}", kernel.name());
            }
        }
    }
}

#[test]
fn a_radius_that_is_refused_leaves_the_output_alone() {
    for device in devices() {
        let (stream, size) = (device.stream().unwrap(), Size::new(40, 50, 1).unwrap());
        let input = device.upload(&noise(size)).unwrap();
        let mut output = device.upload(&[0xa5; 2000]).unwrap();
        for (kernel, radius) in [(&BLURS[0], 0), (&BLURS[0], 51), (&BLURS[1], 33)] {
            let error = blur(&stream, kernel, size, radius, &input, &mut output).unwrap_err();
            assert!(matches!(error, Error::Argument { .. }), "{error}");
            assert!(error.to_string().starts_with(&format!("radius = {radius}: ")), "{error}");
            assert_eq!(output.to_vec().unwrap(), [0xa5; 2000]);
        }
    }
}
