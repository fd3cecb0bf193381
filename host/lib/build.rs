//! Packs the kernels' PTX, `ptx/<target>/<kernel>.ptx` (in the repository a link to `gpu/ptx`), and
//! writes down what is where: `src/ptx` unpacks one file at a time.

use std::{env, error::Error, fmt::Write, fs, path::Path};

/// How a kernel declares itself, in a comment.
const DECLARATION: &str = "simt.kernel name=";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new("ptx");
    println!("cargo::rerun-if-changed={}", folder.display());
    let (mut packed, mut index) = (Vec::new(), String::new());
    for target in ["sm_80", "sm_90a"] {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder.join(target))? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "ptx") {
                files.push(path);
            }
        }
        files.sort();
        writeln!(index, "pub(super) static {}: &[File] = &[", target.to_uppercase())?;
        for path in files {
            let text = fs::read_to_string(&path)?;
            let lines = text.lines().map(str::trim_start).filter_map(|line| {
                let declaration = line.strip_prefix("// ")?;
                let (name, _) = declaration.strip_prefix(DECLARATION)?.split_once(' ')?;
                Some((name, declaration.trim_end()))
            });
            let kernels = lines.collect::<Vec<_>>();
            let start = packed.len();
            packed.extend(lz4_flex::block::compress(text.as_bytes()));
            let (end, len) = (packed.len(), text.len());
            writeln!(
                index,
                "    File {{ kernels: &{kernels:?}, packed: {start}..{end}, len: {len} }},"
            )?;
        }
        writeln!(index, "];")?;
    }
    let out = env::var("OUT_DIR")?;
    fs::write(Path::new(&out).join("ptx.lz4"), packed)?;
    fs::write(Path::new(&out).join("ptx.rs"), index)?;
    Ok(())
}
