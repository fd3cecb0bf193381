//! Wrong launches: refused before anything runs, with a message that names the mistake.

use gpu::lessons::{rust_cuda::rust_cuda_tiled16, tiled::tiled16};
use host::{Boxes, BoxesMut, Buffer, Device, Layout, Matrix, Result, Stream, product};
use simt::{Element, LaunchConfig, device::*};
use tests::{cuda_devices, devices};

/// A product of 16 x 16 matrices on a device: A and B full of ones, C full of NaN.
struct Operands {
    stream: Stream,
    a: Buffer<f32>,
    b: Buffer<f32>,
    c: Buffer<f32>,
}

const UNTOUCHED: u32 = 0x7fc0_1234;

impl Operands {
    fn new(device: &Device) -> Self {
        let full_of = |value| device.upload(&[value; 256]).unwrap();
        Operands {
            stream: device.stream().unwrap(),
            a: full_of(1.0),
            b: full_of(1.0),
            c: full_of(f32::from_bits(UNTOUCHED)),
        }
    }

    /// Launches `tiled16`.
    fn launch(&mut self, config: &LaunchConfig, [m, n, k]: [u32; 3]) -> Result<()> {
        let arguments = (m, n, k, &self.a, &self.b, &mut self.c);
        // SAFETY: this kernel keeps inside the lengths that it declares, and these are checked.
        unsafe { self.stream.launch(&tiled16, config, arguments) }
    }

    /// The value of C, whose elements are all the same.
    fn c(&self) -> f32 {
        let c = self.c.to_vec().unwrap();
        assert!(c.iter().all(|x| x.to_bits() == c[0].to_bits()), "{c:?}");
        c[0]
    }
}

const RIGHT: LaunchConfig = LaunchConfig::new([1, 1, 1], [16, 16, 1]);

/// Checks on every device that `launch` is refused with `message`, that C is not changed, and that
/// then a right launch works.
fn refused(message: &str, launch: impl Fn(&mut Operands) -> Result<()>) {
    for device in devices() {
        let mut operands = Operands::new(&device);
        let error = launch(&mut operands).expect_err(message);
        assert!(error.to_string().starts_with(message), "{device}: {error}\nnot: {message}");
        assert_eq!(error.exit_code(), 2, "{device}: {error}");
        assert_eq!(operands.c().to_bits(), UNTOUCHED, "{device}: {message}");
        operands.launch(&RIGHT, [16, 16, 16]).unwrap();
        assert_eq!(operands.c(), 16.0, "{device}: after {message}");
    }
}

#[test]
fn a_block_that_the_kernel_does_not_declare() {
    for block in [[32, 8, 1], [16, 16, 2], [16, 15, 1], [0, 16, 1], [32, 32, 1]] {
        let message = format!("kernel tiled16: block = {block:?}: the kernel declares [16, 16, 1]");
        let config = LaunchConfig { block, ..RIGHT };
        refused(&message, |operands| operands.launch(&config, [16, 16, 16]));
    }
}

/// A kernel that declares no block takes any block that the device allows.
#[test]
fn a_block_that_no_device_has() {
    for (block, what) in [
        ([32, 32, 2], "block = [32, 32, 2] has 2048 threads: at most 1024"),
        ([0, 16, 1], "block.x = 0: must be 1 to 1024"),
        ([1, 1025, 1], "block.y = 1025: must be 1 to 1024"),
        ([1, 1, 65], "block.z = 65: must be 1 to 64"),
    ] {
        let config = LaunchConfig { block, ..RIGHT };
        refused(&format!("kernel rust_cuda_tiled16: {what}"), |operands| {
            let arguments = (16, 16, 16, &operands.a, &operands.b, &mut operands.c);
            // SAFETY: not launched, as the test checks.
            unsafe { operands.stream.launch(&rust_cuda_tiled16, &config, arguments) }
        });
    }
}

