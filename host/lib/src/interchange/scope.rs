//! A scope in which memory and streams of other libraries are borrowed.

use std::{
    ffi::c_void,
    marker::PhantomData,
    mem,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    buffer::{Buffer, BufferView, BufferViewMut, Pod},
    cuda,
    device::{Device, Kind},
    error::{Error, Result},
    stream::Stream,
};

/// The driver's handle of the default stream of the thread that uses it.
const PER_THREAD: usize = 2;

/// Runs `run` with a [`Scope`], in which memory and streams of other libraries can be used. Nothing
/// is copied, and nobody waits on the host.
///
/// Work in the scope waits on the device for the work that was queued before on the streams of the
/// memory's owner. At the end of the scope, also after an error or a panic, these streams wait on
/// the device for the work of the scope. So afterwards the other library uses its memory as before.
///
/// # Errors
/// Those of `run`; those of the driver at the end. Then all work has been waited for, if that was
/// possible.
pub fn scope<'env, R>(
    device: &Device,
    run: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
) -> Result<R> {
    let scope = Scope {
        device: device.clone(),
        lent: Mutex::default(),
        scope: PhantomData,
        env: PhantomData,
    };
    let end = End(&scope);
    let result = run(&scope);
    mem::forget(end);
    let ended = scope.end();
    let result = result?;
    ended.map(|()| result)
}

/// Where memory and streams of other libraries are borrowed: see [`scope`]. What is borrowed for
/// `'env` is used for `'scope`.
pub struct Scope<'scope, 'env: 'scope> {
    device: Device,
    lent: Mutex<Lent<'env>>,
    /// Invariant, as in [`std::thread::Scope`]: what is borrowed does not leave the scope.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// What is given back at the end of the scope, in this order.
#[derive(Default)]
struct Lent<'env> {
    /// Uses of memory, and the stream of its owner.
    memories: Vec<(Arc<cuda::Uses>, Arc<cuda::Stream>)>,
    /// Streams by their handles.
    streams: Vec<(usize, Arc<cuda::Stream>)>,
    /// What is dropped at the end, by which the other library learns of it.
    guards: Vec<Box<dyn Guard + 'env>>,
}

/// A value that is dropped at the end of the scope.
pub(super) trait Guard: Send {}
impl<T: Send> Guard for T {}

/// A buffer of another library, for reading, within a [`scope`].
#[derive(Debug)]
pub struct Foreign<'scope, T> {
    buffer: Buffer<T>,
    scope: PhantomData<&'scope T>,
}

/// A buffer of another library, for writing, within a [`scope`].
#[derive(Debug)]
pub struct ForeignMut<'scope, T> {
    buffer: Buffer<T>,
    scope: PhantomData<&'scope mut T>,
}

/// A stream of another library, within a [`scope`]. What is launched on it is ordered among the
/// work of that library.
#[derive(Debug)]
pub struct ForeignStream<'scope> {
    stream: Stream,
    scope: PhantomData<&'scope ()>,
}

impl Deref for ForeignStream<'_> {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.stream
    }
}

impl<T: Pod> Foreign<'_, T> {
    /// The elements.
    pub fn view(&self) -> BufferView<'_, T> {
        self.buffer.all()
    }
}

impl<T: Pod> ForeignMut<'_, T> {
    /// The elements, for reading.
    pub fn view(&self) -> BufferView<'_, T> {
        self.buffer.all()
    }

    /// The elements, for writing.
    pub fn view_mut(&mut self) -> BufferViewMut<'_, T> {
        self.buffer.all_mut()
    }
}

impl std::fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Scope").field("device", &self.device).finish_non_exhaustive()
    }
}

/// Ends the scope after a panic.
struct End<'a, 'scope, 'env>(&'a Scope<'scope, 'env>);

