//! A ring of stages in shared memory: one side fills them by copies, the other reads them.
//!
//! ```text
//!   producer   acquire: waits until the stage has been read, announces the bytes
//!              (begins copies that tell `full()`)
//!              advance
//!   consumer   wait: until the bytes have come
//!              (reads)
//!              release: it has been read
//! ```
//!
//! Each stage has two mbarriers. Both sides go round the ring by themselves, and at every round the parity of the
//! phases that they wait for turns over: these types keep stage and parity, so that a kernel cannot confuse them.

use crate::device::{Mbarrier, Mbarriers, fence_proxy_async, mbarrier, warp};

/// The mbarriers of a ring of stages, made by [`pipeline!`](crate::pipeline).
pub struct Pipeline<const STAGES: usize> {
    full: Mbarriers<STAGES>,
    empty: Mbarriers<STAGES>,
}

impl<const STAGES: usize> Pipeline<STAGES> {
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub fn declare() -> Self {
        Pipeline { full: Mbarriers::declare(), empty: Mbarriers::declare() }
    }

    /// Gets it ready: a stage has been read when `readers` have released it. One thread of the block does this, and a
    /// barrier follows.
    #[inline(always)]
    #[track_caller]
    pub fn init(&self, readers: u32) {
        self.init_for(1, readers);
    }

    /// Gets it ready: a stage has been filled after so many arrivals and the bytes that they announced, and read when
    /// `readers` have released it. As [`init`](Self::init), for stages that threads fill: each of them then arrives when its
    /// copies have come ([`Mbarrier::arrive_after_copies`]).
    #[inline(always)]
    #[track_caller]
    pub fn init_for(&self, arrivals: u32, readers: u32) {
        for stage in 0..STAGES {
            self.full.at(stage).init(arrivals);
            self.empty.at(stage).init(readers);
        }
        mbarrier::fence_init();
    }

    /// The side that fills, from the first stage on. One thread has it, or a warp.
    #[inline(always)]
    pub fn producer(&self) -> Producer<'_, STAGES> {
        Producer { pipeline: self, turn: Turn::default() }
    }

    /// One of several sides that fill, which take turns: every `n`-th stage is its, from the `first` on. One warp has it.
    #[inline(always)]
    pub fn producer_of(&self, first: usize) -> Producer<'_, STAGES> {
        Producer { pipeline: self, turn: Turn { stage: first as u32, parity: 0 } }
    }

    /// The side that reads, from the first stage on. Every thread that reads has one.
    #[inline(always)]
    pub fn consumer(&self) -> Consumer<'_, STAGES> {
        Consumer { pipeline: self, turn: Turn::default() }
    }

    /// One of several sides that read, which take turns: as [`producer_of`](Self::producer_of).
    #[inline(always)]
    pub fn consumer_of(&self, first: usize) -> Consumer<'_, STAGES> {
        Consumer { pipeline: self, turn: Turn { stage: first as u32, parity: 0 } }
    }
}

/// A stage, and the parity of this round.
#[derive(Clone, Copy, Default)]
struct Turn {
    stage: u32,
    parity: u32,
}

impl Turn {
    #[inline(always)]
    fn advance<const STAGES: usize>(&mut self) {
        self.stage += 1;
        if self.stage == STAGES as u32 {
            self.stage = 0;
            self.parity ^= 1;
        }
    }

    /// By so many stages, at most all.
    #[inline(always)]
    fn advance_by<const STAGES: usize>(&mut self, count: usize) {
        self.stage += count as u32;
        if self.stage >= STAGES as u32 {
            self.stage -= STAGES as u32;
            self.parity ^= 1;
        }
    }
}

/// The side of a ring that fills it.
pub struct Producer<'a, const STAGES: usize> {
    pipeline: &'a Pipeline<STAGES>,
    turn: Turn,
}

