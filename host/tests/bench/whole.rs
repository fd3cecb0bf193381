//! Records that are not one run: nothing is counted twice, or told of another machine.

use super::*;

#[test]
fn what_is_not_one_run_is_refused() {
    let folder = folder("one-run");
    let [one, two] = ["one.jsonl", "two.jsonl"].map(|name| folder.join(name));
    let args = cpu(&["--sizes", "8,10", "--kernels", "tiled16", "--json"]);
    let rows = objects(&finish(host(&args)).1);
    let write = |path: &Path, rows: &[Value]| {
        let lines = rows.iter().map(|row| format!("{row}\n"));
        fs::write(path, lines.collect::<String>()).unwrap();
    };
    let refused = |words: &[&str]| {
        fails(host(&["bench", "--from", text(&one)]), 2, words);
        fails(host(&["bench", "--json", "--from", text(&one)]), 2, words);
        fails(host(&cpu(&["--sizes", "8", "--compare", text(&one)])), 2, &words[1..]);
    };
    write(&one, &[rows.clone(), rows[..1].to_vec()].concat());
    refused(&["--from", "line 3: 8x8x8 tiled16 is there twice: not one run"]);
    let changed = |field: &str, value: Value| {
        let mut row = rows[1].clone();
        row[field] = value;
        [rows[0].clone(), row]
    };
    write(&one, &changed("description", "another CPU".into()));
    refused(&[
        "--from",
        "line 2: 10x10x10 was measured on cpu: another CPU, and other rows on cpu: ",
    ]);
    write(&one, &changed("drawn", 3.into()));
    refused(&["--from", "line 2", "must have both of `drawn` and `drawn_of`"]);
    let mut drawn = rows[0].clone();
    (drawn["drawn"], drawn["drawn_of"]) = (3.into(), 2.into());
    write(&one, &[drawn]);
    refused(&["--from", "line 1: 8x8x8: drawn = 3: must be from 1 to drawn_of = 2"]);
    // In two files.
    write(&one, &rows[..1]);
    write(&two, &changed("description", "another CPU".into())[1..]);
    let both = ["bench", "--from", text(&one), text(&two)];
    fails(host(&both), 2, &["--from", "two.jsonl", "was measured on cpu: another CPU"]);
    write(&two, &rows[1..]);
    assert_eq!(finish(host(&both)).0, 0);
}

/// A record of the machine beside the rows is of their machine.
#[test]
fn a_machine_of_other_rows_is_refused() {
    let folder = folder("machines");
    let [one, two] = ["one", "two"].map(|name| folder.join(name));
    for (size, out) in [("8", &one), ("10", &two)] {
        let asked =
            ["--sizes", size, "--kernels", "tiled16", "--commit", "abc", "--out", text(out)];
        assert_eq!(finish(host(&cpu(&asked))).0, 0);
    }
    let both = ["bench", "--from", text(&one), text(&two)];
    assert_eq!(finish(host(&both)).0, 0);
    let path = two.join("machine.json");
    let machine: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let write = |field: &str, value: &str| {
        let mut machine = machine.clone();
        machine[field] = value.into();
        fs::write(&path, machine.to_string()).unwrap();
    };
    write("commit", "def");
    fails(
        host(&both),
        2,
        &["--from", "commit = \"def\" in machine.json, and \"abc\"", "not one run"],
    );
    write("description", "another CPU");
    fails(host(&both), 2, &["--from", "description = \"another CPU\" in machine.json"]);
    let alone = ["bench", "--from", text(&two)];
    fails(host(&alone), 2, &["--from", "machine.json is of cpu: another CPU, and the rows are of"]);
    // When and how long a part ran is its own.
    write("date", "2001-01-01");
    assert_eq!(finish(host(&both)).0, 0);
}
