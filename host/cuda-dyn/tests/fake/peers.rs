//! Several devices: which may access the memory of which, and copies between them.

use std::ffi::{c_int, c_uint};
use std::sync::Mutex;

use crate::copies::{Copy3d, copy_rows, later};
use crate::settings::{Handle, called, configured, traced};
use crate::{FIRST_CONTEXT, current, is_stream};

/// Pairs of contexts of which the first may access the second's memory.
static PEERS: Mutex<Vec<[usize; 2]>> = Mutex::new(Vec::new());

driver! {
    // With `no_peer=N` device N can access no memory but its own.
    fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) {
        assert_ne!(device, peer, "a device is no peer of its own");
        *can = (configured("no_peer") != Some(device)).into();
        0
    }
    @context fn cuCtxEnablePeerAccess(peer: Handle, flags: c_uint) {
        let pair = [current(), peer as usize];
        assert!(flags == 0 && pair[0] != pair[1] && pair[1] >= FIRST_CONTEXT);
        let mut peers = PEERS.lock().unwrap();
        if peers.contains(&pair) {
            return 704;
        }
        peers.push(pair);
        0
    }
    @context fn cuMemcpy3DPeerAsync(copy: *const Copy3d, stream: Handle) {
        assert!(is_stream(stream));
        let Copy3d { from, to, bytes, rows, slices } = &*copy;
        for side in [from, to] {
            assert_eq!((side.x, side.y, side.z, side.level, side.kind), (0, 0, 0, 0, 2));
        }
        let pair = [to.context as usize, from.context as usize];
        assert!(pair[0] == pair[1] || PEERS.lock().unwrap().contains(&pair), "{pair:x?} are no peers");
        assert_eq!((current(), *slices), (pair[0], 1), "the target's device copies");
        let [start, target] = [from, to].map(|side| side.start() as usize);
        let (pitches, bytes, rows) = ([from.pitch, to.pitch], *bytes, *rows);
        traced(|| format!("copy on {:x}", stream as usize));
        later([start, target], move || {
            assert_eq!(copy_rows(start as _, target as _, pitches, bytes, rows), 0);
        })
    }
}
