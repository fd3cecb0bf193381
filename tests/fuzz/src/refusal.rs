//! What of a product may be refused, and what must be: from the documentation, not by the library's
//! rules.

use gpu::registry::{Access, Entry, Family, Scheme};
use gpu_gemm::Compute;
use tests::gemm::Place;

use crate::{
    memory::{coincide, is_nested},
    product::{Form, Kernel, Product, Way, Wrong},
};

/// Arguments that an error may name. `must`: it must name one of these, or one of the others.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// Because of which a product must be refused.
    pub must: Vec<&'static str>,
    /// Because of which it may be refused.
    pub may: Vec<&'static str>,
}

impl Refusal {
    /// Of a product on a device. `is_hopper`: whether it runs every kernel, as the CPU device does.
    pub fn of(product: &Product, is_cuda: bool, is_hopper: bool) -> Self {
        let mut of = Refusal::default();
        of.wrong(product);
        of.places(product);
        of.prepared(product);
        of.kernel(product, is_hopper);
        of.splits(product, is_cuda);
        // A GPU takes copies of host memory. Their strides are others, for which the kernel that
        // was chosen for the product's strides may be none.
        let is_copied = is_cuda && matches!(product.way, Way::Slices | Way::Arrays);
        if is_copied && matches!(product.kernel, Kernel::AsOn(_)) {
            of.may.extend(["kernel", "partials"]);
        }
        // An array of no products asks for nothing.
        if product.way == Way::Array && product.count() == 0 {
            of.may.append(&mut of.must);
        }
        of
    }

    /// Whether an error with that argument is allowed.
    pub fn allows(&self, argument: &str) -> bool {
        // Of an array the error says which product it is.
        let argument = match argument.strip_prefix("product ") {
            Some(rest) => rest.split_once(": ").map_or(rest, |(_, argument)| argument),
            None => argument,
        };
        self.must.iter().chain(&self.may).any(|allowed| *allowed == argument)
    }

    fn wrong(&mut self, product: &Product) {
        self.must.extend(match product.wrong {
            None => &[][..],
            Some(Wrong::Bias) => &["bias.len()"],
            Some(Wrong::Count) => &["B.count"],
            Some(Wrong::Size) => &["B.rows", "B"],
            Some(Wrong::Shares | Wrong::SharesLast) => &["A"],
            Some(Wrong::Splits) => &["split_k"],
            Some(Wrong::Partials) => &["partials"],
            Some(Wrong::PlannedSize) => &["B", "C"],
            Some(Wrong::PlannedStrides) => &["A.strides"],
        });
    }

    fn places(&mut self, product: &Product) {
        let sizes = product.sizes();
        for (i, name) in ["A.strides", "B.strides", "C.strides"].into_iter().enumerate() {
            let (rows, cols) = sizes[i];
            let [by_rows, by_cols] = product.inverted[i];
            let [between_rows, between_cols] = product.places[i].strides;
            let is_negative = |is_inverted: bool, size: usize, distance: usize| {
                is_inverted && size > 1 && distance > 0
            };
            let any = is_negative(by_rows, rows, between_rows)
                || is_negative(by_cols, cols, between_cols);
            if rows * cols > 0 && any {
                self.must.push(name);
            }
        }
        let (place, size) = (&product.places[2], sizes[2]);
        let refused = match product.way {
            Way::Arrays | Way::Slices => &["strides", "C.strides"][..],
            Way::Array => &["strides", "C", "C.elements", "outputs"],
            _ => &["strides", "step"],
        };
        if coincide(place, size) {
            self.must.extend(refused);
        } else if !is_nested(place, size) {
            self.may.extend(refused);
        } else if product.way == Way::Array && alternate(place, size) {
            self.may.push("C");
        }
    }

    fn prepared(&mut self, product: &Product) {
        let [a, b] = [0, 1].map(|i| view(product, i));
        for (i, operand) in [a, b].into_iter().enumerate() {
            let Some(form) = product.prepared[i] else { continue };
            let (size, strides) = match form {
                Form::Itself => operand,
                Form::Transposed => transposed(operand),
                Form::Part => ((operand.0.0.saturating_sub(1), operand.0.1), operand.1),
            };
            // Both have one address where they share their memory. Slices are of one matrix, not of
            // a batch of several.
            let is_of = |other: usize, (its_size, its_strides)| {
                let here = other == i || product.shared;
                let is_one = product.count() <= 1 || product.places[other].step == 0;
                let turned = transposed((its_size, its_strides));
                let fits = (its_size, its_strides) == (size, strides) || turned == (size, strides);
                here && is_one && fits
            };
            match product.way {
                Way::Planned => self.must.push("prepared"),
                _ if is_of(0, a) || is_of(1, b) => {}
                // Nothing without elements is wrong. An array has one product after the other.
                _ if size.0 * size.1 == 0 || product.way == Way::Array => self.may.push("prepared"),
                _ => self.must.push("prepared"),
            }
            if product.compute != Compute::Native && strides[0] != 1 && strides[1] != 1 {
                self.may.push("matrix");
            }
        }
    }

