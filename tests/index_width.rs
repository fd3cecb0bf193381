//! Elements more than 2^32 places from the start of their matrix: no index wraps, neither as `u32`
//! nor as `i32`, and no byte offset does.
//!
//! The matrices are zero except for their last rows or columns. On the CPU device zeroed memory
//! takes no memory until it is written, and only the last blocks run. A GPU has the memory, and
//! runs all blocks.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    fs,
};

use gpu::{
    params::GemmParams,
    registry::{Entry, Product},
};
use host::{Device, operands, product};
use simt::{Bound, Elements, LaunchConfig, Named, cpu::Options};
use tests::{cuda_devices, products, reference, skip};

/// The kind of product with large matrices.
#[derive(Clone, Copy, Debug)]
enum Large {
    /// A: as many rows as a launch has with 16 rows to a block, and long rows.
    A,
    /// B and C: long rows.
    B,
}

/// Rows of the tiles that launches of many rows are made for.
const ROWS: usize = 16;

impl Large {
    /// m, n and k such that a matrix has more than 2^`bits` elements, and a launch no more blocks
    /// of `tile` rows than allowed.
    fn sizes(self, bits: u32, tile: usize) -> [usize; 3] {
        let rows = 65535 * tile;
        match self {
            Large::A => [rows, 17, (1usize << bits).div_ceil(rows) + 1],
            Large::B => [17, (1 << (bits - 4)) + 16, 17],
        }
    }
}

/// The data of a test: the shape, and the parts that are not zero.
struct Case {
    m: usize,
    n: usize,
    k: usize,
    /// The first row and the first column of C that depend on them.
    first: [usize; 2],
    /// A's rows and B's columns from there on, dense.
    a: Vec<f32>,
    b: Vec<f32>,
    /// Their product.
    c: Vec<f32>,
}

impl Case {
    fn new([m, n, k]: [usize; 3]) -> Self {
        // Sixteen rows and columns, or all if there are few.
        let first = [m, n].map(|size| if size > 100 { size - 16 } else { 0 });
        let [rows, cols] = [m - first[0], n - first[1]];
        let magnitude = operands::exact_magnitude(k).unwrap();
        let a = operands::integers(1, rows * k, magnitude).unwrap();
        let b = operands::integers(2, k * cols, magnitude).unwrap();
        let shape = product::Shape::new(rows as u64, cols as u64, k as u64).unwrap();
        let c = reference::product(shape, &a, &b).iter().map(|&x| x as f32).collect();
        Case { m, n, k, first, a, b, c }
    }

    /// The parts of A, B and C that are not zero, row by row: the start of a row in its matrix, and
    /// in the dense part.
    fn rows(&self) -> [Vec<[usize; 2]>; 3] {
        let [row, col] = self.first;
        let cols = self.n - col;
        [
            (0..self.m - row).map(|i| [(row + i) * self.k, i * self.k]).collect(),
            (0..self.k).map(|p| [p * self.n + col, p * cols]).collect(),
            (0..self.m - row).map(|i| [(row + i) * self.n + col, i * cols]).collect(),
        ]
    }

    /// Compares C, which `read` reads.
    fn check(&self, what: &str, read: impl Fn(usize, &mut [f32])) {
        let cols = self.n - self.first[1];
        for [start, dense] in &self.rows()[2] {
            let mut row = vec![f32::NAN; cols];
            read(*start, &mut row);
            assert_eq!(row, self.c[*dense..dense + cols], "{what}, C from element {start} on");
        }
        // The place where a wrapped index would have written.
        let mut head = vec![f32::NAN; self.m.min(self.n)];
        read(0, &mut head);
        if self.first != [0, 0] {
            assert!(head.iter().all(|&x| x == 0.0), "{what}, the start of C: {head:?}");
        }
    }
}

/// Zeros in memory that is mapped at the first access.
struct Zeros(*mut f32, Layout);

impl Zeros {
    fn new(len: usize) -> Option<Self> {
        let layout = Layout::array::<f32>(len).ok()?;
        // SAFETY: no layout here is empty.
        let start = unsafe { alloc_zeroed(layout) };
        (!start.is_null()).then_some(Zeros(start.cast(), layout))
    }

    fn len(&self) -> usize {
        self.1.size() / size_of::<f32>()
    }

    fn as_mut(&mut self) -> &mut [f32] {
        // SAFETY: zeroed, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.0, self.len()) }
    }
}

impl Drop for Zeros {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.0.cast(), self.1) };
    }
}

