//! The built command's `gemm`: files in, a file out, in one piece and in blocks. A refused run
//! leaves no files.

mod common;
#[path = "common/folder.rs"]
mod folder;
#[path = "gemm/numpy.rs"]
mod numpy;
#[path = "gemm/several.rs"]
mod several;
#[path = "common/shell.rs"]
mod shell;

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
};

use self::common::{
    fails, finish, has, has_no_noise, host, is_interrupted, object, objects, on, prints, shows,
    succeeds,
};
use self::folder::Folder;
use gpu::registry::{KERNELS, Type};
use host::{
    Layout,
    npy::{Element, Header, Reader, Writer},
    operands,
};
use serde_json::{Value, json};

impl Folder {
    /// One, and the path of C in it.
    fn with_out() -> (Self, String) {
        let folder = Folder::new();
        let out = folder.text("o.npy");
        (folder, out)
    }
}

/// A file written by NumPy (`lib/tests/data/npy/make.py`).
fn numpys(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("lib/tests/data/npy");
    folder.join(name).with_extension("npy").to_str().unwrap().to_owned()
}

impl Folder {
    /// Writes a file of random numbers.
    fn random(&self, name: &str, rows: usize, cols: usize, dtype: Type, layout: Layout) -> String {
        let seed = name.bytes().fold(7, |seed: u64, byte| 31 * seed + u64::from(byte));
        let values = operands::uniform::<f32>(seed, rows * cols).unwrap();
        let path = self.path(name);
        let mut writer = Writer::create("--out", &path, rows, cols, dtype, layout).unwrap();
        // The matrix is the same in every layout.
        writer.write(0..rows, 0..cols, Layout::RowMajor, &values).unwrap();
        writer.finish().unwrap();
        self.text(name)
    }
}

/// All of a file, row by row.
fn read<T: Element>(path: impl AsRef<Path>) -> Vec<T> {
    let reader = Reader::open("--a", path.as_ref()).unwrap();
    let Header { rows, cols, .. } = *reader.header();
    let mut values = vec![T::default(); rows * cols];
    reader.read(0..rows, 0..cols, Layout::RowMajor, &mut values).unwrap();
    values
}

/// `gemm` of these files, on the CPU.
fn gemm(a: &str, b: &str, out: &str, more: &[&str]) -> Command {
    let args = ["gemm", "--a", a, "--b", b, "--out", out, "--device", "cpu"];
    host(&[&args[..], more].concat())
}

/// Its result, verified.
#[track_caller]
fn multiplied<T: Element>(a: &str, b: &str, out: &str, more: &[&str]) -> Vec<T> {
    let stdout = prints(gemm(a, b, out, more));
    assert!(stdout.contains("\nverified ") && stdout.contains("\nout       "), "{stdout}");
    read(out)
}

#[track_caller]
fn is_near<T: Element>(actual: &[T], wanted: &[f64], error: f64) {
    assert_eq!(actual.len(), wanted.len());
    for (&actual, wanted) in actual.iter().zip(wanted) {
        let actual: f64 = actual.into();
        assert!((actual - wanted).abs() <= error, "{actual} {wanted}");
    }
}

