//! Tensors in host memory: what comes in, what goes out, and who frees it.

use std::{
    ffi::c_void,
    ptr::{NonNull, null_mut},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use super::*;
use crate::{Device, Gemm, Matrix, error::Result, simt::Bf16};

/// A tensor of another library, which counts the calls of its deleter.
struct Producer {
    values: Vec<f32>,
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    byte_offset: u64,
    device: DLDevice,
    dtype: DLDataType,
    /// Version and flags. `None`: before version 1.
    version: Option<(u32, u64)>,
    deleted: Arc<AtomicUsize>,
}

const HOST: DLDevice = DLDevice { device_type: DLDevice::CPU, device_id: 0 };

impl Producer {
    fn new(shape: &[i64], strides: Option<&[i64]>) -> Self {
        Producer {
            values: (0..20).map(|i| i as f32).collect(),
            shape: shape.to_vec(),
            strides: strides.map(<[i64]>::to_vec),
            byte_offset: 0,
            device: HOST,
            dtype: f32::DL_TYPE,
            version: None,
            deleted: Arc::default(),
        }
    }

    fn tensor(&mut self) -> DLTensor {
        DLTensor {
            data: self.values.as_mut_ptr().cast(),
            device: self.device,
            ndim: self.shape.len() as i32,
            dtype: self.dtype,
            shape: self.shape.as_mut_ptr(),
            strides: self.strides.as_mut().map_or(null_mut(), |it| it.as_mut_ptr()),
            byte_offset: self.byte_offset,
        }
    }

    /// Imports it. After an error it is deleted, by the one who still has it.
    fn import<T: DlElement>(mut self) -> (Result<Tensor<T>>, Arc<AtomicUsize>) {
        let (deleted, version, tensor) = (self.deleted.clone(), self.version, self.tensor());
        let manager_ctx: *mut c_void = Box::into_raw(Box::new(self)).cast();
        let device = Device::cpu();
        let (imported, managed) = match version {
            None => {
                let managed =
                    DLManagedTensor { dl_tensor: tensor, manager_ctx, deleter: Some(delete) };
                let managed = NonNull::from(Box::leak(Box::new(managed)));
                // SAFETY: it was made above, and nobody else has it.
                unsafe { (Tensor::import(&device, managed), Managed::plain(managed)) }
            }
            Some((major, flags)) => {
                let managed = DLManagedTensorVersioned {
                    version: DLPackVersion { major, minor: 3 },
                    manager_ctx,
                    deleter: Some(delete_versioned),
                    flags,
                    dl_tensor: tensor,
                };
                let managed = NonNull::from(Box::leak(Box::new(managed)));
                // SAFETY: as above.
                unsafe { (Tensor::import_versioned(&device, managed), Managed::versioned(managed)) }
            }
        };
        if imported.is_err() {
            assert_eq!(deleted.load(SeqCst), 0);
            // SAFETY: it is still ours.
            unsafe { managed.delete() };
        }
        (imported, deleted)
    }
}

unsafe extern "C" fn delete(tensor: *mut DLManagedTensor) {
    // SAFETY: both boxes were leaked by `import`.
    unsafe {
        let managed = Box::from_raw(tensor);
        let producer = Box::from_raw(managed.manager_ctx.cast::<Producer>());
        producer.deleted.fetch_add(1, SeqCst);
    }
}

unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: as above.
    unsafe {
        let managed = Box::from_raw(tensor);
        let producer = Box::from_raw(managed.manager_ctx.cast::<Producer>());
        producer.deleted.fetch_add(1, SeqCst);
    }
}

/// The matrix times the identity: its elements, by a kernel.
fn elements(tensor: &Tensor<f32>) -> Vec<f32> {
    let device = Device::cpu();
    let matrix = tensor.matrix().unwrap();
    let n = matrix.cols();
    let identity = (0..n * n).map(|i| f32::from(u8::from(i % (n + 1) == 0))).collect::<Vec<_>>();
    let identity = Matrix::from_row_major(&device, n, n, &identity).unwrap();
    let mut out = Matrix::zeros(&device, matrix.rows(), n).unwrap();
    Gemm::new().run(&device.stream().unwrap(), matrix, identity.view(), out.view_mut()).unwrap();
    out.to_row_major().unwrap()
}

