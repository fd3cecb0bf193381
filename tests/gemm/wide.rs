//! Elements more than 2^32 places after the first; more rows and more products than one launch has.

use host::{Batch, BatchMut, Buffer, Device, Error, Gemm, Stream};
use tests::once;
use tests::{
    cuda_devices, devices, everything, full,
    gemm::{Bench, Case, Data, Number, Operand, Order, Place, Random, Side, Suite, bytes, counted},
    skip,
};

/// Beyond 2^31 in one step, beyond 2^32 in two.
const STRIDE: usize = (1 << 31) + 1;
/// Elements of a matrix, or a batch, that is not wide, and room after the last element of a wide
/// one.
const SMALL: usize = 40;

/// The layout of a matrix: strides between rows and between columns, and between products.
type Way = ([usize; 2], usize);

/// Rows, columns, or the matrices of a batch are far apart.
const WAYS: [Way; 3] = [([STRIDE, 1], 3), ([1, STRIDE], 3), ([3, 1], STRIDE)];

/// Zeros with room for anything wide, and the number of steps: three of everything, or two if there
/// is no more memory. On the CPU device zeros take no memory until they are written.
fn room<T: Number>(device: &Device) -> Option<(Buffer<T>, usize)> {
    // f64 needs twice as much: more than most machines have in three steps.
    let most = if T::SLACK == 1.0 { 3 } else { 2 };
    let zeros = |count| match device.zeros((count - 1) * STRIDE + SMALL) {
        Ok(buffer) => Some((buffer, count)),
        Err(Error::OutOfMemory { .. }) => None,
        Err(other) => panic!("{other}"),
    };
    let steps = (2..=most).rev().find_map(zeros);
    match steps {
        Some((_, count)) if count == most => {}
        Some(_) => skip("2^32 elements: no address space; 2^31 were tested", "CI"),
        None => skip("2^31 elements: no address space", "CI"),
    }
    steps
}

/// The index of an element (product, row, column).
fn at((strides, step): Way, (i, row, col): (usize, usize, usize)) -> usize {
    i * step + row * strides[0] + col * strides[1]
}

/// `C = A B` of `count` rows and columns, for one or `count` products. The `wide`th of A, B and C
/// is in `memory`, which is zero before and after.
fn run<T: Number>(
    stream: &Stream,
    kernel: &str,
    memory: Buffer<T>,
    (wide, way, count): (usize, Way, usize),
) -> Buffer<T> {
    let layout = |it| if it == wide { way } else { ([3, 1], 9) };
    // Matrices that are written do not overlap: if rows are far apart there is one matrix.
    let products = if way.1 == STRIDE { count } else { 1 };
    let places =
        (0..products).flat_map(|i| (0..count * count).map(move |n| (i, n / count, n % count)));
    let places = places.collect::<Vec<_>>();
    let (mut random, mut memory) = (Random::new(70), Some(memory));
    let mut buffers = [0, 1, 2].map(|it| match it == wide {
        true => memory.take().unwrap(),
        false => stream.device().zeros(SMALL).unwrap(),
    });
    for (it, buffer) in buffers.iter_mut().enumerate().take(2) {
        for &place in &places {
            let value = random.number(Data::exact(3));
            buffer.write(at(layout(it), place), &[value]).unwrap();
        }
    }
    let element = |buffers: &[Buffer<T>; 3], it: usize, place| -> f64 {
        let mut value = [T::nearest(0.0)];
        buffers[it].read(at(layout(it), place), &mut value).unwrap();
        value[0].into()
    };

    let [a, b, c] = &mut buffers;
    let size = (count, count);
    let batch = |buffer, it| {
        let (strides, step) = layout(it);
        Batch::new(buffer, size, strides, products, step).unwrap()
    };
    let (strides, step) = layout(2);
    let c = BatchMut::new(c.view_mut(..).unwrap(), size, strides, products, step).unwrap();
    let (a, b) = (batch(a.view(..).unwrap(), 0), batch(b.view(..).unwrap(), 1));
    Gemm::new().kernel(kernel).unwrap().launch_batch(stream, a, b, c).unwrap();

    let context = || format!("{kernel} on {}, operand {wide} {way:?}", stream.device());
    for &(i, row, col) in &places {
        let product = |p| element(&buffers, 0, (i, row, p)) * element(&buffers, 1, (i, p, col));
        let want = (0..count).map(product).sum::<f64>();
        assert_eq!(element(&buffers, 2, (i, row, col)), want, "({i}, {row}, {col}), {}", context());
    }
    let [a, b, c] = buffers;
    let mut memory = [a, b, c].into_iter().nth(wide).unwrap();
    for &place in &places {
        memory.write(at(way, place), &[T::nearest(0.0)]).unwrap();
    }
    // The place where a wrapped index would have written.
    let mut head = vec![T::nearest(f64::NAN); SMALL];
    memory.read(0, &mut head).unwrap();
    assert!(head.iter().all(|&x| x.into() == 0.0), "the start of it: {head:?}, {}", context());
    memory
}

