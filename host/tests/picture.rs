//! The built command's pictures: `explain --trace --json`, `explain --html` and `profile --html`.
//! How they look is tested in a browser, by `cargo xtask browser`.

#[allow(dead_code, reason = "not every file of tests needs all of it")]
mod common;

use std::{collections::BTreeMap, fs};

use gpu::registry::{self, Type};
use serde_json::{Value, json};

use self::common::{fails, finish, has, host, objects, prints};

/// The page that the command writes, with these arguments.
fn page(args: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let args = [args, &["--html", path.to_str().unwrap()]].concat();
    let (code, stdout, stderr) = finish(host(&args));
    let written = format!("written: {}\n", path.display());
    assert_eq!((code, stderr), (0, written), "{stdout}");
    fs::read_to_string(path).unwrap()
}

/// The JSON of the pictures in a page.
fn data(page: &str) -> Vec<Value> {
    let parts = page.split("<script type=\"application/json\">").skip(1);
    parts
        .map(|part| serde_json::from_str(part.split("</script>").next().unwrap()).unwrap())
        .collect()
}

/// A page needs no other file, and no network.
#[track_caller]
fn stands_alone(page: &str) {
    assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">"), "{page:.200}");
    for word in
        ["http-equiv", "import ", "fetch(", "type=\"module\"", "<script src", "@import", "url("]
    {
        assert!(!page.contains(word), "{word}");
    }
    // The only address is the name of SVG.
    let addresses = page.matches("http://").count() + page.matches("https://").count();
    assert_eq!(addresses, page.matches("http://www.w3.org/2000/svg").count());
    assert_eq!(page.matches("<script>").count(), 1);
}

/// For each operation the sums of requests, units, and fewest units.
fn sums<'a>(requests: impl Iterator<Item = &'a Value>) -> BTreeMap<&'a str, [u64; 3]> {
    let mut sums = BTreeMap::<_, [u64; 3]>::new();
    for one in requests.filter(|one| one["width"] != 0) {
        let sum = sums.entry(one["operation"].as_str().unwrap()).or_default();
        let of = |name: &str| one[name].as_u64().unwrap();
        *sum = [sum[0] + 1, sum[1] + of("units"), sum[2] + of("ideal")];
    }
    sums
}

/// The same sums by `profile --json`, whose grid is the traced block.
#[test]
fn the_json_of_a_trace_adds_up_to_what_profile_counts() {
    for (kernel, sizes) in [
        ("basic", ["16", "16", "8"]),
        ("tiled_conflicts", ["16", "16", "32"]),
        ("vectorised", ["128", "128", "16"]),
        ("tensor_ldmatrix", ["128", "128", "64"]),
    ] {
        let sizes = ["--m", sizes[0], "--n", sizes[1], "--k", sizes[2]];
        let args = [&["explain", kernel, "--trace", "--json"], &sizes[..]].concat();
        let stdout = prints(host(&args));
        let [trace] = &objects(&stdout)[..] else { panic!("{stdout}") };
        let args = [&["profile", "--kernel", kernel, "--json"], &sizes[..]].concat();
        let (_, stdout, _) = finish(host(&args));
        let profile = &objects(&stdout)[0];
        let mut counted = BTreeMap::<_, [u64; 3]>::new();
        for line in profile["lines"].as_array().unwrap().iter().filter(|line| line["bytes"] != 0) {
            let sum = counted.entry(line["operation"].as_str().unwrap()).or_default();
            let of = |name: &str| line[name].as_u64().unwrap();
            *sum = [sum[0] + of("requests"), sum[1] + of("units"), sum[2] + of("ideal_units")];
        }
        let shown = sums(trace["requests"].as_array().unwrap().iter());
        assert!(!shown.is_empty());
        assert_eq!(shown, counted, "{kernel}");
        assert_eq!((&trace["schema"], &trace["clean"]), (&2.into(), &true.into()));
    }
}

