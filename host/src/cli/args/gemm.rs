//! Flags of `gemm`.

use std::{fmt::Write, path::PathBuf};

use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, TypedValueParser},
};
use host::{Layout, Type, gemm::Card, gpu::registry::Product, npy};

use super::{
    ComputeMode, DevicesChoice, Offering, Verify, all_products,
    bytes::{bytes, bytes_or_none},
    cards,
    devices::several,
    kernel::of_name,
    name_of, seed,
};

/// Flags of a product of files.
#[derive(Args, Clone, Debug)]
#[command(after_help = GEMM_EXIT_CODES)]
pub(crate) struct Gemm {
    /// A: a .npy file of float16, float32, float64 or bfloat16 (see --type), in C or Fortran order.
    /// It has two dimensions, or one: then it is a row. Bytes after its data are ignored, with a
    /// warning
    #[arg(long, value_name = "NPY")]
    pub(crate) a: PathBuf,

    /// B: likewise; with one dimension it is a column
    #[arg(long, value_name = "NPY")]
    pub(crate) b: PathBuf,

    /// The old C, for beta: likewise; with one dimension it is C's row or column, if C has only one
    #[arg(long, value_name = "NPY")]
    pub(crate) c: Option<PathBuf>,

    /// Where to write C, a .npy file. An existing file is replaced when all is done, an operand
    /// only with --force
    #[arg(long, value_name = "NPY")]
    pub(crate) out: PathBuf,

    /// Replace an operand, if --out is one
    #[arg(long)]
    pub(crate) force: bool,

    /// The factor of op(A) op(B)
    #[arg(long, default_value_t = 1.0, value_parser = finite, allow_negative_numbers = true)]
    pub(crate) alpha: f64,

    /// The factor of the old C [default: 1 with --c, otherwise 0]
    #[arg(long, value_parser = finite, allow_negative_numbers = true)]
    pub(crate) beta: Option<f64>,

    /// op(A) is A's transpose
    #[arg(long)]
    pub(crate) trans_a: bool,

    /// op(B) is B's transpose
    #[arg(long)]
    pub(crate) trans_b: bool,

    /// The type of two raw bytes in the files (`V2`, which is how ml_dtypes writes bfloat16). Such
    /// numbers are read exactly and computed in float32. C has this type, too, unless --out-type
    /// says otherwise
    #[arg(long = "type", value_name = "bf16", hide_possible_values = true)]
    #[arg(value_parser = raw_types())]
    pub(crate) raw_type: Option<Type>,

    /// The type of the file's elements. A narrower type is rounded to the nearest [default: bf16
    /// with --type bf16, otherwise that of the computation: f8 if an operand is, else f4]
    #[arg(long, value_parser = types_of_files(file_types()))]
    pub(crate) out_type: Option<Type>,

    /// Which elements of the file are contiguous: a row's, or a column's
    #[arg(long, value_enum, default_value_t = Order::C)]
    pub(crate) out_order: Order,

    /// How float32 is multiplied. With fp32 factors are not rounded. With tf32 tensor cores may
    /// round factors to 10 bits of fraction. With fp32-bf16x6 and fp32-f16x3 tensor cores multiply
    /// slices of each factor: as accurate as fp32, and faster; fp32-f16x3 is the faster of the two
    /// if numbers have similar sizes. The CPU device does not round or split float32, unless a
    /// kernel that does is named
    #[arg(long, value_enum, default_value_t = ComputeMode::Fp32, hide_possible_values = true)]
    #[arg(value_name = "fp32|fp32-bf16x6|fp32-f16x3|tf32")]
    pub(crate) compute: ComputeMode,

    /// A kernel's name (`host kernels` lists them); auto takes the one with the shortest predicted
    /// time
    #[arg(long, value_name = "auto|NAME", default_value = "auto")]
    #[arg(value_parser = kernels(), hide_possible_values = true)]
    pub(crate) kernel: String,

    /// Where to run: auto takes a GPU if there is one. Several devices compute parts of C each: all
    /// GPUs, some of them, or so many CPU devices. The bits are those of one with as much memory as
    /// each
    #[arg(long, value_name = "auto|cuda[:N[,N..]|:all]|cpu[:COUNT]", default_value_t = DevicesChoice::One(super::DeviceChoice::Auto))]
    #[arg(value_parser = several(), hide_possible_values = true)]
    pub(crate) device: DevicesChoice,

    /// Memory of each device for A, B and C: larger products are computed in blocks. Bytes, or with
    /// K, M, G or T [default: most of a GPU's free memory, half of what the CPU has available]
    #[arg(long, value_name = "BYTES", value_parser = bytes, allow_negative_numbers = true)]
    pub(crate) device_memory_limit: Option<u64>,

    /// Device memory for a kernel's workspace, in addition to --device-memory-limit: kernels that
    /// need more are not used. Bytes, or with K, M, G or T [default: 256M]
    #[arg(long, value_name = "BYTES", value_parser = bytes_or_none, allow_negative_numbers = true)]
    pub(crate) workspace_limit: Option<u64>,

    /// Steps of the inner size that are computed at a time. After each part C is rounded. If all
    /// are computed at once, the bits do not depend on the blocks [default: all, if the memory
    /// allows]
    #[arg(long, value_name = "STEPS", value_parser = steps, allow_negative_numbers = true)]
    pub(crate) block_k: Option<usize>,

    /// Which elements of C to compare with float64, before its file gets its name
    #[arg(long, value_enum, default_value_t = Verify::Auto)]
    pub(crate) verify: Verify,