/// Runs the blocks of a product that compute nonzero elements. `None` if the system does not even
/// reserve that much memory.
fn on_cpu(entry: &Entry, product: &Product, case: &Case) -> Option<()> {
    let &Case { m, n, k, .. } = case;
    let (mut a, mut b, mut c) = (Zeros::new(m * k)?, Zeros::new(k * n)?, Zeros::new(m * n)?);
    let [a_rows, b_rows, _] = case.rows();
    for (matrix, rows, dense, width) in
        [(&mut a, a_rows, &case.a, k), (&mut b, b_rows, &case.b, n - case.first[1])]
    {
        for [start, from] in rows {
            matrix.as_mut()[start..start + width].copy_from_slice(&dense[from..from + width]);
        }
    }

    let [tile_rows, tile_cols] = product.tile().map(|size| size as usize);
    let grid = [n.div_ceil(tile_cols), m.div_ceil(tile_rows)];
    let constants = entry.constants_of(&GemmParams::dense(m as u32, n as u32, k as u32));
    let grid_dim = [grid[0] as u32, grid[1] as u32, 1];
    let dynamic_shared = entry.declaration().dynamic_shared.unwrap_or(0);
    let config =
        LaunchConfig { constants, dynamic_shared, ..LaunchConfig::new(grid_dim, product.block) };
    for y in case.first[0] / tile_rows..grid[1] {
        let mut options = Options::default();
        let (from, to) = (case.first[1] / tile_cols, grid[0]);
        options.blocks = Some((y * grid[0] + from) as u64..(y * grid[0] + to) as u64);
        let sizes = (m as u32, n as u32, k as u32);
        // SAFETY: the matrices have these sizes, and every product keeps inside them.
        unsafe {
            let problem = GemmParams::dense(sizes.0, sizes.1, sizes.2);
            let mut arguments: Vec<Named> = vec![
                ("a", Bound::Elements(Elements::read(a.0, a.len()))),
                ("b", Bound::Elements(Elements::read(b.0, b.len()))),
                ("c", Bound::Elements(Elements::write(c.0, c.len()))),
            ];
            match product.is_lesson() {
                true => arguments.extend(
                    [("m", &sizes.0), ("n", &sizes.1), ("k", &sizes.2)]
                        .map(|(name, size)| (name, Bound::Value(size))),
                ),
                false => arguments.extend([
                    ("problem", Bound::Value(&problem)),
                    ("bias", Bound::Elements(Elements::read(a.0, 0))),
                ]),
            }
            entry.kernel.launch_named(&config, arguments, &options)
        }
        .unwrap();
    }
    let name = entry.name();
    let c = c.as_mut();
    case.check(name, |start, row| row.copy_from_slice(&c[start..start + row.len()]));
    Some(())
}

fn every_kernel_on_the_cpu(large: Large) {
    for (entry, product) in products() {
        // 2^31, beyond which only an `i32` wraps, if the system reserves no more.
        let ran = [32, 31].into_iter().find(|&bits| {
            let case = Case::new(large.sizes(bits, ROWS.min(product.tile()[0] as usize)));
            on_cpu(entry, product, &case).is_some()
        });
        match ran {
            Some(32) => {}
            Some(_) => skip("2^32 elements: no address space; 2^31 were tested", "CI"),
            None => skip("2^31 elements: no address space", "CI"),
        }
    }
    // The highest memory use of this process.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    if let Some(kib) = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok())
    {
        // A GPU's driver in the same process takes some of it.
        assert!(kib < 2 << 20, "{kib} KiB: the zeros should have taken no memory");
    }
}

#[test]
fn a_large_a_on_the_cpu() {
    every_kernel_on_the_cpu(Large::A);
}

#[test]
fn a_large_b_and_c_on_the_cpu() {
    every_kernel_on_the_cpu(Large::B);
}

/// The whole product with all its blocks, also if it is taller than a launch: then the offsets are
/// the host's.
fn every_kernel_on(gpu: &Device, sizes: [usize; 3]) -> host::Result<()> {
    let case = Case::new(sizes);
    let Case { m, n, k, .. } = case;
    let needed = 4 * (m * k + k * n + m * n) as u64;
    let (free, _) = gpu.memory()?;
    if needed > free {
        skip(&format!("{}: {needed} bytes needed, {free} free", gpu.name()), "REQUIRE_GPU");
        return Ok(());
    }
    let (mut a, mut b) = (gpu.zeros(m * k)?, gpu.zeros(k * n)?);
    let [a_rows, b_rows, _] = case.rows();
    for [start, from] in a_rows {
        a.write(start, &case.a[from..from + k])?;
    }
    let cols = n - case.first[1];
    for [start, from] in b_rows {
        b.write(start, &case.b[from..from + cols])?;
    }
    let mut c = gpu.zeros::<f32>(m * n)?;
    for (entry, _) in products() {
        c.fill_bytes(0xff)?;
        let shape = product::Shape::new(m as u64, n as u64, k as u64)?;
        let views = (a.view(..)?, b.view(..)?, c.view_mut(..)?);
        product::multiply_views(&gpu.stream()?, entry, shape, views.0, views.1, views.2)?;
        let what = format!("{} on {}, {shape}", entry.name(), gpu.name());
        case.check(&what, |start, row| c.read(start, row).unwrap());
    }
    Ok(())
}

#[test]
fn every_large_matrix_on_a_gpu() {
    for gpu in cuda_devices() {
        let tall = [(1 << 28) + 16, 17, 17];
        for sizes in [Large::A.sizes(32, ROWS), Large::B.sizes(32, ROWS), tall] {
            every_kernel_on(&gpu, sizes).unwrap_or_else(|error| panic!("{sizes:?}: {error}"));
        }
    }
}
