//! The command: its arguments, and what it prints.

use std::{error::Error, io::Write, time::Instant};

use crate::{
    exercise::{Exercise, MINE, Side},
    grade::{Grade, grade},
    list::{RUNGS, exercises, find, of_rung},
    questions::{self, Question},
};

/// How the command is called.
pub const USAGE: &str = "\
Usage: cargo run -p exercises -- list                    all exercises, by rung
       EXERCISE=NAME cargo run -p exercises              begins the exercise NAME: tests/exercises/mine/NAME.rs is yours
                                                         to edit. Compiles that kernel and no other, and grades it
       cargo run -p exercises -- grade [NAME..]          grades these kernels, or all of them; NAME may be a rung
       cargo run -p exercises -- solution NAME           a solution
       cargo run -p exercises -- grade --solution NAME   grades the solution instead
       cargo run -p exercises -- hint NAME               a hint
       cargo run -p exercises -- ask NAME                a question; ask NAME NUMBER: is NUMBER the answer?
       cargo run -p exercises -- answer NAME             the answer to a question";

/// The only exercise that is compiled, if `EXERCISE` named one.
const ONE: Option<&str> = match option_env!("EXERCISE") {
    Some(one) if one.is_empty() => None,
    one => one,
};

/// What went wrong: usage, or an error of the output.
type Failed = Box<dyn Error>;

/// Does what the arguments say. Gives whether everything that was graded is solved.
///
/// # Errors
/// Usage, as text; an error of the output.
pub fn run(arguments: &[&str], out: &mut dyn Write) -> Result<bool, Failed> {
    if let ([], Some(one)) = (arguments, ONE) {
        return grade_all(&[one], false, out);
    }
    match arguments {
        [] | ["list"] => list(out),
        ["list", "--markdown"] => markdown(out),
        ["-h" | "--help" | "help"] => {
            writeln!(out, "{USAGE}")?;
            Ok(true)
        }
        ["grade", "--solution", names @ ..] => grade_all(names, true, out),
        ["grade", names @ ..] => grade_all(names, false, out),
        ["hint", name] => {
            let exercise = find(name)?;
            writeln!(out, "{}", fold(exercise.hint))?;
            Ok(true)
        }
        ["solution", name] => {
            write!(out, "{}", find(name)?.solution.source)?;
            Ok(true)
        }
        ["ask", name, rest @ ..] => ask(questions::find(name)?, rest, out),
        ["answer", name] => {
            let question = questions::find(name)?;
            let answer = (question.answer)()?;
            writeln!(out, "{}", fold(&format!("{answer}. {}", question.why)))?;
            Ok(true)
        }
        ["hint" | "solution" | "answer"] | ["ask"] => {
            Err(format!("`{}` of which one?", arguments[0]).into())
        }
        ["hint" | "solution" | "answer" | "list", _, argument, ..] | ["list", argument, ..] => {
            Err(format!("`{argument}` is one argument too many").into())
        }
        [argument, ..] => Err(format!("there is no command `{argument}`").into()),
    }
}

fn list(out: &mut dyn Write) -> Result<bool, Failed> {
    for (rung, page) in RUNGS {
        writeln!(out, "{rung}, docs/course/{page}")?;
        for exercise in of_rung(rung) {
            writeln!(out, "    {:<22} {}", exercise.name, exercise.idea)?;
        }
        for question in questions::of_rung(rung) {
            writeln!(out, "  ? {:<22} {}", question.name, question.about)?;
        }
    }
    writeln!(out, "\n?: a question. Begin with `EXERCISE=guard_the_tail cargo run -p exercises`.")?;
    Ok(true)
}

/// The same as tables, for docs/course.
fn markdown(out: &mut dyn Write) -> Result<bool, Failed> {
    for (rung, page) in RUNGS {
        writeln!(out, "## {rung}\n\nThe page: [{page}]({page}).\n")?;
        writeln!(out, "| exercise | idea | limits |\n|---|---|---|")?;
        for Exercise { name, idea, counters, .. } in of_rung(rung) {
            let gates = counters.iter().map(|counter| counter.to_string()).collect::<Vec<_>>();
            writeln!(out, "| `{name}` | {idea} | {} |", gates.join("; "))?;
        }
        for Question { name, about, .. } in questions::of_rung(rung) {
            writeln!(out, "| `ask {name}` | a question: {about} | |")?;
        }
        writeln!(out)?;
    }
    Ok(true)
}

