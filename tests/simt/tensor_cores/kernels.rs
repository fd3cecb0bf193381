//! The kernels, which are compiled for fast and for checked launches.

use super::{
    device::{warpgroup::*, *},
    mistakes,
};

/// C (64 x `N`, row-major) = A B. k is a multiple of a stage's depth. Warp 4 starts the copies,
/// warpgroup 0 multiplies.
#[track_caller]
fn product<T: Factor<Sum = f32>, A: Layout, B: Layout, const N: usize>(
    k: u32,
    load_a: impl Fn(&mut DynamicShared<T>, usize, u32, Mbarrier),
    load_b: impl Fn(&mut DynamicShared<T>, usize, u32, Mbarrier),
    mut c: Out<f32>,
) {
    let mut tiles = dynamic_shared![T];
    let pipeline = pipeline![2];
    let t = thread::thread_idx_x();
    if t == 0 {
        pipeline.init(1);
    }
    thread::sync_threads();
    let (a_len, len) = (64 * A::DEPTH, (64 + N) * A::DEPTH);
    let steps = k / A::DEPTH as u32;
    if t / 32 == 4 {
        if warp::elect() {
            let mut producer = pipeline.producer();
            for step in 0..steps {
                let at = producer.acquire(2 * len as u32) * len;
                load_a(&mut tiles, at, step * A::DEPTH as u32, producer.full());
                load_b(&mut tiles, at + a_len, step * A::DEPTH as u32, producer.full());
                producer.advance();
            }
        }
    } else {
        let mut consumer = pipeline.consumer();
        let mut sums = Accumulators::<N>::zeroed();
        for step in 0..steps {
            let at = consumer.wait() * len;
            let (a, b) = (tiles.operand::<A>(at), tiles.operand::<B>(at + a_len));
            // In every second stage one instruction after the other.
            if step % 2 == 0 {
                sums.multiply_add_if(step > 0, a, b);
            } else {
                for number in 0..(A::DEPTH / T::STEP) as u32 {
                    sums.multiply_add_step(number, a, b);
                }
            }
            commit();
            wait::<0>();
            // The tensor cores have read for all of the warpgroup.
            if t == 0 {
                consumer.release();
            }
            consumer.advance();
        }
        sums.wait::<0>().for_each(|row, col, sum| c[row as usize * N + col as usize] = sum);
    }
}

/// A K-major operand's box.
fn k_major<T: Factor, const ROWS: usize, const DEPTH: usize, const SPAN: usize>(
    map: TensorMap<T>,
) -> impl Fn(&mut DynamicShared<T>, usize, u32, Mbarrier) {
    let boxes = map.boxes::<ROWS, DEPTH, SPAN>();
    move |tiles, at, p, full| tiles.load_box(at, &boxes, (0, 0, p), full)
}

/// An MN-major operand's boxes.
fn mn_major<T: Factor, const ROWS: usize, const DEPTH: usize>(
    map: TensorMap<T>,
) -> impl Fn(&mut DynamicShared<T>, usize, u32, Mbarrier) {
    let boxes = map.boxes::<DEPTH, 64, 128>();
    move |tiles, at, p, full| {
        for i in 0..ROWS / 64 {
            tiles.load_box(at + i * 64 * DEPTH, &boxes, (0, p, 64 * i as u32), full);
        }
    }
}

#[kernel(block = (160), dynamic_shared = 2 * 2 * (64 + 128) * 64, shared = 32, barriers = 1, arch = 90)]
pub fn k_major_by_k_major(k: u32, a: TensorMap<Bf16>, b: TensorMap<Bf16>, c: Out<f32>) {
    let (a, b) = (k_major::<_, 64, 64, 128>(a), k_major::<_, 128, 64, 128>(b));
    product::<Bf16, KMajor<64>, KMajor<64>, 128>(k, a, b, c);
}

#[kernel(block = (160), dynamic_shared = 2 * 2 * (64 + 256) * 64, shared = 32, barriers = 1, arch = 90)]
pub fn k_major_by_mn_major(k: u32, a: TensorMap<Bf16>, b: TensorMap<Bf16>, c: Out<f32>) {
    let (a, b) = (k_major::<_, 64, 64, 128>(a), mn_major::<_, 256, 64>(b));
    product::<Bf16, KMajor<64>, MnMajor<64>, 256>(k, a, b, c);
}

