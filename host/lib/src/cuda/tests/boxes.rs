//! Tensor maps of the driver.

use simt::{AnyKernel, Bound, Elements, Map};

use super::*;

pub(super) const SHAPE: crate::BoxShape = crate::BoxShape { rows: 8, cols: 16, swizzle: 64 };

/// A kernel that the tests' driver does not run.
#[simt::device::kernel(block = (32))]
fn takes_boxes(map: TensorMap<f32>, mut c: Out<f32>) {
    let _ = map;
    c[0] = 1.0;
}

pub(super) fn bind(
    boxes: crate::Boxes<f32>,
    stream: &crate::Stream,
) -> std::result::Result<Map, Unbound> {
    crate::boxes::AnyBoxes::from(boxes).described(stream, "map", false)
}

/// The words that a kernel is given of a map.
pub(super) fn words(map: Map) -> [u64; 16] {
    // SAFETY: no elements, and nothing is launched.
    let c = unsafe { Elements::write(std::ptr::null_mut::<f32>(), 0) };
    let (config, limits) = (LaunchConfig::new([1; 3], [32, 1, 1]), simt::cpu::LIMITS);
    let bound = [Bound::Maps(vec![map]), Bound::Elements(c)];
    let mut slots = AnyKernel::slots(&takes_boxes, &config, &limits, &bound).unwrap();
    // SAFETY: a map is sixteen words.
    unsafe { *slots.pointers().next().unwrap().cast::<[u64; 16]>() }
}

/// Launches that kernel.
fn launch_boxes(
    stream: &crate::Stream,
    boxes: crate::Boxes<f32>,
    c: &mut crate::Buffer<f32>,
) -> Result<()> {
    let ptx = format!("// {}", takes_boxes.declaration.to_ptx_comment());
    // SAFETY: the tests' driver runs no kernels.
    unsafe { stream.device().load_ptx("boxes.ptx", &ptx) }?;
    // SAFETY: as above; on the CPU nothing is launched.
    unsafe { stream.launch(&takes_boxes, &LaunchConfig::new([1; 3], [32, 1, 1]), (boxes, c)) }
}

/// The error of such a launch, and the address of the matrix.
fn refuse_boxes() -> (Error, u64) {
    let device = crate::Device::cuda(0).unwrap();
    let (a, mut c) = (device.zeros::<f32>(2000).unwrap(), device.zeros::<f32>(32).unwrap());
    let boxes = crate::Boxes::new(a.view(..).unwrap(), [1, 10, 18], [0, 64], SHAPE).unwrap();
    calls();
    (launch_boxes(&device.stream().unwrap(), boxes, &mut c).unwrap_err(), a.address())
}

with_driver! {
    fn matrices_are_encoded_for_a_kernel("kernels=1") {
        let device = crate::Device::cuda(0).unwrap();
        let streams = [device.stream().unwrap(), device.stream().unwrap()];
        let (mut a, mut c) = (device.zeros::<f32>(2000).unwrap(), device.zeros::<f32>(32).unwrap());
        let start = a.address() + 16;
        calls();
        let boxes = || crate::Boxes::new(a.view(4..).unwrap(), [3, 10, 18], [640, 64], SHAPE).unwrap();
        let words = words(bind(boxes(), &streams[0]).unwrap());
        assert_eq!(calls(), ["cuTensorMapEncodeTiled"]);
        // Extents, strides, the box; a float32, spans of 64 bytes, 256 bytes for the L2 cache.
        assert_eq!(words, [start, 18, 10, 3, 256, 2560, 16, 8, 1, 7, 2, 3, 0, 0, 0, 0]);
        // A launch reads them, as it reads a buffer.
        launch_boxes(&streams[0], boxes(), &mut c).unwrap();
        let launched = calls();
        assert!(launched.contains(&"launch takes_boxes".to_owned()), "{launched:?}");
        let mut pinned = device.pinned::<f32>(8).unwrap();
        let lines = crate::Lines { count: 1, len: 8, stride: 8 };
        streams[1].upload(&mut pinned, a.view_mut(..).unwrap(), lines).unwrap();
        assert!(calls().contains(&"cuStreamWaitEvent".into()), "what is written was read");
        let boxes = crate::Boxes::new(a.view(..).unwrap(), [1, 10, 18], [0, 64], SHAPE).unwrap();
        launch_boxes(&streams[0], boxes, &mut c).unwrap();
        assert!(calls().contains(&"cuStreamWaitEvent".into()), "what is read was written");
    }

    fn boxes_that_the_driver_refuses("kernels=1 cuTensorMapEncodeTiled=1") {
        let (error, address) = refuse_boxes();
        assert!(matches!(error, Error::Launch { .. }), "{error}");
        let expected = format!("kernel takes_boxes: map: at {address:#x}, the driver refuses TensorDescription {{");
        let text = error.to_string();
        assert!(text.starts_with(&expected) && text.contains("extents: [18, 10, 1]"), "{text}");
        assert!(!calls().iter().any(|call| call.starts_with("cuLaunch")));
    }

    fn boxes_on_a_device_without_the_accelerator("major=8 minor=9 kernels=1") {
        let expected = "kernel takes_boxes: map: cuda:0 (Fake GPU) has compute capability 8.9, a tensor map needs 9.0";
        assert_eq!(refuse_boxes().0.to_string(), expected);
        assert!(!calls().contains(&"cuTensorMapEncodeTiled".into()));
    }

    fn a_driver_older_than_tensor_maps("kernels=1 cuTensorMapEncodeTiled=302") {
        let expected = "no NVIDIA driver: libcuda.so.1 has no function cuTensorMapEncodeTiled: the driver is too old, \
                        update it to one of CUDA 12.0 or newer";
        assert_eq!(refuse_boxes().0.to_string(), expected);
    }

    fn boxes_elsewhere("kernels=1") {
        let (gpu, cpu) = (crate::Device::cuda(0).unwrap(), crate::Device::cpu());
        for (here, there) in [(&gpu, &cpu), (&cpu, &gpu)] {
            let (a, mut c) = (there.zeros::<f32>(2000).unwrap(), here.zeros::<f32>(32).unwrap());
            let boxes = crate::Boxes::new(a.view(..).unwrap(), [1, 10, 18], [0, 64], SHAPE).unwrap();
            let error = launch_boxes(&here.stream().unwrap(), boxes, &mut c).unwrap_err();
            let (here, there) = (here.name(), there.name());
            let expected = format!("kernel takes_boxes: map is on {there}, the launch is on {here}");
            assert_eq!(error.to_string(), expected);
        }
    }
}
