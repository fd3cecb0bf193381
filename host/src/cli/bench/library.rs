//! Libraries that kernels are compared with.

use host::{Bf16, Compute, E4m3, E5m2, F16, Stream, gemm::Scalar};

#[cfg(feature = "baselines")]
use super::cpu;
pub(in crate::cli) use super::ready::{Library, Ready};
use crate::cli::{args::Vs, note, types::Value};

/// A type of operands for comparisons, with C of `O`.
pub(in crate::cli) trait Compared<O: Value>: Scalar<O> + Value {
    /// The libraries for these types on the CPU.
    fn on_cpu() -> Vec<Box<dyn Library<Self, O>>> {
        Vec::new()
    }
}

impl Compared<f64> for f64 {}

impl Compared<f32> for f32 {
    #[cfg(feature = "baselines")]
    fn on_cpu() -> Vec<Box<dyn Library<f32, f32>>> {
        cpu::libraries()
    }
}

impl Compared<Bf16> for Bf16 {}
impl Compared<f32> for Bf16 {}
impl Compared<F16> for F16 {}
impl Compared<f32> for F16 {}
impl Compared<i32> for i8 {}
impl Compared<f32> for i8 {}
impl Compared<Bf16> for i8 {}
impl Compared<F16> for i8 {}
impl Compared<f32> for E4m3 {}
impl Compared<Bf16> for E4m3 {}
impl Compared<F16> for E4m3 {}
impl Compared<f32> for E5m2 {}
impl Compared<Bf16> for E5m2 {}
impl Compared<F16> for E5m2 {}

/// The libraries to compare with. A note reports those that are missing.
pub(in crate::cli) fn open<'a, T: Compared<O>, O: Value>(
    vs: Vs,
    compute: Compute,
    stream: &'a Stream,
) -> host::Result<Vec<Box<dyn Library<T, O> + 'a>>> {
    if vs != Vs::Cpu && !T::FORMAT.is_float() && O::FORMAT.is_float() {
        note(format_args!(
            "note: there is nothing to compare with: NVIDIA's libraries are called for {} with a C of i32 alone",
            T::NAME
        ));
        return Ok(Vec::new());
    }
    match (vs, stream.device().is_cuda()) {
        (Vs::Cublas, true) => nvidia::open(compute, stream, false),
        (Vs::CublasFast, true) => nvidia::open(compute, stream, true),
        (Vs::Cpu, true) => {
            let limit = "nalgebra and gemm run on the CPU: --device cpu, or --vs cublas";
            Err(host::Error::argument("--vs", "cpu", limit))
        }
        (Vs::Cpu, false) if !cfg!(feature = "baselines") => {
            let limit = "this build has no CPU libraries to compare with: cargo run -p host --features baselines";
            Err(host::Error::argument("--vs", "cpu", limit))
        }
        (vs, false) => {
            let libraries = T::on_cpu();
            match (vs, libraries.is_empty()) {
                (_, true) if !cfg!(feature = "baselines") => note(format_args!(
                    "note: there is nothing to compare with: cuBLAS runs on a GPU alone, and libraries for the CPU are in a build \
                     with --features baselines"
                )),
                (_, true) => note(format_args!(
                    "note: there is nothing to compare with: cuBLAS runs on a GPU alone, and nalgebra and the crate gemm \
                     know no {}",
                    T::NAME
                )),
                (Vs::Cublas | Vs::CublasFast, false) => note(format_args!(
                    "note: cuBLAS runs on a GPU alone; nalgebra (one core) and the crate gemm stand in, for scale"
                )),
                (Vs::Cpu, false) => {}
            }
            Ok(libraries)
        }
    }
}

#[cfg(feature = "cuda")]
mod nvidia {
    use std::cell::RefCell;

    use host::{
        Activation, Compute, Error, Stream,
        baseline::{Copy, Cublas, CublasLt, DenseBatch, Epilogue, Plan},
        scaling::Scaling,
        timing::{self, Candidate},
    };

