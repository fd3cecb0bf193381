//! Sixteen unaligned bytes from two aligned pieces.
//!
//! An access has at most sixteen bytes, at a multiple of sixteen: a *piece*. In unaligned rows, two
//! loaded pieces make one stored piece.

/// Sixteen bytes.
pub type Piece = [u32; 4];

/// Sixteen bytes of two consecutive pieces, from byte `bytes` on. `bytes` is a multiple of the
/// element size, below sixteen.
///
/// Registers cannot be indexed by a computed number. So all words shift by two or not, by one or
/// not, and by half a word or not.
#[inline(always)]
pub fn shifted(first: Piece, second: Piece, bytes: usize) -> Piece {
    let [a, b, c, d] = second;
    let [mut w0, mut w1, mut w2, mut w3] = first;
    let [mut w4, mut w5] = [a, b];
    if bytes & 8 != 0 {
        [w0, w1, w2, w3, w4, w5] = [w2, w3, a, b, c, d];
    }
    if bytes & 4 != 0 {
        [w0, w1, w2, w3, w4] = [w1, w2, w3, w4, w5];
    }
    if bytes & 2 != 0 {
        [w0, w1, w2, w3] =
            [(w0, w1), (w1, w2), (w2, w3), (w3, w4)].map(|(low, high)| low >> 16 | high << 16);
    }
    [w0, w1, w2, w3]
}

/// [`shifted`] for elements of a byte: words shift by two or not, by one or not, and then by
/// `bytes % 4` bytes.
#[inline(always)]
pub fn shifted_by_bytes(first: Piece, second: Piece, bytes: usize) -> Piece {
    let [a, b, c, d] = second;
    let [mut w0, mut w1, mut w2, mut w3] = first;
    let [mut w4, mut w5] = [a, b];
    if bytes & 8 != 0 {
        [w0, w1, w2, w3, w4, w5] = [w2, w3, a, b, c, d];
    }
    if bytes & 4 != 0 {
        [w0, w1, w2, w3, w4] = [w1, w2, w3, w4, w5];
    }
    let bits = bytes % 4 * 8;
    [(w0, w1), (w1, w2), (w2, w3), (w3, w4)]
        .map(|(low, high)| ((u64::from(high) << 32 | u64::from(low)) >> bits) as u32)
}
