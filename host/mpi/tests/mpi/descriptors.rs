//! Random products by `pdgemm_` and `psgemm_`, compared with sums of integers.

use std::ffi::c_char;

use gpu_gemm_mpi::{Cyclic, pdgemm_, psgemm_};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};
use mpi::{collective::SystemOperation, traits::CommunicatorCollectives};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CASES: usize = 100;
/// What is outside of C's part, and must stay.
const OUTSIDE: f64 = 12_345.0;

type Get = unsafe extern "C" fn(i32, i32, *mut i32);
type Init = unsafe extern "C" fn(*mut i32, *const c_char, i32, i32);
type Info = unsafe extern "C" fn(i32, *mut i32, *mut i32, *mut i32, *mut i32);
type Exit = unsafe extern "C" fn(i32);
type Multiply<T> = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const i32,
    *const i32,
    *const i32,
    *const T,
    *const T,
    *const i32,
    *const i32,
    *const i32,
    *const T,
    *const i32,
    *const i32,
    *const i32,
    *const T,
    *mut T,
    *const i32,
    *const i32,
    *const i32,
);

/// An element that sums of so few products leave exact in f32.
trait Real: Copy + Into<f64> {
    const MULTIPLY: Multiply<Self>;
    fn of(value: f64) -> Self;
}

impl Real for f64 {
    const MULTIPLY: Multiply<f64> = pdgemm_;
    fn of(value: f64) -> f64 {
        value
    }
}

impl Real for f32 {
    const MULTIPLY: Multiply<f32> = psgemm_;
    fn of(value: f64) -> f32 {
        value as f32
    }
}

/// A part of a random matrix over a grid.
struct Part {
    cyclic: [Cyclic; 2],
    /// The matrix's rows and columns.
    all: [usize; 2],
    /// The part's first row and column, and its rows and columns.
    start: [usize; 2],
    size: [usize; 2],
    /// This rank's rows and columns, and its leading dimension.
    own: [usize; 2],
    leading: usize,
    descriptor: Vec<i32>,
}

impl Part {
    fn new(
        rng: &mut ChaCha8Rng,
        context: i32,
        grid: [usize; 2],
        at: [usize; 2],
        size: [usize; 2],
    ) -> Self {
        let has_first = rng.random_bool(0.5);
        let start = [0; 2].map(|_: usize| rng.random_range(0..9));
        let all = [0, 1].map(|side| start[side] + size[side] + rng.random_range(1..9));
        // Now and then blocks as of the other matrices, so that they are aligned.
        let block = if rng.random_bool(0.4) {
            [8; 2]
        } else {
            [0; 2].map(|_: usize| rng.random_range(1..20))
        };
        let start = if block == [8; 2] { [0; 2] } else { start };
        let of = [0, 1].map(|side| {
            let first = if has_first { rng.random_range(1..20) } else { block[side] };
            let source = match block {
                [8, 8] => Some(0),
                _ if rng.random_bool(0.1) => None,
                _ => Some(rng.random_range(0..grid[side])),
            };
            (source, first)
        });
        let cyclic = [0, 1].map(|side| {
            let (source, first) = of[side];
            Cyclic::new(grid[side], source, first, block[side]).unwrap()
        });
        let own = [0, 1].map(|side| cyclic[side].count(at[side], all[side]));
        let leading = own[0].max(1) + rng.random_range(0..4);
        let sources = of.map(|(source, _)| source.map_or(-1, |source| source as i32));
        let pair = |pair: [usize; 2]| pair.map(|value| value as i32);
        let mut descriptor = vec![1 + i32::from(has_first), context];
        descriptor.extend(pair(all));
        if has_first {
            descriptor.extend(pair(of.map(|(_, first)| first)));
        }
        descriptor.extend(pair(block));
        descriptor.extend(sources.into_iter().chain([leading as i32]));
        Part { cyclic, all, start, size, own, leading, descriptor }
    }

