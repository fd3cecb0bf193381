//! ScaLAPACK's products: `pdgemm_` and `psgemm_`, with its descriptors and its errors.

use std::{
    env,
    ffi::{CStr, c_char},
    fs::OpenOptions,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::OnceLock,
};

use gpu_gemm::{Device, Layout, Matrix, SliceView, SliceViewMut};

use crate::{
    blacs,
    cyclic::{Cyclic, Span},
    error::Result,
    exchange::{Exchange, Operand},
    grid::Grid,
    product::{Element, multiply},
};

/// The variable with the path of a file to which each call adds a line on each rank.
const LOG: &str = "GPU_GEMM_MPI_LOG";

/// An argument that is the k-th, or the entry e of the k-th, is number 100 k, or 100 k + e.
const ARGUMENT: i32 = 100;

/// A descriptor of type 2. One of type 1 has no sizes of the first blocks: they are as the others.
#[derive(Clone, Copy)]
struct Descriptor {
    is_known: bool,
    context: i32,
    /// Rows and columns of the matrix, as the pairs below.
    size: [i32; 2],
    first: [i32; 2],
    block: [i32; 2],
    source: [i32; 2],
    leading: i32,
}

impl Descriptor {
    /// Reads a descriptor.
    ///
    /// # Safety
    /// 1. It has 9 entries if the first is 1, 11 if it is 2, and 2 otherwise.
    unsafe fn read(from: *const i32) -> Self {
        // SAFETY: the caller's. Each entry is read only if the type has it.
        let at = |entry: usize| unsafe { *from.add(entry) };
        let pair = |entry: usize| [at(entry), at(entry + 1)];
        let (is_known, context) = (matches!(at(0), 1 | 2), at(1));
        if !is_known {
            let none = [0; 2];
            let (size, first, block, source, leading) = (none, none, none, none, 0);
            return Descriptor { is_known, context, size, first, block, source, leading };
        }
        let rest = if at(0) == 1 { 4 } else { 6 };
        let (size, first, block) = (pair(2), pair(4), pair(rest));
        let (source, leading) = (pair(rest + 2), at(rest + 4));
        Descriptor { is_known, context, size, first, block, source, leading }
    }

    fn cyclic(&self, side: usize, procs: i32) -> Cyclic {
        let [first, block] = [self.first[side], self.block[side]].map(|size| size as usize);
        let source = usize::try_from(self.source[side]).ok();
        Cyclic { procs: procs as usize, source, first, block }
    }
}

/// A part of a matrix, as the arguments say it.
struct Part {
    /// The position of the descriptor among the arguments. The first row and column are before it.
    position: i32,
    descriptor: Descriptor,
    /// The first row and column, from 0.
    start: [i32; 2],
    /// Rows and columns, and the positions of the arguments that say them.
    size: [i32; 2],
    positions: [i32; 2],
}

impl Part {
    /// The number of the first wrong argument, [`i32::MAX`] if all are right.
    fn first_wrong(&self, context: i32, [procs @ .., row, _]: [i32; 4]) -> i32 {
        let Part { position, descriptor, start, size, positions } = self;
        let mut first = i32::MAX;
        let mut refuse = |is_wrong: bool, number: i32| {
            if is_wrong {
                first = first.min(number);
            }
        };
        let entry = |number: i32| ARGUMENT * position + number;
        refuse(!descriptor.is_known, entry(1));
        refuse(descriptor.context != context, entry(2));
        let is_empty = size.contains(&0);
        let has_places = !is_empty
            && descriptor.context == context
            && descriptor.size.iter().all(|size| *size > 0);
        for side in 0..2 {
            let (number, own, at) = (side as i32, ARGUMENT * positions[side], start[side]);
            let place = ARGUMENT * (position - 2 + number);
            refuse(size[side] < 0, own);
            refuse(at < 0, place);
            if !descriptor.is_known {
                continue;
            }
            let all = descriptor.size[side];
            let least = if is_empty { 0 } else { 1 };
            refuse(all < least, entry(3 + number));
            refuse(descriptor.first[side] < 1, entry(5 + number));
            refuse(descriptor.block[side] < 1, entry(7 + number));
            refuse(!(-1..procs[side]).contains(&descriptor.source[side]), entry(9 + number));
            if has_places {
                refuse(i64::from(at) + i64::from(size[side]) > i64::from(all), place);
            }
        }
        let of_blocks = descriptor.first.iter().chain(&descriptor.block);
        let has_count = descriptor.is_known
            && of_blocks.min().is_some_and(|size| *size > 0)
            && (-1..procs[0]).contains(&descriptor.source[0]);
        if has_count {
            let rows = usize::try_from(descriptor.size[0]).unwrap_or(0);
            let rows = descriptor.cyclic(0, procs[0]).count(row as usize, rows);
            let least = if is_empty { 1 } else { rows.max(1) };
            refuse(i64::from(descriptor.leading) < least as i64, entry(11));
        }
        first
    }

