//! Capture and graphs. A graph is the list of its launches.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex};

use crate::launches::Launch;
use crate::settings::{Handle, called, configured};
use crate::{FIRST_CONTEXT, current, is_stream};

/// A stream that is captured.
struct Capture {
    stream: usize,
    launches: Vec<Launch>,
    /// After a call that was refused the capture is of no use.
    is_spoilt: bool,
}

thread_local! {
    /// The captures that this thread has begun.
    static CAPTURES: RefCell<Vec<Capture>> = const { RefCell::new(Vec::new()) };
}

/// Graphs, by handle. An executable graph has the launches of the graph that it was made of.
static GRAPHS: Mutex<Option<HashMap<usize, Arc<Vec<Launch>>>>> = Mutex::new(None);

/// Calls that a thread may not make while it captures.
const REFUSED: &str = "\
    cuCtxSynchronize cuEventSynchronize cuGraphExecDestroy cuGraphInstantiateWithFlags \
    cuMemAllocHost_v2 cuMemAllocPitch_v2 cuMemAlloc_v2 cuMemFreeHost cuMemFree_v2 cuMemcpy2D_v2 \
    cuMemcpyDtoH_v2 cuMemcpyHtoD_v2 cuMemsetD8_v2 cuModuleLoadDataEx cuModuleUnload \
    cuStreamSynchronize cuStreamQuery";

/// The code with which a call is refused in a capture.
pub(crate) fn refusal(call: &str) -> Option<c_int> {
    CAPTURES.with_borrow_mut(|captures| {
        if captures.is_empty() || !REFUSED.split(' ').any(|refused| refused == call) {
            return None;
        }
        captures.iter_mut().for_each(|capture| capture.is_spoilt = true);
        Some(900)
    })
}

/// Notes the launch if the stream is captured. Otherwise gives it back.
pub(crate) fn captured(stream: Handle, launch: Launch) -> Option<Launch> {
    CAPTURES.with_borrow_mut(|captures| {
        match captures.iter_mut().find(|capture| capture.stream == stream as usize) {
            Some(capture) => {
                capture.launches.push(launch);
                None
            }
            None => Some(launch),
        }
    })
}

/// A handle for launches.
fn insert(launches: Arc<Vec<Launch>>) -> Handle {
    let mut graphs = GRAPHS.lock().unwrap();
    let graphs = graphs.get_or_insert_default();
    let handle = (0x6000..).find(|handle| !graphs.contains_key(handle)).unwrap();
    graphs.insert(handle, launches);
    handle as Handle
}

fn launches_of(graph: Handle) -> Option<Arc<Vec<Launch>>> {
    GRAPHS.lock().unwrap().as_ref()?.get(&(graph as usize)).cloned()
}

fn remove(graph: Handle) -> c_int {
    let removed = GRAPHS.lock().unwrap().as_mut().and_then(|all| all.remove(&(graph as usize)));
    if removed.is_some() { 0 } else { 1 }
}

driver! {
    @context fn cuStreamBeginCapture_v2(stream: Handle, mode: c_uint) {
        assert!(is_stream(stream));
        assert_eq!(mode, 1, "a capture must not disturb other threads");
        let stream = stream as usize;
        CAPTURES.with_borrow_mut(|captures| {
            if captures.iter().any(|capture| capture.stream == stream) {
                return 1;
            }
            captures.push(Capture { stream, launches: Vec::new(), is_spoilt: false });
            0
        })
    }
    @context fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) {
        *graph = std::ptr::null_mut();
        let ended = CAPTURES.with_borrow_mut(|captures| {
            let index = captures.iter().position(|capture| capture.stream == stream as usize);
            index.map(|index| captures.remove(index))
        });
        match ended {
            Some(Capture { is_spoilt: true, .. }) => 901,
            Some(capture) => {
                *graph = insert(Arc::new(capture.launches));
                0
            }
            None => 1,
        }
    }
    @context fn cuStreamIsCapturing(stream: Handle, status: *mut c_int) {
        let is_captured = |capture: &Capture| capture.stream == stream as usize;
        *status = CAPTURES.with_borrow(|captures| captures.iter().any(is_captured).into());
        0
    }
    @context fn cuGraphInstantiateWithFlags(made: *mut Handle, graph: Handle, flags: u64) {
        assert_eq!(flags, 0);
        let Some(launches) = launches_of(graph) else { return 1 };
        *made = insert(launches);
        0
    }
    @context fn cuGraphLaunch(graph: Handle, stream: Handle) {
        assert!(is_stream(stream));
        let Some(launches) = launches_of(graph) else { return 1 };
        for launch in &*launches {
            launch.run();
        }
        0
    }
    @context fn cuGraphDestroy(graph: Handle) { remove(graph) }
    @context fn cuGraphExecDestroy(graph: Handle) { remove(graph) }
    @context fn cuStreamGetCtx(stream: Handle, context: *mut Handle) {
        // Streams do not know their device: `stream_of=1` says it.
        if !is_stream(stream) {
            return 400;
        }
        *context = (FIRST_CONTEXT + configured("stream_of").unwrap_or(0) as usize) as Handle;
        0
    }
}