#[test]
fn a_grid_that_no_device_has() {
    for (grid, what) in [
        ([0, 1, 1], "grid.x = 0: must be 1 to 2147483647"),
        ([1, 0, 1], "grid.y = 0: must be 1 to 65535"),
        ([1, 1, 0], "grid.z = 0: must be 1 to 65535"),
        ([1 << 31, 1, 1], "grid.x = 2147483648: must be 1 to 2147483647"),
        ([1, 65536, 1], "grid.y = 65536: must be 1 to 65535"),
        ([1, 1, u32::MAX], "grid.z = 4294967295: must be 1 to 65535"),
    ] {
        let config = LaunchConfig { grid, ..RIGHT };
        let message = format!("kernel tiled16: {what}");
        refused(&message, |operands| operands.launch(&config, [16, 16, 16]));
    }
}

#[test]
fn more_shared_memory_than_there_is() {
    // The limit is 227 KiB on the CPU device and on Hopper. The kernel itself declares 2 KiB of it.
    for dynamic_shared in [227 * 1024 - 2047, 1 << 20, u32::MAX] {
        let all = u64::from(dynamic_shared) + 2048;
        let message = format!(
            "kernel tiled16: shared memory = {all} bytes (2048 static, {dynamic_shared} dynamic): at most "
        );
        let config = LaunchConfig { dynamic_shared, ..RIGHT };
        refused(&message, |operands| operands.launch(&config, [16, 16, 16]));
    }
}

#[test]
fn buffers_that_are_too_short() {
    for (sizes, what) in [
        ([17, 16, 16], "a has 256 elements, m * k = 272 are needed"),
        ([16, 17, 16], "b has 256 elements, k * n = 272 are needed"),
        ([257, 256, 0], "c has 256 elements, m * n = 65792 are needed"),
        ([257, 1, 1], "a has 256 elements, m * k = 257 are needed"),
        ([1, 257, 1], "b has 256 elements, k * n = 257 are needed"),
        ([257, 1, 0], "c has 256 elements, m * n = 257 are needed"),
        // Beyond 64 bits, and exactly 2^32, which is zero in 32 bits.
        ([u32::MAX; 3], "a has 256 elements, m * k = 18446744065119617025 are needed"),
        ([1 << 16, 16, 1 << 16], "a has 256 elements, m * k = 4294967296 are needed"),
    ] {
        let message = format!("kernel tiled16: {what}");
        refused(&message, |operands| operands.launch(&RIGHT, sizes));
    }
}

#[test]
fn views_out_of_range() {
    for (range, what) in [
        (0..257, "range = 0..257: the buffer has 256 elements"),
        (257..258, "range = 257..258: the buffer has 256 elements"),
        (0..usize::MAX, "range = 0..18446744073709551615: the buffer has 256 elements"),
        #[allow(clippy::reversed_empty_ranges, reason = "that is what must be refused")]
        (5..4, "range = 5..4: the buffer has 256 elements"),
    ] {
        refused(what, |operands| operands.a.view(range.clone()).map(drop));
        refused(what, |operands| operands.c.view_mut(range.clone()).map(drop));
    }
    // The message shows an inclusive range by its exclusive end.
    refused("range = 0..257: the buffer", |operands| operands.a.view(0..=256).map(drop));
    for (start, len) in [(0, 101), (101, 0), (50, 51), (usize::MAX, 2), (2, usize::MAX)] {
        let what = format!("range = {start}, {len} elements: the view has 100 elements");
        refused(&what, |operands| operands.a.view(..100)?.view(start, len).map(drop));
        refused(&what, |operands| operands.c.view_mut(..100)?.view_mut(start, len).map(drop));
    }
}

#[test]
fn copies_out_of_range() {
    let ones = [1.0; 257];
    for (start, len) in [(0, 257), (1, 256), (256, 1), (257, 0)] {
        let what = format!("range = {start}..{}: the buffer has 256 elements", start + len);
        refused(&what, |operands| operands.c.write(start, &ones[..len]));
        refused(&what, |operands| operands.c.read(start, &mut vec![0.0; len]));
    }
    refused("range = ", |operands| operands.c.write(usize::MAX, &ones[..2]));
}

