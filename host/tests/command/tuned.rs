//! `--tune`: the fastest of a few kernels, timed.

use std::fs;

use crate::common::{fails, host, objects, prints};

#[test]
fn a_file_has_the_answer_for_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tuning.txt");
    let path = file.to_str().unwrap();
    let sizes = ["--m", "40", "--n", "70", "--k", "30", "--device", "cpu"];
    let run = |flags: &[&str]| prints(host(&[&sizes[..], flags].concat()));
    let in_memory = run(&["--tune"]);
    assert!(in_memory.contains("(timed: ") && in_memory.contains("verified"), "{in_memory}");
    let [first, second] = [(); 2].map(|()| {
        let object = objects(&run(&["--json", "--tune", path])).remove(0);
        [object["kernel"].to_string(), object["reason"].to_string()]
    });
    assert_eq!(first, second);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.lines().count() == 2 && text.contains(first[0].trim_matches('"')), "{text}");
    fails(host(&[&sizes[..], &["--tune", path, "--plan"]].concat()), 2, &["--tune", "--plan"]);
    fs::write(&file, "torn").unwrap();
    let damaged = host(&[&sizes[..], &["--tune", path]].concat());
    fails(damaged, 2, &[path, "line 1 = \"torn\"", "gpu-gemm tuning 1"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "torn");
}
