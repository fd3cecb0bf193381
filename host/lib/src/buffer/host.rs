//! Elements as slices: on the CPU device buffers are in host memory.

use super::{Buffer, BufferView, BufferViewMut, Pod, Storage};

impl<T: Pod> Buffer<T> {
    /// The elements without a copy. `None` on a GPU.
    pub fn as_slice(&self) -> Option<&[T]> {
        match &self.storage {
            Storage::Host(memory) => Some(bytemuck::cast_slice(memory.bytes())),
            #[cfg(feature = "cuda")]
            Storage::Cuda(_) => None,
        }
    }

    /// As [`as_slice`](Self::as_slice), for writing.
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        match &mut self.storage {
            Storage::Host(memory) => Some(bytemuck::cast_slice_mut(memory.bytes_mut())),
            #[cfg(feature = "cuda")]
            Storage::Cuda(_) => None,
        }
    }
}

impl<'a, T: Pod> BufferView<'a, T> {
    /// The elements without a copy. `None` on a GPU.
    pub fn as_slice(&self) -> Option<&'a [T]> {
        self.buffer.as_slice().map(|all| &all[self.start..self.start + self.len])
    }
}

impl<T: Pod> BufferViewMut<'_, T> {
    /// The elements without a copy, for writing. `None` on a GPU.
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        self.buffer.as_mut_slice().map(|all| &mut all[self.start..self.start + self.len])
    }
}

#[cfg(test)]
mod tests {
    use crate::Device;

    #[test]
    fn a_view_has_its_own_elements() {
        let mut buffer = Device::cpu().upload(&[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(buffer.view(1..3).unwrap().as_slice(), Some(&[2.0, 3.0][..]));
        let mut view = buffer.view_mut(2..4).unwrap();
        view.as_mut_slice().unwrap()[0] = 7.0;
        assert_eq!(buffer.as_slice(), Some(&[1.0, 2.0, 7.0, 4.0][..]));
    }
}
