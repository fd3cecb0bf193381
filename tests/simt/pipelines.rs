//! Mbarriers and TMA copies: phases end when all arrivals and bytes have arrived, and copies have
//! the right elements.

use simt::{LaunchConfig, cpu::Options, device::*};

use super::{Aligned, launch_with, write};

/// Sums rows of boxes of 8 x 16 elements that are below each other: a ring of two stages, filled by
/// thread 0 of 32.
#[kernel(block = (32), dynamic_shared = 2 * 512, shared = 32)]
fn sum_of_boxes(count: u32, map: TensorMap<f32>, mut sums: Out<f32>) {
    let mut tiles = dynamic_shared![f32];
    let boxes = map.boxes::<8, 16, 64>();
    let pipeline = pipeline![2];
    let t = thread::thread_idx_x();
    if t == 0 {
        pipeline.init(32);
    }
    thread::sync_threads();
    let (mut producer, mut consumer) = (pipeline.producer(), pipeline.consumer());
    let mut next = 0;
    let mut sum = 0.0;
    for _ in 0..count {
        while t == 0 && next < count.min(2) {
            let stage = producer.acquire(512);
            tiles.load_box(stage * 128, &boxes, (0, next * 8, 0), producer.full());
            producer.advance();
            next += 1;
        }
        let stage = consumer.wait();
        // Lane t adds the four elements of group t % 4 of row t / 4, at the swizzled place.
        let (row, group) = (t as usize / 4, t as usize % 4);
        let four: [f32; 4] = tiles.load128(stage * 128 + row * 16 + (group ^ (row / 2)) * 4);
        sum += four[0] + 10.0 * four[1] + 100.0 * four[2] + 1000.0 * four[3];
        consumer.release();
        consumer.advance();
        if t == 0 && next < count {
            let stage = producer.acquire(512);
            tiles.load_box(stage * 128, &boxes, (0, next * 8, 0), producer.full());
            producer.advance();
            next += 1;
        }
    }
    sums[t as usize] = sum;
}

#[test]
fn boxes_come_stage_after_stage() {
    // 61 rows of 15 elements, 20 apart: the last box has five rows inside.
    const PITCH: usize = 20;
    let (rows, cols) = (61, 15);
    let matrix = Aligned::<[f32; 61 * PITCH]>(std::array::from_fn(|i| (i % 7) as f32));
    let shape = BoxShape { rows: 8, cols: 16, swizzle: 64 };
    // SAFETY: the matrix has these sizes.
    let map =
        unsafe { TensorMap::new(matrix.0.as_ptr(), [1, rows, cols], [0, PITCH], shape) }.unwrap();
    let mut sums = vec![0.0; 32];
    let config = LaunchConfig { dynamic_shared: 1024, ..LaunchConfig::new([1; 3], [32, 1, 1]) };
    launch_with(&sum_of_boxes, config, (8, map, write(&mut sums)), &Options::default()).unwrap();
    for (t, sum) in sums.iter().enumerate() {
        let (row, group) = (t / 4, t % 4);
        let element = |row: usize, col: usize| match row < rows && col < cols {
            true => matrix.0[row * PITCH + col],
            false => 0.0,
        };
        let places = (0..8 * 4).map(|i| (i / 4 * 8 + row, group * 4 + i % 4));
        let factor = |col: usize| [1.0, 10.0, 100.0, 1000.0][col % 4];
        let expected: f32 = places.map(|(row, col)| factor(col) * element(row, col)).sum();
        assert_eq!(*sum, expected, "thread {t}");
    }
}

