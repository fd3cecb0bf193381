//! The functions of BLACS and PBLAS that the program has: they are looked up in it.

use std::{
    ffi::{CStr, c_char},
    mem::ManuallyDrop,
    rc::Rc,
};

use libloading::os::unix::{Library, Symbol};
use mpi::{
    ffi::{self, MPI_Comm},
    topology::SimpleCommunicator,
    traits::{AnyCommunicator, CommAttribute, FromRaw},
};

use crate::{
    error::{Error, Result},
    grid::Grid,
};

/// `what` of `Cblacs_get`: the handle of the system's communicator of a context.
const SYSTEM_HANDLE: i32 = 10;

fn function<F>(name: &CStr) -> Result<Symbol<F>> {
    let program = Library::this();
    // SAFETY: the types below are those of BLACS's and PBLAS's functions of these names.
    let found = unsafe { program.get::<F>(name.to_bytes_with_nul()) };
    found.map_err(|_| {
        let limit = "is not in the program: it must have loaded ScaLAPACK".to_owned();
        Error::argument("function", name.to_string_lossy(), limit)
    })
}

/// The rows and columns of a context's grid, and this process's. All are -1 outside of it.
pub(crate) fn grid_info(context: i32) -> Result<[i32; 4]> {
    let get = function::<unsafe extern "C" fn(i32, *mut i32, *mut i32, *mut i32, *mut i32)>(
        c"Cblacs_gridinfo",
    )?;
    let mut info = [-1; 4];
    let [rows, cols, row, col] = &mut info;
    // SAFETY: the pointers are of numbers that it writes.
    unsafe { get(context, rows, cols, row, col) };
    Ok(info)
}

/// The grid of a context, which its communicator keeps until BLACS frees it: with the context, on
/// all processes.
#[derive(Clone)]
struct Kept(Rc<Grid>);

impl CommAttribute for Kept {}

/// The grid of a context. All processes of the grid call this.
pub(crate) fn grid(context: i32, [rows, cols, row, col]: [i32; 4]) -> Result<Rc<Grid>> {
    let get = function::<unsafe extern "C" fn(i32, i32, *mut i32)>(c"Cblacs_get")?;
    let of_handle = function::<unsafe extern "C" fn(i32) -> MPI_Comm>(c"Cblacs2sys_handle")?;
    let mut handle = 0;
    // SAFETY: a context that `grid_info` knows.
    let raw = unsafe {
        get(context, SYSTEM_HANDLE, &raw mut handle);
        of_handle(handle)
    };
    let [size, own] = [[rows, cols], [row, col]].map(|pair| pair.map(|value| value as usize));
    // SAFETY: the handle is of the communicator that BLACS has made of the grid's processes. It is
    // not freed here.
    let mut ranks = ManuallyDrop::new(unsafe { SimpleCommunicator::from_raw(raw) });
    if let Some(Kept(grid)) = ranks.get_attr::<Kept>() {
        return Ok(Rc::clone(grid));
    }
    let grid = Rc::new(Grid::at(&*ranks, size, own)?);
    ranks.set_attr(Kept(Rc::clone(&grid)));
    Ok(grid)
}

/// Reports a wrong argument, as PBLAS does: `info` is negative.
pub(crate) fn report(context: i32, name: &CStr, info: i32) -> Result<()> {
    type Abort = unsafe extern "C" fn(i32, *const c_char, i32);
    type Xerbla = unsafe extern "C" fn(*const i32, *const c_char, *const i32, usize);
    if let Ok(abort) = function::<Abort>(c"PB_Cabort") {
        // SAFETY: it reads a name that ends with 0.
        unsafe { abort(context, name.as_ptr(), info) };
        return Ok(());
    }
    let xerbla = function::<Xerbla>(c"pxerbla_")?;
    let (number, len) = (-info, name.count_bytes());
    // SAFETY: Fortran's: numbers by address, and the length of the name behind.
    unsafe { xerbla(&raw const context, name.as_ptr(), &raw const number, len) };
    Ok(())
}

/// Ends the program on all ranks.
pub(crate) fn abort() -> ! {
    // SAFETY: MPI runs while a function of PBLAS does.
    unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, 1) };
    std::process::abort()
}
