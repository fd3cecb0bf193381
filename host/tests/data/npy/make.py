#!/usr/bin/env python3
"""Makes the .npy files beside it: operands of a few elements, and what NumPy says their products are.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install numpy && /tmp/venv/bin/python make.py

The values are the same whatever NumPy's version (`RandomState` is frozen); the files were made by 2.4.6.
"""

import io
import os

import numpy as np

M, N, K = 7, 9, 5
random = np.random.RandomState(20260)
a = random.uniform(-1, 1, (M, K))
b = random.uniform(-1, 1, (K, N))
c = random.uniform(-1, 1, (M, N))


def save(name, array, version=None):
    data = io.BytesIO()
    np.lib.format.write_array(data, array, version=version)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".npy"), "wb") as file:
        file.write(data.getvalue())


# Operands: every type, order and version.
save("a_f4", a.astype("<f4"))
save("a_f4_fortran", np.asfortranarray(a.astype("<f4")))
save("a_f4_transposed", a.astype("<f4").T)
save("a_f4_big_endian", a.astype(">f4"))
save("a_f4_version_2", a.astype("<f4"), version=(2, 0))
save("a_f4_version_3", a.astype("<f4"), version=(3, 0))
save("a_f8", a.astype("<f8"))
save("a_f8_big_endian_fortran", np.asfortranarray(a.astype(">f8")))
save("a_f2", a.astype("<f2"))
save("a_f2_big_endian", a.astype(">f2"))
save("b_f4", b.astype("<f4"))
save("b_f4_fortran", np.asfortranarray(b.astype("<f4")))
save("b_f8", b.astype("<f8"))
save("b_f2", b.astype("<f2"))
save("c_f4", c.astype("<f4"))
save("c_f8_fortran", np.asfortranarray(c))

# NumPy's own results, in float64 of what the files hold: of A B, and of 0.5 A B - 2 C.
for dtype in ["f2", "f4", "f8"]:
    product = a.astype(dtype).astype("f8") @ b.astype(dtype).astype("f8")
    save("ab_" + dtype, product)
narrow = [x.astype("f4").astype("f8") for x in (a, b, c)]
save("half_ab_minus_2c_f4", 0.5 * narrow[0] @ narrow[1] - 2 * narrow[2])

# What is no matrix of floats.
save("one_dimension", a[0].astype("<f4"))
save("no_dimension", np.float32(1.5).reshape(()))
save("three_dimensions", np.zeros((2, 2, 2), "<f4"))
save("integers", np.arange(6, dtype="<i8").reshape(2, 3))
save("complex", np.zeros((2, 3), "<c8"))
save("truth", np.zeros((2, 3), "?"))
save("text", np.array([["ab", "c"]]))
save("structure", np.zeros((2, 3), [("x, y", "<f4"), ("z", "<f4", (2,))]))
save("objects", np.array([[None, 1]], dtype=object))
save("empty", np.zeros((0, 5), "<f4"))