    /// This rank's memory, with `value` of each element's row and column in the part, if it is
    /// there.
    fn memory<T: Real>(&self, at: [usize; 2], value: impl Fn(Option<[usize; 2]>) -> f64) -> Vec<T> {
        let mut memory = vec![T::of(value(None)); self.leading * self.own[1].max(1)];
        for row in 0..self.all[0] {
            for col in 0..self.all[1] {
                if let Some(place) = self.place(at, [row, col]) {
                    memory[place] = T::of(value(self.within([row, col])));
                }
            }
        }
        memory
    }

    /// Where a rank has an element of the matrix, if it does.
    fn place(&self, at: [usize; 2], index: [usize; 2]) -> Option<usize> {
        let is_here = (0..2)
            .all(|side| self.cyclic[side].owner(index[side]).is_none_or(|owner| owner == at[side]));
        let [row, col] = [0, 1].map(|side| self.cyclic[side].count(at[side], index[side]));
        is_here.then_some(row + col * self.leading)
    }

    fn within(&self, index: [usize; 2]) -> Option<[usize; 2]> {
        let [row, col] = [0, 1].map(|side| index[side].checked_sub(self.start[side]));
        let within = [row?, col?];
        (within[0] < self.size[0] && within[1] < self.size[1]).then_some(within)
    }

    fn first(&self) -> [i32; 2] {
        self.start.map(|start| start as i32 + 1)
    }
}

/// A whole number, from -4 to 4, of a matrix, a row and a column.
fn whole(matrix: usize, [row, col]: [usize; 2]) -> f64 {
    ((row * 31 + col * 17 + matrix * 7 + row * col) % 9) as f64 - 4.0
}

/// What each of six ranks does.
pub fn compare() {
    let universe = mpi::initialize().expect("MPI starts");
    let world = universe.world();
    // SAFETY: a library of the distribution, whose functions have these types.
    let (_library, get, init, info, exit) = unsafe {
        let name = "libscalapack-openmpi.so.2.2";
        let library = Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL).expect(name);
        let get: Symbol<Get> = library.get(b"Cblacs_get").unwrap();
        let init: Symbol<Init> = library.get(b"Cblacs_gridinit").unwrap();
        let info: Symbol<Info> = library.get(b"Cblacs_gridinfo").unwrap();
        let exit: Symbol<Exit> = library.get(b"Cblacs_gridexit").unwrap();
        (library, get, init, info, exit)
    };
    let mut wrong = 0u64;
    for case in 0..CASES {
        let mut rng = ChaCha8Rng::seed_from_u64(case as u64);
        let grids = (1..=6).flat_map(|rows| (1..=6 / rows).map(move |cols| [rows, cols]));
        let grids = grids.collect::<Vec<_>>();
        let [rows, cols] = grids[rng.random_range(0..grids.len())];
        let order = if rng.random_bool(0.5) { c"Row" } else { c"Col" };
        let (mut context, mut place) = (0, [-1i32; 4]);
        // SAFETY: BLACS's functions, with numbers to write to.
        unsafe {
            get(-1, 0, &raw mut context);
            init(&raw mut context, order.as_ptr(), rows as i32, cols as i32);
            if context >= 0 {
                let [a, b, c, d] = &mut place;
                info(context, a, b, c, d);
            }
        }
        if place[0] >= 0 {
            let at = [place[2] as usize, place[3] as usize];
            wrong += match case % 2 {
                0 => product::<f64>(&mut rng, context, [rows, cols], at, case),
                _ => product::<f32>(&mut rng, context, [rows, cols], at, case),
            };
            // SAFETY: the context that was made above.
            unsafe { exit(context) };
        }
    }
    let mut all = 0u64;
    world.all_reduce_into(&wrong, &mut all, SystemOperation::sum());
    assert_eq!(all, 0, "wrong elements, and elements outside of C's part that have changed");
}

