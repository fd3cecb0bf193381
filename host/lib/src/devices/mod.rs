//! Several devices for one product.

mod layout;
mod sharded;

use std::{fmt, sync::Arc, time::Duration};

pub(crate) use self::{
    layout::Block,
    sharded::{offset, pitch_of, sources},
};
pub use self::{layout::ShardLayout, sharded::Sharded};
#[cfg(feature = "cuda")]
use crate::device::Kind;
use crate::{
    device::Device,
    error::{Error, Result},
    stream::{Stream, ledger::Ledger},
};

/// Places at most.
pub(crate) const MOST_PLACES: usize = 256;

/// The devices of a product, in order. Each is a *place*, with memory and streams of its own. Two
/// places may be one GPU.
///
/// ```
/// use gpu_gemm::{Devices, Gemm, ShardLayout, Sharded};
///
/// // Two CPU devices. On a machine with GPUs: Devices::all(), Devices::of(&[0, 1]).
/// let devices = Devices::cpu(2)?;
/// let rows = ShardLayout::rows(3, devices.len());
/// let cols = ShardLayout::cols(2, devices.len());
/// let a = Sharded::from_row_major(&devices, 3, 2, rows.clone(), &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let b = Sharded::from_row_major(&devices, 2, 2, cols, &[1.0, 0.0, 1.0, 1.0])?;
/// let mut c = Sharded::zeros(&devices, 3, 2, rows)?;
/// let plan = Gemm::new().run_sharded(&devices, &a, &b, &mut c)?;
/// assert_eq!(c.gather()?, [3.0, 2.0, 7.0, 4.0, 11.0, 6.0]);
/// println!("{plan}");
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Devices {
    places: Vec<Device>,
    /// Places of which the first has no permission to access the second's memory.
    denied: Vec<[usize; 2]>,
    /// For how long work is waited for, besides ten times its predicted time.
    pub(crate) time_limit: Duration,
}

/// The default of [`Devices::time_limit`].
const TIME_LIMIT: Duration = Duration::from_secs(10);

impl Devices {
    /// All GPUs of this machine that can run the kernels.
    ///
    /// # Errors
    /// As [`Devices::of`]; without such a GPU that of [`Device::cuda`].
    pub fn all() -> Result<Self> {
        let runs = |index: &usize| !matches!(Device::cuda(*index), Err(Error::Architecture { .. }));
        let indices = (0..Device::cuda_count()?).filter(runs).collect::<Vec<_>>();
        if indices.is_empty() {
            Device::cuda(0)?;
        }
        Devices::of(&indices)
    }

    /// The GPUs with these indices, in the driver's order. An index may be there twice: then the
    /// GPU has two places.
    ///
    /// # Errors
    /// [`Error::Argument`] for none or more than 256, for GPUs of several compute capabilities, and
    /// for two that cannot access each other's memory. As [`Device::cuda`].
    pub fn of(indices: &[usize]) -> Result<Self> {
        check_places("devices", indices.len())?;
        let mut opened = Vec::<(usize, Device)>::new();
        for &index in indices {
            if !opened.iter().any(|(known, _)| *known == index) {
                opened.push((index, Device::cuda(index)?));
            }
        }
        #[cfg(feature = "cuda")]
        for (_, device) in &opened {
            for (_, peer) in opened.iter().filter(|(_, peer)| peer != device) {
                if let (Kind::Cuda(own), Kind::Cuda(its)) = (&*device.0, &*peer.0) {
                    own.context.enable_peer(&its.context)?;
                }
            }
        }
        let of = |index: &usize| opened.iter().find(|(known, _)| known == index);
        Devices::new(indices.iter().filter_map(of).map(|(_, device)| device.clone()).collect())
    }

    /// So many CPU devices. Each has memory of its own. An access of one to the memory of another
    /// that no transfer makes is refused, and one that no event orders is an
    /// [`Error::Unordered`].
    ///
    /// # Errors
    /// [`Error::Argument`] for none or more than 256.
    #[cfg(feature = "cpu")]
    pub fn cpu(count: usize) -> Result<Self> {
        check_places("devices", count)?;
        Devices::new((0..count).map(Device::cpu_numbered).collect())
    }

    fn new(places: Vec<Device>) -> Result<Self> {
        #[cfg(feature = "cuda")]
        for other in &places {
            let capability = |it: &Device| it.cuda_properties().map(|known| known.capability);
            if capability(other) != capability(&places[0]) {
                let limit = format!("must have the compute capability of {}", places[0].name());
                return Err(Error::argument("devices", other.to_string(), limit));
            }
        }
        Ok(Devices { places, denied: Vec::new(), time_limit: TIME_LIMIT })
    }

    /// With another limit of the time for which a product's work is waited for on GPUs: the default
    /// is ten seconds, and always ten times the predicted time is added. A GPU whose work has not
    /// ended then is an [`Error::Hung`], and is not used by this process any more. So is one whose
    /// streams wait for it.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// The number of places.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none: never.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The device of each place.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Device> {
        self.places.iter()
    }

    /// The device of a place.
    pub(crate) fn at(&self, place: usize) -> &Device {
        &self.places[place]
    }

    /// The name of a place in messages: `place 1, cuda:0`.
    pub(crate) fn label(&self, place: usize) -> String {
        format!("place {place}, {}", self.at(place).name())
    }

    /// An error of a place with its name, if there are several. What is no fault of a device is as
    /// it is.
    pub(crate) fn failed(&self, place: usize) -> impl FnOnce(Error) -> Error {
        move |error| match error {
            Error::Interrupted
            | Error::Unordered { .. }
            | Error::Argument { .. }
            | Error::File { .. }
            | Error::Unwritten { .. } => error,
            error if self.len() == 1 => error,
            error => Error::Device { device: self.label(place), error: Box::new(error) },
        }
    }

    /// The same without the permission of a place to access another's memory.
    #[cfg(test)]
    pub(crate) fn denying(mut self, place: usize, of: usize) -> Self {
        self.denied.push([place, of]);
        self
    }

    /// New lanes at each place.
    ///
    /// # Errors
    /// Those of the driver.
    pub(crate) fn lanes<const COUNT: usize>(&self) -> Result<Vec<[Stream; COUNT]>> {
        let name = |place: usize| self.at(place).name();
        let denied = self.denied.iter().map(|pair| pair.map(name)).collect();
        let ledger: Arc<Ledger> = Ledger::new(denied);
        self.places
            .iter()
            .map(|device| {
                let lanes = (0..COUNT).map(|_| device.lane(&ledger)).collect::<Result<Vec<_>>>()?;
                lanes.try_into().map_err(|_| Error::argument("lanes", COUNT, "must be opened"))
            })
            .collect()
    }
}

/// Refuses a number of places.
pub(crate) fn check_places(name: &str, count: usize) -> Result<()> {
    match (1..=MOST_PLACES).contains(&count) {
        true => Ok(()),
        false => Err(Error::argument(
            name,
            count,
            format!("must be at least one, and at most {MOST_PLACES}"),
        )),
    }
}

impl From<Device> for Devices {
    /// One place.
    fn from(device: Device) -> Self {
        Devices { places: vec![device], denied: Vec::new(), time_limit: TIME_LIMIT }
    }
}

impl PartialEq for Devices {
    /// Whether both have the same places in the same order.
    fn eq(&self, other: &Self) -> bool {
        self.places == other.places
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let names = self.places.iter().map(Device::name).collect::<Vec<_>>();
        f.write_str(&names.join(", "))
    }
}