fn grade_all(names: &[&str], solution: bool, out: &mut dyn Write) -> Result<bool, Failed> {
    if let Some(option) = names.iter().find(|name| name.starts_with('-')) {
        return Err(format!("there is no option `{option}`").into());
    }
    let mut chosen = Vec::new();
    for name in names {
        let of_rung = of_rung(name).collect::<Vec<_>>();
        match of_rung.is_empty() {
            true => chosen.push(find(name)?),
            false => chosen.extend(of_rung),
        }
    }
    if names.is_empty() {
        chosen = exercises().collect();
    }
    if let [exercise] = chosen[..] {
        return grade_one(exercise, solution, out);
    }
    let (mut solved, mut ungraded, mut first) = (0, 0, None);
    for exercise in &chosen {
        let begun = Instant::now();
        let grade = match grade(exercise, side(exercise, solution)) {
            Ok(grade) => grade,
            // The others are graded all the same.
            Err(error) => {
                writeln!(out, "{:<22} cannot be graded: {error}", exercise.name)?;
                ungraded += 1;
                continue;
            }
        };
        let took = begun.elapsed().as_secs_f64();
        writeln!(out, "{:<22} {:<44} {took:.1} s", exercise.name, grade.in_a_line())?;
        out.flush()?;
        match grade.solved() {
            true => solved += 1,
            false if first.is_none() => first = Some(grade),
            false => {}
        }
    }
    writeln!(out, "\n{solved} of {} are solved.", chosen.len())?;
    let Some(first) = first else { return Ok(ungraded == 0) };
    writeln!(out, "The first that is not:\n")?;
    show(&first, solution, out)
}

/// The kernel that is graded: the student's, unless it was not begun.
fn side(exercise: &'static Exercise, solution: bool) -> &'static Side {
    match solution {
        true => &exercise.solution,
        false => exercise.mine().unwrap_or(&exercise.start),
    }
}

fn grade_one(
    exercise: &'static Exercise,
    solution: bool,
    out: &mut dyn Write,
) -> Result<bool, Failed> {
    match grade(exercise, side(exercise, solution)) {
        Ok(grade) => show(&grade, solution, out),
        Err(error) => {
            writeln!(out, "{} cannot be graded: {error}", exercise.name)?;
            Ok(false)
        }
    }
}

fn show(grade: &Grade, solution: bool, out: &mut dyn Write) -> Result<bool, Failed> {
    let Exercise { name, task, .. } = grade.exercise;
    if !grade.solved() && !solution {
        writeln!(out, "{}\n", fold(task))?;
    }
    writeln!(out, "{grade}")?;
    if !grade.solved() && !solution {
        let one = ONE.map(|one| format!("EXERCISE={one} ")).unwrap_or_default();
        let hint = format!("{one}cargo run -p exercises -- hint {name}");
        match grade.exercise.mine() {
            Some(mine) => writeln!(out, "\nEdit {}. Stuck? `{hint}`", mine.file(name))?,
            None => writeln!(
                out,
                "\nBegin: `EXERCISE={name} cargo run -p exercises` writes {MINE}/{name}.rs, which you edit.\n\
                 Stuck? `{hint}`"
            )?,
        }
    }
    Ok(grade.solved())
}

fn ask(question: &Question, rest: &[&str], out: &mut dyn Write) -> Result<bool, Failed> {
    let Question { name, about, ask, why, .. } = question;
    let given = match rest {
        [] => {
            writeln!(out, "{name}: {about}\n\n{}", fold(ask))?;
            return Ok(false);
        }
        [given] => given,
        [_, more, ..] => return Err(format!("`{more}` is one argument too many").into()),
    };
    let number: f64 = given
        .parse()
        .map_err(|_| format!("answer `{given}`: must be a number, as in `ask {name} 12.5`"))?;
    let answer = (question.answer)()?;
    // Ratios may be given with three digits.
    let solved = (number - answer).abs() <= 5e-3 * answer.abs();
    match solved {
        true => writeln!(out, "{}", fold(&format!("right: {answer}. {why}")))?,
        false => writeln!(out, "not {number}")?,
    }
    Ok(solved)
}

/// Lines of at most 100 characters.
fn fold(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| line.len() + word.len() < 100);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