#[test]
fn alpha_and_beta_and_what_c_was() {
    let (folder, out) = Folder::with_out();
    let (a, b, c) = (numpys("a_f4"), numpys("b_f4"), numpys("c_f4"));
    let wanted = read::<f64>(numpys("half_ab_minus_2c_f4"));
    let factors = ["--c", &c, "--alpha", "0.5", "--beta", "-2"];
    is_near(&multiplied::<f32>(&a, &b, &out, &factors), &wanted, 3e-6);
    // C is added by default, and is not read with a beta of 0.
    let with_c = multiplied::<f32>(&a, &b, &out, &["--c", &c]);
    let beta_1 = multiplied::<f32>(&a, &b, &out, &["--c", &c, "--beta", "1"]);
    let (product, before) = (read::<f64>(numpys("ab_f4")), read::<f64>(&c));
    let sum = product.iter().zip(before).map(|(x, y)| x + y).collect::<Vec<_>>();
    is_near(&with_c, &sum, 3e-6);
    assert_eq!(with_c, beta_1);
    let beta_0 = multiplied::<f32>(&a, &b, &out, &["--c", &c, "--beta", "0"]);
    assert_eq!(beta_0, multiplied::<f32>(&a, &b, &out, &[]));
    // Without A B.
    let twice = multiplied::<f32>(&a, &b, &out, &["--c", &c, "--beta", "2", "--alpha", "0"]);
    assert_eq!(twice, read::<f32>(&c).iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    // In place.
    fs::copy(&c, &out).unwrap();
    assert_eq!(multiplied::<f32>(&a, &b, &out, &["--c", &out, "--force"]), with_c);
    assert_eq!(folder.files(), ["o.npy"]);
}

#[test]
fn what_is_too_large_for_its_file_is_told() {
    let (_folder, out) = Folder::with_out();
    let args = ["--alpha", "200000", "--out-type", "f2", "--json"];
    let (code, stdout, stderr) = finish(gemm(&numpys("a_f4"), &numpys("b_f4"), &out, &args));
    assert_eq!(code, 0, "{stderr}");
    let infinite = read::<f32>(&out).iter().filter(|x| x.is_infinite()).count();
    assert!(infinite > 5, "{infinite}");
    let object = &objects(&stdout)[0];
    assert_eq!((&object["overflows"], &object["verified"]), (&infinite.into(), &true.into()));
    assert_eq!(object["compared_overflowing"], infinite);
    let note = format!("note: {infinite} finite elements of C are too large for f2");
    assert!(stderr.contains(&note), "{stderr}");
}

/// The bits of a file after its header, and the JSON object.
#[track_caller]
fn bits(command: Command, out: &str) -> (Vec<u8>, Value) {
    let object = object(command);
    (fs::read(out).unwrap(), object)
}

#[test]
fn blocks_give_the_bits_of_one_piece() {
    let (folder, out) = Folder::with_out();
    let (m, n, k) = (230, 190, 300);
    let layouts = [Layout::RowMajor, Layout::ColMajor];
    let mut streamed = 0;
    for (number, dtype) in [Type::F32, Type::F64, Type::F16, Type::F32].into_iter().enumerate() {
        let layout = |shift: usize| layouts[(number >> shift) & 1];
        let (trans_a, trans_b) = (number % 2 == 1, number > 1);
        let side = |transposed, rows, cols| if transposed { (cols, rows) } else { (rows, cols) };
        let (a, b) = (side(trans_a, m, k), side(trans_b, k, n));
        let a = folder.random("a.npy", a.0, a.1, dtype, layout(0));
        let b = folder.random("b.npy", b.0, b.1, dtype, layout(1));
        let c = folder.random("c.npy", m, n, dtype, layout(1));
        let kernel = if dtype == Type::F64 { "gemm_f64_64x64x16" } else { "gemm_f32_64x64x16" };
        let mut args =
            vec!["--kernel", kernel, "--c", &c, "--alpha", "0.3", "--beta", "0.7", "--json"];
        args.extend(trans_a.then_some("--trans-a"));
        args.extend(trans_b.then_some("--trans-b"));
        args.extend((number % 2 == 0).then_some("--out-order=fortran"));
        for block_k in [&[][..], &["--block-k", "70"]] {
            let run = |more: &[&str]| {
                bits(gemm(&a, &b, &out, &[&args[..], block_k, more].concat()), &out)
            };
            let (whole, object) = run(&[]);
            let cut = object["blocks"]["blocks"][2].as_u64().unwrap();
            assert_eq!(cut, if block_k.is_empty() { 1 } else { 5 });
            for limit in ["900K", "600K", "450K"] {
                let bytes =
                    if dtype == Type::F64 { limit.replace('K', "000K") } else { limit.into() };
                let (got, object) = run(&["--device-memory-limit", &bytes.replace("000K", "K")]);
                if object["blocks"]["blocks"][2] != cut {
                    // Too little memory for all of k: other bits, and the report says so.
                    assert_eq!(object["blocks"]["why"], "depth_cut");
                    continue;
                }
                assert!(got == whole, "{dtype} {limit} {block_k:?}");
                assert_eq!(object["verified"], true);
                let device_bytes = object["blocks"]["device_bytes"].as_u64().unwrap();
                assert!(device_bytes <= object["device_memory_limit"].as_u64().unwrap());
                streamed += u32::from(object["blocks"]["why"] == "reads_less");
            }
        }
    }
    assert!(streamed >= 6, "{streamed}");
    assert_eq!(folder.files(), ["a.npy", "b.npy", "c.npy", "o.npy"]);
}

#[test]
fn a_sample_is_compared_in_blocks_too() {
    let folder = Folder::new();
    let a = folder.random("a.npy", 150, 100, Type::F32, Layout::ColMajor);
    let b = folder.random("b.npy", 100, 170, Type::F32, Layout::RowMajor);
    let more = ["--verify", "sample", "--device-memory-limit", "150K", "--json"];
    let (_, object) = bits(gemm(&a, &b, &folder.text("o.npy"), &more), &folder.text("o.npy"));
    let sampled =
        json!({"verify": "sample", "verified": true, "compared": 4096, "projections": 16});
    has(&object, sampled);
    let none = |more: &[&str]| {
        gemm(&a, &b, &folder.text("o.npy"), &[&["--verify", "none"], more].concat())
    };
    shows(none(&[]), &["\nC was not compared with anything"]);
    let (_, object) = bits(none(&["--json"]), &folder.text("o.npy"));
    assert!(object["verified"].is_null() && object["verify"] == "none", "{object}");
}

#[test]
fn a_plan_reads_headers_alone() {
    // Sparse files of terabytes.
    let folder = Folder::new();
    let big = |name: &str, rows: u64, cols: u64| {
        let header =
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {cols}), }}");
        let text = format!("{header:<117}\n");
        let bytes = [b"\x93NUMPY\x01\x00\x76\x00", text.as_bytes()].concat();
        fs::write(folder.path(name), &bytes).unwrap();
        let file = File::options().write(true).open(folder.path(name)).unwrap();
        file.set_len(128 + 4 * rows * cols).unwrap();
        folder.text(name)
    };
    let (a, b) = (big("a.npy", 300_000, 200_000), big("b.npy", 200_000, 500_000));
    let out = folder.text("o.npy");
    let plan = ["gemm", "--a", &a, "--b", &b, "--out", &out, "--plan"];
    let plan = |more: &[&str]| host(&[&plan[..], more].concat());
    let stdout = prints(plan(&["--device", "cuda", "--device-memory-limit", "80G"]));
    for part in [
        "C = A B: 300000 x 500000, k 200000   computed in f32\n",
        "\ndevice    cuda:0 (not looked at)\nplanned   for an H200, 132 SMs (--on names another GPU)\n",
        "\nkernel    ",
        "so reading costs least\n",
        " of 85899345920 bytes on the device",
        "files     ",
    ] {
        assert!(stdout.contains(part), "`{part}` is missing: {stdout}");
    }
    let small = ["--device", "cpu", "--device-memory-limit", "1G"];
    let whole = object(plan(&[&small[..], &["--json"]].concat()));
    assert_eq!(whole["blocks"]["blocks"][2], 1, "{whole}");
    assert!(whole["blocks"]["device_bytes"].as_u64().unwrap() <= 1 << 30, "{whole}");
    assert!(whole["time_us"].is_null() && whole["verified"].is_null(), "{whole}");
    let reads = whole["read_bytes"].as_u64().unwrap();
    assert!(reads > 4 * (300_000 + 500_000) * 200_000, "{whole}");
    // With k in blocks much less is read, and the report says so.
    shows(plan(&small), &["\n          with --block-k 2048 "]);
    let cut = object(plan(&[&small[..], &["--block-k", "1024", "--json"]].concat()));
    assert!(cut["read_bytes"].as_u64().unwrap() < reads / 2, "{cut}");
    // The plan says for which GPU it is. A CPU is no GPU.
    let limit = ["--device-memory-limit", "80G"];
    let plan_on = |more: &[&str]| plan(&[&limit[..], more].concat());
    let stdout = succeeds(plan_on(&[]));
    let auto = "\ndevice    a GPU where there is one, otherwise the CPU (not looked at)\nplanned   for an H200, ";
    assert!(stdout.contains(auto), "{stdout}");
    assert_eq!(object(plan_on(&["--json"]))["planned_for"], "h200");
    shows(plan_on(&["--on", "a30"]), &["\nplanned   for an A30, 56 SMs (estimated: no card"]);
    assert_eq!(object(plan_on(&["--on", "a30", "--json"]))["planned_for"], "a30");
    let words = "error: --on = a30: is a GPU, and --device cpu is none";
    fails(plan_on(&["--on", "a30", "--device", "cpu"]), 2, &[words]);
    fails(plan(&["--on", "a30"]), 2, &["--device-memory-limit"]);
    // Without a limit the device is opened.
    fails(plan(&["--device", "cuda"]), 3, &["no NVIDIA driver"]);
    assert_eq!(folder.files(), ["a.npy", "b.npy"]);
}

