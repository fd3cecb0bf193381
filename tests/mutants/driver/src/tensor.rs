//! Products by tensor copies, on CUDA cores and on tensor cores, and those of f32 that is split into slices.

use std::hash::{DefaultHasher, Hasher};

use gpu::{
    kernels::{
        gemm_sliced::board,
        gemm_wgmma::{CLASSES, SECTOR_CLASSES, beside::WORDS},
    },
    problem::{COL_BIAS, IDENTITY, Matrices, NO_BIAS, Problem, RELU},
    registry::{CheckedClassesParams, CheckedSlicedParams, CutParams, TensorKernel, TensorProduct},
};
use simt::{
    Declaration, Kernel, LaunchConfig, Tf32,
    check::{CheckableParams, Order},
    checked::{In, Out},
    device::BoxShape,
};

use crate::{
    memory::{Matrix, Number, Place, integer},
    slices::{Numbers, Slice, Split, split},
    trial::{self, Outcome, Trial},
};

/// What the registry says of a kernel.
#[derive(Clone, Copy)]
struct Layout {
    declaration: &'static Declaration,
    tile: [usize; 2],
    most_splits: u32,
    walkers: Option<u32>,
    narrow: Option<u32>,
    boxes: [BoxShape; 2],
    along_k: [bool; 2],
    shifts_a: bool,
    gathers: bool,
}

/// `C = activation(2 A B + beta C + bias)`, so many times; with `full` a bias of the columns, ReLU and beta = -1, else beta = 0 and
/// nothing else.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// m, n, k.
    sizes: [usize; 3],
    count: usize,
    /// Of a persistent kernel: CTAs, or clusters.
    blocks: u32,
    /// CTAs of a cluster that splits k.
    parts: u32,
    /// Tiles of the greater width across, where there are two.
    wide: usize,
    full: bool,
    /// Elements between C's rows, which nobody writes.
    between: usize,
    numbers: Numbers,
}

impl Case {
    fn new(sizes: [usize; 3], blocks: u32, full: bool) -> Self {
        let numbers = Numbers::Integers;
        Case { sizes, count: 1, blocks, parts: 1, wide: 0, full, between: 0, numbers }
    }
}

/// What a kernel of f32 has for [`of_16_bits`].
pub fn of_f32(product: &'static TensorProduct<f32>) -> Option<Vec<Trial>> {
    let layout = Layout::of(product);
    let [of_a, of_b] = layout.boxes;
    Some(match product.kernel {
        TensorKernel::Boxes { checked, .. } => {
            layout.trials(checked, move |problem, [a, b]: [&mut Matrix<f32>; 2], c, bias| {
                (problem, a.map(of_a), b.map(of_b), c, bias)
            })
        }
        TensorKernel::ShiftedA { checked, .. } => {
            layout.trials(checked, move |problem, [a, b]: [&mut Matrix<f32>; 2], c, bias| {
                (problem, a.maps_of_classes(of_a), b.map(of_b), c, bias)
            })
        }
        TensorKernel::Tf32 { checked, .. } => {
            layout.trials(checked, move |problem, [a, b]: [&mut Matrix<Tf32>; 2], c, bias| {
                (problem, a.map(of_a), b.map(of_b), c, bias)
            })
        }
        TensorKernel::Tf32ClassesOfA { checked, .. } => {
            layout.trials(checked, move |problem, [a, b]: [&mut Matrix<Tf32>; 2], c, bias| {
                (problem, a.maps_of_classes(of_a), b.map(of_b), c, bias)
            })
        }
        TensorKernel::Sliced { cut, checked, .. } => layout.trials_of_slices(cut, checked),
        TensorKernel::SlicedF16 { cut, checked, .. } => layout.trials_of_slices(cut, checked),
        _ => return None,
    })
}

/// All trials of a product of bf16 or f16.
pub fn of_16_bits<T: Number, O: Number>(
    product: &'static TensorProduct<T, O>,
) -> Option<Vec<Trial>> {
    let layout = Layout::of(product);
    let [of_a, of_b] = layout.boxes;
    Some(match product.kernel {
        TensorKernel::Boxes { checked, .. } => {
            layout.trials(checked, move |problem, [a, b]: [&mut Matrix<T>; 2], c, bias| {
                (problem, a.map(of_a), b.map(of_b), c, bias)
            })
        }
        TensorKernel::Gathered { checked, .. } => layout
            .trials(checked, |problem, [a, b]: [&mut Matrix<T>; 2], c, bias| {
                (problem, a.view(), b.view(), c, bias)
            }),
        TensorKernel::ClassesOfA { checked, .. } => {
            layout.trials_of_classes::<T, O, CLASSES>(checked)
        }
        TensorKernel::SectorClassesOfA { checked, .. } => {
            layout.trials_of_classes::<T, O, SECTOR_CLASSES>(checked)
        }
        _ => return None,
    })
}

