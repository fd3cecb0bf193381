//! A library, and what it is ready to do.

use host::{Stream, baseline::DenseBatch};

use super::case::{Sets, Views};

/// A library on a stream, for products of A and B of `T` and C of `O`.
pub(in crate::cli) trait Library<T, O> {
    /// As rows name it.
    fn name(&self) -> &'static str;

    /// Its file and version, or what is known of them.
    fn version(&self) -> String;

    /// What it does for a product; `None` where it has nothing for it.
    fn prepare<'l>(
        &'l self,
        product: &DenseBatch,
    ) -> host::Result<Option<Box<dyn Ready<T, O> + 'l>>>;
}

/// A library ready for a product.
pub(in crate::cli) trait Ready<T, O> {
    /// The product, put on the stream.
    fn launch(&self, operands: Views<T, O>) -> host::Result<()>;

    /// Takes the fastest of its algorithms on these operands, where it has several.
    fn choose(&mut self, _stream: &Stream, _sets: &mut dyn Sets<T, O>) -> host::Result<()> {
        Ok(())
    }

    /// Which algorithm that is.
    fn algorithm(&self) -> Option<String> {
        None
    }
}