    /// Seed of the sample that is compared
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,

    /// Print the kernel, the blocks and the bytes read, and run nothing. Only the headers of the
    /// files are read. With --device-memory-limit no device is opened
    #[arg(long)]
    pub(crate) plan: bool,

    /// The GPU to plan for, if no device is opened [default: h200, with --device cpu the CPU]
    #[arg(long, value_parser = cards(), value_name = "GPU")]
    #[arg(requires_all = ["plan", "device_memory_limit"])]
    pub(crate) on: Option<&'static Card>,

    /// One JSON object on standard output; `verified` is null if nothing was compared
    #[arg(long)]
    pub(crate) json: bool,
}

const GEMM_EXIT_CODES: &str = "Exit codes: 0 written, and nothing compared is wrong; 1 C is wrong; 2 usage, and files that are not what \
     they must be; the others as for a product. The file is written in 0, and in 4 where nothing but \
     the report could not be printed.";

/// The types of files' elements, those of more bytes last.
fn file_types() -> Vec<Type> {
    let mut types = npy::types().collect::<Vec<_>>();
    types.sort_by_key(|of| (of.bytes(), npy::name(*of) == of.name()));
    types
}

/// Takes the types among `all`, by their names in files.
fn types_of_files(all: Vec<Type>) -> impl TypedValueParser<Value = Type> {
    let values = all.iter().map(|of| PossibleValue::new(npy::name(*of)).help(of.numpy())).collect();
    let parser = move |text: &str| {
        all.iter().copied().find(|of| npy::name(*of) == text).ok_or_else(|| {
            let names = all.iter().map(|of| npy::name(*of)).collect::<Vec<_>>();
            format!("must be one of {}", names.join(", "))
        })
    };
    Offering { parser, values }
}

/// The types that NumPy's files cannot name.
fn raw_types() -> impl TypedValueParser<Value = Type> {
    types_of_files(file_types().into_iter().filter(|of| npy::name(*of) == of.name()).collect())
}

/// NumPy's orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// Row after row
    C,
    /// Column after column
    Fortran,
}

impl From<Order> for Layout {
    fn from(order: Order) -> Layout {
        match order {
            Order::C => Layout::RowMajor,
            Order::Fortran => Layout::ColMajor,
        }
    }
}

impl Gemm {
    /// beta: as given, or the default.
    pub(crate) fn beta(&self) -> f64 {
        self.beta.unwrap_or(if self.c.is_some() { 1.0 } else { 0.0 })
    }

    /// The type of the elements of C's file. `computed` is the type of the computation.
    pub(crate) fn out_dtype(&self, computed: Type) -> Type {
        self.out_type.or(self.raw_type).unwrap_or(computed)
    }

    /// The command line that repeats this run on that device.
    pub(crate) fn to_command(&self, device: &str) -> String {
        let Gemm { a, b, out, alpha, kernel, .. } = self;
        let mut line = format!("cargo run -p host -- gemm --a {a:?} --b {b:?}");
        // Writing to a string does not fail.
        if let Some(c) = &self.c {
            let _ = write!(line, " --c {c:?}");
        }
        let _ = write!(line, " --out {out:?} --alpha {alpha} --beta {}", self.beta());
        let given = [("force", self.force), ("trans-a", self.trans_a), ("trans-b", self.trans_b)];
        for (flag, given) in given {
            if given {
                let _ = write!(line, " --{flag}");
            }
        }
        if let Some(raw_type) = self.raw_type {
            let _ = write!(line, " --type {}", npy::name(raw_type));
        }
        if let Some(out_type) = self.out_type {
            let _ = write!(line, " --out-type {}", npy::name(out_type));
        }
        let _ = write!(line, " --out-order {}", name_of(&self.out_order));
        if self.compute != ComputeMode::Fp32 {
            let _ = write!(line, " --compute {}", name_of(&self.compute));
        }
        let _ = write!(line, " --kernel {kernel} --device {device}");
        if let Some(limit) = self.device_memory_limit {
            let _ = write!(line, " --device-memory-limit {limit}");
        }
        if let Some(limit) = self.workspace_limit {
            let _ = write!(line, " --workspace-limit {limit}");
        }
        if let Some(steps) = self.block_k {
            let _ = write!(line, " --block-k {steps}");
        }
        let _ = write!(line, " --verify {} --seed {}", name_of(&self.verify), self.seed);
        line
    }
}

fn finite(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .ok_or_else(|| "must be a finite number".to_owned())
}

fn steps(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|&steps| steps > 0)
        .ok_or_else(|| format!("must be a whole number from 1 to {}", usize::MAX))
}

/// The kernels for products of f32 and of f64. Whether one takes these files is checked later.
fn kernels() -> impl TypedValueParser<Value = String> {
    let products = || {
        all_products().filter(|entry| {
            let of = |product: &Product| [Type::F32, Type::F64].contains(&product.variant.operands);
            entry.product.as_ref().is_some_and(of)
        })
    };
    let auto = PossibleValue::new("auto").help("the one that is predicted to be the fastest");
    let named = products().map(|entry| PossibleValue::new(entry.name()).help(entry.summary));
    let values = std::iter::once(auto).chain(named).collect();
    let parser = move |name: &str| match name {
        "auto" => Ok(name.to_owned()),
        _ => of_name(products().collect(), name, "auto").map(|entry| entry.name().to_owned()),
    };
    Offering { parser, values }
}