impl Layout {
    fn of<T, O>(product: &'static TensorProduct<T, O>) -> Self {
        Layout {
            declaration: product.kernel.declaration(),
            tile: product.tile.map(|size| size as usize),
            most_splits: product.most_splits,
            walkers: product.walkers,
            narrow: product.narrow,
            boxes: [product.a, product.b],
            along_k: product.along_k,
            shifts_a: product.kernel.shifts_a(),
            gathers: product.kernel.gathers(),
        }
    }

    /// The first is run in every order of the threads, each of the others in one.
    fn cases(&self) -> Vec<Case> {
        let [rows, cols] = self.tile;
        // Of a further tile there are so many columns, and C's rows are unaligned.
        let few = |width, between| Case { between, ..Case::new([19, cols + width, 8], 1, false) };
        let mut cases = match self.walkers {
            // Several tiles of a CTA, and parts of tiles; more stages than a ring has, the last in part.
            Some(walkers) => vec![
                Case::new([rows + 9, cols + 12, 136], 1, true),
                Case::new([rows, cols - 3, 472], 1, false),
                // Two rows of two tiles for three CTAs; C's rows are unaligned, also where all of a tile is inside.
                Case::new([rows + 1, 2 * cols - 3, 72], 3, false),
                // Of the sixteen bytes that end a row the last element is outside.
                Case::new([rows, cols - 1, 8], 1, false),
                // C's rows are aligned.
                Case::new([rows + 1, 2 * cols - 4, 72], 3, false),
                // More tiles of a CTA than a ring has stages, and several stages of each.
                Case::new([3 * rows, 3 * cols, 72], 1, false),
                // More than a raster group of tiles: 2048 rows.
                Case::new([2048 + rows / walkers as usize - 5, cols + 4, 8], 3, false),
            ],
            // Parts of tiles; more slabs than there are stages, of one ring and of four of them.
            None => vec![
                Case::new([rows + 5, cols + 10, 110], 1, true),
                Case::new([rows, cols, 332], 1, false),
                // Of one tile all elements are inside, of another not; C's rows are unaligned.
                Case::new([rows + 2, cols + 3, 129], 1, false),
                // Whole slabs. A row of A is 163 elements further than the one before: each of four is shifted in another way.
                Case::new([rows - 3, cols / 2, 160], 1, true),
            ],
        };
        // Not where A is of alignment classes, each of which has tiles of its own for so few rows: they store as others do.
        if self.walkers.is_some() && !self.shifts_a {
            // Sixteen bytes of f32 and of bf16, one element less, and one more than is stored at a time.
            cases.extend([few(4, 1), few(3, 0), few(8, 1), few(7, 0), few(129, 0)]);
        }
        // As few slabs as leave one of four rings without any.
        cases.push(Case { count: 2, ..Case::new([4, 6, 96], 1, true) });
        cases.push(Case::new([1, 1, 1], 1, false));
        // As many steps as warps have before others begin.
        cases.push(Case::new([3, 5, 16], 1, false));
        if self.gathers {
            // One stage more than there are teams that load, the last in part.
            cases.push(Case::new([rows - 1, cols, 203], 1, false));
        }
        if self.most_splits > 1 {
            cases.push(Case { parts: 2, ..Case::new([rows - 1, cols + 4, 333], 1, true) });
            // Rows of a tile that are no multiple of the parts, and others below it.
            cases.push(Case { count: 2, parts: 3, ..Case::new([rows + 5, cols, 100], 1, false) });
            cases.push(Case { parts: 8, ..Case::new([rows, cols, 90], 1, false) });
        }
        cases
    }

