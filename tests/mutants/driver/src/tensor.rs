//! Products by tensor copies, on CUDA cores and on tensor cores, and those of f32 that is split into slices.

use gpu::{
    kernels::{gemm_sliced::board, gemm_wgmma::beside::WORDS},
    problem::{COL_BIAS, Matrices, Problem, RELU},
    registry::{CheckedClassesParams, CheckedSlicedParams, CutParams, TensorKernel, TensorProduct},
};
use simt::{
    Declaration, Kernel, LaunchConfig, Tf32,
    check::CheckableParams,
    checked::{In, Out},
    device::BoxShape,
};

use crate::{
    memory::{Matrix, Number, Place},
    numbers::Numbers,
    product::Case,
    slices::{Slice, Split, split},
    trial::{self, Trial},
};

/// What the registry says of a kernel.
#[derive(Clone, Copy)]
struct Layout {
    declaration: &'static Declaration,
    tile: [usize; 2],
    /// Steps of k in a stage.
    steps: usize,
    most_splits: u32,
    walkers: Option<u32>,
    is_of_two_widths: bool,
    boxes: [BoxShape; 2],
    along_k: [bool; 2],
    /// Elements of sixteen bytes.
    unit: usize,
    shifts_a: bool,
    gathers: bool,
    is_sliced: bool,
}

/// Trials of a kernel whose parameters are made of A and B, by such methods of [`Matrix`], C and bias.
macro_rules! trials {
    ($layout:ident, $kernel:expr, $t:ty, $a:ident, $b:ident) => {
        $layout.trials($kernel, |problem, [a, b]: [(&mut Matrix<$t>, BoxShape); 2], c, bias| {
            (problem, a.0.$a(a.1), b.0.$b(b.1), c, bias)
        })
    };
}

pub fn of_f32(product: &'static TensorProduct<f32>) -> Option<Vec<Trial>> {
    let layout = Layout::of(product);
    Some(match product.kernel {
        TensorKernel::Boxes { checked, .. } => trials!(layout, checked, f32, map, map),
        TensorKernel::ShiftedA { checked, .. } => trials!(layout, checked, f32, maps, map),
        TensorKernel::Tf32 { checked, .. } => trials!(layout, checked, Tf32, map, map),
        TensorKernel::Tf32ClassesOfA { checked, .. } => {
            trials!(layout, checked, Tf32, maps, map)
        }
        TensorKernel::Sliced { cut, checked, .. } => layout.trials_of_slices(cut, checked),
        TensorKernel::SlicedF16 { cut, checked, .. } => layout.trials_of_slices(cut, checked),
        _ => return None,
    })
}

/// Of bf16 or f16.
pub fn of_16_bits<T: Number, O: Number>(
    product: &'static TensorProduct<T, O>,
) -> Option<Vec<Trial>> {
    let layout = Layout::of(product);
    Some(match product.kernel {
        TensorKernel::Boxes { checked, .. } => trials!(layout, checked, T, map, map),
        TensorKernel::Gathered { checked, .. } => {
            layout.trials(checked, |problem, [a, b]: [(&mut Matrix<T>, _); 2], c, bias| {
                (problem, a.0.view(), b.0.view(), c, bias)
            })
        }
        TensorKernel::ClassesOfA { checked, .. } => layout.trials_of_classes(checked),
        TensorKernel::SectorClassesOfA { checked, .. } => layout.trials_of_classes(checked),
        _ => return None,
    })
}

impl Layout {
    fn of<T, O>(product: &'static TensorProduct<T, O>) -> Self {
        Layout {
            declaration: product.kernel.declaration(),
            tile: product.tile.map(|size| size as usize),
            steps: product.steps as usize,
            most_splits: product.most_splits,
            walkers: product.walkers,
            is_of_two_widths: product.narrow.is_some(),
            boxes: [product.a, product.b],
            along_k: product.along_k,
            unit: 16 / size_of::<T>(),
            shifts_a: product.kernel.shifts_a(),
            gathers: product.kernel.gathers(),
            is_sliced: product.kernel.is_sliced(),
        }
    }

