//! Runs one specimen on a GPU, as `.ci/gpu` does under compute-sanitizer and ncu, and makes a table
//! of the findings of each tool.

mod agree;

use std::{env, fmt::Write, fs, process::ExitCode};

use host::{Boxes, BoxesMut, Device, Shape};
use specimens::list::{COLS, SHAPE, SOURCES, SPECIMENS, Specimen, Versions, WORDS, find};

const USAGE: &str = "\
Usage: specimen list                                    names, and what simt::check finds
       specimen run NAME --ptx FILE [--device N|cpu]    one launch
       specimen table FILE.tsv                          a table for the documentation
       specimen agree FILE.csv [M N K]                  another: what ncu counted, and what the profile does

`run` ends with 1 where the driver reports an error, or where a clean specimen's y is not that of the CPU.";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["list"] => Ok((list(), true)),
        ["run", name, ref options @ ..] => run(name, options),
        ["agree", file, ref sizes @ ..] => {
            shape(sizes).and_then(|shape| agree::table(file, shape)).map(|text| (text, true))
        }
        ["table", file] => read(file).map(|text| (table(&text), true)),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok((text, right)) => {
            println!("{}", text.trim_end());
            ExitCode::from(!right as u8)
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// The shape of a product, if one is given.
fn shape(sizes: &[&str]) -> Result<Option<Shape>, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| USAGE.to_owned());
    match *sizes {
        [] => Ok(None),
        [m, n, k] => {
            let shape = Shape::new(number(m)?, number(n)?, number(k)?);
            shape.map(Some).map_err(|error| error.to_string())
        }
        _ => Err(USAGE.to_owned()),
    }
}

fn read(file: &str) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))
}

/// A line for each specimen that can run on a GPU: its name, and the findings of a checked launch.
fn list() -> String {
    let line = |specimen: &Specimen| format!("{}\t{}\n", specimen.name(), finds(specimen, "clean"));
    SPECIMENS.iter().filter(|specimen| specimen.on_gpu()).map(line).collect()
}

fn finds(specimen: &Specimen, nothing: &str) -> String {
    let names: Vec<_> = specimen.finds.iter().map(|kind| kind.name()).collect();
    if names.is_empty() { nothing.to_owned() } else { names.join(", ") }
}

/// Launches a specimen once. Returns the result as text, and whether it succeeded.
fn run(name: &str, mut options: &[&str]) -> Result<(String, bool), String> {
    let specimen = find(name).ok_or_else(|| format!("no specimen {name}\n{USAGE}"))?;
    let (mut ptx, mut device) = (None, "0");
    while let [option, value, rest @ ..] = options {
        match *option {
            "--ptx" => ptx = Some(*value),
            "--device" => device = value,
            _ => break,
        }
        options = rest;
    }
    if !options.is_empty() || (ptx.is_none() && device != "cpu") {
        return Err(USAGE.to_owned());
    }
    let text = ptx.map(read).transpose()?.unwrap_or_default();
    let device = match device.parse() {
        Ok(index) => Device::cuda(index).map_err(|error| error.to_string())?,
        Err(_) if device == "cpu" => Device::cpu(),
        Err(_) => return Err(USAGE.to_owned()),
    };
    Ok(match launch(specimen, &device, ptx.unwrap_or_default(), &text) {
        Err(error) => (format!("{name}: error: {error}"), false),
        Ok(_) if !specimen.finds.is_empty() => (format!("{name}: came back"), true),
        Ok(y) => {
            let expected = on_the_cpu(specimen);
            let pairs = || y.iter().zip(&expected).enumerate();
            let wrong: Vec<_> = pairs().filter(|(_, (y, e))| y.to_bits() != e.to_bits()).collect();
            match wrong.first() {
                None => (format!("{name}: came back, and is right"), true),
                Some((i, (y, e))) => {
                    let count = wrong.len();
                    (
                        format!("{name}: wrong: y[{i}] = {y}, not {e}; {count} elements differ"),
                        false,
                    )
                }
            }
        }
    })
}

