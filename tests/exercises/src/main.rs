//! `cargo run -p exercises`: the list, an exercise, a question and its answer.
//!
//! Exit codes: 0 solved or listed, 1 not yet, 2 usage.

use std::{
    env,
    io::{self, ErrorKind, Write},
    process::ExitCode,
};

use exercises::{
    attempt::attempt,
    list::{Exercise, Repair, exercises},
    questions::Question,
};

const USAGE: &str = "\
Usage: cargo run -p exercises                   what there is
       cargo run -p exercises -- N              tries exercise N as it stands, or asks question N
       cargo run -p exercises -- N --answer     tries the answer to exercise N, or tells that to question N
       cargo run -p exercises -- N NUMBER       is NUMBER the answer to question N?";

/// The result, and the text to print.
struct Outcome {
    solved: bool,
    text: String,
}

fn main() -> ExitCode {
    let arguments = env::args().skip(1).collect::<Vec<_>>();
    let arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    let outcome = match run(&arguments) {
        Ok(outcome) => outcome,
        Err(message) => {
            eprintln!("error: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match writeln!(io::stdout(), "{}", outcome.text.trim_end()) {
        // A closed pipe is no error.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("error: standard output cannot be written: {error}");
            ExitCode::from(1)
        }
        _ if outcome.solved => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    }
}

fn run(arguments: &[&str]) -> Result<Outcome, String> {
    let (number, rest) = match arguments {
        [] => return Ok(Outcome { solved: true, text: listing() }),
        ["-h" | "--help"] => return Ok(Outcome { solved: true, text: USAGE.to_owned() }),
        [number, rest @ ..] => (*number, rest),
    };
    let last = exercises().count();
    let found = number.parse().ok().and_then(|number: usize| {
        exercises().find_map(|(at, exercise)| (at == number).then_some((at, exercise)))
    });
    let Some((number, exercise)) = found else {
        return Err(format!("exercise `{number}`: must be a number from 1 to {last}"));
    };
    let stopped = |stop| format!("exercise {number} cannot be run: {stop}");
    match (exercise, rest) {
        (Exercise::Repair(repair), []) => try_repair(number, repair, false).map_err(stopped),
        (Exercise::Repair(repair), ["--answer"]) => {
            try_repair(number, repair, true).map_err(stopped)
        }
        (Exercise::Question(question), []) => {
            let text = format!("{number}: {}\n\n{}", question.about, fold(question.ask));
            Ok(Outcome { solved: false, text })
        }
        (Exercise::Question(question), ["--answer"]) => {
            let answer = (question.answer)().map_err(stopped)?;
            Ok(Outcome { solved: true, text: fold(&format!("{answer}. {}", question.why)) })
        }
        (Exercise::Question(question), [given]) => {
            let given: f64 = given.parse().map_err(|_| {
                format!("answer `{given}`: must be a number, as in `{number} 12.5`")
            })?;
            judge(question, given).map_err(stopped)
        }
        (_, [argument, ..]) => Err(format!("`{argument}` is one argument too many")),
    }
}

fn listing() -> String {
    let line = |(number, exercise)| match exercise {
        Exercise::Repair(Repair { name, about, .. }) => {
            format!("{number:>3}  mend {name:<24} {about}\n")
        }
        Exercise::Question(question) => format!("{number:>3}  question: {}\n", question.about),
    };
    exercises().map(line).collect::<String>() + "\n" + USAGE
}

fn try_repair(number: usize, repair: &Repair, answer: bool) -> Result<Outcome, simt::cpu::Stop> {
    let (kernel, source, folder) = match answer {
        false => (repair.kernel, repair.source, "kernels"),
        true => (repair.answer, repair.answer_source, "answers"),
    };
    let attempt = attempt(kernel, repair.shape, repair.goal)?;
    let Repair { name, about, task, shape: [m, n, k], .. } = repair;
    let mut text = format!("{number}: {name}, {about}\n\n{}\n\n", fold(task));
    text += &format!("tests/exercises/src/{folder}/{name}.rs, {m}x{k} times {k}x{n}: ");
    let solved = attempt.solved();
    text += &match solved {
        true => "clean and right in every order\n".to_owned(),
        false => format!("not yet (order {})\n{}", attempt.order, attempt.text(name, source)),
    };
    Ok(Outcome { solved, text })
}

fn judge(question: &Question, given: f64) -> Result<Outcome, simt::cpu::Stop> {
    let answer = (question.answer)()?;
    // Ratios may be given with three digits.
    let solved = (given - answer).abs() <= 5e-3 * answer.abs();
    let text = match solved {
        true => fold(&format!("right: {answer}. {}", question.why)),
        false => format!("not {given}"),
    };
    Ok(Outcome { solved, text })
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
