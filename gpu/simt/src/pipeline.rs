//! Pipelines: a ring of stages in shared memory, which a producer fills by asynchronous copies and
//! consumers read.
//!
//! ```text
//!   producer   acquire: waits until the stage is empty, announces the bytes
//!              (begins copies that complete at `full()`)
//!              advance
//!   consumer   wait: until the stage is full
//!              (reads)
//!              release: the stage has been read
//!              advance
//! ```
//!
//! Producer warps may also fill a ring by their own writes ([`Pipeline::init_for_writers`]): they
//! wait for the stage, write, and mark it as filled.
//!
//! Each stage has two mbarriers, `full` and `empty`. Both sides advance round the ring
//! independently, and the parity for which they wait flips at every round. These types keep stage
//! and parity, so that a kernel cannot confuse them.
//!
//! # In a cluster
//! With multicast copies ([`load_box_multicast`](crate::device::DynamicShared::load_box_multicast))
//! each block of the cluster has a ring, and all rings advance together:
//!
//! ```text
//!   one thread  init; then all threads of the cluster `cluster::sync`, after which all mbarriers are initialised
//!   producer    acquire: waits until the consumers of all blocks have released the stage, announces the bytes that
//!               all blocks copy to this block
//!               (begins copies to this block and to others, which complete at `full()`)
//!               advance
//!               at the end drain: no block ends while another one may arrive at its mbarriers
//!   consumer    wait, release: as above; release arrives in all blocks
//! ```

use core::marker::PhantomData;

use crate::device::{Mbarrier, Mbarriers, cluster, fence_proxy_async, mbarrier, thread, warp};

/// The mbarriers of a ring of stages, made by [`pipeline!`](crate::pipeline!). `S` is its scope:
/// filled by this block, or by all blocks of the cluster.
pub struct Pipeline<const STAGES: usize, S = OfBlock> {
    ring: Ring<STAGES>,
    scope: PhantomData<S>,
}

/// A pipeline whose stages all blocks of the cluster fill, made by
/// [`cluster_pipeline!`](crate::cluster_pipeline).
pub type ClusterPipeline<const STAGES: usize> = Pipeline<STAGES, OfCluster>;

struct Ring<const STAGES: usize> {
    full: Mbarriers<STAGES>,
    empty: Mbarriers<STAGES>,
}

/// The scope of a pipeline: which blocks fill it, and so must learn that a stage has been read.
pub trait Scope {
    /// The arrivals at a block's `empty` mbarrier for a stage, if each block has that number of
    /// readers.
    fn arrivals(readers: u32) -> u32;

    /// Arrives at the `empty` mbarriers as one thread.
    fn arrive(empty: Mbarrier);

    /// Arrives once for a warp, all of whose lanes call it.
    fn arrive_warp(empty: Mbarrier);
}

/// The block fills its own stages.
pub enum OfBlock {}

impl Scope for OfBlock {
    #[inline(always)]
    fn arrivals(readers: u32) -> u32 {
        readers
    }

    #[inline(always)]
    #[track_caller]
    fn arrive(empty: Mbarrier) {
        empty.arrive();
    }

    #[inline(always)]
    #[track_caller]
    fn arrive_warp(empty: Mbarrier) {
        if warp::elect() {
            empty.arrive();
        }
    }
}

/// All blocks of the cluster fill the stages. The arrivals order only reads, because the producer
/// only overwrites what has been read. (If readers have written to a stage themselves, they have
/// executed a proxy fence and a barrier, and tensor cores have read it since.)
pub enum OfCluster {}

impl Scope for OfCluster {
    #[inline(always)]
    fn arrivals(readers: u32) -> u32 {
        readers * cluster::blocks()
    }

    #[inline(always)]
    #[track_caller]
    fn arrive(empty: Mbarrier) {
        for rank in 0..cluster::blocks() {
            empty.arrive_remote_after_reads(rank);
        }
    }

