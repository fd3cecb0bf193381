//! What was timed.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    file::{Answer, Answers, File},
    question::Question,
};
use crate::{
    error::Result,
    gemm::{
        Choice, Request, Target,
        scalar::{self, Kernel},
        select::Reason,
    },
};

/// [`choose_kernel`](crate::gemm::select::choose_kernel) for some types.
type Choose = fn(&Request, &Target, Option<Kernel>) -> Result<(Kernel, Choice)>;

/// The kernels that were the fastest when they were timed, for
/// [`Gemm::tuned`](crate::Gemm::tuned). Products share it by reference, from several threads, too.
///
/// An answer holds for one device (by its name, SMs and compute capability), driver, version of
/// this library, pair of types, shape, strides, alignment of A, B and C, batch, arithmetic,
/// epilogue, [prepared](crate::Gemm::prepared) operands, split of k, limit of the workspace, and
/// invariance. Where any of these is another, candidates are timed again. Once there is an answer
/// it stands, so the same product has the same kernel, and the same bits, with this cache.
///
/// ```
/// use gpu_gemm::{Device, Gemm, Matrix, TuningCache};
///
/// let device = Device::best().device;
/// let stream = device.stream()?;
/// let a = Matrix::from_row_major(&device, 2, 2, &[1.0f32, 2.0, 3.0, 4.0])?;
/// let mut c = Matrix::zeros(&device, 2, 2)?;
///
/// let cache = TuningCache::new();
/// for _ in 0..3 {
///     let choice = Gemm::new().tuned(&cache).run(&stream, a.view(), a.view().t(), c.view_mut())?;
///     println!("{choice}");
/// }
/// assert_eq!(cache.timed(), 1); // by the first product
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct TuningCache {
    /// What this process has asked, and the choices, by m, n and k.
    known: RwLock<Known>,
    /// All answers: those of the file, too.
    answers: Mutex<Answers>,
    file: Option<File>,
    timed: AtomicU64,
}

type Known = HashMap<[usize; 3], Vec<(Question, Choice)>>;

impl TuningCache {
    /// An empty one, in memory alone.
    pub fn new() -> Self {
        TuningCache::default()
    }

    /// One that keeps its answers in a file: it has those that are there, and writes the file anew
    /// after each product that it times. There need be no file yet.
    ///
    /// A new file replaces the old one in one step. Before, the old one is read again: what other
    /// processes have written in the meantime is kept, and their answer to the same question
    /// stands. Of two processes that write at the same moment, the answer of one may be lost; then
    /// it is timed again.
    ///
    /// The file is text, a line an answer, and may be copied to other machines. A line decides
    /// which kernel is taken, and nothing else: one for a kernel that does not exist, or cannot
    /// compute the product, is timed again.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) for a file that cannot be read, is damaged, or has
    /// another version. It is left as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = File::new(path.as_ref())?;
        let answers = Mutex::new(file.read()?);
        Ok(TuningCache { answers, file: Some(file), ..TuningCache::default() })
    }

    /// The number of products whose candidates were timed with this cache.
    pub fn timed(&self) -> u64 {
        self.timed.load(Ordering::Relaxed)
    }

    /// Counts a product that was timed.
    pub(super) fn count(&self) {
        self.timed.fetch_add(1, Ordering::Relaxed);
    }

    /// The choice that there is already.
    pub(super) fn known(&self, question: &Question, choose: Choose) -> Option<(Kernel, Choice)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut of_shape = known.get(&question.sizes()).into_iter().flatten();
        let choice = of_shape.find(|(other, _)| other == question).map(|(_, choice)| *choice);
        drop(known);
        if let Some(choice) = choice {
            let product = choice.entry.product.as_ref()?;
            return Some((Kernel { entry: choice.entry, product }, choice));
        }
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.is_empty() {
            return None;
        }
        let answer = answers.get(&question.to_string())?.clone();
        drop(answers);
        let (kernel, choice) = answer.choice(question, choose)?;
        self.note(question, choice);
        Some((kernel, choice))
    }

    /// Remembers a choice for the next time.
    fn note(&self, question: &Question, choice: Choice) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let of_shape = known.entry(question.sizes()).or_default();
        if !of_shape.iter().any(|(other, _)| other == question) {
            of_shape.push((question.clone(), choice));
        }
    }

    /// Remembers an answer, unless another thread or process was faster: then returns theirs.
    ///
    /// # Errors
    /// Those of the file. The answer is remembered in memory all the same, and is written with the
    /// next one.
    pub(super) fn remember(
        &self,
        question: &Question,
        answer: Answer,
        choose: Choose,
    ) -> Result<Option<(Kernel, Choice)>> {
        let text = question.to_string();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let in_file = self.file.as_ref().map(File::read).transpose();
        if let Ok(Some(in_file)) = &in_file {
            answers.extend(in_file.clone());
        }
        let theirs = answers.get(&text).and_then(|theirs| theirs.choice(question, choose));
        let stands = match theirs {
            Some(theirs) => Some(theirs),
            None => {
                let ours = answer.choice(question, choose);
                answers.insert(text, answer);
                ours
            }
        };
        if let Some((_, choice)) = stands {
            self.note(question, choice);
        }
        in_file?;
        if let (Some(file), None) = (&self.file, theirs) {
            file.write(&answers)?;
        }
        Ok(stands)
    }
}

impl Answer {
    /// The choice of that kernel. `None` if it does not exist, or cannot compute the product.
    fn choice(&self, question: &Question, choose: Choose) -> Option<(Kernel, Choice)> {
        let Question { request, target, types, .. } = question;
        // A split that was asked for stays as it was asked: k may have fewer ranges than that. That
        // of an invariant product follows from n and k.
        let request = match request.invariant {
            Some(_) => *request,
            None => Request {
                split_k: request.split_k.or(Some(self.split_k)),
                partials: request.partials.or(Some(self.partials)),
                ..*request
            },
        };
        let kernel = scalar::named(*types, &self.kernel).ok()?;
        let (kernel, choice) = choose(&request, target, Some(kernel)).ok()?;
        if (choice.split_k, choice.partials) != (self.split_k, self.partials) {
            return None;
        }
        let reason = Reason::Tuned { us: self.us, timed: self.timed };
        Some((kernel, Choice { reason, ..choice }))
    }
}