    /// `C = 2 A B`, by so many CTAs or clusters of a persistent kernel.
    fn case(&self, sizes: [usize; 3], blocks: u32) -> Case {
        Case { alpha: 2.0, blocks, along_k: self.along_k, ..Case::dense(sizes) }
    }

    /// The same with a bias of the columns, ReLU and beta = -1.
    fn full(&self, sizes: [usize; 3]) -> Case {
        Case { beta: -1.0, bias: COL_BIAS, activation: RELU, ..self.case(sizes, 1) }
    }

    /// The first is run in every order, each of the others in one.
    fn cases(&self) -> Vec<Case> {
        let [rows, cols] = self.tile;
        let mut cases = match self.walkers {
            Some(_) if self.shifts_a => self.cases_of_classes(),
            Some(walkers) => self.cases_of_walkers(walkers as usize),
            None => vec![
                // Parts of tiles; more slabs than there are stages, of one ring and of four of them.
                self.full([rows + 5, cols + 10, 110]),
                self.case([rows, cols, 332], 1),
                // Of one tile all elements are inside, of another not; C's rows are unaligned.
                self.case([rows + 2, cols + 3, 129], 1),
                // Whole slabs. A row of A is 163 elements further than the one before: each of four is shifted in another way.
                self.full([rows - 3, cols / 2, 160]),
            ],
        };
        // As few slabs as leave one of four rings without any.
        let (few_rows, k) = if self.shifts_a { (2, self.steps + 8) } else { (4, 96) };
        cases.push(Case { count: 2, ..self.full([few_rows, 6, k]) });
        cases.push(self.case([1, 1, 1], 1));
        // As many steps as warps have before others begin.
        cases.push(self.case([3, 5, 16], 1));
        if self.gathers {
            // One stage more than there are teams that load, the last in part.
            cases.push(self.case([rows - 1, cols, 203], 1));
        }
        if self.most_splits > 1 {
            cases.push(Case { parts: 2, ..self.full([rows - 1, cols + 4, 333]) });
            // Rows of a tile that are no multiple of the parts, and others below it.
            cases.push(Case { count: 2, parts: 3, ..self.case([rows + 5, cols, 100], 1) });
            cases.push(Case { parts: 8, ..self.case([rows, cols, 90], 1) });
        }
        cases.into_iter().map(|case| self.placed(case)).collect()
    }

    fn cases_of_walkers(&self, walkers: usize) -> Vec<Case> {
        let [rows, cols] = self.tile;
        // A stage of the largest tiles takes long.
        let (some, more, many, down) = match rows * cols {
            ..0xc000 => (72, 136, 472, 3),
            _ => (self.steps + 8, self.steps + 8, 5 * self.steps + 8, 2),
        };
        // So many columns, in rows of C that are unaligned, or aligned to eight bytes.
        let few = |n, pitch| {
            let case = self.case([19, n, 8], 1);
            Case { c: Place::strided([pitch, 1]), ..case }
        };
        vec![
            // Several tiles of a CTA, and parts of tiles; more stages than a ring has, the last in part.
            self.full([rows + 9, cols + 12, more]),
            self.case([rows, cols - 3, many], 1),
            // Two rows of two tiles for three CTAs; C's rows are unaligned, also where all of a tile is inside.
            self.case([rows + 1, 2 * cols - 3, some], 3),
            // Of the sixteen bytes that end a row the last element is outside.
            self.case([rows, cols - 1, 8], 1),
            // C's rows are aligned.
            self.case([rows + 1, 2 * cols - 4, 8], 3),
            // More tiles of a CTA than a ring has stages, and several stages of each.
            self.case([down * rows, 3 * cols, some], 1),
            // More than a raster group of tiles: 2048 rows.
            self.case([2048 + rows / walkers - 5, cols + 4, 8], 3),
            // Sixteen bytes of f32 and of bf16, one element less, and one more than is stored at a time.
            few(4, cols + 5),
            few(3, cols + 3),
            few(8, cols + 9),
            few(7, cols + 7),
            few(129, cols + 129),
        ]
    }

