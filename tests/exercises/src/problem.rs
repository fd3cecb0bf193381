//! What kernels compute, and how they are launched.

use simt::device::BoxShape;

/// What a kernel computes. A shape is m, n, k; all matrices are row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// `C = A B`: A is m x k, B is k x n, C is m x n.
    Product,
    /// `C += A B`. The launch begins with a C of zeros.
    ProductInto,
    /// z = x + y, of n elements. m and k are 1.
    Sum,
    /// Each of n elements is the sum of its two neighbours and itself; outside x there are zeros. m
    /// and k are 1.
    Neighbours,
    /// y (n x m) is x (m x n), transposed. k is 1.
    Transpose,
    /// The sum of each of m rows of n elements. k is 1.
    RowSums,
}

/// The blocks of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// A block for each tile of so many rows and columns of the result: columns along x, rows along
    /// y.
    Tiles(usize, usize),
    /// The same, and so many blocks along z.
    Split(usize, usize, u32),
    /// So many blocks along x.
    Blocks(u32),
    /// A cluster of so many blocks, all along x, for each tile of so many rows and columns.
    Clusters(usize, usize, u32),
}

/// How a kernel is launched.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// What the kernel computes.
    pub problem: Problem,
    /// The blocks.
    pub grid: Grid,
    /// The boxes of the tensor maps of A, B and C, where the kernel takes such.
    pub boxes: [BoxShape; 3],
}

/// Boxes of `rows x cols` elements with the 128-byte swizzle.
pub const fn swizzled(rows: usize, cols: usize) -> BoxShape {
    BoxShape { rows, cols, swizzle: 128 }
}

/// The boxes of the exercises: 64 x 64 elements of A and B, 16 x 64 of C.
pub const BOXES: [BoxShape; 3] = [swizzled(64, 64), swizzled(64, 64), swizzled(16, 64)];

/// The operands of a launch, and the right result.
#[derive(Debug)]
pub struct Data {
    /// A, or x.
    pub a: Vec<f32>,
    /// B, or y; empty if there is none.
    pub b: Vec<f32>,
    /// The result.
    pub expected: Vec<f64>,
}

impl Problem {
    /// The rows and columns of the result.
    pub fn result(self, [m, n, _]: [usize; 3]) -> (usize, usize) {
        match self {
            Problem::Product | Problem::ProductInto => (m, n),
            Problem::Sum | Problem::Neighbours => (1, n),
            Problem::Transpose => (n, m),
            Problem::RowSums => (m, 1),
        }
    }

    /// Whether the result holds zeros before the launch. Otherwise it holds nothing that may be
    /// read.
    pub fn begins_with_zeros(self) -> bool {
        self == Problem::ProductInto
    }

    /// The shape in words.
    pub fn shown(self, [m, n, k]: [usize; 3]) -> String {
        match self {
            Problem::Product | Problem::ProductInto => format!("m = {m}, n = {n}, k = {k}"),
            Problem::Sum | Problem::Neighbours => format!("n = {n}"),
            Problem::Transpose | Problem::RowSums => format!("m = {m}, n = {n}"),
        }
    }

    /// The operands: integers from -1 to 1, so that every sum is exact, also one that is rounded to
    /// bf16.
    pub fn data(self, [m, n, k]: [usize; 3]) -> Data {
        let (a, b) = match self {
            Problem::Product | Problem::ProductInto => (digits(m * k, 1), digits(k * n, 2)),
            Problem::Sum => (digits(n, 1), digits(n, 2)),
            Problem::Neighbours => (digits(n, 1), Vec::new()),
            Problem::Transpose | Problem::RowSums => (digits(m * n, 1), Vec::new()),
        };
        let x = |i: usize| f64::from(a[i]);
        let (rows, cols) = self.result([m, n, k]);
        let element = |at: usize| {
            let (i, j) = (at / cols, at % cols);
            match self {
                Problem::Product | Problem::ProductInto => {
                    (0..k).map(|p| x(i * k + p) * f64::from(b[p * n + j])).sum()
                }
                Problem::Sum => x(at) + f64::from(b[at]),
                Problem::Neighbours => (at.saturating_sub(1)..n.min(at + 2)).map(x).sum(),
                Problem::Transpose => x(j * n + i),
                Problem::RowSums => (i * n..(i + 1) * n).map(x).sum(),
            }
        };
        let expected = (0..rows * cols).map(element).collect();
        Data { a, b, expected }
    }
}

/// -1, 0 and 1, without a pattern.
fn digits(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let next = || {
        // Knuth's multiplier for 64 bits.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % 3
    };
    std::iter::repeat_with(next).take(len).map(|digit| digit as f32 - 1.0).collect()
}

impl Grid {
    /// The blocks along x, y and z for a result of so many rows and columns.
    pub fn blocks(self, (rows, cols): (usize, usize)) -> [u32; 3] {
        match self {
            Grid::Tiles(down, across) => Grid::Split(down, across, 1).blocks((rows, cols)),
            Grid::Split(down, across, parts) => {
                [cols.div_ceil(across) as u32, rows.div_ceil(down) as u32, parts]
            }
            Grid::Blocks(count) => [count, 1, 1],
            Grid::Clusters(down, across, blocks) => {
                let [x, y, _] = Grid::Tiles(down, across).blocks((rows, cols));
                [x * y * blocks, 1, 1]
            }
        }
    }
}

impl Launch {
    /// The blocks that share the work: all blocks of a persistent grid, the first cluster, or the
    /// first tile's blocks along z. Empty if each tile has one block.
    pub fn sharing(&self) -> Vec<[u32; 3]> {
        match self.grid {
            Grid::Tiles(..) => Vec::new(),
            Grid::Split(_, _, parts) => (0..parts).map(|z| [0, 0, z]).collect(),
            Grid::Blocks(count) | Grid::Clusters(_, _, count) => {
                (0..count).map(|x| [x, 0, 0]).collect()
            }
        }
    }

    /// A product by a kernel whose blocks compute a tile of so many rows and columns each.
    pub const fn product(rows: usize, cols: usize) -> Self {
        Launch { problem: Problem::Product, grid: Grid::Tiles(rows, cols), boxes: BOXES }
    }
}
