//! A table of counts on the CPU and by Nsight Compute.

use std::{fmt::Write, num::NonZeroU32};

use host::{
    Shape,
    gpu::registry,
    profile::{self, Total},
    simt::{
        check::{self, Profile},
        types::NumberFormat,
    },
};
use specimens::list::find;

/// Markdown for a file of `ncu --csv --page raw`. Kernels of the registry are counted at this
/// shape, specimens as listed. Every block is counted, here on the CPU.
pub(crate) fn table(file: &str, shape: Option<Shape>) -> Result<String, String> {
    let mut reader = csv::Reader::from_path(file).map_err(|error| error.to_string())?;
    let names = reader.headers().map_err(|error| error.to_string())?.clone();
    let column = |name: &str| names.iter().position(|other| other == name);
    let kernel_column = column("Kernel Name").ok_or("there is no column `Kernel Name`")?;
    let mut text =
        "| kernel | metric | ncu | counted | differs by |\n|---|---|---|---|---|\n".to_owned();
    for row in reader.records() {
        let row = row.map_err(|error| error.to_string())?;
        let kernel = &row[kernel_column];
        // The second line of the file has the units.
        if kernel.is_empty() {
            continue;
        }
        for Total { name, value, merged, .. } in
            profile::totals(&profile(kernel, shape)?, computed_in(kernel))
        {
            let number = |column: usize| {
                let text = row[column].replace(',', "");
                text.parse::<u64>().map_err(|_| format!("{kernel}, {name}: {text}"))
            };
            let Some(mut measured) = column(name).map(number).transpose()? else { continue };
            // The profile takes `ldmatrix` for a load. ncu has a count of its own.
            if name == "smsp__sass_inst_executed_op_shared_ld.sum" {
                let of_matrices = column("smsp__sass_inst_executed_op_ldsm.sum").map(number);
                measured += of_matrices.transpose()?.unwrap_or(0);
            }
            // The GPU runs what the compiler made of the source.
            let counted = merged.unwrap_or(value);
            if measured == 0 && counted == 0 {
                continue;
            }
            let percent = 100.0 * (counted as f64 - measured as f64) / measured.max(1) as f64;
            let percent =
                if measured == counted { "0".to_owned() } else { format!("{percent:+.2} %") };
            let _ =
                writeln!(text, "| `{kernel}` | `{name}` | {measured} | {counted} | {percent} |");
        }
    }
    Ok(text)
}

/// The format in which a kernel multiplies and adds.
fn computed_in(kernel: &str) -> NumberFormat {
    let product = registry::find(kernel).and_then(|entry| entry.product.as_ref());
    product.and_then(|product| product.variant.operands.sums()).unwrap_or(NumberFormat::F32)
}

fn profile(kernel: &str, shape: Option<Shape>) -> Result<Profile, String> {
    let every = NonZeroU32::MIN;
    if let Some(specimen) = find(kernel) {
        let mut options = check::Options::default();
        options.profile = Some(every);
        let report = specimen.check(&specimen.x(), &mut specimen.y(), &options);
        return report.map_err(|stop| stop.to_string())?.profile.ok_or("not counted".to_owned());
    }
    let shape = shape.ok_or_else(|| format!("{kernel} is no specimen: say M N K"))?;
    let entry = registry::find(kernel).ok_or_else(|| format!("there is no kernel {kernel}"))?;
    let profiled = profile::product(entry, shape, every, 1).map_err(|error| error.to_string())?;
    Ok(profiled.profile)
}