    /// Of a kernel that multiplies slices. The first is run in every order of the threads, each of the others in one.
    fn cases_of_slices<S: Slice>(&self) -> Vec<Case> {
        let [rows, cols] = self.tile;
        let walkers = self.walkers.unwrap_or(1);
        let case = |sizes, numbers| Case { numbers, ..Case::new(sizes, 1, false) };
        let [ends, of_sizes] = S::UNCERTAIN;
        // Several patches down and across, in either layout: those of f16 have 64 rows and 128 columns, the others 32 and 256. Of
        // a CTA's last tile in C's rows, and in its columns, there is one.
        let patches = match of_sizes {
            Numbers::Scaled => [140, 266, 136],
            _ => [rows + rows / walkers as usize + 1, 257, 40],
        };
        // More slices than the ring has stages, the last steps in part.
        let k = if walkers == 1 { 136 } else { 72 };
        let mut cases = vec![
            // Several tiles of a CTA, and parts of tiles.
            Case { wide: 1, full: true, ..case([rows / 2 + 9, cols + 12, k], Numbers::Integers) },
            // Of three clusters one is a tile behind; of two widths it has two narrow ones first, and a further one.
            Case { wide: 1, blocks: 3, ..case([rows + 1, cols + 270, 72], Numbers::Full) },
            Case { count: 2, blocks: 2, full: true, ..case([70, 140, 75], Numbers::Special) },
            Case { count: 9, ..case([20, 20, if ends == Numbers::Far { 72 } else { 40 }], ends) },
            Case { count: 2, wide: 1, ..case(patches, of_sizes) },
            case([1, 1, 1], Numbers::Full),
        ];
        if walkers == 1 {
            // More patches along k than a warp looks at in one go, of f16; of bf16 so many that a lane looks at a third one.
            cases.push(case([3, 5, 2100], Numbers::Last));
        }
        cases
    }

    /// All trials of a kernel whose parameters are made of A and B, C and bias.
    fn trials<P: CheckableParams, T: Number, O: Number>(
        self,
        kernel: &'static Kernel<P>,
        params: impl Fn(Problem, [&mut Matrix<T>; 2], Out<O>, In<O>) -> P + 'static,
    ) -> Vec<Trial> {
        trial::trials(self.cases(), 1, move |case, order| {
            let [mut a, mut b] = [0, 1].map(|which| self.operand(case, which, usize::MAX));
            let places = [a.place, b.place];
            let (found, hasher) = self.launch(kernel, (case, order), places, |problem, c, bias| {
                params(problem, [&mut a, &mut b], c, bias)
            });
            Outcome { found, hash: hasher.finish() }
        })
    }

    /// Those of a kernel that packs B's last columns itself, those of the last tiles across.
    fn trials_of_classes<T: Number, O: Number, const N: usize>(
        self,
        kernel: &'static Kernel<CheckedClassesParams<T, O, N>>,
    ) -> Vec<Trial> {
        let [of_a, of_b] = self.boxes;
        trial::trials(self.cases(), 1, move |case, order| {
            let Case { sizes: [_, n, k], count, .. } = *case;
            let first = if count == 1 { (n - 1) / self.tile[1] * self.tile[1] } else { n };
            let [mut a, mut b] = [0, 1].map(|which| self.operand(case, which, first));
            let (rows, cols, pitch) = (k, n - first, n + 3);
            let mut from = Matrix::<T>::new([1, rows, cols], Place::strided([pitch, 1]).at(1))
                .filled(|[_, p, col]| integer(1, [0, first + col, p]));
            let mut words = Matrix::vector(WORDS).filled(|_| 0.0);
            let last = Matrices {
                rows: rows as u32,
                cols: cols as u32,
                count: 1,
                pitch: pitch as u64,
                ..Matrices::default()
            };
            let places = [a.place, b.place];
            let (found, mut hasher) =
                self.launch(kernel, (case, order), places, |problem, c, bias| {
                    let (a, map) = (a.maps_of_classes(of_a), b.map(of_b));
                    let (to, words) = (b.out_from(first, true), words.out_from(0, true));
                    (problem, a, map, last, from.view(), to, words, c, bias)
                });
            b.hash(&mut hasher);
            words.hash(&mut hasher);
            Outcome { found, hash: hasher.finish() }
        })
    }

    /// Those of a kernel that multiplies slices, which the other one makes.
    fn trials_of_slices<S: Slice>(
        self,
        cut: &'static Kernel<CutParams<f32, S>>,
        kernel: &'static Kernel<CheckedSlicedParams<f32, f32, S>>,
    ) -> Vec<Trial> {
        let [of_a, of_b] = self.boxes;
        trial::trials(self.cases_of_slices::<S>(), 1, move |case, order| {
            let Case { sizes: [m, n, k], count, numbers, .. } = *case;
            let [mut a, mut b] = [(0, m), (1, n)].map(|(which, outer)| {
                let along_k = self.along_k[which];
                let size = if along_k { [count, outer, k] } else { [count, k, outer] };
                Split::<S>::new(size, ([1 + which; 2], 1), |[i, row, col]| {
                    let [row, p] = if along_k { [row, col] } else { [col, row] };
                    numbers.at(which, [i, row, p], [outer, k])
                })
            });
            split(cut, &mut a, &mut b);
            // So that the count of elements that are computed again is carried.
            let mut words = Matrix::vector(board::LEN).filled(|[.., word]| match word {
                board::RECOMPUTED => f64::from(u32::MAX - 3),
                _ => 0.0,
            });
            let places = [a.source.place, b.source.place];
            let (found, mut hasher) =
                self.launch(kernel, (case, order), places, |problem, c, bias| {
                    let maps = (a.planes.map(of_a), b.planes.map(of_b));
                    let sources = (a.source.view(), b.source.view());
                    let ranges = (a.ranges.view(), b.ranges.view());
                    let words = words.out_from(0, true);
                    (
                        problem, maps.0, maps.1, sources.0, sources.1, ranges.0, ranges.1, c, bias,
                        words,
                    )
                });
            words.hash(&mut hasher);
            Outcome { found, hash: hasher.finish() }
        })
    }

