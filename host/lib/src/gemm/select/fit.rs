//! The one evaluation of a candidate: whether a kernel can compute a product, how, and in what
//! time.

use gpu::registry::{Access, Family, Products, Scheme, Speed};
use simt::{Bf16, F16};

use super::{
    Request,
    choice::{Choice, Reason},
    layout::{OperandLayout, OperandPlan, layouts_of, timed_bytes, unit},
    rules::{self, Ineligible},
    scale::Scale,
    times::{self, Times},
    work::{Work, bytes, two_widths},
};
use crate::gemm::{
    Target,
    scalar::Kernel,
    split::{self, Slice},
};

/// How a kernel computes a product.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    pub(super) kernel: Kernel,
    /// How A and B are prepared.
    pub(super) operands: OperandPlan,
    /// The request as the kernel sees it.
    given: Request,
    /// How the kernel reads A and B, if it needs certain layouts.
    layouts: Option<[OperandLayout; 2]>,
    /// Blocks of a cluster that split k.
    pub(super) split_k: u32,
    /// Partial products that split k over the grid.
    pub(super) partials: u32,
    /// Bytes of workspace.
    pub(super) workspace_bytes: u64,
    /// The predicted time on the target. `None` where the kernel was not measured, or where another
    /// one is always better.
    pub(super) times: Option<Times>,
}

/// How a kernel computes a product on a device, and in what time.
///
/// # Errors
/// The rule that rejects it.
pub(super) fn evaluate(
    kernel: Kernel,
    request: &Request,
    target: &Target,
) -> Result<Fit, Ineligible> {
    let fit = untimed(kernel, request, target)?;
    Ok(Fit { times: fit.times_on(target), ..fit })
}

/// How a kernel computes a product on a device.
///
/// # Errors
/// The rule that rejects it.
pub(super) fn untimed(
    kernel: Kernel,
    request: &Request,
    target: &Target,
) -> Result<Fit, Ineligible> {
    let prepared = rules::operands(&kernel, request, target)?;
    let (operands, given, layouts) = match prepared {
        Some((operands, given, layouts)) => (operands, given, Some(layouts)),
        None => (OperandPlan::default(), *request, None),
    };
    let workspace_bytes = operands.workspace_bytes();
    let of_request = Fit {
        kernel,
        operands,
        given,
        layouts,
        split_k: request.split_k.unwrap_or(1).clamp(1, kernel.product.most_splits),
        partials: 1,
        workspace_bytes,
        times: None,
    };
    Ok(match kernel.entry.on_gpu {
        Some(speed) => of_request.fastest(&speed, request),
        None => of_request,
    })
}

impl Fit {
    /// With the split of k that is fastest, and for a kernel of any strides with A and B swapped
    /// where that is faster: on an H200, so that a product has the same bits on every device. Not
    /// of `mma`, which stores the columns of C element by element.
    fn fastest(self, speed: &Speed, request: &Request) -> Fit {
        let product = self.kernel.product;
        let of = |fit: &Fit| fit.work(speed).times(&Target::H200, 1).device_us;
        let [rows, cols] = product.tile();
        let is_mma = product.variant.family == Family::Mma;
        let swaps = product.is_general() && rows != cols && !is_mma || product.is_dot();
        if swaps {
            let operands = OperandPlan::swapped_if(true);
            let swapped = Fit { operands, given: request.swapped(), ..self };
            return if of(&swapped) < of(&self) { swapped } else { self };
        }
        if request.split_k.is_some() || product.most_splits == 1 {
            return self;
        }
        let work = self.work(speed);
        let timed = (1..=product.most_splits)
            .map(|blocks| (work.times(&Target::H200, blocks).device_us, blocks));
        let shorter =
            |best: (f64, u32), timed: (f64, u32)| if timed.0 < best.0 { timed } else { best };
        Fit { split_k: timed.fold((f64::INFINITY, 1), shorter).1, ..self }
    }

    fn work<'a>(&'a self, speed: &'a Speed) -> Work<'a> {
        Work::new(self.kernel.product, &self.given, self.layouts.as_ref(), speed)
    }

    /// The predicted time on the target, for people: no less than its memory needs for A, B and C.
    /// Kernels are selected without that, which is more only on a Hopper GPU with a slower memory
    /// than an H200's.
    pub(super) fn predicted(&self, target: &Target) -> Option<Times> {
        let times = self.times?;
        if !target.cuda {
            return Some(times);
        }
        let bytes = bytes(self.kernel.product, &self.given).iter().sum::<f64>();
        Some(times.at_least(1e-3 * bytes / f64::from(target.gb_per_s.max(1))))
    }

    /// The predicted time on a device.
    pub(super) fn times_on(&self, target: &Target) -> Option<Times> {
        self.launches_on(target).map(Times::called)
    }

