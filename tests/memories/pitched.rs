//! Pitched arrays: their copies compared with a dense model, the kernels that read them, and
//! refused calls.

use gpu::lessons::pitched::{BOX, ROWS, row_sums, scale_box};
use host::{Device, Pitched, Region, Stream};
use simt::LaunchConfig;
use tests::{devices, streams};

/// A single element, a round width, ragged ones, more than a block of each kernel.
const SIZES: [[usize; 3]; 6] =
    [[1, 1, 1], [64, 64, 1], [100, 7, 1], [33, 9, 5], [129, 66, 2], [3, 1, 4]];

/// An array of 0, 1, 2 ... with NaN between its rows, and the same without gaps.
fn counted(device: &Device, [width, height, depth]: [usize; 3]) -> (Pitched<f32>, Vec<f32>) {
    let mut array = device.pitched_3d(width, height, depth).unwrap();
    array.fill_bytes(0xff).unwrap();
    let values: Vec<_> = (0..width * height * depth).map(|i| i as f32).collect();
    array.write(&values).unwrap();
    (array, values)
}

/// The sums of `width` elements of each row of a slice.
fn sums(stream: &Stream, array: &Pitched<f32>, width: usize, rows: usize) -> Vec<f32> {
    let mut sums = stream.device().zeros::<f32>(rows).unwrap();
    let blocks = rows.div_ceil(ROWS) as u32;
    let config = LaunchConfig::new([blocks, 1, 1], [ROWS as u32, 1, 1]);
    let arguments = (width as u32, rows as u32, array.pitch() as u64, array, &mut sums);
    // SAFETY: the kernel keeps inside rows of this pitch, and each thread writes the sum of its own
    // row.
    unsafe { stream.launch(&row_sums, &config, arguments) }.unwrap();
    sums.to_vec().unwrap()
}

#[test]
fn what_is_written_is_read_and_the_pitch_is_a_rows_at_least() {
    for device in devices() {
        for size in SIZES {
            let (array, values) = counted(&device, size);
            assert_eq!([array.width(), array.height(), array.depth()], size);
            assert!(array.pitch() >= 4 * size[0] && array.pitch().is_multiple_of(16), "{device}");
            assert_eq!(array.slice_pitch(), array.pitch() * size[1]);
            assert_eq!(array.to_vec().unwrap(), values, "{device} {size:?}");
        }
        assert_eq!(device.pitched::<u8>(3, 2).unwrap().to_vec().unwrap(), [0; 6], "{device}");
    }
}

#[test]
fn a_kernel_walks_the_rows_by_pitch() {
    for (device, stream) in streams() {
        for size in SIZES {
            let (array, values) = counted(&device, size);
            // The rows of all slices are one pitch apart.
            let found = sums(&stream, &array, size[0], size[1] * size[2]);
            // Below 2^24 every sum is exact.
            let expected: Vec<_> =
                values.chunks(size[0]).map(|row| row.iter().sum::<f32>()).collect();
            assert_eq!(found, expected, "{device} {size:?}");
        }
    }
}

#[test]
fn a_kernel_scales_a_box_and_leaves_the_padding() {
    for (device, stream) in streams() {
        for size in SIZES {
            let (mut array, values) = counted(&device, size);
            let [width, height, depth] = size.map(|size| size as u32);
            let [x, y] = BOX.map(|threads| threads as u32);
            let grid = [width.div_ceil(x), height.div_ceil(y), depth];
            let (pitch, slice_pitch) = (array.pitch() as u64, array.slice_pitch() as u64);
            let arguments = (width, height, depth, pitch, slice_pitch, 0.5, &mut array);
            let config = LaunchConfig::new(grid, [x, y, 1]);
            // SAFETY: the kernel keeps inside rows and slices of these pitches, with a thread for
            // each element.
            unsafe { stream.launch(&scale_box, &config, arguments) }.unwrap();
            let expected: Vec<_> = values.iter().map(|x| 0.5 * x).collect();
            assert_eq!(array.to_vec().unwrap(), expected, "{device} {size:?}");
            if array.pitch() > 4 * size[0] {
                // The next element is padding, and still NaN.
                let wider = sums(&stream, &array, size[0] + 1, size[1] * size[2]);
                assert!(wider.iter().all(|sum| sum.is_nan()), "{device} {size:?}");
            }
        }
    }
}