    /// A or B, aligned where the kernel wants that; of B the columns from `missing` on are NaN.
    fn operand<T: Number>(&self, case: &Case, which: usize, missing: usize) -> Matrix<T> {
        let Case { sizes: [m, n, k], count, .. } = *case;
        let (outer, along_k) = ([m, n][which], self.along_k[which]);
        let size = if along_k { [count, outer, k] } else { [count, k, outer] };
        let unit = 16 / size_of::<T>();
        let matrix = if self.gathers || self.shifts_a && which == 0 {
            let (pitch, offset) = (size[2] + 3, if self.gathers { 1 + which } else { 0 });
            let step = (size[1] * pitch).next_multiple_of(unit);
            Matrix::new(size, Place { strides: [pitch, 1], offset, step })
        } else {
            Matrix::padded(size, size[2].next_multiple_of(unit))
        };
        matrix.filled(|[i, row, col]| match if along_k { [row, col] } else { [col, row] } {
            [outer, _] if which == 1 && outer >= missing => f64::NAN,
            [outer, p] => integer(which, [i, outer, p]),
        })
    }

    /// Launches with A and B in these places: what was found, and a hash of C and what is around it.
    fn launch<P: CheckableParams, O: Number>(
        &self,
        kernel: &Kernel<P>,
        (case, order): (&Case, Order),
        places: [Place; 2],
        params: impl FnOnce(Problem, Out<O>, In<O>) -> P,
    ) -> (Vec<&'static str>, DefaultHasher) {
        let Case { sizes: [m, n, k], count, blocks, parts, wide, full, between, .. } = *case;
        // With beta = 0 C is not to be read, and each element is to be written.
        let place = Place::strided([n + between, 1]).step(m * (n + between));
        let mut c = Matrix::<O>::new([count, m, n], place);
        if full {
            c = c.filled(|at| integer(2, at));
        }
        let mut bias = Matrix::<O>::vector(if full { n } else { 0 })
            .filled(|[.., col]| (col % 64) as f64 - 32.0);
        // Rows of A and their elements, and rows of B and theirs.
        let strides = |which: usize, by_rows: bool| match places[which].strides[0] as u64 {
            pitch if by_rows => [pitch, 1],
            pitch => [1, pitch],
        };
        let [rows, cols] = self.tile;
        let problem = Problem {
            m: m as u32,
            n: n as u32,
            k: k as u32,
            bias: if full { COL_BIAS } else { NO_BIAS },
            activation: if full { RELU } else { IDENTITY },
            products: count as u32,
            wide: self.narrow.map_or(0, |_| (wide * cols) as u64),
            alpha: 2.0,
            beta: if full { -1.0 } else { 0.0 },
            a: strides(0, self.along_k[0]),
            b: strides(1, !self.along_k[1]),
            c: place.strides.map(|stride| stride as u64),
            batch: [places[0], places[1], place].map(|place| place.step as u64),
        };
        let (across, down) = (n.div_ceil(cols) as u32, m.div_ceil(rows) as u32);
        let grid = match self.walkers {
            Some(_) if parts > 1 => [across * down * count as u32, 1, parts],
            Some(together) => [blocks * together, 1, 1],
            None => [across, down, count as u32 * parts],
        };
        let config = LaunchConfig {
            dynamic_shared: self.declaration.dynamic_shared.expect("the stages"),
            cluster: [1, 1, parts],
            ..LaunchConfig::new(grid, self.declaration.block.expect("these kernels declare it"))
        };
        let params = params(problem, c.out_from(0, full), bias.view());
        // SAFETY: the caller's operands, C and bias outlive the launch, and nobody else uses them.
        let found = unsafe { trial::launch(kernel, &config, params, &trial::options(order)) };
        let mut hasher = DefaultHasher::new();
        c.hash(&mut hasher);
        (found, hasher)
    }
}
