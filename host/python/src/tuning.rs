//! The answers of tuned products. They are the process's, and stay to its end.

use std::{
    path::{Path, PathBuf, absolute},
    sync::{LazyLock, Mutex, PoisonError},
};

use gpu_gemm::{Error, Result, TuningCache};

/// Those that no file keeps.
pub(crate) fn in_memory() -> &'static TuningCache {
    static CACHE: LazyLock<TuningCache> = LazyLock::new(TuningCache::new);
    &CACHE
}

/// Those of a file, which is read by the first call.
///
/// # Errors
/// As [`TuningCache::open`].
pub(crate) fn of_file(path: &Path) -> Result<&'static TuningCache> {
    static OPEN: Mutex<Vec<(PathBuf, &'static TuningCache)>> = Mutex::new(Vec::new());
    let limit = "must name a file, in a folder that exists";
    let path = absolute(path).map_err(|_| Error::argument("tune", format!("{path:?}"), limit))?;
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, cache)) = open.iter().find(|(known, _)| *known == path) {
        return Ok(cache);
    }
    let cache = Box::leak(Box::new(TuningCache::open(&path)?));
    open.push((path, cache));
    Ok(cache)
}
