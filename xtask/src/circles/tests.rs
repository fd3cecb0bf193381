//! Small crates with and without circles.

use super::*;

fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let files = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
    let files = files.collect::<BTreeMap<_, _>>();
    let krate = Crate::read("src/lib.rs", &files).unwrap();
    super::circles(&krate).into_iter().map(|circle| circle.files).collect()
}

#[test]
fn two_files_that_use_each_other_are_a_circle() {
    let a = ("src/a.rs", "use super::b::B;\npub struct A(B);");
    let found = circles(&[
        ("src/lib.rs", "mod a; mod b;"),
        a,
        ("src/b.rs", "pub struct B; fn f() { crate::a::g() }"),
    ]);
    assert_eq!(found, [["src/a.rs", "src/b.rs"]]);
    let found = circles(&[("src/lib.rs", "mod a; mod b;"), a, ("src/b.rs", "pub struct B;")]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_parent_may_export_what_its_children_define_and_they_use_each_other_by_it() {
    let parent = ("src/x/mod.rs", "mod a; mod b; pub(super) use a::A; pub use self::b::B;");
    let (a, b) =
        (("src/x/a.rs", "use super::B; pub struct A(B);"), ("src/x/b.rs", "pub struct B;"));
    assert!(circles(&[("src/lib.rs", "mod x;"), parent, a, b]).is_empty());
    let b = ("src/x/b.rs", "pub struct B; fn f(_: &crate::x::A) {}");
    let found = circles(&[("src/lib.rs", "mod x;"), parent, a, b]);
    assert_eq!(found, [["src/x/a.rs", "src/x/b.rs"]]);
}

#[test]
fn a_parent_with_code_of_its_own_and_its_child_are_a_circle() {
    let child = ("src/x/a.rs", "use super::*; pub fn g(_: X) {}");
    let parent = "mod a; pub struct X; fn f(x: X) { a::g(x) }";
    let found = circles(&[("src/lib.rs", "mod x;"), ("src/x.rs", parent), child]);
    assert_eq!(found, [["src/x.rs", "src/x/a.rs"]]);
}

#[test]
fn a_module_that_is_imported_counts_where_it_is_used() {
    let lib = ("src/lib.rs", "mod a; mod b;");
    let a = ("src/a.rs", "use super::b; pub struct A;");
    let b = ("src/b.rs", "use crate::{a::{self, A}}; pub(in crate::a) struct B(A);");
    assert!(circles(&[lib, a, b]).is_empty());
    let a = ("src/a.rs", "use super::b; pub struct A(b::B);");
    assert_eq!(circles(&[lib, a, b]), [["src/a.rs", "src/b.rs"]]);
}

#[test]
fn macros_and_the_files_own_tests_count_and_comments_and_expansions_do_not() {
    let lib = ("src/lib.rs", "mod a; mod b;");
    let a = ("src/a.rs", "/// [`crate::b::B`]\npub struct A; // crate::b::B");
    let b = ("src/b.rs", "macro_rules! m { () => { $crate::a::A } } pub struct B;");
    assert!(circles(&[lib, a, b]).is_empty());
    let b = ("src/b.rs", "m! { crate::a::A } pub struct B;");
    let a = ("src/a.rs", "pub struct A; mod tests { use super::*; fn f(_: crate::b::B) {} }");
    assert_eq!(circles(&[lib, a, b]), [["src/a.rs", "src/b.rs"]]);
}
