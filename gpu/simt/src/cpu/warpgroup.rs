//! The products (`wgmma`) that warpgroups have begun.
//!
//! A product is in flight when all 128 threads have begun it. Its operands are read once: in a fast
//! launch at that moment, in a checked one at some time before the wait. They are kept until each
//! thread has accumulated its part of the product.

use std::{collections::VecDeque, panic::Location, rc::Rc};

use super::tensor_core::{
    descriptor::Descriptor,
    format::Format,
    fragment::{self, ROWS, THREADS},
    layout::{Layout, Major},
    operand::OperandB,
    step::{Accumulation, Step},
    swizzle::Swizzle,
};

/// A warpgroup of a cluster: its block's rank, and its number in the block.
pub(super) type WarpgroupKey = (u32, u32);

/// An operand in the block's shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// Bytes from the start of the block's shared memory.
    pub(super) start: u32,
    pub(super) mn_major: bool,
    /// Bytes of the swizzle span.
    pub(super) span: u32,
    /// Byte offsets of the leading and of the stride dimension.
    pub(super) offsets: (u32, u32),
    /// Bytes between the k-steps of successive instructions.
    pub(super) advance: u32,
}

/// A product as a thread requests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) format: Format,
    pub(super) columns: usize,
    /// The number of instructions, and the number of the first one within the operands in shared
    /// memory.
    pub(super) steps: usize,
    pub(super) first: usize,
    /// Whether it is added to the accumulators (else it overwrites them).
    pub(super) kept: bool,
    /// `None` where A is in registers.
    pub(super) a: Option<Source>,
    pub(super) b: Source,
    pub(super) place: &'static Location<'static>,
}

/// Operands that have been read: A and B of each instruction.
pub(super) struct Operands {
    format: Format,
    kept: bool,
    steps: Steps,
}

/// The instructions' operands, by the depth of an instruction along k.
enum Steps {
    Eight(Vec<One<8>>),
    Sixteen(Vec<One<16>>),
    ThirtyTwo(Vec<One<32>>),
}

/// The operands of an instruction.
type One<const K: usize> = ([[f32; K]; ROWS], OperandB<K>);

impl Source {
    /// The 16-byte groups that an instruction reads of an operand with `count` rows of A (or
    /// columns of B): the row and k index of the first element of each, and its address.
    fn groups(
        &self,
        (count, number, format): (usize, usize, Format),
    ) -> impl Iterator<Item = ((usize, usize), u32)> {
        let descriptor = Descriptor {
            start: self.start + number as u32 * self.advance,
            leading: self.offsets.0,
            stride: self.offsets.1,
            base_offset: 0,
            swizzle: Swizzle::of_span(self.span),
        };
        let major = if self.mn_major { Major::Mn } else { Major::K };
        let layout = Layout::new(descriptor, major, format).expect("of 16 bits if MN-major");
        // 16 bytes are contiguous: elements along the major dimension.
        let (steps, mn_major) = (format.step(), self.mn_major);
        let (outer, inner) = if mn_major { (steps, count) } else { (count, steps) };
        (0..outer).flat_map(move |one| {
            (0..inner).step_by(16 / format.bytes() as usize).map(move |other| {
                let (i, k) = if mn_major { (other, one) } else { (one, other) };
                ((i, k), layout.address(i as u32, k as u32))
            })
        })
    }

    /// Calls `set` with each element: row of A (or column of B), k index, value.
    ///
    /// # Safety
    /// 1. The operand is inside the shared memory that begins at `shared`.
    unsafe fn decode(
        &self,
        shared: *const u8,
        (count, number, format): (usize, usize, Format),
        mut set: impl FnMut(usize, usize, f32),
    ) {
        let bytes = format.bytes() as usize;
        for ((i, k), address) in self.groups((count, number, format)) {
            // SAFETY: inside, as the caller promises.
            let together =
                unsafe { shared.add(address as usize).cast::<[u8; 16]>().read_unaligned() };
            for (number, element) in together.chunks_exact(bytes).enumerate() {
                let mut bits = [0; 4];
                bits[..bytes].copy_from_slice(element);
                let (i, k) = if self.mn_major { (i + number, k) } else { (i, k + number) };
                set(i, k, format.decode(u32::from_le_bytes(bits)));
            }
        }
    }
}

impl Request {
    /// The start and the bytes of A in the block's shared memory, if it is there, and those of B.
    pub(super) fn operands(&self) -> (Option<(usize, usize)>, (usize, usize)) {
        let of = |source: Source, count: usize| {
            let numbers = self.first..self.first + self.steps;
            let groups = numbers.flat_map(|number| source.groups((count, number, self.format)));
            let (first, last) = groups.fold((u32::MAX, 0), |(first, last), (_, address)| {
                (first.min(address), last.max(address))
            });
            (first as usize, (last + 16).saturating_sub(first) as usize)
        };
        (self.a.map(|source| of(source, ROWS)), of(self.b, self.columns))
    }