#[test]
fn json_says_what_the_lines_say() {
    let (_folder, out) = Folder::with_out();
    let product = |more: &[&str]| object(gemm(&numpys("a_f4"), &numpys("b_f4"), &out, more));
    let object = product(&["--json"]);
    has_no_noise(&object);
    has(&object, json!({"m": 7, "n": 9, "k": 5, "compared": 63, "read_bytes": 320}));
    has(&object, json!({"dtype": "f32", "out_type": "f4", "device": "cpu"}));
    has(&object, json!({"verify": "full", "verified": true}));
    // No kernel needs a workspace, so any limit is enough.
    has(&object, json!({"workspace_limit": 256 << 20, "workspace_bytes": 0}));
    let object = product(&["--json", "--workspace-limit", "0"]);
    has(&object, json!({"workspace_limit": 0, "verified": true}));
}

/// A row with a NaN. With slices it is recomputed.
#[test]
fn what_was_computed_again_is_told() {
    let folder = Folder::new();
    let b = folder.random("b.npy", 8, 10, Type::F32, Layout::RowMajor);
    let path = folder.path("a.npy");
    let mut writer = Writer::create("--out", &path, 20, 8, Type::F32, Layout::RowMajor).unwrap();
    let values = (0..20 * 8).map(|i| if i == 35 { f32::NAN } else { 1.0 }).collect::<Vec<_>>();
    writer.write(0..20, 0..8, Layout::RowMajor, &values).unwrap();
    writer.finish().unwrap();
    let (a, out) = (folder.text("a.npy"), folder.text("o.npy"));
    let sliced = ["--compute", "fp32-bf16x6", "--kernel", "wgmma_bf16x6_64x128x64_nn"];
    let stdout = prints(gemm(&a, &b, &out, &sliced));
    let line = "\nrecomputed  10 of 200 elements, by fused multiply-adds\n";
    assert!(stdout.contains(line), "{stdout}");
    assert_eq!(object(gemm(&a, &b, &out, &[&sliced[..], &["--json"]].concat()))["recomputed"], 10);
}

