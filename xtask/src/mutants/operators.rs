//! Where in a kernel file each kind of mistake can be made.
//!
//! The file is parsed to find the places, and edited as text, so that everything else in it, its line
//! numbers among it, stays as it is.

mod barrier;
mod comparison;
mod copies;
mod index;
mod shared;
mod zero_fill;

use syn::{
    BinOp, Expr, ExprAssign, ExprBinary, ExprCall, ExprIndex, ExprMethodCall, ExprPath, FieldValue,
    Item, Lit, Local, Macro, Pat, Stmt, Token,
    punctuated::Punctuated,
    visit::{self, Visit},
};

use super::{
    mutant::{Mutant, Mutants},
    source::{Function, KernelFile, KernelModule, SHARED_MACROS, last_segment},
};

/// Every mutant of a module, in the order of the functions and of the places in them.
pub fn mutants(module: &KernelModule) -> Vec<Mutant> {
    let mut mutants = Mutants::new(module);
    for (number, function) in module.functions().iter().enumerate() {
        mutants.go_to(function.file);
        let conditions = comparison::comparisons(mutants.file, function.block);
        let mut places = Places {
            mutants: &mut mutants,
            number,
            function,
            conditions,
            own: vec![],
            stages: vec![],
            turning: false,
        };
        places.visit_block(function.block);
    }
    mutants.done()
}

/// Goes through one function and makes a mutant wherever one can be made.
struct Places<'a, 'f> {
    mutants: &'a mut Mutants<'f>,
    number: usize,
    function: &'a Function<'f>,
    /// The comparisons of the function, as conditions for its barriers.
    conditions: Vec<String>,
    /// Arrays of one thread's own, which are no memory to get an index into wrong.
    own: Vec<String>,
    /// Variables that take turns, in pairs: one stage of a tile and another.
    stages: Vec<[String; 2]>,
    /// Is this where they do?
    turning: bool,
}

