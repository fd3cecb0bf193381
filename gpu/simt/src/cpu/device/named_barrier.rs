//! Barriers for some of a block's warps: `bar.sync` and `bar.arrive` with an id.

use std::panic::Location;

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use crate::cpu::{
    block::{self, current_cluster, wait_for},
    cluster::{Place, Wait},
    named_barrier::Arrival,
};

/// `COUNT` named barriers for `THREADS` threads each, made by
/// [`named_barriers!`](crate::named_barriers).
#[derive(Debug)]
pub struct NamedBarriers<const FIRST: u32, const COUNT: u32, const THREADS: u32>(());

#[cfg_attr(not(feature = "cpu"), signatures)]
impl<const FIRST: u32, const COUNT: u32, const THREADS: u32> NamedBarriers<FIRST, COUNT, THREADS> {
    #[doc(hidden)]
    #[track_caller]
    pub fn declare() -> Self {
        const {
            assert!(FIRST >= 1 && COUNT >= 1 && FIRST + COUNT <= 16, "ids are 1 to 15");
            assert!(THREADS.is_multiple_of(32) && THREADS >= 32 && THREADS <= 1024, "whole warps");
        }
        let place = Location::caller();
        for id in FIRST..FIRST + COUNT {
            // Not in a closure, which would not have the caller's location.
            if let Err(reason) =
                current_cluster().declare_named((block::rank(), id), THREADS, place)
            {
                crate::cpu::panics::misuse(format_args!(
                    "the named barrier {id} is declared here {reason}"
                ));
            }
        }
        NamedBarriers(())
    }

    /// One of them.
    #[track_caller]
    pub fn at(&self, index: usize) -> NamedBarrier<THREADS> {
        assert!(index < COUNT as usize, "named barrier {index}: there are {COUNT}");
        NamedBarrier { id: FIRST + index as u32 }
    }
}

/// A named barrier for `THREADS` threads of the block, in whole warps: those that arrive.
///
/// A round ends when that number of threads have arrived, in whole warps; then the next round
/// begins. A thread that arrives must know that the previous round has ended.
#[derive(Clone, Copy, Debug)]
pub struct NamedBarrier<const THREADS: u32> {
    id: u32,
}

#[cfg_attr(not(feature = "cpu"), signatures)]
impl<const THREADS: u32> NamedBarrier<THREADS> {
    /// Arrives, and waits until all have arrived. What they wrote before is then visible to this
    /// thread. All lanes of the warp call it together.
    #[track_caller]
    pub fn sync(self) {
        self.come(true, Location::caller());
    }

    /// Arrives and does not wait. What this thread wrote before is visible to the threads that
    /// wait. All lanes of the warp call it together.
    #[track_caller]
    pub fn arrive(self) {
        self.come(false, Location::caller());
    }

    #[track_caller]
    fn come(self, waits: bool, place: &'static Location<'static>) {
        let (at, thread): (Place, _) = ((block::rank(), self.id), block::current().number);
        let checker = block::checker();
        if let Some(checker) = checker {
            checker.arrive_at_named(at, place);
        }
        let (cluster, arrival) = (current_cluster(), Arrival { thread, waits, place });
        match cluster.arrive_at_named(at, arrival, block::lanes_of_warp()) {
            Err(reason) => {
                crate::cpu::panics::misuse(format_args!("named barrier {}: {reason}", self.id))
            }
            Ok(Some(come)) => {
                if let Some(checker) = checker {
                    checker.end_named_round(at, &come);
                }
            }
            Ok(None) if waits => wait_for(Wait::Named(at), place),
            Ok(None) => {}
        }
    }
}
