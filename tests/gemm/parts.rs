//! k split by every number of blocks.

use host::{Bf16, Compute, F16, gemm::Scalar};
use tests::{
    devices,
    gemm::{Bench, Case, Data, Number, Operand, Order, Place, Want, counted},
    once,
};

/// The sums of a tile are added from as many parts as blocks split k, 1 to 8. Some blocks have a
/// larger share of the tile. One kernel of each design that splits k.
fn by_every_number_of_parts<T: Number>() -> usize {
    let mut designs = <T as Scalar>::kernels()
        .filter(|kernel| kernel.product.most_splits > 1)
        .collect::<Vec<_>>();
    designs.dedup_by_key(|kernel| kernel.entry.declaration().name);
    for device in devices() {
        let mut bench = Bench::<T>::new(&device);
        for kernel in &designs {
            let [rows, cols, steps] = kernel.product.variant.tile.map(|size| size as usize);
            // A whole tile, and a stage for each block but the last two. There are more products
            // than SMs, because otherwise the blocks would have more shared memory than they
            // declare.
            let [m, n, k] = [rows, cols, 6 * steps + 8];
            let products = device.sms() as usize + 1;
            let data = Data::exact(k);
            let [a_by_columns, b_by_columns] = kernel.product.by_columns();
            let place = |size: (usize, usize), by_columns: bool| {
                let order = if by_columns { Order::Columns } else { Order::Rows };
                let one = Place::padded(size, order, 0);
                one.batch(products, one.extent(size).next_multiple_of(8))
            };
            let a = Operand::draw((m, k), place((m, k), a_by_columns), data, 77);
            let b = Operand::draw((k, n), place((k, n), b_by_columns), data, 78);
            let c = Place::dense((m, n), Order::Rows);
            let case = Case::plain(a, b, c.batch(products, m * n));
            let (want, name) = (Want::exact(&case), kernel.entry.name());
            let compute = if kernel.entry.is_tf32() { Compute::Tf32 } else { Compute::Native };
            for split in 1..=kernel.product.most_splits {
                let c = bench
                    .run_as(&case, |gemm| gemm.compute(compute).kernel(name)?.split_k(split))
                    .unwrap();
                want.check(&c).unwrap_or_else(|wrong| panic!("{wrong}\n{name} by {split}: {case}"));
            }
        }
    }
    designs.len()
}

#[test]
fn every_number_of_parts() {
    once!(crate::SOURCES);
    // Four by TMA, two of tf32.
    assert_eq!(by_every_number_of_parts::<f32>(), 6);
    let of_bf16 = by_every_number_of_parts::<Bf16>();
    assert_eq!(by_every_number_of_parts::<F16>(), of_bf16);
    counted("parts::every_number_of_parts", of_bf16);
}
