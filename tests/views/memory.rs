//! A view in memory of its own.

use std::{ops::Range, ptr::null_mut};

use host::Pod;
use tests::gemm::{Number, Operand, bytes};

/// Where the view's first or last element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The first element begins a page.
    First,
    /// The last element ends one.
    Last,
}

impl Edge {
    pub const BOTH: [Edge; 2] = [Edge::First, Edge::Last];
}

/// Every byte between the elements.
const NOISE: u8 = 0xff;

/// Memory for the elements of a view. Pages without an element cannot be accessed. In the others
/// all else is NaN.
pub struct Memory<T> {
    map: *mut u8,
    bytes: usize,
    /// The first element.
    first: *mut T,
    /// From the first element to the last.
    len: usize,
    /// The indices of the elements, from the first one on.
    elements: Vec<usize>,
    /// Pages that can be accessed.
    open: Vec<Range<usize>>,
}

impl<T: Number> Memory<T> {
    /// Memory with the elements of an operand.
    pub fn of(operand: &Operand<T>, edge: Edge) -> Self {
        let start = operand.range().start;
        let indices = operand.places().map(|(i, row, col)| operand.index(i, row, col) - start);
        let memory = Self::new(indices.collect(), edge);
        for &element in &memory.elements {
            // SAFETY: one of the elements, whose page can be written.
            unsafe { memory.first.add(element).write(operand.stored[start + element]) };
        }
        memory
    }

    /// Memory with these elements, one after another.
    pub fn dense(values: &[T], edge: Edge) -> Self {
        let memory = Self::new((0..values.len()).collect(), edge);
        for (element, value) in values.iter().enumerate() {
            // SAFETY: as in `of`.
            unsafe { memory.first.add(element).write(*value) };
        }
        memory
    }

    fn new(elements: Vec<usize>, edge: Edge) -> Self {
        // SAFETY: it only asks.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let len = elements.iter().max().map_or(0, |last| last + 1);
        let size = len * size_of::<T>();
        let used = size.next_multiple_of(page);
        let bytes = used + 2 * page;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new memory, at any address.
        let map = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(map, libc::MAP_FAILED, "{bytes} bytes of addresses");
        let map = map.cast::<u8>();
        let before = page + if edge == Edge::Last { used - size } else { 0 };
        let mut open: Vec<Range<usize>> = Vec::new();
        let mut sorted = elements.clone();
        sorted.sort_unstable();
        for element in sorted {
            let at = before + element * size_of::<T>();
            // An element is in one page: pages and elements are aligned.
            let pages = at / page * page..(at / page + 1) * page;
            match open.last_mut() {
                Some(last) if pages.start <= last.end => last.end = pages.end,
                _ => open.push(pages),
            }
        }
        for pages in &open {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: pages of the map, which nobody uses yet.
            unsafe {
                let start = map.add(pages.start);
                assert_eq!(libc::mprotect(start.cast(), pages.len(), rights), 0);
                start.write_bytes(NOISE, pages.len());
            }
        }
        let first = map.wrapping_add(before).cast();
        Memory { map, bytes, first, len, elements, open }
    }

    /// The address of the first element, and the number from it to the last.
    pub fn place(&self) -> (u64, usize) {
        (self.first.expose_provenance() as u64, self.len)
    }

    /// The elements, in the operand's order.
    pub fn values(&self) -> Vec<T> {
        // SAFETY: they can be read, and nobody writes them now.
        self.elements.iter().map(|&element| unsafe { self.first.add(element).read() }).collect()
    }

    /// Whether all between the elements is as it was.
    pub fn is_kept_between(&self) -> bool {
        let mut between: Vec<u8> = Vec::new();
        let mut is_element = vec![false; self.bytes];
        let first = self.first.addr() - self.map.addr();
        for &element in &self.elements {
            is_element[first + element * size_of::<T>()..][..size_of::<T>()].fill(true);
        }
        for pages in &self.open {
            // SAFETY: they can be read, and nobody writes them now.
            let page =
                unsafe { std::slice::from_raw_parts(self.map.add(pages.start), pages.len()) };
            let others = page.iter().zip(&is_element[pages.clone()]).filter(|(_, of)| !**of);
            between.extend(others.map(|(byte, _)| byte));
        }
        between.iter().all(|&byte| byte == NOISE)
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        // SAFETY: the map, which nobody uses any more.
        unsafe { libc::munmap(self.map.cast(), self.bytes) };
    }
}

/// Whether two lists have the same bits.
pub fn same<T: Pod>(one: &[T], other: &[T]) -> bool {
    bytes(one) == bytes(other)
}