/// Each block sums its part of x, and the first block of each cluster of four adds these sums.
#[kernel(block = (64), cluster = (4), dynamic_shared = 64 * 4, len(x = 256 * clusters, y = clusters))]
fn sum_over_clusters(clusters: u32, x: In<f32>, mut y: Out<f32>) {
    let mut parts = dynamic_shared![f32];
    let _ = clusters;
    let t = thread::thread_idx_x() as usize;
    parts[t] = x[thread::block_idx_x() as usize * 64 + t];
    cluster::sync();
    if cluster::block_rank() == 0 && t == 0 {
        let mut sum = 0.0;
        for rank in 0..cluster::blocks() {
            let part = parts.remote(rank);
            for i in (0..64).step_by(4) {
                let four: [f32; 4] = part.load128(i);
                sum += four[0] + four[1] + four[2] + four[3];
            }
        }
        y[thread::block_idx_x() as usize / 4] = sum;
    }
    cluster::sync();
}

#[test]
fn blocks_of_a_cluster_reach_each_others_shared_memory() {
    let x = (0..256 * 5).map(|i| (i % 11) as f32).collect::<Vec<_>>();
    let mut y = vec![0.0; 5];
    let config = LaunchConfig { dynamic_shared: 256, ..LaunchConfig::new([20, 1, 1], [64, 1, 1]) };
    let params = (5, super::read(&x), write(&mut y));
    launch_with(&sum_over_clusters, config, params, &Options::default()).unwrap();
    let expected = x.chunks(256).map(|part| part.iter().sum::<f32>()).collect::<Vec<_>>();
    assert_eq!(y, expected);
}

/// Copies two boxes and announces `bytes` of them.
#[kernel(block = (32), dynamic_shared = 2 * 512, shared = 8)]
fn announces(bytes: u32, map: TensorMap<f32>) {
    let (mut tiles, full) = (dynamic_shared![f32], mbarriers![1]);
    let boxes = map.boxes::<8, 16, 64>();
    if thread::thread_idx_x() == 0 {
        full.at(0).init(1);
        mbarrier::fence_init();
        full.at(0).arrive_expect(bytes);
        for i in 0..2 {
            tiles.load_box(i * 128, &boxes, (0, 0, 0), full.at(0));
        }
    }
    thread::sync_threads();
    full.at(0).wait(0);
}

/// Copies the box at (0, col).
#[kernel(block = (32), dynamic_shared = 512, shared = 8)]
fn copies_floats(col: u32, map: TensorMap<f32>) {
    let (mut tile, full) = (dynamic_shared![f32], mbarriers![1]);
    let boxes = map.boxes::<8, 16, 64>();
    if thread::thread_idx_x() == 0 {
        full.at(0).init(1);
        mbarrier::fence_init();
        full.at(0).arrive_expect(512);
        tile.load_box(0, &boxes, (0, 0, col), full.at(0));
    }
    thread::sync_threads();
    full.at(0).wait(0);
}

/// As `copies_floats`, for bytes.
#[kernel(block = (32), dynamic_shared = 128, shared = 8)]
fn copies_bytes(col: u32, map: TensorMap<u8>) {
    let (mut tile, full) = (dynamic_shared![u8], mbarriers![1]);
    let boxes = map.boxes::<8, 16, 0>();
    if thread::thread_idx_x() == 0 {
        full.at(0).init(1);
        mbarrier::fence_init();
        full.at(0).arrive_expect(128);
        tile.load_box(0, &boxes, (0, 0, col), full.at(0));
    }
    thread::sync_threads();
    full.at(0).wait(0);
}