    fn kernel(&mut self, product: &Product, is_hopper: bool) {
        let Kernel::Named(entry) = product.kernel else { return };
        let (scheme, allowed) = (entry.scheme(), product.compute);
        let is_allowed = match scheme {
            Scheme::Native => true,
            Scheme::Tf32 => allowed == Compute::Tf32,
            Scheme::Bf16x6 => allowed == Compute::Fp32Bf16x6,
            Scheme::F16x3 => allowed == Compute::Fp32F16x3,
        };
        if !is_allowed {
            self.must.extend(["kernel", "partials"]);
        }
        if matches!(product.wrong, Some(Wrong::PlannedSize | Wrong::PlannedStrides)) {
            self.may.extend(["kernel", "partials"]);
        }
        let takes = is_hopper || entry.declaration().arch.is_none();
        if !takes || !takes_operands(entry, product) || product.workspace_limit.is_some() {
            self.may.extend(["kernel", "partials"]);
        }
    }

    fn splits(&mut self, product: &Product, is_cuda: bool) {
        let [m, n, k] = product.size;
        let (splits, partials) = (product.split_k.unwrap_or(1), product.partials.unwrap_or(1));
        if splits > 1 && partials > 1 {
            self.must.push("split_k");
        }
        if splits > 1 {
            let requires =
                |entry: &Entry| entry.product.as_ref().is_some_and(|of| of.requires_layouts());
            match product.kernel {
                // Kernels that split k are used by name alone on the CPU device.
                Kernel::Chosen if !is_cuda => self.may.push("kernel"),
                Kernel::Named(entry) if requires(entry) => {}
                _ => self.may.push("kernel"),
            }
        }
        if partials > 1 {
            let is_for_it =
                |entry: &Entry| entry.product.as_ref().is_some_and(|of| !of.is_lesson());
            let has_c_of_f32 = match product.kernel {
                Kernel::Named(entry) => {
                    is_for_it(entry)
                        && entry.product.is_some_and(|of| of.variant.c == gpu::registry::Type::F32)
                }
                _ => product.types != crate::product::Types::F64,
            };
            let has_parts = m * n > 0 && k > 64 && product.count() == 1;
            if !has_parts || !has_c_of_f32 || product.workspace_limit.is_some() || splits > 1 {
                self.may.extend(["partials", "kernel"]);
            }
        }
        if let (Kernel::AsOn(target), true) = (product.kernel, splits > 1) {
            // An A100 has no clusters.
            if target.capability != (9, 0) {
                self.may.extend(["partials", "kernel"]);
            }
        }
    }
}

type View = ((usize, usize), [usize; 2]);

/// Whether the elements of a row take turns with those of other matrices of a batch. Such outputs
/// of an array are not told apart; columns that take turns are.
fn alternate(place: &Place, (rows, cols): (usize, usize)) -> bool {
    let [between_rows, between_cols] = place.strides;
    let sides = [(rows, between_rows), (cols, between_cols)];
    let nearest = sides.into_iter().filter(|(size, _)| *size > 1).map(|(_, distance)| distance);
    nearest.min().is_some_and(|nearest| place.step < nearest)
}

/// An operand's size and strides.
fn view(product: &Product, i: usize) -> View {
    (product.sizes()[i], product.places[i].strides)
}

fn transposed((size, strides): View) -> View {
    ((size.1, size.0), [strides[1], strides[0]])
}

/// Whether that kernel certainly takes the operands as they lie. (Some kernels take more.)
fn takes_operands(entry: &Entry, product: &Product) -> bool {
    let Some(of) = &entry.product else { return false };
    let [a, b, c] = product.places;
    let [m, n, k] = product.size;
    let is_dense = |place: &Place, (_, cols): (usize, usize)| place.strides == [cols, 1];
    if matches!(of.variant.family, Family::Lesson(_)) {
        let all =
            product.places.iter().zip(product.sizes()).all(|(place, size)| is_dense(place, size));
        return all
            && product.is_plain()
            && product.wrong != Some(Wrong::Bias)
            && product.count() <= 1
            && product.split_k.unwrap_or(1) == 1;
    }
    if matches!(of.variant.access, Access::Strided | Access::Dot) {
        return true;
    }
    // A side of one element is contiguous along either side. Only the plain cases count here.
    if m <= 1 || n <= 1 || k <= 1 {
        return false;
    }
    let is_turned = c.strides[0] == 1 && c.strides[1] != 1;
    let along_k = [a.strides[1] == 1 && a.strides[0] >= k, b.strides[0] == 1 && b.strides[1] >= k];
    let along_other =
        [a.strides[0] == 1 && a.strides[1] >= m, b.strides[1] == 1 && b.strides[0] >= n];
    // As the kernel sees them.
    let (along_k, along_other) = match is_turned {
        false => (along_k, along_other),
        true => ([along_k[1], along_k[0]], [along_other[1], along_other[0]]),
    };
    [0, 1].into_iter().all(|i| if of.variant.k_major()[i] { along_k[i] } else { along_other[i] })
}