#[test]
fn empty_files_are_multiplied_too() {
    let folder = Folder::new();
    let random = |name, rows, cols| folder.random(name, rows, cols, Type::F32, Layout::RowMajor);
    let out = folder.text("o.npy");
    let (a, b) = (random("a.npy", 3, 0), random("b.npy", 0, 4));
    assert_eq!(multiplied::<f32>(&a, &b, &out, &[]), [0.0; 12]);
    let c = random("c.npy", 3, 4);
    assert_eq!(multiplied::<f32>(&a, &b, &out, &["--c", &c]), read::<f32>(&c));
    let (code, stdout, _) = finish(gemm(&b, &numpys("c_f4"), &out, &[]));
    assert!(code == 2 && stdout.is_empty());
    let b = random("b.npy", 5, 0);
    shows(gemm(&numpys("a_f4"), &b, &out, &[]), &["\nC is empty: nothing was launched"]);
    assert!(read::<f32>(&out).is_empty());
}

#[test]
fn what_does_not_fit_names_files_flags_and_sizes() {
    let (folder, out) = Folder::with_out();
    let (a, b, c) = (numpys("a_f4"), numpys("b_f4"), numpys("c_f4"));
    let refused = |a: &str, b: &str, more: &[&str], words: &[&str]| {
        fails(gemm(a, b, &out, more), 2, words);
        assert!(folder.files().is_empty());
    };
    let with = |more: &[&str], words: &[&str]| refused(&a, &b, more, words);
    let words = ["b_f4.npy transposed (9 x 5): must have 5 rows", "--a ", "a_f4.npy (7 x 5)"];
    with(&["--trans-b"], &[&["--b = "], &words[..]].concat());
    let words = ["--b = ", "b_f4.npy (5 x 9): must have 7 rows", "a_f4.npy transposed (5 x 7)"];
    with(&["--trans-a"], &words);
    let words = ["--c = ", "a_f4.npy (7 x 5): must be 7 x 9 for --a ", " and --b "];
    with(&["--c", &a], &words);
    with(&["--beta", "0.5"], &["--beta = 0.5: must be 0 without --c"]);
    with(&["--alpha", "1e300"], &["--alpha = 1e300: is inf in f32"]);
    with(&["--alpha", "1e-300"], &["--alpha = 1e-300: is 0 in f32"]);
    with(&["--alpha", "NaN"], &["--alpha", "must be a finite number"]);
    let types = [Type::F32, Type::F64];
    let products = KERNELS.iter().filter_map(|entry| entry.product.as_ref());
    let products = products.filter(|one| types.contains(&one.variant.operands)).count();
    let limit = format!("must be one of {products} names");
    with(&["--kernel", "gemm"], &["--kernel", &limit, "or auto"]);
    let meant = format!("did you mean gemm_f64_64x64x16? It {limit}");
    with(&["--kernel", "gemm_f46_64x64x16"], &[&meant, "or auto"]);
    let words = "--kernel = gemm_f64_64x64x16: is for A and B of f64; it must be one of";
    with(&["--kernel", "gemm_f64_64x64x16"], &[words, "for f32"]);
    with(&["--kernel", "tiled16", "--alpha", "2"], &["--kernel = tiled16: computes only A B"]);
    with(&["--device-memory-limit", "0"], &["--device-memory-limit", "bytes, at least 1"]);
    with(&["--workspace-limit", "-1"], &["--workspace-limit", "bytes, at least 0"]);
    let words = "--device-memory-limit = 100: must be at least 572 bytes";
    with(&["--device-memory-limit", "100"], &[words]);
    with(&["--block-k", "0"], &["--block-k", "from 1"]);
    let missing = folder.text("missing.npy");
    refused(&missing, &b, &[], &["--a = ", "missing.npy: cannot be read"]);
    refused(&a, &missing, &[], &["--b = ", "missing.npy: cannot be read"]);
    with(&["--c", &missing], &["--c = ", "missing.npy: cannot be read"]);
    for (name, field) in [
        ("integers", "descr = '<i8': integers"),
        ("objects", "descr = '|O': objects"),
        ("structure", "a structure"),
        ("complex", "complex numbers"),
        ("no_dimension", "shape = (): must be two numbers"),
        ("three_dimensions", "3 dimensions"),
    ] {
        refused(&numpys(name), &b, &[], &[name, field]);
        with(&["--c", &numpys(name)], &[name, field]);
    }
    fails(gemm(&a, &b, "/dev/null", &[]), 2, &["--out = /dev/null", "no file"]);
    fails(gemm(&a, &b, &folder.text("no/o.npy"), &[]), 2, &["--out = ", "cannot be written"]);
    assert_eq!(read::<f32>(&c).len(), 63);
}

