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
//! Warps that fill a ring themselves ([`Pipeline::init_for_writers`]) wait for the stage, write, and say that it is filled.
//!
//! Each stage has two mbarriers. Both sides go round the ring by themselves, and at every round the parity of the
//! phases that they wait for turns over: these types keep stage and parity, so that a kernel cannot confuse them.
//!
//! # Of a cluster
//! Where copies go to several blocks ([`load_box_multicast`](crate::device::DynamicShared::load_box_multicast)), each block
//! has a ring, and all of them go round together:
//!
//! ```text
//!   one thread  init, and then all threads of the cluster `cluster::sync`: the others' mbarriers are there
//!   producer    acquire: waits until the readers of all blocks have read the stage, announces the bytes that come to
//!               this block, whichever blocks send them
//!               (begins copies to this block and to others, that tell `full()`)
//!               advance
//!               at the end drain: no block ends while another has something to tell it
//!   consumer    wait, release: as above, but all blocks are told
//! ```

use core::marker::PhantomData;

use crate::device::{Mbarrier, Mbarriers, cluster, fence_proxy_async, mbarrier, thread, warp};

/// The mbarriers of a ring of stages, made by [`pipeline!`](crate::pipeline!). `S` says who fills it: this block, or blocks of
/// the cluster.
pub struct Pipeline<const STAGES: usize, S = OfBlock> {
    ring: Ring<STAGES>,
    scope: PhantomData<S>,
}

/// The ring of a block of a cluster, whose blocks fill each other's, made by
/// [`cluster_pipeline!`](crate::cluster_pipeline).
pub type ClusterPipeline<const STAGES: usize> = Pipeline<STAGES, OfCluster>;

struct Ring<const STAGES: usize> {
    full: Mbarriers<STAGES>,
    empty: Mbarriers<STAGES>,
}

/// Who fills a ring, and so is told that a stage has been read.
pub trait Scope {
    /// Who tells a block that a stage has been read, if each block has so many readers.
    fn tellers(readers: u32) -> u32;

    /// Tells it, as one thread.
    fn tell(empty: Mbarrier);

    /// Tells it once for a warp, all of whose lanes come here.
    fn tell_warp(empty: Mbarrier);
}

/// The block itself.
pub enum OfBlock {}

impl Scope for OfBlock {
    #[inline(always)]
    fn tellers(readers: u32) -> u32 {
        readers
    }

    #[inline(always)]
    #[track_caller]
    fn tell(empty: Mbarrier) {
        empty.arrive();
    }

    #[inline(always)]
    #[track_caller]
    fn tell_warp(empty: Mbarrier) {
        if warp::elect() {
            empty.arrive();
        }
    }
}

/// Any block of the cluster. It is told of reads alone: the producer only overwrites what has been read. (What readers have written
/// there themselves, they have put a proxy fence and a barrier behind, and tensor cores have read it since.)
pub enum OfCluster {}

impl Scope for OfCluster {
    #[inline(always)]
    fn tellers(readers: u32) -> u32 {
        readers * cluster::blocks()
    }

    #[inline(always)]
    #[track_caller]
    fn tell(empty: Mbarrier) {
        for rank in 0..cluster::blocks() {
            empty.arrive_remote_after_reads(rank);
        }
    }

    // A lane for each block: one instruction tells them all.
    #[inline(always)]
    #[track_caller]
    fn tell_warp(empty: Mbarrier) {
        let lane = thread::lane_id();
        if lane < cluster::blocks() {
            empty.arrive_remote_after_reads(lane);
        }
    }
}

impl<const STAGES: usize, S: Scope> Pipeline<STAGES, S> {
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub fn declare() -> Self {
        let ring = Ring { full: Mbarriers::declare(), empty: Mbarriers::declare() };
        Pipeline { ring, scope: PhantomData }
    }

    /// Gets it ready: a stage has been read when `readers` have released it, of a cluster's ring so many of each block.
    /// One thread of the block does this, and a barrier follows; of a cluster's ring the cluster's.
    #[inline(always)]
    #[track_caller]
    pub fn init(&self, readers: u32) {
        for stage in 0..STAGES {
            self.ring.full.at(stage).init(1);
            self.ring.empty.at(stage).init(S::tellers(readers));
        }
        mbarrier::fence_init();
    }

    /// [`init`](Self::init) of a ring that warps fill by their own writes, not by copies: a stage is full when `writers` of
    /// them have said so ([`filled_warp`](Producer::filled_warp)).
    #[inline(always)]
    #[track_caller]
    pub fn init_for_writers(&self, writers: u32, readers: u32) {
        for stage in 0..STAGES {
            self.ring.full.at(stage).init(writers);
            self.ring.empty.at(stage).init(S::tellers(readers));
        }
        mbarrier::fence_init();
    }

    /// A ring of some of its stages, from that one on. So a block has several rings, each with a side that fills: two that
    /// took turns at one ring could be two rounds apart, and parities would not tell.
    #[inline(always)]
    #[track_caller]
    pub fn part<const PART: usize>(&self, first: usize) -> Pipeline<PART, S> {
        let ring = Ring { full: self.ring.full.part(first), empty: self.ring.empty.part(first) };
        Pipeline { ring, scope: PhantomData }
    }

