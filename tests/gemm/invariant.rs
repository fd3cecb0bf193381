//! The same bits for a row, whatever is beside it: the orders that kernels declare, and pairs of
//! products with common rows.

use std::collections::BTreeMap;

use gpu::registry::{Entry, SumOrder};
use host::{Bf16, Compute, Device, F16, Gemm, Matrix, MatrixView, gemm::Scalar, gpu};
use tests::{
    devices,
    gemm::{Number, bytes, counted},
    invariant::Pair,
};

/// C of a few sizes and numbers, by one kernel.
fn product<T: Number + Scalar<O>, O: Number>(
    device: &Device,
    entry: &'static Entry,
    [m, n, k]: [usize; 3],
    number: impl Fn(usize, usize, usize) -> f64,
) -> Vec<u8> {
    let stream = device.stream().unwrap();
    // Stored as the kernel takes it.
    let by_columns = entry.by_columns();
    let matrix = |of: usize, rows: usize, cols: usize| {
        let (rows, cols) = if by_columns[of] { (cols, rows) } else { (rows, cols) };
        let place = |i: usize| match by_columns[of] {
            true => (i % cols, i / cols),
            false => (i / cols, i % cols),
        };
        let all = (0..rows * cols).map(place).map(|(row, col)| T::nearest(number(of, row, col)));
        Matrix::from_row_major(device, rows, cols, &all.collect::<Vec<_>>()).unwrap()
    };
    let (a, b) = (matrix(0, m, k), matrix(1, k, n));
    let view = |of: usize, matrix| -> MatrixView<T> {
        let view = Matrix::view(matrix);
        if by_columns[of] { view.t() } else { view }
    };
    let mut c = Matrix::<O>::zeros(device, m, n).unwrap();
    let gemm = Gemm::<T, O>::of_types().compute(Compute::Tf32).entry(entry).unwrap();
    gemm.run(&stream, view(0, &a), view(1, &b), c.view_mut()).unwrap();
    bytes(&c.to_row_major().unwrap()).to_vec()
}

/// Numbers of many sizes; and one product for an element, which is -0 after an underflow.
fn number(of: usize, row: usize, col: usize) -> f64 {
    let mut hash = (of * 31 + row * 7919 + col) as u64 ^ 0x5555;
    for _ in 0..3 {
        hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
    }
    ((hash >> 12) as f64 / (1u64 << 51) as f64 - 1.0) * 2f64.powi((hash & 7) as i32 - 4)
}

/// Kernels that declare one order give the same bits; those of two differ for some k.
fn orders<T: Number + Scalar<O>, O: Number>(lengths: &[usize]) -> usize {
    let device = Device::cpu();
    let mut count = 0;
    let mut apart = BTreeMap::<[String; 2], bool>::new();
    for &k in lengths {
        let tiny = <T as Number>::Sum::TINY.sqrt() / 4.0;
        let underflow = |of: usize, _: usize, _: usize| if of == 0 { -tiny } else { tiny };
        let mut of_order = BTreeMap::<String, Vec<(&'static str, [Vec<u8>; 2])>>::new();
        for kernel in <T as Scalar<O>>::kernels() {
            let order = kernel.product.sum_order(k);
            if order == SumOrder::Own {
                continue;
            }
            let shape = [5, 12, k];
            let c = product::<T, O>(&device, kernel.entry, shape, number);
            let zero = product::<T, O>(&device, kernel.entry, shape, underflow);
            let bits = [c, zero];
            let all = of_order.entry(format!("{order:?}")).or_default();
            if let Some((name, first)) = all.first() {
                assert!(*first == bits, "{} and {name}, {order:?}, k = {k}", kernel.entry.name());
            }
            all.push((kernel.entry.name(), bits));
        }
        count += 1;
        let orders = of_order.iter().collect::<Vec<_>>();
        for (number, (one, bits)) in orders.iter().enumerate() {
            for (other, others) in &orders[number + 1..] {
                let key = [(*one).clone(), (*other).clone()];
                *apart.entry(key).or_default() |= bits[0].1 != others[0].1;
            }
        }
    }
    // Rounded to 16 bits some would be equal. On Hopper, which the CPU device models, `mma` and
    // `wgmma` may be, too.
    let may_be_equal = |order: &String| size_of::<O>() == 2 || order.ends_with("ma");
    for (orders, differ) in apart {
        assert!(differ || orders.iter().all(may_be_equal), "{orders:?} are one order");
    }
    count
}

#[test]
fn kernels_of_one_order_have_the_same_bits() {
    // Zeros follow the product in all kernels, in some, and in none.
    let lengths = [1, 8, 96];
    let halves = orders::<Bf16, f32>(&[96, 100]) + orders::<F16, F16>(&[40]);
    let count = halves + orders::<f32, f32>(&[1, 8, 96, 200]) + orders::<f64, f64>(&lengths);
    counted("invariant::kernels_of_one_order_have_the_same_bits", count);
}

#[test]
fn plans_of_common_rows_have_one_order() {
    let (mut planned, mut refused) = (BTreeMap::new(), 0);
    for seed in 0..600 {
        match Pair::large(seed).plan().unwrap_or_else(|wrong| panic!("{wrong}")) {
            Some(order) => *planned.entry(format!("{order:?}")).or_insert(0) += 1,
            None => refused += 1,
        }
    }
    // Every rule.
    assert!(planned.len() >= 14, "{planned:?}");
    counted("invariant::plans_of_common_rows_have_one_order", 600 - refused);
}

#[test]
fn common_rows_have_the_same_bits() {
    for device in devices() {
        let run =
            |seed| Pair::small(seed, 30).run(&device).unwrap_or_else(|wrong| panic!("{wrong}"));
        let count = (0..24).filter_map(run).count();
        counted("invariant::common_rows_have_the_same_bits", count);
    }
}