/// Multiplies at random, and counts the wrong elements of this rank.
fn product<T: Real>(
    rng: &mut ChaCha8Rng,
    context: i32,
    grid: [usize; 2],
    at: [usize; 2],
    case: usize,
) -> u64 {
    let mut size = || if rng.random_bool(0.06) { 0 } else { rng.random_range(1..50) };
    let (m, n, mut k) = (size(), size(), size());
    if case % 10 == 3 {
        // Several panels, and the memory of the first one again.
        k = rng.random_range(400..700);
    }
    let trans = [0; 2].map(|_: usize| b"NTCntc"[rng.random_range(0..6usize)]);
    let is_transposed = trans.map(|letter| !letter.eq_ignore_ascii_case(&b'N'));
    let alpha = [1.0, -0.5, 2.0, 0.0][rng.random_range(0..4usize)];
    let beta = [0.0, 1.0, 0.5, -1.0][rng.random_range(0..4usize)];
    let stored = |[rows, cols]: [usize; 2], is_transposed: bool| {
        if is_transposed { [cols, rows] } else { [rows, cols] }
    };
    let a = Part::new(rng, context, grid, at, stored([m, k], is_transposed[0]));
    let b = Part::new(rng, context, grid, at, stored([k, n], is_transposed[1]));
    let c = Part::new(rng, context, grid, at, [m, n]);
    // What must not be read is NaN.
    let is_read = alpha != 0.0;
    let operand = |matrix, within: Option<[usize; 2]>| match within {
        Some(within) if is_read => whole(matrix, within),
        _ => f64::NAN,
    };
    let of_a: Vec<T> = a.memory(at, |within| operand(0, within));
    let of_b: Vec<T> = b.memory(at, |within| operand(1, within));
    let old = |within: Option<[usize; 2]>| match within {
        Some(_) if beta == 0.0 => f64::NAN,
        Some(within) => whole(2, within),
        None => OUTSIDE,
    };
    let mut of_c: Vec<T> = c.memory(at, old);
    let [sizes, first_a, first_b, first_c] =
        [[m as i32, n as i32], a.first(), b.first(), c.first()];
    let (letters, scalars) = (trans.map(|letter| letter as c_char), [alpha, beta].map(T::of));
    let inner = k as i32;
    // SAFETY: the arguments are ScaLAPACK's, and the memories are as their descriptors say.
    unsafe {
        T::MULTIPLY(
            &raw const letters[0],
            &raw const letters[1],
            &raw const sizes[0],
            &raw const sizes[1],
            &raw const inner,
            &raw const scalars[0],
            of_a.as_ptr(),
            &raw const first_a[0],
            &raw const first_a[1],
            a.descriptor.as_ptr(),
            of_b.as_ptr(),
            &raw const first_b[0],
            &raw const first_b[1],
            b.descriptor.as_ptr(),
            &raw const scalars[1],
            of_c.as_mut_ptr(),
            &raw const first_c[0],
            &raw const first_c[1],
            c.descriptor.as_ptr(),
        );
    }
    let wanted: Vec<T> = c.memory(at, |within| {
        let Some([row, col]) = within else { return OUTSIDE };
        let term = |i| {
            whole(0, stored([row, i], is_transposed[0]))
                * whole(1, stored([i, col], is_transposed[1]))
        };
        let sum = if is_read { alpha * (0..k).map(term).sum::<f64>() } else { 0.0 };
        sum + if beta == 0.0 { 0.0 } else { beta * whole(2, [row, col]) }
    });
    // Written so that a NaN is wrong.
    let pairs = of_c.into_iter().zip(wanted).map(|(got, want)| (got.into(), want.into()));
    let wrong = pairs.filter(|(got, want): &(f64, f64)| got != want).count();
    if wrong > 0 {
        let kind = if size_of::<T>() == 8 { "f64" } else { "f32" };
        eprintln!(
            "case {case}, {kind}: {wrong} wrong at {at:?} of {grid:?}: {} {m} {n} {k} {alpha} {beta} {:?} {:?} {:?}",
            String::from_utf8_lossy(&trans),
            a.descriptor,
            b.descriptor,
            c.descriptor
        );
    }
    wrong as u64
}
