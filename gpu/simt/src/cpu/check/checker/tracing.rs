//! The trace of a block: who calls its tracer.

use super::Checker;
use crate::cpu::{block, check::trace::Tracer};

impl Checker<'_> {
    /// Calls the tracer, if the traced block is in the cluster.
    pub(super) fn with_tracer(&self, act: impl FnOnce(&mut Tracer)) {
        if self.tracing.get()
            && let Some(tracer) = &mut *self.tracer.borrow_mut()
        {
            act(tracer);
        }
    }

    /// Calls the tracer, if the running thread's block is traced.
    #[inline]
    pub(super) fn with_own_tracer(&self, act: impl FnOnce(&mut Tracer)) {
        // Most launches are not traced, and this is asked at every access.
        if self.tracing.get() && self.launch.trace == Some(block::block_index()) {
            self.with_tracer(act);
        }
    }
}
