//! Products of other types than f32.

use std::path::Path;

use host::{Layout, Type, npy::Writer};
use serde_json::{Value, json};

use crate::{
    common::{finish, has, host, object, objects, shows, succeeds},
    with,
};

/// C of such a type is right if it is the nearest to a possible result in f32. For integers it must
/// be the nearest to the exact sum.
fn is_verified(of: &str, rounded: std::ops::Range<f64>) {
    for (out_type, off) in [(None, &rounded), (Some(of), &rounded), (Some("f32"), &(0.0..1e-5))] {
        for init in ["uniform", "normal", "int", "nan"] {
            for verify in ["full", "sample"] {
                let mut args = vec!["--type", of, "--init", init, "--verify", verify, "--json"];
                args.extend(out_type.map(|c| ["--out-type", c]).into_iter().flatten());
                let object = &object(host(&with(&args)));
                let out_type = out_type.unwrap_or(of);
                let types = ["dtype", "out_dtype"].map(|key| object[key].as_str().unwrap());
                assert_eq!(types, [of, out_type]);
                let outcome = ["verified", "exact_on_integers"].map(|key| &object[key]);
                assert_eq!(outcome, [true, true], "{object}");
                let error = object["max_abs_err"].as_f64().unwrap();
                assert!(
                    if init == "int" { error == 0.0 } else { off.contains(&error) },
                    "{object}"
                );
            }
        }
    }
    let (_, stdout, _) = finish(host(&with(&["--type", of, "--out-type", "f32"])));
    let types = format!("C 100x70   {of}, C f32, row-major, uniform, seed 1\n");
    assert!(stdout.contains(&types), "{stdout}");
    assert!(stdout.contains(" of the bound; exact on integers\n"), "{stdout}");
    // An error equal to the bound is no near miss: no other value of the type would be right.
    let (_, stdout, _) = finish(host(&with(&["--type", of])));
    let nearest = format!(
        ": correctly rounded, each element is the {of} nearest to a sum within the bound; exact"
    );
    assert!(stdout.contains(&nearest) && !stdout.contains(" of the bound"), "{stdout}");
}

#[test]
fn a_product_of_bf16_is_verified() {
    is_verified("bf16", 1e-3..1.0);
}

/// Products of 8-bit floats with scales, which are no part of others. A benchmark has them, too.
#[test]
fn scales_are_verified() {
    for (of, scales, verify) in [("e4m3", "blocks", "full"), ("e5m2", "rows-cols", "sample")] {
        let args = ["--type", of, "--scales", scales, "--verify", verify, "--device", "cpu"];
        let object = &object(host(&with(&[&args[..], &["--json"]].concat())));
        let outcome = ["verified", "exact_on_integers", "scales"].map(|key| object[key].clone());
        assert_eq!(Value::from(outcome.to_vec()), json!([true, true, scales]), "{object}");
        let args = ["bench", "--sizes", "2*9x130x140", "--type", of, "--device", "cpu"];
        let more = ["--scales", scales, "--kernels", "auto", "--seconds", "0.001", "--json"];
        let stdout = succeeds(host(&[args, more].concat()));
        let rows = objects(&stdout);
        let seen = rows.iter().map(|row| [&row["epilogue"], &row["verified"]]);
        let scales = format!("scales={scales}").into();
        assert_eq!(
            seen.collect::<Vec<_>>(),
            [[&Value::Null, &true.into()], [&scales, &true.into()]]
        );
    }
}

/// cuBLAS is left out where it is not called for the types, on a GPU, too.
#[test]
fn libraries_without_the_types_are_left_out() {
    for device in ["auto", "cpu"] {
        let args = ["bench", "--sizes", "9x20x40", "--type", "i8", "--out-type", "bf16", "--json"];
        let more = ["--vs", "cublas", "--seconds", "0.001", "--device", device];
        let (code, stdout, stderr) = finish(host(&[&args[..], &more].concat()));
        assert_eq!(code, 0, "{stderr}");
        let note = "note: there is nothing to compare with: NVIDIA's libraries are called for i8 with a C of i32 alone\n";
        assert!(stderr.contains(note), "{stderr}");
        let rows = objects(&stdout);
        let seen = rows.iter().map(|row| [&row["role"], &row["verified"]]).collect::<Vec<_>>();
        assert_eq!(seen, [[&Value::from("auto"), &true.into()]], "{stdout}");
    }
}

