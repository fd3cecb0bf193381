//! Flags of `errors`.

use clap::{Args, ValueEnum, builder::TypedValueParser};
use host::{Device, Type};

use super::{
    ComputeMode, DeviceChoice, KernelChoice, Vs, devices, iterations, kernels, seed, types::one_of,
    within,
};

/// Flags of a table of errors.
#[derive(Args, Clone, Debug)]
pub(crate) struct Errors {
    /// Inner sizes, separated by commas [default: 64,256,1024,4096,16384 on a GPU, 64,256,1024 on
    /// the CPU]
    #[arg(long, value_name = "K", value_delimiter = ',')]
    #[arg(value_parser = within::<1, { 1 << 20 }>)]
    inner: Vec<u32>,

    /// Rows and columns of C [default: 1024 on a GPU, 128 on the CPU]
    #[arg(long, value_name = "N", value_parser = within::<1, 16384>)]
    pub(crate) outer: Option<u32>,

    /// Rows of C that are compared, distributed over all of them
    #[arg(long, default_value_t = 64, value_parser = iterations)]
    pub(crate) rows: u32,

    /// Kinds of numbers, separated by commas [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) numbers: Vec<Numbers>,

    /// The number of products of each kind and inner size
    #[arg(long, default_value_t = 3, value_parser = within::<1, 100>)]
    pub(crate) seeds: u32,

    /// The first product's seed. The others have the following ones
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,

    /// Type of A, B and C
    #[arg(long = "type", value_name = "f32|f64", default_value_t = Type::F32)]
    #[arg(value_parser = wide_types(), hide_possible_values = true)]
    pub(crate) operands: Type,

    /// How f32 is multiplied, as for a product
    #[arg(long, value_enum, default_value_t = ComputeMode::Fp32, hide_possible_values = true)]
    #[arg(value_name = "fp32|fp32-bf16x6|fp32-f16x3|tf32")]
    pub(crate) compute: ComputeMode,

    /// A kernel's name (`host kernels` lists them); auto takes the one with the shortest predicted
    /// time
    #[arg(long, value_name = "auto|NAME", default_value_t = KernelChoice::Auto)]
    #[arg(value_parser = kernels(), hide_possible_values = true)]
    pub(crate) kernel: KernelChoice,

    /// Compare with other libraries, as `bench` does
    #[arg(long, value_enum)]
    pub(crate) vs: Option<Vs>,

    /// Where to run: auto takes a GPU if there is one
    #[arg(long, value_name = "auto|cuda[:N]|cpu", default_value_t = DeviceChoice::Auto)]
    #[arg(value_parser = devices(), hide_possible_values = true)]
    pub(crate) device: DeviceChoice,

    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The types whose sums are of that type: a C that is rounded shows its rounding alone.
fn wide_types() -> impl TypedValueParser<Value = Type> {
    one_of(Type::multiplied().filter(|of| of.sums() == Some(of.format())).collect())
}

/// The values in the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Numbers {
    /// Normally distributed
    Normal,
    /// Uniform in [0, 1)
    Positive,
    /// Normal, times 2^-20 to 2^20, another power for each element
    Wide,
    /// Normal, times 2^-20 to 2^20, another power for each row of A and column of B
    WideRows,
    /// Normal; one element of each row of A and column of B is 2^20 times as large
    Outlier,
    /// Normal; in each sum the second half of the terms is the first half with the other sign,
    /// except for 2^-12
    Cancelling,
}

impl Errors {
    /// The inner sizes asked for, or default ones that take the device about a minute. Second, the
    /// default sizes of a GPU that are left out.
    pub(crate) fn inner_on(&self, device: &Device) -> (&[u32], &[u32]) {
        const ALL: [u32; 5] = [64, 256, 1024, 4096, 16384];
        match &self.inner[..] {
            [] if device.is_cuda() => (&ALL, &[]),
            [] => ALL.split_at(3),
            asked => (asked, &[]),
        }
    }

    /// The kinds asked for.
    pub(crate) fn kinds(&self) -> &[Numbers] {
        match &self.numbers[..] {
            [] => Numbers::value_variants(),
            asked => asked,
        }
    }
}