    // One lane for each block, so that one instruction arrives at all of them.
    #[inline(always)]
    #[track_caller]
    fn arrive_warp(empty: Mbarrier) {
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

    /// Initialises the mbarriers. A stage is empty when `readers` consumers have released it; in a
    /// cluster's pipeline, that number in each block. One thread of the block does this, and a
    /// barrier of the block follows; in a cluster's pipeline, of the cluster.
    #[inline(always)]
    #[track_caller]
    pub fn init(&self, readers: u32) {
        for stage in 0..STAGES {
            self.ring.full.at(stage).init(1);
            self.ring.empty.at(stage).init(S::arrivals(readers));
        }
        mbarrier::fence_init();
    }

    /// [`init`](Self::init) for a pipeline that warps fill by their own writes, not by copies. A
    /// stage is full when `writers` warps have marked it as filled
    /// ([`filled_warp`](Producer::filled_warp)).
    #[inline(always)]
    #[track_caller]
    pub fn init_for_writers(&self, writers: u32, readers: u32) {
        for stage in 0..STAGES {
            self.ring.full.at(stage).init(writers);
            self.ring.empty.at(stage).init(S::arrivals(readers));
        }
        mbarrier::fence_init();
    }

    /// A pipeline of `PART` of its stages, from stage `first` on. So a block can have several
    /// pipelines with a producer each. (Two producers that took turns at one ring could be two
    /// rounds apart, which parities do not distinguish.)
    #[inline(always)]
    #[track_caller]
    pub fn part<const PART: usize>(&self, first: usize) -> Pipeline<PART, S> {
        let ring = Ring { full: self.ring.full.part(first), empty: self.ring.empty.part(first) };
        Pipeline { ring, scope: PhantomData }
    }

    /// The producer, at the first stage. One thread or one warp uses it.
    #[inline(always)]
    pub fn producer(&self) -> Producer<'_, STAGES> {
        Producer { ring: &self.ring, position: Position::default() }
    }

    /// A consumer, at the first stage. Every thread that reads has its own.
    #[inline(always)]
    pub fn consumer(&self) -> Consumer<'_, STAGES, S> {
        Consumer { ring: &self.ring, position: Position::default(), scope: PhantomData }
    }
}

/// A stage, and the parity of the current round.
#[derive(Clone, Copy, Default)]
struct Position {
    stage: u32,
    parity: u32,
}

impl Position {
    #[inline(always)]
    fn advance<const STAGES: usize>(&mut self) {
        self.stage += 1;
        if self.stage == STAGES as u32 {
            self.stage = 0;
            self.parity ^= 1;
        }
    }
}

/// The side of a pipeline that fills its stages.
pub struct Producer<'a, const STAGES: usize> {
    ring: &'a Ring<STAGES>,
    position: Position,
}

