//! One device or several, as `gemm` takes them.

use std::{fmt, str::FromStr};

use clap::builder::{PossibleValue, TypedValueParser};
use host::Devices;

use super::{DeviceChoice, Offering};
use crate::cli::open;

/// Places at most, as of [`Devices`].
const MOST: usize = 256;

const SYNTAX: &str =
    "must be auto, cpu, cpu:COUNT, cuda, cuda:N, cuda:N,N,.. or cuda:all, with up to 256 devices";

/// The devices of a product of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DevicesChoice {
    One(DeviceChoice),
    /// These GPUs.
    Cuda(Vec<usize>),
    AllCuda,
    /// So many CPU devices.
    Cpu(usize),
}

pub(super) fn several() -> impl TypedValueParser<Value = DevicesChoice> {
    let values = ["auto", "cuda", "cuda:all", "cpu"].map(PossibleValue::new).into();
    Offering { parser: DevicesChoice::from_str, values }
}

impl FromStr for DevicesChoice {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let count = |count: usize| (1..=MOST).contains(&count).then_some(count).ok_or(SYNTAX);
        match (text.strip_prefix("cuda:"), text.strip_prefix("cpu:")) {
            (Some("all"), _) => Ok(DevicesChoice::AllCuda),
            (Some(list), _) if list.contains(',') => {
                let indices = list.split(',').map(|index| index.parse().map_err(|_| SYNTAX));
                let indices = indices.collect::<Result<Vec<_>, _>>()?;
                count(indices.len()).map(|_| DevicesChoice::Cuda(indices))
            }
            (_, Some(number)) => {
                number.parse().map_err(|_| SYNTAX).and_then(count).map(DevicesChoice::Cpu)
            }
            _ => text.parse().map(DevicesChoice::One).map_err(|_| SYNTAX),
        }
    }
}

impl fmt::Display for DevicesChoice {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DevicesChoice::One(device) => device.fmt(f),
            DevicesChoice::Cuda(indices) => {
                let indices = indices.iter().map(usize::to_string).collect::<Vec<_>>();
                write!(f, "cuda:{}", indices.join(","))
            }
            DevicesChoice::AllCuda => f.write_str("cuda:all"),
            DevicesChoice::Cpu(count) => write!(f, "cpu:{count}"),
        }
    }
}

impl DevicesChoice {
    /// Opens them. If `auto` takes the CPU because there is no GPU, a note says so.
    pub(crate) fn open(&self) -> host::Result<Devices> {
        match self {
            DevicesChoice::One(device) => open(*device).map(Devices::from),
            DevicesChoice::Cuda(indices) => Devices::of(indices),
            DevicesChoice::AllCuda => Devices::all(),
            DevicesChoice::Cpu(count) => Devices::cpu(*count),
        }
    }

    /// The kind of device that they are.
    pub(crate) fn kind(&self) -> DeviceChoice {
        match self {
            DevicesChoice::One(device) => *device,
            DevicesChoice::Cuda(_) | DevicesChoice::AllCuda => DeviceChoice::Cuda(0),
            DevicesChoice::Cpu(_) => DeviceChoice::Cpu,
        }
    }

    /// The names of several, unless they must be looked for.
    pub(crate) fn names(&self) -> Option<Vec<String>> {
        match self {
            DevicesChoice::One(_) => Some(Vec::new()),
            DevicesChoice::Cuda(indices) => {
                Some(indices.iter().map(|index| format!("cuda:{index}")).collect())
            }
            DevicesChoice::AllCuda => None,
            DevicesChoice::Cpu(count) => {
                Some((0..*count).map(|number| format!("cpu:{number}")).collect())
            }
        }
    }
}
