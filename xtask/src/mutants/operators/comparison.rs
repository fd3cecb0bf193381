//! Mistakes in conditions.

use syn::{
    BinOp, Block, Expr, ExprBinary,
    visit::{self, Visit},
};

use super::{Places, term};
use crate::mutants::{
    mutant::{Edit, Operator},
    source::{KernelFile, range},
};

impl Places<'_, '_> {
    /// A comparison of whole numbers that holds once too often, or once too rarely.
    pub(super) fn comparison(&mut self, comparison: &ExprBinary) {
        let file = self.mutants.file;
        let (left, right) = (term(file, &comparison.left), term(file, &comparison.right));
        let (weaker, stronger) = match comparison.op {
            BinOp::Lt(_) => (format!("{left} <= {right}"), format!("{left} + 1 < {right}")),
            BinOp::Le(_) => (format!("{left} <= {right} + 1"), format!("{left} < {right}")),
            BinOp::Gt(_) => (format!("{left} >= {right}"), format!("{left} > {right} + 1")),
            BinOp::Ge(_) => (format!("{left} + 1 >= {right}"), format!("{left} > {right}")),
            BinOp::Eq(_) => (format!("{left} <= {right}"), "false".into()),
            BinOp::Ne(_) => ("true".into(), format!("{left} < {right}")),
            _ => return,
        };
        for (operator, text) in
            [(Operator::WeakenComparison, weaker), (Operator::StrengthenComparison, stronger)]
        {
            let edits = vec![Edit::new(range(comparison), text)];
            self.mutants.add(operator, self.number, "", edits);
        }
    }

    /// Each of several conditions left out in turn.
    pub(super) fn operands(&mut self, conditions: &ExprBinary) {
        let mut operands = Vec::new();
        flatten(conditions, &mut operands);
        for (number, operand) in operands.iter().enumerate() {
            // With the operator before it, the first with the one after it.
            let place = match number {
                0 => range(*operand).start..range(operands[1]).start,
                _ => range(operands[number - 1]).end..range(*operand).end,
            };
            let detail = self.mutants.file.text_of(*operand);
            let edits = vec![Edit::new(place, "")];
            self.mutants.add(Operator::DropOperand, self.number, detail, edits);
        }
        // What stands in them; the chain itself has been seen to.
        for operand in operands {
            self.visit_expr(operand);
        }
    }
}

/// The operands of `a && b && c`, or of `a || b || c`.
fn flatten<'a>(conditions: &'a ExprBinary, operands: &mut Vec<&'a Expr>) {
    let same = |op: &BinOp| std::mem::discriminant(op) == std::mem::discriminant(&conditions.op);
    match &*conditions.left {
        Expr::Binary(left) if same(&left.op) => flatten(left, operands),
        left => operands.push(left),
    }
    operands.push(&conditions.right);
}

/// The comparisons that a function makes, each once.
pub(super) fn comparisons(file: &KernelFile, block: &Block) -> Vec<String> {
    struct Comparisons<'a>(&'a KernelFile, Vec<String>);
    impl<'ast> Visit<'ast> for Comparisons<'_> {
        fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
            use BinOp::{Eq, Ge, Gt, Le, Lt, Ne};
            let text = self.0.text_of(binary);
            if matches!(binary.op, Lt(_) | Le(_) | Gt(_) | Ge(_) | Eq(_) | Ne(_))
                && !self.1.iter().any(|known| known == text)
            {
                self.1.push(text.into());
            }
            visit::visit_expr_binary(self, binary);
        }
    }
    let mut comparisons = Comparisons(file, Vec::new());
    comparisons.visit_block(block);
    comparisons.1
}
