//! A program in C, compiled against the header and the library, on the CPU device.

use std::{env, fs, path::Path, process::Command};

use gpu_gemm::Type;

/// The output of a command, which must succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

#[test]
fn a_program_in_c_multiplies() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Cargo puts the library beside the tests.
    let tests = env::current_exe().unwrap();
    let libraries = tests.parent().unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("program");
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"]);
    cc.arg("-I").arg(folder.join("include")).arg(folder.join("tests/program.c"));
    cc.arg("-o").arg(&program).arg("-L").arg(libraries).args(["-lgpu_gemm_c", "-lm"]);
    output(&mut cc);
    let mut program = Command::new(program);
    assert_eq!(output(program.env("LD_LIBRARY_PATH", libraries)), "all right\n");
}

/// They are those of `cudaDataType`.
#[test]
fn the_header_has_the_types_of_the_table() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/gpu_gemm.h");
    let header = fs::read_to_string(header).unwrap();
    let types = [Type::F32, Type::F16, Type::I8, Type::BF16, Type::E4M3, Type::E5M2];
    for of in types {
        let line = format!("GPU_GEMM_{} = {}", of.name().to_uppercase(), of.cublas());
        let mut lines = header.lines().map(|line| line.trim().trim_end_matches(','));
        assert!(lines.any(|other| other == line), "{line}");
    }
}
