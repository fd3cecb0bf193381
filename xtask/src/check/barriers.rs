//! Block barriers, and the rule that none may depend on a constant.
//!
//! A kernel declares one number of barriers. If a constant decides whether one is reached, some
//! specialisations have fewer, which were not counted. And the compiler may have copied the barrier
//! into branches.

use std::collections::{BTreeSet, HashMap};

use super::kernel::{Kernel, is_barrier, line};
use crate::{
    listing::ptx::{branch_target, is_arithmetic, table_targets},
    ptx::{Function, Statement},
};

impl Kernel<'_> {
    /// The barriers that depend on a constant: those with a predicate that depends on one, and
    /// those between a branch that does and the place where its ways meet. A loop that a constant
    /// ends is such a branch.
    ///
    /// A register depends on a constant if arithmetic, a comparison or a selection computes it from
    /// one that does. The rule does not follow memory or parameters of functions, nor a register
    /// that two branches set differently. It looks at the kernel only. A call counts as a barrier
    /// if any function that the kernel reaches has one.
    pub(super) fn constants_barriers(&self) -> Vec<String> {
        let body = &self.entry.body;
        let functions = self.reached.iter().skip(1);
        let is_called = functions.flat_map(|function| &function.body).any(is_barrier);
        let stops = |statement: &Statement| {
            is_barrier(statement) || (is_called && statement.callee().is_some())
        };
        if !body.iter().any(stops) {
            return Vec::new();
        }
        let depends = dependent(self.entry);
        let on = |words: &str| words_of(words).find_map(|word| depends.get(word).copied());
        let mut problems = BTreeSet::new();
        let mut flow = None;
        for (index, statement) in body.iter().enumerate() {
            let decides = match statement.opcode().next() {
                // A register holds the target.
                Some("brx") => on(&statement.predicate).or_else(|| on(&statement.text)),
                _ => on(&statement.predicate),
            };
            let Some(constant) = decides else { continue };
            if stops(statement) {
                problems.insert((
                    index,
                    format!("has a predicate that depends on the constant `{constant}`"),
                ));
            }
            if !matches!(statement.opcode().next(), Some("bra" | "brx" | "ret" | "exit")) {
                continue;
            }
            let flow = flow.get_or_insert_with(|| Flow::of(self.entry));
            for inside in flow.arms(index).filter(|inside| stops(&body[*inside])) {
                let branch = line(self.entry, statement);
                problems.insert((
                    inside,
                    format!("is in an arm of the branch of {branch}, which depends on the constant `{constant}`"),
                ));
            }
        }
        let problem = |(index, what): (usize, String)| {
            let statement = &body[index];
            format!(
                "the barrier `{}` ({}) {what}: put it where every specialisation comes to it",
                statement.text,
                line(self.entry, statement)
            )
        };
        problems.into_iter().map(problem).collect()
    }
}

/// The registers that depend on constants, each with one such constant.
fn dependent(function: &Function) -> HashMap<&str, &str> {
    let mut depends = HashMap::new();
    for place in &function.constants {
        let statement = &function.body[place.statement];
        if statement.opcode().next() == Some("mov") {
            let (results, _) = operands(&statement.text);
            depends.extend(words_of(results).map(|word| (word, place.constant.as_str())));
        }
    }
    let follows = |statement: &&Statement| {
        let opcode = statement.opcode().next().unwrap_or_default();
        matches!(opcode, "mov" | "cvt") || is_arithmetic(opcode)
    };
    loop {
        let before = depends.len();
        for statement in function.instructions().filter(follows) {
            let (results, operands) = operands(&statement.text);
            let mut sources = words_of(operands).chain(words_of(&statement.predicate));
            if let Some(constant) = sources.find_map(|word| depends.get(word).copied()) {
                for word in words_of(results) {
                    depends.entry(word).or_insert(constant);
                }
            }
        }
        if depends.len() == before {
            return depends;
        }
    }
}

/// The first operand of an instruction, which is the result, and the others.
fn operands(text: &str) -> (&str, &str) {
    let (_, operands) = text.split_once(' ').unwrap_or_default();
    // A result may be several registers.
    let from = operands.strip_prefix('{').and_then(|rest| rest.find('}')).unwrap_or(0);
    operands.split_at(operands[from..].find(',').map_or(operands.len(), |comma| from + comma))
}

