//! One operating-system thread's part in a launch. It runs one cluster after the other; but while a cluster waits for a word that
//! other blocks change, it runs others, up to as many as the launch has at once on a GPU. So blocks may wait for each other whatever
//! the number of workers is.

use std::{
    any::Any,
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};

use crate::LaunchConfig;

use super::{
    block::set_is_f16,
    check::{Checker, Watch},
    fault::Stop,
    fiber,
    order::Order,
    pool,
    room::address_space_is_limited,
    slot::Slot,
    trap,
    watchdog::Beat,
    words::{Others, Said, Waited, has_come},
};

/// What a launch runs.
pub(super) struct Job<'a> {
    pub(super) name: &'static str,
    pub(super) declared_shared: Option<usize>,
    /// Bytes of a thread's stack.
    pub(super) stack_bytes: usize,
    pub(super) config: LaunchConfig,
    pub(super) kernel: &'a (dyn Fn() + Sync),
    /// Is the launch to end early?
    pub(super) cancelled: &'a (dyn Fn() -> bool + Sync),
    pub(super) order: Order,
}

impl Job<'_> {
    /// Fibers that a cluster may need.
    pub(super) fn fibers(&self) -> usize {
        let blocks = self.config.cluster.iter().product::<u32>() as usize;
        self.config.threads() as usize * blocks
    }
}

/// A launch as its workers share it.
pub(super) struct Launch<'a> {
    pub(super) job: Job<'a>,
    /// Where the `number`th cluster stands among the clusters.
    pub(super) position: &'a (dyn Fn(u64) -> [u32; 3] + Sync),
    /// The next cluster that nobody has begun, and where they end.
    pub(super) next: AtomicU64,
    pub(super) end: u64,
    /// Counts the blocks that have ended.
    pub(super) done: Option<&'a AtomicU64>,
    /// Has one gone wrong?
    pub(super) failed: AtomicBool,
    /// The failure of the lowest cluster. Clusters are begun in order and one that has begun is ended, so it does not depend on timing;
    /// but for those that wait for words of others, which are interrupted.
    pub(super) failure: Mutex<Option<(u64, Stop)>>,
    /// Slots that are open, those that were ever opened, and how many there may be at once.
    pub(super) open: AtomicU64,
    pub(super) opened: AtomicU64,
    pub(super) most_open: u64,
    pub(super) others: Others,
    pub(super) watch: Option<&'a Watch<'a>>,
}

/// Words that a cluster waits for: their addresses, and how much one is to be.
pub(super) type Words = Vec<(usize, u32)>;

/// What a cluster waits for, all of whose threads wait.
pub(super) enum Pause {
    /// That one of these is so much.
    Words(Words),
    /// To ask again by itself.
    Asks(Asks),
}

/// What a cluster says of itself that may ask for what others do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asks {
    /// It has done something since it last let others run.
    Did,
    /// It has only asked.
    Again,
    /// It has gone through all rounds that it may, and nobody has done anything since so much was [done](Others::done).
    InVain(u64),
}

/// How a cluster that waited goes on.
#[derive(Clone, Copy)]
pub(super) enum Go {
    /// Something has come, or the launch ends; or it is to ask again, where all others only ask.
    On,
    /// It is to ask again, and other clusters may be about to do what it asks for.
    OnAmongOthers,
    /// It is to ask again, and some other that asked has not come back since: it may have got what it asked for, and do something.
    OnBeforeOthers,
    /// Nobody will do what it waits for; nor what anybody asks for.
    InVain,
}

/// Gives control back while a cluster waits.
pub(super) type Waits = Yielder<Go, Pause>;

type Panic = Box<dyn Any + Send>;

thread_local! {
    /// Slots of this operating-system thread. The first, with its fibers and its shared memory, is kept from launch to launch.
    static WORKER: RefCell<Worker> = RefCell::default();
}

/// Fibers that an idle worker keeps: those of a large block.
const KEPT: usize = 1024;

/// How long a worker that has clusters waits for room for another one's fibers, before it looks after those again.
const BRIEFLY: Duration = Duration::from_millis(20);

/// How long in all, where nobody can go on before.
const PATIENCE: Duration = Duration::from_secs(20);

/// Has this thread room for fibers that it does not use?
pub(super) fn has_room() -> bool {
    WORKER.with_borrow(|worker| worker.places.iter().any(|place| place.slot.has_room()))
}

/// Gives all of it back.
pub(super) fn give_all() {
    WORKER.with_borrow_mut(|worker| worker.places.iter_mut().for_each(|place| place.slot.keep(0)));
}

/// Runs clusters of a launch on this thread until there are no more.
pub(super) fn work(launch: &Launch) {
    WORKER.with_borrow_mut(|worker| worker.work(launch));
}

#[derive(Default)]
struct Worker {
    places: Vec<Place>,
    /// The place that asked last, and what the worker has said of all.
    asked: usize,
    said: Said,
    /// Since when there has been no room for another cluster's fibers.
    lacks_room: Option<Instant>,
    /// What it does, counted, in a checked launch.
    beat: Option<Arc<Beat>>,
}

