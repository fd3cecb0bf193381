//! Code for each of a thread's accumulators of `wgmma`.
//!
//! There is no loop over accumulators: one that LLVM does not unroll would put them into memory.
//! Macros name each by its number.

/// Repeats code for the number of each accumulator.
macro_rules! each {
    (|$i:ident| $then:expr) => {
        $crate::device::wgmma::numbered! { $i $then;
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
            33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
            62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90
            91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114
            115 116 117 118 119 120 121 122 123 124 125 126 127
        }
    };
}

/// Repeats code for the number of each pair of accumulators.
macro_rules! each_pair {
    (|$i:ident| $then:expr) => {
        $crate::device::wgmma::numbered! { $i $then;
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
            33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
            62 63
        }
    };
}

/// Repeats code for the number of each four accumulators, two of either row.
macro_rules! each_square {
    (|$i:ident| $then:expr) => {
        $crate::device::wgmma::numbered! { $i $then;
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        }
    };
}

macro_rules! numbered {
    ($i:ident $then:expr; $($number:literal)*) => {$({
        let $i: usize = $number;
        $then
    })*};
}

pub(super) use {each, each_pair, each_square, numbered};
