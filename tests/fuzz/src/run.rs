//! Runs a product on a device, and compares everything with what it should be.

use gpu_gemm::{
    Buffer, Device, Error, Result, Stream,
    gemm::{Choice, Scalar, Target},
};
use tests::gemm::{Number, bytes};

use crate::{
    call::{Host, On, Operand, Room, planned},
    filled::Filled,
    memory::Memory,
    product::{Product, Way, each},
    refusal::Refusal,
};

/// What became of a product.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was computed, and is right. No product of an empty array has a choice.
    Computed(Option<Choice>),
    /// It was refused, as it may be. The argument that the error names.
    Refused(String),
}

/// Something, or what is wrong.
pub type Checked<R> = std::result::Result<R, String>;

/// What was chosen, and what C's memory is.
type Done<O> = (Option<Choice>, Vec<O>);

/// A device with room for operands.
#[derive(Debug)]
pub struct Bench<T, O> {
    /// For the first time, and for the second.
    streams: [Stream; 2],
    is_hopper: bool,
    room: Room<T, O>,
}

impl<T: Operand + Scalar<O>, O: Number> Bench<T, O> {
    /// On a device. `other`: the same device, perhaps with more workers.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(device: &Device, other: &Device) -> Result<Self> {
        let capability = device.cuda_properties().map(|properties| properties.capability);
        let room = Room {
            a: device.zeros(0)?,
            b: device.zeros(0)?,
            c: device.zeros(0)?,
            bias: device.zeros(0)?,
        };
        Ok(Bench {
            streams: [device.stream()?, other.stream()?],
            is_hopper: capability.is_none_or(|capability| capability == (9, 0)),
            room,
        })
    }

    /// Computes a product twice, or sees it refused.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&mut self, product: &Product) -> Checked<Outcome> {
        let is_cuda = self.streams[0].device().is_cuda();
        let refusal = Refusal::of(product, is_cuda, self.is_hopper);
        let it = Filled::new(product, product.numbers);
        self.fill(&it).map_err(|error| format!("{error} (copying operands)"))?;
        if product.prepares {
            self.prepare(product, &it)?;
        }
        let mut round = |number: usize| self.round(product, &it, &refusal, number);
        let (choice, first) = match round(0)? {
            Ok(done) => done,
            Err(Error::Argument { argument, .. }) if refusal.allows(&argument) => {
                return self.untouched(&it).map(|()| Outcome::Refused(argument));
            }
            Err(error) => return Err(format!("refused: {error}")),
        };
        let (_, second) = round(1)?.map_err(|error| format!("the second time: {error}"))?;
        if bytes(&first) != bytes(&second) {
            return Err("other bits the second time".to_owned());
        }
        self.untouched(&it)?;
        if product.again {
            let it = Filled::new(product, !product.numbers);
            self.fill(&it).map_err(|error| format!("{error} (copying operands)"))?;
            let done = self
                .round(product, &it, &refusal, 0)
                .map_err(|wrong| format!("other numbers: {wrong}"))?;
            done.map_err(|error| format!("other numbers: {error}"))?;
        }
        Ok(Outcome::Computed(choice))
    }

    /// Computes it, on that stream. What was C's memory, or the library's error.
    fn round(
        &mut self,
        product: &Product,
        it: &Filled<T, O>,
        refusal: &Refusal,
        number: usize,
    ) -> Checked<Result<Done<O>>> {
        let stream = &self.streams[number];
        let is_on_host = matches!(product.way, Way::Slices | Way::Arrays);
        let empty = Host { a: Vec::new(), b: Vec::new(), c: it.c.stored.clone() };
        let mut host = match is_on_host {
            true => Host { a: it.a.stored.clone(), b: it.b.stored.clone(), ..empty },
            false => empty,
        };
        if !is_on_host {
            write(&mut self.room.c, &it.c).map_err(|error| format!("{error} (copying C)"))?;
        }
        let on = On { stream, launches: stream };
        let done = self.room.call(product, it, on, &mut host);
        stream.synchronize().map_err(|error| format!("{error} (waiting)"))?;
        let Host { a, b, c: mut after } = host;
        match is_on_host {
            true => {
                it.a.unchanged(&a).map_err(|at| format!("A has changed, {at}"))?;
                it.b.unchanged(&b).map_err(|at| format!("B has changed, {at}"))?;
            }
            false => {
                self.room.c.read(0, &mut after).map_err(|error| format!("{error} (reading C)"))?;
            }
        }
        match done {
            Ok(choice) => match refusal.must.first() {
                Some(argument) => {
                    Err(format!("computed, and the error should be about {argument}"))
                }
                None => compare(product, it, &after).map(|()| Ok((choice, after))),
            },
            Err(error) => {
                it.c.unchanged(&after)
                    .map_err(|at| format!("refused ({error}), and C changed, {at}"))?;
                Ok(Err(error))
            }
        }
    }

    /// What is planned for the product on each of these targets, and the bits of C's memory after
    /// the product of fractions on this device, or the library's error.
    ///
    /// # Errors
    /// Those of the device.
    pub fn digest(&mut self, product: &Product, targets: &[Target]) -> Checked<(String, Vec<u8>)> {
        let plans = targets.iter().map(|target| planned::<T, O>(product, target) + "\n").collect();
        let it = Filled::new(product, product.numbers).with_fractions(product, product.numbers);
        self.fill(&it).map_err(|error| format!("{error} (copying operands)"))?;
        write(&mut self.room.c, &it.c).map_err(|error| format!("{error} (copying C)"))?;
        let stream = &self.streams[0];
        let stored = |memory: &Memory<T>| memory.stored.clone();
        let mut host = Host { a: stored(&it.a), b: stored(&it.b), c: it.c.stored.clone() };
        let done = self.room.call(product, &it, On { stream, launches: stream }, &mut host);
        stream.synchronize().map_err(|error| format!("{error} (waiting)"))?;
        match done {
            // The value may be an address.
            Err(Error::Argument { argument, .. }) => return Ok((plans, argument.into_bytes())),
            Err(error) => return Ok((plans, error.to_string().into_bytes())),
            Ok(_) => {}
        }
        if !matches!(product.way, Way::Slices | Way::Arrays) {
            self.room.c.read(0, &mut host.c).map_err(|error| format!("{error} (reading C)"))?;
        }
        Ok((plans, bytes(&host.c).to_vec()))
    }

    /// Prepares its launches. C stays as it is.
    fn prepare(&mut self, product: &Product, it: &Filled<T, O>) -> Checked<()> {
        let stream = &self.streams[0];
        write(&mut self.room.c, &it.c).map_err(|error| format!("{error} (copying C)"))?;
        let mut no_host = Host { a: Vec::new(), b: Vec::new(), c: Vec::new() };
        let done = stream.prepare(|launches| {
            self.room.call(product, it, On { stream, launches }, &mut no_host).map(|_| ())
        });
        match done {
            // A refusal is looked at when it is launched.
            Ok(()) | Err(Error::Argument { .. }) => {}
            Err(error) => return Err(format!("prepared: {error}")),
        }
        let mut after = it.c.stored.clone();
        self.room.c.read(0, &mut after).map_err(|error| format!("{error} (reading C)"))?;
        it.c.unchanged(&after).map_err(|at| format!("prepared, and C changed, {at}"))
    }

    fn fill(&mut self, it: &Filled<T, O>) -> Result<()> {
        write(&mut self.room.a, &it.a)?;
        write(&mut self.room.b, &it.b)?;
        write(&mut self.room.bias, &it.bias)
    }

    /// Checks that A, B and the bias are as they were, and everything around them.
    fn untouched(&self, it: &Filled<T, O>) -> Checked<()> {
        let same = |name, found: Checked<()>| {
            found.map_err(|at| format!("{name} or what is around it has changed, {at}"))
        };
        same("A", found(&self.room.a, &it.a))?;
        same("B", found(&self.room.b, &it.b))?;
        same("the bias", found(&self.room.bias, &it.bias))
    }
}