#[kernel(block = (160), dynamic_shared = 2 * 2 * (64 + 64) * 64, shared = 32, barriers = 1, arch = 90)]
pub fn mn_major_by_mn_major(k: u32, a: TensorMap<F16>, b: TensorMap<F16>, c: Out<f32>) {
    let (a, b) = (mn_major::<_, 64, 64>(a), mn_major::<_, 64, 64>(b));
    product::<F16, MnMajor<64>, MnMajor<64>, 64>(k, a, b, c);
}

#[kernel(block = (160), dynamic_shared = 2 * 2 * (64 + 192) * 32, shared = 32, barriers = 1, arch = 90)]
pub fn mn_major_by_k_major(k: u32, a: TensorMap<F16>, b: TensorMap<F16>, c: Out<f32>) {
    let (a, b) = (mn_major::<_, 64, 32>(a), k_major::<_, 192, 32, 64>(b));
    product::<F16, MnMajor<32>, KMajor<32>, 192>(k, a, b, c);
}

/// C (64 x 64) = 2 X X^T, with operands that the threads write themselves. x is row-major, 64 x 64.
/// `mistake`: what is wrong.
#[kernel(block = (128), dynamic_shared = 64 * 64 * 2 * 2, barriers = 2, arch = 90)]
pub fn written(mistake: u32, x: In<f32>, mut c: Out<f32>) {
    let mut tiles = dynamic_shared![Bf16];
    let t = thread::thread_idx_x() as usize;
    let (row, first) = (t / 2, t % 2 * 32);
    for col in first..first + 32 {
        // Groups of eight elements are at their swizzled places.
        let at = row * 64 + (col ^ (row % 8 * 8));
        if mistake != mistakes::NOT_WRITTEN || t != 77 {
            tiles[at] = Bf16::from_f32(x[row * 64 + col]);
        }
    }
    if mistake != mistakes::NO_FENCE && mistake != mistakes::FENCE_BEHIND_BARRIER {
        fence_proxy_async();
    }
    thread::sync_threads();
    if mistake == mistakes::FENCE_BEHIND_BARRIER && t == 0 {
        fence_proxy_async();
    }
    if mistake == mistakes::ONE_WARP_LESS && t / 32 == 2 {
        return;
    }
    let start = if mistake == mistakes::OTHER_OPERANDS && t / 32 == 3 { 64 * 64 } else { 0 };
    let x = tiles.operand::<KMajor<64>>(start);
    let mut sums = Accumulators::<64>::zeroed();
    sums.multiply(x, x);
    commit();
    sums.multiply_add(x, x);
    if mistake != mistakes::NO_COMMIT {
        commit();
    }
    if mistake == mistakes::OVERWRITTEN {
        thread::sync_threads();
        tiles[t * 32] = Bf16::from_f32(0.0);
    }
    let sums = match mistake {
        mistakes::PENDING => sums.wait::<1>(),
        _ => sums.wait::<0>(),
    };
    sums.for_each(|row, col, sum| c[row as usize * 64 + col as usize] = sum);
}

/// The stage is released before its product has been waited for.
#[kernel(block = (160), dynamic_shared = 64 * 64 * 2, shared = 16, barriers = 1, arch = 90)]
pub fn released_too_early(k: u32, x: TensorMap<F16>, mut c: Out<f32>) {
    let mut tiles = dynamic_shared![F16];
    let boxes = x.boxes::<64, 64, 128>();
    let pipeline = pipeline![1];
    let t = thread::thread_idx_x();
    if t == 0 {
        pipeline.init(128);
    }
    thread::sync_threads();
    if t == 128 {
        let mut producer = pipeline.producer();
        for step in 0..k / 64 {
            producer.acquire(64 * 64 * 2);
            tiles.load_box(0, &boxes, (0, 0, step * 64), producer.full());
            producer.advance();
        }
    } else if t < 128 {
        let mut consumer = pipeline.consumer();
        let mut sums = Accumulators::<64>::zeroed();
        for _ in 0..k / 64 {
            consumer.wait();
            let x = tiles.operand::<KMajor<64>>(0);
            sums.multiply_add(x, x);
            commit();
            consumer.release();
            consumer.advance();
        }
        sums.wait::<0>().for_each(|row, col, sum| c[row as usize * 64 + col as usize] = sum);
    }
}