#[test]
fn products_whose_operands_do_not_fit() {
    let entry = gpu::registry::find("tiled16").unwrap();
    let lengths = [
        ([15, 16, 16], "a.len() = 256: must be m * k = 240"),
        ([16, 15, 16], "b.len() = 256: must be k * n = 240"),
        ([4, 4, 64], "c.len() = 256: must be m * n = 16"),
    ];
    for ([m, n, k], what) in lengths {
        refused(what, |operands| {
            let shape = product::Shape::new(m, n, k)?;
            let Operands { stream, a, b, c } = operands;
            product::multiply_views(stream, entry, shape, a.view(..)?, b.view(..)?, c.view_mut(..)?)
        });
    }
    let shapes = [
        ([(2, 3), (4, 5), (2, 5)], "B.rows = 4: must be A.cols = 3"),
        ([(2, 3), (3, 5), (3, 5)], "C.rows = 3: must be A.rows = 2"),
        ([(2, 3), (3, 5), (2, 4)], "C.cols = 4: must be B.cols = 5"),
    ];
    for ([a, b, c], what) in shapes {
        refused(what, |operands| {
            let device = operands.stream.device();
            let matrix = |(rows, cols)| Matrix::zeros(device, rows, cols);
            product::multiply(&operands.stream, entry, &matrix(a)?, &matrix(b)?, &mut matrix(c)?)
        });
    }
}

#[test]
fn layouts_that_the_lessons_do_not_take() {
    let entry = gpu::registry::find("tiled16").unwrap();
    let layouts = [(Layout::ColMajor, 4), (Layout::RowMajor, 5)];
    for (which, name) in ["A", "B", "C"].into_iter().enumerate() {
        for (layout, leading) in layouts {
            let what =
                format!("{name} = {layout:?} with leading dimension {leading}: tiled16 takes");
            refused(&what, |operands| {
                let device = operands.stream.device();
                let matrix = |number| match which == number {
                    true => Matrix::with_layout(device, 4, 4, layout, leading),
                    false => Matrix::zeros(device, 4, 4),
                };
                let (a, b, mut c) = (matrix(0)?, matrix(1)?, matrix(2)?);
                product::multiply(&operands.stream, entry, &a, &b, &mut c)
            });
        }
    }
}

/// Buffers of another device than the stream's.
#[test]
fn a_buffer_elsewhere() {
    for gpu in cuda_devices() {
        for (here, there) in [(&gpu, &Device::cpu()), (&Device::cpu(), &gpu)] {
            for which in ["a", "b", "c"] {
                let mut operands = Operands::new(here);
                let elsewhere = Operands::new(there);
                match which {
                    "a" => operands.a = elsewhere.a,
                    "b" => operands.b = elsewhere.b,
                    _ => operands.c = elsewhere.c,
                }
                let error = operands.launch(&RIGHT, [16, 16, 16]).unwrap_err().to_string();
                let (here, there) = (here.name(), there.name());
                let what = format!("{which} is on {there}, the launch is on {here}");
                assert_eq!(error, format!("kernel tiled16: {what}"));
                assert_eq!(operands.c().to_bits(), UNTOUCHED);
            }
        }
    }
}

/// A kernel that is in no PTX file. It runs on the CPU, and a GPU's refusal says what to do.
#[test]
fn a_kernel_that_is_not_in_the_ptx() {
    #[kernel(block = (1))]
    fn in_no_file(mut c: Out<f32>) {
        c[0] = 1.0;
    }
    let launch = |device: &Device| {
        let mut c = device.zeros::<f32>(1).unwrap();
        let config = LaunchConfig::new([1, 1, 1], [1, 1, 1]);
        // SAFETY: one thread, one element.
        unsafe { device.stream()?.launch(&in_no_file, &config, (&mut c,)) }?;
        c.to_vec()
    };
    assert_eq!(launch(&Device::cpu()).unwrap(), [1.0]);
    for gpu in cuda_devices() {
        let error = launch(&gpu).unwrap_err().to_string();
        assert!(error.contains("no such kernel") && error.contains("load_ptx"), "{error}");
        // SAFETY: the kernel there does the same as the one above.
        unsafe { gpu.load_ptx("its own file", ITS_OWN_FILE) }.unwrap();
        assert_eq!(launch(&gpu).unwrap(), [1.0]);
        // With another declaration it would be another kernel.
        let stale = ITS_OWN_FILE.replace("block=1,", "block=2,");
        // SAFETY: no kernel of the source has this declaration.
        unsafe { gpu.load_ptx("a stale file", &stale) }.unwrap();
        let error = launch(&gpu).unwrap_err().to_string();
        assert!(error.contains("block=2,1,1") && error.contains("block=1,1,1"), "{error}");
        // SAFETY: it contains no kernel.
        let error = unsafe { gpu.load_ptx("no PTX", "no PTX") }.unwrap_err();
        assert_eq!(error.exit_code(), 3, "{error}");
    }
}

