//! The built command's `doctor`: its findings without a driver and with a broken one, and the exit
//! code.

#[allow(dead_code, reason = "not every file of tests needs all of it")]
mod common;

use std::{env, fs, path::PathBuf, process::Command};

use serde_json::Value;

use self::common::{objects, on};

/// A machine with that driver and an empty home folder.
fn doctor(driver: &str) -> Command {
    let mut command = on(driver, &["doctor"]);
    for name in ["CUDA_CACHE_PATH", "CUDA_CACHE_DISABLE", "CUDA_VISIBLE_DEVICES"] {
        command.env_remove(name);
    }
    command.env("HOME", home());
    command
}

fn home() -> PathBuf {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("doctor-home");
    fs::create_dir_all(&home).unwrap();
    home
}

fn finish(mut command: Command) -> (i32, String) {
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "", "all there is to say is on standard output");
    (output.status.code().expect("ended by itself"), String::from_utf8(output.stdout).unwrap())
}

/// The exit code, and each finding as `status name: found -> advice`.
struct Findings(i32, Vec<String>);

fn findings(mut command: Command) -> Findings {
    command.arg("--json");
    let (code, stdout) = finish(command);
    let text = |line: &Value, key| line[key].as_str().unwrap_or_default().to_owned();
    let lines = objects(&stdout).into_iter().map(|line| {
        let keys = ["status", "name", "found", "advice"].map(|key| text(&line, key));
        let [status, name, found, advice] = keys;
        // Every finding that is not ok has advice.
        assert_eq!(status == "ok", advice.is_empty(), "{line}");
        assert!(!found.is_empty(), "{line}");
        format!("{status} {name}: {found} -> {advice}")
    });
    Findings(code, lines.collect())
}

impl Findings {
    /// Checks that one line starts so and has all these words.
    #[track_caller]
    fn has(&self, start: &str, words: &[&str]) {
        let lines: Vec<_> = self.1.iter().filter(|line| line.starts_with(start)).collect();
        let [line] = lines[..] else { panic!("not one line begins with `{start}`: {:#?}", self.1) };
        for word in words {
            assert!(line.contains(word), "`{word}` is missing: {line}");
        }
    }

    /// Checks the exit code, and that exactly these lines, by their starts, are not ok.
    #[track_caller]
    fn end(&self, code: i32, not_ok: &[&str]) {
        let Findings(actual, lines) = self;
        let found: Vec<_> = lines.iter().filter(|line| !line.starts_with("ok ")).collect();
        let all = found.len() == not_ok.len()
            && found.iter().zip(not_ok).all(|(line, start)| line.starts_with(start));
        assert!(all, "{not_ok:?} should not be ok: {found:#?}");
        assert_eq!(*actual, code, "{lines:#?}");
    }
}