    /// The same, without the host's time for the call.
    pub(super) fn launches_on(&self, target: &Target) -> Option<Times> {
        let Kernel { entry, product } = self.kernel;
        let speed = if target.cuda { entry.on_gpu } else { entry.on_cpu }?;
        let Request { shape, batch, .. } = self.given;
        if batch == 0 || shape.c_len() == 0 {
            return Some(Times::default());
        }
        if !self.is_measured(speed.of, target) {
            return None;
        }
        let launch = self.work(&speed).times(target, self.split_k);
        let copies = match product.variant.scheme.is_split() {
            true => self.given.prepared.into_iter().filter(|is_there| !is_there).count() as u32,
            false => self.operands.copies(),
        };
        let scale = Scale::new(product, &speed, target);
        let (copies_us, copies) = (self.copies_us(&scale), f64::from(copies));
        let maps = match product.variant.access {
            _ if !product.requires_layouts() => 0,
            Access::Ldg | Access::Pieces => 0,
            access => access.classes() + 1,
        };
        let host_us = match target.cuda {
            true => (1.0 + copies) * times::LAUNCH_US + maps as f64 * times::MAP_US,
            false => 0.0,
        };
        Some(Times { host_us, device_us: launch.device_us + copies_us, copies_us, ..launch })
    }

    /// Microseconds of the launches that prepare operands.
    fn copies_us(&self, scale: &Scale) -> f64 {
        let (operands, product, given) = (self.operands, self.kernel.product, &self.given);
        let Some(layouts) = &self.layouts else { return 0.0 };
        match product.variant.scheme {
            Scheme::F16x3 => slices_us::<F16>(layouts, given),
            Scheme::Bf16x6 => slices_us::<Bf16>(layouts, given),
            _ if operands.copies() == 0 => 0.0,
            _ => {
                let timed = layouts.iter().zip(given.aligned);
                let bytes =
                    timed.map(|(layout, aligned)| timed_bytes(layout, given.batch, aligned));
                let byte_us = scale.byte_us(times::copy_byte_us(product.variant.operands.bytes()));
                f64::from(operands.copies()) * times::COPY_US + bytes.sum::<f64>() * byte_us
            }
        }
    }

    /// Whether the kernel's speed holds for the product, and no other kernel is always better.
    fn is_measured(&self, of: Products, target: &Target) -> bool {
        let (product, given) = (self.kernel.product, &self.given);
        let (m, n) = (given.shape.m(), given.shape.n());
        let is_hopper = target.capability == (9, 0);
        let holds = match of {
            Products::All => true,
            Products::Columns(most) => n <= most,
            Products::ShorterSide(least) => given.batch == 1 && (least..=64).contains(&m.min(n)),
            // Hopper has faster tensor cores.
            Products::OtherGpus => !is_hopper,
            Products::OtherGpusInPieces => {
                !is_hopper && given.has_whole_pieces(product.variant.operands.bytes())
            }
        };
        // Another kernel has stages that are made for narrow tiles.
        let is_narrow_alone =
            || two_widths(product, given, target).is_some_and(|(across, _)| across == 0);
        // One tensor map loads aligned rows as fast as alignment classes, with fewer tiles
        // (measured for 3000 x 3000 x 3000, 4096 x 4096 x 4104, 8192 x 8192 x 8200, in tf32 for
        // 4096 x 4096 x 4100).
        let needs_no_classes = || {
            let [pitch, step] = given.strides[0];
            let is_even = given.aligned[0] && step == 1 && pitch.is_multiple_of(unit(product));
            product.variant.access.classes() > 1 && is_even
        };
        holds && !is_narrow_alone() && !needs_no_classes()
    }

    /// The same kernel and operand plan for so many products of another k.
    pub(super) fn with(&self, batch: usize, k: usize) -> Fit {
        if (batch, k) == (self.given.batch, self.given.shape.k()) {
            return *self;
        }
        let (product, shape) = (self.kernel.product, self.given.shape.with_k(k as u32));
        let given = Request { shape, batch, ..self.given };
        let layouts = self.layouts.map(|_| layouts_of(product, self.operands, &given));
        let operands = match &layouts {
            Some(layouts) => self.operands.sized(product, &given, layouts),
            None => self.operands,
        };
        Fit { operands, given, layouts, ..*self }
    }

    /// The microseconds by which it is selected.
    pub(super) fn us(&self) -> Option<f64> {
        self.times.map(|times| times.us())
    }

    /// The choice of this kernel on the target.
    pub(super) fn choice(&self, reason: Reason, target: &Target) -> Choice {
        Choice {
            entry: self.kernel.entry,
            reason,
            workspace_bytes: self.workspace_bytes,
            split_k: self.split_k,
            partials: self.partials,
            times: self.predicted(target),
            recomputed: None,
            operands: self.operands,
        }
    }
}

/// Microseconds in which A and B are split into slices, as far as they were not split before.
fn slices_us<S: Slice>(layouts: &[OperandLayout; 2], given: &Request) -> f64 {
    let operands = layouts.iter().zip(given.prepared).filter(|(_, is_prepared)| !is_prepared);
    let bytes = operands.map(|(layout, _)| split::workspace_bytes::<S>(layout.rows(), given.batch));
    match bytes.reduce(u64::saturating_add) {
        Some(bytes) => split::split_us::<S>(bytes),
        None => 0.0,
    }
}