    fn span(&self, side: usize, procs: i32) -> Span {
        let (start, len) = (self.start[side] as usize, self.size[side] as usize);
        Span { cyclic: self.descriptor.cyclic(side, procs), start, len }
    }

    /// The part as an operand. `outer`: its dimension that C has.
    fn operand<T>(&self, outer: usize, procs: [i32; 2], start: *const T) -> Operand<T> {
        let [outer_span, inner] = [outer, 1 - outer].map(|side| self.span(side, procs[side]));
        let leading = self.descriptor.leading as usize;
        Operand { outer: outer_span, inner, has_outer_rows: outer == 0, start, leading }
    }
}

/// The arguments of a function of PBLAS, by Fortran's addresses.
struct Call<T> {
    name: &'static CStr,
    trans: [*const c_char; 2],
    sizes: [*const i32; 3],
    scalars: [*const T; 2],
    a: (*const T, [*const i32; 3]),
    b: (*const T, [*const i32; 3]),
    c: (*mut T, [*const i32; 3]),
}

impl<T: Element + Into<f64>> Call<T> {
    /// Runs it. What fails ends the program, since the caller gets no result.
    ///
    /// # Safety
    /// As of [`pdgemm_`].
    unsafe fn run(&self) {
        // SAFETY: the caller's.
        let run = AssertUnwindSafe(|| unsafe { self.checked() });
        let said = match catch_unwind(run) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "panicked".to_owned(),
        };
        eprintln!("gpu-gemm: {}: {said}", self.name.to_string_lossy());
        blacs::abort()
    }

    /// Checks the arguments, and multiplies.
    ///
    /// # Safety
    /// As of [`pdgemm_`].
    unsafe fn checked(&self) -> Result<()> {
        // SAFETY: the caller's: arguments are addresses of numbers and letters.
        let [m, n, k] = self.sizes.map(|size| unsafe { *size });
        // SAFETY: as above.
        let letters = self.trans.map(|letter| unsafe { *letter as u8 }.to_ascii_uppercase());
        let [trans_a, trans_b] = letters.map(|letter| letter != b'N');
        let part = |place: [*const i32; 3], position, size, positions| {
            let [row, col, descriptor] = place;
            // SAFETY: as above, and descriptors are as ScaLAPACK has them.
            let (start, descriptor) = unsafe { ([*row, *col], Descriptor::read(descriptor)) };
            let start = start.map(|start| start.saturating_sub(1));
            Part { position, descriptor, start, size, positions }
        };
        let stored = |is_transposed: bool, [rows, cols]: [i32; 2]| {
            if is_transposed { [cols, rows] } else { [rows, cols] }
        };
        let a = part(self.a.1, 10, stored(trans_a, [m, k]), stored(trans_a, [3, 5]));
        let b = part(self.b.1, 14, stored(trans_b, [k, n]), stored(trans_b, [5, 4]));
        let c = part(self.c.1, 19, [m, n], [3, 4]);

        let context = a.descriptor.context;
        let info = blacs::grid_info(context)?;
        let first = if info[0] == -1 {
            ARGUMENT * a.position + 2
        } else {
            let letter = |at: usize| {
                if b"NTC".contains(&letters[at]) { i32::MAX } else { ARGUMENT * (at as i32 + 1) }
            };
            let parts = [&a, &b, &c].map(|part| part.first_wrong(context, info));
            parts.into_iter().chain([letter(0), letter(1)]).min().unwrap_or(i32::MAX)
        };
        if first != i32::MAX {
            let number = if first % ARGUMENT == 0 { first / ARGUMENT } else { first };
            return blacs::report(context, self.name, -number);
        }
        // SAFETY: as above. The arguments are right.
        unsafe { self.multiply(info, [&a, &b, &c], [trans_a, trans_b]) }
    }

    /// # Safety
    /// As of [`pdgemm_`], with arguments that are right.
    unsafe fn multiply(
        &self,
        info: [i32; 4],
        [a, b, c]: [&Part; 3],
        trans: [bool; 2],
    ) -> Result<()> {
        // SAFETY: the caller's.
        let [alpha, beta] = self.scalars.map(|scalar| unsafe { *scalar }.into());
        let [m, n, k] = [c.size[0], c.size[1], a.size[usize::from(!trans[0])]];
        if m == 0 || n == 0 {
            return Ok(());
        }
        let procs = [info[0], info[1]];
        let grid = blacs::grid(a.descriptor.context, info)?;
        let [rows, cols] = [c.span(0, procs[0]), c.span(1, procs[1])];
        let [row, col] = grid.own;
        let size = [rows.count(row), cols.count(col)];
        let leading = c.descriptor.leading as usize;
        // For a rank without elements it may be outside of its memory.
        let start = self.c.0.wrapping_add(rows.before(row) + cols.before(col) * leading);
        let own = || -> Result<_> {
            let stream = device(&grid)?.stream()?;
            let (device, [rows, cols]) = (stream.device(), size);
            let own = match beta {
                0.0 => Matrix::with_layout(device, rows, cols, Layout::ColMajor, rows)?,
                // SAFETY: C has this rank's rows and columns at its descriptor's places, and nobody
                // writes them during the call.
                _ => Matrix::upload(device, unsafe {
                    SliceView::from_raw(start, rows, cols, [1, leading])?
                })?,
            };
            Ok((stream, own))
        };
        let (stream, mut own) = grid.agree(own())?;
        let left = a.operand(usize::from(trans[0]), procs, self.a.0);
        let right = b.operand(usize::from(!trans[1]), procs, self.b.0);
        // SAFETY: A and B have this rank's elements at their descriptors' places, and nobody writes
        // them during the call.
        let exchanges =
            unsafe { [Exchange::new(&grid, 0, left, rows), Exchange::new(&grid, 1, right, cols)] };
        let report =
            multiply(&grid, &stream, [alpha, beta], &exchanges, k as usize, own.view_mut())?;
        // SAFETY: as at the upload, and nobody else reads or writes them during the call.
        let to = unsafe { SliceViewMut::from_raw(start, size[0], size[1], [1, leading]) };
        grid.agree(to.and_then(|to| own.download(to)).map_err(Into::into))?;
        let device = stream.device();
        self.log(format_args!("{:?} {m} {n} {k}: {report} on {device}", grid.own));
        Ok(())
    }

    /// Adds a line to the file that is asked for. A file that cannot be written stops no product.
    fn log(&self, what: std::fmt::Arguments) {
        let Some(path) = env::var_os(LOG) else { return };
        let line = format!("{} {what}\n", self.name.to_string_lossy());
        let file = OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// The process's device, kept with the kernels that it has loaded.
fn device(grid: &Grid) -> Result<Device> {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    match DEVICE.get() {
        Some(device) => Ok(device.clone()),
        None => grid.device().map(|device| DEVICE.get_or_init(|| device).clone()),
    }
}

macro_rules! functions {
    ($($function:ident: $element:ty, $name:literal;)*) => {$(
        /// ScaLAPACK's product of parts of distributed matrices: `C = alpha op(A) op(B) + beta C`.
        ///
        /// # Safety
        /// 1. The arguments are those of ScaLAPACK's function, by address.
        /// 2. A, B and C have this process's elements at the places that their descriptors say.
        /// 3. All processes of the context's grid call it with the same arguments, apart from
        ///    addresses and leading dimensions.
        /// 4. The program has ScaLAPACK, and MPI runs.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            trans_a: *const c_char,
            trans_b: *const c_char,
            m: *const i32,
            n: *const i32,
            k: *const i32,
            alpha: *const $element,
            a: *const $element,
            ia: *const i32,
            ja: *const i32,
            desc_a: *const i32,
            b: *const $element,
            ib: *const i32,
            jb: *const i32,
            desc_b: *const i32,
            beta: *const $element,
            c: *mut $element,
            ic: *const i32,
            jc: *const i32,
            desc_c: *const i32,
        ) {
            let call = Call {
                name: $name,
                trans: [trans_a, trans_b],
                sizes: [m, n, k],
                scalars: [alpha, beta],
                a: (a, [ia, ja, desc_a]),
                b: (b, [ib, jb, desc_b]),
                c: (c, [ic, jc, desc_c]),
            };
            // SAFETY: the caller's.
            unsafe { call.run() }
        }
    )*};
}

