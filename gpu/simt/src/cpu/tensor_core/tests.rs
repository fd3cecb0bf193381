//! Integration test: a whole product from shared memory.

use super::{
    descriptor::Descriptor,
    format::Format,
    fragment::{self, ROWS, THREADS},
    layout::{Layout, Major},
    operand::OperandB,
    step::{Accumulation, Step},
    swizzle::{Swizzle, TensorBox},
};

const K: u32 = 64;
const N: u32 = 256;

/// Small integers, which are exact in every format and sum.
fn a(row: u32, k: u32) -> f32 {
    ((row * 7 + k * 3) % 17) as f32 - 8.0
}

fn b(k: u32, column: u32) -> f32 {
    ((k * 5 + column * 11) % 13) as f32 - 6.0
}

/// A product as a kernel's warpgroup makes it: row-major A (64 x 64) and row-major B (64 x 256),
/// both brought by TMA with the 128 byte swizzle; four steps, before each of which it adds to the
/// descriptors.
#[test]
fn a_product_from_boxes_in_shared_memory_to_fragments() {
    let format = Format::Bf16;
    let mut memory = vec![0xff; 64 * 1024];
    let mut store = |address: u32, value: f32| {
        let bytes = (format.encode(value) as u16).to_le_bytes();
        memory[address as usize..][..2].copy_from_slice(&bytes);
    };
    // One box of 64 rows of A, and four of 64 columns of B.
    let (start_a, start_b) = (1024, 16 * 1024);
    let box_a = TensorBox::new(start_a, 128, Swizzle::Bytes128).unwrap();
    for row in 0..ROWS as u32 {
        (0..K).for_each(|k| store(box_a.address(row, 2 * k), a(row, k)));
    }
    for column in 0..N {
        let start = start_b + column / 64 * 8192;
        let box_b = TensorBox::new(start, 128, Swizzle::Bytes128).unwrap();
        (0..K).for_each(|k| store(box_b.address(k, column % 64 * 2), b(k, column)));
    }
    let load = |address: u32| {
        let bytes = [memory[address as usize], memory[address as usize + 1]];
        format.decode(u16::from_le_bytes(bytes).into())
    };

    let descriptor = |start, leading| Descriptor {
        start,
        leading,
        stride: 1024,
        base_offset: 0,
        swizzle: Swizzle::Bytes128,
    };
    let of_a = descriptor(start_a, 16).encode().unwrap();
    let of_b = descriptor(start_b, 8192).encode().unwrap();
    for accumulation in [Accumulation::Fma, Accumulation::Exact, Accumulation::Truncating] {
        let mut d = vec![[0.0; N as usize / 2]; THREADS];
        for step in 0..u64::from(K) / 16 {
            // 32 bytes of a row of A; sixteen rows of B's boxes.
            let of_a = Descriptor::decode(of_a + step * (32 / 16)).unwrap();
            let of_b = Descriptor::decode(of_b + step * (16 * 128 / 16)).unwrap();
            let layout_a = Layout::new(of_a, Major::K, format).unwrap();
            let layout_b = Layout::new(of_b, Major::Mn, format).unwrap();
            let mut rows = [[0.0; 16]; ROWS];
            let mut columns = OperandB::new(N as usize);
            for k in 0..16 {
                for (row, elements) in rows.iter_mut().enumerate() {
                    elements[k] = load(layout_a.address(row as u32, k as u32));
                }
                for column in 0..N {
                    let value = load(layout_b.address(column, k as u32));
                    columns.set(k, column as usize, value);
                }
            }
            let step = Step { format, accumulation, a: &rows, b: &columns };
            for (thread, d) in d.iter_mut().enumerate() {
                step.multiply_accumulate(thread, d);
            }
        }
        for (thread, d) in d.iter().enumerate() {
            for (i, &sum) in d.iter().enumerate() {
                let (row, column) = fragment::accumulator(thread, i);
                let products = (0..K).map(|k| a(row as u32, k) * b(k, column as u32));
                assert_eq!(sum, products.sum::<f32>(), "{row} {column} {accumulation:?}");
            }
        }
    }
}
