//! The trait of a library, and of a product that it has prepared.

use host::{Stream, baseline::DenseBatch};

use super::case::{Sets, Views};

/// A library on a stream, for products of A and B of `T` and C of `O`.
pub(in crate::cli) trait Library<T, O> {
    /// Its name in rows.
    fn name(&self) -> &'static str;

    /// Its file and version, or another description.
    fn version(&self) -> String;

    /// Prepares a product. `None` if the library cannot compute it.
    fn prepare<'l>(
        &'l self,
        product: &DenseBatch,
    ) -> host::Result<Option<Box<dyn Ready<T, O> + 'l>>>;
}

/// A prepared product.
pub(in crate::cli) trait Ready<T, O> {
    /// Queues the product on the stream.
    fn launch(&self, operands: Views<T, O>) -> host::Result<()>;

    /// Selects the fastest of its algorithms for these operands, if it has several.
    fn choose(&mut self, _stream: &Stream, _sets: &mut dyn Sets<T, O>) -> host::Result<()> {
        Ok(())
    }

    /// The name of that algorithm.
    fn algorithm(&self) -> Option<String> {
        None
    }
}
