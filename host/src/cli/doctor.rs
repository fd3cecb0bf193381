//! `doctor`: the driver, devices and settings of this machine, what is wrong with them, and what to
//! do.

use std::{
    env, fmt,
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use host::{
    Device, Error, Shape,
    gemm::Target,
    operands, product,
    ptx::{self, Ptx},
    simt::count_of,
    timing::Operands,
    verify::{Comparison, Criterion, compare},
};
use serde::Serialize;

use super::{
    Failure,
    args::List,
    duration::duration,
    families::{self, Runs},
    list::json,
};

/// The product that is tried on every device. No tile divides its sizes.
const SHAPE: [u64; 3] = [33, 65, 17];
const KERNEL: &str = "tiled16";

/// With less free memory in bytes, probably another program uses the device.
const LITTLE: u64 = 512 << 20;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    /// It works, but slower or on another device than possible.
    Warn,
    /// Something is broken.
    Fail,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "fail",
        })
    }
}

/// A check of one thing, also the object of `--json`.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    status: Status,
    found: String,
    /// What to do.
    advice: Option<String>,
}

impl Line {
    fn ok(name: impl Into<String>, found: impl Into<String>) -> Line {
        Line { name: name.into(), status: Status::Ok, found: found.into(), advice: None }
    }

    fn warn(name: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Line {
        Line { status: Status::Warn, advice: Some(advice.into()), ..Line::ok(name, found) }
    }

    fn fail(name: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Line {
        Line { status: Status::Fail, ..Line::warn(name, found, advice) }
    }

    fn error(name: impl Into<String>, error: &Error) -> Line {
        Line::fail(name, error.to_string(), advice(error))
    }
}

/// Checks the driver, every device and this machine, and prints each result when it is known.
///
/// # Errors
/// [`Failure::Wrong`] if a device's product is wrong, [`Failure::Environment`] if anything else is
/// broken. Both have been printed.
pub(super) fn doctor(list: &List, out: &mut impl Write) -> Result<(), Failure> {
    let mut report = Report { out, json: list.json, warnings: 0, failures: 0, wrong: false };
    let count = report.driver()?;
    let gpus: Vec<_> = (0..count).map(|index| (index, Device::cuda(index))).collect();
    let usable: Vec<&Device> = gpus.iter().filter_map(|(_, device)| device.as_ref().ok()).collect();
    report.ptx(&usable)?;
    for (index, gpu) in &gpus {
        report.gpu(&format!("cuda:{index}"), gpu)?;
    }
    report.device(&Device::cpu())?;
    if !usable.is_empty() {
        report.tell(jit_cache())?;
    }
    report.end()
}

/// Prints the results, and counts them.
struct Report<'a, W> {
    out: &'a mut W,
    json: bool,
    warnings: usize,
    failures: usize,
    /// Whether a product was wrong.
    wrong: bool,
}

impl<W: Write> Report<'_, W> {
    fn tell(&mut self, line: Line) -> Result<(), Failure> {
        match line.status {
            Status::Ok => {}
            Status::Warn => self.warnings += 1,
            Status::Fail => self.failures += 1,
        }
        if self.json {
            return json(self.out, &line);
        }
        writeln!(self.out, "{:<4}  {:<24}  {}", line.status, line.name, line.found)?;
        if let Some(advice) = line.advice {
            writeln!(self.out, "{:32}-> {advice}", "")?;
        }
        // The next check may take long, or hang. So this result is shown now.
        Ok(self.out.flush()?)
    }

    fn end(self) -> Result<(), Failure> {
        let Report { failures, warnings, .. } = self;
        if !self.json {
            writeln!(self.out, "failures: {failures}, warnings: {warnings}")?;
        }
        match (self.wrong, failures) {
            (true, _) => Err(Failure::Wrong),
            (false, 0) => Ok(()),
            (false, _) => Err(Failure::Environment),
        }
    }

    /// Checks the driver's library, its start and its version. Returns the number of devices.
    fn driver(&mut self) -> Result<usize, Failure> {
        match library() {
            Ok(name) => self.tell(Line::ok("driver library", name))?,
            Err([reason, advice]) => {
                let found = format!("{reason}: the CPU device is used");
                self.tell(Line::warn("driver library", found, advice))?;
                return Ok(0);
            }
        }
        let count = Device::cuda_count();
        self.tell(match &count {
            Ok(0) => {
                let visible = env::var("CUDA_VISIBLE_DEVICES").ok();
                let visible = visible.map(|value| format!(" (CUDA_VISIBLE_DEVICES={value})"));
                let found = format!("it finds no device{}", visible.unwrap_or_default());
                let advice = "`nvidia-smi` lists the devices; a container sees those passed in";
                Line::warn("driver start", found, advice)
            }
            Ok(count) => Line::ok("driver start", count_of(count, "device")),
            Err(error) => Line::error("driver start", error),
        })?;
        self.tell(match Device::cuda_version() {
            Ok(version) => Line::ok("driver version", format!("CUDA {}", Version(version))),
            Err(error) => Line::error("driver version", &error),
        })?;
        Ok(count.unwrap_or(0))
    }