fn strides<T: Number>() {
    let mut count = 0;
    for device in devices() {
        let Some((mut memory, steps)) = room::<T>(&device) else { return };
        let stream = device.stream().unwrap();
        for kernel in T::general() {
            for (wide, way) in (0..3).flat_map(|wide| WAYS.map(|way| (wide, way))) {
                memory = run(&stream, kernel, memory, (wide, way, steps));
                count += 1;
            }
        }
    }
    counted("wide::strides_beyond_2_31", count / devices().len() / T::general().len());
}

/// A, B and C in turn have rows, columns or matrices so far apart that neither an `i32` nor a `u32`
/// holds the distance.
#[test]
fn strides_beyond_2_31() {
    once!(crate::SOURCES);
    strides::<f32>();
    strides::<f64>();
}

/// As in rocBLAS's tests: 2048 x 2048 with rows so far apart that a matrix has more than 2^31
/// elements.
#[test]
fn a_long_leading_dimension_on_a_gpu() {
    const SIZE: usize = 2048;
    const LEADING: usize = 1_049_100;
    for device in cuda_devices() {
        let mut count = 0;
        let case = Case::<f32>::dense([SIZE; 3], Data::exact(SIZE), 71);
        let right = Bench::new(&device).run(&case, None).unwrap();
        let values = [case.a.values(), case.b.values()];
        let stream = device.stream().unwrap();
        for wide in 0..3 {
            let leading = |it| if it == wide { LEADING } else { SIZE };
            let mut buffers = [0, 1, 2].map(|it| device.zeros::<f32>(SIZE * leading(it)).unwrap());
            for (it, values) in values.iter().enumerate() {
                for (row, values) in values.chunks(SIZE).enumerate() {
                    buffers[it].write(row * leading(it), values).unwrap();
                }
            }
            let [a, b, c] = &mut buffers;
            let size = (SIZE, SIZE);
            let a = Batch::new(a.view(..).unwrap(), size, [leading(0), 1], 1, 0).unwrap();
            let b = Batch::new(b.view(..).unwrap(), size, [leading(1), 1], 1, 0).unwrap();
            let view = BatchMut::new(c.view_mut(..).unwrap(), size, [leading(2), 1], 1, 0).unwrap();
            Gemm::new().launch_batch(&stream, a, b, view).unwrap();
            for (row, right) in right.chunks(SIZE).enumerate() {
                let mut found = vec![f32::NAN; SIZE];
                c.read(row * leading(2), &mut found).unwrap();
                assert!(bytes(&found) == bytes(right), "operand {wide}, row {row}");
            }
            count += 1;
        }
        counted("wide::a_long_leading_dimension_on_a_gpu", count);
    }
}

/// One kernel if no GPU is required: the offsets are the host's, and its tile is the smallest.
fn kernels<T: Number>() -> Vec<&'static str> {
    let mut general = T::general();
    general.truncate(if full() { general.len() } else { 1 });
    general
}

