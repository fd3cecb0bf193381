//! The candidates at a size.

use std::{cell::RefCell, collections::BTreeMap};

use host::{
    Buffer, Error, Gemm,
    baseline::{DenseBatch, Epilogue},
    gemm::{Choice, Request, Scales, Target},
    gpu::registry::{Product, Scheme},
    scaling::Scaling,
    verify::NumberFormat,
};

use super::{
    case::{Case, Sets, Views},
    every,
    library::{Compared, Library, Ready},
    row::{Role, Row},
    timed::{About, Run},
    verdict::Verdict,
};
use crate::cli::{Failure, args::BenchKernel, note, types::Value};

/// Measures sizes, one after another.
pub(super) struct Bencher<'a, T, O> {
    pub(super) run: Run<'a>,
    pub(super) libraries: &'a [Box<dyn Library<T, O> + 'a>],
}

/// A kernel or a library that is verified and timed.
pub(super) struct Candidate<'l, T: 'static, O: 'static> {
    pub(super) about: About,
    pub(super) work: Work<'l, T, O>,
}

pub(super) enum Work<'l, T: 'static, O: 'static> {
    Own(Box<Gemm<'l, T, O>>),
    Library(Box<dyn Ready<T, O> + 'l>),
}

impl<T: Compared<O>, O: Value> Bencher<'_, T, O> {
    /// The product as a program calls it.
    fn gemm(&self) -> Gemm<'static, T, O> {
        let any = Gemm::<T, O>::of_types().compute(self.run.args.types.compute());
        match self.run.args.workspace_limit {
            Some(limit) => any.workspace_limit(limit),
            None => any,
        }
    }

    /// The kernel that is selected for a product. `None` if there is none: that is reported when it
    /// is measured.
    pub(super) fn kernel_of(&self, case: &Case) -> Option<&'static str> {
        let target = Target::of(self.run.stream.device());
        let epilogue = case.epilogues.first().copied().unwrap_or_default();
        let choice = self.gemm().choose(&request(&case.product, epilogue), &target);
        choice.ok().map(|choice| choice.entry.name())
    }

    /// The kernels that are compared if none is named: of f32 lessons and general products, in the
    /// order of the registry; of other types and arithmetics `auto`, then the library's kernels for
    /// them.
    fn usual(&self, request: &Request, target: &Target) -> Vec<BenchKernel> {
        let is_f32 =
            T::FORMAT == NumberFormat::F32 && self.run.args.types.scheme() == Scheme::Native;
        let is_usual = |product: &Product| match is_f32 {
            true => !product.is_tma_or_ldg(),
            false => !product.is_lesson(),
        };
        let candidates = self.gemm().candidates(request, target).into_iter();
        let named = candidates
            .map(|candidate| candidate.entry)
            // Kernels of another arithmetic compute another product.
            .filter(|entry| entry.scheme() == self.run.args.types.scheme())
            .filter(|entry| entry.product.as_ref().is_some_and(is_usual))
            .map(BenchKernel::of);
        let auto = (!is_f32).then_some(BenchKernel::AUTO);
        auto.into_iter().chain(named).collect()
    }

    /// The kernels asked for that can compute the product, and the libraries that can, with each
    /// epilogue. A kernel is selected with `scaling`, and launched with the operands' own.
    pub(super) fn candidates<'l>(
        &'l self,
        case: &Case,
        scaling: &'l [Scaling<Buffer<f32>>],
    ) -> Result<Vec<Candidate<'l, T, O>>, Failure> {
        let mut all = Vec::new();
        for &epilogue in &case.epilogues {
            let scales =
                Scaling::find(scaling, epilogue.scales).map(Scaling::scales).transpose()?;
            all.extend(self.candidates_with(case, epilogue, scales)?);
        }
        Ok(all)
    }

    fn candidates_with<'l>(
        &'l self,
        case: &Case,
        epilogue: Epilogue,
        scales: Option<Scales<'l>>,
    ) -> Result<Vec<Candidate<'l, T, O>>, Failure> {
        let (product, args) = (&case.product, self.run.args);
        let target = Target::of(self.run.stream.device());
        let (any, request) = (epilogue.of(self.gemm(), None, scales), request(product, epilogue));
        let kernels = match (&args.kernels[..], args.vs) {
            ([], Some(_)) if args.random.all_candidates => {
                every::drawn(&any, &request, &target, args.seed, case)?
            }
            ([], Some(_)) => vec![BenchKernel::AUTO],
            ([], None) => self.usual(&request, &target),
            (asked, _) => asked.to_vec(),
        };
        let invariant = args.invariant.then_some(BenchKernel::INVARIANT);
        let kernels = kernels.into_iter().chain(invariant);
        let mut candidates = Vec::<Candidate<T, O>>::new();
        let mut left_out = BTreeMap::<String, Vec<String>>::new();
        for kernel in kernels {
            let gemm = match kernel.split_k {
                Some(blocks) => any.split_k(blocks)?,
                None => any,
            };
            let gemm = match kernel.partials {
                Some(count) => gemm.partials(count)?,
                None => gemm,
            };
            let gemm = if kernel.invariant { gemm.invariant() } else { gemm };
            let (gemm, role, asked) = match kernel.entry {
                // `auto` is one kernel a shape.
                None if kernel.invariant => (gemm, Role::Named, true),
                None => (gemm, Role::Auto, false),
                Some(entry) => (gemm.entry(entry)?, Role::Named, true),
            };
            // As it would be asked for.
            let name = |choice: Choice| {
                let more = |count: u32| (count > 1).then_some(count);
                let Choice { entry, split_k, partials, times, .. } = choice;
                let [split_k, partials] = [split_k, partials].map(more);
                let named = BenchKernel { entry: Some(entry), split_k, partials, ..kernel };
                (named.to_string(), times)
            };
            match gemm.choose(&request, &target).map(name) {
                // `auto` may be the same kernel.
                Ok((name, _)) if candidates.iter().any(|other| other.about.name == name) => {}
                Ok((name, predicted)) => {
                    let work = Work::Own(Box::new(gemm));
                    let about = About { name, role, epilogue, predicted };
                    candidates.push(Candidate { about, work });
                }
                Err(Error::Argument { limit, .. }) if asked => {
                    left_out.entry(limit).or_default().push(kernel.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        note_left_out(case, epilogue, left_out);
        for library in self.libraries {
            if let Some(ready) = library.prepare(product, epilogue)? {
                let (name, work) = (library.name().to_owned(), Work::Library(ready));
                let (role, predicted) = (Role::Baseline, None);
                let about = About { name, role, epilogue, predicted };
                candidates.push(Candidate { about, work });
            }
        }
        Ok(candidates)
    }

    pub(super) fn launch(
        &self,
        case: &Case,
        candidate: &Candidate<T, O>,
        views: Views<T, O>,
    ) -> host::Result<()> {
        match &candidate.work {
            Work::Own(gemm) => {
                let epilogue = candidate.about.epilogue;
                let Views { a, b, bias, scaling, c } = views;
                let scales = Scaling::find(scaling, epilogue.scales);
                let scales = scales.map(Scaling::scales).transpose()?;
                let gemm = epilogue.of(**gemm, bias, scales);
                case.product.launch(&gemm, self.run.stream, a, b, c).map(|_| ())
            }
            Work::Library(ready) => ready.launch(views),
        }
    }

    /// Each library with several algorithms selects the fastest.
    pub(super) fn choose(
        &self,
        name: &str,
        candidates: &mut [Candidate<T, O>],
        sets: &mut dyn Sets<T, O>,
    ) -> Result<(), Failure> {
        for candidate in candidates {
            let library = candidate.about.words();
            if let Work::Library(ready) = &mut candidate.work {
                let step = format!("{name}: {library}, its algorithms");
                self.run.steps.step(&step, || ready.choose(self.run.stream, sets))?;
            }
        }
        Ok(())
    }

    /// Times the candidates that are right, and writes the times to their rows.
    pub(super) fn compare(
        &self,
        name: &str,
        case: &Case,
        (candidates, verdicts): (&[Candidate<T, O>], &[Verdict]),
        rows: &mut [Row],
        sets: &mut dyn Sets<T, O>,
    ) -> Result<(), Failure> {
        let count = sets.count();
        // The candidates share the operands: one launch at a time uses them.
        let sets = RefCell::new(sets);
        let launch = |number: usize, set: usize| {
            self.launch(case, &candidates[number], sets.borrow_mut().views(set)?)
        };
        let about = candidates.iter().map(|candidate| &candidate.about).collect::<Vec<_>>();
        let of = (&about[..], verdicts);
        self.run.compare((name, O::TYPE), case, of, rows, (count, &launch))
    }
}

fn note_left_out(case: &Case, epilogue: Epilogue, left_out: BTreeMap<String, Vec<String>>) {
    for (why, kernels) in left_out {
        let size = case.name();
        let with = if epilogue.is_plain() { "" } else { &format!(", {epilogue}") };
        note(format_args!("note: {size}{with}: without {}: {why}", kernels.join(", ")));
    }
}

/// The request for a product. A program that asks for a bias has no plain product, so it may get
/// another kernel.
fn request(product: &DenseBatch, epilogue: Epilogue) -> Request {
    let mut request = Request::new(product.shape, product.strides());
    request.batch = product.count;
    request.plain = epilogue.is_plain();
    request
}
