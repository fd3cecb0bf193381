//! What the blocks of a cluster share: mbarriers, named barriers, asynchronous copies, warpgroups'
//! products, and shared memory. The blocks run on one worker. In a launch without clusters each
//! block is a cluster of its own.

use std::{
    cell::{Cell, RefCell, RefMut},
    collections::BTreeMap,
    panic::Location,
    rc::Rc,
};

use super::{
    boxes::GlobalBox,
    exchange::Exchange,
    flag::FlagWait,
    limits::SHARED_BYTES,
    mbarrier::Mbarrier,
    named_barrier::{Arrival, NamedBarrier},
    warpgroup::{Operands, Request, Warpgroup, WarpgroupKey},
};

/// What a thread waits for, other than a barrier of its block or a warp operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// The end of an mbarrier's phase of that parity.
    Mbarrier(Place, u32),
    /// Products of a warpgroup: until the operands of all products below that number have been
    /// read.
    Products(WarpgroupKey, u64),
    /// The end of a named barrier's round.
    Named(Place),
    /// A flag in global memory.
    Flag(FlagWait),
    /// The barrier of the cluster.
    Cluster(ClusterArrival),
}

/// How a thread has arrived at the barrier of its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClusterArrival {
    /// What it knows is visible to all who wait.
    Release,
    /// It says that it has come, and that its mbarriers are initialised if it has called
    /// `fence_init`.
    Relaxed,
}

/// A place in a cluster's shared memory: the block's rank, and the bytes from the start of the
/// block's shared memory.
pub(super) type Place = (u32, u32);

/// A TMA copy from global to shared memory that is in flight.
pub(super) struct BoxCopy {
    pub(super) source: GlobalBox,
    /// The destination: its address, and its place in the cluster.
    pub(super) to: *mut u8,
    pub(super) to_place: Place,
    /// The mbarrier at which it completes its bytes.
    pub(super) done: Place,
    pub(super) origin: CopyOrigin,
}

/// A TMA copy from shared to global memory that is in flight.
pub(super) struct BoxStore {
    pub(super) from: *const u8,
    pub(super) target: GlobalBox,
    /// The number of the thread that began it, and the number of its bulk group.
    pub(super) thread: u32,
    pub(super) group: usize,
    /// The bytes, once they have been read.
    pub(super) data: Option<Vec<u8>>,
}

impl BoxStore {
    /// Reads shared memory, unless it has.
    fn read(&mut self) -> &[u8] {
        self.data.get_or_insert_with(|| {
            // SAFETY: inside the block's shared memory, as whoever began the copy has checked.
            // Nobody writes meanwhile: a worker does one thing at a time.
            unsafe { std::slice::from_raw_parts(self.from, self.target.extent()) }.to_vec()
        })
    }

    /// Completes the copy.
    fn end(mut self) {
        let (target, address) = (self.target, self.from.addr());
        // SAFETY: the box's target is valid, as whoever began the copy has checked.
        unsafe { target.store(self.read(), address) };
    }
}

/// The thread that began a copy, and the place in the source.
#[derive(Clone, Copy)]
pub(super) struct CopyOrigin {
    /// The block's index.
    pub(super) block: [u32; 3],
    /// The thread's index.
    pub(super) thread: [u32; 3],
    pub(super) at: &'static Location<'static>,
}

/// A cluster while a worker runs it.
pub(super) struct ClusterRun {
    /// What each thread waits for, by its number.
    waits: *const [Cell<Wait>],
    mbarriers: RefCell<BTreeMap<Place, Mbarrier>>,
    /// The last copy that completed bytes at each mbarrier.
    last_copies: RefCell<BTreeMap<Place, CopyOrigin>>,
    /// Named barriers, by the block's rank and their id.
    named: RefCell<BTreeMap<Place, NamedBarrier>>,
    copies: RefCell<Vec<BoxCopy>>,
    stores: RefCell<Vec<BoxStore>>,
    warpgroups: RefCell<BTreeMap<WarpgroupKey, Warpgroup>>,
    /// Words that a warp's lanes exchange, by the block's rank and the warp's number.
    exchanges: RefCell<BTreeMap<(u32, u32), Exchange>>,
    /// The threads that have arrived at the cluster's barrier, by their numbers, and not waited
    /// there yet.
    arrived: RefCell<BTreeMap<u32, ClusterArrival>>,
    /// Products that all threads have begun, and whose operands have not been read.
    products: RefCell<Vec<(WarpgroupKey, u64)>>,
    /// The first byte of the first block's shared memory. The other blocks' memory follows.
    shared: *mut u8,
    pub(super) blocks: u32,
}

