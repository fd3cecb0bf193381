//! A driver that says that there are fewer devices than none, or more than there can be.

use super::*;

with_driver! {
    fn fewer_devices_than_none("devices=-1") {
        let expected = "no NVIDIA driver: cuDeviceGetCount says that there are -1 devices";
        assert_eq!(device_count().unwrap_err().to_string(), expected);
        assert_eq!(Context::open(0).unwrap_err().to_string(), expected);
        let best = crate::Device::best();
        assert_eq!((best.device.is_cuda(), best.why_no_gpu.as_deref()), (false, Some(expected)));
    }

    fn more_devices_than_there_can_be("devices=-2147483648") {
        let text = device_count().unwrap_err().to_string();
        assert!(text.ends_with("there are -2147483648 devices"), "{text}");
    }
}
