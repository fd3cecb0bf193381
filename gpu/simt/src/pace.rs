/// Clusters of a launch that keep step: before a round of their work each lets the others come as far.
///
/// What clusters read at the same time the second-level cache has to read once. But nothing holds them together, and in long rounds
/// they drift apart, until each reads for itself: of a product of slices of 16384 x 16384 x 16384 on an H200, whose clusters should
/// share what they read, the memory was at work for 30 % of the time, and for 13 % with this, and the product took 72.5 ms in
/// place of 77.2.
///
/// It is a hint. Nothing may depend on it that must be right: of a launch that has fewer clusters at a time than it is said, or
/// whose others have other things to do, a cluster that has waited for some milliseconds in vain does not wait any more. On the
/// CPU device none waits, for blocks run one after another there.
///
/// The clusters count their arrivals in a word of global memory, which is zero before a launch. The last arrival makes it so again.
///
/// ```
/// use simt::device::*;
///
/// /// Each block doubles some rows, and all of them are at about the same one.
/// #[kernel(block = (32))]
/// fn doubles(rows: u32, mut y: Out<f32>, mut word: Out<u32>) {
///     let (blocks, lane) = (thread::grid_dim_x(), thread::thread_idx_x());
///     let mut pace = grid::Pace::new(blocks, rows.div_ceil(blocks));
///     for row in (thread::block_idx_x()..rows).step_by(blocks as usize) {
///         if lane == 0 {
///             pace.wait(|count| word.atomic_add(0, count));
///         }
///         warp::sync_warp(warp::ALL);
///         y[(row * 32 + lane) as usize] *= 2.0;
///     }
///     if lane == 0 {
///         pace.finish(|count| word.atomic_add(0, count));
///     }
/// }
///
/// let (mut y, mut word) = ([1.0; 10 * 32], [0]);
/// let config = simt::LaunchConfig::new([4, 1, 1], [32, 1, 1]);
/// // SAFETY: the arrays outlive the launch, and a thread touches its own elements of `y` alone.
/// unsafe {
///     let params = (10, Out::new(y.as_mut_ptr(), y.len()), Out::new(word.as_mut_ptr(), 1));
///     simt::cpu::launch(&doubles, &config, params, &Default::default())
/// }?;
/// assert_eq!((y, word), ([2.0; 10 * 32], [0]));
/// # Ok::<(), simt::cpu::Stop>(())
/// ```
#[derive(Debug)]
pub struct Pace {
    clusters: u32,
    rounds: u32,
    /// Rounds that this cluster has begun.
    begun: u32,
    /// How often it looks whether the others have come, until it gives up.
    looks: u32,
}

/// Looks for one round: each takes as long as the second-level cache, a microsecond at most.
const LOOKS: u32 = if cfg!(target_arch = "nvptx64") { 4096 } else { 0 };

impl Pace {
    /// Of so many clusters, none of which has more than so many rounds; 2^32 rounds of all together are too many.
    #[inline(always)]
    pub fn new(clusters: u32, rounds: u32) -> Self {
        Pace { clusters, rounds, begun: 0, looks: LOOKS }
    }

    /// Before a round: waits until all clusters have come as far. (Nobody waits before the first: they begin at the same time.)
    /// One thread of a cluster comes here, the same each time; `add` adds to the word by an atomic addition, and gives what it was
    /// before.
    #[inline(always)]
    pub fn wait(&mut self, mut add: impl FnMut(u32) -> u32) {
        let wanted = self.begun * self.clusters;
        self.begun += 1;
        if wanted == 0 {
            return;
        }
        let before = self.arrive(1, &mut add);
        let mut left = self.looks;
        while left > 0 {
            let now = add(0);
            // After the last arrival it is zero.
            if now >= wanted || now <= before {
                return;
            }
            left -= 1;
        }
        self.looks = 0;
    }

    /// After the last round: counts the arrivals of those that this cluster has fewer than others. The thread that has waited comes
    /// here, of every cluster.
    #[inline(always)]
    pub fn finish(self, mut add: impl FnMut(u32) -> u32) {
        let left = self.rounds.saturating_sub(self.begun.max(1));
        if left > 0 {
            self.arrive(left, &mut add);
        }
    }

    /// Counts arrivals, and gives how many there were before.
    #[inline(always)]
    fn arrive(&self, count: u32, add: &mut impl FnMut(u32) -> u32) -> u32 {
        let all = (self.rounds - 1) * self.clusters;
        let before = add(count);
        if before + count == all {
            add(all.wrapping_neg());
        }
        before
    }
}