impl ClusterRun {
    pub(super) fn new(blocks: u32, waits: *const [Cell<Wait>], shared: *mut u8) -> Self {
        ClusterRun {
            waits,
            mbarriers: RefCell::default(),
            last_copies: RefCell::default(),
            named: RefCell::default(),
            copies: RefCell::default(),
            stores: RefCell::default(),
            warpgroups: RefCell::default(),
            exchanges: RefCell::default(),
            arrived: RefCell::default(),
            products: RefCell::default(),
            shared,
            blocks,
        }
    }

    /// The first byte of a block's shared memory.
    pub(super) fn shared(&self, rank: u32) -> *mut u8 {
        self.shared.wrapping_add(rank as usize * SHARED_BYTES)
    }

    /// A thread arrives at the cluster's barrier. `false` where it had arrived and not waited
    /// since.
    pub(super) fn arrive_at_cluster(&self, thread: u32, how: ClusterArrival) -> bool {
        self.arrived.borrow_mut().insert(thread, how).is_none()
    }

    /// A thread is about to wait at the cluster's barrier. `None` where it has not arrived.
    pub(super) fn wait_at_cluster(&self, thread: u32) -> Option<ClusterArrival> {
        self.arrived.borrow_mut().remove(&thread)
    }

    /// The words that a warp's lanes exchange.
    pub(super) fn exchange(&self, warp: (u32, u32)) -> RefMut<'_, Exchange> {
        RefMut::map(self.exchanges.borrow_mut(), |all| all.entry(warp).or_default())
    }

    /// What the thread of that number waits for.
    pub(super) fn wait_of(&self, thread: u32) -> &Cell<Wait> {
        // SAFETY: the worker's, as many as threads.
        let waits = unsafe { &*self.waits };
        &waits[thread as usize]
    }

    /// Whether a thread's wait is over. (For a barrier of the cluster only the scheduler knows.)
    pub(super) fn is_wait_over(&self, thread: u32) -> bool {
        match self.wait_of(thread).get() {
            Wait::Mbarrier(place, parity) => self.has_ended(place, parity).unwrap_or(true),
            Wait::Products(key, number) => self.warpgroup(key).have_been_read(number),
            Wait::Named(at) => self.has_named_ended(at, thread),
            Wait::Flag(flag) => flag.is_over(),
            Wait::Cluster(_) => false,
        }
    }

    /// Initialises an mbarrier.
    pub(super) fn init(&self, place: Place, arrivals: u32) -> Result<(), String> {
        match self.mbarriers.borrow_mut().insert(place, Mbarrier::new(arrivals)?) {
            None => Ok(()),
            Some(_) => Err("the mbarrier has been initialised before".to_owned()),
        }
    }

    fn with_mbarrier<R>(
        &self,
        place: Place,
        act: impl FnOnce(&mut Mbarrier) -> Result<R, String>,
    ) -> Result<R, String> {
        match self.mbarriers.borrow_mut().get_mut(&place) {
            Some(mbarrier) => act(mbarrier),
            None => Err("the mbarrier has not been initialised".to_owned()),
        }
    }

    /// Arrives at an mbarrier and announces bytes. Gives whether that ends the phase.
    pub(super) fn arrive(&self, place: Place, (count, bytes): (u32, u32)) -> Result<bool, String> {
        self.with_mbarrier(place, |mbarrier| mbarrier.arrive(count, bytes))
    }

    /// A copy completes bytes at an mbarrier. Gives whether that ends the phase.
    pub(super) fn complete(
        &self,
        place: Place,
        bytes: u32,
        copy: CopyOrigin,
    ) -> Result<bool, String> {
        self.last_copies.borrow_mut().insert(place, copy);
        self.with_mbarrier(place, |mbarrier| mbarrier.complete(bytes))
    }

    /// At the end of the cluster: a copy whose bytes were never announced to their mbarrier, and
    /// what is wrong.
    pub(super) fn unannounced(&self) -> Option<(CopyOrigin, String)> {
        let mbarriers = self.mbarriers.borrow();
        let (place, reason) =
            mbarriers.iter().find_map(|(place, one)| Some((place, one.unannounced()?)))?;
        Some((*self.last_copies.borrow().get(place)?, reason))
    }

    /// Whether an mbarrier's phase of that parity has ended.
    pub(super) fn has_ended(&self, place: Place, parity: u32) -> Result<bool, String> {
        self.with_mbarrier(place, |mbarrier| Ok(mbarrier.has_ended(parity)))
    }

    /// What an mbarrier's phase waits for, as text.
    pub(super) fn missing(&self, place: Place) -> String {
        self.with_mbarrier(place, |mbarrier| Ok(mbarrier.missing())).unwrap_or_else(|reason| reason)
    }

    /// A thread of a block declares a named barrier.
    pub(super) fn declare_named(
        &self,
        at: Place,
        threads: u32,
        declared: &'static Location<'static>,
    ) -> Result<(), String> {
        let mut named = self.named.borrow_mut();
        let barrier = named.entry(at).or_insert_with(|| NamedBarrier::new(threads, declared));
        barrier.check_declaration(threads, declared)
    }

    /// Whether the round of a named barrier has ended at which a thread waits.
    fn has_named_ended(&self, at: Place, thread: u32) -> bool {
        self.named.borrow().get(&at).is_none_or(|barrier| barrier.has_ended(thread))
    }

    /// A thread arrives at a named barrier; its warp has that number of lanes. If that ends the
    /// round, gives all its arrivals.
    pub(super) fn arrive_at_named(
        &self,
        at: Place,
        arrival: Arrival,
        lanes: usize,
    ) -> Result<Option<Vec<Arrival>>, String> {
        match self.named.borrow_mut().get_mut(&at) {
            Some(barrier) => barrier.arrive(arrival, lanes),
            None => Err("the block has not declared it".to_owned()),
        }
    }

    /// What a named barrier's round waits for, as text.
    pub(super) fn missing_at_named(&self, at: Place) -> String {
        self.named.borrow().get(&at).map(NamedBarrier::missing).unwrap_or_default()
    }

    /// Begins a copy to shared memory.
    pub(super) fn begin_copy(&self, copy: BoxCopy) {
        self.copies.borrow_mut().push(copy);
    }

    /// The number of copies to shared memory in flight.
    pub(super) fn copies(&self) -> usize {
        self.copies.borrow().len()
    }

    /// Takes a copy, to carry it out.
    pub(super) fn take_copy(&self, number: usize) -> BoxCopy {
        self.copies.borrow_mut().remove(number)
    }

    /// Begins a copy to global memory.
    pub(super) fn begin_store(&self, store: BoxStore) {
        self.stores.borrow_mut().push(store);
    }

    /// The number of copies to global memory in flight.
    pub(super) fn stores(&self) -> usize {
        self.stores.borrow().len()
    }

    /// Lets a copy to global memory read shared memory, or, if it has, write.
    pub(super) fn advance_store(&self, number: usize) {
        let mut stores = self.stores.borrow_mut();
        if stores[number].data.is_none() {
            stores[number].read();
        } else {
            stores.remove(number).end();
        }
    }

    /// Lets the copies of a thread's bulk groups before `group` read shared memory; with `written`
    /// also write.
    pub(super) fn end_stores(&self, thread: u32, group: usize, written: bool) {
        let mut stores = self.stores.borrow_mut();
        let is_waited_for = |store: &mut BoxStore| store.thread == thread && store.group < group;
        if written {
            stores.extract_if(.., is_waited_for).for_each(BoxStore::end);
        } else {
            for store in &mut *stores {
                if is_waited_for(store) {
                    store.read();
                }
            }
        }
    }

    /// The products of a warpgroup.
    pub(super) fn warpgroup(&self, key: WarpgroupKey) -> RefMut<'_, Warpgroup> {
        RefMut::map(self.warpgroups.borrow_mut(), |groups| groups.entry(key).or_default())
    }

    /// A thread begins a product. Gives the product's number, and whether the thread is the last of
    /// its warpgroup to begin it.
    pub(super) fn begin_product(
        &self,
        key: WarpgroupKey,
        thread: usize,
        request: Request,
        registers: &[u32],
    ) -> Result<(u64, bool), String> {
        self.warpgroup(key).begin(thread, request, registers)
    }

    /// Reads the operands of a product that all threads have begun.
    pub(super) fn read_product(&self, key: WarpgroupKey, number: u64) {
        // SAFETY: the block's shared memory.
        unsafe { self.warpgroup(key).read(number, self.shared(key.0)) };
    }

    /// Leaves the operands of a product that all threads have begun to be read later.
    pub(super) fn defer_product(&self, key: WarpgroupKey, number: u64) {
        self.products.borrow_mut().push((key, number));
    }

    /// The number of products whose operands are to be read later.
    pub(super) fn products(&self) -> usize {
        self.products.borrow().len()
    }

    /// Reads the operands of one of these products.
    pub(super) fn read_pending_product(&self, at: usize) {
        let (key, number) = self.products.borrow_mut().remove(at);
        self.read_product(key, number);
    }

    /// The operands of a product that has been read, for a thread to accumulate its part.
    pub(super) fn take_operands(&self, key: WarpgroupKey, number: u64) -> Option<Rc<Operands>> {
        self.warpgroup(key).take_operands(number)
    }
}
