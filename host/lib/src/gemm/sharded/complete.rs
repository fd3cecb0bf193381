//! Whether all that a plan uses was brought or computed before.

use std::collections::HashMap;

use super::plan::{Memory, Rect, ShardedPlan, What};
use crate::error::{Error, Result};

/// Elements of a memory that are there, by the panel that it has.
#[derive(Default)]
struct There(HashMap<(usize, Memory), (usize, usize)>);

impl There {
    /// A step stores this. A new panel takes the place of the one before.
    fn stores(&mut self, to: &Rect) {
        let (panel, elements) = self.0.entry((to.place, to.memory)).or_default();
        if *panel != to.panel {
            (*panel, *elements) = (to.panel, 0);
        }
        *elements += to.size[0] * to.size[1];
    }

    /// A step needs so many elements of that panel.
    fn needs(&self, from: &Rect, wanted: usize) -> Result<()> {
        let (panel, elements) = self.0.get(&(from.place, from.memory)).copied().unwrap_or_default();
        if wanted == 0 || (panel, elements) == (from.panel, wanted) {
            return Ok(());
        }
        let elements = if panel == from.panel { elements } else { 0 };
        let what = format!(
            "place {} uses {wanted} elements of {:?}, and no transfer has brought all of them: {elements} are there",
            from.place, from.memory
        );
        Err(Error::Unordered { what })
    }
}

/// Refuses a plan with a product of a panel that did not come, or a C of which a part is not
/// stored. No two steps of a plan store one element, so it is enough to count.
///
/// # Errors
/// [`Error::Unordered`].
pub(super) fn check_complete(plan: &ShardedPlan, beta: f64) -> Result<()> {
    let mut there = There::default();
    let elements = |rect: &Rect| rect.size[0] * rect.size[1];
    for step in &plan.steps {
        match &step.what {
            What::Transfer { from, to } => {
                if let Memory::Result = from.memory {
                    there.needs(&Rect { panel: 1, ..*from }, plan.scratch[from.place].result)?;
                }
                there.stores(to);
            }
            What::Multiply { operands, c, .. } => {
                for operand in operands.iter().filter(|it| matches!(it.memory, Memory::Operand(_)))
                {
                    there.needs(operand, elements(operand))?;
                }
                if let Memory::Result = c.memory {
                    // The old C comes as panel 0, and the new one is panel 1.
                    let old =
                        there.0.get(&(c.place, c.memory)).is_none_or(|(panel, _)| *panel == 0);
                    if beta != 0.0 && old {
                        there.needs(c, plan.scratch[c.place].result)?;
                    }
                    there.stores(&Rect { panel: 1, ..*c });
                } else {
                    there.stores(c);
                }
            }
            What::Sum { partials, c, .. } => {
                there.needs(partials, elements(partials))?;
                there.stores(c);
            }
        }
    }
    let size = [plan.shape.m(), plan.shape.n()];
    for place in 0..plan.scratch.len() {
        let [rows, cols] = plan.layouts[2].block(place, size).size();
        let c =
            Rect { place, memory: Memory::C, start: 0, pitch: cols, size: [rows, cols], panel: 0 };
        there.needs(&c, rows * cols)?;
    }
    Ok(())
}