/// A launch has 65535 rows of blocks. With more rows of C it takes two launches, and with more
/// columns for a column-major C.
fn rows<T: Number>() {
    for (number, name) in kernels::<T>().into_iter().enumerate() {
        let kernel = T::kernels().find(|kernel| kernel.entry.name() == name).unwrap();
        let long = 65535 * kernel.product.variant.tile[0] as usize + 5;
        // The larger tiles take long on a CPU.
        let suite = if number == 0 || everything() { Suite::<T>::new() } else { Suite::cuda() };
        let mut suite = suite.only(&[name]);
        let data = Data::exact(1);
        // Different distances, so that a wrong one shows.
        let a = Operand::draw((long, 1), Place::strided([3, 1]), data, 72);
        let b = Operand::draw((1, 1), Place::strided([1, 1]), data, 73);
        let case = Case::plain(a, b, Place::strided([2, 1])).scaled(1.0, 2.0, data, 74);
        suite.exact(&case.biased(Side::Row, data, 75));

        let a = Operand::draw((2, 1), Place::strided([1, 1]), data, 76);
        let b = Operand::draw((1, long), Place::strided([1, 3]), data, 77);
        let case = Case::plain(a, b, Place::padded((2, long), Order::Columns, 1));
        suite.exact(&case.biased(Side::Col, data, 78));
        suite.done("wide::more_rows_than_a_launch_has");
    }
}

#[test]
fn more_rows_than_a_launch_has() {
    once!(crate::SOURCES);
    rows::<f32>();
    if full() {
        rows::<f64>();
    }
}

/// A launch has 65535 layers of blocks. A larger batch takes several launches.
#[test]
fn more_products_than_a_launch_has() {
    once!(crate::SOURCES);
    let count = 2 * 65535 + 3;
    let mut suite = Suite::<f32>::new().only(&kernels::<f32>());
    let data = Data::exact(1);
    let one = |step| Place::strided([1, 1]).batch(count, step);
    let a = Operand::draw((1, 1), one(2), data, 79);
    let b = Operand::draw((1, 1), one(3), data, 80);
    let case = Case::plain(a, b, one(1)).scaled(1.0, 2.0, data, 81);
    suite.exact(&case.biased(Side::Col, data, 82));
    suite.done("wide::more_products_than_a_launch_has");
}

/// If nothing is read, or there is a single row, strides may be any, however large.
#[test]
fn distances_to_nothing() {
    once!(crate::SOURCES);
    let (long, data) = (65535 * 32 + 5, Data::exact(1));
    let far = |strides| Place::strided(strides);
    let mut suite = Suite::<f32>::new().only(&kernels::<f32>()[..1]);
    // Several launches, each with another part of an empty A; several layers of such.
    let (a, b) = (
        Operand::noise((long, 0), far([usize::MAX; 2])),
        Operand::noise((0, 1), far([usize::MAX; 2])),
    );
    suite.exact(&Case::plain(a, b, far([1, 1])).scaled(1.0, 2.0, data, 83));
    let many = |step| far([usize::MAX; 2]).batch(65535 + 3, step);
    let (a, b) =
        (Operand::noise((1, 0), many(usize::MAX)), Operand::noise((0, 1), many(usize::MAX)));
    suite.exact(&Case::plain(a, b, far([1, 1]).batch(65535 + 3, 1)).scaled(1.0, 2.0, data, 84));
    // One row, one column, one product.
    let a = Operand::draw((1, 50), far([usize::MAX, 1]).batch(1, usize::MAX), data, 85);
    let b = Operand::draw((50, 1), far([1, usize::MAX]).batch(1, usize::MAX), data, 86);
    suite.exact(&Case::plain(a, b, far([usize::MAX; 2]).batch(1, usize::MAX)));
    suite.done("wide::distances_to_nothing");
}