#[test]
fn a_product_of_f16_is_verified() {
    is_verified("f16", 1e-4..0.1);
}

/// Operands are drawn in f64, and the bound is that of f64: it tells errors of f32 from right
/// results.
#[test]
fn a_product_of_f64_is_verified() {
    for init in ["uniform", "normal", "int", "nan"] {
        for verify in ["full", "sample"] {
            let args = ["--type", "f64", "--init", init, "--verify", verify, "--json"];
            let object = &object(host(&with(&args)));
            has(object, json!({"dtype": "f64", "out_dtype": "f64", "compute": "fp64"}));
            has(object, json!({"verified": true, "exact_on_integers": true}));
            let error = object["max_abs_err"].as_f64().unwrap();
            let is_int = init == "int";
            assert!(
                if is_int { error == 0.0 } else { (1e-16..1e-13).contains(&error) },
                "{object}"
            );
        }
    }
    shows(host(&with(&["--type", "f64"])), &["C 100x70   f64, row-major, uniform, seed 1\n"]);
    shows(host(&with(&["--type", "f64", "--plan"])), &["f64"]);
}

#[test]
fn f64_is_timed_and_its_errors_are_those_of_f64() {
    let bench = ["bench", "--type", "f64", "--sizes", "33", "--device", "cpu", "--seconds", "0.1"];
    let stdout = succeeds(host(&[&bench[..], &["--json"]].concat()));
    let rows = objects(&stdout);
    assert!(rows.len() >= 2, "{stdout}");
    for row in rows {
        assert_eq!(["verified", "exact_on_integers"].map(|key| &row[key]), [true, true], "{row}");
        assert!(row["err"].as_f64().is_some_and(|err| (1e-17..1e-14).contains(&err)), "{row}");
    }
    let errors = ["errors", "--type", "f64", "--device", "cpu", "--outer", "16", "--inner", "64"];
    let stdout = succeeds(host(&[&errors[..], &["--json"]].concat()));
    let lines = objects(&stdout);
    assert_eq!(lines.len(), 6, "{stdout}");
    for line in lines {
        assert!(
            line["of_terms"].as_f64().is_some_and(|err| (1e-18..1e-14).contains(&err)),
            "{line}"
        );
    }
}

#[test]
fn the_cpu_device_rounds_factors_by_a_kernel_that_is_named_alone() {
    let product = |more: &[&str]| succeeds(host(&[more, &["--device", "cpu"]].concat()));
    let sizes = |compute, more: &[&str]| product(&[&with(&["--compute", compute]), more].concat());
    let as_it_is = "\ncompute   f32 as it is: this kernel ";
    for (compute, what, kernel) in [
        ("tf32", "rounds nothing to tf32\n", "wgmma_tf32_128x64x32_nn"),
        ("fp32-bf16x6", "cuts nothing into slices\n", "wgmma_bf16x6_64x128x64_nn"),
    ] {
        for more in [&[][..], &["--plan"]] {
            let stdout = sizes(compute, more);
            assert!(stdout.contains(&format!("{as_it_is}{what}")), "{stdout}");
        }
        let stdout = sizes(compute, &["--kernel", kernel]);
        assert!(!stdout.contains("\ncompute "), "{stdout}");
    }
    assert!(!sizes("fp32", &[]).contains("\ncompute "));

    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).into_os_string().into_string().unwrap();
    let (a, out) = (file("a.npy"), file("c.npy"));
    let (path, layout) = (Path::new(&a), Layout::RowMajor);
    Writer::create("--out", path, 8, 8, Type::F32, layout).unwrap().finish().unwrap();
    let files = ["gemm", "--a", &a, "--b", &a, "--out", &out, "--compute", "tf32"];
    for (more, rounds) in
        [(&[][..], false), (&["--plan"], false), (&["--kernel", "wgmma_tf32_128x64x32_nn"], true)]
    {
        let stdout = product(&[&files[..], more].concat());
        assert_eq!(!stdout.contains(&format!("{as_it_is}rounds nothing")), rounds, "{stdout}");
    }
}
