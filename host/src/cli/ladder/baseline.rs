//! The ladder's baseline: cuBLAS, if there is a GPU and the library.

#[cfg(feature = "cuda")]
use host::baseline::Cublas;
use host::{Shape, Stream, baseline::DenseBatch, gemm::Scalar};

use crate::cli::{
    bench::case::{Set, Views},
    note,
    types::Value,
};

/// cuBLAS on a stream. Without the feature `cuda` there is none.
pub(super) struct Baseline<'a> {
    #[cfg(feature = "cuda")]
    cublas: Cublas<'a>,
    #[cfg(not(feature = "cuda"))]
    never: (std::convert::Infallible, std::marker::PhantomData<&'a Stream>),
}

impl<'a> Baseline<'a> {
    /// `None` on the CPU. Also `None`, with a note, if there is no library.
    pub(super) fn open(stream: &'a Stream) -> host::Result<Option<Self>> {
        if !stream.device().is_cuda() {
            return Ok(None);
        }
        #[cfg(feature = "cuda")]
        return match Cublas::open(stream) {
            Ok(cublas) => {
                note(format_args!("note: cuBLAS is {}", cublas.file_name()));
                Ok(Some(Baseline { cublas }))
            }
            Err(error @ host::Error::NoCublas { .. }) => {
                note(format_args!("note: {error}; the rungs are held against each other alone"));
                Ok(None)
            }
            Err(error) => Err(error),
        };
        #[cfg(not(feature = "cuda"))]
        {
            note(format_args!("note: host was built without its feature `cuda`"));
            Ok(None)
        }
    }

    pub(super) fn multiply<T: Value + Scalar>(
        &self,
        shape: Shape,
        operands: &mut Set<T, T>,
    ) -> host::Result<()> {
        let (product, Views { a, b, c, .. }) = (DenseBatch::one(shape), operands.views());
        #[cfg(feature = "cuda")]
        return self.cublas.launch(&product, [1.0, 0.0], a, b, c);
        #[cfg(not(feature = "cuda"))]
        {
            let _ = (product, a, b, c);
            match self.never.0 {}
        }
    }
}
