//! `cust` with a driver that is absent, too old, or returns codes that `cust_raw` does not have.

mod fake;

use cuda_dyn::{
    CUlaunchAttribute, CUlaunchConfig, CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill,
    CUtensorMapInterleave, CUtensorMapL2promotion, CUtensorMapSwizzle, Failure, cuLaunchKernelEx,
    cuTensorMapEncodeTiled, driver, error_name, error_text, since, take_failure,
};
use cust::error::CudaError;
use cust::sys::CUresult;
use fake::{calls, with_driver};

/// A current context on the first device.
fn context() -> cust::context::Context {
    cust::context::Context::new(cust::device::Device::get_device(0).unwrap()).unwrap()
}

/// Encodes two matrices of 100 rows and 60 columns, 64 floats apart, in boxes of 8 x 16, from that
/// address on.
fn encode(address: usize) -> (Result<(), Failure>, CUtensorMap) {
    let mut map = CUtensorMap::default();
    let (extents, strides) = ([60, 100, 2], [256, 25600]);
    let (box_extents, element_strides) = ([16, 8, 1], [1; 3]);
    // SAFETY: three dimensions.
    let result = unsafe {
        cuTensorMapEncodeTiled(
            &mut map,
            CUtensorMapDataType::FLOAT32,
            3,
            address as *mut _,
            extents.as_ptr(),
            strides.as_ptr(),
            box_extents.as_ptr(),
            element_strides.as_ptr(),
            CUtensorMapInterleave::None,
            CUtensorMapSwizzle::Bytes64,
            CUtensorMapL2promotion::Bytes128,
            CUtensorMapFloatOOBfill::Zeros,
        )
    };
    (result, map)
}

/// Launches the driver's kernel `fill` in six blocks, with these attributes.
fn launch(attributes: &mut [CUlaunchAttribute]) -> Result<(), Failure> {
    let module = cust::module::Module::from_ptx("", &[]).unwrap();
    // `cust`'s own stream ignores the flag for not waiting for the default stream.
    let mut stream = std::ptr::null_mut();
    // SAFETY: one handle is written.
    let result = unsafe { cust::sys::cuStreamCreateWithPriority(&mut stream, 1, 0) };
    assert_eq!(result, CUresult::CUDA_SUCCESS);
    let mut words = [0u32; 6];
    let (mut address, mut value, mut count) = (words.as_mut_ptr(), 7u32, 6u32);
    let mut params = [(&raw mut address).cast(), (&raw mut value).cast(), (&raw mut count).cast()];
    let config = CUlaunchConfig {
        grid: [6, 1, 1],
        block: [1, 1, 1],
        dynamic_shared: 0,
        stream: stream.cast(),
        attributes: attributes.as_mut_ptr(),
        attribute_count: attributes.len() as u32,
    };
    let function = module.get_function("fill").unwrap().to_raw().cast();
    // SAFETY: so many attributes; the parameters are the kernel's, which ends before this returns.
    let result =
        unsafe { cuLaunchKernelEx(&config, function, params.as_mut_ptr(), std::ptr::null_mut()) };
    assert_eq!(words, [if result.is_ok() { 7 } else { 0 }; 6]);
    result
}

