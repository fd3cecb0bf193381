//! How many elements the products of slices on a stream have computed again.
//!
//! Their kernels count on a [board](gpu::kernels::gemm_sliced::board) of the stream's, which is there from the first of them on. A
//! product that is waited for is what the board says behind it, less what it said before.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gpu::kernels::gemm_sliced::board::{LEN, RECOMPUTED};

use super::Choice;
use crate::{buffer::Buffer, error::Result, launch::Stream};

/// A stream's.
#[derive(Debug, Default)]
pub(crate) struct Board {
    words: Mutex<Option<Buffer<u32>>>,
    /// What it said last, if no product has been launched since. Whoever launches one has it meanwhile, and whoever waits for one
    /// until it has been counted, so that nobody's is counted with another thread's.
    known: Mutex<Option<u64>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    /// What it says when all has ended that was launched before.
    fn read(&self) -> Result<u64> {
        let words = lock(&self.words);
        let Some(words) = &*words else { return Ok(0) };
        let mut halves = [0; 2];
        words.read(RECOMPUTED, &mut halves)?;
        let [low, high] = halves.map(u64::from);
        Ok(high << 32 | low)
    }
}

impl Stream {
    /// How many elements the products on this stream have computed again so far, of kernels of slices
    /// ([`Fp32Bf16x6`](crate::Compute::Fp32Bf16x6), [`Fp32F16x3`](crate::Compute::Fp32F16x3)): waits for all of them, and for all
    /// else that the device has been given, by other streams, too. It is for products that were launched and not
    /// waited for; of others [`Choice::recomputed`] says it. An element counts as often as it was computed again, and
    /// one of a product of several [blocks of k](crate::blocks) in each of them.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn recomputed(&self) -> Result<u64> {
        let mut known = lock(&self.board().known);
        self.synchronize()?;
        let count = self.board().read()?;
        *known = Some(count);
        Ok(count)
    }

    /// Hands `launch` the board, for what it launches on this stream.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); those of `launch`.
    pub(super) fn with_board<R>(
        &self,
        launch: impl FnOnce(&mut Buffer<u32>) -> Result<R>,
    ) -> Result<R> {
        let mut words = lock(&self.board().words);
        let words = match &mut *words {
            Some(words) => words,
            none => none.insert(self.device().zeros(LEN)?),
        };
        launch(words)
    }
}

/// Launches products by `launch`, which does not wait for them. Those that cannot be of slices are not `counted`: nobody waits for
/// another thread's.
pub(super) fn uncounted<R>(stream: &Stream, counted: bool, launch: impl FnOnce() -> R) -> R {
    let _known = counted.then(|| {
        let mut known = lock(&stream.board().known);
        *known = None;
        known
    });
    launch()
}

/// Launches a product by `launch`, which waits for it. As above.
///
/// # Errors
/// Those of `launch`, and of products that were launched before.
pub(super) fn counted(
    stream: &Stream,
    counted: bool,
    launch: impl FnOnce() -> Result<Choice>,
) -> Result<Choice> {
    if !counted {
        return launch();
    }
    let mut known = lock(&stream.board().known);
    let before = match known.take() {
        Some(count) => count,
        None => stream.board().read()?,
    };
    let choice = launch()?;
    if !choice.entry.is_sliced() {
        *known = Some(before);
        return Ok(choice);
    }
    let count = stream.board().read()?;
    *known = Some(count);
    Ok(Choice { recomputed: Some(count.wrapping_sub(before)), ..choice })
}

#[cfg(test)]
mod tests {
    use crate::{Compute, Device, Gemm, Matrix};

    /// The lower word is full, and counts on in the other.
    #[test]
    fn more_than_a_word_counts() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        stream.with_board(|board| board.write(0, &[u32::MAX - 40])).unwrap();
        let a = Matrix::from_row_major(&device, 20, 1, &[f32::NAN; 20]).unwrap();
        let b = Matrix::from_row_major(&device, 1, 5, &[1.0; 5]).unwrap();
        let mut c = Matrix::zeros(&device, 20, 5).unwrap();
        let gemm = Gemm::new().compute(Compute::Fp32Bf16x6);
        let gemm = gemm.kernel("wgmma_bf16x6_64x128x64_nn").unwrap();
        let choice = gemm.run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        assert_eq!(choice.recomputed, Some(100));
        assert_eq!(stream.recomputed().unwrap(), u64::from(u32::MAX) + 60);
    }
}
