//! The state of an mbarrier. A phase ends when its arrivals have come and the announced bytes have
//! been copied.

use crate::count_of;

/// The most bytes that a phase may wait for (PTX ISA, "Tracking asynchronous operations by the
/// mbarrier object").
const MOST_BYTES: i64 = (1 << 20) - 1;

/// An mbarrier that has been initialised.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mbarrier {
    /// Arrivals that end a phase, and arrivals that the current phase still waits for.
    arrivals: u32,
    missing: u32,
    /// Bytes announced and not copied; negative for bytes copied and not announced.
    bytes: i64,
    /// Phases that have ended.
    phases: u64,
}

impl Mbarrier {
    /// An mbarrier in phase 0, which waits for that number of arrivals.
    pub(super) fn new(arrivals: u32) -> Result<Self, String> {
        match (1..1 << 20).contains(&arrivals) {
            true => Ok(Mbarrier { arrivals, missing: arrivals, bytes: 0, phases: 0 }),
            false => Err(format!("an mbarrier for {arrivals} arrivals: 1 to 1048575")),
        }
    }

    /// Whether the phase of that parity has ended.
    pub(super) fn has_ended(&self, parity: u32) -> bool {
        self.phases % 2 != u64::from(parity & 1)
    }

    /// That number of arrivals, which announce bytes. Gives whether they end the phase.
    pub(super) fn arrive(&mut self, count: u32, bytes: u32) -> Result<bool, String> {
        self.bytes += i64::from(bytes);
        if self.bytes > MOST_BYTES {
            return Err(format!("{} bytes announced: at most {MOST_BYTES}", self.bytes));
        }
        let Some(missing) = self.missing.checked_sub(count) else {
            return Err(format!(
                "more than {} arrivals in a phase, which still waits for {} bytes",
                self.arrivals, self.bytes
            ));
        };
        self.missing = missing;
        self.end_phase()
    }

    /// A copy has completed bytes. Gives whether that ends the phase.
    pub(super) fn complete(&mut self, bytes: u32) -> Result<bool, String> {
        self.bytes -= i64::from(bytes);
        self.end_phase()
    }

    fn end_phase(&mut self) -> Result<bool, String> {
        if self.missing > 0 {
            return Ok(false);
        }
        if let Some(reason) = self.unannounced() {
            return Err(reason);
        }
        if self.bytes == 0 {
            self.missing = self.arrivals;
            self.phases += 1;
        }
        Ok(self.bytes == 0)
    }

    /// What is wrong if more bytes were copied than announced.
    pub(super) fn unannounced(&self) -> Option<String> {
        let more = -self.bytes;
        (more > 0).then(|| format!("{more} more bytes were copied than announced"))
    }

    /// What the phase waits for, as text.
    pub(super) fn missing(&self) -> String {
        let Mbarrier { missing, arrivals, bytes, phases } = self;
        let bytes = count_of(bytes, "byte");
        format!("its phase {phases} waits for {missing} of {arrivals} arrivals and {bytes}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_ends_with_the_last_arrival_and_the_last_byte() {
        let mut barrier = Mbarrier::new(2).unwrap();
        assert!(!barrier.has_ended(0) && barrier.has_ended(1));
        assert_eq!(barrier.arrive(1, 96), Ok(false));
        assert_eq!(barrier.complete(64), Ok(false));
        assert_eq!(barrier.arrive(1, 0), Ok(false));
        assert_eq!(barrier.complete(32), Ok(true));
        assert!(barrier.has_ended(0) && !barrier.has_ended(1));
        // Bytes may be copied before they are announced.
        assert_eq!(barrier.complete(8), Ok(false));
        assert_eq!(barrier.arrive(1, 8), Ok(false));
        assert_eq!(barrier.arrive(1, 0), Ok(true));
        assert!(!barrier.has_ended(0) && barrier.has_ended(1));
    }

    #[test]
    fn what_does_not_add_up_is_an_error() {
        assert!(Mbarrier::new(0).is_err());
        let mut barrier = Mbarrier::new(1).unwrap();
        assert_eq!(barrier.arrive(1, 16), Ok(false));
        assert!(barrier.arrive(1, 0).unwrap_err().contains("more than 1 arrivals"));
        let mut barrier = Mbarrier::new(1).unwrap();
        assert_eq!(barrier.complete(32), Ok(false));
        assert!(barrier.arrive(1, 16).unwrap_err().contains("16 more bytes were copied"));
        assert!(Mbarrier::new(1).unwrap().arrive(1, 1 << 20).unwrap_err().contains("at most"));
    }
}
