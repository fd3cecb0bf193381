//! Whether recorded rows are one run: tables, pictures and summaries count each row once, under one
//! machine.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    machine::Machine,
    row::{Role, Row},
};

/// The rows of a run that have been read.
#[derive(Default)]
pub(super) struct Run {
    rows: Vec<Row>,
    /// The places of rows of one shape, epilogue and kernel.
    same: HashMap<String, usize>,
    /// The first row of each draw of shapes, and of each random shape.
    draws: HashMap<String, usize>,
    shapes: HashMap<String, usize>,
}

impl Run {
    /// Takes another row.
    ///
    /// # Errors
    /// Why it is no row of this run.
    pub(super) fn add(&mut self, row: Row) -> Result<(), String> {
        by_itself(&row)?;
        let size = row.size();
        if let Some(first) = self.rows.first() {
            let machine = |row: &Row| format!("{}: {}", row.device, row.description);
            let [own, before] = [&row, first].map(machine);
            if own != before {
                return Err(format!("{size} was measured on {own}, and other rows on {before}"));
            }
            if row.drawn.is_some() != first.drawn.is_some() {
                return Err(format!("{size}: some rows are random shapes, and others are not"));
            }
            if row.sustained_s != first.sustained_s {
                return Err(format!("{size}: sustained_s is not that of other rows"));
            }
            if row.drawn.is_none() && row.seed != first.seed {
                let (own, before) = (row.seed, first.seed);
                return Err(format!("{size}: seed = {own}, and {before} in other rows"));
            }
        }
        let place = self.rows.len();
        let draw = draw(&row);
        if let (Some(draw), Some(number)) = (&draw, row.drawn) {
            let first = *self.draws.entry(draw.clone()).or_insert(place);
            if let Some(first) = self.rows.get(first).filter(|first| first.drawn_of != row.drawn_of)
            {
                let [own, before] = [&row, first].map(|row| row.drawn_of.unwrap_or_default());
                let seed = row.seed;
                return Err(format!(
                    "{size} is one of {own} shapes of seed {seed}, and other rows are of {before}"
                ));
            }
            let first = *self.shapes.entry(format!("{draw} {number}")).or_insert(place);
            if let Some(first) = self.rows.get(first).filter(|first| !is_of_shape(first, &row)) {
                let (seed, other) = (row.seed, first.size());
                return Err(format!(
                    "{size} is shape {number} of seed {seed}, and so is {other}: a seed has one of each number"
                ));
            }
        }
        // What `auto` selects may be any kernel, and is one.
        let kernel = if row.role == Role::Auto { "" } else { &row.kernel };
        let same = format!(
            "{draw:?} {:?} {} {:?} {kernel} {}",
            row.drawn,
            row.work(),
            row.role,
            row.types()
        );
        if self.same.insert(same, place).is_some() {
            let shape = row
                .drawn
                .map_or(String::new(), |number| format!(", shape {number} of seed {},", row.seed));
            return Err(format!("{size} {}{shape} is there twice", row.kernel));
        }
        self.rows.push(row);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// All rows, in their order.
    pub(super) fn rows(self) -> Vec<Row> {
        self.rows
    }
}

/// Why a row is none of any run.
fn by_itself(row: &Row) -> Result<(), String> {
    let size = row.size();
    match (row.drawn, row.drawn_of) {
        (None, None) if row.aligned.is_some() => {
            Err(format!("{size}: has `aligned`, which only a random shape has"))
        }
        (None, None) => Ok(()),
        (Some(number), Some(of)) if !(1..=of).contains(&number) => {
            Err(format!("{size}: drawn = {number}: must be from 1 to drawn_of = {of}"))
        }
        (Some(_), Some(_)) if row.aligned.is_none() || row.group.is_none() => {
            Err(format!("{size}: a random shape has `aligned` and `group`"))
        }
        (Some(_), Some(_)) => Ok(()),
        _ => Err(format!("{size}: must have both of `drawn` and `drawn_of`, or neither")),
    }
}

/// The draw that a random shape is of: a seed, for types.
fn draw(row: &Row) -> Option<String> {
    row.drawn.map(|_| format!("{} {}", row.seed, row.types()))
}

fn is_of_shape(one: &Row, other: &Row) -> bool {
    let of = |row: &Row| ([row.m, row.n, row.k, row.batch], row.aligned);
    of(one) == of(other)
        && one.trans == other.trans
        && one.group == other.group
        && one.epilogue == other.epilogue
}

/// What two records say of their machines and programs that is not the same. Parts of a run differ
/// in when they ran, for how long, and in the command.
pub(super) fn difference(one: &Machine, other: &Machine) -> Option<String> {
    const OF_A_PART: [&str; 4] = ["command", "cut_short", "date", "seconds"];
    let [one, other] =
        [one, other].map(|machine| serde_json::to_value(machine).unwrap_or_default());
    let fields = one.as_object()?.iter().filter(|(name, _)| !OF_A_PART.contains(&name.as_str()));
    let mut differ = fields.filter(|(name, value)| other.get(name) != Some(value));
    differ.next().map(|(name, value)| {
        let other = other.get(name).unwrap_or(&Value::Null);
        format!("{name} = {value} in machine.json, and {other} in another one")
    })
}

/// Why a machine is not that of the rows beside it.
pub(super) fn is_of_others(machine: &Machine, rows: &[Row]) -> Option<String> {
    let is_own = |row: &Row| row.device == machine.device && row.description == machine.description;
    let row = rows.iter().find(|row| !is_own(row))?;
    Some(format!(
        "machine.json is of {}: {}, and the rows are of {}: {}",
        machine.device, machine.description, row.device, row.description
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(number: usize, of: usize) -> Row {
        Row {
            device: "cuda:0".to_owned(),
            description: "a GPU".to_owned(),
            group: Some("tall".to_owned()),
            aligned: Some(true),
            drawn: Some(number),
            drawn_of: Some(of),
            m: 10 + number,
            n: 6,
            k: 7,
            batch: 1,
            trans: "nt".to_owned(),
            dtype: "f32".to_owned(),
            out_dtype: "f32".to_owned(),
            compute: "fp32".to_owned(),
            kernel: "a_kernel".to_owned(),
            seed: 7,
            ..Row::default()
        }
    }

    fn named(kernel: &str) -> Row {
        let (group, aligned, drawn_of) = (None, None, None);
        let kernel = kernel.to_owned();
        Row { group, aligned, drawn: None, drawn_of, role: Role::Named, kernel, ..drawn(1, 1) }
    }

    fn refusal(rows: impl IntoIterator<Item = Row>) -> Option<String> {
        let mut run = Run::default();
        rows.into_iter().find_map(|row| run.add(row).err())
    }

    #[test]
    fn a_run_and_the_parts_of_one_are_taken() {
        let baseline = |row: Row| Row { role: Role::Baseline, kernel: "cublas".to_owned(), ..row };
        let rows = [drawn(2, 3), baseline(drawn(2, 3)), drawn(1, 3), drawn(3, 3)];
        assert_eq!(refusal(rows.clone()), None);
        // Of other types, and of another seed, the same numbers are other shapes.
        let of_bf16 = rows.clone().map(|row| Row { dtype: "bf16".to_owned(), m: 99, ..row });
        let of_seed = rows.clone().map(|row| Row { seed: 8, drawn_of: Some(5), ..row });
        assert_eq!(refusal(rows.into_iter().chain(of_bf16).chain(of_seed)), None);
        // A kernel that was named is the one that was selected.
        let selected = Row { role: Role::Auto, ..named("one") };
        assert_eq!(refusal([named("one"), named("two"), selected]), None);
    }

    #[test]
    fn what_is_not_one_run_is_refused() {
        let other = |change: &dyn Fn(&mut Row)| {
            let mut row = drawn(2, 3);
            change(&mut row);
            row
        };
        for (rows, words) in [
            (vec![drawn(3, 2)], "drawn = 3: must be from 1 to drawn_of = 2"),
            (vec![drawn(0, 2)], "drawn = 0: must be from 1"),
            (vec![other(&|row| row.drawn_of = None)], "both of `drawn` and `drawn_of`"),
            (vec![other(&|row| row.drawn = None)], "both of `drawn` and `drawn_of`"),
            (vec![other(&|row| row.aligned = None)], "has `aligned` and `group`"),
            (vec![other(&|row| row.group = None)], "has `aligned` and `group`"),
            (vec![Row { aligned: Some(true), ..named("a") }], "only a random shape has"),
            (vec![drawn(2, 3), drawn(2, 3)], "shape 2 of seed 7, is there twice"),
            // `auto` selects one kernel.
            (vec![drawn(2, 3), other(&|row| row.kernel = "b".into())], "is there twice"),
            (vec![named("a"), named("b"), named("a")], "11x6x7 nt a is there twice"),
            (vec![drawn(1, 3), drawn(2, 4)], "one of 4 shapes of seed 7, and other rows are of 3"),
            (vec![drawn(2, 3), other(&|row| row.k = 8)], "a seed has one of each number"),
            (vec![drawn(1, 3), named("a")], "some rows are random shapes"),
            (vec![drawn(1, 3), other(&|row| row.description = "b".into())], "on cuda:0: b, and"),
            (vec![drawn(1, 3), other(&|row| row.device = "cuda:1".into())], "on cuda:1: a GPU"),
            (vec![drawn(1, 3), other(&|row| row.sustained_s = Some(1.0))], "sustained_s"),
            (vec![named("a"), Row { seed: 8, ..named("b") }], "seed = 8, and 7 in other rows"),
        ] {
            let said = refusal(rows).unwrap_or_default();
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}
