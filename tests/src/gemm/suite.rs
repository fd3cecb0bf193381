//! A case with every kernel on every device.

use host::Error;

use super::{Bench, Case, Number, Want, bytes, same_bits, table};
use crate::{cuda_devices, devices};

/// Products up to which C is compared with plain loops bit by bit; above, with the bits of the first kernel alone.
const BIT_BY_BIT: usize = 1 << 18;

/// Every device, and every general kernel for `T`.
#[derive(Debug)]
pub struct Suite<T> {
    benches: Vec<Bench<T>>,
    kernels: Vec<&'static str>,
    /// Kernels that take some cases and not others.
    tensor: Vec<&'static str>,
    checked: usize,
    /// Cases that one of those has taken.
    by_tensor_copies: usize,
}

impl<T: Number> Default for Suite<T> {
    fn default() -> Self {
        Suite::new()
    }
}

impl<T: Number> Suite<T> {
    /// All that there is.
    pub fn new() -> Self {
        let benches = devices().iter().map(Bench::new).collect();
        Suite::on(benches)
    }

    fn on(benches: Vec<Bench<T>>) -> Self {
        let (kernels, tensor) = (T::general(), T::by_tensor_copies());
        Suite { benches, kernels, tensor, checked: 0, by_tensor_copies: 0 }
    }

    /// On CUDA devices alone.
    pub fn cuda() -> Self {
        let benches = cuda_devices().iter().map(Bench::new).collect();
        Suite::on(benches)
    }

    /// Is there no device?
    pub fn is_empty(&self) -> bool {
        self.benches.is_empty()
    }

    /// With these kernels alone.
    pub fn only(self, kernels: &[&'static str]) -> Self {
        Suite { kernels: kernels.to_vec(), tensor: Vec::new(), ..self }
    }

    /// Hands each device to `run` with each kernel: a case of another kind.
    pub fn each(&mut self, mut run: impl FnMut(&mut Bench<T>, &'static str)) {
        for bench in &mut self.benches {
            for kernel in &self.kernels {
                run(bench, kernel);
                self.checked += 1;
            }
        }
    }

    /// Integers: nothing may be off. Returns C.
    ///
    /// # Panics
    /// Where something is, and as [`Bench::run`].
    pub fn exact(&mut self, case: &Case<T>) -> Vec<T> {
        self.check(case, &Want::exact(case))
    }

    /// Real numbers: within the error bound. Returns C.
    ///
    /// # Panics
    /// As [`Suite::exact`].
    pub fn bounded(&mut self, case: &Case<T>) -> Vec<T> {
        self.check(case, &Want::bounded(case))
    }

    /// With every kernel on every device C is what it should be, and with every general one it has the same bits; with
    /// those on tensor cores, which add in another way, the same among themselves. Returns that of the others.
    ///
    /// # Panics
    /// As [`Suite::exact`].
    pub fn check(&mut self, case: &Case<T>, want: &Want) -> Vec<T> {
        let [m, n, k] = case.sizes();
        let small = case.c.count() * m * n * k.max(1) <= BIT_BY_BIT;
        let mut first = if small { same_bits(case).map(canonical) } else { None };
        let mut first_on_tensor_cores = None;
        for bench in &mut self.benches {
            for kernel in &self.kernels {
                let context = format!("{kernel} on {}: {case}", bench.device());
                let c = bench
                    .run(case, Some(kernel))
                    .unwrap_or_else(|error| panic!("{error}\n{context}"));
                want.check(&c).unwrap_or_else(|wrong| panic!("{wrong}\n{context}"));
                let c = canonical(c);
                let first = match kernel.starts_with("gemm_mma_") {
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
                self.checked += 1;
            }
            for kernel in &self.tensor {
                let device = bench.device().to_string();
                let context = || format!("{kernel} on {device}: {case}");
                let c = match bench.run(case, Some(kernel)) {
                    Err(Error::Argument { argument, .. }) if argument == "kernel" => continue,
                    other => other.unwrap_or_else(|error| panic!("{error}\n{}", context())),
                };
                want.check(&c).unwrap_or_else(|wrong| panic!("{wrong}\n{}", context()));
                self.by_tensor_copies += 1;
            }
        }
        first.unwrap_or_default()
    }

    /// How many cases kernels have taken that take them by tensor copies.
    pub fn by_tensor_copies(&self) -> usize {
        self.by_tensor_copies
    }

    /// So many runs were asked for in docs/testing.md, for each kernel and device, by the test of that name.
    ///
    /// # Panics
    /// Where they were others.
    pub fn done(self, test: &str) {
        let each = self.benches.len() * self.kernels.len();
        if self.benches.is_empty() {
            return; // that was told where the devices were looked for
        }
        assert_eq!(self.checked % each, 0, "{test}: not each with every kernel and device");
        table::counted(test, self.checked / each);
    }
}

/// The same with one NaN for all: which one comes out is not promised.
fn canonical<T: Number>(values: Vec<T>) -> Vec<T> {
    let nan = T::nearest(f64::NAN);
    values.into_iter().map(|x| if x.into().is_nan() { nan } else { x }).collect()
}