/// A place for a cluster.
#[derive(Default)]
struct Place {
    /// Boxed, since a run holds its address while there come to be more places.
    slot: Box<Slot>,
    stack: Option<DefaultStack>,
    /// What runs in it.
    run: Option<Coroutine<Go, Pause, Result<(), Panic>, DefaultStack>>,
    /// What that waits for, or asks.
    words: Words,
    asks: Option<Asks>,
}

impl Worker {
    fn work(&mut self, launch: &Launch) {
        trap::prepare_thread();
        let entered = launch.watch.map(|watch| watch.watchdog.enter());
        self.beat = entered.as_ref().map(|entered| entered.beat().clone());
        self.said = Said::default();
        set_is_f16(launch.job.config.constants.is_f16());
        let mut panic = None;
        if self.places.is_empty() {
            self.places.push(Place::default());
        }
        // It holds nothing yet that others wait for, and nobody waits for it.
        let waits = || !(launch.job.cancelled)() && launch.is_left();
        if self.places[0].slot.take_room(launch.job.fibers(), waits) {
            launch.others.begin();
            self.run_clusters(launch, &mut panic);
            launch.others.end();
        }
        set_is_f16(None);
        self.lacks_room = None;
        self.places.truncate(1);
        // Others may need the memory.
        let are_needed = pool::is_short() || address_space_is_limited();
        let kept = if are_needed { 0 } else { KEPT };
        self.places.iter_mut().for_each(|place| place.slot.keep(kept));
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Runs clusters until there are no more.
    fn run_clusters(&mut self, launch: &Launch, panic: &mut Option<Panic>) {
        self.open(launch, panic);
        loop {
            let goes_on = |place: &Place| place.words.iter().any(has_come);
            if let Some(number) = self.places.iter().position(goes_on) {
                self.does_something(launch);
                self.resume(number, Go::On, launch, panic);
            } else if launch.is_left() && self.open(launch, panic) {
                continue;
            } else if let Some(number) = self.next_that_asks() {
                let go = self.ask(launch);
                thread::yield_now();
                self.resume(number, go, launch, panic);
            } else if self.places.iter().all(|place| place.run.is_none()) {
                break;
            } else {
                self.wait(launch, panic);
            }
        }
        self.does_something(launch);
    }

    /// Tells the others that it does not only ask.
    fn does_something(&mut self, launch: &Launch) {
        launch.others.say(&mut self.said, Asks::Did);
    }

    /// What becomes of clusters that ask: do others do more? Only a checked launch wants to know.
    fn ask(&mut self, launch: &Launch) -> Go {
        let asks = self.places.iter().filter_map(|place| place.asks).min();
        let Some(asks) = asks.filter(|_| launch.watch.is_some()) else { return Go::On };
        match (launch.others.say(&mut self.said, asks), self.lacks_room) {
            // Those who would do it may have no stacks.
            (_, Some(since)) if launch.is_left() && since.elapsed() < PATIENCE => Go::OnAmongOthers,
            (Go::InVain, Some(_)) if launch.is_left() => {
                launch.fail_without_room();
                Go::On
            }
            (go, _) => go,
        }
    }

    /// The next place whose cluster asks again and again, in turn.
    fn next_that_asks(&mut self) -> Option<usize> {
        let asks = |place: &Place| place.asks.is_some();
        let count = self.places.len();
        let in_turn = (1..=count).map(|further| (self.asked + further) % count);
        let number = in_turn.into_iter().find(|number| asks(&self.places[*number]))?;
        self.asked = number;
        Some(number)
    }

    /// Begins with a cluster in another slot. Not where there are as many as there may be, or no memory for one.
    fn open(&mut self, launch: &Launch, panic: &mut Option<Panic>) -> bool {
        if launch.open.load(Ordering::Acquire) >= launch.most_open {
            // Not for want of room.
            self.lacks_room = None;
            return false;
        }
        let free = self.places.iter().position(|place| place.run.is_none());
        let number = free.unwrap_or_else(|| {
            self.places.push(Place::default());
            self.places.len() - 1
        });
        let others_run = self.places.iter().any(|place| place.run.is_some());
        let place = &mut self.places[number];
        let start = Instant::now();
        // It can do without another one only where some run.
        let missing = place.slot.missing(launch.job.fibers(), launch.job.stack_bytes);
        let are_given = !others_run || fiber::are_given(missing, launch.job.stack_bytes);
        let waits = || start.elapsed() < BRIEFLY;
        if !are_given || !place.slot.take_room(launch.job.fibers(), waits) {
            self.lacks_room.get_or_insert(start);
            return false;
        }
        self.lacks_room = None;
        let more = |open| (open < launch.most_open).then_some(open + 1);
        if launch.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_err() {
            // Others were faster.
            place.slot.keep(0);
            return false;
        }
        launch.others.say(&mut self.said, Asks::Did);
        let stack = match place.stack.take() {
            Some(stack) => Ok(stack),
            None => DefaultStack::new(fiber::STACK_BYTES),
        };
        let Ok(stack) = stack else {
            launch.open.fetch_sub(1, Ordering::AcqRel);
            launch.fail(launch.end, Stop::OutOfMemory(fiber::STACK_BYTES as u64));
            return false;
        };
        let id = launch.opened.fetch_add(1, Ordering::Relaxed);
        let slot = std::ptr::from_mut(&mut *place.slot);
        let beat = self.beat.clone();
        // SAFETY: only the lifetime changes. `work` does not return before what runs here has ended.
        let shared =
            unsafe { std::mem::transmute::<&Launch<'_>, &'static Launch<'static>>(launch) };
        place.run = Some(Coroutine::with_stack(stack, move |waits: &Waits, _| {
            // SAFETY: the box is this worker's, who leaves it alone while something runs in it.
            let slot = unsafe { &mut *slot };
            catch_unwind(AssertUnwindSafe(|| serve(slot, shared, (id, beat), waits)))
        }));
        self.resume(number, Go::On, launch, panic);
        true
    }

    /// Runs on what runs in a place until it waits or ends.
    fn resume(&mut self, number: usize, go: Go, launch: &Launch, panic: &mut Option<Panic>) {
        let place = &mut self.places[number];
        place.words.clear();
        place.asks = None;
        let Some(mut run) = place.run.take() else { return };
        match run.resume(go) {
            CoroutineResult::Yield(pause) => {
                match pause {
                    Pause::Words(words) => place.words = words,
                    Pause::Asks(asks) => place.asks = Some(asks),
                }
                place.run = Some(run);
            }
            CoroutineResult::Return(ended) => {
                place.stack = Some(run.into_stack());
                launch.open.fetch_sub(1, Ordering::AcqRel);
                if let Err(payload) = ended {
                    place.slot.abandon();
                    // The others come to their ends before it goes on.
                    launch.failed.store(true, Ordering::Relaxed);
                    *panic = Some(payload);
                }
            }
        }
    }

    /// All wait, and no other cluster can be begun.
    fn wait(&mut self, launch: &Launch, panic: &mut Option<Panic>) {
        self.does_something(launch);
        let words = self.places.iter().flat_map(|place| place.words.iter().copied());
        let words = words.collect::<Words>();
        let go = launch.others.wait(&words, |waited| match waited {
            Waited::Come => Some(None),
            Waited::InVain => Some(Some(Go::InVain)),
            Waited::NotYet if (launch.job.cancelled)() || launch.has_failed() => Some(Some(Go::On)),
            Waited::NotYet => None,
        });
        let Some(mut go) = go else { return };
        if let (Go::InVain, true, Some(since)) = (go, launch.is_left(), self.lacks_room) {
            // Who would do it has no stacks. Other launches may give some back.
            if since.elapsed() < PATIENCE && !(launch.job.cancelled)() {
                return;
            }
            launch.fail_without_room();
            go = Go::On;
        }
        for number in 0..self.places.len() {
            self.resume(number, go, launch, panic);
        }
    }
}

/// Runs clusters in a slot until there are no more.
fn serve(slot: &mut Slot, launch: &Launch, (id, beat): (u64, Option<Arc<Beat>>), yielder: &Waits) {
    let ready = slot.prepare(&launch.job.config, launch.job.stack_bytes);
    let watch = launch.watch.zip(beat);
    let checker = watch.map(|(watch, beat)| Checker::new(watch, id as usize, beat));
    while let Some(number) = launch.take() {
        let position = (launch.position)(number);
        let mut run = || slot.run(launch, number, position, checker.as_ref(), yielder);
        let outcome = ready.clone().and_then(|()| run());
        if let Some(done) = launch.done {
            let blocks = launch.job.config.cluster.iter().product::<u32>();
            done.fetch_add(blocks.into(), Ordering::Relaxed);
        }
        if let Err(reason) = outcome {
            launch.fail(number, reason);
        }
    }
    if let Some(checker) = checker {
        checker.finish();
    }
}

impl Launch<'_> {
    /// Is there a cluster that nobody has begun?
    fn is_left(&self) -> bool {
        !self.has_failed() && self.next.load(Ordering::Relaxed) < self.end
    }

    /// The next cluster.
    fn take(&self) -> Option<u64> {
        let number = self.is_left().then(|| self.next.fetch_add(1, Ordering::Relaxed));
        number.filter(|number| *number < self.end)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// There have been no stacks for the next cluster for too long.
    fn fail_without_room(&self) {
        let next = self.next.load(Ordering::Relaxed);
        self.fail(next, Stop::TooManyThreads(fiber::MOST_FIBERS));
    }

    fn fail(&self, number: u64, reason: Stop) {
        self.failed.store(true, Ordering::Relaxed);
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        // One that ended because another went wrong says less than that one.
        let rank = |number, reason: &Stop| (matches!(reason, Stop::Interrupted), number);
        let new = rank(number, &reason);
        if failure.as_ref().is_none_or(|(lowest, old)| new < rank(*lowest, old)) {
            *failure = Some((number, reason));
        }
    }
}