#[test]
fn a_box_begins_at_a_multiple_of_sixteen_bytes() {
    let floats = Aligned::<[f32; 256]>([1.0; 256]);
    let bytes = Aligned::<[u8; 256]>([1; 256]);
    let (extents, strides) = ([1, 8, 32], [0, 32]);
    let shape = |swizzle| BoxShape { rows: 8, cols: 16, swizzle };
    // SAFETY: the matrices have these sizes.
    let (floats, bytes) = unsafe {
        let floats = TensorMap::new(floats.0.as_ptr(), extents, strides, shape(64));
        (floats.unwrap(), TensorMap::new(bytes.0.as_ptr(), extents, strides, shape(0)).unwrap())
    };
    let config =
        |dynamic_shared| LaunchConfig { dynamic_shared, ..LaunchConfig::new([1; 3], [32, 1, 1]) };
    let options = Options::default();
    let run = |element: usize, col: u32| match element {
        4 => launch_with(&copies_floats, config(512), (col, floats), &options),
        _ => launch_with(&copies_bytes, config(128), (col, bytes), &options),
    };
    // Partly outside, and completely outside.
    for (element, col) in [(4, 0), (4, 4), (4, 28), (4, 36), (1, 0), (1, 16), (1, 48)] {
        run(element, col).unwrap();
    }
    for (element, col) in [(4, 1), (4, 6), (4, 31), (4, 34), (1, 4), (1, 8), (1, 33)] {
        let fault = super::fault(run(element, col)).to_string();
        let expected = format!(
            "a box that begins at column {col} of elements of {element} bytes: it must begin at a multiple of \
             sixteen bytes of the row"
        );
        assert!(fault.contains(&expected) && fault.contains("simt/pipelines.rs"), "{fault}");
    }
}

/// Initialises an mbarrier twice.
#[kernel(block = (32), shared = 8)]
fn initialises_twice(n: u32) {
    let barriers = mbarriers![1];
    if thread::thread_idx_x() == 0 {
        barriers.at(0).init(n);
        barriers.at(0).init(n);
    }
}

#[test]
fn what_does_not_add_up_is_a_fault_that_names_its_line() {
    let matrix = Aligned::<[f32; 128]>([1.0; 128]);
    let shape = BoxShape { rows: 8, cols: 16, swizzle: 64 };
    // SAFETY: the matrix has these sizes.
    let map = unsafe { TensorMap::new(matrix.0.as_ptr(), [1, 8, 16], [0, 16], shape) }.unwrap();
    let run = |bytes: u32| {
        let config = LaunchConfig { dynamic_shared: 1024, ..LaunchConfig::new([1; 3], [32, 1, 1]) };
        launch_with(&announces, config, (bytes, map), &Options::default())
    };
    run(1024).unwrap();
    for (bytes, text) in [
        // Nobody waits for a second phase. That its bytes have arrived is seen at the end.
        (512, "512 more bytes were copied than announced"),
        (256, "256 more bytes were copied than announced"),
        (1025, "waits for 0 of 1 arrivals and 1 byte"),
    ] {
        let fault = super::fault(run(bytes)).to_string();
        assert!(fault.contains(text) && fault.contains("simt/pipelines.rs"), "{bytes}: {fault}");
    }
    let twice = super::launch(&initialises_twice, [1; 3], [32, 1, 1], (1,));
    let fault = super::fault(twice).to_string();
    assert!(fault.contains("initialised before") && fault.contains("simt/pipelines.rs"), "{fault}");
}

/// Copies a box to the blocks of its cluster that `blocks` names. Each of these adds its rank and
/// writes.
#[kernel(block = (32), cluster = (4), dynamic_shared = 512, shared = 8, len(y = 4 * 128))]
fn sends_a_box(blocks: u32, map: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, full) = (dynamic_shared![f32], mbarriers![1]);
    let boxes = map.boxes::<8, 16, 0>();
    let (t, rank) = (thread::thread_idx_x() as usize, cluster::block_rank());
    let is_meant = blocks >> rank & 1 == 1;
    if t == 0 {
        full.at(0).init(1);
        mbarrier::fence_init();
        if is_meant {
            full.at(0).arrive_expect(512);
        }
    }
    cluster::sync();
    if t == 0 && rank == 1 {
        tile.load_box_multicast(0, &boxes, (0, 0, 0), full.at(0), blocks as u16);
    }
    if is_meant {
        full.at(0).wait(0);
        for i in (t..128).step_by(32) {
            y[rank as usize * 128 + i] = tile[i] + rank as f32;
        }
    }
    cluster::sync();
}