    /// Of A's alignment classes each has tiles of its own, so that few rows take as many tiles.
    fn cases_of_classes(&self) -> Vec<Case> {
        let [_, cols] = self.tile;
        let k = self.steps + 8;
        vec![
            // Several tiles of a CTA, and parts of tiles; more stages than a ring has, the last in part.
            self.full([2, cols + 12, k]),
            self.case([1, cols - 3, 5 * self.steps + 8], 1),
            // All classes, of one of them two rows.
            self.case([9, cols - 3, k], 1),
            // Rows of two tiles for three clusters; C's rows are unaligned, or aligned.
            self.case([3, 2 * cols - 3, k], 3),
            self.case([3, 2 * cols - 4, 8], 3),
            // Of the sixteen bytes that end a row the last element is outside. All of sixteen classes, of one of them two rows.
            self.case([17, cols - 1, 8], 1),
            // More tiles of a CTA than a ring has stages, and several stages of each.
            self.case([2, 3 * cols, k], 1),
            // More than a raster group of tiles: of eight classes one has two.
            self.case([8 * self.tile[0] + 1, cols + 4, 8], 3),
        ]
    }

    /// Of a kernel that multiplies slices. The first is run in every order, each of the others in one.
    fn cases_of_slices<S: Slice>(&self) -> Vec<Case> {
        let [rows, cols] = self.tile;
        let walkers = self.walkers.unwrap_or(1);
        let case = |sizes, numbers| Case { numbers, ..self.case(sizes, 1) };
        let [ends, of_sizes] = S::UNCERTAIN;
        // Several patches down and across, in either layout: those of f16 have 64 rows and 128 columns, the others 32 and 256. Of
        // a CTA's last tile in C's rows, and in its columns, there is one.
        let patches = match of_sizes {
            Numbers::Scaled => [140, 266, 136],
            _ => [rows + rows / walkers as usize + 1, 257, 40],
        };
        // More slices than the ring has stages, the last steps in part.
        let k = if walkers == 1 { 136 } else { 72 };
        let wide = if self.is_of_two_widths { cols } else { 0 };
        let mut cases = vec![
            // Several tiles of a CTA, and parts of tiles.
            Case { wide, ..self.full([rows / 2 + 9, cols + 12, k]) },
            // Of three clusters one is a tile behind; of two widths it has two narrow ones first, and a further one.
            Case { wide, blocks: 3, ..case([rows + 1, cols + 270, 72], Numbers::Full) },
            Case { count: 2, blocks: 2, numbers: Numbers::Special, ..self.full([70, 140, 75]) },
            Case { count: 9, ..case([20, 20, if ends == Numbers::Far { 72 } else { 40 }], ends) },
            Case { count: 2, wide, ..case(patches, of_sizes) },
            case([1, 1, 1], Numbers::Full),
        ];
        if walkers == 1 {
            // More patches along k than a warp looks at in one go, of f16; of bf16 so many that a lane looks at a third one.
            cases.push(case([3, 5, 2100], Numbers::Last));
        }
        cases.into_iter().map(|case| self.placed(case)).collect()
    }

    /// With A and B aligned where the kernel wants that.
    fn placed(&self, mut case: Case) -> Case {
        for which in [0, 1] {
            let [_, rows, cols] = case.size(which);
            let unaligned = |pitch: usize, offset| {
                let step = (rows * pitch).next_multiple_of(self.unit);
                Place { offset, step, ..Place::strided([pitch, 1]) }
            };
            let place = match which {
                _ if self.is_sliced => {
                    let pitch = cols + 1 + which;
                    Place { step: rows * pitch + 1 + which, ..unaligned(pitch, 1) }
                }
                _ if self.gathers => unaligned(cols + 3, 1 + which),
                0 if self.shifts_a => unaligned(cols + 3, 0),
                _ => Place::padded(rows, cols.next_multiple_of(self.unit)),
            };
            if which == 0 { case.a = place } else { case.b = place }
        }
        case
    }

