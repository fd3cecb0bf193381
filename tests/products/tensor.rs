//! The ladder on tensor cores, on every device: exact on integers, at sizes that no tile divides.

use gpu::registry::{Type, ladder_of};
use host::{Bf16, Device, gemm::Target, operands, product, product::Shape};
use tests::{devices, reference};

/// With rows of A, B and C that are 16-byte aligned or not. Of half of them C has aligned rows,
/// which TMA can store.
const SIZES: [[u64; 3]; 12] = [
    [1, 1, 1],
    [17, 33, 5],
    [40, 72, 51],
    [130, 264, 70],
    [128, 256, 128],
    [70, 40, 333],
    [1, 136, 130],
    [131, 1, 35],
    [257, 16, 65],
    [129, 258, 9],
    [200, 520, 40],
    [35, 67, 72],
];

/// And on a GPU: many tiles for each SM, several raster groups, long sums.
const LARGE: [[u64; 3]; 4] =
    [[1000, 700, 513], [2311, 1544, 264], [4099, 4104, 40], [515, 1031, 4100]];

#[test]
fn every_rung_on_tensor_cores_is_exact() {
    let mut checked = 0;
    for device in devices() {
        let large = if device.is_cuda() { &LARGE[..] } else { &[] };
        for &[m, n, k] in SIZES.iter().chain(large) {
            let shape = Shape::new(m, n, k).unwrap();
            checked += every_rung(&device, shape);
        }
    }
    assert!(checked >= 10 * SIZES.len(), "{checked}");
}

/// How many rungs give the product of integers to the last bit: all of them.
fn every_rung(device: &Device, shape: Shape) -> usize {
    let magnitude = operands::exact_magnitude_of(shape.k(), (Type::BF16, Type::BF16)).unwrap();
    let a = operands::integers(1, shape.a_len(), magnitude).unwrap();
    let b = operands::integers(2, shape.b_len(), magnitude).unwrap();
    let expected = reference::product(shape, &a, &b);
    let upload = |values: &[f32]| {
        let values = values.iter().map(|&value| Bf16::from_f32(value)).collect::<Vec<_>>();
        device.upload(&values).unwrap()
    };
    let (a, b) = (upload(&a), upload(&b));
    let mut c = device.zeros::<Bf16>(shape.c_len()).unwrap();
    let (stream, target) = (device.stream().unwrap(), Target::of(device));
    let mut checked = 0;
    for (entry, _) in ladder_of(Type::BF16) {
        // Tensor cores of another generation have other instructions.
        let arch = entry.declaration().arch.filter(|_| device.is_cuda());
        if arch.is_some_and(|arch| target.capability != (arch / 10, arch % 10)) {
            continue;
        }
        let name = format!("{} on {}, {shape}", entry.name(), device.name());
        c.fill_bytes(0xff).unwrap();
        product::multiply_views(&stream, entry, shape, a.all(), b.all(), c.all_mut())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        stream.synchronize().unwrap();
        let c = c.to_vec().unwrap();
        assert!(c.iter().map(|&x| f64::from(x)).eq(expected.iter().copied()), "{name}");
        checked += 1;
    }
    checked
}
