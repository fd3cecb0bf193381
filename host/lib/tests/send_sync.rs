//! Which public types may go to another thread, and be used from several: all of them. The compiler
//! is the test; what is left is to name every type.

use gpu_gemm::*;
use std::{fs, path::Path};

fn send_and_sync<T: Send + Sync>() {}

/// Each type, and its name without parameters.
macro_rules! send_and_sync {
    ($($($module:ident)::+ $(<$($parameter:tt),*>)?;)*) => {
        [$({
            send_and_sync::<$($module)::+ $(<$($parameter),*>)?>();
            stringify!($($module)::+)
        }),*]
    };
}

/// The last word of a path.
fn last(path: &str) -> &str {
    path.rsplit([':', ' ']).next().unwrap()
}

#[test]
fn every_public_type() {
    let named = send_and_sync! {
        Activation; Batch<'static, f32>; BatchMut<'static, f32>; Best; Bias<'static, f32>; Boxes<'static, f32>;
        BoxesMut<'static, f32>; BoxShape; Buffer<f32>; BufferView<'static, f32>; BufferViewMut<'static, f32>; Compute;
        CudaProperties; Device; Devices; Error; Event; Gemm<'static, f32>; Graph; GraphOperand<'static>; Granularity; Layout; Lines; Matrix<f32>; MatrixView<'static, f32>;
        MatrixViewMut<'static, f32>; NewFile; NewSet; Pinned<f32>; Pitched<f32>; PlannedGemm<'static, f32>;
        PointerSymbol<f32>;
        PreparedMatrix<'static, f32>; Region; Shape; ShardLayout; Sharded<f32>; SliceView<'static, f32>; SliceViewMut<'static, f32>; Stream;
        Symbol<f32>; TuningCache;
        blocks::BlockPlan; blocks::Dense<f32>; blocks::Job; blocks::Product<'static, f32>; blocks::Stays; blocks::Step;
        blocks::Transposed<'static, f32>; blocks::Why;
        interchange::Foreign<'static, f32>; interchange::ForeignMut<'static, f32>; interchange::ForeignStream<'static>;
        interchange::Scope<'static, 'static>; interchange::dlpack::Tensor<f32>;
        interchange::dlpack::DLDataType; interchange::dlpack::DLDevice; interchange::dlpack::DLManagedTensor;
        interchange::dlpack::DLManagedTensorVersioned; interchange::dlpack::DLPackVersion;
        interchange::dlpack::DLTensor; interchange::dlpack::Managed;
        gemm::Algorithm; gemm::Candidate; gemm::Card; gemm::Choice; gemm::Ineligible; gemm::Invariant; gemm::Kernel; gemm::Launch; gemm::Plan; gemm::PreparedSharded<'static, f32>; gemm::Reason;
        gemm::Request; gemm::Role; gemm::Scales<'static>; gemm::ShardedPlan; gemm::Target; gemm::Times; gemm::Unit;
        npy::Header; npy::Meaning; npy::Reader; npy::Vector; npy::Writer;
        product::Launch; ptx::Ptx; ptx::Resources; testing::Counts;
    };
    // Nobody outside can name these: their modules are private.
    let private = ["Unbound", "Written"];
    // Known by other names.
    let renamed = [("Properties", "CudaProperties")];
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = 0;
    for file in rust_files(&sources) {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let words = line.split(|it: char| !it.is_alphanumeric() && it != '_');
            let ["pub", "struct" | "enum" | "union", name] = words.take(3).collect::<Vec<_>>()[..]
            else {
                continue;
            };
            found += 1;
            let name = renamed.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new);
            let is_named = named.iter().any(|path| last(path) == name);
            assert!(is_named || private.contains(&name), "{name} of {file:?} is not named here");
        }
    }
    assert!(found >= 60, "{found} public types");
}

fn rust_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(rust_files(&path)),
            false => files.push(path),
        }
    }
    files
}