    fn trials<P: CheckableParams, T: Number, O: Number>(
        self,
        kernel: &'static Kernel<P>,
        params: fn(Problem, [(&mut Matrix<T>, BoxShape); 2], Out<O>, In<O>) -> P,
    ) -> Vec<Trial> {
        let [of_a, of_b] = self.boxes;
        trial::trials(self.cases(), 1, move |case, order| {
            let (mut a, mut b) = (case.operand(0), case.operand(1));
            let (config, options) = (self.config(case), trial::options(order));
            case.launch(kernel, &config, options, |problem, c, bias| {
                params(problem, [(&mut a, of_a), (&mut b, of_b)], c, bias)
            })
        })
    }

    /// Those of a kernel that packs B's last columns itself, those of the last tiles across.
    fn trials_of_classes<T: Number, O: Number, const N: usize>(
        self,
        kernel: &'static Kernel<CheckedClassesParams<T, O, N>>,
    ) -> Vec<Trial> {
        let [of_a, of_b] = self.boxes;
        trial::trials(self.cases(), 1, move |case, order| {
            let Case { sizes: [_, n, k], count, numbers, .. } = *case;
            let first = if count == 1 { (n - 1) / self.tile[1] * self.tile[1] } else { n };
            let number = |i, col, p| f64::from(numbers.at(1, [i, col, p], [n, k]));
            let mut a = case.operand::<T>(0);
            let mut b = case
                .operand::<T>(1)
                .filled(|[i, p, col]| if col < first { number(i, col, p) } else { f64::NAN });
            let place = Place { offset: 1, ..Place::strided([n + 3, 1]) };
            let mut from = Matrix::<T>::new([1, k, n - first], place)
                .filled(|[i, p, col]| number(i, first + col, p));
            let mut words = Matrix::vector(WORDS).filled(|_| 0.0);
            let last = Matrices {
                rows: k as u32,
                cols: (n - first) as u32,
                count: 1,
                pitch: n as u64 + 3,
                ..Matrices::default()
            };
            let (config, options) = (self.config(case), trial::options(order));
            let outcome = case.launch(kernel, &config, options, |problem, c, bias| {
                let (maps, map, to) = (a.maps(of_a), b.map(of_b), b.out(first, true));
                (problem, maps, map, last, from.view(), to, words.out(0, true), c, bias)
            });
            outcome.and(&mut b).and(&mut words)
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
            let [mut a, mut b] = [0, 1].map(|which| Split::<S>::new(case.operand(which)));
            split(cut, &mut a, &mut b);
            // So that the count of elements that are computed again is carried.
            let before = |word| if word == board::RECOMPUTED { u32::MAX - 3 } else { 0 };
            let mut words = Matrix::vector(board::LEN).filled(|[.., word]| before(word).into());
            let (config, options) = (self.config(case), trial::options(order));
            let outcome = case.launch(kernel, &config, options, |problem, c, bias| {
                let (planes_a, planes_b) = (a.planes.map(of_a), b.planes.map(of_b));
                let (ranges_a, ranges_b) = (a.ranges.view(), b.ranges.view());
                let (a, b, words) = (a.source.view(), b.source.view(), words.out(0, true));
                (problem, planes_a, planes_b, a, b, ranges_a, ranges_b, c, bias, words)
            });
            outcome.and(&mut words)
        })
    }

    fn config(&self, case: &Case) -> LaunchConfig {
        let Case { sizes: [m, n, _], count, blocks, parts, .. } = *case;
        let [down, across] =
            [(m, self.tile[0]), (n, self.tile[1])].map(|(size, tile)| size.div_ceil(tile) as u32);
        let grid = match self.walkers {
            Some(_) if parts > 1 => [across * down * count as u32, 1, parts],
            Some(together) => [blocks * together, 1, 1],
            None => [across, down, count as u32 * parts],
        };
        LaunchConfig {
            dynamic_shared: self.declaration.dynamic_shared.expect("the stages"),
            cluster: [1, 1, parts],
            ..LaunchConfig::new(grid, self.declaration.block.expect("these kernels declare it"))
        }
    }
}
