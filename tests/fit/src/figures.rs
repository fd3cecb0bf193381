//! The figures that are fitted, by where they stand in the source.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use gpu::registry::{Entry, Family, KERNELS, Product, Scheme, Speed, Type, Variant};

/// Of a row: the speed, the share of a lone block, the fixed time, and those of a tile.
pub(crate) type Figures = BTreeMap<&'static str, [f64; 5]>;

/// The figures of a kernel. Lessons are not fitted, nor kernels of f32 on CUDA cores: theirs decide
/// choices that were measured on other GPUs alone.
fn of(entry: &Entry) -> Option<Speed> {
    let Product { variant, .. } = entry.product.as_ref().filter(|of| !of.is_lesson())?;
    let is_f32 = variant.operands == Type::F32 && variant.scheme == Scheme::Native;
    entry.on_gpu.filter(|_| !is_f32)
}

/// Where a kernel's figures stand.
pub(crate) fn place(entry: &Entry) -> Option<&'static str> {
    of(entry).map(|_| row_of(entry))
}

/// The figures in the source.
pub(crate) fn known() -> Figures {
    let figures = |entry| {
        let Speed { gflops, alone, fixed_us, tile_us: [full, partial], .. } = of(entry)?;
        Some((row_of(entry), [gflops, alone, fixed_us, full, partial]))
    };
    KERNELS.iter().filter_map(figures).collect()
}

/// The kernel with these figures.
pub(crate) fn with(figures: &Figures, entry: &'static Entry) -> &'static Entry {
    let Some(speed) = of(entry) else { return entry };
    let [gflops, alone, fixed_us, full, partial] = figures[row_of(entry)];
    entry.with_speed(Speed { gflops, alone, fixed_us, tile_us: [full, partial], ..speed })
}

/// What one SM of an H200 computes at most at 1.755 GHz, in GFLOP/s: on tensor cores in 16-bit
/// types, or on CUDA cores in f32; by the size of operands in others. Of f64 it is one number.
pub(crate) fn most_gflops(place: &str) -> f64 {
    let row = KERNELS.iter().find(|entry| entry.declaration().name == place);
    row.and_then(|entry| entry.product).map_or(f64::INFINITY, |product| {
        let Variant { family, operands, .. } = product.variant;
        let is_tensor = matches!(family, Family::Wgmma | Family::Mma);
        match operands {
            of if of == Type::F64 => 450.0,
            of if is_tensor => 14400.0 / of.bytes() as f64,
            of => 1800.0 / of.bytes().max(4) as f64,
        }
    })
}

/// The first design with the same figures as a kernel's: types and layouts alone differ.
fn row_of(entry: &Entry) -> &'static str {
    let name = entry.declaration().name;
    let variant = |entry: &Entry| entry.product.as_ref().map(|product| product.variant);
    let first = KERNELS.iter().find(|other| other.declaration().name == name).and_then(variant);
    let alike = KERNELS.iter().find(|other| match (variant(other), first) {
        (Some(of), Some(first)) => Variant { c: first.c, layout: first.layout, ..of } == first,
        _ => false,
    });
    alike.map_or(name, |other| other.declaration().name)
}

/// Writes figures to the tables of kernels, below `root`.
///
/// # Errors
/// A file that cannot be read or written, and a row that is in none.
pub(crate) fn write(root: &Path, figures: &Figures) -> Result<()> {
    let mut texts = Vec::new();
    for family in fs::read_dir(root.join("gpu/src/kernels"))? {
        let file = family?.path().join("table.rs");
        if file.exists() {
            texts.push((fs::read_to_string(&file)?, file));
        }
    }
    let rows = KERNELS.iter().filter_map(|entry| Some((entry.declaration().name, place(entry)?)));
    for (name, row) in rows.collect::<BTreeSet<_>>() {
        let written = texts.iter_mut().find_map(|(text, _)| put(text, name, &figures[row]));
        written.with_context(|| format!("{name} is in no table"))?;
    }
    texts.iter().try_for_each(|(text, file)| fs::write(file, text).context("a table"))
}

/// Sets the figures of a row. `None` if it is not in this text.
fn put(text: &mut String, name: &str, figures: &[f64; 5]) -> Option<()> {
    let [gflops, alone, fixed_us, tile_us @ ..] = figures;
    let new = format!("{gflops:?}, alone: {alone:?}, fixed_us: {fixed_us:?}, tile_us: {tile_us:?}");
    let after = |from: usize, what: &str| Some(from + text[from..].find(what)? + what.len());
    let at = after(after(0, &format!("{{ {name}:"))?, " gpu { gflops: ")?;
    let end = after(at, "]")?;
    text.replace_range(at..end, &new);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a copy of the source.
    #[test]
    fn every_figure_has_a_place_in_the_source() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut figures = known();
        figures.values_mut().flatten().for_each(|value| *value = *value * 1.5 + 0.75);
        let copy = std::env::temp_dir().join(format!("fit-source-{}", std::process::id()));
        let tables = ["gemm", "wgmma", "mma", "emulated", "wgmma_tf32"];
        for file in tables.map(|family| format!("gpu/src/kernels/{family}/table.rs")) {
            fs::create_dir_all(copy.join(&file).parent().unwrap()).unwrap();
            fs::copy(root.join(&file), copy.join(&file)).unwrap();
        }
        write(&copy, &figures).unwrap();
        let table = fs::read_to_string(copy.join("gpu/src/kernels/mma/table.rs")).unwrap();
        fs::remove_dir_all(&copy).unwrap();
        let [gflops, .., partial] = figures["mma_tf32_64x64x32"];
        assert!(table.contains(&format!("gpu {{ gflops: {gflops:?}, alone: ")), "{table}");
        assert!(table.contains(&format!(", {partial:?}] }}")), "{table}");
        assert_eq!(most_gflops("mma_tf32_64x64x32"), 3600.0);
    }
}
