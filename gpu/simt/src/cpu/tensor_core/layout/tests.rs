//! Places of elements against the sources, and against what TMA writes.

use std::collections::HashSet;

use super::{
    super::{fragment, swizzle::TensorBox},
    *,
};

const SWIZZLES: [Swizzle; 4] =
    [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128];

fn descriptor(start: u32, leading: u32, stride: u32, swizzle: Swizzle) -> Descriptor {
    Descriptor { start, leading, stride, base_offset: 0, swizzle }
}

/// Where a CuTe layout, of (extent, stride in elements) for each dimension, has an element.
fn cute(mut i: u32, dimension: &[(u32, u32)]) -> u32 {
    let mut place = 0;
    for &(extent, stride) in dimension {
        place += i % extent * stride;
        i /= extent;
    }
    place
}

/// The PTX ISA's examples: its "exact layouts", with the descriptor's two offsets in elements.
#[test]
fn the_layouts_are_those_of_the_ptx_isa() {
    type Dimension = &'static [(u32, u32)];
    let examples: [(Format, Major, Swizzle, u32, u32, Dimension, Dimension); 5] = [
        // ((8,2),(4,4)):((4,32),(1,64))
        (Format::Tf32, Major::K, Swizzle::None, 64, 32, &[(8, 4), (2, 32)], &[(4, 1), (4, 64)]),
        // ((8,2),(4,4)):((8,64),(1,4))
        (Format::Tf32, Major::K, Swizzle::Bytes32, 4, 64, &[(8, 8), (2, 64)], &[(4, 1), (4, 4)]),
        // ((8,1,2),(8,2)):((1,8,64),(8,128))
        (
            Format::Bf16,
            Major::Mn,
            Swizzle::None,
            128,
            64,
            &[(8, 1), (1, 8), (2, 64)],
            &[(8, 8), (2, 128)],
        ),
        // ((8,2,2),(8,2)):((1,8,128),(16,256))
        (
            Format::Bf16,
            Major::Mn,
            Swizzle::Bytes32,
            128,
            256,
            &[(8, 1), (2, 8), (2, 128)],
            &[(8, 16), (2, 256)],
        ),
        // ((8,4,2),(8,2)):((1,8,256),(32,512))
        (
            Format::Bf16,
            Major::Mn,
            Swizzle::Bytes64,
            256,
            512,
            &[(8, 1), (4, 8), (2, 256)],
            &[(8, 32), (2, 512)],
        ),
    ];
    for (format, major, swizzle, leading, stride, rows, columns) in examples {
        let bytes = format.bytes();
        let start = 3072;
        let descriptor = descriptor(start, leading * bytes, stride * bytes, swizzle);
        let layout = Layout::new(descriptor, major, format).unwrap();
        let extent = rows.iter().map(|&(extent, _)| extent).product();
        for i in 0..extent {
            for k in 0..format.step() as u32 {
                let plain = start + (cute(i, rows) + cute(k, columns)) * bytes;
                assert_eq!(layout.address(i, k), swizzle.apply(plain), "{layout:?} {i} {k}");
            }
        }
    }
}

/// CUTLASS's canonical layouts of 128 bytes, of which the PTX ISA has no example with numbers.
#[test]
fn the_widest_layouts_are_cutlass() {
    let (leading, stride) = (8192, 1024);
    let descriptor = descriptor(0, leading, stride, Swizzle::Bytes128);
    let mn_major = Layout::new(descriptor, Major::Mn, Format::F16).unwrap();
    let k_major = Layout::new(descriptor, Major::K, Format::F16).unwrap();
    for i in 0..256 {
        for k in 0..16 {
            // ((T,8,m),(8,k)):((1,T,LBO),(8T,SBO)), with T = 8 elements of 16 bits
            let place = 2 * (cute(i, &[(8, 1), (8, 8), (4, leading / 2)]))
                + 2 * cute(k, &[(8, 64), (2, stride / 2)]);
            assert_eq!(mn_major.address(i, k), Swizzle::Bytes128.apply(place));
            // ((8,m),(T,2)):((8T,SBO),(1,T))
            let place = 2 * cute(i, &[(8, 64), (32, stride / 2)]) + 2 * cute(k, &[(16, 1)]);
            assert_eq!(k_major.address(i, k), Swizzle::Bytes128.apply(place));
        }
    }
}

