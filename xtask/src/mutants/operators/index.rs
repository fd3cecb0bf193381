//! Mistakes in indices.

use syn::{BinOp, Expr, Token, punctuated::Punctuated};

use super::{Places, factor, is_zero, term};
use crate::mutants::{
    mutant::{Edit, Operator},
    source::{KernelFile, range},
};

/// Which arguments are indices.
const INDICES: [(&str, &[usize]); 19] = [
    ("add", &[0]),
    ("load128", &[0]),
    ("store128", &[0]),
    ("store64", &[0]),
    ("store_if", &[0]),
    ("load128_in_order", &[0]),
    ("load64_in_order", &[0]),
    ("copy_async", &[0, 2]),
    // Of tensor copies, and of what tensor cores multiply.
    ("load_box", &[0]),
    ("load_box_multicast", &[0]),
    ("numbered", &[0]),
    ("operand", &[0]),
    // Of the kernels that copy asynchronously: stages.
    ("begin", &[4]),
    ("begin_copies", &[1]),
    // Of their types, after the type itself.
    ("load", &[1]),
    ("store", &[1]),
    ("store_two", &[1]),
    ("load_shared", &[1]),
    ("copy_four", &[1, 3]),
];

impl Places<'_, '_> {
    /// Those arguments of a function that are indices; and the condition on which elements are copied, left out.
    pub(super) fn call(&mut self, name: &str, arguments: &Punctuated<Expr, Token![,]>) {
        let indices = INDICES.iter().find(|(known, _)| *known == name);
        let indices = indices.map_or(&[][..], |(_, indices)| indices);
        indices.iter().filter_map(|&index| arguments.get(index)).for_each(|arg| self.index(arg));
        if let ("copy_async" | "copy_four", Some(condition)) = (name, arguments.last())
            && !matches!(condition, Expr::Binary(_))
        {
            let detail = self.mutants.file.text_of(condition);
            let edits = vec![Edit::new(range(condition), "true")];
            self.mutants.add(Operator::DropOperand, self.number, detail, edits);
        }
    }

    /// An index, or each part of one of row and column: one too large, one too small, halved, transposed.
    pub(super) fn index(&mut self, index: &Expr) {
        let file = self.mutants.file;
        let function = self.number;
        let parts = match index {
            Expr::Tuple(tuple) => tuple.elems.iter().collect(),
            Expr::Closure(closure) => return self.index(&closure.body),
            // Of a thread's own elements.
            Expr::Range(_) => return,
            whole => vec![whole],
        };
        for part in &parts {
            for (operator, text) in [
                (Operator::IndexPlusOne, format!("{} + 1", term(file, part))),
                (Operator::IndexMinusOne, format!("{} - 1", term(file, part))),
                (Operator::HalveIndex, format!("{} / 2", factor(file, part))),
            ] {
                if operator == Operator::HalveIndex && is_zero(part) {
                    continue;
                }
                self.mutants.add(operator, function, "", vec![Edit::new(range(*part), text)]);
            }
        }
        let transposed = match &*parts {
            [row, col] => {
                let text = format!("({}, {})", file.text_of(*col), file.text_of(*row));
                Some(Edit::new(range(index), text))
            }
            [whole] => transposed(file, whole),
            _ => None,
        };
        if let Some(edit) = transposed {
            self.mutants.add(Operator::TransposeIndex, function, "", vec![edit]);
        }
    }
}

/// `col * ld + row` for the `row * ld + col` in a sum.
fn transposed(file: &KernelFile, sum: &Expr) -> Option<Edit> {
    match sum {
        Expr::Paren(paren) => transposed(file, &paren.expr),
        Expr::Binary(sum) if matches!(sum.op, BinOp::Add(_)) => {
            let product = |expr: &Expr| match expr {
                Expr::Binary(product) if matches!(product.op, BinOp::Mul(_)) => {
                    let (left, right) = (factor(file, &product.left), factor(file, &product.right));
                    // 16 * row is as good as row * 16.
                    Some(match *product.left {
                        Expr::Lit(_) => (right, left),
                        _ => (left, right),
                    })
                }
                _ => None,
            };
            let of = |(row, ld): (String, String), start: usize| {
                let text = format!("{} * {ld} + {row}", factor(file, &sum.right));
                Some(Edit::new(start..range(&sum.right).end, text))
            };
            if let Some(product) = product(&sum.left) {
                return of(product, range(&sum.left).start);
            }
            match &*sum.left {
                // start + row * ld + col
                Expr::Binary(left) if matches!(left.op, BinOp::Add(_)) => {
                    match product(&left.right) {
                        Some(product) => of(product, range(&left.right).start),
                        None => transposed(file, &sum.left),
                    }
                }
                _ => None,
            }
        }
        _ => None,
    }
}