#[test]
fn a_broken_file_leaves_nothing_and_takes_nothing_away() {
    let (folder, out) = Folder::with_out();
    fs::write(&out, "what was there").unwrap();
    let bytes = fs::read(numpys("a_f4")).unwrap();
    let broken = folder.text("broken.npy");
    for (len, words) in [
        (bytes.len() - 1, &["broken.npy: data = 139 bytes: truncated"][..]),
        (100, &["broken.npy: file = 100 bytes: ends within its header"]),
        (3, &["broken.npy: magic = "]),
        (0, &["broken.npy: magic = "]),
    ] {
        fs::write(&broken, &bytes[..len]).unwrap();
        fails(gemm(&broken, &numpys("b_f4"), &out, &[]), 2, words);
    }
    assert_eq!(folder.files(), ["broken.npy", "o.npy"]);
    assert_eq!(fs::read(&out).unwrap(), b"what was there");
}

/// On a GPU, as far as the stand-in supports it: it multiplies with lessons' kernels.
fn on_gpu(driver: &str, folder: &Folder, more: &[&str]) -> Command {
    let random = |name, rows, cols| folder.random(name, rows, cols, Type::F32, Layout::RowMajor);
    let (a, b) = (random("a.npy", 150, 60), random("b.npy", 60, 130));
    let out = folder.text("o.npy");
    let args = ["gemm", "--a", &a, "--b", &b, "--out", &out, "--kernel", "tiled16"];
    let device = if more.contains(&"--device") { &[][..] } else { &["--device", "cuda"] };
    on(driver, &[&args[..], device, more].concat())
}