/// One launch on a device. Returns y.
fn launch(
    specimen: &Specimen,
    device: &Device,
    name: &str,
    ptx: &str,
) -> Result<Vec<f32>, host::Error> {
    // SAFETY: `.ci/gpu bundle` builds it from the specimens' own source.
    unsafe { device.load_ptx(name, ptx) }?;
    let stream = device.stream()?;
    let x = device.upload(&specimen.x())?;
    let len = specimen.n as usize;
    // If y is not to be written, not even by a memset: initcheck would take that for a write.
    let mut y = if specimen.zeroed { device.zeros(len)? } else { device.uninit(len)? };
    let (n, config) = (specimen.n, specimen.config());
    match specimen.kernel {
        // SAFETY: none if the specimen is wrong. This process launches nothing else.
        Versions::Views(kernel, _) => unsafe { stream.launch(kernel, &config, (n, &x, &mut y)) },
        Versions::Boxes(kernel, _) => {
            let boxes = Boxes::new(x.view(..)?, [1, len / COLS, COLS], [0, COLS], SHAPE)?;
            // SAFETY: as above.
            unsafe { stream.launch(kernel, &config, (n, boxes, &mut y)) }
        }
        Versions::Stores(kernel, _) => {
            let extents = [1, len / COLS, COLS];
            let boxes = BoxesMut::new(y.view_mut(..)?, extents, [0, COLS], SHAPE)?;
            // SAFETY: as above.
            unsafe { stream.launch(kernel, &config, (n, &x, boxes)) }
        }
        Versions::Words(kernel, _) => {
            let mut words = device.zeros(WORDS)?;
            // SAFETY: as above.
            unsafe { stream.launch(kernel, &config, (n, &x, &mut y, &mut words)) }
        }
    }?;
    stream.synchronize()?;
    y.to_vec()
}

/// The right y of a clean specimen.
fn on_the_cpu(specimen: &Specimen) -> Vec<f32> {
    launch(specimen, &Device::cpu(), "", "").expect("a clean specimen runs on the CPU")
}

/// The tools of compute-sanitizer, in the order of the table's columns.
const TOOLS: [&str; 4] = ["memcheck", "racecheck", "initcheck", "synccheck"];

/// Markdown for lines `specimen tool verdict message`, separated by tabs, as `.ci/gpu sanitize`
/// writes them.
fn table(tsv: &str) -> String {
    let rows: Vec<Vec<&str>> = tsv.lines().map(|line| line.split('\t').collect()).collect();
    let mut text = format!("| specimen | what is wrong | simt check | {} |\n", TOOLS.join(" | "));
    text += &format!("|{}\n", "---|".repeat(3 + TOOLS.len()));
    for specimen in SPECIMENS {
        let name = specimen.name();
        let wrong = if specimen.finds.is_empty() { "nothing: " } else { "" };
        let wrong = format!("{wrong}{}", about(name));
        write!(text, "| `{name}` | {wrong} | {} |", finds(specimen, "–")).expect("it is a string");
        for tool in TOOLS {
            let row = rows.iter().find(|row| row.starts_with(&[name, tool]));
            text += &match row.map(|row| &row[2..]) {
                _ if !specimen.on_gpu() => " refused by the PTX builder |".to_owned(),
                None | Some([]) => " not run |".to_owned(),
                Some(["none", ..]) => " – |".to_owned(),
                Some(["findings", message, ..]) => format!(" {} |", short(message)),
                Some([verdict] | [verdict, ""]) => format!(" *{verdict}* |"),
                Some([verdict, message, ..]) => format!(" *{verdict}*: {} |", short(message)),
            };
        }
        text += "\n";
    }
    text
}