/// `in_no_file`, in the builder's form.
const ITS_OWN_FILE: &str = "
.version 7.1
.target sm_80
.address_size 64
.visible .entry in_no_file(.param .u64 c)
{
    // simt.kernel name=in_no_file block=1,1,1 barriers=0 params=out.f32
    .reg .b64 %c;
    ld.param.u64 %c, [c];
    cvta.to.global.u64 %c, %c;
    st.global.b32 [%c], 0x3f800000;
    ret;
}
";

const SHAPE: BoxShape = BoxShape { rows: 8, cols: 16, swizzle: 0 };

/// Copies the box at (row, col) of each matrix, with a block for each matrix. It is in no PTX file.
#[kernel(block = (32), dynamic_shared = 512, shared = 8, len(boxes = 128 * matrices))]
fn copy_boxes(matrices: u32, row: u32, col: u32, map: TensorMap<f32>, mut boxes: Out<f32>) {
    let _ = matrices;
    copy_box(&map, (thread::block_idx_x(), row, col), &mut boxes);
}

/// The same of one box, whose elements TMA rounds.
#[kernel(block = (32), dynamic_shared = 512, shared = 8, len(boxes = 128))]
fn copy_rounded(map: TensorMap<Tf32>, mut boxes: Out<Tf32>) {
    copy_box(&map, (0, 0, 0), &mut boxes);
}

/// Copies the box at that matrix, row and column to the block's place among `boxes`.
fn copy_box<T: Element>(map: &TensorMap<T>, place: (u32, u32, u32), boxes: &mut Out<T>) {
    let mut tile = dynamic_shared![T];
    let come = mbarriers![1];
    let (block, t) = (thread::block_idx_x() as usize, thread::thread_idx_x() as usize);
    if t == 0 {
        come.at(0).init(1);
        mbarrier::fence_init();
    }
    thread::sync_threads();
    if t == 0 {
        come.at(0).arrive_expect(512);
        tile.load_box(0, &map.boxes::<8, 16, 0>(), place, come.at(0));
    }
    come.at(0).wait(0);
    for i in (t..128).step_by(32) {
        boxes[block * 128 + i] = tile[i];
    }
}

/// A launch of `copy_boxes` at (row, col).
fn launch_boxes(
    device: &Device,
    boxes: Boxes<f32>,
    matrices: u32,
    (row, col): (u32, u32),
) -> Result<Vec<f32>> {
    let mut c = device.upload(&vec![f32::NAN; 128 * matrices as usize])?;
    let shape = LaunchConfig::new([matrices, 1, 1], [32, 1, 1]);
    let config = LaunchConfig { dynamic_shared: 512, ..shape };
    let arguments = (matrices, row, col, boxes, &mut c);
    // SAFETY: each block writes 128 elements of its own, and they exist.
    unsafe { device.stream()?.launch(&copy_boxes, &config, arguments) }?;
    c.to_vec()
}

/// Matrices hold f32, also where TMA rounds them to tf32.
#[test]
fn boxes_that_are_rounded_are_of_f32() {
    let device = Device::cpu();
    let matrix = Matrix::from_row_major(&device, 8, 16, &[1.0007f32; 128]).unwrap();
    let (boxes, mut c) = (Boxes::of(matrix.view(), SHAPE).unwrap(), device.zeros(128).unwrap());
    let config = LaunchConfig { dynamic_shared: 512, ..LaunchConfig::new([1; 3], [32, 1, 1]) };
    // SAFETY: the block writes 128 elements, and they exist.
    unsafe { device.stream().unwrap().launch(&copy_rounded, &config, (boxes, &mut c)) }.unwrap();
    assert!(c.to_vec().unwrap().iter().all(|x| x.to_bits() == (1.0 + 2f32.powi(-10)).to_bits()));
}

