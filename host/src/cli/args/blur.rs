//! Flags of `blur`.

use std::path::PathBuf;

use clap::{
    Args,
    builder::{PossibleValue, TypedValueParser},
};
use host::{
    blur::{self, BLURS},
    gpu::lessons::blur::MAX_RADIUS,
};

use super::{DeviceChoice, Offering, devices, iterations};

/// Flags of a blur.
#[derive(Args, Clone, Debug)]
#[command(after_help = BLUR_EXIT_CODES)]
pub(crate) struct Blur {
    /// The image: a PNG file of up to 8 bits a channel, gray or in colour, with alpha or without
    #[arg(long = "in", value_name = "PNG")]
    pub(crate) input: PathBuf,

    /// Where to write the blurred image, a PNG file. An existing file is replaced when all is done,
    /// the image itself only with --force
    #[arg(long = "out", value_name = "PNG")]
    pub(crate) output: PathBuf,

    /// Replace the image, if --out is --in
    #[arg(long)]
    pub(crate) force: bool,

    /// Rows and pixels of the box on each side of its centre; at most the longer side of the image
    #[arg(long, allow_negative_numbers = true, value_parser = radius)]
    pub(crate) radius: u32,

    /// blur reads everything from global memory, blur_shared a tile and its halo from shared memory
    #[arg(long, value_name = "NAME", default_value = "blur")]
    #[arg(value_parser = blurs(), hide_possible_values = true)]
    pub(crate) kernel: &'static blur::Blur,

    /// Where to run: auto takes a GPU if there is one
    #[arg(long, value_name = "auto|cuda[:N]|cpu", default_value_t = DeviceChoice::Auto)]
    #[arg(value_parser = devices(), hide_possible_values = true)]
    pub(crate) device: DeviceChoice,

    /// How often to run the kernel; the time shown is the median [default: 1 on the CPU, 20 on a
    /// GPU]
    #[arg(long, value_parser = iterations, allow_negative_numbers = true)]
    pub(crate) iters: Option<u32>,

    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const BLUR_EXIT_CODES: &str = "Exit codes: 0 written; 1 the blurred image is wrong; the others as for a product. The image is \
     written in 0, and in 4 where nothing but the report could not be printed.";

impl Blur {
    /// The command line that repeats this run on that device.
    pub(crate) fn to_command(&self, device: &str) -> String {
        let Blur { input, output, radius, kernel, .. } = self;
        let force = if self.force { " --force" } else { "" };
        format!(
            "cargo run -p host -- blur --in {input:?} --out {output:?}{force} --radius {radius} --kernel {} \
             --device {device}",
            kernel.name()
        )
    }
}

fn radius(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|radius| (1..=MAX_RADIUS).contains(radius))
        .ok_or_else(|| format!("must be a whole number from 1 to {MAX_RADIUS}"))
}

fn blurs() -> impl TypedValueParser<Value = &'static blur::Blur> {
    let parser = |name: &str| {
        blur::find(name).map_err(|error| match error {
            host::Error::Argument { limit, .. } => limit,
            error => error.to_string(),
        })
    };
    let values = BLURS.iter().map(|blur| PossibleValue::new(blur.name())).collect();
    Offering { parser, values }
}