    /// Compares each kind of PTX with the driver's version. PTX that no device here uses may need a
    /// newer driver.
    fn ptx(&mut self, devices: &[&Device]) -> Result<(), Failure> {
        let Ok(driver) = Device::cuda_version() else { return Ok(()) };
        for ptx in [ptx::SM_80, ptx::SM_90A] {
            // Hopper also runs the PTX for all GPUs.
            let is_taken = devices
                .iter()
                .filter_map(|device| device.ptx_file())
                .any(|target| [ptx.target, ptx::SM_90A.target].contains(&target));
            self.tell(against_driver(ptx, driver, is_taken))?;
        }
        Ok(())
    }

    fn gpu(&mut self, name: &str, gpu: &host::Result<Device>) -> Result<(), Failure> {
        match gpu {
            Ok(device) => self.device(device),
            Err(error @ Error::Architecture { .. }) => {
                let found = format!("{error}: it is not used");
                self.tell(Line::warn(name, found, advice(error)))
            }
            Err(error) => self.tell(Line::error(name, error)),
        }
    }

    /// Checks a device, its memory, and a product on it.
    fn device(&mut self, device: &Device) -> Result<(), Failure> {
        let name = device.name();
        let ptx =
            device.ptx_file().map(|target| format!(", takes PTX for {target}")).unwrap_or_default();
        self.tell(Line::ok(&name, format!("{}{ptx}", device.description())))?;
        self.tell(memory(format!("{name} memory"), device.memory()))?;
        if device.is_cuda() {
            self.tell(Line::ok(format!("{name} kernels"), families(&Target::of(device))))?;
        }
        let product = format!("{name} product");
        let line = match try_product(device) {
            Err(Error::Interrupted) => return Err(Error::Interrupted.into()),
            Err(error) => Line::error(product, &error),
            Ok(Trial { wrong: Some(wrong), .. }) => {
                self.wrong = true;
                let advice = "report it, with this output: a kernel or the device computes wrongly";
                Line::fail(product, wrong, advice)
            }
            Ok(Trial { wrong: None, first_launch }) => Line::ok(
                product,
                format!(
                    "{KERNEL}, {}: right; first launch {}",
                    SHAPE.map(|size| size.to_string()).join("x"),
                    duration(first_launch.as_secs_f64() * 1e6)
                ),
            ),
        };
        self.tell(line)
    }
}

/// The families of kernels that a GPU runs, each with its types.
fn families(target: &Target) -> String {
    let mut lists = Vec::<(&str, Vec<String>)>::new();
    for Runs { family, types, .. } in families::on(target) {
        match lists.iter_mut().find(|(name, _)| *name == family.name()) {
            Some((_, list)) => list.push(types),
            None => lists.push((family.name(), vec![types])),
        }
    }
    let list = |(name, types): (_, Vec<_>)| format!("{name} ({})", types.join("; "));
    lists.into_iter().map(list).collect::<Vec<_>>().join(", ")
}

/// The file name of the driver's library. Or why it could not be loaded, and what to do for a GPU.
#[cfg(feature = "cuda")]
fn library() -> Result<&'static str, [&'static str; 2]> {
    let advice =
        "for a GPU install NVIDIA's driver, in a container start it with the GPU passed in";
    cuda_dyn::driver().map_err(|reason| [reason, advice])
}

#[cfg(not(feature = "cuda"))]
fn library() -> Result<&'static str, [&'static str; 2]> {
    Err([
        "host was built without its feature `cuda`",
        "for a GPU build it with its default features",
    ])
}

/// A version in NVIDIA's notation.
struct Version((u32, u32));

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Version((major, minor)) = self;
        write!(f, "{major}.{minor}")
    }
}

/// What to do about an error, if its message does not say.
fn advice(error: &Error) -> &'static str {
    match error {
        Error::NoDriver { .. } | Error::NoDevice { .. } => {
            "`nvidia-smi` says whether the driver works at all; install it anew or update it, then restart"
        }
        Error::Architecture { .. } => "an Ampere GPU or a later one is needed",
        Error::Ptx { .. } => {
            "update the driver, or `cargo xtask build-ptx` where the PTX was changed"
        }
        Error::OutOfMemory { .. } => "end what holds the memory: `nvidia-smi` and `free` name it",
        Error::Driver { .. } => {
            "`nvidia-smi` and the system's log (`dmesg`) say more; a restart helps often"
        }
        Error::Launch { .. } => "`cargo xtask build-ptx`, and commit gpu/ptx",
        _ => "report it, with this output",
    }
}