/// The places in dense memory of a region's elements.
fn places(size: [usize; 3], Region { origin, extent }: Region) -> Vec<usize> {
    let mut places = Vec::new();
    for z in origin[2]..origin[2] + extent[2] {
        for y in origin[1]..origin[1] + extent[1] {
            let row = (z * size[1] + y) * size[0];
            places.extend(row + origin[0]..row + origin[0] + extent[0]);
        }
    }
    places
}

const SIZE: [usize; 3] = [33, 9, 5];
const REGIONS: [Region; 5] = [
    Region { origin: [0, 0, 0], extent: SIZE },
    Region { origin: [32, 8, 4], extent: [1, 1, 1] },
    Region { origin: [5, 2, 1], extent: [17, 4, 3] },
    Region { origin: [1, 3, 2], extent: [32, 6, 1] },
    Region { origin: [4, 4, 4], extent: [0, 2, 1] },
];

#[test]
fn parts_are_read_and_written() {
    for device in devices() {
        for region in REGIONS {
            let (mut array, mut model) = counted(&device, SIZE);
            let places = places(SIZE, region);
            let mut part = vec![0.0; places.len()];
            array.read_region(region, &mut part).unwrap();
            let expected: Vec<_> = places.iter().map(|&place| model[place]).collect();
            assert_eq!(part, expected, "{device} {region:?}");
            for (number, &place) in places.iter().enumerate() {
                part[number] = -(number as f32);
                model[place] = part[number];
            }
            array.write_region(region, &part).unwrap();
            assert_eq!(array.to_vec().unwrap(), model, "{device} {region:?}");
        }
    }
}

#[test]
fn parts_are_copied_between_arrays_of_other_pitches() {
    for device in devices() {
        for region in REGIONS {
            let (source, values) = counted(&device, SIZE);
            let wide = [300, 9, 6];
            let mut target = device.pitched_3d::<f32>(300, 9, 6).unwrap();
            assert_ne!(source.pitch(), target.pitch(), "{device}");
            let origin = [267, 0, 1];
            target.copy_from(origin, &source, region).unwrap();
            let mut model = vec![0.0; wide.iter().product()];
            let to = places(wide, Region { origin, extent: region.extent });
            for (to, from) in to.into_iter().zip(places(SIZE, region)) {
                model[to] = values[from];
            }
            assert_eq!(target.to_vec().unwrap(), model, "{device} {region:?}");
        }
    }
}

#[test]
fn rows_on_the_host_may_lie_apart_too() {
    for device in devices() {
        for [width, height, depth] in SIZES {
            let (rows, pitch) = (height * depth, width + 3);
            // The last row has no padding.
            let mut apart = vec![-7.0f32; (rows - 1) * pitch + width];
            for (row, values) in apart.chunks_mut(pitch).enumerate() {
                values[..width].fill(row as f32);
            }
            let mut array = device.pitched_3d::<f32>(width, height, depth).unwrap();
            array.write_pitched(&apart, 4 * pitch).unwrap();
            let expected: Vec<_> = (0..rows).flat_map(|row| vec![row as f32; width]).collect();
            assert_eq!(array.to_vec().unwrap(), expected, "{device}");
            let mut back = vec![-7.0f32; apart.len()];
            array.read_pitched(&mut back, 4 * pitch).unwrap();
            assert_eq!(back, apart, "{device}");
        }
    }
}