/// Without a gap between its pieces an operand fills its memory, each byte once.
#[test]
fn elements_do_not_overlap() {
    for format in [Format::F16, Format::Bf16, Format::Tf32] {
        for major in [Major::K, Major::Mn] {
            for swizzle in SWIZZLES {
                let (rows, step) = (256, format.step() as u32);
                let atom = 8 * swizzle.width();
                // The bytes of K of all steps together: as many as the width holds.
                let steps = match major {
                    Major::K => swizzle.width().max(32) / 32,
                    Major::Mn => 1,
                };
                let (leading, stride) = match (major, swizzle) {
                    (Major::K, Swizzle::None) => (atom, 2 * atom),
                    (Major::K, _) => (16, atom),
                    (Major::Mn, Swizzle::None) => (rows / 8 * atom, atom),
                    (Major::Mn, _) => (2 * atom, atom),
                };
                let mut places = HashSet::new();
                for part in 0..steps {
                    let descriptor = descriptor(1024 + 32 * part, leading, stride, swizzle);
                    let Ok(layout) = Layout::new(descriptor, major, format) else {
                        assert_eq!((major, format), (Major::Mn, Format::Tf32));
                        continue;
                    };
                    for i in 0..rows {
                        for k in 0..step {
                            assert!(places.insert(layout.address(i, k)), "{layout:?} {i} {k}");
                        }
                    }
                }
                let bytes = steps * rows * 32;
                assert!(places.iter().all(|place| (1024..1024 + bytes).contains(place)));
            }
        }
    }
}

/// A box of 64 numbers of K by 256 rows, as A and B lay there on an H200. The next step starts 32
/// bytes on.
#[test]
fn a_k_major_operand_is_what_tma_wrote() {
    for (format, swizzle) in [
        (Format::Bf16, Swizzle::Bytes128),
        (Format::F16, Swizzle::Bytes64),
        (Format::Bf16, Swizzle::Bytes32),
        (Format::Tf32, Swizzle::Bytes128),
    ] {
        let (width, bytes, step) = (swizzle.width(), format.bytes(), format.step() as u32);
        for start in [0, 1024, 48 * 1024] {
            let tensor_box = TensorBox::new(start, width, swizzle).unwrap();
            for first in (0..width / bytes).step_by(step as usize) {
                let descriptor = descriptor(start + first * bytes, 16, 8 * width, swizzle);
                let layout = Layout::new(descriptor, Major::K, format).unwrap();
                for i in 0..256 {
                    for k in 0..step {
                        let expected = tensor_box.address(i, (first + k) * bytes);
                        assert_eq!(layout.address(i, k), expected);
                    }
                }
            }
        }
    }
}

/// B as it is stored row by row: boxes of 64 rows of K by the width's columns, side by side in
/// memory. The next step is sixteen rows on.
#[test]
fn an_mn_major_operand_is_several_boxes_that_tma_wrote() {
    for (swizzle, boxes) in [(Swizzle::Bytes128, 4), (Swizzle::Bytes64, 8), (Swizzle::Bytes32, 16)]
    {
        let width = swizzle.width();
        let (columns, box_bytes) = (width / 2, 64 * width);
        for start in [0, 16 * 1024] {
            for first in [0, 16, 32, 48] {
                let descriptor = descriptor(start + first * width, box_bytes, 8 * width, swizzle);
                let layout = Layout::new(descriptor, Major::Mn, Format::Bf16).unwrap();
                for i in 0..columns * boxes {
                    let start = start + i / columns * box_bytes;
                    let tensor_box = TensorBox::new(start, width, swizzle).unwrap();
                    for k in 0..16 {
                        let expected = tensor_box.address(first + k, i % columns * 2);
                        assert_eq!(layout.address(i, k), expected);
                    }
                }
            }
        }
    }
}