#[test]
fn tensors_come_in_as_they_are_and_are_deleted_once() {
    for version in [None, Some((1, 0))] {
        for (shape, strides, offset, expected) in [
            (&[2, 3][..], None, 0, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0][..]),
            (&[2, 3], Some(&[5, 1][..]), 0, &[0.0, 1.0, 2.0, 5.0, 6.0, 7.0]),
            // The transpose, from the second element on.
            (&[3, 2], Some(&[1, 4]), 4, &[1.0, 5.0, 2.0, 6.0, 3.0, 7.0]),
            // The same row again and again.
            (&[2, 2], Some(&[0, 1]), 8, &[2.0, 3.0, 2.0, 3.0]),
            (&[3], None, 0, &[0.0, 1.0, 2.0]),
            (&[3], Some(&[2]), 4, &[1.0, 3.0, 5.0]),
            (&[], None, 12, &[3.0]),
            (&[0, 3], None, 0, &[]),
        ] {
            let producer =
                Producer { byte_offset: offset, version, ..Producer::new(shape, strides) };
            let start = producer.values.as_ptr().addr() + offset as usize;
            let (tensor, deleted) = producer.import::<f32>();
            let tensor = tensor.unwrap();
            assert_eq!(tensor.shape().len(), shape.len());
            assert_eq!(elements(&tensor), expected, "{shape:?} {strides:?}");
            if !expected.is_empty() {
                // No copy.
                assert_eq!(tensor.matrix().unwrap().elements().address().addr(), start);
            }
            assert_eq!(deleted.load(SeqCst), 0);
            drop(tensor);
            assert_eq!(deleted.load(SeqCst), 1);
        }
    }
}