#[test]
fn a_page_has_the_trace_in_it_and_needs_nothing_else() {
    let page = page(&["explain", "tiled_conflicts"]);
    stands_alone(&page);
    assert!(
        page.contains("<h1>tiled_conflicts: 16 x 16 tiles, B's transposed in shared memory</h1>")
    );
    let [data] = &data(&page)[..] else { panic!("one picture") };
    has(data, json!({"kernel": "tiled_conflicts", "left_out_requests": 0}));
    let sums = sums(data["requests"].as_array().unwrap().iter());
    // 8 wavefronts for each of the 16 stores to B's tile in two phases, one for each of those to
    // A's.
    assert_eq!(sums["shared-store"], [32, 16 * 9, 32]);
    let text = data["lines"][1]["text"].as_str().unwrap();
    assert!(text.starts_with("tile_b[(tx, ty)] = element_or_zero(&b"), "{text}");
}

/// The sizes are those of the command's default: a page for each rung must stay small.
#[test]
fn the_pages_of_all_rungs_are_small_and_show_whole_warps() {
    for operands in [Type::F32, Type::BF16] {
        for (entry, _) in registry::ladder_of(operands) {
            let page = page(&["explain", entry.name()]);
            assert!(page.len() < 300 << 10, "{}: {} bytes", entry.name(), page.len());
            stands_alone(&page);
            let [data] = &data(&page)[..] else { panic!("{}: one picture", entry.name()) };
            let requests = data["requests"].as_array().unwrap();
            assert!(requests.len() > 10, "{}", entry.name());
            let by_stages = ["async_copy", "tensor_cp_async", "tensor_wgmma"]
                .contains(&entry.name())
                || entry.product.as_ref().unwrap().variant.access == registry::Access::Tma;
            assert_eq!(data["stages"].is_object(), by_stages, "{}", entry.name());
        }
    }
}

#[test]
fn a_profile_s_page_has_the_worst_request_of_each_line() {
    let sizes = ["--m", "32", "--n", "32", "--k", "32"];
    let args = [&["profile", "--kernel", "tiled_conflicts", "--json"], &sizes[..]].concat();
    let page = page_beside_json(&args);
    stands_alone(&page);
    assert!(
        page.contains("8.00 wavefronts</td><td data-of=\"at best\">1.00</td>"),
        "the conflict's row"
    );
    assert!(page.contains("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum"));
    let [data] = &data(&page)[..] else { panic!("one picture") };
    assert_eq!(data["sampled"], true);
    let requests = data["requests"].as_array().unwrap();
    // Two loads, two stores to shared memory, two reads of it, the store of C.
    let units = requests.iter().map(|one| one["units"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!((requests.len(), units.iter().max()), (6, Some(&8)), "{requests:?}");
}

/// As [`page`], for a command that prints JSON besides.
fn page_beside_json(args: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let (code, stdout, stderr) =
        finish(host(&[args, &["--html", path.to_str().unwrap()]].concat()));
    let written = format!("written: {}\n", path.display());
    assert_eq!((code, stderr, objects(&stdout).len()), (0, written, 1), "{stdout}");
    fs::read_to_string(path).unwrap()
}

#[test]
fn wrong_uses_are_refused_before_anything_runs() {
    fails(host(&["explain", "tiled16", "--json"]), 2, &["--trace"]);
    let nowhere = ["explain", "tiled16", "--html", "/no/such/folder/page.html"];
    fails(host(&nowhere), 2, &["--html", "there is no folder"]);
    let sizes =
        ["profile", "--m", "5", "--n", "5", "--k", "5", "--html", "/no/such/folder/page.html"];
    fails(host(&sizes), 2, &["--html", "there is no folder"]);
    let outside = ["explain", "tiled16", "--trace", "--json", "--block", "9,9"];
    fails(host(&outside), 2, &["--block = 9,9: the grid has 1 x 1 blocks"]);
}