/// What a box without a swizzle is read through: rows of 16 bytes are core matrices.
#[test]
fn narrow_boxes_need_no_swizzle() {
    let rows = 64;
    let descriptor = descriptor(512, rows * 16, 128, Swizzle::None);
    let layout = Layout::new(descriptor, Major::K, Format::F16).unwrap();
    for i in 0..rows {
        for k in 0..16 {
            // Two boxes, each eight numbers of K wide.
            let tensor_box = TensorBox::new(512 + k / 8 * rows * 16, 16, Swizzle::None).unwrap();
            assert_eq!(layout.address(i, k), tensor_box.address(i, k % 8 * 2));
        }
    }
}

/// Two kernels that ran on an H200 load A with `ldmatrix`, which gives lane l two neighbours of row
/// l / 4 of each of four matrices whose rows' addresses the lanes name. They swizzle by themselves;
/// the same elements are in `wgmma`'s fragment of A, and at these addresses.
#[test]
fn a_in_registers_is_what_ldmatrix_loaded_on_a_gpu() {
    for (depth, swizzle) in [(64, Swizzle::Bytes128), (32, Swizzle::Bytes64)] {
        let row_bytes = depth * 2;
        // The address that thread `thread` names in step `step`.
        let named = |thread: u32, step: u32| {
            let (row, half) = (thread / 32 * 16 + thread % 16, thread % 32 / 16);
            let turn = if depth == 64 { row % 8 } else { row / 2 % 4 };
            row * row_bytes + ((step * 2 + half) ^ turn) * 16
        };
        for step in 0..depth / 16 {
            let descriptor = descriptor(32 * step, 16, 8 * row_bytes, swizzle);
            let layout = Layout::new(descriptor, Major::K, Format::Bf16).unwrap();
            for thread in 0..fragment::THREADS as u32 {
                let (warp, lane) = (thread / 32, thread % 32);
                for i in 0..8 {
                    let names_the_row = 32 * warp + 8 * (i / 2) + lane / 4;
                    let loaded = named(names_the_row, step) + 4 * (lane % 4) + 2 * (i % 2);
                    let (row, k) = fragment::operand_a(Format::Bf16, thread as usize, i as usize);
                    assert_eq!(layout.address(row as u32, k as u32), loaded);
                }
            }
        }
    }
}

/// A pattern that starts elsewhere than at a multiple of what it repeats after: the whole operand
/// is as far on.
#[test]
fn a_base_offset_moves_the_pattern_with_the_operand() {
    for swizzle in [Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128] {
        for major in [Major::K, Major::Mn] {
            let aligned = descriptor(2048, 4096, 8 * swizzle.width(), swizzle);
            let aligned_layout = Layout::new(aligned, major, Format::Bf16).unwrap();
            for base_offset in 0..8 {
                let later = 128 * base_offset;
                let moved = Descriptor { start: 2048 + later, base_offset, ..aligned };
                let moved = Layout::new(moved, major, Format::Bf16).unwrap();
                for i in 0..64 {
                    for k in 0..16 {
                        assert_eq!(moved.address(i, k), aligned_layout.address(i, k) + later);
                    }
                }
            }
        }
    }
}

#[test]
fn tf32_is_never_transposed() {
    let descriptor = descriptor(0, 16, 1024, Swizzle::Bytes128);
    let error = Layout::new(descriptor, Major::Mn, Format::Tf32).unwrap_err();
    assert_eq!(error, Transposed(Format::Tf32));
    assert!(error.to_string().contains("K-major"), "{error}");
}
