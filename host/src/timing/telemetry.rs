//! Clocks, power and temperature while something runs, from NVML. Nothing is changed.

use serde::{Deserialize, Serialize};

use gpu_gemm::Device;

/// What a GPU did while it was watched.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Telemetry {
    /// Samples taken.
    pub samples: usize,
    /// The clock of the SMs in MHz: minimum, median, maximum.
    pub sm_mhz: [u32; 3],
    /// The clock of the memory in MHz: minimum, median, maximum.
    pub memory_mhz: [u32; 3],
    /// The power in watts: minimum, median, maximum.
    pub power_w: [u32; 3],
    /// The temperature in degrees Celsius: minimum, median, maximum.
    pub temperature_c: [u32; 3],
    /// Why the clock was below its maximum, in NVML's words: `SW_POWER_CAP`, `GPU_IDLE`.
    pub throttled: Vec<String>,
}

/// The settings of a GPU, and its driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The driver's version: `580.159.04`.
    pub driver: String,
    /// The power limit in watts.
    pub power_limit_w: Option<u32>,
    /// The highest clock of the SMs in MHz.
    pub sm_mhz_max: Option<u32>,
    /// The highest clock of the memory in MHz.
    pub memory_mhz_max: Option<u32>,
}

impl Card {
    /// Asks NVML.
    ///
    /// # Errors
    /// Why nothing is known: the CPU device, or a machine without NVML.
    pub fn of(device: &Device) -> Result<Card, String> {
        let _ = device;
        #[cfg(feature = "cuda")]
        return nvml::card(device);
        #[cfg(not(feature = "cuda"))]
        return Err("the CPU device has no telemetry".to_owned());
    }
}

/// Watches a device from a thread, until [`Watch::finish`].
#[derive(Debug)]
pub struct Watch {
    #[cfg(feature = "cuda")]
    inner: Result<nvml::Watch, String>,
}

impl Watch {
    /// Starts to watch. A device that cannot be watched is no error here.
    pub fn start(device: &Device) -> Watch {
        let _ = device;
        Watch {
            #[cfg(feature = "cuda")]
            inner: nvml::Watch::start(device),
        }
    }

    /// The samples.
    ///
    /// # Errors
    /// Why there are none: the CPU device, or a machine without NVML.
    pub fn finish(self) -> Result<Telemetry, String> {
        #[cfg(feature = "cuda")]
        return self.inner.and_then(nvml::Watch::finish);
        #[cfg(not(feature = "cuda"))]
        return Err("the CPU device has no telemetry".to_owned());
    }
}

#[cfg(feature = "cuda")]
mod nvml {
    use std::{
        collections::BTreeSet,
        ffi::OsStr,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        thread::{JoinHandle, sleep, spawn},
        time::Duration,
    };

    use nvml_wrapper::{
        Nvml,
        enum_wrappers::device::{Clock, TemperatureSensor},
    };

    use super::{Card, Device, Telemetry};

    /// The time between two samples. NVML updates its figures no more often.
    const PERIOD: Duration = Duration::from_millis(50);

    /// NVML, and its name of a device.
    fn open(device: &Device) -> Result<(Nvml, String), String> {
        let uuid = device.uuid().ok_or("the CPU device has no telemetry")?;
        // The file name without a version is part of the development package, which is not needed.
        let nvml = Nvml::builder().lib_path(OsStr::new("libnvidia-ml.so.1")).init();
        Ok((nvml.map_err(|error| format!("NVML: {error}"))?, uuid))
    }

    pub(super) fn card(device: &Device) -> Result<Card, String> {
        let (nvml, uuid) = open(device)?;
        let device = nvml.device_by_uuid(uuid).map_err(|error| format!("NVML: {error}"))?;
        Ok(Card {
            driver: nvml.sys_driver_version().unwrap_or_default(),
            power_limit_w: device.enforced_power_limit().ok().map(|milliwatts| milliwatts / 1000),
            sm_mhz_max: device.max_clock_info(Clock::SM).ok(),
            memory_mhz_max: device.max_clock_info(Clock::Memory).ok(),
        })
    }

    #[derive(Debug)]
    pub(super) struct Watch {
        stop: Arc<AtomicBool>,
        thread: JoinHandle<Result<Telemetry, String>>,
    }

    impl Watch {
        pub(super) fn start(device: &Device) -> Result<Watch, String> {
            let (nvml, uuid) = open(device)?;
            let stop = Arc::new(AtomicBool::new(false));
            let thread = spawn({
                let stop = stop.clone();
                move || watch(&nvml, &uuid, &stop).map_err(|error| format!("NVML: {error}"))
            });
            Ok(Watch { stop, thread })
        }

        pub(super) fn finish(self) -> Result<Telemetry, String> {
            self.stop.store(true, Ordering::Relaxed);
            self.thread.join().unwrap_or_else(|_| Err("NVML's thread was lost".to_owned()))
        }
    }

    fn watch(
        nvml: &Nvml,
        uuid: &str,
        stop: &AtomicBool,
    ) -> Result<Telemetry, nvml_wrapper::error::NvmlError> {
        let device = nvml.device_by_uuid(uuid)?;
        let mut samples: [Vec<u32>; 4] = Default::default();
        let mut throttled = BTreeSet::new();
        loop {
            let readings = [
                device.clock_info(Clock::SM)?,
                device.clock_info(Clock::Memory)?,
                device.power_usage()? / 1000,
                device.temperature(TemperatureSensor::Gpu)?,
            ];
            for (samples, reading) in samples.iter_mut().zip(readings) {
                samples.push(reading);
            }
            let reasons = device.current_throttle_reasons()?;
            throttled.extend(reasons.iter_names().map(|(name, _)| name.to_owned()));
            if stop.load(Ordering::Relaxed) {
                break;
            }
            sleep(PERIOD);
        }
        let [sm_mhz, memory_mhz, power_w, temperature_c] = samples.each_mut().map(|samples| {
            samples.sort_unstable();
            [samples[0], samples[samples.len() / 2], samples[samples.len() - 1]]
        });
        Ok(Telemetry {
            samples: samples[0].len(),
            sm_mhz,
            memory_mhz,
            power_w,
            temperature_c,
            throttled: throttled.into_iter().collect(),
        })
    }
}
