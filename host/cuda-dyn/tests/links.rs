//! Every function of `cust` links. It is enough that this file links. The calls are in the order of
//! `cust`'s modules, each generic for one type. (The linker reports an undefined symbol only for
//! code that something refers to.)

use cuda_dyn as _;
use cust::context::legacy::{self, ContextStack};
use cust::context::{
    CacheConfig, Context, ContextFlags, CurrentContext, ResourceLimit, SharedMemoryConfig,
};
use cust::device::{Device, DeviceAttribute};
use cust::error::CudaResult;
use cust::event::{Event, EventFlags};
use cust::external::ExternalMemory;
use cust::function::{BlockSize, FunctionAttribute, GridSize};
use cust::launch;
use cust::link::Linker;
use cust::memory::array::{ArrayFormat, ArrayObject};
use cust::memory::{
    AsyncCopyDestination, CopyDestination, DeviceBox, DeviceBuffer, LockedBuffer, MemoryAdvise,
    UnifiedBox, UnifiedBuffer, mem_get_info, memcpy_htod,
};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags, StreamWaitEventFlags};
use cust::util::SliceExt;

#[test]
fn all_of_cust_links() {
    if std::hint::black_box(false) {
        for part in [contexts, memory, arrays, work] {
            part().unwrap();
        }
        // SAFETY: never run.
        unsafe { asynchronous().unwrap() };
    }
}

fn contexts() -> CudaResult<()> {
    let context = cust::quick_init()?;
    cust::CudaApiVersion::get()?;
    let device = Device::get_device(Device::num_devices()?)?;
    device.name()?;
    device.total_memory()?;
    device.get_attribute(DeviceAttribute::WarpSize)?;
    context.set_flags(ContextFlags::SCHED_AUTO)?;
    context.get_api_version()?;
    CurrentContext::set_current(&context)?;
    CurrentContext::set_cache_config(CurrentContext::get_cache_config()?)?;
    CurrentContext::get_device()?;
    CurrentContext::get_flags()?;
    let limit = CurrentContext::get_resource_limit(ResourceLimit::StackSize)?;
    CurrentContext::set_resource_limit(ResourceLimit::StackSize, limit)?;
    CurrentContext::set_shared_memory_config(CurrentContext::get_shared_memory_config()?)?;
    CurrentContext::get_stream_priority_range()?;
    CurrentContext::synchronize()?;
    let old = legacy::Context::create_and_push(legacy::ContextFlags::SCHED_AUTO, device)?;
    old.get_api_version()?;
    ContextStack::push(&ContextStack::pop()?)?;
    legacy::CurrentContext::get_current()?;
    drop(old);
    // SAFETY: never run.
    unsafe { Context::reset(&device) }
}

fn memory() -> CudaResult<()> {
    mem_get_info()?;
    let mut words = DeviceBuffer::<u32>::zeroed(4)?;
    words.set_8(0)?;
    words.set_16(0)?;
    words.set_32(0)?;
    words.set_zero()?;
    words.copy_from(&[0; 4])?;
    words.copy_to(&mut [0; 4])?;
    words.copy_to(&mut DeviceBuffer::from_slice(&[0; 4])?)?;
    // SAFETY: never run.
    unsafe { memcpy_htod(0, std::ptr::null(), 0)? };
    LockedBuffer::new(&0u32, 4)?;
    DeviceBox::new(&0u32)?.as_host_value()?;
    DeviceBox::<u32>::zeroed()?;
    let unified = UnifiedBuffer::new(&0u32, 4)?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    unified.prefetch_to_host(&stream)?;
    unified.advise_read_mostly(true)?;
    UnifiedBox::new(0u32)?;
    // SAFETY: never run.
    let external = unsafe { ExternalMemory::import(0, 0)? };
    external.mapped_buffer::<u32>(0, 0)?;
    Ok(())
}

/// # Safety
/// Not to be run.
unsafe fn asynchronous() -> CudaResult<()> {
    let stream = &Stream::new(StreamFlags::DEFAULT, None)?;
    // SAFETY: the caller's.
    unsafe {
        let mut words = DeviceBuffer::<u32>::zeroed_async(4, stream)?;
        words.set_8_async(0, stream)?;
        words.set_16_async(0, stream)?;
        words.set_32_async(0, stream)?;
        words.set_zero_async(stream)?;
        words.async_copy_from(&[0; 4], stream)?;
        words.async_copy_to(&mut [0; 4], stream)?;
        words.async_copy_to(&mut DeviceBuffer::uninitialized_async(4, stream)?, stream)?;
        words.drop_async(stream)
    }
}

fn arrays() -> CudaResult<()> {
    let mut array = ArrayObject::new_1d(4, ArrayFormat::U32, 1)?;
    array.copy_from(&[0u32; 4])?;
    array.as_host_vec::<u32>()?;
    array.descriptor()?;
    [0u32; 4].as_1d_texture()?.into_array()?;
    [0u32; 4].as_2d_surface(2, 2)?.into_array()?;
    Ok(())
}

fn work() -> CudaResult<()> {
    let mut linker = Linker::new()?;
    linker.add_ptx("")?;
    let module = Module::from_cubin(linker.complete()?, &[])?;
    Module::from_file("")?;
    module.get_global::<u32>(c"")?.copy_to(&mut 0)?;
    let mut function = module.get_function("")?;
    function.get_attribute(FunctionAttribute::NumRegisters)?;
    function.set_cache_config(CacheConfig::PreferNone)?;
    function.set_shared_memory_config(SharedMemoryConfig::DefaultBankSize)?;
    let (grid, block) = (GridSize::x(1), BlockSize::x(1));
    function.available_dynamic_shared_memory_per_block(grid, block)?;
    function.max_active_blocks_per_multiprocessor(block, 0)?;
    function.suggested_launch_configuration(0, block)?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    stream.get_flags()?;
    stream.get_priority()?;
    stream.add_callback(Box::new(|| ()))?;
    // SAFETY: never run.
    unsafe { launch!(function<<<1, 1, 0, stream>>>(0u32))? };
    let event = Event::new(EventFlags::DEFAULT)?;
    event.record(&stream)?;
    event.query()?;
    event.synchronize()?;
    event.elapsed_time_f32(&event)?;
    stream.wait_event(event, StreamWaitEventFlags::DEFAULT)?;
    stream.synchronize()
}
