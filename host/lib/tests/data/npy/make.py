#!/usr/bin/env python3
"""Makes the .npy files beside it: operands of a few elements, and what NumPy says their products are; and
spellings.txt, which spelling of a type `np.load` takes for which type; and headers.txt, which header it takes for which shape.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install numpy ml_dtypes && /tmp/venv/bin/python make.py

The values are the same whatever NumPy's version (`RandomState` is frozen); the files were made by 2.4.6, and by
ml_dtypes 0.6.0.
"""

import io
import os

import ml_dtypes
import numpy as np

M, N, K = 7, 9, 5
random = np.random.RandomState(20260)
a = random.uniform(-1, 1, (M, K))
b = random.uniform(-1, 1, (K, N))
c = random.uniform(-1, 1, (M, N))


def write(name, data):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "wb") as file:
        file.write(data)


def saved(array, version=None):
    data = io.BytesIO()
    np.lib.format.write_array(data, array, version=version)
    return data.getvalue()


def save(name, array, version=None):
    write(name + ".npy", saved(array, version))


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

# bfloat16, as ml_dtypes writes it, and as NumPy writes again what it has read of that.
bfloat16 = np.dtype(ml_dtypes.bfloat16)
save("a_bf16", a.astype(bfloat16))
save("a_bf16_fortran", np.asfortranarray(a.astype(bfloat16)))
save("a_bf16_big_endian", a.astype(bfloat16).byteswap().view(bfloat16.newbyteorder(">")))
save("a_bf16_again", np.load(io.BytesIO(saved(a.astype(bfloat16)))))
save("b_bf16", b.astype(bfloat16))

# Two arrays in one file: `np.load` of its path reads the first.
write("a_f4_and_more.npy", saved(a.astype("<f4")) + saved(b.astype("<f4")))

# Vectors. (one_dimension, below, is A's first row.)
save("ab_f4_row", a[0].astype("f4").astype("f8") @ b.astype("f4").astype("f8"))
save("aa_f4_column", a.astype("f4").astype("f8") @ a[0].astype("f4").astype("f8"))

# NumPy's own results, in float64 of what the files hold: of A B, and of 0.5 A B - 2 C.
for name, dtype in [("f2", "f2"), ("bf16", bfloat16), ("f4", "f4"), ("f8", "f8")]:
    product = a.astype(dtype).astype("f8") @ b.astype(dtype).astype("f8")
    save("ab_" + name, product)
# The product in bfloat16, rounded once.
save("ab_bf16_rounded", (a.astype(bfloat16).astype("f8") @ b.astype(bfloat16).astype("f8")).astype(bfloat16))
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

# Each spelling, and the type and byte order that `np.load` reads, or `refused`.
codes = ["e", "f", "d", "g", "f1", "f2", "f3", "f4", "f8", "f16", "h", "i", "i4", "u2", "c8", "F", "D", "?", "b1", "V1", "V2"]
codes += ["f02", "f04", "f008", "f016", "f0", "f00", "f04f", "e02", "d08", "i04", "c08", "V02"]
names = ["half", "single", "double", "longdouble", "float", "float16", "float32", "float64", "float128", "Float32"]
names += ["int32", "complex64", "bool", "f4,f4", "x4", "bfloat16", ""]
lines = []
for spelling in [order + name for name in codes + names for order in ["", "<", ">", "=", "|", "!"]]:
    for quoted in [prefix + repr(spelling) for prefix in ["", "u", "b"]]:
        header = "{'descr': %s, 'fortran_order': False, 'shape': (2, 3), }\n" % quoted
        file = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(256)
        try:
            dtype = np.load(io.BytesIO(file), allow_pickle=False).dtype
            # The name is known since ml_dtypes is imported.
            taken = "bfloat16" if dtype == bfloat16 else dtype.str
        except (TypeError, ValueError):
            taken = "refused"
        lines.append(quoted + " " + taken + "\n")
write("spellings.txt", "".join(lines).encode())

# Each header, and the shape that `np.load` reads, or `refused`; control characters as escapes.
before = "{'descr': '<f4', 'fortran_order': False, "
shapes = ["(3)", "((3))", "(3,)", "( 3 , )", "(3,,)", "(,)", "(2, 3)", "(2, 3,)", "((2, 3)", "(2 3)", "[2, 3]", "2, 3", "3", "(02, 3)"]
shapes += ["(2, 03)", "(00, 3)", "(0, 3)", "(00,)", "(02L, 3)", "(2L, 3L)", "(3L)", "(3L,)", "(2l, 3)", "(-2, 3)", "(2.0, 3)", "(2,\n3)"]
headers = [before + "'shape': " + shape + "}" for shape in shapes]
whole = before + "'shape': (2, 3)}"
headers += [whole + " # it's {", whole + "\n\n# x\n", "# x\n" + whole, "# x\r" + whole, "#" + whole, whole + "# x\n}"]
headers += [before + "# it's {x: \n'shape': (2, 3)}", before + "'shape': (2, # rows\r3)}", before + "'shape': (2, 3)#}\n}"]
headers += [before + "'shape': (2, 3)#}", before + "'shape' # x\n: # x\n(2, 3), # x\n}", before + "'shape#': (2, 3)}"]
headers += ["{'descr': '<f4#', 'fortran_order': False, 'shape': (2, 3)}", "{'descr': '#\n<f4', 'fortran_order': False, 'shape': (2, 3)}"]
headers += ["{'descr': '<f4'#'\n, 'fortran_order': False#x\n, 'shape': (2, 3)}", before + "'shape': (2, 3)}\v", "\f" + whole + "\f"]
lines = []
for header in headers:
    file = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(256)
    try:
        taken = ",".join(map(str, np.load(io.BytesIO(file), allow_pickle=False).shape))
    except Exception:
        taken = "refused"
    lines.append(taken + " " + header.encode("unicode_escape").decode() + "\n")
write("headers.txt", "".join(lines).encode())
