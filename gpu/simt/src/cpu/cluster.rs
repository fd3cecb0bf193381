//! What the blocks of a cluster have together: they run on one worker, wait for each other, and reach each other's
//! shared memory. A block of a launch without clusters is one by itself.

use std::{
    cell::{Cell, RefCell, RefMut},
    collections::{BTreeMap, BTreeSet},
    panic::Location,
    rc::Rc,
};

use super::{
    block::{SHARED_BYTES, Thread},
    boxes::GlobalBox,
    exchange::Exchange,
    mbarrier::Mbarrier,
    named_barrier::{Arrival, NamedBarrier},
    warpgroup::{Key, Operands, Request, Warpgroup},
    words,
};

/// What a thread waits for that is neither its block nor its warp.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// The end of an mbarrier's phase of that parity.
    Mbarrier(Place, u32),
    /// The products of that warpgroup below that number: that their operands have been read.
    Products(Key, u64),
    /// The end of a named barrier's round.
    Named(Place),
    /// A word of global memory that is at least so much.
    Word(*mut u32, u32),
    /// All threads of the cluster.
    Cluster,
}

/// A place in a cluster's shared memory: the block's rank, and bytes from the start of its memory.
pub(super) type Place = (u32, u32);

/// A copy by the tensor memory accelerator that is on its way.
pub(super) struct BoxCopy {
    pub(super) source: GlobalBox,
    /// Where it goes, and where that is in the cluster.
    pub(super) to: *mut u8,
    pub(super) to_place: Place,
    /// The mbarrier that is told of its bytes.
    pub(super) done: Place,
    pub(super) begun: Begun,
}

/// A copy by the accelerator to global memory that is on its way.
pub(super) struct BoxStore {
    pub(super) from: *const u8,
    pub(super) target: GlobalBox,
    /// The thread that began it, by its number, and the number of its group.
    pub(super) thread: u32,
    pub(super) group: usize,
    /// What has been read, once it has been.
    pub(super) data: Option<Vec<u8>>,
}

impl BoxStore {
    /// Reads shared memory, if it has not yet.
    fn read(&mut self) -> &[u8] {
        self.data.get_or_insert_with(|| {
            // SAFETY: inside the block's shared memory, as whoever began the copy has seen to. Nobody writes meanwhile: a
            // worker does one thing at a time.
            unsafe { std::slice::from_raw_parts(self.from, self.target.extent()) }.to_vec()
        })
    }

    /// Reads and writes.
    fn end(mut self) {
        let (target, address) = (self.target, self.from.addr());
        // SAFETY: the box's target is valid, as whoever began the copy has seen to.
        unsafe { target.store(self.read(), address) };
    }
}

/// Who began a copy, and where.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    pub(super) thread: *const Thread,
    pub(super) at: &'static Location<'static>,
}