#[test]
fn a_wrong_pitch_is_refused_and_nothing_written() {
    for device in devices() {
        let (mut array, values) = counted(&device, [10, 4, 2]);
        let zeros = [0.0f32; 100];
        for (pitch, len, expected) in [
            (39, 100, "pitch = 39: a row of 10 elements has 40 bytes"),
            (0, 100, "pitch = 0: a row of 10 elements has 40 bytes"),
            (42, 100, "pitch = 42: must be a multiple of an element's 4 bytes"),
            (44, 86, "values.len() = 86: 87 are needed for 8 rows of this pitch"),
            (usize::MAX - 3, 100, "values.len() = 100: "),
        ] {
            let error = array.write_pitched(&zeros[..len], pitch).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().starts_with(expected), "{error}");
            let mut target = [1.0f32; 100];
            let error = array.read_pitched(&mut target[..len], pitch).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
            assert_eq!(target, [1.0; 100]);
        }
        assert_eq!(array.to_vec().unwrap(), values, "{device}");
    }
}

#[test]
fn regions_and_lengths_that_do_not_fit_are_refused() {
    for device in devices() {
        let (mut array, values) = counted(&device, [10, 4, 2]);
        let region = |origin, extent| Region { origin, extent };
        for (region, expected) in [
            (region([3, 0, 0], [8, 1, 1]), "region.x = 8 elements from 3: the array has 10"),
            (region([0, 5, 0], [1, 0, 1]), "region.y = 0 elements from 5: the array has 4"),
            (region([0, 0, 1], [1, 1, usize::MAX]), "region.z = 18446744073709551615 elements"),
        ] {
            let error = array.write_region(region, &[0.0; 8]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            let error = array.read_region(region, &mut [0.0; 8]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            let mut other = device.pitched_3d::<f32>(50, 50, 3).unwrap();
            let error = other.copy_from([0; 3], &array, region).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let small = device.pitched::<f32>(2, 2).unwrap();
        let error = array.copy_from([9, 0, 0], &small, small.region()).unwrap_err().to_string();
        assert_eq!(error, "target region.x = 2 elements from 9: the array has 10");
        let error = array.write(&values[1..]).unwrap_err().to_string();
        assert_eq!(error, "values.len() = 79: 10 x 4 x 2 = 80 are needed");
        assert_eq!(array.to_vec().unwrap(), values, "{device}");
    }
}

#[test]
fn sizes_that_no_array_has_are_refused() {
    for device in devices() {
        let refused = |width, height, depth| {
            device.pitched_3d::<f32>(width, height, depth).unwrap_err().to_string()
        };
        assert_eq!(refused(0, 1, 1), "width = 0: must be at least 1");
        assert_eq!(refused(1, 0, 1), "height = 0: must be at least 1");
        assert_eq!(refused(1, 1, 0), "depth = 0: must be at least 1");
        for [width, height, depth] in
            [[usize::MAX, 1, 1], [1, usize::MAX, 2], [1 << 30, 1 << 20, 1 << 20]]
        {
            let error = refused(width, height, depth);
            let expected = format!("width x height x depth = {width} x {height} x {depth}: ");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}

#[test]
fn a_launch_with_a_pitch_that_leads_outside_is_refused() {
    for (device, stream) in streams() {
        let array = device.pitched::<f32>(10, 4).unwrap();
        let mut sums = device.zeros::<f32>(4).unwrap();
        let config = LaunchConfig::new([1, 1, 1], [ROWS as u32, 1, 1]);
        let arguments = (10, 4, 2 * array.pitch() as u64, &array, &mut sums);
        // SAFETY: refused.
        let error = unsafe { stream.launch(&row_sums, &config, arguments) }.unwrap_err();
        assert!(error.to_string().starts_with("kernel row_sums: data has "), "{error}");
    }
}

#[test]
fn arrays_of_two_devices_are_not_mixed() {
    for device in devices() {
        let other = devices().into_iter().find(|other| *other != device);
        let Some(other) = other else { continue }; // `devices` has counted the GPU that is missing
        let (mut array, values) = counted(&device, [10, 4, 2]);
        let (source, _) = counted(&other, [10, 4, 2]);
        let error = array.copy_from([0; 3], &source, source.region()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("source.device() = {}", other.name())), "{error}");
        assert_eq!(array.to_vec().unwrap(), values, "{device}");
    }
}
