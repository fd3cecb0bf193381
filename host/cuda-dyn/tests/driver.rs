//! `cust` on a driver that is absent, too old, or returns what `cust_raw` does not know.

mod fake;

use cuda_dyn::{Failure, driver, error_name, error_text, take_failure};
use cust::error::CudaError;
use fake::{calls, with_driver};

with_driver! {
    fn without_a_library_every_call_says_so("no driver") {
        let reason = driver().unwrap_err();
        assert!(reason.contains("libcuda.so.1"), "{reason}");
        let error = cust::init(cust::CudaFlags::empty()).unwrap_err();
        assert_eq!(error, CudaError::SharedObjectInitFailed);
        assert_eq!(take_failure(), Some(Failure { function: "cuInit", code: 303 }));
        // The `Display` that panics where there is no text.
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

    fn each_thread_has_its_own_failure("cuInit=803") {
        std::thread::spawn(|| cust::init(cust::CudaFlags::empty()).unwrap_err()).join().unwrap();
        assert_eq!(take_failure(), None);
    }
}