/// Boxes of matrices with gaps between rows and between matrices, of a part of a matrix, and beyond
/// its edges.
#[test]
fn boxes_of_matrices() {
    let device = Device::cpu();
    let (rows, cols, strides) = (20, 30, [700, 32]);
    let values = (0..2000).map(|i| i as f32).collect::<Vec<_>>();
    let buffer = device.upload(&values).unwrap();
    let boxes = Boxes::new(buffer.view(4..).unwrap(), [2, rows, cols], strides, SHAPE).unwrap();
    for first in [(0, 0), (5, 4), (15, 20), (19, 28), (20, 0), (0, 32)] {
        let copied = launch_boxes(&device, boxes, 2, (first.0 as u32, first.1 as u32)).unwrap();
        for (i, copied) in copied.into_iter().enumerate() {
            let (matrix, row, col) = (i / 128, first.0 + i % 128 / 16, first.1 + i % 16);
            let wanted = match row < rows && col < cols {
                true => values[4 + matrix * strides[0] + row * strides[1] + col],
                false => 0.0,
            };
            assert_eq!(copied, wanted, "{first:?}: element {i}");
        }
    }
    let matrix = Matrix::from_row_major(&device, 40, 32, &values[..1280]).unwrap();
    let part = Boxes::of(matrix.view().sub(10..40, 8..32).unwrap(), SHAPE).unwrap();
    let copied = launch_boxes(&device, part, 1, (2, 4)).unwrap();
    for (i, copied) in copied.into_iter().enumerate() {
        assert_eq!(copied, values[(12 + i / 16) * 32 + 12 + i % 16], "element {i}");
    }
}

/// Copies the first box of the matrix with that number. It is in no PTX file.
#[kernel(block = (32), dynamic_shared = 512, shared = 8, len(boxes = 128))]
fn copy_box_of_one(number: u32, maps: TensorMaps<f32, 3>, mut boxes: Out<f32>) {
    copy_box(&maps.numbered(number), (0, 0, 0), &mut boxes);
}

/// Several matrices are one parameter. A kernel selects one of them by number.
#[test]
fn boxes_of_one_of_several() {
    assert_eq!(copy_box_of_one.declaration.params[1].ty, "tensormaps.f32x3");
    let device = Device::cpu();
    let values = (0..2000).map(|i| i as f32).collect::<Vec<_>>();
    let buffer = device.upload(&values).unwrap();
    let launch = |number: u32, firsts: [usize; 3]| {
        let boxes = firsts.map(|first| {
            Boxes::new(buffer.view(first..).unwrap(), [1, 10, 30], [0, 32], SHAPE).unwrap()
        });
        let mut c = device.upload(&[f32::NAN; 128]).unwrap();
        let shape = LaunchConfig::new([1; 3], [32, 1, 1]);
        let config = LaunchConfig { dynamic_shared: 512, ..shape };
        // SAFETY: the block writes 128 elements, and they exist.
        unsafe { device.stream()?.launch(&copy_box_of_one, &config, (number, boxes, &mut c)) }?;
        c.to_vec()
    };
    for (number, first) in [400, 0, 804].into_iter().enumerate() {
        let copied = launch(number as u32, [400, 0, 804]).unwrap();
        for (i, copied) in copied.into_iter().enumerate() {
            assert_eq!(copied, values[first + i / 16 * 32 + i % 16], "{number}: element {i}");
        }
    }
    // TMA must be able to copy each, and there are no more.
    let error = launch(0, [0, 4, 6]).unwrap_err().to_string();
    assert!(error.starts_with("kernel copy_box_of_one: maps: address 0x"), "{error}");
    let error = launch(3, [0, 4, 8]).unwrap_err().to_string();
    assert!(error.contains("the len is 3 but the index is 3"), "{error}");
}

