//! Matrices that are not 16-byte aligned, for kernels that read or write them by TMA: every call
//! that takes such a kernel by its name copies them.

use gpu::registry::Entry;
use simt::{Bf16, check::Options};

use crate::{
    Buffer, BufferView, BufferViewMut, Device, Gemm, MatrixView, MatrixViewMut, Result, Shape,
    gemm::{Kernel, Request, Scalar, checked},
    product,
};

const SIZE: [usize; 3] = [5, 8, 16];
const LENS: [usize; 3] = [SIZE[0] * SIZE[2], SIZE[2] * SIZE[1], SIZE[0] * SIZE[1]];

/// What is around a matrix.
const AROUND: f32 = 100.0;

type Operands<'a> = (BufferView<'a, Bf16>, BufferView<'a, Bf16>, BufferViewMut<'a, Bf16>);
type Views<'a> = (MatrixView<'a, Bf16>, MatrixView<'a, Bf16>, MatrixViewMut<'a, Bf16>);

fn views<'a>((a, b, c): Operands<'a>) -> Result<Views<'a>> {
    let [m, n, k] = SIZE;
    Ok((
        MatrixView::new(a, m, k, [k, 1])?,
        MatrixView::new(b, k, n, [n, 1])?,
        MatrixViewMut::new(c, m, n, [n, 1])?,
    ))
}

fn shape() -> Shape {
    let [m, n, k] = SIZE.map(|size| size as u64);
    Shape::new(m, n, k).unwrap()
}

/// C after a call, if the call leaves what is around C. Each matrix begins that many elements after
/// a multiple of sixteen bytes.
fn product_of(offsets: [usize; 3], call: impl FnOnce(Operands) -> Result<()>) -> Result<Vec<f32>> {
    let around = |len| vec![Bf16::from_f32(AROUND); len];
    let buffers = [0, 1, 2].map(|i| {
        let value = |j: usize| Bf16::from_f32(((j * (3 + i)) % 7) as f32 - 3.0);
        let values = (0..LENS[i]).map(value).collect();
        Device::cpu().upload(&[around(offsets[i]), values, around(8)].concat()).unwrap()
    });
    let [a, b, mut c]: [Buffer<Bf16>; 3] = buffers;
    let range = |i: usize| offsets[i]..offsets[i] + LENS[i];
    call((a.view(range(0))?, b.view(range(1))?, c.view_mut(range(2))?))?;
    let mut all = c.to_vec()?.into_iter().map(f32::from).collect::<Vec<_>>();
    let is_around = |i: usize| !range(2).contains(&i);
    assert!(all.iter().enumerate().all(|(i, &one)| !is_around(i) || one == AROUND));
    Ok(all.drain(range(2)).collect())
}

/// The product in every call that takes the kernel by its name.
fn in_all_calls(entry: &'static Entry, offsets: [usize; 3]) -> Vec<Result<Vec<f32>>> {
    let stream = Device::cpu().stream().unwrap();
    let gemm = Gemm::<Bf16>::new().entry(entry).unwrap();
    let aligned = offsets.map(|offset| offset.is_multiple_of(8));
    let request = Request { aligned, ..Request::dense(shape()) };
    let run = product_of(offsets, |operands| {
        let (a, b, c) = views(operands)?;
        gemm.run(&stream, a, b, c).map(drop)
    });
    let planned = product_of(offsets, |operands| {
        let (a, b, c) = views(operands)?;
        gemm.plan_on(stream.device(), &request)?.launch(&stream, a, b, c)
    });
    let checked = product_of(offsets, |(a, b, c)| {
        let options = |_: &_| Options::default();
        checked::multiply(entry, shape(), [false; 2], [a, b], None, c, options).map(drop)
    });
    let mut all = vec![run, planned, checked];
    if product::counted(entry).is_ok() {
        all.push(product_of(offsets, |(a, b, c)| {
            product::multiply_views(&stream, entry, shape(), a, b, c)
        }));
    }
    all
}

#[test]
fn a_matrix_that_is_not_aligned_is_copied() {
    let (mut kernels, mut storing) = (0, 0);
    for Kernel { entry, product } in <Bf16 as Scalar>::kernels() {
        // Rows are contiguous: that is one of the four layouts.
        let takes_rows = product.variant.k_major() == [true, false];
        if !product.requires_layouts() || !takes_rows {
            continue;
        }
        let name = entry.name();
        let expected = in_all_calls(entry, [0; 3]).swap_remove(0).unwrap();
        // Of 2, 14 and 16 bytes.
        for offsets in [[1, 0, 0], [0, 7, 0], [0, 0, 1], [0, 0, 7], [8, 8, 8], [1, 2, 3]] {
            for (call, c) in in_all_calls(entry, offsets).into_iter().enumerate() {
                let c = c.unwrap_or_else(|error| panic!("{name} {offsets:?} {call}: {error}"));
                assert_eq!(c, expected, "{name} {offsets:?} {call}");
            }
        }
        kernels += 1;
        storing += usize::from(product.stores.is_some());
    }
    assert!(kernels > 5 && storing > 0, "{kernels} {storing}");
}

/// A plan that stores C by TMA is for an aligned C, unless its request says that C is not.
#[test]
fn a_plan_for_an_aligned_c_names_another() {
    let (device, name) = (Device::cpu(), "tensor_tma_store");
    let stream = device.stream().unwrap();
    let planned = |name| {
        let gemm = Gemm::<Bf16>::new().kernel(name).unwrap();
        product_of([0, 0, 1], |operands| {
            let (a, b, c) = views(operands)?;
            gemm.plan_on(&device, &Request::dense(shape()))?.launch(&stream, a, b, c)
        })
    };
    let error = planned(name).unwrap_err().to_string();
    assert!(error.starts_with("C = at 0x"), "{error}");
    assert!(error.ends_with(": must be 16-byte aligned, as planned"), "{error}");
    // Other kernels take any C.
    assert_eq!(planned("tensor_persistent").unwrap().len(), LENS[2]);
}
