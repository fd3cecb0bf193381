//! Mistakes in indices.

use syn::{BinOp, Expr};

use super::{Places, factor, is_zero, term};
use crate::mutants::{
    mutant::{Edit, Operator},
    source::{KernelFile, range},
};

impl Places<'_, '_> {
    /// An index, or each part of one of row and column: one too large, one too small, halved, transposed.
    pub(super) fn index(&mut self, index: &Expr) {
        let file = self.mutants.file;
        let function = self.number;
        let parts = match index {
            Expr::Tuple(tuple) => tuple.elems.iter().collect(),
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
