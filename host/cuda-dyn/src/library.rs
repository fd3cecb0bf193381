//! The driver's library, and where its functions are.

use cust_raw::CUresult;
use libloading::Library;
use std::error::Error;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The code of every function while the driver's library is not there.
pub(crate) const NO_LIBRARY: c_int = CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED as c_int;
/// The code of a function that the library does not have.
pub(crate) const NO_SYMBOL: c_int = CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND as c_int;

/// Where the library may be, the usual place first.
const NAMES: [&str; 3] = [
    "libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1", // Windows' driver, seen from WSL 2
    "/run/opengl-driver/lib/libcuda.so.1", // NixOS
];

/// The name under which the driver's library was loaded, or why it was not.
///
/// The first call loads the library; all later ones, from any thread, give the same answer. It says
/// nothing about devices: that is `cuInit`'s to answer.
pub fn driver() -> Result<&'static str, &'static str> {
    match library() {
        Ok((_, name)) => Ok(name),
        Err(reason) => Err(reason),
    }
}

fn library() -> &'static Result<(Library, &'static str), String> {
    static LIBRARY: OnceLock<Result<(Library, &str), String>> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let mut reasons = Vec::new();
        for name in NAMES {
            // SAFETY: loading runs the initialisers of NVIDIA's library, which every CUDA program runs at
            // its start. It is kept in a static and so never unloaded under the addresses taken from it.
            match unsafe { Library::new(name) } {
                Ok(library) => return Ok((library, name)),
                // That another system's directory is absent here is no news.
                Err(_) if name.starts_with('/') && !Path::new(name).exists() => {}
                // libloading's own text is "dlopen failed"; the loader's words are the source.
                Err(error) => reasons
                    .push(error.source().map_or_else(|| error.to_string(), ToString::to_string)),
            }
        }
        Err(reasons.join("; "))
    })
}

/// One function of the driver: looked up once.
pub(crate) struct Function {
    name: &'static str,
    address: AtomicPtr<c_void>,
}

impl Function {
    /// A function that was not looked up yet.
    pub(crate) const fn new(name: &'static str) -> Self {
        Function { name, address: AtomicPtr::new(null_mut()) }
    }

    /// Its address, not null; or [`NO_LIBRARY`] or [`NO_SYMBOL`].
    pub(crate) fn address(&self) -> Result<*mut c_void, c_int> {
        // Acquire, for what the loading thread wrote into the library's data before the address.
        let known = self.address.load(Ordering::Acquire);
        if known.is_null() { self.look_up() } else { Ok(known) }
    }

    #[cold]
    fn look_up(&self) -> Result<*mut c_void, c_int> {
        let (library, _) = library().as_ref().map_err(|_| NO_LIBRARY)?;
        // SAFETY: as a pointer the symbol is only an address. Who calls it gives it its type.
        let found = unsafe { library.get::<*mut c_void>(self.name) };
        let address = *found.map_err(|_| NO_SYMBOL)?;
        if address.is_null() {
            return Err(NO_SYMBOL);
        }
        self.address.store(address, Ordering::Release);
        Ok(address)
    }
}

/// Calls the driver's function of that name, with arguments of these types.
///
/// Unsafe, for whoever uses it: the function has these arguments and an int for its result, and what it asks of them
/// holds.
macro_rules! call {
    ($name:ident($($argument:ident: $type:ty),*)) => {{
        type Driver = unsafe extern "C" fn($($type),*) -> std::ffi::c_int;
        static FUNCTION: $crate::library::Function =
            $crate::library::Function::new(stringify!($name));
        let code = match FUNCTION.address() {
            Ok(address) => {
                std::mem::transmute::<*mut std::ffi::c_void, Driver>(address)($($argument),*)
            }
            Err(code) => code,
        };
        $crate::codes::result(stringify!($name), code)
    }};
}
pub(crate) use call;
