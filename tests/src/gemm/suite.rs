//! A case with every kernel on every device.

use gpu::registry::Family;

use super::{Bench, Case, Number, Want, bytes, same_bits, table};
use crate::{Turns, cuda_devices, devices, kernels::variant, ran};

/// The number of products from which on the CPU device runs one kernel, and no TMA kernel, because
/// these compute whole tiles.
const LARGE: usize = 1 << 21;

/// The number of products up to which C is compared with plain loops bit by bit. Above, it is
/// compared with the first kernel's bits only.
const BIT_BY_BIT: usize = 1 << 18;

/// Every device, and every general kernel for `T`.
#[derive(Debug)]
pub struct Suite<T> {
    benches: Vec<Bench<T>>,
    kernels: Vec<&'static str>,
    /// Whether the kernels alternate.
    in_turns: bool,
    /// On each device.
    turns: Vec<Turns>,
    /// Kernels that cannot compute every case. Those that can alternate.
    tensor: Vec<&'static str>,
    /// Which of these comes first, for each device.
    next: Vec<usize>,
    /// Cases, counted for each device and general kernel.
    checked: usize,
}

impl<T: Number> Default for Suite<T> {
    fn default() -> Self {
        Suite::new()
    }
}

impl<T: Number> Suite<T> {
    /// All devices and kernels.
    pub fn new() -> Self {
        let benches = devices().iter().map(Bench::new).collect();
        Suite::on(benches)
    }

    fn on(benches: Vec<Bench<T>>) -> Self {
        Suite::with(benches, T::general(), T::in_other_orders())
    }

    fn with(benches: Vec<Bench<T>>, kernels: Vec<&'static str>, tensor: Vec<&'static str>) -> Self {
        let turns = benches.iter().map(|bench| Turns::on(bench.device(), kernels.len())).collect();
        let next = vec![0; benches.len()];
        Suite { benches, kernels, in_turns: false, turns, tensor, next, checked: 0 }
    }

    /// With one general kernel for each case, in turn. With `FULL=1` all.
    pub fn in_turns(self) -> Self {
        Suite { in_turns: true, ..self }
    }

    /// On CUDA devices only.
    pub fn cuda() -> Self {
        let benches = cuda_devices().iter().map(Bench::new).collect();
        Suite::on(benches)
    }

    /// Whether there is no device.
    pub fn is_empty(&self) -> bool {
        self.benches.is_empty()
    }

    /// With these kernels only.
    pub fn only(self, kernels: &[&'static str]) -> Self {
        Suite::with(self.benches, kernels.to_vec(), Vec::new())
    }

    /// Calls `run` with each device and each kernel: for another kind of case.
    pub fn each(&mut self, mut run: impl FnMut(&mut Bench<T>, &'static str)) {
        for bench in &mut self.benches {
            for kernel in &self.kernels {
                run(bench, kernel);
                self.checked += 1;
            }
        }
    }

    /// For integers: everything must be exact. Returns C.
    ///
    /// # Panics
    /// If something is wrong, and as [`Bench::run`].
    pub fn exact(&mut self, case: &Case<T>) -> Vec<T> {
        self.check(case, &Want::exact(case))
    }

    /// For real numbers: within the error bound. Returns C.
    ///
    /// # Panics
    /// As [`Suite::exact`].
    pub fn bounded(&mut self, case: &Case<T>) -> Vec<T> {
        self.check(case, &Want::bounded(case))
    }

    /// With every general kernel on every device C is what it should be, and has the same bits;
    /// with those on tensor cores, which add in another way, the same among themselves. (Where a
    /// case is large, or they are to take turns, with one, and with all with `FULL=1`.) With the
    /// next of those whose sums are in other orders and that takes the case, or all with `FULL=1`,
    /// it is right. Returns that of the general ones.
    ///
    /// # Panics
    /// As [`Suite::exact`].
    pub fn check(&mut self, case: &Case<T>, want: &Want) -> Vec<T> {
        let [m, n, k] = case.sizes();
        let products = case.c.count() * m * n * k.max(1);
        let small = products <= BIT_BY_BIT;
        let mut first = if small { same_bits(case).map(canonical) } else { None };
        let mut first_on_tensor_cores = None;
        for (bench, turns) in self.benches.iter_mut().zip(&mut self.turns) {
            let numbers = match self.in_turns || products >= LARGE {
                true => turns.next_case(),
                false => (0..self.kernels.len()).collect(),
            };
            for kernel in numbers.into_iter().map(|number| self.kernels[number]) {
                let context = format!("{kernel} on {}: {case}", bench.device());
                let c = bench
                    .run(case, Some(kernel))
                    .unwrap_or_else(|error| panic!("{error}\n{context}"));
                want.check(&c).unwrap_or_else(|wrong| panic!("{wrong}\n{context}"));
                let c = canonical(c);
                let first = match variant(kernel).family == Family::Mma {
                    true => &mut first_on_tensor_cores,
                    false => &mut first,
                };
                let first = first.get_or_insert_with(|| c.clone());
                if bytes(first) != bytes(&c) {
                    let differs = |at: &usize| bytes(&first[*at..=*at]) != bytes(&c[*at..=*at]);
                    let at = (0..c.len()).find(differs).unwrap_or_default();
                    let (one, other) = (first[at], c[at]);
                    panic!("element {at}: {other:?}, elsewhere {one:?}, in other bits\n{context}");
                }
            }
            // The case counts for all of them.
            self.checked += self.kernels.len();
        }
        if !self.tensor.is_empty() {
            self.check_in_other_orders(case, want, products >= LARGE);
        }
        first.or(first_on_tensor_cores).unwrap_or_default()
    }

    fn check_in_other_orders(&mut self, case: &Case<T>, want: &Want, large: bool) {
        let tensor = &self.tensor;
        for ((bench, turns), next) in self.benches.iter_mut().zip(&self.turns).zip(&mut self.next) {
            let (first, most) = match turns.is_all() {
                true => (0, tensor.len()),
                false => (*next, usize::from(!large || bench.device().is_cuda())),
            };
            let asked = || tensor.iter().copied().cycle().skip(first).take(tensor.len());
            let device = bench.device().to_string();
            let results = bench
                .run_takers(case, asked(), most)
                .unwrap_or_else(|error| panic!("{error}\n{device}: {case}"));
            for (number, c) in &results {
                let kernel = asked().nth(*number).unwrap_or_default();
                want.check(c)
                    .unwrap_or_else(|wrong| panic!("{wrong}\n{kernel} on {device}: {case}"));
            }
            // Next time the kernel after the last one that has taken a case is first.
            let tried = match results.last() {
                _ if most == 0 => 0,
                Some((last, _)) if results.len() == most => last + 1,
                _ => tensor.len(),
            };
            ran(tried, tensor.len());
            *next = (first + tried) % tensor.len();
        }
    }

    /// Checks that the test of that name made the number of runs in docs/testing/gemm.md, for each
    /// kernel and device.
    ///
    /// # Panics
    /// If the number differs.
    pub fn done(self, test: &str) {
        let each = self.benches.len() * self.kernels.len();
        if self.benches.is_empty() {
            return; // that was told where the devices were looked for
        }
        assert_eq!(self.checked % each, 0, "{test}: not each with every kernel and device");
        table::counted(test, self.checked / each);
    }
}

/// The same with one NaN for all NaNs: which one results is not promised.
fn canonical<T: Number>(values: Vec<T>) -> Vec<T> {
    let nan = T::nearest(f64::NAN);
    values.into_iter().map(|x| if x.into().is_nan() { nan } else { x }).collect()
}
