//! Numbers that no product has: a caller may give any.

use std::ops::Range;

use super::*;

/// The jobs of a size with such numbers.
fn jobs(sizes: [u64; 3]) -> impl Iterator<Item = Job> {
    const MOST: usize = usize::MAX;
    let shape = Shape::new(sizes[0], sizes[1], sizes[2]).unwrap();
    let tiles = [[1, 1], [64, MOST], [MOST, 64], [MOST, MOST], [0, 0]];
    let depths = [None, Some(0), Some(100), Some(MOST)];
    let of = move |element_bytes, device_limit| {
        let job = Job::new(shape, element_bytes, [64, 64], device_limit);
        tiles.into_iter().flat_map(move |tile| depths.map(|depth| Job { tile, depth, ..job }))
    };
    let limits = [0, 1 << 20, u64::MAX];
    let bytes = [1, 1 << 40, MOST / 2, MOST];
    bytes.into_iter().flat_map(move |bytes| limits.into_iter().flat_map(move |it| of(bytes, it)))
}

#[test]
fn no_number_of_a_job_or_of_a_step_overflows() {
    const MOST: usize = usize::MAX;
    for sizes in [[1, 1, 1], [1000, 3000, 500], [u32::MAX.into(), 1, 1], [0, 5, 5], [5, 5, 0]] {
        for job in jobs(sizes) {
            let least = job.least_limit();
            let plan = match BlockPlan::new(&job) {
                Ok(plan) => plan,
                Err(Error::Argument { argument, .. }) if argument == "device_limit" => continue,
                Err(error) => panic!("{job:?}: {error}"),
            };
            let limit = job.device_limit;
            assert!(plan.device_bytes() <= limit, "{job:?}: {plan:?}");
            assert!(sizes[0] == 0 || least <= limit, "{job:?}");
            let step = Step { row: MOST, col: MOST, depth: MOST };
            let ends = [plan.rows(step), plan.cols(step), plan.depth(step)];
            assert!(ends.iter().all(Range::is_empty), "{job:?}: {ends:?}");
        }
    }
    let shape = Shape::new(1000, 1000, 1000).unwrap();
    let error = BlockPlan::new(&Job::new(shape, MOST, [64, 64], u64::MAX)).unwrap_err().to_string();
    assert!(error.starts_with("device_limit = 18446744073709551615: must be at least "), "{error}");
}