/// A cluster that a worker is running.
pub(super) struct ClusterRun {
    /// For each thread what it waits for.
    waits: *const [Cell<Wait>],
    mbarriers: RefCell<BTreeMap<Place, Mbarrier>>,
    /// The last copy that each mbarrier was told of.
    last_copies: RefCell<BTreeMap<Place, Begun>>,
    /// By their ids in the place of an address.
    named: RefCell<BTreeMap<Place, NamedBarrier>>,
    copies: RefCell<Vec<BoxCopy>>,
    stores: RefCell<Vec<BoxStore>>,
    warpgroups: RefCell<BTreeMap<Key, Warpgroup>>,
    /// What the lanes of a warp hand to each other, by its block's rank and its number there.
    exchanges: RefCell<BTreeMap<(u32, u32), Exchange>>,
    /// Threads, by their numbers, that have said that they are at the cluster's barrier, and have not waited.
    here: RefCell<BTreeSet<u32>>,
    /// Products that are under way and have not read their operands.
    products: RefCell<Vec<(Key, u64)>>,
    /// The first byte of the first block's shared memory; the others' follow.
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
            here: RefCell::default(),
            products: RefCell::default(),
            shared,
            blocks,
        }
    }

    /// A block's shared memory.
    pub(super) fn shared(&self, rank: u32) -> *mut u8 {
        self.shared.wrapping_add(rank as usize * SHARED_BYTES)
    }

    /// A thread says that it is at the cluster's barrier. Had it not before, or it has waited since?
    pub(super) fn arrives(&self, thread: &Thread) -> bool {
        self.here.borrow_mut().insert(thread.number)
    }

    /// A thread is about to wait at the cluster's barrier. Had it said that it is there?
    pub(super) fn leaves(&self, thread: &Thread) -> bool {
        self.here.borrow_mut().remove(&thread.number)
    }

    /// What the lanes of that warp of that block hand to each other.
    pub(super) fn exchange(&self, warp: (u32, u32)) -> RefMut<'_, Exchange> {
        RefMut::map(self.exchanges.borrow_mut(), |all| all.entry(warp).or_default())
    }

    pub(super) fn wait_of(&self, thread: &Thread) -> &Cell<Wait> {
        // SAFETY: the worker's, as many as threads.
        let waits = unsafe { &*self.waits };
        &waits[thread.number as usize]
    }

    /// Has what a thread waits for come? For its cluster, only the scheduler knows.
    pub(super) fn has_come(&self, thread: &Thread) -> bool {
        match self.wait_of(thread).get() {
            Wait::Mbarrier(place, parity) => self.has_ended(place, parity).unwrap_or(true),
            Wait::Products(key, number) => self.warpgroup(key).have_been_read(number),
            Wait::Named(at) => self.has_named_ended(at, thread.number),
            Wait::Word(place, wanted) => words::is_at_least(place, wanted),
            Wait::Cluster => false,
        }
    }

    /// Makes an mbarrier of that place.
    pub(super) fn init(&self, place: Place, arrivals: u32) -> Result<(), String> {
        match self.mbarriers.borrow_mut().insert(place, Mbarrier::new(arrivals)?) {
            None => Ok(()),
            Some(_) => Err("the mbarrier has been initialised before".to_owned()),
        }
    }

    fn with<R>(
        &self,
        place: Place,
        act: impl FnOnce(&mut Mbarrier) -> Result<R, String>,
    ) -> Result<R, String> {
        match self.mbarriers.borrow_mut().get_mut(&place) {
            Some(mbarrier) => act(mbarrier),
            None => Err("the mbarrier has not been initialised".to_owned()),
        }
    }

    /// An arrival that announces bytes. Gives whether it ends the phase.
    pub(super) fn arrive(&self, place: Place, bytes: u32) -> Result<bool, String> {
        self.with(place, |mbarrier| mbarrier.arrive(bytes))
    }

    /// Bytes of a copy have come. Gives whether they end the phase.
    pub(super) fn complete(&self, place: Place, bytes: u32, copy: Begun) -> Result<bool, String> {
        self.last_copies.borrow_mut().insert(place, copy);
        self.with(place, |mbarrier| mbarrier.complete(bytes))
    }

    /// At the end: a copy of whose bytes an mbarrier was told, and that were never announced.
    pub(super) fn unannounced(&self) -> Option<(Begun, String)> {
        let mbarriers = self.mbarriers.borrow();
        let (place, reason) =
            mbarriers.iter().find_map(|(place, one)| Some((place, one.unannounced()?)))?;
        Some((*self.last_copies.borrow().get(place)?, reason))
    }

    /// Has the phase of that parity ended?
    pub(super) fn has_ended(&self, place: Place, parity: u32) -> Result<bool, String> {
        self.with(place, |mbarrier| Ok(mbarrier.has_ended(parity)))
    }

    /// What an mbarrier's phase waits for.
    pub(super) fn missing(&self, place: Place) -> String {
        self.with(place, |mbarrier| Ok(mbarrier.missing())).unwrap_or_else(|reason| reason)
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

    /// Has the round of a named barrier ended that a thread has come to?
    fn has_named_ended(&self, at: Place, thread: u32) -> bool {
        self.named.borrow().get(&at).is_none_or(|barrier| barrier.has_ended(thread))
    }

    /// A thread comes to a named barrier. Gives all who have, if that ends the round.
    pub(super) fn come_to_named(
        &self,
        at: Place,
        arrival: Arrival,
        lanes: usize,
    ) -> Result<Option<Vec<Arrival>>, String> {
        match self.named.borrow_mut().get_mut(&at) {
            Some(barrier) => barrier.come(arrival, lanes),
            None => Err("the block has not declared it".to_owned()),
        }
    }

    /// What a named barrier's round waits for.
    pub(super) fn missing_at_named(&self, at: Place) -> String {
        self.named.borrow().get(&at).map(NamedBarrier::missing).unwrap_or_default()
    }

    /// A copy sets out.
    pub(super) fn begin(&self, copy: BoxCopy) {
        self.copies.borrow_mut().push(copy);
    }

    /// How many copies are on their way.
    pub(super) fn copies(&self) -> usize {
        self.copies.borrow().len()
    }

    /// One of the copies on their way, which now comes.
    pub(super) fn take_copy(&self, number: usize) -> BoxCopy {
        self.copies.borrow_mut().remove(number)
    }

    /// A copy to global memory sets out.
    pub(super) fn begin_store(&self, store: BoxStore) {
        self.stores.borrow_mut().push(store);
    }

    /// How many of these are on their way.
    pub(super) fn stores(&self) -> usize {
        self.stores.borrow().len()
    }

    /// One of them reads shared memory, or writes, if it has read.
    pub(super) fn advance_store(&self, number: usize) {
        let mut stores = self.stores.borrow_mut();
        if stores[number].data.is_none() {
            stores[number].read();
        } else {
            stores.remove(number).end();
        }
    }

    /// Those of a thread's groups before that one have read shared memory, or also `written`.
    pub(super) fn end_stores(&self, thread: u32, group: usize, written: bool) {
        let mut stores = self.stores.borrow_mut();
        let is_meant = |store: &mut BoxStore| store.thread == thread && store.group < group;
        if written {
            stores.extract_if(.., is_meant).for_each(BoxStore::end);
        } else {
            stores.iter_mut().filter_map(|store| is_meant(store).then_some(store)).for_each(
                |store| {
                    store.read();
                },
            );
        }
    }

    /// What a warpgroup has begun.
    pub(super) fn warpgroup(&self, key: Key) -> RefMut<'_, Warpgroup> {
        RefMut::map(self.warpgroups.borrow_mut(), |groups| groups.entry(key).or_default())
    }

    /// A thread begins a product. Gives its number, and whether it is the last of its warpgroup to do so.
    pub(super) fn begin_product(
        &self,
        key: Key,
        thread: usize,
        request: Request,
        registers: &[u32],
    ) -> Result<(u64, bool), String> {
        self.warpgroup(key).begin(thread, request, registers)
    }

    /// A product that all have begun reads its operands.
    pub(super) fn read_product(&self, key: Key, number: u64) {
        // SAFETY: the block's shared memory.
        unsafe { self.warpgroup(key).read(number, self.shared(key.0)) };
    }

    /// A product that all have begun is under way.
    pub(super) fn send_product(&self, key: Key, number: u64) {
        self.products.borrow_mut().push((key, number));
    }

    /// How many products are under way.
    pub(super) fn products(&self) -> usize {
        self.products.borrow().len()
    }

    /// One of the products under way reads its operands.
    pub(super) fn read_sent_product(&self, at: usize) {
        let (key, number) = self.products.borrow_mut().remove(at);
        self.read_product(key, number);
    }

    /// What a thread multiplies for its part of a product.
    pub(super) fn add_product(&self, key: Key, number: u64) -> Option<Rc<Operands>> {
        self.warpgroup(key).add(number)
    }
}