/// The words of operands that may be registers.
fn words_of(operands: &str) -> impl Iterator<Item = &str> {
    let words = operands.split(|c: char| !(c.is_ascii_alphanumeric() || "_$%.".contains(c)));
    words.filter(|word| word.starts_with(|c: char| c == '%' || c == '_' || c.is_ascii_alphabetic()))
}

/// The control flow of a function: basic blocks of its statements.
struct Flow {
    /// The start of each block, and at the end the body's length.
    starts: Vec<usize>,
    /// The successors of each block. The number of blocks stands for the end of the function.
    next: Vec<Vec<usize>>,
    /// The post-dominators of each block: the blocks on all ways from it to an end, with itself.
    always: Vec<BTreeSet<usize>>,
}

impl Flow {
    fn of(function: &Function) -> Flow {
        let body = &function.body;
        let leaves = |statement: &Statement| {
            matches!(statement.opcode().next(), Some("bra" | "brx" | "ret" | "exit" | "trap"))
        };
        let behind = body.iter().zip(1..).filter(|(of, _)| leaves(of)).map(|(_, next)| next);
        let labels = function.labels.iter().map(|label| label.statement);
        let starts = behind.chain(labels).chain([0, body.len()]).collect::<BTreeSet<_>>();
        let starts = starts.into_iter().collect::<Vec<_>>();
        let blocks = starts.len() - 1;
        let block_of = |statement: usize| starts.partition_point(|start| *start <= statement) - 1;
        let next = starts.windows(2).enumerate().map(|(block, part)| {
            let last = part[1] - 1;
            let mut next = match body[last].opcode().next() {
                Some("bra") => {
                    let target = branch_target(function, last, &body[last]).ok().flatten();
                    vec![block_of(target.unwrap_or(body.len()))]
                }
                Some("brx") => {
                    let targets = table_targets(function, last, &body[last]);
                    // A table that cannot be parsed may lead anywhere.
                    let all = || function.labels.iter().map(|label| label.statement).collect();
                    targets.unwrap_or_else(|_| all()).into_iter().map(block_of).collect()
                }
                Some("ret") => vec![blocks],
                // `trap` and `exit` end the thread, so they meet no other way. LLVM writes `exit`
                // where no thread comes, such as after a table with all cases. (A kernel returns by
                // `ret`.)
                Some("trap" | "exit") => vec![],
                _ => vec![block + 1],
            };
            if !body[last].predicate.is_empty() {
                next.push(block + 1);
            }
            next
        });
        let next = next.collect::<Vec<_>>();
        // Starts with all blocks, and removes some until nothing changes.
        let mut always = vec![(0..=blocks).collect::<BTreeSet<_>>(); blocks];
        always.push(BTreeSet::from([blocks]));
        loop {
            let mut changed = false;
            for block in (0..blocks).rev() {
                let mut met = next[block].iter().map(|next| &always[*next]);
                let first = met.next().cloned().unwrap_or_else(|| always[block].clone());
                let mut all = met.fold(first, |all, other| &all & other);
                all.insert(block);
                changed |= all != always[block];
                always[block] = all;
            }
            if !changed {
                return Flow { starts, next, always };
            }
        }
    }

    /// The statements between a branch and the place where its ways meet.
    fn arms(&self, branch: usize) -> impl Iterator<Item = usize> {
        let block = self.starts.partition_point(|start| *start <= branch) - 1;
        // Among the blocks that all ways pass, the nearest one has the most such blocks after it.
        let behind = self.always[block].iter().filter(|other| **other != block);
        let meets = behind.max_by_key(|other| self.always[**other].len()).copied();
        let mut seen = BTreeSet::new();
        let mut look = self.next[block].clone();
        while let Some(at) = look.pop() {
            if Some(at) != meets && at < self.next.len() && seen.insert(at) {
                look.extend(&self.next[at]);
            }
        }
        seen.into_iter().flat_map(|block| self.starts[block]..self.starts[block + 1])
    }
}

#[cfg(test)]
mod tests;
