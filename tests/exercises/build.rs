//! Writes the solutions, the kernels that a solution is spoiled to, and those that
//! `tests/defeats.rs` grades: solutions with a few lines changed. If `EXERCISE` is set, begins that
//! exercise, and compiles no other ([`modules`]).

use std::{env, error::Error, fmt::Write, fs, path::Path};

mod modules;
#[path = "tests/defeats/table.rs"]
mod table;

use table::{Defeat, defeats};

fn main() -> Result<(), Box<dyn Error>> {
    for path in ["build.rs", "src/kernels", "src/solutions", "mine", "tests/defeats"] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed=EXERCISE");
    println!("cargo::rustc-check-cfg=cfg(one_exercise)");
    let (folder, out) = (env::current_dir()?, env::var("OUT_DIR")?);
    let out = Path::new(&out);
    let names = modules::names(&folder)?;
    let one = env::var("EXERCISE").ok().filter(|one| !one.is_empty());
    if let Some(one) = &one {
        if !names.contains(one) {
            // Those that begin alike, then those with a long word of it.
            let alike = |name: &&String| {
                let begin = one.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
                let words = one.split('_').filter(|word| word.len() > 3);
                let shared = words.filter(|word| name.split('_').any(|of| of == *word)).count();
                if begin > 3 { begin + 100 } else { shared }
            };
            let mut near = names.iter().filter(|name| alike(name) > 0).collect::<Vec<_>>();
            near.sort_by_key(|name| std::cmp::Reverse(alike(name)));
            let near = near.into_iter().take(3).cloned().collect::<Vec<_>>().join(", ");
            let near = if near.is_empty() { near } else { format!(" Alike: {near}.") };
            return Err(format!(
                "EXERCISE={one}: there is no such exercise.{near} `cargo run -p exercises -- list` shows all"
            )
            .into());
        }
        let mine = format!("mine/{one}.rs");
        if !Path::new(&mine).exists() {
            let [kernel, _] = modules::both(&folder, one)?;
            fs::write(&mine, kernel)
                .map_err(|error| format!("{mine} cannot be written: {error}"))?;
        }
        println!("cargo::rustc-cfg=one_exercise");
    }

    for side in ["kernels", "solutions"] {
        fs::create_dir_all(out.join(side))?;
    }
    for name in &names {
        for (side, text) in ["kernels", "solutions"].into_iter().zip(modules::both(&folder, name)?)
        {
            fs::write(out.join(format!("{side}/{name}.rs")), text)?;
        }
    }
    let text = modules::modules(&folder, out, &names, one.as_deref());
    fs::write(out.join("modules.rs"), text)?;

    let (mut modules, mut kernels) = (String::new(), String::new());
    for Defeat { exercise, name, changes, .. } in defeats() {
        let path = out.join(format!("solutions/{exercise}.rs"));
        let mut source = fs::read_to_string(&path)?;
        for (from, to) in *changes {
            if source.matches(from).count() != 1 {
                return Err(
                    format!("{exercise}: {name} changes what is not there once: {from}").into()
                );
            }
            source = source.replace(from, to);
        }
        let module = format!("{exercise}_{name}");
        let file = out.join(format!("{module}.rs"));
        fs::write(&file, source)?;
        // What is left of a loop or a branch is not worth a better style.
        writeln!(modules, "#[allow(clippy::all)]\n#[path = {file:?}]\nmod {module};")?;
        writeln!(kernels, "    (&{module}::{exercise}, include_str!({file:?})),")?;
    }
    let text = format!("{modules}\nconst KERNELS: &[(&dyn Subject, &str)] = &[\n{kernels}];\n");
    fs::write(out.join("defeats.rs"), text)?;
    Ok(())
}