    /// The side that fills, from the first stage on. One thread has it, or a warp.
    #[inline(always)]
    pub fn producer(&self) -> Producer<'_, STAGES> {
        Producer { ring: &self.ring, turn: Turn::default() }
    }

    /// The side that reads, from the first stage on. Every thread that reads has one.
    #[inline(always)]
    pub fn consumer(&self) -> Consumer<'_, STAGES, S> {
        Consumer { ring: &self.ring, turn: Turn::default(), scope: PhantomData }
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
}

/// The side of a ring that fills it.
pub struct Producer<'a, const STAGES: usize> {
    ring: &'a Ring<STAGES>,
    turn: Turn,
}

impl<const STAGES: usize> Producer<'_, STAGES> {
    /// Waits until the stage may be filled, and announces the bytes that will come. Gives its number.
    #[inline(always)]
    #[track_caller]
    pub fn acquire(&mut self, bytes: u32) -> usize {
        let stage = self.wait();
        self.announce(bytes);
        stage
    }

    #[inline(always)]
    #[track_caller]
    fn wait(&self) -> usize {
        let stage = self.turn.stage as usize;
        // In the first round nobody has read anything, and the phase before phase 0 counts as ended.
        self.ring.empty.at(stage).wait(self.turn.parity ^ 1);
        stage
    }

    /// Waits until the stage may be filled, a whole warp. Gives its number. One of its lanes then
    /// [announces](Self::announce) the bytes.
    #[inline(always)]
    #[track_caller]
    pub fn acquire_warp(&self) -> usize {
        let stage = self.turn.stage as usize;
        self.ring.empty.at(stage).wait_warp(self.turn.parity ^ 1);
        stage
    }

    /// Announces so many bytes.
    #[inline(always)]
    #[track_caller]
    pub fn announce(&self, bytes: u32) {
        self.full().arrive_expect(bytes);
    }

    /// Says for the warp, all of whose lanes come here, that it has written its part of the stage: tensor cores see it.
    #[inline(always)]
    #[track_caller]
    pub fn filled_warp(&self) {
        // Tensor cores read by the async proxy, and each lane's fence is for its own writes.
        fence_proxy_async();
        warp::sync_warp(warp::ALL);
        if warp::elect() {
            self.full().arrive();
        }
    }

    /// What the copies to this stage tell of their bytes.
    #[inline(always)]
    pub fn full(&self) -> Mbarrier {
        self.ring.full.at(self.turn.stage as usize)
    }

    /// Goes on to the next stage.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.turn.advance::<STAGES>();
    }

    /// Waits until all that has been filled has been read. A block of a cluster does this before it ends: then none of the
    /// others has anything left to tell it, nor copies on their way to it.
    #[inline(always)]
    #[track_caller]
    pub fn drain(mut self) {
        for _ in 0..STAGES {
            self.wait();
            self.advance();
        }
    }

    /// [`drain`](Self::drain) for a warp, all of whose lanes come here.
    #[inline(always)]
    #[track_caller]
    pub fn drain_warp(mut self) {
        for _ in 0..STAGES {
            self.acquire_warp();
            self.advance();
        }
    }
}

/// The side of a ring that reads it.
pub struct Consumer<'a, const STAGES: usize, S = OfBlock> {
    ring: &'a Ring<STAGES>,
    turn: Turn,
    scope: PhantomData<S>,
}

impl<const STAGES: usize, S: Scope> Consumer<'_, STAGES, S> {
    /// Waits until the stage's bytes have come. Gives its number.
    #[inline(always)]
    #[track_caller]
    pub fn wait(&self) -> usize {
        let stage = self.turn.stage as usize;
        self.ring.full.at(stage).wait(self.turn.parity);
        stage
    }

    /// [`wait`](Self::wait) for a warp, all of whose lanes come here.
    #[inline(always)]
    #[track_caller]
    pub fn wait_warp(&self) -> usize {
        let stage = self.turn.stage as usize;
        self.ring.full.at(stage).wait_warp(self.turn.parity);
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
        S::tell_warp(self.empty());
    }

    /// [`release_warp`](Self::release_warp) of a stage that tensor cores alone have read: they need no fence.
    #[inline(always)]
    #[track_caller]
    pub fn release_multiplied(&self) {
        S::tell_warp(self.empty());
    }

    /// Says that the stage has been read, as one of the pipeline's readers: by this thread, which has put a proxy fence
    /// behind its own reads where copies fill the ring (not where warps do), or by tensor cores, which need none.
    #[inline(always)]
    #[track_caller]
    pub fn release(&self) {
        S::tell(self.empty());
    }

    #[inline(always)]
    fn empty(&self) -> Mbarrier {
        self.ring.empty.at(self.turn.stage as usize)
    }

    /// Goes on to the next stage.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.turn.advance::<STAGES>();
    }
}