/// Compares the PTX for a target with the driver's CUDA version.
fn against_driver(ptx: Ptx, driver: (u32, u32), is_taken: bool) -> Line {
    let (name, driver_text) = (format!("PTX for {}", ptx.target), Version(driver));
    let (Some(version), Some(needed)) = (ptx.version(), ptx.cuda_needed()) else {
        let found = "which driver it needs is not known";
        return Line::warn(name, found, "this version of PTX is newer than this program");
    };
    let found = format!("PTX {}, needs CUDA {}", Version(version), Version(needed));
    match (driver >= needed, is_taken) {
        (true, _) => Line::ok(name, found),
        (false, true) => {
            Line::fail(name, format!("{found}, the driver has {driver_text}"), "update the driver")
        }
        (false, false) => Line::warn(
            name,
            format!("{found}, the driver has {driver_text}; no device here takes it"),
            "update the driver before a device that does",
        ),
    }
}

fn memory(name: String, memory: host::Result<(u64, u64)>) -> Line {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    match memory {
        Err(error) => Line::error(name, &error),
        Ok((u64::MAX, _)) => {
            Line::warn(name, "the system does not say", "products are not refused")
        }
        Ok((free, all)) => {
            let found = format!("{:.1} of {:.1} GiB free", gib(free), gib(all));
            match free < LITTLE {
                true => Line::warn(name, found, "`nvidia-smi` and `free` name what holds it"),
                false => Line::ok(name, found),
            }
        }
    }
}

/// The result of the product.
struct Trial {
    /// The first launch. It includes the driver's compilation of the kernels.
    first_launch: Duration,
    /// What is wrong with the product, if anything.
    wrong: Option<String>,
}

/// Multiplies on a device and compares all of C: real numbers within the bound, integers exactly.
fn try_product(device: &Device) -> host::Result<Trial> {
    let (stream, entry) = (device.stream()?, product::find(KERNEL)?);
    let [m, n, k] = SHAPE;
    let shape = Shape::new(m, n, k)?;
    let magnitude = operands::exact_magnitude(shape.k()).unwrap_or(1);
    let integers = |seed, len| operands::integers(seed, len, magnitude);
    let (a_len, b_len) = (shape.a_len(), shape.b_len());
    let tries = [
        (
            "real numbers",
            operands::uniform(1, a_len)?,
            operands::uniform(2, b_len)?,
            Criterion::Bound,
        ),
        ("integers", integers(1, a_len)?, integers(2, b_len)?, Criterion::Exact),
    ];
    let mut first_launch = None;
    for (what, a, b, criterion) in tries {
        let on_device = Operands::upload(device, shape, &a, &b)?;
        let mut c = on_device.c;
        // NaN: an element that is not written shows.
        c.buffer_mut().fill_bytes(0xff)?;
        let begin = Instant::now();
        product::multiply(&stream, entry, &on_device.a, &on_device.b, &mut c)?;
        stream.synchronize()?;
        first_launch.get_or_insert(begin.elapsed());
        let comparison = compare(shape, &a, &b, &c.to_row_major()?, criterion)?;
        if !comparison.passed() {
            let Comparison { wrong, elements, .. } = comparison;
            let wrong = format!("on {what} {wrong} of {elements} elements of C are wrong");
            return Ok(Trial { first_launch: Duration::ZERO, wrong: Some(wrong) });
        }
    }
    Ok(Trial { first_launch: first_launch.unwrap_or_default(), wrong: None })
}

/// The folder in which the driver caches compiled kernels (NVIDIA, *CUDA Programming Guide*, "CUDA
/// Environment Variables").
fn jit_cache() -> Line {
    const NAME: &str = "compiled kernels";
    let slow = |why: String, advice: &str| {
        Line::warn(NAME, format!("{why}: every process compiles them anew"), advice)
    };
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    if set("CUDA_CACHE_DISABLE").is_some_and(|value| value != "0") {
        return slow("CUDA_CACHE_DISABLE is set".to_owned(), "unset it");
    }
    let in_home = || Some(PathBuf::from(set("HOME")?).join(".nv/ComputeCache"));
    let Some(folder) = set("CUDA_CACHE_PATH").map(PathBuf::from).or_else(in_home) else {
        return slow("neither CUDA_CACHE_PATH nor HOME is set".to_owned(), "set one of them");
    };
    match can_write(&folder) {
        Ok(()) => Line::ok(NAME, format!("kept in {}", folder.display())),
        Err(error) => {
            let why = format!("{} cannot be written: {error}", folder.display());
            slow(why, "make it writable, or point CUDA_CACHE_PATH elsewhere")
        }
    }
}

/// Whether files can be created in a folder. If it does not exist, in the folder that would contain
/// it.
fn can_write(folder: &Path) -> io::Result<()> {
    let existing = folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder);
    tempfile::tempfile_in(existing).map(drop)
}
