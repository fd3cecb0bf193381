//! The number of elements of C that kernels for emulated fp32 recompute. The kernels count them in
//! the [stream's counters](gpu::kernels::emulated::stream_counters). The count of a product is the
//! difference of the counters after and before it.

use gpu::kernels::emulated::stream_counters::RECOMPUTED;

use super::Choice;
use crate::{error::Result, stream::Stream};

impl Stream {
    /// The number of elements of C that products on this stream have recomputed so far, in emulated
    /// fp32 ([`Fp32Bf16x6`](crate::Compute::Fp32Bf16x6), [`Fp32F16x3`](crate::Compute::Fp32F16x3)).
    /// Waits for all work on the device, on other streams, too. [`Choice::recomputed`] is the count
    /// of one product. An element that is recomputed in several [blocks of k](crate::blocks) counts
    /// for each.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn recomputed(&self) -> Result<u64> {
        let mut known = self.known_counter();
        self.synchronize()?;
        let count = self.read_counter(RECOMPUTED)?;
        *known = Some(count);
        Ok(count)
    }
}

/// Launches products without waiting for them. `counts`: their kernels may recompute elements.
/// Otherwise no other thread is waited for.
pub(super) fn uncounted<R>(stream: &Stream, counts: bool, launch: impl FnOnce() -> R) -> R {
    let _known = counts.then(|| {
        let mut known = stream.known_counter();
        *known = None;
        known
    });
    launch()
}

/// Launches a product by `launch`, which waits for it, and adds its count to the choice. `counts`:
/// as for [`uncounted`].
///
/// # Errors
/// Those of `launch`, and of products that were launched before.
pub(super) fn counted(
    stream: &Stream,
    counts: bool,
    launch: impl FnOnce() -> Result<Choice>,
) -> Result<Choice> {
    if !counts {
        return launch();
    }
    let mut known = stream.known_counter();
    let before = match known.take() {
        Some(count) => count,
        None => stream.read_counter(RECOMPUTED)?,
    };
    let choice = launch()?;
    if !choice.entry.is_emulated() {
        *known = Some(before);
        return Ok(choice);
    }
    let count = stream.read_counter(RECOMPUTED)?;
    *known = Some(count);
    Ok(Choice { recomputed: Some(count.wrapping_sub(before)), ..choice })
}

#[cfg(test)]
mod tests {
    use gpu::kernels::emulated::stream_counters::LEN;

    use crate::{Compute, Device, Gemm, Matrix, stream::Kept};

    /// The low word overflows into the high word.
    #[test]
    fn more_than_a_word_counts() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        stream.of_kept(Kept::with_counters, LEN, |board| board.write(0, &[u32::MAX - 40])).unwrap();
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