    use super::{
        super::case::{Sets, Views},
        Library, Ready, Scalar, Value, note,
    };

    /// The number of algorithms to ask cublasLt for.
    const ALGORITHMS: usize = 16;

    pub(super) fn open<'a, T: Value + Scalar<O>, O: Value>(
        compute: Compute,
        stream: &'a Stream,
        is_fast: bool,
    ) -> host::Result<Vec<Box<dyn Library<T, O> + 'a>>> {
        if std::env::var_os("NVIDIA_TF32_OVERRIDE").is_some_and(|value| value != "0") {
            note(format_args!(
                "note: NVIDIA_TF32_OVERRIDE is set: cuBLAS may compute in TF32, which its error will show"
            ));
        }
        let mut libraries = Vec::<Box<dyn Library<T, O>>>::new();
        match Cublas::open(stream) {
            Ok(cublas) => libraries.push(Box::new(cublas.compute(compute))),
            Err(error) => left_out(error)?,
        }
        match CublasLt::open(stream) {
            Ok(lt) => {
                libraries.push(Box::new(lt.compute(compute).fast_accumulation(is_fast)));
            }
            Err(error) => left_out(error)?,
        }
        for library in &libraries {
            note(format_args!("note: {} is {}", library.name(), library.version()));
        }
        if libraries.is_empty() {
            note(format_args!("note: there is nothing to compare with"));
        }
        Ok(libraries)
    }

    fn left_out(error: Error) -> host::Result<()> {
        match error {
            Error::NoCublas { .. } => {
                note(format_args!("note: {error}"));
                Ok(())
            }
            error => Err(error),
        }
    }

    impl<T: Value + Scalar<O>, O: Value> Library<T, O> for Cublas<'_> {
        fn name(&self) -> &'static str {
            "cublas"
        }

        fn version(&self) -> String {
            format!("{}, {}", self.file_name(), Cublas::version(self))
        }

        fn prepare<'l>(
            &'l self,
            product: &DenseBatch,
            epilogue: Epilogue,
        ) -> host::Result<Option<Box<dyn Ready<T, O> + 'l>>> {
            let Epilogue { alpha, beta, bias, activation, .. } = epilogue;
            // It has no bias and no activations. cublasLt is there for these. It takes integers of
            // such sizes, and in this layout alone.
            let [m, n, k] = [product.shape.m(), product.shape.n(), product.shape.k()];
            let is_taken = product.transposed == [false, true] && (m | n | k).is_multiple_of(4);
            let is_refused = !T::FORMAT.is_wide_float() && (T::FORMAT.is_float() || !is_taken);
            Ok(match bias || activation != Activation::Identity || is_refused {
                true => None,
                false => Some(Box::new((self, *product, [alpha, beta]))),
            })
        }
    }

    impl<T: Value + Scalar<O>, O: Value> Ready<T, O> for (&Cublas<'_>, DenseBatch, [f32; 2]) {
        fn launch(&self, Views { a, b, c, .. }: Views<T, O>) -> host::Result<()> {
            self.0.launch(&self.1, self.2, a, b, c)
        }
    }

    impl<T: Value + Scalar<O>, O: Value> Library<T, O> for CublasLt<'_> {
        fn name(&self) -> &'static str {
            if self.is_fast() { "cublasLt-fast" } else { "cublasLt" }
        }

        fn version(&self) -> String {
            format!("{}, {}", self.file_name(), CublasLt::version(self))
        }

        fn prepare<'l>(
            &'l self,
            product: &DenseBatch,
            epilogue: Epilogue,
        ) -> host::Result<Option<Box<dyn Ready<T, O> + 'l>>> {
            let mut why = None;
            for computes in by_lt(epilogue) {
                let plan = match self.plan(*product, computes, ALGORITHMS) {
                    Ok(plan) => plan,
                    // If it has no algorithm for a product, the run continues.
                    Err(error @ Error::Driver { .. }) => {
                        why = why.or(Some(error));
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                if plan.algorithms() > 0 {
                    let [_, _, c] = product.lens()?;
                    let copy = (computes != epilogue).then(|| Copy::new(self.stream(), c));
                    let copy = copy.transpose()?;
                    return Ok(Some(Box::new(Algorithms { plan, computes, copy, taken: 0 })));
                }
            }
            if let Some(why) = why {
                let shape = product.shape;
                note(format_args!("note: cublasLt has nothing for {shape}, {epilogue}: {why}"));
            }
            Ok(None)
        }
    }

    /// What cublasLt may compute of an epilogue: all, or less, the most first. A copy of C stands
    /// for the rest.
    fn by_lt(epilogue: Epilogue) -> Vec<Epilogue> {
        let linear = Epilogue { activation: Activation::Identity, ..epilogue };
        let mut all = vec![linear, Epilogue { bias: false, ..linear }];
        if CublasLt::fuses(epilogue.activation) {
            all.insert(0, epilogue);
        }
        all.dedup();
        all
    }

    /// cublasLt's algorithms for a product.
    struct Algorithms<'l, T, O> {
        plan: Plan<'l, T, O>,
        /// What it computes.
        computes: Epilogue,
        /// What stands for the rest of the epilogue.
        copy: Option<Copy<'l, O>>,
        taken: usize,
    }

    impl<T: Value + Scalar<O>, O: Value> Algorithms<'_, T, O> {
        fn run(
            &self,
            algorithm: usize,
            Views { a, b, bias, scaling, mut c }: Views<T, O>,
        ) -> host::Result<()> {
            let scaling = Scaling::find(scaling, self.computes.scales);
            self.plan.launch(algorithm, a, b, bias, scaling, c.reborrow())?;
            self.copy.as_ref().map_or(Ok(()), |copy| copy.launch(c.as_view()))
        }
    }

    impl<T: Value + Scalar<O>, O: Value> Ready<T, O> for Algorithms<'_, T, O> {
        fn launch(&self, operands: Views<T, O>) -> host::Result<()> {
            self.run(self.taken, operands)
        }

        fn choose(&mut self, stream: &Stream, sets: &mut dyn Sets<T, O>) -> host::Result<()> {
            // A launch may still refuse an algorithm that the heuristics proposed.
            let mut works = Vec::new();
            for algorithm in 0..self.plan.algorithms() {
                match self.run(algorithm, sets.views(0)?) {
                    Ok(()) => works.push(algorithm),
                    Err(Error::Driver { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            // A fault of one algorithm must not be taken for another's.
            stream.synchronize()?;
            let count = sets.count();
            let sets = RefCell::new(sets);
            let mut candidates = works
                .iter()
                .map(|&algorithm| -> Candidate {
                    let (own, sets) = (&*self, &sets);
                    Box::new(move |set| own.run(algorithm, sets.borrow_mut().views(set)?))
                })
                .collect::<Vec<_>>();
            let fastest = timing::fastest(stream, &mut candidates, count)?;
            drop(candidates);
            if let Some(fastest) = fastest {
                self.taken = works[fastest];
            }
            Ok(())
        }

        fn instead(&self) -> Option<Epilogue> {
            self.copy.as_ref().map(|_| self.computes)
        }

        fn algorithm(&self) -> Option<String> {
            Some(format!("{} of {}", self.taken + 1, self.plan.algorithms()))
        }
    }
}

#[cfg(not(feature = "cuda"))]
mod nvidia {
    use host::{Compute, Stream};

    use super::{Library, Scalar, Value, note};

    pub(super) fn open<'a, T: Value + Scalar<O>, O: Value>(
        _: Compute,
        _: &'a Stream,
        _: bool,
    ) -> host::Result<Vec<Box<dyn Library<T, O> + 'a>>> {
        note(format_args!("note: no cuBLAS: host was built without its feature `cuda`"));
        Ok(Vec::new())
    }
}