/// A message without addresses and places.
fn short(message: &str) -> String {
    let message = message.trim().trim_start_matches("Error: ").trim_start_matches("Warning: ");
    let ends = [" at ", " in block", " in allocation", " to 0x"];
    let end = ends.iter().filter_map(|end| message.find(end)).min().unwrap_or(message.len());
    message[..end].trim_end_matches([':', '.', ' ']).replace('|', "\\|")
}

/// The first sentence of a kernel's documentation.
fn about(name: &str) -> String {
    // A function, or a row of a macro that writes functions.
    let starts = [format!("\npub fn {name}("), format!("\n    {name}: ")];
    let before = |start| SOURCES.iter().find_map(|(_, source)| source.split_once(start));
    let before = starts.iter().find_map(before);
    let lines = before.map_or("", |(before, _)| before).lines().rev().map(str::trim);
    let lines = lines.skip_while(|line| !line.starts_with("///"));
    let mut lines: Vec<_> = lines.map_while(|line| line.strip_prefix("/// ")).collect();
    lines.reverse();
    let text = lines.join(" ");
    let sentence = text.split_once(". ").map_or(&*text, |(sentence, _)| sentence);
    sentence.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_specimen_says_what_is_wrong_with_it() {
        for specimen in SPECIMENS {
            let (name, about) = (specimen.name(), about(specimen.name()));
            assert!(about.len() > 10 && !about.ends_with('.'), "{name}: {about:?}");
        }
        assert_eq!(about("shared_not_as_declared"), "Uses less shared memory than it declares");
        assert_eq!(about("not_locked"), "Does not take the lock");
        assert!(list().contains("two_writers\twrite-after-write\n"), "{}", list());
        assert!(list().contains("warp_sum\tclean\n") && !list().contains("shared_not"));
    }

    #[test]
    fn the_table_has_a_line_for_each_specimen_and_a_column_for_each_tool() {
        let tsv = "\
specimen\ttool\tverdict\tmessage
two_writers\tmemcheck\tnone\t
two_writers\tracecheck\tfindings\tError: Potential WAW hazard detected at __shared__ 0x4 in block (0,0,0) :
two_writers\tsynccheck\thang\t
misaligned\tracecheck\terror\tmisaligned: error: cuStreamSynchronize: 716
";
        let table = table(tsv);
        assert_eq!(table.lines().count(), 2 + SPECIMENS.len());
        let line = |name: &str| {
            let start = format!("| `{name}` |");
            table.lines().find(|line| line.starts_with(&start)).expect(name)
        };
        let expected = "| `two_writers` | Two threads write each element of a shared array | \
                        write-after-write | – | Potential WAW hazard detected | not run | *hang* |";
        assert_eq!(line("two_writers"), expected);
        let expected = "| *error*: misaligned: error: cuStreamSynchronize: 716 |";
        assert!(line("misaligned").contains(expected), "{}", line("misaligned"));
        assert!(line("shared_not_as_declared").contains("refused"));
        assert!(
            line("vectors").starts_with("| `vectors` | nothing: Sixteen bytes at a time | – |")
        );
    }

    #[test]
    fn clean_specimens_run_and_are_right() {
        for specimen in SPECIMENS.iter().filter(|specimen| specimen.finds.is_empty()) {
            let (text, right) = run(specimen.name(), &["--device", "cpu"]).unwrap();
            assert!(right && text.ends_with("is right"), "{text}");
        }
    }

    #[test]
    fn a_wrong_call_says_how() {
        for (name, options) in [
            ("no_such", &["--device", "cpu"][..]),
            ("vectors", &[]),
            ("vectors", &["--device", "gpu"]),
            ("vectors", &["--device"]),
            ("vectors", &["--device", "cpu", "--fast", "1"]),
        ] {
            assert!(run(name, options).unwrap_err().contains("Usage"), "{name} {options:?}");
        }
        assert!(run("vectors", &["--ptx", "no/such/file"]).unwrap_err().contains("no/such/file"));
    }
}
