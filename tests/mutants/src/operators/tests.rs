use super::*;

/// `from -> to` of the alternatives of one operator in a function's body.
fn of(operator: Operator, body: &str) -> Vec<String> {
    let text = format!("fn f() {{ {body} }}");
    let file = SourceFile::new("k.rs".into(), text).unwrap();
    let functions = file.functions();
    let sites = functions.iter().flat_map(|function| sites(&file, function));
    let texts = sites.flat_map(|Site { range, alternatives }| {
        let from = file.text[range].to_owned();
        let those = alternatives.into_iter().filter(|one| one.operator == operator);
        those.map(move |one| format!("{from} -> {}", one.text)).collect::<Vec<_>>()
    });
    texts.collect()
}

#[test]
fn barriers() {
    let body = "thread::sync_threads(); if i < n {}";
    assert_eq!(of(Operator::RemoveBarrier, body), ["thread::sync_threads() -> ()"]);
    assert_eq!(of(Operator::RemoveBarrier, "sync_warp(mask);"), ["sync_warp(mask) -> ()"]);
    let branches = [
        "thread::sync_threads() -> if thread::thread_idx_x() == 0 { thread::sync_threads() }",
        "thread::sync_threads() -> if i < n { thread::sync_threads() }",
    ];
    assert_eq!(of(Operator::BranchBarrier, body), branches);
    let half = of(Operator::HalveBlockIndex, "let x = thread::block_idx_x() as usize;");
    assert_eq!(half, ["thread::block_idx_x() -> thread::block_idx_x() / 2"]);
}

#[test]
fn conditions() {
    for (comparison, weaker, stronger) in [
        ("i < n", "i <= n", "i + 1 < n"),
        ("i + 3 <= n", "i + 3 <= n + 1", "i + 3 < n"),
        ("i > n", "i >= n", "i > n + 1"),
        ("i >= n", "i + 1 >= n", "i > n"),
        ("i == n", "true", "false"),
        ("i != n", "true", "false"),
    ] {
        let body = format!("while {comparison} {{}}");
        let (weaken, strengthen) = (Operator::WeakenComparison, Operator::StrengthenComparison);
        assert_eq!(of(weaken, &body), [format!("{comparison} -> {weaker}")]);
        assert_eq!(of(strengthen, &body), [format!("{comparison} -> {stronger}")]);
    }
    let dropped = |body: &str| of(Operator::DropOperand, body);
    assert_eq!(dropped("a && b() && c;"), ["a -> true", "b() -> true", "c -> true"]);
    let either = ["a -> false", "b && c -> false", "b -> true", "c -> true"];
    assert_eq!(dropped("a || b && c;"), either);
    assert_eq!(dropped("if let Some(x) = y && a {}"), ["a -> true"]);
    assert_eq!(dropped("t.copy_async::<1>(0, a, 0, inside)"), ["inside -> true"]);
    // Fixed at compile time.
    assert_eq!(dropped("a && T::WIDE && size_of::<T>() == 2 && M < 4"), ["a -> true"]);
    assert_eq!(of(Operator::WeakenComparison, "N as u32 - 1 > Self::END;"), [""; 0]);
}

#[test]
fn indices() {
    let (plus, minus, half) =
        (Operator::IndexPlusOne, Operator::IndexMinusOne, Operator::HalveIndex);
    assert_eq!(of(plus, "a[i * n + j]"), ["i * n + j -> i * n + j + 1"]);
    assert_eq!(of(minus, "*p.add(i)"), ["i -> i - 1"]);
    assert_eq!(of(half, "a[(i + 1, j)]"), ["i + 1 -> (i + 1) / 2", "j -> j / 2"]);
    assert_eq!(of(half, "a[0]"), [""; 0]);
    let transposed = |body: &str| of(Operator::TransposeIndex, body);
    assert_eq!(transposed("a[(i, j + 1)]"), ["(i, j + 1) -> (j + 1, i)"]);
    assert_eq!(transposed("a[i * n + j]"), ["i * n + j -> j * n + i"]);
    let whole = ["s + i * n + 4 * j -> s + (4 * j) * n + i"];
    assert_eq!(transposed("a[s + i * n + 4 * j]"), whole);
    // A thread's own array is in registers. What it is loaded from is memory.
    assert_eq!(of(plus, "let mut s = [0.0; 4]; s[i] = a.load128(j);"), ["j -> j + 1"]);
    // A variable called `at`, `from` or `to` is an index where it is computed.
    assert_eq!(of(plus, "let (to, x) = (i * 4, j);"), ["i * 4 -> i * 4 + 1"]);
    assert_eq!(of(plus, "let at = |i: usize| (i, j);"), ["i -> i + 1", "j -> j + 1"]);
    assert_eq!(of(plus, "S { from_a: p * n, step: q }"), ["p * n -> p * n + 1"]);
    assert_eq!(of(plus, "a[i..i + 4]; const { b[1] }"), [""; 0]);
}

#[test]
fn copies_and_stages() {
    let body = "copies::wait_group::<{ STAGES - 2 }>(); commit();";
    let wait = "copies::wait_group::<{ STAGES - 2 }>()";
    assert_eq!(of(Operator::RemoveWait, body), [format!("{wait} -> ()")]);
    let less = format!("{wait} -> copies::wait_group::<{{ 1 + {{ STAGES - 2 }} }}>()");
    assert_eq!(of(Operator::WaitForLess, body), [less]);
    assert_eq!(of(Operator::RemoveCommit, body), ["commit() -> ()"]);
    let body = "let (mut now, mut free) = (0, end); copy(free); free = now;";
    assert_eq!(of(Operator::WrongStage, body), ["free -> now"]);
}

#[test]
fn zero_fills() {
    let fills = |body: &str| of(Operator::DropZeroFill, body);
    let fill = "t[i] = if i < n { a[i] } else { 0.0 }";
    let without = format!("{fill} -> if i < n {{ t[i] = a[i] }}");
    assert_eq!(fills(&format!("{fill};")), [without]);
    assert_eq!(fills("t[i] = if i < n { a[i] } else { 1.0 };"), [""; 0]);
}

#[test]
fn what_a_macro_makes_is_changed_in_its_definition() {
    let text = "
        macro_rules! four { (|$i:ident| $e:expr) => {{ let at = $i; $e }}; }
        macro_rules! all { ($($t:ident = $end:expr;)*) => {$(
            fn f() { four!(|i| a[i * $end]); }
        )*}; }
    ";
    let file = SourceFile::new("k.rs".into(), text.into()).unwrap();
    let all = file.functions().iter().flat_map(|f| sites(&file, f)).collect::<Vec<_>>();
    let places = all.iter().map(|site| &file.text[site.range.clone()]);
    assert_eq!(places.collect::<Vec<_>>(), ["$i", "i * $end"]);
}
