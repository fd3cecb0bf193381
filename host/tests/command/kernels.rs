//! Kernels by their names: the list, and the errors for a kernel of another kind.

use std::{fs, path::Path};

use gpu::registry::{KERNELS, Program};

use crate::{
    common::{fails, finish, host, objects, succeeds},
    with,
};

#[test]
fn a_product_runs_with_every_kernel_listed() {
    let (_, stdout, _) = finish(host(&["kernels", "--json"]));
    let mut kernels = objects(&stdout);
    kernels.retain(|kernel| kernel["contract"].as_str().unwrap().starts_with("C = A B"));
    assert!(kernels.len() >= 20, "{stdout}");
    for kernel in kernels {
        let name = kernel["name"].as_str().unwrap();
        let contract = kernel["contract"].as_str().unwrap();
        // The first word after `C = A B in`.
        let of = ["e4m3", "e5m2", "i8", "bf16", "f16", "f64"]
            .into_iter()
            .find(|of| contract.contains(&format!(" {of}")));
        let mut types = of.map_or(Vec::new(), |of| vec!["--type", of]);
        if let Some((_, of_c)) = contract.split_once("C in ") {
            let of_c = of_c.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap();
            types.extend(["--out-type", of_c]);
        }
        // Tensor cores take 16-byte aligned rows.
        let sizes = match contract.contains("Hopper's tensor cores") {
            true => ["--m", "100", "--n", "72", "--k", "48"],
            false => ["--m", "100", "--n", "70", "--k", "51"],
        };
        let compute: &[&str] = match () {
            () if contract.contains("tf32") => &["--compute", "tf32"],
            () if contract.contains("emulated") => &["--compute", "fp32-f16x3"],
            () if contract.contains("slices") => &["--compute", "fp32-bf16x6"],
            () => &[],
        };
        let run = [&sizes[..], &["--device", "cpu", "--kernel", name], &types, compute].concat();
        // Row-major matrices are none of these layouts. Tiles for few columns are the exception:
        // with A and B swapped, `tt` is `nn`.
        let is_narrow = kernel["tile"][1] == 16;
        let other = match kernel["layout"].as_str() {
            Some("tt") if is_narrow && contract.contains("Hopper's tensor cores") => None,
            Some("tn" | "tt") => Some(["needs A contiguous along", "m"]),
            // B is transposed before.
            Some("nt") if ["i8", "e4m3", "e5m2"].map(Some).contains(&of) => None,
            Some("nt") => Some(["needs B contiguous along", "k"]),
            _ => None,
        };
        if let Some([what, side]) = other {
            fails(host(&run), 2, &[name, what, side]);
            continue;
        }
        let (code, stdout, stderr) = finish(host(&run));
        assert!(code == 0 && stdout.contains("verified"), "{name}: {stdout}{stderr}");
    }
}

#[test]
fn types_that_do_not_go_together_are_refused() {
    for (flags, words) in [
        (&["--out-type", "bf16"][..], &["--out-type = bf16: must be f32 with --type f32"][..]),
        (&["--type", "f8"], &["'f8'", "must be one of f32, f64, bf16, f16"]),
        (
            &["--type", "f64", "--out-type", "f32"],
            &["--out-type = f32: must be f64 with --type f64"],
        ),
        (&["--type", "f64", "--compute", "tf32"], &["--compute = tf32: must be fp32: "]),
        (
            &["--type", "f16", "--out-type", "bf16"],
            &["--out-type = bf16: must be f16 or f32 with --type f16"],
        ),
        (
            &["--type", "bf16", "--kernel", "tiled16"],
            &["--kernel = tiled16: is for A and B of f32: `--type f32` asks for it. For bf16 "],
        ),
        (
            &["--kernel", "gemm_bf16_64x64x16"],
            &["--kernel = gemm_bf16_64x64x16", "of bf16: `--type bf16` asks for it. For f32 "],
        ),
        (
            &["--kernel", "mma_f16_f32_64x64x64"],
            &["of f16, C of f32: `--type f16 --out-type f32` asks for it"],
        ),
        (&["--kernel", "mma_tf32_64x64x32"], &["tf32, which `--compute tf32` asks for"]),
        (&["--kernel", "gemm_f64_64x64x16"], &["of f64: `--type f64` asks for it. For f32 "]),
    ] {
        fails(host(&with(flags)), 2, words);
    }
}

