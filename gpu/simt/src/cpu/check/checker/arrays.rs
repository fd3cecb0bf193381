//! The shared arrays that the blocks of a cluster declare, and their shadows.

use super::Checker;
use crate::cpu::{
    access::ArrayDeclaration,
    block,
    check::{
        finding::Kind,
        findings::{Key, Seen, memory_of},
        shared::Array,
    },
    cluster,
};

impl Checker<'_> {
    /// The shadow of an array that the running thread declares.
    pub(in crate::cpu) fn shared_array(
        &self,
        offset: usize,
        declaration: &ArrayDeclaration,
    ) -> *const Array {
        let mut arrays = self.arrays.borrow_mut();
        let rank = block::rank();
        let bytes = |d: &ArrayDeclaration| d.element * d.shape.0 * d.shape.1;
        let known = arrays.iter().position(|array| match declaration.dynamic {
            // One shadow for all element types: its size is rounded up.
            true => array.declaration.dynamic && array.rank == rank,
            false => {
                !array.declaration.dynamic
                    && array.rank == rank
                    && array.offset == offset
                    && bytes(&array.declaration) == bytes(declaration)
            }
        });
        if let Some(other) = known.map(|known| &arrays[known])
            && !declaration.dynamic
            && other.declaration.place != declaration.place
        {
            self.add_two_arrays(other, declaration);
        }
        let known = known.unwrap_or_else(|| {
            let overlaps = |other: &Array| {
                !declaration.dynamic
                    && !other.declaration.dynamic
                    && other.rank == rank
                    && offset < other.offset + other.bytes()
                    && other.offset < offset + bytes(declaration)
            };
            if let Some(other) = arrays.iter().find(|other| overlaps(other)) {
                self.add_two_arrays(other, declaration);
            }
            let mut whole = *declaration;
            if declaration.dynamic {
                let total = block::launch_config().dynamic_shared as usize;
                whole.shape.0 = total.div_ceil(declaration.element);
            }
            arrays.push(Box::new(Array::new(&whole, rank, offset)));
            arrays.len() - 1
        });
        arrays[known].refine(declaration.element);
        &*arrays[known]
    }

    /// Reports that two threads declare different arrays at one place in shared memory.
    fn add_two_arrays(&self, one: &Array, other: &ArrayDeclaration) {
        let key = Key {
            memory: Some(memory_of(one)),
            place: Some(other.place),
            other_place: Some(one.declaration.place),
            ..Key::of(Kind::SharedSize)
        };
        let (block, thread) = (block::block_index(), block::current().index);
        let seen = Seen { block, thread, element: None, other: None };
        self.findings.borrow_mut().add(key, seen, || {
            "every thread of a block must declare the same arrays in the same order, outside branches"
                .to_owned()
        });
    }

    /// The array of the running thread's block that holds these bytes of its shared memory.
    pub(in crate::cpu::check) fn array_at(
        &self,
        offset: usize,
        bytes: usize,
    ) -> Option<*const Array> {
        self.find_array(block::rank(), |array| {
            offset >= array.offset && offset + bytes <= array.offset + array.bytes()
        })
    }

    /// The array of a block of the cluster that holds that byte of its shared memory; null where
    /// the block has declared none there.
    pub(in crate::cpu) fn array_of(&self, (rank, offset): cluster::Place) -> *const Array {
        let offset = offset as usize;
        let holds =
            |array: &Array| (array.offset..array.offset + array.bytes().max(1)).contains(&offset);
        self.find_array(rank, holds).unwrap_or(std::ptr::null())
    }

    /// The array of a block of the cluster that corresponds to the running thread's block's array
    /// at that byte, even if it has not been declared there yet; and the byte's offset in it.
    /// `None` where neither block has an array there.
    pub(in crate::cpu) fn array_of_block(
        &self,
        rank: u32,
        offset: u32,
    ) -> Option<(*const Array, usize)> {
        let known = self.array_of((rank, offset));
        let own = self.array_of((block::rank(), offset));
        // SAFETY: each is null, or an array, which lives as long as the launch.
        match unsafe { (known.as_ref(), own.as_ref()) } {
            (Some(array), _) => Some((known, offset as usize - array.offset)),
            (None, Some(own)) => {
                let array = Box::new(Array::new(&own.declaration, rank, own.offset));
                let place = std::ptr::from_ref(&*array);
                self.arrays.borrow_mut().push(array);
                Some((place, offset as usize - own.offset))
            }
            (None, None) => None,
        }
    }

    fn find_array(&self, rank: u32, holds: impl Fn(&Array) -> bool) -> Option<*const Array> {
        let arrays = self.arrays.borrow();
        let found = arrays.iter().find(|array| array.rank == rank && holds(array));
        found.map(|array| std::ptr::from_ref(&**array))
    }

    /// The last array that begins before a byte of the running thread's block's shared memory.
    pub(in crate::cpu::check) fn array_before(&self, offset: usize) -> Option<*const Array> {
        let arrays = self.arrays.borrow();
        let rank = block::rank();
        let before = arrays.iter().filter(|array| array.rank == rank && array.offset <= offset);
        before.max_by_key(|array| array.offset).map(|array| std::ptr::from_ref(&**array))
    }
}