impl<const STAGES: usize> Producer<'_, STAGES> {
    /// Waits until the stage may be filled, and announces the bytes that copies will complete.
    /// Gives the stage's number.
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
        let stage = self.position.stage as usize;
        // In the first round there is nothing to read: the phase before phase 0 counts as ended.
        self.ring.empty.at(stage).wait(self.position.parity ^ 1);
        stage
    }

    /// Waits, as a whole warp, until the stage may be filled. Gives the stage's number. One of the
    /// lanes then [announces](Self::announce) the bytes.
    #[inline(always)]
    #[track_caller]
    pub fn acquire_warp(&self) -> usize {
        let stage = self.position.stage as usize;
        self.ring.empty.at(stage).wait_warp(self.position.parity ^ 1);
        stage
    }

    /// [`acquire_warp`](Self::acquire_warp) of a stage that threads have read, and released without
    /// a proxy fence ([`release_read_warp`](Consumer::release_read_warp)). Copies overwrite it
    /// through the async proxy. One fence on the way from the reads to the copies is enough (PTX
    /// ISA, "Proxy-preserved base causality order"). Here only the producer pays for it.
    #[inline(always)]
    #[track_caller]
    pub fn acquire_read_warp(&self) -> usize {
        let stage = self.acquire_warp();
        fence_proxy_async();
        stage
    }

    /// Announces the bytes that copies will complete.
    #[inline(always)]
    #[track_caller]
    pub fn announce(&self, bytes: u32) {
        self.full().arrive_expect(bytes);
    }

    /// Marks the warp's part of the stage as filled, and makes it visible to tensor cores. All
    /// lanes call it.
    #[inline(always)]
    #[track_caller]
    pub fn filled_warp(&self) {
        // Tensor cores read through the async proxy, and a lane's fence covers its own writes.
        fence_proxy_async();
        warp::sync_warp(warp::ALL);
        if warp::elect() {
            self.full().arrive();
        }
    }

    /// The mbarrier at which the copies to this stage complete.
    #[inline(always)]
    pub fn full(&self) -> Mbarrier {
        self.ring.full.at(self.position.stage as usize)
    }

    /// Advances to the next stage.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.position.advance::<STAGES>();
    }

    /// Waits until all filled stages have been read. A block of a cluster does this before it ends:
    /// afterwards no other block arrives at its mbarriers, and no copy to it is in flight.
    #[inline(always)]
    #[track_caller]
    pub fn drain(mut self) {
        for _ in 0..STAGES {
            self.wait();
            self.advance();
        }
    }

    /// [`drain`](Self::drain) for a warp, all of whose lanes call it.
    #[inline(always)]
    #[track_caller]
    pub fn drain_warp(mut self) {
        for _ in 0..STAGES {
            self.acquire_warp();
            self.advance();
        }
    }
}

/// The side of a pipeline that reads its stages.
pub struct Consumer<'a, const STAGES: usize, S = OfBlock> {
    ring: &'a Ring<STAGES>,
    position: Position,
    scope: PhantomData<S>,
}

impl<const STAGES: usize, S: Scope> Consumer<'_, STAGES, S> {
    /// Waits until the stage is full. Gives the stage's number.
    #[inline(always)]
    #[track_caller]
    pub fn wait(&self) -> usize {
        let stage = self.position.stage as usize;
        self.ring.full.at(stage).wait(self.position.parity);
        stage
    }

    /// [`wait`](Self::wait) for a warp, all of whose lanes come here.
    #[inline(always)]
    #[track_caller]
    pub fn wait_warp(&self) -> usize {
        let stage = self.position.stage as usize;
        self.ring.full.at(stage).wait_warp(self.position.parity);
        stage
    }

    /// Releases the stage as a warp, which counts as one of the pipeline's readers. All its lanes
    /// call it.
    ///
    /// The stage will be overwritten through the async proxy. A barrier orders that after the reads
    /// only with a proxy fence on the way (PTX ISA, "Async proxy"; Triton's PR 7262 is about the
    /// same hazard). Here each reader executes it.
    #[inline(always)]
    #[track_caller]
    pub fn release_warp(&self) {
        fence_proxy_async();
        warp::sync_warp(warp::ALL);
        S::arrive_warp(self.empty());
    }

    /// [`release_warp`](Self::release_warp) of a stage whose producer
    /// [fences](Producer::acquire_read_warp).
    #[inline(always)]
    #[track_caller]
    pub fn release_read_warp(&self) {
        warp::sync_warp(warp::ALL);
        S::arrive_warp(self.empty());
    }

    /// [`release_warp`](Self::release_warp) of a stage that only tensor cores have read: they need
    /// no fence.
    #[inline(always)]
    #[track_caller]
    pub fn release_multiplied(&self) {
        S::arrive_warp(self.empty());
    }

    /// Releases the stage as one of the pipeline's readers. If this thread has read the stage and
    /// copies fill the pipeline (not warps), it must have executed a proxy fence after its reads.
    /// Reads by tensor cores need none.
    #[inline(always)]
    #[track_caller]
    pub fn release(&self) {
        S::arrive(self.empty());
    }

    #[inline(always)]
    fn empty(&self) -> Mbarrier {
        self.ring.empty.at(self.position.stage as usize)
    }

    /// Advances to the next stage.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.position.advance::<STAGES>();
    }
}