#[test]
fn a_gpus_copies_may_be_late() {
    let (folder, out) = Folder::with_out();
    let (whole, object) = bits(on_gpu("kernels=2 late=1", &folder, &["--json"]), &out);
    assert_eq!((&object["blocks"]["why"], &object["verified"]), (&"fits".into(), &true.into()));
    for limit in ["60K", "40K"] {
        let more = ["--device-memory-limit", limit, "--json"];
        let (got, object) = bits(on_gpu("kernels=2 late=1", &folder, &more), &out);
        assert_eq!(object["blocks"]["why"], "reads_less", "{object}");
        assert!(got == whole, "{limit}");
    }
}

#[test]
fn a_wrong_product_is_not_written() {
    // Kernels that do nothing.
    let folder = Folder::new();
    let (code, stdout, stderr) = finish(on_gpu("kernels=1", &folder, &[]));
    assert!(code == 1 && stdout.contains("\nWRONG ") && !stdout.contains("\nout "), "{stdout}");
    assert!(stderr.contains("error: nothing is written"), "{stderr}");
    assert!(stderr.contains("reproduce: cargo run -p host -- gemm --a "), "{stderr}");
    let (_, stdout, _) = finish(on_gpu("kernels=1", &folder, &["--json"]));
    assert_eq!(objects(&stdout)[0]["verified"], false);
    assert_eq!(folder.files(), ["a.npy", "b.npy"]);
}

#[test]
fn a_driver_that_fails_on_the_way_leaves_nothing() {
    for call in [
        "cuMemAllocHost_v2=2",
        "cuMemcpyHtoDAsync_v2=700",
        "cuMemcpyDtoHAsync_v2=700",
        "cuLaunchKernel=700",
        "cuEventSynchronize=700",
    ] {
        let folder = Folder::new();
        let driver = format!("kernels=2 {call}");
        let more = ["--device-memory-limit", "60K"];
        let code = call.split_once('=').unwrap().1;
        fails(on_gpu(&driver, &folder, &more), 4, &[code]);
        assert_eq!(folder.files(), ["a.npy", "b.npy"], "{call}");
    }
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let folder = Folder::new();
    let random = |name, rows, cols| folder.random(name, rows, cols, Type::F32, Layout::RowMajor);
    let (a, b) = (random("a.npy", 2500, 2500), random("b.npy", 2500, 2500));
    let out = folder.text("o.npy");
    // A minute of work, in one piece and in blocks.
    for limit in ["1G", "20M"] {
        let more = ["--kernel", "basic", "--device-memory-limit", limit, "-v"];
        is_interrupted(gemm(&a, &b, &out, &more), "kernel basic");
        assert_eq!(folder.files(), ["a.npy", "b.npy"]);
    }
}