#[test]
fn a_box_comes_to_each_block_that_is_named() {
    let matrix = Aligned::<[f32; 128]>(std::array::from_fn(|i| 10.0 * i as f32));
    let shape = BoxShape { rows: 8, cols: 16, swizzle: 0 };
    // SAFETY: the matrix has these sizes.
    let map = unsafe { TensorMap::new(matrix.0.as_ptr(), [1, 8, 16], [0, 16], shape) }.unwrap();
    let config = LaunchConfig { dynamic_shared: 512, ..LaunchConfig::new([4, 1, 1], [32, 1, 1]) };
    let run = |blocks: u32| {
        let mut y = vec![-1.0; 512];
        let params = (blocks, map, write(&mut y));
        launch_with(&sends_a_box, config, params, &Options::default()).map(|()| y)
    };
    // The sending block may be one of them or not.
    for blocks in [0b0010, 0b1111, 0b1001, 0b0100] {
        let expected = (0..4).flat_map(|rank| {
            let is_meant = blocks >> rank & 1 == 1;
            matrix.0.map(|value| if is_meant { value + rank as f32 } else { -1.0 })
        });
        assert_eq!(run(blocks).unwrap(), expected.collect::<Vec<_>>(), "{blocks:04b}");
    }
    for (blocks, text) in [(0, "0b0000000000000000"), (0b10001, "0b0000000000010001")] {
        let fault = super::fault(run(blocks).map(|_| ())).to_string();
        let expected = format!("a copy to the blocks {text}: the cluster has 4, a bit each");
        assert!(fault.contains(&expected) && fault.contains("simt/pipelines.rs"), "{fault}");
    }
}

/// Copies a tile of 8 x 16 elements, numbered from 0, to the box at (row, col).
#[kernel(block = (32), dynamic_shared = 512)]
fn stores_a_box(row: u32, col: u32, map: TensorMapMut<f32>) {
    let mut tile = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    // Group t % 4 of row t / 4 is at its swizzled place.
    let (of_row, group) = (t / 4, t % 4);
    let at = of_row * 16 + (group ^ (of_row / 2)) * 4;
    tile.store128(at, std::array::from_fn::<f32, 4, _>(|i| (t * 4 + i) as f32));
    fence_proxy_async();
    thread::sync_threads();
    if t == 0 {
        tile.store_box(0, &map.boxes::<8, 16, 64>(), (1, row, col));
        bulk::commit_group();
        bulk::wait_group::<0>();
    }
}

#[test]
fn what_a_box_has_outside_is_not_written() {
    // The second of two matrices of 12 x 18 elements, rows 20 apart.
    const PITCH: usize = 20;
    let shape = BoxShape { rows: 8, cols: 16, swizzle: 64 };
    for (row, col) in [(0, 0), (4, 0), (5, 0), (11, 4), (0, 16), (12, 0), (0, 20)] {
        let mut matrices = Aligned::<[f32; 2 * 12 * PITCH]>([-1.0; 2 * 12 * PITCH]);
        let (extents, strides) = ([2, 12, 18], [12 * PITCH, PITCH]);
        // SAFETY: the matrices have these sizes.
        let map = unsafe { TensorMapMut::new(matrices.0.as_mut_ptr(), extents, strides, shape) };
        let config = LaunchConfig { dynamic_shared: 512, ..LaunchConfig::new([1; 3], [32, 1, 1]) };
        let params = (row as u32, col as u32, map.unwrap());
        launch_with(&stores_a_box, config, params, &Options::default()).unwrap();
        for (i, value) in matrices.0.into_iter().enumerate() {
            let (matrix, i, j) = (i / (12 * PITCH), i / PITCH % 12, i % PITCH);
            let is_inside = matrix == 1 && (row..row + 8).contains(&i) && j < 18;
            let expected = match is_inside && (col..col + 16).contains(&j) {
                true => ((i - row) * 16 + j - col) as f32,
                false => -1.0,
            };
            assert_eq!(value, expected, "box ({row}, {col}): ({matrix}, {i}, {j})");
        }
    }
}
