//! A grid has at most 65535 rows of blocks. A taller product takes several launches, each with its own rows of A and
//! C.

use tests::{devices, products};

use crate::check::{Data, check, shape};

#[test]
fn more_rows_than_a_launch_has() {
    let mut multiplied = 0;
    for device in devices() {
        for (entry, product) in products() {
            let rows = device.limits().grid[1] as usize * product.tile()[0] as usize;
            // Two barriers for each of 67 million threads take seconds on the CPU. So on the CPU k is 0 for a kernel
            // with barriers: it has no phases, and the panels show in C only, which becomes zero.
            let barriers = entry.declaration().barriers != Some(0);
            let k = if barriers && !device.is_cuda() { 0 } else { 3 };
            multiplied += k;
            // n and k differ, so that an offset by the wrong one shows.
            check(&device, &[entry], shape(rows + 5, 2, k), Data::Integers, 1)
                .unwrap_or_else(|error| panic!("{error}"));
        }
    }
    assert!(multiplied > 0, "no product has seen A in several panels");
}
