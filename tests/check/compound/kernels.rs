//! Kernels with compound assignments. They are compiled for a launch without checks, and for a
//! checked one.

#![allow(non_snake_case, reason = "matrices have capitals")]

use std::collections::BTreeMap;

use super::device::*;

/// Each thread has its own elements. The index is computed once, and the value before it.
#[kernel(block = (32), shared = 2 * 32 * 4 + 32 * 4, len(x = n, y = n))]
pub fn all_sorts_of_places(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut rows, mut row) = (shared![f32; 2, 32], shared![u32; 32]);
    let t = thread::thread_idx_x() as usize;
    if t >= n as usize {
        return;
    }
    (rows[(0, t)], rows[(1, t)], row[t]) = (1.0, 2.0, 3);
    rows[(0, t)] += x[t];
    rows[32 + t] *= 2.0;
    row[t] <<= 2;
    row[t] |= 1;
    let mut calls = 0;
    let mut next = || {
        calls += 1;
        calls + t - 1
    };
    y[next()] += rows[(0, t)];
    y[t] -= rows[(1, t)] - y[t];
    let (mut own, mut of_own) = ([0.0; 4], [[1.0f32; 2]; 2]);
    own[calls] += 1.0;
    of_own[1][calls] += own[1];
    let mut words = BTreeMap::from([(String::from("a"), 1.0)]);
    let slice = &mut own[..];
    slice[1] += words[&String::from("a")];
    *words.get_mut("a").unwrap() += 1.0;
    let to = &mut y;
    to[t] += own[1] + of_own[1][1];
    // What the compiler computes is left as it is.
    const TWO: usize = {
        let mut of = [1; 1];
        of[0] += 1;
        of[0]
    };
    let zeros = [0.0; {
        let mut of = [0; 1];
        of[0] += TWO;
        of[0]
    }];
    // A value that borrows.
    own[0] += [zeros[0], -1.0f32].iter().max_by(|x, y| x.total_cmp(y)).unwrap();
    let add = |row: &mut Shared<u32, 32>| row[t] += 1;
    add(&mut row);
    y[t] += row[t] as f32;
}

/// Two neighbours add to one element.
#[kernel(block = (32), shared = 16 * 4, len(x = n, y = n))]
pub fn two_add(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut sums = shared![f32; 16];
    let t = thread::thread_idx_x() as usize;
    if t < 16 {
        sums[t] = 0.0;
    }
    thread::sync_threads();
    sums[t / 2] += x[t % n as usize];
    thread::sync_threads();
    y[t % n as usize] = sums[t / 2];
}

/// A parameter with a capital.
#[kernel(block = (32), len(x = n, Y = n))]
pub fn in_capitals(n: u32, x: In<f32>, mut Y: Out<f32>) {
    let t = thread::thread_idx_x() as usize;
    if t < n as usize {
        Y[t] += x[t];
    }
}

fn add(y: &mut Out<f32>, i: usize, value: f32) {
    y[i] += value;
}

/// A function adds, and the kernel does so itself.
#[kernel(block = (32), len(x = n, y = n))]
pub fn by_a_function(n: u32, x: In<f32>, mut y: Out<f32>) {
    let t = thread::thread_idx_x() as usize;
    if t < n as usize / 2 {
        add(&mut y, t, x[t]);
    } else if t < n as usize {
        y[t] += x[t];
    }
}