#[test]
fn boxes_that_cannot_be_copied() {
    let device = Device::cpu();
    let matrix = Matrix::<f32>::zeros(&device, 10, 18).unwrap();
    for (view, what) in [
        (
            matrix.view(),
            "72 bytes from one row to the next: a tensor map wants a multiple of sixteen below 2^40",
        ),
        (matrix.view().sub(0..0, 0..18).unwrap(), "0 rows: a tensor map has 1 to 2147483648"),
    ] {
        let error = launch_boxes(&device, Boxes::of(view, SHAPE).unwrap(), 1, (0, 0)).unwrap_err();
        assert_eq!(error.to_string(), format!("kernel copy_boxes: map: {what}"));
        assert_eq!(error.exit_code(), 2);
    }
    let part = Boxes::of(matrix.view().sub(0..1, 1..18).unwrap(), SHAPE).unwrap();
    let error = launch_boxes(&device, part, 1, (0, 0)).unwrap_err().to_string();
    assert!(error.starts_with("kernel copy_boxes: map: address 0x"), "{error}");
}

/// Writes `value` to a box of 8 x 16 elements for each block. The boxes are next to each other from
/// (row, 0) on. It is in no PTX file.
#[kernel(block = (32), dynamic_shared = 512)]
fn fill_boxes(row: u32, value: f32, map: TensorMapMut<f32>) {
    let mut tile = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    for i in (t..128).step_by(32) {
        tile[i] = value;
    }
    fence_proxy_async();
    thread::sync_threads();
    if t == 0 {
        tile.store_box(0, &map.boxes::<8, 16, 0>(), (0, row, thread::block_idx_x() * 16));
        bulk::commit_group();
        bulk::wait_group_read::<0>();
    }
}

/// Boxes are written inside their part of a matrix, and nowhere else.
#[test]
fn boxes_that_are_written() {
    let device = Device::cpu();
    let mut matrix = Matrix::<f32>::zeros(&device, 20, 64).unwrap();
    let shape = LaunchConfig::new([3, 1, 1], [32, 1, 1]);
    let config = LaunchConfig { dynamic_shared: 512, ..shape };
    let stream = device.stream().unwrap();
    let mut fill = |rows: std::ops::Range<usize>, cols: std::ops::Range<usize>| {
        let part = BoxesMut::of(matrix.view_mut().sub(rows, cols).unwrap(), SHAPE).unwrap();
        // SAFETY: each block writes a box of its own.
        unsafe { stream.launch(&fill_boxes, &config, (2, 5.0, part)) }
    };
    let error = fill(0..20, 1..40).unwrap_err().to_string();
    assert!(error.starts_with("kernel fill_boxes: map: address 0x"), "{error}");
    fill(5..12, 8..50).unwrap();
    for (i, value) in matrix.to_row_major().unwrap().into_iter().enumerate() {
        let is_inside = (7..12).contains(&(i / 64)) && (8..50).contains(&(i % 64));
        assert_eq!(value, if is_inside { 5.0 } else { 0.0 }, "({}, {})", i / 64, i % 64);
    }
    let error = BoxesMut::of(matrix.view_mut().t(), SHAPE).unwrap_err().to_string();
    assert!(
        error.starts_with("matrix.strides() = [1, 64]: the elements of a row must be"),
        "{error}"
    );
    let mut buffer = device.zeros::<f32>(100).unwrap();
    let error = BoxesMut::new(buffer.view_mut(..).unwrap(), [1, 10, 16], [0, 16], SHAPE);
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("elements.len() = 100: must be at least 160"), "{error}");
}

/// An empty product is no error, and nothing is launched: a grid without blocks never reaches a
/// device.
#[test]
fn an_empty_product_launches_nothing() {
    for device in devices() {
        for (entry, _) in tests::products() {
            for (m, n) in [(0, 5), (5, 0), (0, 0)] {
                let zeros = |rows, cols| Matrix::zeros(&device, rows, cols).unwrap();
                let (a, b, mut c) = (zeros(m, 3), zeros(3, n), zeros(m, n));
                let stream = device.stream().unwrap();
                product::multiply(&stream, entry, &a, &b, &mut c).unwrap();
                assert!(c.to_row_major().unwrap().is_empty());
            }
        }
    }
}
