//! `cargo run -p host --example pitched`: rows with the device's own pitch, in two and three
//! dimensions.

use host::{
    Device, Region, Result,
    gpu::lessons::pitched::{BOX, ROWS, row_sums, scale_box},
    simt::LaunchConfig,
};

fn main() -> Result<()> {
    let device = Device::best().device;
    let stream = device.stream()?;

    // 64 x 64 floats, as in the CUDA programming guide, and a width that needs padding.
    for (width, height) in [(64u32, 64u32), (100, 7)] {
        let mut array = device.pitched::<f32>(width as usize, height as usize)?;
        let values: Vec<_> = (0..width * height).map(|i| (i / width) as f32).collect();
        array.write(&values)?;
        let mut sums = device.zeros::<f32>(height as usize)?;
        let config = LaunchConfig::new([height.div_ceil(ROWS as u32), 1, 1], [ROWS as u32, 1, 1]);
        let arguments = (width, height, array.pitch() as u64, &array, &mut sums);
        // SAFETY: the kernel keeps inside rows of this pitch, and each thread writes the sum of its
        // own row.
        unsafe { stream.launch(&row_sums, &config, arguments)? };
        println!("{width} x {height} floats on {}: pitch {} bytes", device.name(), array.pitch());
        println!("  row 5 sums up to {}, 5 x {width} = {}", sums.to_vec()?[5], 5 * width);
    }

    // Three dimensions: everything is multiplied by ten, then a box in the middle is read.
    let (width, height, depth) = (5u32, 4u32, 3u32);
    let mut array = device.pitched_3d::<f32>(width as usize, height as usize, depth as usize)?;
    array.write(&(0..width * height * depth).map(|i| i as f32).collect::<Vec<_>>())?;
    let [x, y] = BOX.map(|threads| threads as u32);
    let config = LaunchConfig::new([width.div_ceil(x), height.div_ceil(y), depth], [x, y, 1]);
    let (pitch, slice_pitch) = (array.pitch() as u64, array.slice_pitch() as u64);
    let arguments = (width, height, depth, pitch, slice_pitch, 10.0, &mut array);
    // SAFETY: the kernel keeps inside slices and rows of these pitches, with a thread for each
    // element.
    unsafe { stream.launch(&scale_box, &config, arguments)? };
    let middle = Region { origin: [1, 1, 1], extent: [3, 2, 1] };
    let mut values = [0.0; 6];
    array.read_region(middle, &mut values)?;
    println!("{width} x {height} x {depth} floats: slice pitch {slice_pitch} bytes");
    println!("  times ten, from (1, 1, 1) on: {:?} {:?}", &values[..3], &values[3..]);
    Ok(())
}
