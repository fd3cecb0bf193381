//! How the hardware serves a warp's request: sectors of global memory, wavefronts of shared memory.

/// Bytes of a sector, the unit in which caches move global memory.
const SECTOR: u64 = 32;
/// Shared memory has 32 banks of four bytes.
const BANKS: usize = 32;
const BANK_BYTES: u64 = 4;

/// The sectors that a request touches, and the fewest that its bytes could occupy.
pub(super) fn sectors(addresses: &mut [u64], width: u64) -> (u64, u64) {
    sort(addresses);
    let (mut touched, mut last) = (0, None);
    let (mut distinct, mut before) = (0, None);
    for &address in &*addresses {
        let first = address / SECTOR;
        let end = (address + width - 1) / SECTOR;
        let start = last.map_or(first, |last: u64| first.max(last + 1));
        touched += (end + 1).saturating_sub(start);
        last = Some(last.map_or(end, |last| end.max(last)));
        distinct += u64::from(before != Some(address));
        before = Some(address);
    }
    (touched, (distinct * width).div_ceil(SECTOR))
}

/// The wavefronts of a request to shared memory, and the fewest possible if each lane accesses
/// other bytes. In a wavefront each bank delivers one word of four bytes. Lanes that access the
/// same word share it.
///
/// 8-byte accesses are served by half warps, 16-byte accesses by quarter warps. It is twice the
/// number of lanes if all neighbours, or all lanes two apart, access the same address. (Measured on
/// an H200 for 16 bytes with one and with two addresses in a warp: two wavefronts each.)
pub(super) fn wavefronts(addresses: &mut [u64], width: u64) -> (u64, u64) {
    let words = width.div_ceil(BANK_BYTES);
    let at_once = (BANKS / words as usize).max(1);
    let most_at_once = (2 * at_once).min(BANKS);
    let (mut units, mut ideal) = (0, 0);
    for lanes in addresses.chunks_mut(most_at_once) {
        ideal += lanes.len().div_ceil(at_once) as u64;
        let group = if is_paired(lanes) { most_at_once } else { at_once };
        units += lanes.chunks_mut(group).map(|lanes| one_group(lanes, width)).sum::<u64>();
    }
    (units, ideal)
}

/// Whether all neighbours, or all lanes two apart, access the same address.
fn is_paired(lanes: &[u64]) -> bool {
    let same = |apart: usize| {
        (0..lanes.len())
            .all(|lane| lanes.get(lane ^ apart).is_none_or(|other| *other == lanes[lane]))
    };
    same(1) || same(2)
}

/// The wavefronts of lanes that are served together.
fn one_group(lanes: &mut [u64], width: u64) -> u64 {
    sort(lanes);
    let mut words_of_bank = [0u32; BANKS];
    let mut last = None;
    for &address in &*lanes {
        for word in address / BANK_BYTES..(address + width).div_ceil(BANK_BYTES) {
            if last.is_none_or(|last| word > last) {
                words_of_bank[word as usize % BANKS] += 1;
                last = Some(word);
            }
        }
    }
    u64::from(words_of_bank.into_iter().max().unwrap_or(0))
}

fn sort(addresses: &mut [u64]) {
    if !addresses.is_sorted() {
        addresses.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(address: impl Fn(u64) -> u64) -> Vec<u64> {
        (0..32).map(address).collect()
    }

    #[test]
    fn sectors_of_a_request() {
        assert_eq!(sectors(&mut lanes(|lane| 4 * lane), 4), (4, 4), "a row, aligned");
        assert_eq!(sectors(&mut lanes(|lane| 4 * lane + 4), 4), (5, 4), "not aligned");
        assert_eq!(sectors(&mut lanes(|lane| 64 * lane), 4), (32, 4), "a column");
        assert_eq!(sectors(&mut lanes(|_| 100), 4), (1, 1), "one element for all");
        assert_eq!(sectors(&mut lanes(|lane| 16 * lane), 16), (16, 16), "128 bits a lane");
        assert_eq!(sectors(&mut lanes(|lane| 4 * (31 - lane)), 4), (4, 4), "backwards");
        assert_eq!(sectors(&mut [0], 4), (1, 1), "one lane");
    }

    #[test]
    fn wavefronts_of_a_request() {
        assert_eq!(wavefronts(&mut lanes(|lane| 4 * lane), 4), (1, 1), "a row");
        assert_eq!(wavefronts(&mut lanes(|lane| 128 * lane), 4), (32, 1), "a column");
        assert_eq!(wavefronts(&mut lanes(|lane| 132 * lane), 4), (1, 1), "a padded column");
        assert_eq!(wavefronts(&mut lanes(|_| 8), 4), (1, 1), "one element for all");
        assert_eq!(wavefronts(&mut lanes(|lane| 8 * lane), 4), (2, 1), "every second word");
        assert_eq!(wavefronts(&mut lanes(|lane| 2 * lane), 2), (1, 1), "half words");
        assert_eq!(wavefronts(&mut lanes(|lane| 8 * lane), 8), (2, 2), "64 bits a lane");
        assert_eq!(wavefronts(&mut lanes(|lane| 16 * lane), 16), (4, 4), "128 bits a lane");
        assert_eq!(wavefronts(&mut lanes(|lane| 128 * lane), 16), (32, 4), "all in four banks");
        assert_eq!(wavefronts(&mut lanes(|_| 32), 16).0, 2, "128 bits, the same for all");
        assert_eq!(
            wavefronts(&mut lanes(|lane| lane / 16 * 64), 16).0,
            2,
            "the same for half a warp"
        );
    }
}