/// Writes the memory to a buffer. If it is too small, to a larger one.
fn write<T: Number>(buffer: &mut Buffer<T>, memory: &Memory<T>) -> Result<()> {
    if buffer.len() < memory.stored.len() {
        *buffer = buffer.device().uninit(memory.stored.len().next_power_of_two())?;
    }
    buffer.write(0, &memory.stored)
}

fn found<T: Number>(buffer: &Buffer<T>, memory: &Memory<T>) -> Checked<()> {
    let mut after = memory.stored.clone();
    buffer.read(0, &mut after).map_err(|error| error.to_string())?;
    memory.unchanged(&after)
}

/// Checks C's elements, and that everything around them is as it was.
fn compare<T: Number, O: Number>(product: &Product, it: &Filled<T, O>, after: &[O]) -> Checked<()> {
    let (place, size) = (&product.places[2], product.sizes()[2]);
    let mut expected = it.c.clone();
    let first = expected.range().start;
    let mut got = Vec::with_capacity(it.want.values.len());
    each(place, size, |_, at| {
        got.push(after[first + at]);
        expected.stored[first + at] = after[first + at];
    });
    expected.unchanged(after).map_err(|at| format!("something around C has changed, {at}"))?;
    it.want.check(product, &crate::filled::turned(&got, size, product.inverted[2]))
}
