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

/// What no run writes: tables and summaries would tell both.
#[test]
fn a_row_that_contradicts_itself_is_refused() {
    let folder = folder("consistent");
    let file = folder.join("rows.jsonl");
    let args = ["--sizes", "8", "--kernels", "tiled16,basic", "--json"];
    let rows = objects(&finish(host(&cpu(&args))).1);
    let with = |fields: &[(&str, Value)]| {
        let mut row = rows[1].clone();
        fields.iter().for_each(|(field, value)| row[*field] = value.clone());
        fs::write(&file, format!("{}\n{row}\n", rows[0])).unwrap();
    };
    with(&[]);
    assert_eq!(finish(host(&["bench", "--from", text(&file)])).0, 0);
    let null = Value::Null;
    for (fields, words) in [
        (&[("verified", false.into())][..], "verified = false, and time_us"),
        (&[("verified", false.into()), ("exact_on_integers", false.into())], "verified = false"),
        (&[("exact_on_integers", false.into())], "verified = true, and exact_on_integers = false"),
        (&[("exact_on_integers", null.clone())], "verified = true, and exact_on_integers = null"),
        (&[("time_us", null.clone())], "verified = true without time_us"),
        // Longer than any machine takes, however busy.
        (&[("time_us", 1e9.into()), ("tflops", 1.024e-12.into())], "ratio = "),
        (
            &[
                ("time_us", 1000.0.into()),
                ("tflops", 1.024e-6.into()),
                ("min_us", 1000.0.into()),
                ("baseline_time_us", 1.0.into()),
                ("baseline_tflops", 1.024e-3.into()),
                ("ratio", 5.0.into()),
                ("ratio_low", 4.0.into()),
                ("ratio_high", 6.0.into()),
            ],
            "ratio = 5e0, and baseline_time_us / time_us = 1e-3",
        ),
        (&[("tflops", 1.0.into())], "tflops = 1e0, and flop / time_us = "),
        (&[("tflops", null.clone())], "time_us without tflops"),
        (&[("baseline_tflops", 1.0.into())], "baseline_tflops = 1e0, and flop / baseline_time_us"),
        (&[("baseline_time_us", null.clone())], "baseline_tflops without baseline_time_us"),
        (&[("min_us", 1e9.into())], "min_us = 1e9, and time_us = "),
        (&[("ratio_low", 1e9.into())], "and its interval is 1e9 to "),
        (&[("ratio", null.clone())], "ratio_low or ratio_high without ratio"),
        (&[("over_plain", 2.0.into())], "over_plain without time_us and plain_time_us"),
        (
            &[("over_plain", 50.0.into()), ("plain_time_us", rows[1]["time_us"].clone())],
            "over_plain = 5e1, and time_us / plain_time_us = 1e0",
        ),
    ] {
        with(fields);
        for from in [&["bench", "--from"][..], &["bench", "--json", "--from"]] {
            let args = [from, &[text(&file)]].concat();
            let line = "line 2 contradicts itself: 8x8x8 basic: ";
            fails(host(&args), 2, &["--from", line, words]);
        }
    }
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
