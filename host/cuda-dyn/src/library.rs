//! The driver's library, and tables of its functions.

use libloading::Library;
use std::error::Error;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::sync::OnceLock;

/// `CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`: the code of every function while the driver's library is
/// not there.
pub(crate) const NO_LIBRARY: c_int = 303;
/// `CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`: the code of a function that the library does not
/// have.
pub(crate) const NO_SYMBOL: c_int = 302;

/// The paths of the library, the usual one first.
const NAMES: [&str; 3] = [
    "libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1", // Windows' driver, seen from WSL 2
    "/run/opengl-driver/lib/libcuda.so.1", // NixOS
];

/// The name of the driver's library, or why it could not be loaded.
///
/// The first call loads the library. All later calls, from any thread, give the same answer. It
/// says nothing about devices: `cuInit` does.
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
            // SAFETY: loading runs the initialisers of NVIDIA's library, as in every CUDA program.
            // The library is in a static, so it is not unloaded while its addresses are used.
            match unsafe { Library::new(name) } {
                Ok(library) => return Ok((library, name)),
                // Another system's path need not be reported.
                Err(_) if name.starts_with('/') && !Path::new(name).exists() => {}
                // libloading's own text is "dlopen failed". Its source has the loader's message.
                Err(error) => reasons
                    .push(error.source().map_or_else(|| error.to_string(), ToString::to_string)),
            }
        }
        Err(reasons.join("; "))
    })
}

/// The address of the driver's function of that name, not null; or [`NO_LIBRARY`] or [`NO_SYMBOL`].
pub(crate) fn address(name: &str) -> Result<*mut c_void, c_int> {
    let (library, _) = library().as_ref().map_err(|_| NO_LIBRARY)?;
    // SAFETY: as a pointer the symbol is only an address. Who calls it gives it its type.
    let found = unsafe { library.get::<*mut c_void>(name) };
    found.map(|found| *found).ok().filter(|address| !address.is_null()).ok_or(NO_SYMBOL)
}

/// Defines a struct with a pointer to each function, and its `get`. The first call looks all of
/// them up. A function that is not there is one that returns [`NO_LIBRARY`] or [`NO_SYMBOL`].
///
/// Unsafe, for whoever uses it: the driver's functions of these names have these arguments and an
/// int for their result.
macro_rules! table {
    ($(#[$attribute:meta])* struct $Table:ident {
        $(fn $name:ident($($argument:ident: $type:ty),*);)*
    }) => {
        $(#[$attribute])*
        pub(crate) struct $Table {
            $(pub(crate) $name: unsafe extern "C" fn($($type),*) -> std::ffi::c_int,)*
        }

        impl $Table {
            /// The functions of the driver's library.
            pub(crate) fn get() -> &'static Self {
                static TABLE: std::sync::OnceLock<$Table> = std::sync::OnceLock::new();
                TABLE.get_or_init(|| $Table {
                    $($name: {
                        extern "C" fn no_library($(_: $type),*) -> std::ffi::c_int {
                            $crate::library::NO_LIBRARY
                        }
                        extern "C" fn no_symbol($(_: $type),*) -> std::ffi::c_int {
                            $crate::library::NO_SYMBOL
                        }
                        type Driver = unsafe extern "C" fn($($type),*) -> std::ffi::c_int;
                        match $crate::library::address(stringify!($name)) {
                            // SAFETY: the driver's function of that name has these arguments and an
                            // int for its result; whoever uses the macro says so.
                            Ok(address) => unsafe {
                                std::mem::transmute::<*mut std::ffi::c_void, Driver>(address)
                            },
                            Err($crate::library::NO_SYMBOL) => no_symbol,
                            Err(_) => no_library,
                        }
                    },)*
                })
            }
        }
    };
}
pub(crate) use table;
