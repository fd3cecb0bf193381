//! Kernels' sources, and the variants that each is loaded as.

use simt::{Constants, Declaration, Taken};

use super::{
    contract::{Contract, Entry, GemmKernel, GeneralProduct, Rung, TensorKernel, TensorProduct},
    entries::wgmma_boxes,
};

/// A kernel's source, of which there is an [`Entry`] for each variant.
#[derive(Debug)]
#[non_exhaustive]
pub struct Design {
    /// In a few words, what sets it apart: of all its variants.
    pub(super) summary: &'static str,
    /// Its place in the course.
    pub(super) rung: Option<Rung>,
    /// What it computes; where constants say how A and B lie, of A and B as they are row by row; where they are bf16 or f16, of bf16.
    pub(super) contract: Contract,
    /// Its name where they are f16.
    pub(super) of_f16: Option<&'static str>,
    /// Of an H200; none where nobody has measured it.
    pub(super) on_gpu: Option<Speed>,
    /// Of the CPU device.
    pub(super) on_cpu: Option<Speed>,
}

impl Design {
    /// What the kernel says of itself.
    pub fn declaration(&self) -> &'static Declaration {
        self.contract.declaration()
    }

    /// The kernels that it is loaded as.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let name = self.declaration().name;
        let of_f16 = self.of_f16.unwrap_or(name);
        let variants = match &self.contract {
            Contract::TensorProduct(product) => product.variants(name, Contract::TensorProduct),
            Contract::TensorProductBf16(product) => {
                let bf16 = product.variants(name, Contract::TensorProductBf16);
                let f16 = product.retyped().variants(of_f16, Contract::TensorProductF16);
                [bf16, f16].concat()
            }
            Contract::TensorProductBf16F32(product) => {
                let bf16 = product.variants(name, Contract::TensorProductBf16F32);
                let f16 = product.retyped().variants(of_f16, Contract::TensorProductF16F32);
                [bf16, f16].concat()
            }
            Contract::ProductBf16(product) => vec![
                ("", Contract::ProductBf16(product.retyped(name))),
                ("", Contract::ProductF16(product.retyped(of_f16))),
            ],
            Contract::ProductBf16F32(product) => vec![
                ("", Contract::ProductBf16F32(product.retyped(name))),
                ("", Contract::ProductF16F32(product.retyped(of_f16))),
            ],
            other => vec![("", other.clone())],
        };
        let entry = |(lie, contract): (&str, Contract)| {
            let of = match &contract {
                Contract::ProductBf16(_) | Contract::TensorProductBf16(_) => {
                    "general product of bf16, C of bf16, "
                }
                Contract::ProductBf16F32(_) | Contract::TensorProductBf16F32(_) => {
                    "general product of bf16, C of f32, "
                }
                Contract::ProductF16(_) | Contract::TensorProductF16(_) => {
                    "general product of f16, C of f16, "
                }
                Contract::ProductF16F32(_) | Contract::TensorProductF16F32(_) => {
                    "general product of f16, C of f32, "
                }
                _ => "",
            };
            let summary = match (of, lie) {
                ("", "") => self.summary,
                _ => format!("{of}{}{lie}", self.summary).leak(),
            };
            let Design { rung, on_gpu, on_cpu, .. } = *self;
            Entry { summary, rung, on_gpu, on_cpu, contract }
        };
        variants.into_iter().map(entry).collect()
    }
}

/// How A and B lie: as BLAS says it, in words, and whether their steps of k lie side by side.
const LAYOUTS: [(&str, &str, [bool; 2]); 4] = [
    ("nn", "; A along k, B along n", [true, false]),
    ("nt", "; A and B along k", [true, true]),
    ("tn", "; A along m, B along n", [false, false]),
    ("tt", "; A along m, B along k", [false, true]),
];

/// How fast a kernel is where it has enough to do, and with how little (docs/measurements.md, "The choice of a kernel").
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// 10^9 FLOP a second of one multiprocessor of an H200, or of one core.
    pub gflops: f64,
    /// The share of that which one block alone comes to.
    pub alone: f64,
    /// Microseconds before the first and after the last operation.
    pub fixed_us: f64,
    /// Of which products.
    pub of: Products,
}

/// Which products a kernel's speed is that of, as they are put before the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Products {
    /// All.
    All,
    /// Those of at most so many columns.
    Columns(usize),
    /// Those of which the shorter of m and n is so long at least, and 64 at most.
    ShorterSide(usize),
    /// Those on other GPUs than Hopper's, which have faster units.
    OtherGpus,
    /// These, of rows or columns that begin at multiples of sixteen bytes: without pieces it copies element by element.
    OtherGpusAligned,
}

/// The constants of a kernel that is called so, of operands of `T`: which of 16 bits they are, where it takes either.
fn constants_of<T: Taken>(declaration: &Declaration, name: &'static str) -> Constants {
    let is_half = declaration.constants.iter().any(|constant| constant.name == "half");
    match T::HALF {
        Some(half) if is_half => Constants::NONE.with_word("half", half).named(name),
        _ => Constants::NONE,
    }
}

impl<T: Taken, O: Taken> GeneralProduct<T, O> {
    /// The same of other types, which its kernel takes as these, under that name.
    fn retyped<U, P>(&self, name: &'static str) -> GeneralProduct<U, P>
    where
        U: Taken<As = T::As>,
        P: Taken<As = O::As>,
    {
        let GeneralProduct { block, tile, kernel: GemmKernel { kernel, checked }, .. } = *self;
        let constants = constants_of::<U>(&kernel.declaration, name);
        GeneralProduct { block, tile, constants, kernel: GemmKernel { kernel, checked } }
    }
}

impl<T: Taken, O: Taken> TensorProduct<T, O>
where
    TensorKernel<T::As, O::As>: Copy,
{
    /// The same of other types, which its kernel takes as these.
    fn retyped<U, P>(&self) -> TensorProduct<U, P>
    where
        U: Taken<As = T::As>,
        P: Taken<As = O::As>,
    {
        let &TensorProduct { tile, steps, most_splits, a, b, along_k, walkers, narrow, .. } = self;
        let (is_one_of_four, constants, kernel) =
            (self.is_one_of_four, self.constants, self.kernel);
        TensorProduct {
            tile,
            steps,
            most_splits,
            a,
            b,
            along_k,
            is_one_of_four,
            walkers,
            narrow,
            constants,
            kernel,
        }
    }

    /// It, or where constants of its kernel say how A and B lie, each way: how that is in words, and what it computes.
    fn variants(
        &self,
        name: &'static str,
        contract: fn(TensorProduct<T, O>) -> Contract,
    ) -> Vec<(&'static str, Contract)> {
        let declaration = self.kernel.declaration();
        let constants = constants_of::<T>(declaration, name);
        if !declaration.constants.iter().any(|constant| constant.name == "a_mn_major") {
            return vec![("", contract(TensorProduct { constants, ..self.retyped() }))];
        }
        let blocks = self.walkers.unwrap_or(1) as usize;
        let variant = |(layout, words, along_k): (&str, _, [bool; 2])| {
            let constants = constants
                .with("a_mn_major", u32::from(!along_k[0]))
                .with("b_mn_major", u32::from(!along_k[1]))
                .named(format!("{name}_{layout}").leak());
            let boxes = |i: usize| wgmma_boxes(along_k[i], self.tile[i] as usize / blocks);
            let (a, b) = (boxes(0), boxes(1));
            (words, contract(TensorProduct { a, b, along_k, constants, ..self.retyped() }))
        };
        LAYOUTS.map(variant).into()
    }
}
