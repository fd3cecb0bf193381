//! The ladder's baseline: cuBLAS, if there is a GPU and the library.

#[cfg(feature = "cuda")]
use host::baseline::Cublas;
use host::{Stream, timing::Operands};

use crate::cli::note;

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

    pub(super) fn multiply(&self, Operands { a, b, c }: &mut Operands) -> host::Result<()> {
        #[cfg(feature = "cuda")]
        return self.cublas.multiply(a, b, c);
        #[cfg(not(feature = "cuda"))]
        {
            let _ = (a, b, c);
            match self.never.0 {}
        }
    }
}