impl Drop for End<'_, '_, '_> {
    fn drop(&mut self) {
        let _ = self.0.end();
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// `len` elements at `address`, in memory whose owner uses it on the stream with the handle
    /// `stream`, a `CUstream`. Null is the default stream.
    ///
    /// # Errors
    /// [`Error::Argument`] for an address that is null, not aligned, or not in this device's
    /// memory, for more elements than can be addressed, for a stream of another context, and for
    /// the CPU device.
    ///
    /// # Safety
    /// 1. The elements exist and are initialised, and the stream exists, until the scope has ended.
    /// 2. Until then nobody else writes the elements, but for work that was queued on the stream
    ///    before.
    /// 3. After the scope the memory is freed or written in the order of the stream, or after a
    ///    wait for it.
    pub unsafe fn raw<T: Pod>(
        &'scope self,
        address: u64,
        len: usize,
        stream: *mut c_void,
    ) -> Result<Foreign<'scope, T>> {
        // SAFETY: conditions 1 to 3.
        let buffer = unsafe { self.buffer(address, len, stream) }?;
        Ok(Foreign { buffer, scope: PhantomData })
    }

    /// As [`raw`](Self::raw), for writing.
    ///
    /// # Errors
    /// As [`raw`](Self::raw).
    ///
    /// # Safety
    /// As for [`raw`](Self::raw), and until the end of the scope nobody else reads the elements,
    /// but for work that was queued on the stream before.
    pub unsafe fn raw_mut<T: Pod>(
        &'scope self,
        address: u64,
        len: usize,
        stream: *mut c_void,
    ) -> Result<ForeignMut<'scope, T>> {
        // SAFETY: the caller's.
        let buffer = unsafe { self.buffer(address, len, stream) }?;
        Ok(ForeignMut { buffer, scope: PhantomData })
    }

    /// The stream with that handle, a `CUstream`. Null is the default stream.
    ///
    /// # Errors
    /// [`Error::Argument`] for a stream of another context, and for the CPU device.
    ///
    /// # Safety
    /// 1. The stream exists until the scope has ended, and nobody captures it meanwhile.
    pub unsafe fn raw_stream(&'scope self, stream: *mut c_void) -> Result<ForeignStream<'scope>> {
        // SAFETY: condition 1.
        let cuda = unsafe { self.stream(stream) }?;
        let stream = Stream::of_cuda(&self.device, cuda, true);
        Ok(ForeignStream { stream, scope: PhantomData })
    }

    /// Keeps a value until the scope has ended.
    #[cfg(feature = "cudarc")]
    pub(super) fn keep(&self, guard: impl Guard + 'env) {
        self.lent().guards.push(Box::new(guard));
    }

    fn lent(&self) -> MutexGuard<'_, Lent<'env>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Safety
    /// As for [`raw_stream`](Self::raw_stream).
    unsafe fn stream(&self, raw: *mut c_void) -> Result<Arc<cuda::Stream>> {
        let Kind::Cuda(gpu) = &*self.device.0 else {
            let limit = "must be a GPU, for memory and streams of one";
            return Err(Error::argument("device", self.device.name(), limit));
        };
        if raw.addr() == PER_THREAD {
            let limit = "must not be the default stream of a thread, which is another stream in each thread";
            return Err(Error::argument("stream", format!("{PER_THREAD:#x}"), limit));
        }
        let mut lent = self.lent();
        // One value for each handle: between two of them there would be events.
        if let Some((_, known)) = lent.streams.iter().find(|(handle, _)| *handle == raw.addr()) {
            return Ok(known.clone());
        }
        // SAFETY: the caller's. `end` gives the handle back.
        let stream = Arc::new(unsafe { cuda::Stream::foreign(&gpu.context, raw.cast()) }?);
        if stream.is_captured()? {
            return Err(Error::capture(
                "a stream that its library captures cannot be lent to a scope",
            ));
        }
        lent.streams.push((raw.addr(), stream.clone()));
        Ok(stream)
    }

    /// # Safety
    /// As for [`raw`](Self::raw), or [`raw_mut`](Self::raw_mut) if it is written.
    unsafe fn buffer<T: Pod>(
        &self,
        address: u64,
        len: usize,
        stream: *mut c_void,
    ) -> Result<Buffer<T>> {
        // SAFETY: the caller's.
        let owner = unsafe { self.stream(stream) }?;
        // SAFETY: the elements exist until the scope has ended, and nothing made of this buffer
        // outlives it. At the end the owner's stream waits for the work of the scope.
        let (buffer, uses) = unsafe { Buffer::foreign_on(&self.device, address, len, &owner) }?;
        self.lent().memories.push((uses, owner));
        Ok(buffer)
    }

    /// Lets the owners' streams wait for the work of the scope, and gives all back.
    fn end(&self) -> Result<()> {
        let Lent { memories, streams, guards } = mem::take(&mut *self.lent());
        let mut ended = Ok(());
        for (uses, owner) in &memories {
            let ordered = uses.written_by(owner);
            if ordered.is_err() {
                // What cannot be ordered on the device is waited for here.
                let _ = uses.synchronize();
            }
            ended = ended.and(ordered);
        }
        for (_, stream) in &streams {
            stream.close();
            ended = ended.and(stream.give_back());
        }
        drop(guards);
        ended
    }
}
