//! The limits of a GPU: the roof of the roofline.

use gpu_gemm::Device;
#[cfg(any(feature = "cuda", test))]
use gpu_gemm::gemm::{Target, Unit};

/// The two limits of a roofline (S. Williams, A. Waterman, D. Patterson, *Roofline*, CACM 52(4),
/// 2009).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Roof {
    /// The peak of f32: multiply-adds, two FLOP each, at the highest clock.
    pub fp32_gflops: f64,
    /// The peak of f64 on tensor cores, where all cards of the compute capability have the same.
    pub fp64_gflops: Option<f64>,
    /// The peak of bf16 or f16 on tensor cores, with sums in f32, dense. Where as well.
    pub half_gflops: Option<f64>,
    /// The bandwidth of global memory at its highest clock, in 10^9 bytes per second.
    pub memory_gb_per_s: Option<f64>,
}

impl Roof {
    /// The roof of a GPU whose driver reports its clock. The CPU device has none: the speed of
    /// fibers says nothing about the cores.
    pub fn of(device: &Device) -> Option<Roof> {
        #[cfg(feature = "cuda")]
        if let Some(properties) = device.cuda_properties() {
            return Roof::of_clocks(
                properties.capability,
                properties.sms,
                properties.clock_khz?,
                properties.memory_clock_khz.zip(properties.memory_bus_bits),
            );
        }
        let _ = device;
        None
    }

    #[cfg(any(feature = "cuda", test))]
    fn of_clocks(
        capability: (u32, u32),
        sms: u32,
        clock_khz: u32,
        memory: Option<(u32, u32)>,
    ) -> Option<Roof> {
        // On other capabilities a GeForce's tensor cores add in f32 at half the rate of an L4's.
        let is_one = matches!(capability, (8, 0) | (9, 0));
        if !is_one && !matches!(capability, (8 | 10 | 12, _)) {
            return None;
        }
        let target = Target::gpu(capability, sms);
        let gflops =
            |unit| 2e-6 * f64::from(target.products(unit)) * f64::from(sms) * f64::from(clock_khz);
        Some(Roof {
            fp32_gflops: gflops(Unit::F32),
            fp64_gflops: is_one.then(|| gflops(Unit::TensorF64)),
            half_gflops: is_one.then(|| gflops(Unit::TensorHalf)),
            // Two transfers a clock.
            memory_gb_per_s: memory
                .filter(|&(khz, bits)| khz > 0 && bits > 0)
                .map(|(khz, bits)| 2.0 * f64::from(khz) * 1e-6 * f64::from(bits) / 8.0),
        })
    }

    /// The highest speed of a kernel with this many FLOP per byte.
    pub fn gflops_at(&self, flop_per_byte: f64) -> f64 {
        let memory = self.memory_gb_per_s.map_or(f64::INFINITY, |speed| speed * flop_per_byte);
        memory.min(self.fp32_gflops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roofs_of_an_a100_and_an_h200() {
        let a100 = Roof::of_clocks((8, 0), 108, 1_410_000, Some((1_215_000, 5120))).unwrap();
        assert!((a100.fp32_gflops - 19_491.84).abs() < 1e-6, "{a100:?}");
        // NVIDIA's figure is 312 TFLOPS.
        assert!((a100.half_gflops.unwrap() - 311_869.44).abs() < 1e-6, "{a100:?}");
        assert!((a100.fp64_gflops.unwrap() - 19_491.84).abs() < 1e-6, "{a100:?}");
        assert!((a100.memory_gb_per_s.unwrap() - 1555.2).abs() < 1e-6, "{a100:?}");
        let h200 = Roof::of_clocks((9, 0), 132, 1_980_000, None).unwrap();
        assert!((h200.fp32_gflops - 66_908.16).abs() < 1e-6, "{h200:?}");
        assert_eq!(h200.gflops_at(0.25), h200.fp32_gflops);
        let ada = Roof::of_clocks((8, 9), 60, 2_040_000, None).unwrap();
        assert!((ada.fp32_gflops - 31_334.4).abs() < 1e-6, "{ada:?}");
        assert_eq!(ada.half_gflops, None);
        for unknown in [(7, 5), (11, 0), (13, 0)] {
            assert_eq!(Roof::of_clocks(unknown, 40, 1_500_000, None), None);
        }
        assert_eq!(Roof::of(&Device::cpu()), None);
    }

    /// With 1,500 GFLOPS and 200 GB/s, and four bytes for each FLOP, 50 GFLOPS are possible: 3.3 %.
    #[test]
    fn memory_limits_what_uses_each_number_once() {
        let roof = Roof {
            fp32_gflops: 1500.0,
            fp64_gflops: None,
            half_gflops: None,
            memory_gb_per_s: Some(200.0),
        };
        assert_eq!(roof.gflops_at(0.25), 50.0);
        assert_eq!((1000.0 * roof.gflops_at(0.25) / roof.fp32_gflops).round(), 33.0);
        assert_eq!(roof.gflops_at(100.0), 1500.0);
    }
}
