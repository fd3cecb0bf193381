//! The trait of a library, and of a product that it has prepared.

use host::{
    Stream,
    baseline::{DenseBatch, Epilogue},
};

use super::case::{Sets, Views};

/// A library on a stream, for products of A and B of `T` and C of `O`.
pub(in crate::cli) trait Library<T, O> {
    /// Its name in rows.
    fn name(&self) -> &'static str;

    /// Its file and version, or another description.
    fn version(&self) -> String;

    /// Prepares a product with an epilogue. `None` if the library cannot compute it. If it can
    /// compute the product alone, it may prepare that, and what stands for the rest:
    /// [`Ready::instead`].
    fn prepare<'l>(
        &'l self,
        product: &DenseBatch,
        epilogue: Epilogue,
    ) -> host::Result<Option<Box<dyn Ready<T, O> + 'l>>>;
}

/// A prepared product.
pub(in crate::cli) trait Ready<T, O> {
    /// Queues the product on the stream.
    fn launch(&self, operands: Views<T, O>) -> host::Result<()>;

    /// What C is after it, if the library lacks the epilogue. What stands for the rest is a copy of
    /// C.
    fn instead(&self) -> Option<Epilogue> {
        None
    }

    /// Selects the fastest of its algorithms for these operands, if it has several.
    fn choose(&mut self, _stream: &Stream, _sets: &mut dyn Sets<T, O>) -> host::Result<()> {
        Ok(())
    }

    /// The name of that algorithm.
    fn algorithm(&self) -> Option<String> {
        None
    }
}