#[test]
fn what_cannot_be_taken_stays_with_its_owner() {
    let with = |change: fn(&mut Producer)| {
        let mut producer = Producer::new(&[2, 3], None);
        change(&mut producer);
        let (tensor, deleted) = producer.import::<f32>();
        let error = tensor.unwrap_err().to_string();
        assert_eq!(deleted.load(SeqCst), 1);
        error
    };
    for (error, words) in [
        (
            with(|it| it.dtype = f64::DL_TYPE),
            "dtype = DLDataType { code: 2, bits: 64, lanes: 1 }: must be",
        ),
        (with(|it| it.dtype.lanes = 4), "dtype = "),
        (
            with(|it| it.device.device_type = DLDevice::CUDA),
            "tensor's device = type 2, index 0: must be cpu",
        ),
        (with(|it| it.device.device_type = 7), "tensor's device = type 7"),
        (with(|it| it.shape = vec![1, 2, 3]), "ndim = 3: must be 0, 1 or 2"),
        (with(|it| it.shape[1] = -3), "shape = -3: must not be negative"),
        (with(|it| it.strides = Some(vec![3, -1])), "strides = -1: must not be negative"),
        (with(|it| it.byte_offset = 2), "must be a multiple of 4"),
        (with(|it| it.shape = vec![i64::MAX, i64::MAX]), "cannot be addressed"),
        (with(|it| it.version = Some((2, 0))), "DLPack version = 2.3: must be 1"),
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn a_tensor_that_is_only_read_is_not_written() {
    let read_only = Some((1, DLManagedTensorVersioned::READ_ONLY));
    let (tensor, _) =
        Producer { version: read_only, ..Producer::new(&[2, 2], None) }.import::<f32>();
    let mut tensor = tensor.unwrap();
    assert!(tensor.is_read_only());
    assert_eq!(elements(&tensor), [0.0, 1.0, 2.0, 3.0]);
    let error = tensor.matrix_mut().unwrap_err().to_string();
    assert_eq!(error, "tensor = read-only: must not be, to be written");

    // What is written to a copy, its owner never sees.
    for flags in
        [DLManagedTensorVersioned::IS_COPIED, DLManagedTensorVersioned::IS_COPIED | 1 << 40]
    {
        let version = Some((1, flags));
        let (tensor, _) = Producer { version, ..Producer::new(&[2, 2], None) }.import::<f32>();
        let mut tensor = tensor.unwrap();
        assert!(tensor.is_copied() && !tensor.is_read_only());
        assert_eq!(elements(&tensor), [0.0, 1.0, 2.0, 3.0]);
        let error = tensor.matrix_mut().unwrap_err().to_string();
        assert!(error.starts_with("tensor = a copy: must be the owner's own memory"), "{error}");
    }

    // One that may be written is the result of a product, but not if two of its elements share
    // memory.
    let (tensor, _) = Producer::new(&[2, 2], None).import::<f32>();
    let mut tensor = tensor.unwrap();
    let stream = Device::cpu().stream().unwrap();
    let a = Matrix::from_row_major(&Device::cpu(), 2, 2, &[1.0, 2.0, 3.0, 4.0]).unwrap();
    Gemm::new().run(&stream, a.view(), a.view(), tensor.matrix_mut().unwrap()).unwrap();
    assert_eq!(elements(&tensor), [7.0, 10.0, 15.0, 22.0]);
    let (tensor, _) = Producer::new(&[2, 2], Some(&[0, 1])).import::<f32>();
    assert!(tensor.unwrap().matrix_mut().is_err());
}

/// An owner of which it is known whether it was dropped.
fn exported<T: DlElement>(values: &[T]) -> Matrix<T> {
    Matrix::from_row_major(&Device::cpu(), 2, values.len() / 2, values).unwrap()
}

#[test]
fn matrices_go_out_as_they_are() {
    let matrix = exported(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let start = matrix.view().elements().address();
    let given = export(matrix, None).unwrap();
    // SAFETY: it is ours until it is deleted.
    unsafe {
        let DLManagedTensor { dl_tensor: tensor, deleter, .. } = *given.as_ptr();
        assert_eq!(
            (tensor.data.cast_const().cast(), tensor.byte_offset, tensor.ndim),
            (start, 0, 2)
        );
        assert_eq!((tensor.device, tensor.dtype), (HOST, f32::DL_TYPE));
        assert_eq!(std::slice::from_raw_parts(tensor.shape, 2), [2, 3]);
        assert_eq!(std::slice::from_raw_parts(tensor.strides, 2), [3, 1]);
        deleter.unwrap()(given.as_ptr());
    }
    let given = export_versioned(exported(&[Bf16::from_f32(1.0); 4]), None).unwrap();
    // SAFETY: as above.
    unsafe {
        let DLManagedTensorVersioned { version, flags, dl_tensor, deleter, .. } = *given.as_ptr();
        assert_eq!((version, flags), (DLPackVersion { major: 1, minor: 0 }, 0));
        assert_eq!(dl_tensor.dtype, DLDataType { code: 4, bits: 16, lanes: 1 });
        deleter.unwrap()(given.as_ptr());
    }
}

#[test]
fn a_shared_matrix_is_dropped_by_the_last_owner() {
    let matrix = Arc::new(exported(&[1.0f32, 2.0, 3.0, 4.0]));
    let weak = Arc::downgrade(&matrix);
    let given = export_shared(matrix.clone(), None).unwrap();
    // SAFETY: nobody else takes it, and nobody writes it.
    let tensor = unsafe { Tensor::<f32>::import_versioned(&Device::cpu(), given) }.unwrap();
    assert!(tensor.is_read_only());
    assert_eq!(elements(&tensor), matrix.to_row_major().unwrap());
    drop(matrix);
    assert!(weak.upgrade().is_some());
    assert_eq!(elements(&tensor), [1.0, 2.0, 3.0, 4.0]);
    drop(tensor);
    assert!(weak.upgrade().is_none());
}

#[test]
fn from_another_thread() {
    let (tensor, deleted) = Producer::new(&[2, 2], None).import::<f32>();
    let tensor = tensor.unwrap();
    let sum = std::thread::spawn(move || elements(&tensor).into_iter().sum::<f32>());
    assert_eq!((sum.join().unwrap(), deleted.load(SeqCst)), (6.0, 1));
}

#[test]
fn an_unused_stride_may_be_negative() {
    for (shape, strides, is_used) in [
        ([1, 3], [-3, 1], false),
        ([4, 1], [2, -1], false),
        ([0, 3], [-3, -1], false),
        ([2, 3], [3, -1], true),
        ([2, 1], [-1, 1], true),
    ] {
        let (tensor, _) = Producer::new(&shape, Some(&strides)).import::<f32>();
        assert_eq!(tensor.is_err(), is_used, "{shape:?} {strides:?}");
        let Ok(tensor) = tensor else { continue };
        let matrix = tensor.matrix().unwrap();
        assert_eq!([matrix.rows(), matrix.cols()], shape.map(|size| size as usize));
    }
}

#[test]
fn a_shape_that_is_null_is_refused() {
    let mut producer = Producer::new(&[2, 3], None);
    let tensor = DLTensor { shape: null_mut(), ..producer.tensor() };
    let mut managed = DLManagedTensor { dl_tensor: tensor, manager_ctx: null_mut(), deleter: None };
    // SAFETY: it is refused.
    let refused = unsafe { Tensor::<f32>::import(&Device::cpu(), NonNull::from(&mut managed)) };
    assert_eq!(refused.unwrap_err().to_string(), "shape = null: must point to 2 sizes");
}