impl<const STAGES: usize> Producer<'_, STAGES> {
    /// Waits until the stage may be filled, and announces so many bytes. Gives its number.
    #[inline(always)]
    #[track_caller]
    pub fn acquire(&mut self, bytes: u32) -> usize {
        let stage = self.turn.stage as usize;
        // In the first round nobody has read anything, and the phase before phase 0 counts as ended.
        self.pipeline.empty.at(stage).wait(self.turn.parity ^ 1);
        self.announce(bytes);
        stage
    }

    /// Waits until the stage may be filled, a whole warp. Gives its number. One of its lanes then
    /// [announces](Self::announce) the bytes.
    #[inline(always)]
    #[track_caller]
    pub fn acquire_warp(&self) -> usize {
        let stage = self.turn.stage as usize;
        self.pipeline.empty.at(stage).wait_warp(self.turn.parity ^ 1);
        stage
    }

    /// [`acquire_warp`](Self::acquire_warp) for a warp that does nothing but fill: it sleeps where it has to wait, and leaves
    /// the scheduler to others.
    #[inline(always)]
    #[track_caller]
    pub fn acquire_idle(&self) -> usize {
        let stage = self.turn.stage as usize;
        self.pipeline.empty.at(stage).wait_idle(self.turn.parity ^ 1);
        stage
    }

    /// Announces so many bytes.
    #[inline(always)]
    #[track_caller]
    pub fn announce(&self, bytes: u32) {
        self.full().arrive_expect(bytes);
    }

    /// What the copies to this stage tell of their bytes.
    #[inline(always)]
    pub fn full(&self) -> Mbarrier {
        self.pipeline.full.at(self.turn.stage as usize)
    }

    /// Goes on to the next stage.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.turn.advance::<STAGES>();
    }

    /// Goes on to the stage `count` further, at most as many as there are.
    #[inline(always)]
    pub fn advance_by(&mut self, count: usize) {
        self.turn.advance_by::<STAGES>(count);
    }
}

/// The side of a ring that reads it.
pub struct Consumer<'a, const STAGES: usize> {
    pipeline: &'a Pipeline<STAGES>,
    turn: Turn,
}

impl<const STAGES: usize> Consumer<'_, STAGES> {
    /// Waits until the stage's bytes have come. Gives its number.
    #[inline(always)]
    #[track_caller]
    pub fn wait(&self) -> usize {
        let stage = self.turn.stage as usize;
        self.pipeline.full.at(stage).wait(self.turn.parity);
        stage
    }

    /// [`wait`](Self::wait) for a warp, all of whose lanes come here.
    #[inline(always)]
    #[track_caller]
    pub fn wait_warp(&self) -> usize {
        let stage = self.turn.stage as usize;
        self.pipeline.full.at(stage).wait_warp(self.turn.parity);
        stage
    }

    /// Says for the warp that the stage has been read: a warp is one of the pipeline's readers. All its lanes come here.
    ///
    /// What they read, others will write by the async proxy, and a barrier orders that only behind a proxy fence of those
    /// who read (PTX ISA, "Async proxy"; the same hazard is Triton's PR 7262).
    #[inline(always)]
    #[track_caller]
    pub fn release_warp(&self) {
        fence_proxy_async();
        warp::sync_warp(warp::ALL);
        if warp::elect() {
            self.release();
        }
    }

    /// Says that the stage has been read, as one of the pipeline's readers: by this thread, which has put a proxy fence
    /// behind its own reads, or by tensor cores, which need none.
    #[inline(always)]
    #[track_caller]
    pub fn release(&self) {
        self.pipeline.empty.at(self.turn.stage as usize).arrive();
    }

    /// Goes on to the next stage.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.turn.advance::<STAGES>();
    }

    /// Goes on to the stage `count` further, at most as many as there are.
    #[inline(always)]
    pub fn advance_by(&mut self, count: usize) {
        self.turn.advance_by::<STAGES>(count);
    }
}
