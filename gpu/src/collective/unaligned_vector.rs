//! Pieces: sixteen bytes that lie at a multiple of as many. More an access does not move, and it begins nowhere else; so where
//! rows begin anywhere, what is moved is put together of two.

/// Sixteen bytes.
pub type Piece = [u32; 4];

/// Sixteen bytes of two pieces, one behind the other, from that byte on: a multiple of the size of an element, below sixteen.
///
/// A register has no number that is computed. So all words move up by two or not, by one or not, and by a half: a choice each.
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
