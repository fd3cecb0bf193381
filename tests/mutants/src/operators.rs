//! The places in a function where each kind of mistake can be made, and the replacements.
//!
//! A *site* is an expression with its alternatives. These are whole expressions, so that each can
//! be switched on at run time.

mod syntax;

use std::{collections::BTreeMap, ops::Range};

use syn::{
    BinOp, Expr, ExprAssign, ExprBinary, ExprCall, ExprConst, ExprIndex, ExprMethodCall, ExprPath,
    ExprRepeat, FieldValue, GenericArgument, Item, Local, Macro, Pat, PathArguments, Stmt, Token,
    Type,
    punctuated::Punctuated,
    visit::{self, Visit},
};

use self::syntax::{Comparisons, bindings, is_constant, is_position, is_zero, loaded, root};
use crate::source::{Function, SourceFile, last_segment, range};

/// The kinds of mistakes, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// A barrier left out.
    RemoveBarrier,
    /// A barrier that only some threads reach.
    BranchBarrier,
    /// A comparison that holds once too often.
    WeakenComparison,
    /// A comparison that holds once too rarely.
    StrengthenComparison,
    /// One condition of several left out.
    DropOperand,
    /// The next element.
    IndexPlusOne,
    /// The previous element.
    IndexMinusOne,
    /// Half the index.
    HalveIndex,
    /// Row and column swapped.
    TransposeIndex,
    /// Nothing is stored in place of a zero.
    DropZeroFill,
    /// Two blocks that do the work of one.
    HalveBlockIndex,
    /// One more group of copies is not waited for.
    WaitForLess,
    /// No copies waited for.
    RemoveWait,
    /// Copies that are not made a group.
    RemoveCommit,
    /// The other stage of a tile.
    WrongStage,
}