impl<'ast> Visit<'ast> for Places<'_, '_> {
    // A function in this one is a function of its own.
    fn visit_item(&mut self, _: &'ast Item) {}

    fn visit_local(&mut self, local: &'ast Local) {
        if let Some(init) = &local.init {
            if let (Pat::Ident(name), Expr::Array(_) | Expr::Repeat(_)) = (&local.pat, &*init.expr)
            {
                self.own.push(name.ident.to_string());
            }
            for (pattern, value) in bindings(&local.pat, &init.expr) {
                if matches!(pattern, Pat::Ident(name) if is_position(&name.ident.to_string())) {
                    self.index(value);
                }
            }
            self.stages(&local.pat, &init.expr);
        }
        visit::visit_local(self, local);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        self.zero_fill(statement);
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_assign(&mut self, assignment: &'ast ExprAssign) {
        let turning = self.turning;
        self.turning |= self.is_stage(&assignment.left);
        visit::visit_expr_assign(self, assignment);
        self.turning = turning;
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        self.wrong_stage(path);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        self.barrier(call);
        self.group(call);
        self.block_index(call);
        if let Expr::Path(function) = &*call.func
            && function.path.segments.len() > 1
        {
            self.call(&last_segment(&function.path), &call.args);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        self.comparison(binary);
        match binary.op {
            BinOp::And(_) | BinOp::Or(_) => self.operands(binary),
            _ => visit::visit_expr_binary(self, binary),
        }
    }

    fn visit_expr_index(&mut self, index: &'ast ExprIndex) {
        if !self.own.contains(&root(&index.expr)) {
            self.index(&index.index);
        }
        visit::visit_expr_index(self, index);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.call(&call.method.to_string(), &call.args);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_field_value(&mut self, field: &'ast FieldValue) {
        // (A field that is named as its value is has no place for another one.)
        if let syn::Member::Named(name) = &field.member
            && is_position(&name.to_string())
            && field.colon_token.is_some()
        {
            self.index(&field.expr);
        }
        visit::visit_field_value(self, field);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let name = last_segment(&call.path);
        if SHARED_MACROS.contains(&&*name) {
            self.shared_array(call);
        } else if self.mutants.file.defines_macro(&name)
            && let Ok(arguments) =
                call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated)
        {
            // What such a macro is given is code like any other.
            arguments.iter().for_each(|argument| self.visit_expr(argument));
        }
    }
}

/// Each name that a `let` binds with its value, as far as a tuple is bound to a tuple.
fn bindings<'a>(pattern: &'a Pat, value: &'a Expr) -> Vec<(&'a Pat, &'a Expr)> {
    match (pattern, value) {
        (Pat::Tuple(pattern), Expr::Tuple(value)) => {
            pattern.elems.iter().zip(&value.elems).collect()
        }
        _ => vec![(pattern, value)],
    }
}

/// Is it the name of a place in a matrix or in a tile?
fn is_position(name: &str) -> bool {
    ["at", "from", "to"].contains(&name) || name.starts_with("from_") || name.starts_with("to_")
}

/// The variable that an expression starts from: `acc` of `acc[i][j]`.
fn root(expr: &Expr) -> String {
    match expr {
        Expr::Path(path) => last_segment(&path.path),
        Expr::Index(index) => root(&index.expr),
        Expr::Paren(paren) => root(&paren.expr),
        _ => String::new(),
    }
}

/// The text of an expression as an operand of `*` and `/`.
fn factor(file: &KernelFile, expr: &Expr) -> String {
    match expr {
        Expr::Binary(_) | Expr::Cast(_) | Expr::Range(_) | Expr::If(_) | Expr::Unary(_) => {
            format!("({})", file.text_of(expr))
        }
        _ => file.text_of(expr).into(),
    }
}

/// The text of an expression as an operand of `+` and `-`, and on their left side.
fn term(file: &KernelFile, expr: &Expr) -> String {
    match expr {
        Expr::Binary(binary)
            if matches!(
                binary.op,
                BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_)
            ) =>
        {
            file.text_of(expr).into()
        }
        Expr::Cast(_) => file.text_of(expr).into(),
        _ => factor(file, expr),
    }
}

/// `0`, `0.0f32`, `[0.0; 4]`, `f32::ZERO`.
fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Float(float) => float.base10_parse::<f64>().is_ok_and(|x| x == 0.0),
            Lit::Int(int) => int.base10_digits() == "0",
            _ => false,
        },
        Expr::Path(path) => last_segment(&path.path) == "ZERO",
        Expr::Repeat(repeat) => is_zero(&repeat.expr),
        Expr::Paren(paren) => is_zero(&paren.expr),
        Expr::Block(block) => match &*block.block.stmts {
            [Stmt::Expr(only, None)] => is_zero(only),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, path::Path};

    use super::*;
    use crate::mutants::mutant::Operator;

    /// `from -> to` of the mutants of one operator in a function's body.
    fn of(operator: Operator, body: &str) -> Vec<String> {
        let text = format!("fn f<const T: usize>() {{ {body} }} fn g() {{ f::<16>(); }}");
        let mutants = mutants(&KernelModule::of("k", &text));
        let those = mutants.iter().filter(|mutant| mutant.operator == operator);
        those.map(|mutant| format!("{} -> {}", mutant.from, mutant.to)).collect()
    }

    #[test]
    fn barriers() {
        let body = "thread::sync_threads(); if i < n {}";
        assert_eq!(of(Operator::RemoveBarrier, body), ["thread::sync_threads() -> ()"]);
        assert_eq!(of(Operator::RemoveBarrier, "sync_warp(mask);"), ["sync_warp(mask) -> ()"]);
        assert_eq!(of(Operator::RemoveBarrier, "cluster::sync();"), ["cluster::sync() -> ()"]);
        assert_eq!(
            of(Operator::BranchBarrier, body),
            [
                "thread::sync_threads() -> if thread::thread_idx_x() == 0 { thread::sync_threads() }",
                "thread::sync_threads() -> if i < n { thread::sync_threads() }",
            ]
        );
    }

    /// What the mutants without one operand make of `let x = ..;`.
    fn dropped(body: &str) -> Vec<String> {
        let mutants = mutants(&KernelModule::of("k", &format!("fn f() {{ {body} }}")));
        let those = mutants.iter().filter(|mutant| mutant.operator == Operator::DropOperand);
        those.map(|mutant| mutant.text[17..mutant.text.len() - 3].into()).collect()
    }

    #[test]
    fn comparisons() {
        let weaken = |body: &str| of(Operator::WeakenComparison, body);
        let strengthen = |body: &str| of(Operator::StrengthenComparison, body);
        for (comparison, weaker, stronger) in [
            ("i < n", "i <= n", "i + 1 < n"),
            ("i + 3 <= n", "i + 3 <= n + 1", "i + 3 < n"),
            ("i > n", "i >= n", "i > n + 1"),
            ("i >= n", "i + 1 >= n", "i > n"),
            ("i == n", "i <= n", "false"),
            ("i != n", "true", "i < n"),
        ] {
            let body = format!("while {comparison} {{}}");
            assert_eq!(weaken(&body), [format!("{comparison} -> {weaker}")]);
            assert_eq!(strengthen(&body), [format!("{comparison} -> {stronger}")]);
        }
        let body = "let x = a < b && c < d && e < f;";
        assert_eq!(dropped(body), ["c < d && e < f", "a < b && e < f", "a < b && c < d"]);
        let body = "let x = a < b || c && d;";
        assert_eq!(dropped(body), ["c && d", "a < b", "a < b || d", "a < b || c"]);
    }

    #[test]
    fn indices() {
        assert_eq!(of(Operator::IndexPlusOne, "a[i * n + j]"), ["i * n + j -> i * n + j + 1"]);
        assert_eq!(of(Operator::IndexMinusOne, "*p.add(i)"), ["i -> i - 1"]);
        assert_eq!(
            of(Operator::HalveIndex, "a[(i + 1, j)]"),
            ["i + 1 -> (i + 1) / 2", "j -> j / 2"]
        );
        let transposed = |body: &str| of(Operator::TransposeIndex, body);
        assert_eq!(transposed("a[(i, j + 1)]"), ["(i, j + 1) -> (j + 1, i)"]);
        assert_eq!(transposed("a[i * n + j]"), ["i * n + j -> j * n + i"]);
        assert_eq!(transposed("a[s + i * n + 4 * j]"), ["i * n + 4 * j -> (4 * j) * n + i"]);
        assert_eq!(transposed("a[16 * i + j]"), ["16 * i + j -> j * 16 + i"]);
        assert_eq!(transposed("a[i]"), [""; 0]);
        // A thread's own array is not one of these, the view that it is indexed with is.
        assert_eq!(
            of(Operator::IndexPlusOne, "let mut s = [0.0; 4]; s[i] = a.load128(j);"),
            ["j -> j + 1"]
        );
    }

    /// What is called `at`, `from` or `to` is one where it is computed; what copies is told where from and to.
    #[test]
    fn positions() {
        let plus_one = |body: &str| of(Operator::IndexPlusOne, body);
        assert_eq!(plus_one("let (to, x) = (i * 4, j);"), ["i * 4 -> i * 4 + 1"]);
        assert_eq!(plus_one("let at = |i: usize| (i, j);"), ["i -> i + 1", "j -> j + 1"]);
        assert_eq!(plus_one("S { from_a: p * n, step: q }"), ["p * n -> p * n + 1"]);
        assert_eq!(plus_one("t.copy_async::<1>(i, a, j, true);"), ["i -> i + 1", "j -> j + 1"]);
        assert_eq!(plus_one("T::store(c, i, four); store(c, i);"), ["i -> i + 1"]);
        assert_eq!(plus_one("a[i..i + 4]; b[0]"), ["0 -> 0 + 1"]);
        assert_eq!(of(Operator::HalveIndex, "a[0]"), [""; 0]);
        assert_eq!(
            of(Operator::DropOperand, "t.copy_async::<1>(0, a, 0, inside)"),
            ["inside -> true"]
        );
    }

    #[test]
    fn groups_of_copies() {
        let body = "copies::wait_group::<{ STAGES - 2 }>(); copies::commit_group();";
        let wait = "copies::wait_group::<{ STAGES - 2 }>()";
        assert_eq!(of(Operator::RemoveWait, body), [format!("{wait} -> ()")]);
        let less = "{ STAGES - 2 } -> { 1 + { STAGES - 2 } }";
        assert_eq!(of(Operator::WaitForLess, body), [less]);
        assert_eq!(of(Operator::RemoveCommit, body), ["copies::commit_group() -> ()"]);

        // Of products of tensor cores.
        let body = "commit(); wait::<1>();";
        assert_eq!(of(Operator::RemoveCommit, body), ["commit() -> ()"]);
        assert_eq!(of(Operator::RemoveWait, body), ["wait::<1>() -> ()"]);
        assert_eq!(of(Operator::WaitForLess, body), ["1 -> { 1 + 1 }"]);
    }

    #[test]
    fn stages() {
        let wrong = |body: &str| of(Operator::WrongStage, body);
        let body = "let (mut now, mut free) = (0, end);
                    copy(free);
                    t[now + i];
                    free = now;
                    now = if now < end { now + 1 } else { 0 };";
        assert_eq!(wrong(body), ["free -> now", "now -> free"]);
        assert_eq!(wrong("let (now, free) = (0, end); copy(free);"), [""; 0]);
        assert_eq!(wrong("let (mut a, mut b) = ([0; 4], [0; 4]); a[i];"), [""; 0]);
    }

    #[test]
    fn what_macros_make_is_changed_in_their_definitions() {
        let text = "
            macro_rules! four { (|$i:ident| $e:expr) => {{ let at = $i; $e }}; }
            macro_rules! all { ($($t:ident = $end:expr;)*) => {$(
                fn f() { four!(|i| a[i * $end]); }
            )*}; }
        ";
        let module = KernelModule::of("k", text);
        let mutants = mutants(&module);
        let those = mutants.iter().filter(|mutant| mutant.operator == Operator::IndexPlusOne);
        let edits = those.map(|mutant| format!("{} -> {}", mutant.from, mutant.to));
        assert_eq!(edits.collect::<Vec<_>>(), ["$i -> $i + 1", "i * $end -> i * $end + 1"]);
    }

    #[test]
    fn zero_fills() {
        let fills = |body: &str| of(Operator::DropZeroFill, body);
        assert_eq!(
            fills("t[i] = if i < n { a[i] } else { 0.0 };"),
            ["t[i] = if i < n { a[i] } else { 0.0 } -> if i < n { t[i] = a[i] }"]
        );
        assert_eq!(
            fills("t.store128(i, if i < n { a.load128(i) } else { [0.0; 4] });"),
            ["t.store128(i, if i < n { a.load128(i) } else { [0.0; 4] }) -> \
              if i < n { t.store128(i, a.load128(i)) }"]
        );
        assert_eq!(fills("t[i] = if i < n { a[i] } else { 1.0 };"), [""; 0]);
    }

    #[test]
    fn shared_arrays() {
        let shared = |body: &str| of(Operator::ShortenShared, body);
        assert_eq!(shared("let t = shared![f32; 16, 17];"), ["16 -> 16 - 1"]);
        assert_eq!(shared("let t = shared_array![f32; 2 * 256];"), ["2 * 256 -> 2 * 256 - 1"]);
        assert_eq!(shared("let t = dynamic_shared![f32];"), [""; 0]);

        // An array's size can be a const parameter, but no expression with one.
        let text = "fn f<const T: usize>() { shared![f32; T, T] } fn g() { f::<16>() }";
        let [mutant] = &*mutants(&KernelModule::of("k", text)) else { panic!("one array") };
        let wanted = "fn f<const T: usize, const SHORT: usize>() { shared![f32; SHORT, T] } \
                      fn g() { f::<16, { 16 - 1 }>() }";
        assert_eq!(mutant.text, wanted);
    }

    #[test]
    fn block_indices() {
        let body = "let row = thread::block_idx_y() as usize * 16;";
        assert_eq!(
            of(Operator::HalveBlockIndex, body),
            ["thread::block_idx_y() -> (thread::block_idx_y() / 2)"]
        );
    }

    /// Every operator finds something in the tiled kernels; whatever one makes of any kernel is still Rust,
    /// and every name is of one mutant.
    #[test]
    fn mutants_of_our_own_kernels() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/src/kernels");
        let mut kernels = Vec::new();
        for module in KernelModule::all(&folder).unwrap() {
            kernels.extend(module.kernels().into_iter().map(|kernel| kernel.name));
            if module.kernels().is_empty() {
                continue;
            }
            let (name, mutants) = (&module.name, mutants(&module));
            for operator in Operator::ALL {
                let found = mutants.iter().any(|mutant| mutant.operator == operator);
                let wanted = match &**name {
                    "tiled" | "rust_cuda" => !operator.is_of_copies(),
                    "async_copy" | "gemm" => operator.is_of_copies(),
                    _ => false,
                };
                assert!(found || !wanted, "{name}: no {}", operator.name());
            }
            let mut names = HashSet::new();
            for mutant in &mutants {
                assert!(names.insert(&mutant.name), "{name}: {} twice", mutant.name);
                assert!(syn::parse_file(&mutant.text).is_ok(), "{}:\n{}", mutant.name, mutant.text);
                assert_ne!(mutant.text, module.files[mutant.file].text, "{}", mutant.name);
            }
        }
        for kernel in ["tiled16", "tiled32", "rust_cuda_tiled16", "gemm_32"] {
            assert!(kernels.iter().any(|name| name == kernel), "{kernel}: {kernels:?}");
        }
        assert!(!kernels.iter().any(|name| name == "basic"), "it has no shared memory");
    }
}