functions! {
    pdgemm_: f64, c"PDGEMM";
    psgemm_: f32, c"PSGEMM";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_argument_has_pblas_s_number() {
        let right = [2, 7, 20, 30, 3, 5, 4, 6, 1, 0, 11];
        let first = |entries: [i32; 11], start, size| {
            // SAFETY: it has 11 entries.
            let descriptor = unsafe { Descriptor::read(entries.as_ptr()) };
            let part = Part { position: 10, descriptor, start, size, positions: [3, 5] };
            // In the second row of 2 x 2 processes, which has 11 of the matrix's rows.
            part.first_wrong(7, [2, 2, 1, 0])
        };
        assert_eq!(first(right, [14, 26], [6, 4]), i32::MAX);
        for (entry, wrong) in [3, 8, 0, -1, 0, 0, 0, -1, 2, -2, 10].into_iter().enumerate() {
            let mut entries = right;
            entries[entry] = wrong;
            assert_eq!(first(entries, [14, 26], [6, 4]), 1001 + entry as i32, "{wrong}");
        }
        for (start, size, number) in [
            ([15, 26], [6, 4], 800),
            ([-1, 26], [6, 4], 800),
            ([14, 27], [6, 4], 900),
            ([14, -1], [6, 4], 900),
            ([14, 26], [-1, 4], 300),
            ([14, 26], [6, -1], 500),
            ([99, 99], [0, 4], i32::MAX),
        ] {
            assert_eq!(first(right, start, size), number, "{start:?} {size:?}");
        }
    }
}
