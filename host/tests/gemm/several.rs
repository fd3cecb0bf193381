//! Products of files by several devices.

use super::*;
use crate::shell::under;

/// Random files of 230 x 300 and 300 x 190.
fn files(folder: &Folder) -> [String; 2] {
    let random = |name, rows, cols| folder.random(name, rows, cols, Type::F32, Layout::ColMajor);
    [random("a.npy", 230, 300), random("b.npy", 300, 190)]
}

/// `gemm` of these on some devices.
fn by(devices: &str, [a, b]: &[String; 2], folder: &Folder, more: &[&str]) -> Command {
    let args = ["gemm", "--a", a, "--b", b, "--out", &folder.text("o.npy"), "--device", devices];
    host(&[&args[..], more].concat())
}

#[test]
fn several_devices_give_the_bits_of_one() {
    let folder = Folder::new();
    let (files, out) = (files(&folder), folder.text("o.npy"));
    for more in [&[][..], &["--device-memory-limit", "300K"], &["--block-k", "70"]] {
        let more = [&["--json"], more].concat();
        let (one, object) = bits(by("cpu", &files, &folder, &more), &out);
        assert_eq!((&object["device"], &object["blocks"]["devices"]), (&"cpu".into(), &1.into()));
        for (count, names) in [(2, "cpu:0, cpu:1"), (3, "cpu:0, cpu:1, cpu:2")] {
            let devices = format!("cpu:{count}");
            let (several, object) = bits(by(&devices, &files, &folder, &more), &out);
            assert!(several == one, "{devices} {more:?}");
            assert_eq!((&object["device"], &object["verified"]), (&names.into(), &true.into()));
            assert_eq!(object["blocks"]["devices"], count);
        }
    }
    assert_eq!(folder.files(), ["a.npy", "b.npy", "o.npy"]);
}

#[test]
fn plan_and_progress_name_the_devices() {
    let folder = Folder::new();
    let files = files(&folder);
    let stdout = prints(by("cpu:3", &files, &folder, &["--plan"]));
    for part in [
        "\ndevice    cpu:0, cpu:1, cpu:2\n",
        "split so that each device has a part\n",
        "\n          cpu:0: blocks 0 to 0 of C, cpu:1: blocks 1 to 1 of C, cpu:2: blocks ",
        " bytes on each device, ",
    ] {
        assert!(stdout.contains(part), "`{part}` is missing: {stdout}");
    }
    // No device is opened.
    let limit = ["--plan", "--device-memory-limit", "1G"];
    let (_, stdout, _) = finish(by("cuda:0,2", &files, &folder, &limit));
    let line = "\ndevice    cuda:0, cuda:2 (not looked at)\nplanned   for an H200";
    assert!(stdout.contains(line) && stdout.contains("cuda:2: blocks"), "{stdout}");
    fails(by("cuda:all", &files, &folder, &limit), 2, &["--device = cuda:all: must be a list"]);
    let (code, stdout, stderr) = finish(by("cpu:2", &files, &folder, &["-v"]));
    assert!(code == 0 && stdout.contains("\ndevice    cpu:0, cpu:1\n"), "{stdout}");
    assert!(stderr.contains(" on cpu:0, cpu:1 ...\n"), "{stderr}");
}

#[test]
fn devices_that_are_refused_or_missing() {
    let folder = Folder::new();
    let files = files(&folder);
    for wrong in ["cpu:0", "cpu:257", "cpu:x", "cuda:0,", "cuda:0,x", "cuda:", "cuda:some"] {
        fails(by(wrong, &files, &folder, &[]), 2, &["--device", wrong, "cpu:COUNT", "cuda:all"]);
    }
    let emulated = ["--compute", "fp32-bf16x6"];
    let words = ["--compute = fp32-bf16x6: must be fp32 or tf32 over several devices"];
    fails(by("cpu:2", &files, &folder, &emulated), 2, &words);
    let plan = [&emulated[..], &["--plan", "--device-memory-limit", "1G"]].concat();
    fails(by("cuda:0,1", &files, &folder, &plan), 2, &words);
    // Of several that may be there, one is.
    let plan = [&emulated[..], &["--plan"]].concat();
    for command in [
        by("cpu:1", &files, &folder, &plan),
        on_gpu("devices=1", &folder, &[&["--device", "cuda:all"], &plan[..]].concat()),
    ] {
        succeeds(command);
    }
    fails(by("cuda:all", &files, &folder, &[]), 3, &["no NVIDIA driver"]);
    let missing = on_gpu("devices=2", &folder, &["--device", "cuda:0,2"]);
    fails(missing, 3, &["cuda:2: this machine has 2 CUDA device(s)"]);
    assert_eq!(folder.files(), ["a.npy", "b.npy"]);
}

#[test]
fn all_gpus_give_the_bits_of_one() {
    let folder = Folder::new();
    let (out, driver) = (folder.text("o.npy"), "devices=3 kernels=2 late=1");
    let (one, _) = bits(on_gpu(driver, &folder, &["--json"]), &out);
    for (devices, names) in [("cuda:all", "cuda:0, cuda:1, cuda:2"), ("cuda:0,0", "cuda:0, cuda:0")]
    {
        for limit in ["1M", "40K"] {
            let more = ["--device", devices, "--json", "--device-memory-limit", limit];
            let (several, object) = bits(on_gpu(driver, &folder, &more), &out);
            assert!(several == one, "{devices} {limit}");
            assert_eq!((&object["device"], &object["verified"]), (&names.into(), &true.into()));
        }
    }
}

#[test]
fn a_gpu_that_fails_is_named_and_nothing_is_written() {
    for call in ["cuMemAlloc_v2@1=2", "cuMemcpyHtoDAsync_v2@1=700", "cuLaunchKernel@1=700"] {
        let folder = Folder::new();
        let driver = format!("devices=2 kernels=2 {call}");
        let (name, code) = (call.split('@').next().unwrap(), call.split_once('=').unwrap().1);
        let words = match code {
            "2" => ["on place 1, cuda:1: ", "out of memory on cuda:1"],
            code => [
                "on place 1, cuda:1: ",
                &format!("{name} failed: CUDA_ERROR_ILLEGAL_ADDRESS ({code})"),
            ],
        };
        let command = on_gpu(&driver, &folder, &["--device", "cuda:all"]);
        fails(command, 4, &words);
        assert_eq!(folder.files(), ["a.npy", "b.npy"], "{call}");
    }
}

#[test]
fn a_full_disk_leaves_what_was_there() {
    let folder = Folder::new();
    let (files, out) = (files(&folder), folder.path("o.npy"));
    fs::write(&out, "what was there").unwrap();
    let command = under("ulimit -f 8", &by("cpu:3", &files, &folder, &[]));
    fails(command, 4, &["--out = ", "o.npy: cannot be written: File too large"]);
    assert_eq!(fs::read(&out).unwrap(), b"what was there");
    assert_eq!(folder.files(), ["a.npy", "b.npy", "o.npy"]);
}