#[test]
fn a_machine_that_is_well() {
    let findings = findings(doctor("kernels=2 devices=2"));
    findings.has("ok driver library", &["libcuda.so.1"]);
    findings.has("ok driver start", &["2 devices"]);
    findings.has("ok driver version", &["CUDA 13.0"]);
    findings.has("ok PTX for sm_80", &["PTX 7.1, needs CUDA 11.1"]);
    findings.has("ok PTX for sm_90a", &["PTX 8.3, needs CUDA 12.3"]);
    findings.has("ok cuda:1:", &["Fake GPU", "9.0", "takes PTX for sm_90a"]);
    findings.has("ok cuda:0 kernels", &["gemm (f32; f64; ", "tma (f32), ", "wgmma (bf16; "]);
    findings.has("ok cuda:0 memory", &["1.0 of 1.0 GiB free"]);
    findings.has("ok cuda:1 product", &["tiled16, 33x65x17: right", "first launch"]);
    findings.has("ok cpu product", &["right"]);
    findings.has("ok compiled kernels", &["kept in", ".nv/ComputeCache"]);
    findings.end(0, &[]);
    assert_eq!(fs::read_dir(home()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn people_read_it_with_what_to_do_below() {
    let (code, stdout) = finish(doctor("no driver"));
    assert_eq!(code, 0);
    let lines: Vec<_> = stdout.lines().collect();
    assert!(lines[0].starts_with("warn  driver library"), "{stdout}");
    assert!(lines[1].trim_start().starts_with("-> ") && lines[1].contains("install"), "{stdout}");
    assert!(lines[2].starts_with("ok    cpu "), "{stdout}");
    assert_eq!(*lines.last().unwrap(), "failures: 0, warnings: 1");
}

#[test]
fn no_driver_is_a_warning() {
    let findings = findings(doctor("no driver"));
    findings.has("warn driver library", &["libcuda.so.1", "the CPU device is used", "install"]);
    findings.has("ok cpu product", &["right"]);
    findings.end(0, &["warn driver library"]);
}

#[test]
fn a_driver_without_a_device_is_a_warning() {
    let mut hidden = doctor("devices=0");
    hidden.env("CUDA_VISIBLE_DEVICES", "7");
    let findings = findings(hidden);
    findings.has("warn driver start", &["no device", "CUDA_VISIBLE_DEVICES=7", "nvidia-smi"]);
    findings.end(0, &["warn driver start"]);
}

#[test]
fn a_driver_that_does_not_start() {
    let findings = findings(doctor("cuInit=803"));
    findings.has("fail driver start", &["803", "restart"]);
    findings.has("ok driver version", &["13.0"]);
    findings.has("ok cpu product", &["right"]);
    findings.end(3, &["fail driver start"]);
}

#[test]
fn a_driver_too_old_for_the_ptx() {
    let old = findings(doctor("kernels=2 version=11000"));
    old.has("fail PTX for sm_90a", &["needs CUDA 12.3", "has 11.0", "update the driver"]);
    // Hopper also runs the PTX for all GPUs.
    old.has("fail PTX for sm_80", &["needs CUDA 11.1", "has 11.0", "update the driver"]);
    old.end(3, &["fail PTX for sm_80", "fail PTX for sm_90a"]);
    // The driver is too old for Hopper's PTX. An Ampere GPU does not need it.
    let ampere = findings(doctor("kernels=2 version=12020 major=8"));
    ampere.has("ok cuda:0:", &["takes PTX for sm_80"]);
    ampere.has(
        "ok cuda:0 kernels",
        &["gemm (f32; ", "mma (bf16; ", "; f32 as tf32; i8, C i32; ", "; f64)"],
    );
    let kernels = ampere.1.iter().find(|line| line.starts_with("ok cuda:0 kernels"));
    assert!(kernels.is_some_and(|line| !line.contains("tma (") && !line.contains("wgmma")));
    ampere.end(0, &["warn PTX for sm_90a"]);
    // The driver's own error message.
    let refused = findings(doctor("cuModuleLoadDataEx=222 version=11080"));
    refused.has("fail cuda:0 product", &["sm_80/tiled16.ptx", "CUDA 11.8"]);
    refused.end(3, &["fail PTX for sm_90a", "fail cuda:0 product"]);
}

#[test]
fn a_gpu_too_old_is_not_used() {
    let findings = findings(doctor("kernels=2 major=7 minor=5"));
    findings.has("warn cuda:0:", &["7.5 is below 8.0", "not used", "Ampere"]);
    findings.end(0, &["warn cuda:0"]);
}

#[test]
fn a_function_that_the_driver_lacks() {
    let device = findings(doctor("cuDeviceTotalMem_v2=302"));
    device.has("fail cuda:0:", &["cuDeviceTotalMem_v2", "too old"]);
    device.end(3, &["fail cuda:0"]);
    let product = findings(doctor("kernels=2 cuStreamSynchronize=302"));
    product.has("fail cuda:0 product", &["cuStreamSynchronize", "too old"]);
    product.end(3, &["fail cuda:0 product"]);
    let version = findings(doctor("cuDriverGetVersion=302"));
    version.has("fail driver version", &["cuDriverGetVersion"]);
    version.end(3, &["fail driver version", "fail cuda:0"]);
}

#[test]
fn memory_that_cannot_be_asked_for_or_had() {
    let asked = findings(doctor("kernels=2 cuMemGetInfo_v2=700"));
    asked.has("fail cuda:0 memory", &["cuMemGetInfo_v2", "700", "nvidia-smi"]);
    asked.end(3, &["fail cuda:0 memory"]);
    let had = findings(doctor("kernels=2 cuMemAlloc_v2=2"));
    had.has("fail cuda:0 product", &["out of memory on cuda:0", "nvidia-smi"]);
    had.end(3, &["fail cuda:0 product"]);
}

#[test]
fn a_device_that_faults_does_not_hide_the_others() {
    let findings = findings(doctor("kernels=2 cuStreamSynchronize=700"));
    findings.has("fail cuda:0 product", &["cuStreamSynchronize", "700"]);
    findings.has("ok cpu product", &["right"]);
    findings.end(3, &["fail cuda:0 product"]);
}

#[test]
fn a_wrong_product_is_worse_than_anything_else() {
    // Kernels that do nothing.
    let findings = findings(doctor("kernels=1 cuMemGetInfo_v2=700"));
    findings.has("fail cuda:0 product", &["2145 of 2145 elements of C are wrong", "report"]);
    findings.end(1, &["fail cuda:0 memory", "fail cuda:0 product"]);
}

#[test]
fn a_driver_that_cannot_keep_what_it_compiles() {
    const DRIVER: &str = "kernels=2";
    let mut disabled = doctor(DRIVER);
    disabled.env("CUDA_CACHE_DISABLE", "1");
    let disabled = findings(disabled);
    disabled.has("warn compiled kernels", &["CUDA_CACHE_DISABLE", "every process", "unset"]);
    disabled.end(0, &["warn compiled kernels"]);

    // A folder below a file cannot be created, not even by root.
    let file = env::temp_dir().join(format!("host-doctor-file-{}", std::process::id()));
    fs::write(&file, "").unwrap();
    let mut blocked = doctor(DRIVER);
    blocked.env("CUDA_CACHE_PATH", file.join("cache"));
    let blocked = findings(blocked);
    blocked.has("warn compiled kernels", &["cannot be written", "CUDA_CACHE_PATH"]);
    blocked.end(0, &["warn compiled kernels"]);
    fs::remove_file(file).unwrap();

    let mut homeless = doctor(DRIVER);
    homeless.env_remove("HOME");
    findings(homeless).has("warn compiled kernels", &["neither CUDA_CACHE_PATH nor HOME"]);

    let mut enabled = doctor(DRIVER);
    enabled.env("CUDA_CACHE_DISABLE", "0").env("CUDA_CACHE_PATH", env::temp_dir());
    findings(enabled).end(0, &[]);
}