#[test]
fn a_kernel_for_something_else_is_not_called_unknown() {
    for command in ["check", "profile"] {
        let what = "is a program, and computes no product: `cargo run -p host --example padding`";
        let args = [&[command], &with(&["--kernel", "padded16"])[..]].concat();
        fails(host(&args), 2, &["'padded16'", what, "or auto or all"]);
    }
    let files = ["gemm", "--a", "a.npy", "--b", "b.npy", "--out", "c.npy", "--kernel"];
    let of_bf16 = "is for A and B of bf16: `--m .. --n .. --k .. --type bf16` asks for it";
    fails(host(&[&files[..], &["mma_bf16_64x64x64"]].concat()), 2, &[of_bf16]);
    for (name, run) in [
        ("blur", "`cargo run -p host -- blur` runs it"),
        // The name of the example, which is not the kernel's.
        ("padding", "`cargo run -p host --example padding` runs it"),
        ("split_f16x2", "a product that needs it launches it"),
    ] {
        let what = format!("is a program, and computes no product: {run}. It must be a product's");
        let product = with(&["--kernel", name]);
        let bench = ["bench", "--kernels", name];
        for args in [&product[..], &bench, &["explain", name], &[&files[..], &[name]].concat()] {
            fails(host(args), 2, &[&format!("'{name}'"), &what]);
        }
    }
}

#[test]
fn kernels_are_listed_for_people() {
    let (code, stdout, _) = finish(host(&["kernels"]));
    assert_eq!(code, 0);
    assert!(stdout.contains("tiled16") && stdout.contains("shared memory"), "{stdout}");
    let headings = stdout.lines().filter(|line| !line.starts_with(' ') && !line.is_empty());
    let headings = headings.collect::<Vec<_>>();
    assert_eq!(headings[0], "the course's lessons: C = A B in f32 (--type f32)");
    let [.., programs, _, _] = headings[..] else { panic!("{stdout}") };
    assert_eq!(programs, "other programs than products, and what runs them");
    for line in [
        "\nC = A B in bf16 on any GPU's tensor cores, C in f32 (--type bf16 --out-type f32)\n",
        "\nC = A B of f32 as tf32 on Hopper's tensor cores (--compute tf32)\n",
        "\nC = A B in f64 (--type f64)\n",
        "\n  wgmma_bf16_128x256x64_nn|nt|tn|tt ",
        "\n  wgmma_tf32_128x64x32_nn ",
        "halo in shared memory; `cargo run -p host -- blur` runs it\n",
    ] {
        assert!(stdout.contains(line), "{line}: {stdout}");
    }
}

#[test]
fn kernels_are_listed_by_words() {
    let names = |words: &[&str]| {
        let stdout = succeeds(host(&[&["kernels", "--json"], words].concat()));
        objects(&stdout).iter().map(|kernel| kernel["name"].to_string()).collect::<Vec<_>>()
    };
    let all = names(&[]);
    // A type matches that of A and B only, and not as a part of another type.
    let of = |ty| names(&[ty]).len();
    let others = names(&["programs"]).len();
    let of_products = ["f32", "f64", "bf16", "f16", "e4m3", "e5m2", "i8"].map(of);
    assert_eq!(of_products.iter().sum::<usize>() + others, all.len());
    let of_f64 = names(&["f64"]);
    assert_eq!(of_f64[..2], ["\"gemm_f64_64x64x16\"", "\"gemm_f64_4x64x1\""]);
    assert!(of_f64.iter().all(|name| name.contains("_f64_")), "{of_f64:?}");
    let mma = names(&["f16", "MMA", "any"]);
    assert!(!mma.is_empty() && mma.iter().all(|name| name.starts_with("\"mma_f16_")), "{mma:?}");
    assert_eq!(names(&["lessons"])[..2], ["\"basic\"", "\"tiled_uncoalesced\""]);
    assert_eq!(names(&["vec_add"]), ["\"vec_add\""]);
    let unknown = ["WORDS = tiled17: no kernel", "did you mean tiled16? (`kernels` lists all)"];
    fails(host(&["kernels", "tiled17"]), 2, &unknown);
}

/// The command in a kernel's row does run it.
#[test]
fn programs_are_run_by_what_is_said() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in KERNELS.iter() {
        match entry.program {
            None => assert!(entry.product.is_some(), "{}: nothing runs it", entry.name()),
            Some(Program::Product | Program::Function(_)) => {}
            Some(Program::Command(name)) => {
                let (_, help, _) = finish(host(&[name, "--help"]));
                assert!(help.contains(entry.name()), "{name} --help: {help}");
            }
            Some(Program::Example(name)) => {
                let text = fs::read_to_string(examples.join(name).with_extension("rs")).unwrap();
                assert!(text.contains(entry.name()), "{name}: no {}", entry.name());
            }
        }
    }
}
