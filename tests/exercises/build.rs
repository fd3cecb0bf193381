//! Writes the kernels that `tests/defeats.rs` grades: solutions with a few lines changed. If
//! `EXERCISE` is set, writes the modules of that exercise alone ([`modules`]).

use std::{env, error::Error, fmt::Write, fs, path::Path};

mod modules;
#[path = "tests/defeats/table.rs"]
mod table;

use table::{Defeat, defeats};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/solutions");
    println!("cargo::rerun-if-changed=tests/defeats");
    println!("cargo::rerun-if-env-changed=EXERCISE");
    println!("cargo::rustc-check-cfg=cfg(one_exercise)");
    let out = env::var("OUT_DIR")?;
    if let Some(one) = env::var("EXERCISE").ok().filter(|one| !one.is_empty()) {
        let folder = env::current_dir()?;
        let names = modules::names(&folder)?;
        if !names.contains(&one) {
            let all = names.join(", ");
            return Err(
                format!("EXERCISE={one}: there is no such exercise. There are {all}").into()
            );
        }
        fs::write(Path::new(&out).join("modules.rs"), modules::modules(&folder, &names, &one))?;
        println!("cargo::rustc-cfg=one_exercise");
    }
    let (mut modules, mut kernels) = (String::new(), String::new());
    for Defeat { exercise, name, changes, .. } in defeats() {
        let path = format!("src/solutions/{exercise}.rs");
        let mut source = fs::read_to_string(&path)?;
        for (from, to) in *changes {
            if source.matches(from).count() != 1 {
                return Err(format!("{path}: {name} changes what is not there once: {from}").into());
            }
            source = source.replace(from, to);
        }
        let module = format!("{exercise}_{name}");
        let file = Path::new(&out).join(format!("{module}.rs"));
        fs::write(&file, source)?;
        // What is left of a loop or a branch is not worth a better style.
        writeln!(modules, "#[allow(clippy::all)]\n#[path = {file:?}]\nmod {module};")?;
        writeln!(kernels, "    (&{module}::{exercise}, include_str!({file:?})),")?;
    }
    let text = format!("{modules}\nconst KERNELS: &[(&dyn Subject, &str)] = &[\n{kernels}];\n");
    fs::write(Path::new(&out).join("defeats.rs"), text)?;
    Ok(())
}