impl Operator {
    pub const ALL: [(Operator, &str); 15] = [
        (Operator::RemoveBarrier, "remove-barrier"),
        (Operator::BranchBarrier, "branch-barrier"),
        (Operator::WeakenComparison, "weaken-comparison"),
        (Operator::StrengthenComparison, "strengthen-comparison"),
        (Operator::DropOperand, "drop-operand"),
        (Operator::IndexPlusOne, "index-plus-one"),
        (Operator::IndexMinusOne, "index-minus-one"),
        (Operator::HalveIndex, "halve-index"),
        (Operator::TransposeIndex, "transpose-index"),
        (Operator::DropZeroFill, "drop-zero-fill"),
        (Operator::HalveBlockIndex, "halve-block-index"),
        (Operator::WaitForLess, "wait-for-less"),
        (Operator::RemoveWait, "remove-wait"),
        (Operator::RemoveCommit, "remove-commit"),
        (Operator::WrongStage, "wrong-stage"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// An alternative to a site's expression.
#[derive(Clone, Debug)]
pub struct Alternative {
    pub operator: Operator,
    pub text: String,
}

/// An expression with its alternatives.
#[derive(Debug)]
pub struct Site {
    pub range: Range<usize>,
    pub alternatives: Vec<Alternative>,
}

/// The sites of a function. A site comes after those that contain it.
pub fn sites(file: &SourceFile, function: &Function) -> Vec<Site> {
    let mut visitor = Sites { file, conditions: Vec::new(), ..Sites::default_of(file) };
    Comparisons(file, &mut visitor.conditions).visit_block(function.block);
    visitor.visit_block(function.block);
    let sites = visitor.found.into_iter();
    let mut sites = sites
        .map(|((start, end), alternatives)| Site { range: start..end, alternatives })
        .collect::<Vec<_>>();
    sites.sort_by_key(|site| (site.range.start, usize::MAX - site.range.end));
    sites
}

/// Arguments of functions that are indices: of copies and TMA loads places in shared memory.
const INDICES: [(&str, &[usize]); 19] = [
    ("add", &[0]),
    ("load128", &[0]),
    ("store128", &[0]),
    ("store64", &[0]),
    ("store_if", &[0]),
    ("load128_in_order", &[0]),
    ("load64_in_order", &[0]),
    ("copy_async", &[0, 2]),
    ("load_box", &[0]),
    ("load_box_multicast", &[0]),
    ("numbered", &[0]),
    ("operand", &[0]),
    // Stages of the kernels that copy asynchronously.
    ("begin", &[4]),
    ("begin_copies", &[1]),
    // For element types, after the type itself.
    ("load", &[1]),
    ("store", &[1]),
    ("store_two", &[1]),
    ("load_shared", &[1]),
    ("copy_four", &[1, 3]),
];

/// The macros that declare shared arrays, whose sizes are constants.
const SHARED_MACROS: [&str; 3] = ["shared", "shared_array", "dynamic_shared"];

struct Sites<'a> {
    file: &'a SourceFile,
    found: BTreeMap<(usize, usize), Vec<Alternative>>,
    /// The comparisons of the function, as conditions for its barriers.
    conditions: Vec<String>,
    /// Arrays of one thread, which are registers.
    own: Vec<String>,
    /// Variables that alternate, in pairs: one stage of a tile and another.
    stages: Vec<[String; 2]>,
    /// Whether this is where they alternate.
    turning: bool,
}

impl<'a> Sites<'a> {
    fn default_of(file: &'a SourceFile) -> Self {
        let (found, conditions) = (BTreeMap::new(), Vec::new());
        Sites { file, found, conditions, own: Vec::new(), stages: Vec::new(), turning: false }
    }

    fn add(&mut self, place: Range<usize>, operator: Operator, text: impl Into<String>) {
        let text = text.into();
        if text.is_empty() || self.file.text[place.clone()] == text {
            return;
        }
        let there = self.found.entry((place.start, place.end)).or_default();
        if !there.iter().any(|known| known.text == text) {
            there.push(Alternative { operator, text });
        }
    }

    /// `sync_threads()` left out, or reached by some threads only: by the block's first column, or
    /// by those for which a condition of the function holds. `sync_warp(mask)` and a cluster's
    /// `sync()` left out.
    fn barrier(&mut self, call: &ExprCall, name: &str) {
        if !["sync_threads", "sync_warp", "sync"].contains(&name) {
            return;
        }
        let (place, text) = (range(call), self.file.text_of(call).to_owned());
        self.add(place.clone(), Operator::RemoveBarrier, "()");
        if name == "sync_threads" {
            let first = format!("{} == 0", text.replacen("sync_threads", "thread_idx_x", 1));
            // Where its variables do not exist yet, a condition does not compile.
            for condition in [first].into_iter().chain(self.conditions.clone()) {
                let branch = format!("if {condition} {{ {text} }}");
                self.add(place.clone(), Operator::BranchBarrier, branch);
            }
        }
    }

    /// `wait_group::<N>()`, `wait_group_read` or `wait` left out, or with one more group in flight;
    /// `commit_group()` or `commit` left out.
    fn group(&mut self, call: &ExprCall, function: &ExprPath) {
        let Some(segment) = function.path.segments.last() else { return };
        let removed = match &*segment.ident.to_string() {
            "wait_group" | "wait_group_read" | "wait" => Operator::RemoveWait,
            "commit_group" | "commit" => Operator::RemoveCommit,
            _ => return,
        };
        let place = range(call);
        self.add(place.clone(), removed, "()");
        if let PathArguments::AngleBracketed(list) = &segment.arguments
            && let Some(GenericArgument::Const(pending)) = list.args.first()
        {
            let text = self.file.text_of(call);
            let at = range(pending);
            let (before, after) = (&text[..at.start - place.start], &text[at.end - place.start..]);
            let more = format!("{before}{{ 1 + {} }}{after}", self.file.text_of(pending));
            self.add(place, Operator::WaitForLess, more);
        }
    }

    /// A comparison of integers that holds once too often, or once too rarely.
    fn comparison(&mut self, comparison: &ExprBinary) {
        if is_constant(&comparison.left) && is_constant(&comparison.right) {
            return;
        }
        let (left, right) = (self.term(&comparison.left), self.term(&comparison.right));
        let (weaker, stronger) = match comparison.op {
            BinOp::Lt(_) => (format!("{left} <= {right}"), format!("{left} + 1 < {right}")),
            BinOp::Le(_) => (format!("{left} <= {right} + 1"), format!("{left} < {right}")),
            BinOp::Gt(_) => (format!("{left} >= {right}"), format!("{left} > {right} + 1")),
            BinOp::Ge(_) => (format!("{left} + 1 >= {right}"), format!("{left} > {right}")),
            // One more or less often makes no difference: for a counter that stops there, or zero.
            BinOp::Eq(_) => ("true".into(), "false".into()),
            BinOp::Ne(_) => ("true".into(), "false".into()),
            _ => return,
        };
        self.add(range(comparison), Operator::WeakenComparison, weaker);
        self.add(range(comparison), Operator::StrengthenComparison, stronger);
    }

    /// Each operand of `&&` and `||` left out in turn.
    fn operand(&mut self, operand: &Expr, neutral: &str) {
        if !matches!(operand, Expr::Let(_)) && !is_constant(operand) {
            self.add(range(operand), Operator::DropOperand, neutral);
        }
    }

    /// Arguments that are indices; and the condition for copying elements, left out.
    fn arguments(&mut self, name: &str, arguments: &Punctuated<Expr, Token![,]>) {
        let indices = INDICES.iter().find(|(known, _)| *known == name);
        for &index in indices.map_or(&[][..], |(_, indices)| indices) {
            arguments.get(index).into_iter().for_each(|argument| self.index(argument));
        }
        if let ("copy_async" | "copy_four", Some(condition)) = (name, arguments.last())
            && !matches!(condition, Expr::Binary(_))
        {
            self.add(range(condition), Operator::DropOperand, "true");
        }
    }

    /// An index, or each of row and column: one too large, one too small, halved, transposed.
    fn index(&mut self, index: &Expr) {
        let parts = match index {
            Expr::Tuple(tuple) => tuple.elems.iter().collect(),
            Expr::Closure(closure) => return self.index(&closure.body),
            // A range of a thread's own elements.
            Expr::Range(_) => return,
            whole => vec![whole],
        };
        for part in &parts {
            self.add(range(*part), Operator::IndexPlusOne, format!("{} + 1", self.term(part)));
            self.add(range(*part), Operator::IndexMinusOne, format!("{} - 1", self.term(part)));
            if !is_zero(part) {
                self.add(range(*part), Operator::HalveIndex, format!("{} / 2", self.factor(part)));
            }
        }
        let transposed = match &*parts {
            [row, col] => format!("({}, {})", self.file.text_of(*col), self.file.text_of(*row)),
            [whole] => self.transposed(whole).unwrap_or_default(),
            _ => return,
        };
        self.add(range(index), Operator::TransposeIndex, transposed);
    }

    /// A sum with `col * ld + row` in place of its `row * ld + col`.
    fn transposed(&self, sum: &Expr) -> Option<String> {
        let (whole, text) = (range(sum), self.file.text_of(sum));
        let (replaced, by) = self.transposed_part(sum)?;
        let (before, after) =
            (&text[..replaced.start - whole.start], &text[replaced.end - whole.start..]);
        Some(format!("{before}{by}{after}"))
    }

    fn transposed_part(&self, sum: &Expr) -> Option<(Range<usize>, String)> {
        let product = |expr: &Expr| match expr {
            Expr::Binary(product) if matches!(product.op, BinOp::Mul(_)) => {
                let (left, right) = (self.factor(&product.left), self.factor(&product.right));
                // 16 * row is treated as row * 16.
                Some(match *product.left {
                    Expr::Lit(_) => (right, left),
                    _ => (left, right),
                })
            }
            _ => None,
        };
        match sum {
            Expr::Paren(paren) => self.transposed_part(&paren.expr),
            Expr::Binary(sum) if matches!(sum.op, BinOp::Add(_)) => {
                let of = |(row, ld): (String, String), start: usize| {
                    let text = format!("{} * {ld} + {row}", self.factor(&sum.right));
                    Some((start..range(&sum.right).end, text))
                };
                if let Some(product) = product(&sum.left) {
                    return of(product, range(&sum.left).start);
                }
                match &*sum.left {
                    // start + row * ld + col
                    Expr::Binary(left) if matches!(left.op, BinOp::Add(_)) => {
                        match product(&left.right) {
                            Some(product) => of(product, range(&left.right).start),
                            None => self.transposed_part(&sum.left),
                        }
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `to = if inside { load } else { 0.0 }` becomes `if inside { to = load }`.
    fn zero_fill(&mut self, statement: &Stmt) {
        let Stmt::Expr(store, _) = statement else { return };
        let value = match store {
            Expr::Assign(assignment) => Some(&*assignment.right),
            Expr::MethodCall(call) => call.args.last(),
            _ => None,
        };
        let Some((fill, load)) = value.and_then(loaded) else { return };
        let (store_at, fill_at) = (range(store), range(fill));
        let text = format!(
            "if {} {{ {}{}{} }}",
            self.file.text_of(&fill.cond),
            &self.file.text[store_at.start..fill_at.start],
            self.file.text_of(load),
            &self.file.text[fill_at.end..store_at.end],
        );
        self.add(store_at, Operator::DropZeroFill, text);
    }

    /// Records two variables that alternate: `let (mut now, mut free) = ..`. (No own arrays.)
    fn note_stages(&mut self, pattern: &Pat, value: &Expr) {
        let (Pat::Tuple(pattern), Expr::Tuple(value)) = (pattern, value) else { return };
        let name = |pattern: &Pat| match pattern {
            Pat::Ident(name) if name.mutability.is_some() => Some(name.ident.to_string()),
            _ => None,
        };
        let names = pattern.elems.iter().filter_map(name).collect::<Vec<_>>();
        if let Ok(pair) = <[String; 2]>::try_from(names)
            && !value.elems.iter().any(|value| matches!(value, Expr::Array(_) | Expr::Repeat(_)))
        {
            self.stages.push(pair);
        }
    }

    fn other_stage(&self, path: &ExprPath) -> Option<String> {
        self.stages.iter().find_map(|[one, other]| match () {
            () if path.path.is_ident(one) => Some(other.clone()),
            () if path.path.is_ident(other) => Some(one.clone()),
            () => None,
        })
    }

    /// The text of an expression as an operand of `*` and `/`.
    fn factor(&self, expr: &Expr) -> String {
        match expr {
            Expr::Binary(_) | Expr::Cast(_) | Expr::Range(_) | Expr::If(_) | Expr::Unary(_) => {
                format!("({})", self.file.text_of(expr))
            }
            _ => self.file.text_of(expr).into(),
        }
    }

    /// The text of an expression as a left operand of `+` and `-`.
    fn term(&self, expr: &Expr) -> String {
        use BinOp::{Add, Div, Mul, Rem, Sub};
        match expr {
            Expr::Binary(of) if matches!(of.op, Add(_) | Sub(_) | Mul(_) | Div(_) | Rem(_)) => {
                self.file.text_of(expr).into()
            }
            Expr::Cast(_) => self.file.text_of(expr).into(),
            _ => self.factor(expr),
        }
    }
}

impl<'ast> Visit<'ast> for Sites<'_> {
    // An inner function is one of its own. Constants, types and patterns are fixed before.
    fn visit_item(&mut self, _: &'ast Item) {}
    fn visit_expr_const(&mut self, _: &'ast ExprConst) {}
    fn visit_generic_argument(&mut self, _: &'ast GenericArgument) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}

    fn visit_expr_repeat(&mut self, repeat: &'ast ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

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
            self.note_stages(&local.pat, &init.expr);
        }
        visit::visit_local(self, local);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        self.zero_fill(statement);
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_assign(&mut self, assignment: &'ast ExprAssign) {
        let turning = self.turning;
        self.turning |=
            matches!(&*assignment.left, Expr::Path(path) if self.other_stage(path).is_some());
        visit::visit_expr_assign(self, assignment);
        self.turning = turning;
    }

    /// The one stage in place of the other, except where they alternate: there both may be equal.
    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if let Some(other) = self.other_stage(path).filter(|_| !self.turning) {
            self.add(range(path), Operator::WrongStage, other);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(function) = &*call.func {
            let name = last_segment(&function.path);
            self.barrier(call, &name);
            self.group(call, function);
            // Two blocks compute, and write, the same.
            if name.starts_with("block_idx_") {
                let half = format!("{} / 2", self.file.text_of(call));
                self.add(range(call), Operator::HalveBlockIndex, half);
            }
            if function.path.segments.len() > 1 {
                self.arguments(&name, &call.args);
            }
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        self.comparison(binary);
        let neutral = match binary.op {
            BinOp::And(_) => "true",
            BinOp::Or(_) => "false",
            _ => return visit::visit_expr_binary(self, binary),
        };
        let same = std::mem::discriminant(&binary.op);
        // `a && b && c` is `(a && b) && c`: it has three operands.
        match &*binary.left {
            Expr::Binary(left) if std::mem::discriminant(&left.op) == same => {}
            left => self.operand(left, neutral),
        }
        self.operand(&binary.right, neutral);
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_index(&mut self, index: &'ast ExprIndex) {
        if !self.own.contains(&root(&index.expr)) {
            self.index(&index.index);
        }
        visit::visit_expr_index(self, index);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.arguments(&call.method.to_string(), &call.args);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_field_value(&mut self, field: &'ast FieldValue) {
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
        if !SHARED_MACROS.contains(&&*name)
            && self.file.defines_macro(&name)
            && let Ok(arguments) =
                call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated)
        {
            // The argument of a macro is code like any other.
            arguments.iter().for_each(|argument| self.visit_expr(argument));
        }
    }
}

#[cfg(test)]
mod tests;