    /// The parts of shared memory that it reads: offset and bytes of each. An operand's columns
    /// need not fill its boxes, and a product need not have all k-steps.
    pub(super) fn places(&self) -> Vec<(u32, u32)> {
        let of = |source: Source, count: usize| {
            let numbers = self.first..self.first + self.steps;
            let groups = numbers.flat_map(|number| source.groups((count, number, self.format)));
            let mut groups = groups.map(|(_, address)| address).collect::<Vec<_>>();
            groups.sort_unstable();
            let parts = groups.chunk_by(|one, next| one + 16 == *next);
            parts.map(|part| (part[0], 16 * part.len() as u32)).collect::<Vec<_>>()
        };
        let a = self.a.map(|source| of(source, ROWS)).unwrap_or_default();
        [a, of(self.b, self.columns)].concat()
    }

    /// Reads the operands; A from the `registers` of all threads where it is in registers.
    ///
    /// # Safety
    /// 1. The operands are inside the shared memory that begins at `shared`.
    unsafe fn read(&self, shared: *const u8, registers: &[Vec<u32>]) -> Operands {
        // SAFETY: the caller's.
        let steps = unsafe {
            match self.format {
                Format::Tf32 => Steps::Eight(self.read_steps(shared, registers)),
                Format::F16 | Format::Bf16 => Steps::Sixteen(self.read_steps(shared, registers)),
                Format::S8 | Format::E4m3 | Format::E5m2 => {
                    Steps::ThirtyTwo(self.read_steps(shared, registers))
                }
            }
        };
        Operands { format: self.format, kept: self.kept, steps }
    }

    /// # Safety
    /// As for [`read`](Self::read).
    unsafe fn read_steps<const K: usize>(
        &self,
        shared: *const u8,
        registers: &[Vec<u32>],
    ) -> Vec<One<K>> {
        let format = self.format;
        let step = |step| {
            let (mut a, mut b) = ([[0.0; K]; ROWS], OperandB::new(self.columns));
            let number = self.first + step;
            match self.a {
                // SAFETY: inside, as the caller promises.
                Some(source) => unsafe {
                    source.decode(shared, (ROWS, number, format), |i, k, value| {
                        a[i][k] = value;
                    });
                },
                None => {
                    for (thread, registers) in registers.iter().enumerate() {
                        for (i, &bits) in registers[4 * step..4 * step + 4].iter().enumerate() {
                            let (row, k) = fragment::operand_a(format, thread, i);
                            a[row][k] = format.decode(bits);
                        }
                    }
                }
            }
            // SAFETY: inside, as the caller promises.
            unsafe {
                self.b.decode(shared, (self.columns, number, format), |i, k, value| {
                    b.set(k, i, value);
                });
            }
            (a, b)
        };
        (0..self.steps).map(step).collect()
    }
}

/// Adds a thread's part of an instruction's product to its sums.
type AddStep<'a> = dyn Fn(&mut [f32]) + 'a;

impl Operands {
    /// Whether the product is added to the accumulators (else it overwrites them).
    pub(super) fn are_kept(&self) -> bool {
        self.kept
    }

    /// Calls `add` for each instruction, with a function that adds a thread's part of its product.
    /// (No generic function: it would be compiled where a kernel is, perhaps without optimisation.)
    pub(super) fn for_each_step(&self, thread: usize, add: &mut dyn FnMut(&AddStep)) {
        match &self.steps {
            Steps::Eight(steps) => self.steps(steps, thread, add),
            Steps::Sixteen(steps) => self.steps(steps, thread, add),
            Steps::ThirtyTwo(steps) => self.steps(steps, thread, add),
        }
    }

    fn steps<const K: usize>(
        &self,
        steps: &[One<K>],
        thread: usize,
        add: &mut dyn FnMut(&AddStep),
    ) {
        // Sums of a step's integers are exact.
        let is_float = self.format.numbers().is_float();
        let accumulation = if is_float { Accumulation::Truncating } else { Accumulation::Fma };
        for (a, b) in steps {
            let step = Step { format: self.format, accumulation, a, b };
            add(&|d| step.multiply_accumulate(thread, d));
        }
    }
}

/// The products that a warpgroup has begun.
#[derive(Default)]
pub(super) struct Warpgroup {
    /// The number of the first product in `products`.
    first: u64,
    products: VecDeque<Product>,
    threads: Vec<ThreadPart>,
}

struct Product {
    request: Request,
    /// The number of threads that have begun it, and of those that have taken its operands.
    begun: usize,
    taken: usize,
    /// Each thread's registers of A, where A is in registers: four for an instruction.
    registers: Vec<Vec<u32>>,
    operands: Option<Rc<Operands>>,
    /// The engine's clock for the checker.
    clock: u16,
}