with_driver! {
    fn without_a_library_every_call_says_so("no driver") {
        let reason = driver().unwrap_err();
        assert!(reason.contains("libcuda.so.1"), "{reason}");
        let error = cust::init(cust::CudaFlags::empty()).unwrap_err();
        assert_eq!(error, CudaError::SharedObjectInitFailed);
        assert_eq!(take_failure(), Some(Failure { function: "cuInit", code: 303 }));
        // This `Display` panics if there is no text.
        assert!(error.to_string().contains("cannot be loaded"), "{error}");
        assert_eq!(error_name(303), "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED");
        assert_eq!(error_name(-5), "CUDA_ERROR");
    }

    fn calls_reach_the_library("devices=3 version=12040") {
        assert_eq!(driver(), Ok("libcuda.so.1"));
        cust::init(cust::CudaFlags::empty()).unwrap();
        assert_eq!(cust::device::Device::num_devices(), Ok(3));
        let version = cust::CudaApiVersion::get().unwrap();
        assert_eq!((version.major(), version.minor()), (12, 4));
        assert_eq!(calls(), ["cuInit", "cuDeviceGetCount", "cuDriverGetVersion"]);
        assert_eq!(take_failure(), None);
    }

    fn a_missing_function_is_a_failure_of_its_own("") {
        let device = cust::device::Device::get_device(0).unwrap();
        let context = cust::context::Context::new(device).unwrap();
        assert_eq!(context.get_api_version(), Err(CudaError::SharedObjectSymbolNotFound));
        assert_eq!(take_failure(), Some(Failure { function: "cuCtxGetApiVersion", code: 302 }));
        assert_eq!(error_name(302), "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND");
        assert!(CudaError::SharedObjectSymbolNotFound.to_string().contains("lacks"));
    }

    fn a_code_newer_than_the_bindings_is_folded_and_kept("cuDevicePrimaryCtxRetain=46") {
        let device = cust::device::Device::get_device(0).unwrap();
        let error = cust::context::Context::new(device).unwrap_err();
        assert_eq!(error, CudaError::UnknownError);
        let failure = Failure { function: "cuDevicePrimaryCtxRetain", code: 46 };
        assert_eq!(take_failure(), Some(failure));
        assert_eq!(take_failure(), None);
        assert_eq!(error_name(46), "CUDA_ERROR_DEVICE_UNAVAILABLE");
        assert!(error_text(46).contains("busy"));
    }

    fn a_code_that_the_driver_does_not_describe("cuInit=987") {
        let error = cust::init(cust::CudaFlags::empty()).unwrap_err();
        assert_eq!(error, CudaError::UnknownError);
        assert_eq!(take_failure(), Some(Failure { function: "cuInit", code: 987 }));
        assert_eq!(error_name(987), "CUDA_ERROR");
        assert!(!error.to_string().is_empty());
    }

    fn a_tensor_map_is_encoded("") {
        let _context = context();
        let (result, map) = encode(0x1000);
        assert_eq!(result, Ok(()));
        // The tests' driver makes of a description the description.
        assert_eq!(map.opaque, [0x1000, 60, 100, 2, 256, 25600, 16, 8, 1, 7, 2, 2, 0, 0, 0, 0]);
        let failure = Failure { function: "cuTensorMapEncodeTiled", code: 1 };
        assert_eq!(encode(0x1008).0, Err(failure));
    }

    fn a_launch_has_attributes("") {
        let _context = context();
        calls();
        let cluster = |blocks| CUlaunchAttribute::cluster([blocks, 1, 1]);
        let dependent = CUlaunchAttribute::programmatic_stream_serialization();
        assert_eq!(launch(&mut [cluster(2)]), Ok(()));
        assert!(calls().contains(&"cluster [2, 1, 1]".to_owned()));
        assert_eq!(launch(&mut [dependent, cluster(3)]), Ok(()));
        let calls = calls();
        for attribute in ["dependent", "cluster [3, 1, 1]"] {
            assert!(calls.contains(&attribute.to_owned()), "{calls:?}");
        }
        let failure = Failure { function: "cuLaunchKernelEx", code: 1 };
        assert_eq!(launch(&mut [cluster(4)]), Err(failure));
    }

    fn functions_of_this_crate_without_a_library("no driver") {
        let failure = Failure { function: "cuTensorMapEncodeTiled", code: 303 };
        assert_eq!(encode(0x1000).0, Err(failure));
        // SAFETY: it takes any flags.
        let result = unsafe { cuda_dyn::cuInit(0) };
        assert_eq!(result, Err(Failure { function: "cuInit", code: 303 }));
        assert_eq!(since("cuTensorMapEncodeTiled"), Some((12, 0)));
        assert_eq!(since("cuLaunchKernelEx"), Some((11, 8)));
        assert_eq!(since("cuLaunchKernel"), None);
    }

    fn functions_of_this_crate_reach_the_library("devices=3 cuInit=46") {
        let mut count = 0;
        // SAFETY: it takes any flags, and one number is written.
        let results = unsafe { [cuda_dyn::cuInit(0), cuda_dyn::cuDeviceGetCount(&mut count)] };
        assert_eq!(results, [Err(Failure { function: "cuInit", code: 46 }), Ok(())]);
        assert_eq!((count, calls()), (3, ["cuInit", "cuDeviceGetCount"].map(String::from).to_vec()));
        // What goes through `cust` is noted apart.
        assert_eq!(take_failure(), None);
    }

    fn a_function_of_this_crate_that_the_library_lacks("") {
        let mut uuid = cuda_dyn::CUuuid { bytes: [0; 16] };
        // SAFETY: one UUID may be written.
        let result = unsafe { cuda_dyn::cuDeviceGetUuid(&mut uuid, 0) };
        assert_eq!(result, Err(Failure { function: "cuDeviceGetUuid", code: 302 }));
    }

    fn each_thread_has_its_own_failure("cuInit=803") {
        std::thread::spawn(|| cust::init(cust::CudaFlags::empty()).unwrap_err()).join().unwrap();
        assert_eq!(take_failure(), None);
    }
}