/// A thread's progress.
#[derive(Clone, Default)]
struct ThreadPart {
    /// The number of products that it has begun.
    begun: u64,
    /// For each committed group, the number of products begun by then.
    groups: Vec<u64>,
}

impl Warpgroup {
    fn product(&mut self, number: u64) -> Option<&mut Product> {
        self.products.get_mut(number.checked_sub(self.first)? as usize)
    }

    fn part(&mut self, thread: usize) -> &mut ThreadPart {
        if self.threads.is_empty() {
            self.threads = vec![ThreadPart::default(); THREADS];
        }
        &mut self.threads[thread]
    }

    /// A thread begins a product, with its registers of A if A is in registers. Gives the product's
    /// number, and whether the thread is the last to begin it.
    pub(super) fn begin(
        &mut self,
        thread: usize,
        request: Request,
        registers: &[u32],
    ) -> Result<(u64, bool), String> {
        let part = self.part(thread);
        let number = part.begun;
        part.begun += 1;
        if number == self.first + self.products.len() as u64 {
            let registers = vec![Vec::new(); if request.a.is_none() { THREADS } else { 0 }];
            let (begun, taken, clock) = (0, 0, 0);
            let product = Product { request, begun, taken, registers, operands: None, clock };
            self.products.push_back(product);
        }
        let product = self.product(number).expect("not all threads have begun it");
        if product.request != request {
            let Request { place, .. } = product.request;
            let what = if place == request.place { "with other operands" } else { "there" };
            return Err(format!(
                "all threads of a warpgroup multiply together: another is at {place}, {what}"
            ));
        }
        if request.a.is_none() {
            product.registers[thread] = registers.to_vec();
        }
        product.begun += 1;
        Ok((number, product.begun == THREADS))
    }

    /// Reads a product's operands.
    ///
    /// # Safety
    /// 1. `shared` is the start of its block's shared memory.
    pub(super) unsafe fn read(&mut self, number: u64, shared: *const u8) {
        if let Some(product) = self.product(number) {
            // SAFETY: inside, as was checked before it was begun.
            let operands = unsafe { product.request.read(shared, &product.registers) };
            product.operands = Some(Rc::new(operands));
        }
    }

    pub(super) fn set_clock(&mut self, number: u64, clock: u16) {
        if let Some(product) = self.product(number) {
            product.clock = clock;
        }
    }

    /// A thread takes the operands of a product that has been read, to accumulate its part. Each
    /// thread does so once.
    pub(super) fn take_operands(&mut self, number: u64) -> Option<Rc<Operands>> {
        let product = self.product(number)?;
        let operands = product.operands.clone()?;
        product.taken += 1;
        while self.products.front().is_some_and(|product| product.taken == THREADS) {
            self.products.pop_front();
            self.first += 1;
        }
        Some(operands)
    }

    /// Makes a group of the products that a thread has begun.
    pub(super) fn commit(&mut self, thread: usize) {
        let part = self.part(thread);
        part.groups.push(part.begun);
    }

    /// Waiting for all but the last `pending` groups: the number below which all products are
    /// waited for.
    pub(super) fn waited_for(&mut self, thread: usize, pending: usize) -> u64 {
        let groups = &mut self.part(thread).groups;
        let waited = groups.len().saturating_sub(pending);
        let before = waited.checked_sub(1).map_or(0, |last| groups[last]);
        // The last group waited for stands for all before it.
        groups.drain(..waited.saturating_sub(1));
        before
    }

    /// Whether the operands of all products below that number have been read.
    pub(super) fn have_been_read(&self, number: u64) -> bool {
        let count = number.saturating_sub(self.first) as usize;
        count <= self.products.len()
            && self.products.iter().take(count).all(|product| product.operands.is_some())
    }

    /// The checker's clock of the last product below that number.
    pub(super) fn clock_before(&mut self, number: u64) -> Option<u16> {
        Some(self.product(number.checked_sub(1)?)?.clock)
    }

    /// How many groups a thread has committed that hold the product with that clock of the checker,
    /// or a later one. `None`: the product is not remembered.
    pub(super) fn groups_since(&self, thread: usize, clock: u16) -> Option<usize> {
        let at = self.products.iter().position(|product| product.clock == clock)?;
        let (number, part) = (self.first + at as u64, self.threads.get(thread)?);
        Some(part.groups.iter().filter(|end| **end > number).count())
    }

    /// What the products below that number wait for, as text.
    pub(super) fn missing(&self, number: u64) -> String {
        let count = number.saturating_sub(self.first) as usize;
        let waits = self.products.iter().take(count).find(|product| product.begun < THREADS);
        match waits {
            Some(Product { begun, request, .. }) => format!(
                "{} of the warpgroup's {THREADS} threads have not begun the product at {}",
                THREADS - begun,
                request.place
            ),
            None => "its products are in flight".to_owned(),
        }
    }
}
