//! Files written by NumPy and `ml_dtypes`.

use host::npy::{Meaning, Vector};

use super::*;

#[test]
fn numpys_files_give_numpys_products() {
    let (folder, out) = Folder::with_out();
    let wanted = |name: &str| read::<f64>(numpys(name));
    for a in ["a_f4", "a_f4_fortran", "a_f4_big_endian", "a_f4_version_2", "a_f4_version_3"] {
        for b in ["b_f4", "b_f4_fortran"] {
            let c = multiplied::<f32>(&numpys(a), &numpys(b), &out, &[]);
            // Five products of numbers up to 1.
            is_near(&c, &wanted("ab_f4"), 5.0 * 8.0 * 2f64.powi(-24));
        }
    }
    let c = multiplied::<f32>(&numpys("a_f4_transposed"), &numpys("b_f4"), &out, &["--trans-a"]);
    is_near(&c, &wanted("ab_f4"), 3e-6);
    // B^T A^T is the transpose. Read column by column it is A B.
    let transposes = ["--trans-a", "--trans-b", "--out-order", "fortran"];
    let c = multiplied::<f32>(&numpys("b_f4"), &numpys("a_f4"), &out, &transposes);
    let header = *Reader::open("--a", Path::new(&out)).unwrap().header();
    assert_eq!((header.rows, header.cols, header.layout), (9, 7, Layout::ColMajor));
    let c = (0..63).map(|i| c[i % 9 * 7 + i / 9]).collect::<Vec<_>>();
    is_near(&c, &wanted("ab_f4"), 3e-6);

    for a in ["a_f2", "a_f2_big_endian"] {
        let c = multiplied::<f32>(&numpys(a), &numpys("b_f2"), &out, &[]);
        is_near(&c, &wanted("ab_f2"), 3e-6);
        assert_eq!(Reader::open("--a", Path::new(&out)).unwrap().header().dtype, Type::F32);
    }
    for a in ["a_f8", "a_f8_big_endian_fortran"] {
        let c = multiplied::<f64>(&numpys(a), &numpys("b_f8"), &out, &[]);
        is_near(&c, &wanted("ab_f8"), 1e-14);
        assert_eq!(Reader::open("--a", Path::new(&out)).unwrap().header().dtype, Type::F64);
    }
    // If one operand has float64, everything is computed in float64.
    multiplied::<f64>(&numpys("a_f4"), &numpys("b_f8"), &out, &[]);
    assert_eq!(folder.files(), ["o.npy"]);
}

#[test]
fn every_type_and_order_of_a_result() {
    let (_folder, out) = Folder::with_out();
    let (a, b) = (numpys("a_f8"), numpys("b_f8"));
    let double = multiplied::<f64>(&a, &b, &out, &[]);
    for (name, dtype) in [("f2", Type::F16), ("f4", Type::F32), ("f8", Type::F64)] {
        for (order, layout) in [("c", Layout::RowMajor), ("fortran", Layout::ColMajor)] {
            let c = multiplied::<f64>(&a, &b, &out, &["--out-type", name, "--out-order", order]);
            let header = *Reader::open("--a", Path::new(&out)).unwrap().header();
            assert_eq!((header.dtype, header.layout), (dtype, layout));
            let rounded = double.iter().map(|&x| dtype.format().nearest(x));
            assert_eq!(c, rounded.collect::<Vec<_>>(), "{name} {order}");
        }
    }
    let (_, stdout, _) = finish(gemm(&a, &b, &out, &["--out-type", "f2"]));
    assert!(
        stdout.starts_with("C = A B: 7 x 9, k 5   computed in f64, rounded to f2\n"),
        "{stdout}"
    );
}

/// A file of bfloat16, row by row.
fn read_bf16(path: impl AsRef<Path>) -> Vec<f64> {
    let meaning = Meaning { bf16: true, ..Meaning::default() };
    let reader = Reader::open_as("--a", path.as_ref(), meaning).unwrap();
    let Header { rows, cols, dtype, .. } = *reader.header();
    assert_eq!(dtype, Type::BF16);
    let mut values = vec![0.0; rows * cols];
    reader.read(0..rows, 0..cols, Layout::RowMajor, &mut values).unwrap();
    values
}

#[test]
fn bfloat16_in_and_out() {
    let (folder, out) = Folder::with_out();
    let b = numpys("b_bf16");
    let wanted = read::<f64>(numpys("ab_bf16"));
    for name in ["a_bf16", "a_bf16_again", "a_bf16_fortran", "a_bf16_big_endian"] {
        let a = numpys(name);
        // The type is not in the file.
        let words = ["V2': two raw bytes", "--type bf16"];
        fails(gemm(&a, &b, &out, &[]), 2, &words);
        assert!(folder.files().is_empty());

        let stdout = prints(gemm(&a, &b, &out, &["--type", "bf16"]));
        let first = "C = A B: 7 x 9, k 5   computed in f32, rounded to bf16\n";
        assert!(stdout.starts_with(first) && stdout.contains("\nverified "), "{stdout}");
        // The bytes are those of ml_dtypes, except where the float32 sum rounds to another number
        // than the float64 sum.
        let (got, rounded) =
            (fs::read(&out).unwrap(), fs::read(numpys("ab_bf16_rounded")).unwrap());
        assert!(got[..128] == rounded[..128], "the header");
        let near = wanted.iter().zip(read_bf16(&out)).all(|(wanted, got)| {
            let off = [-3e-6, 3e-6].map(|off| (wanted + off).to_bf16().to_f64());
            (off[0]..=off[1]).contains(&got)
        });
        assert!(near, "{name}");
        let float32 = ["--type", "bf16", "--out-type", "f4"];
        is_near(&multiplied::<f32>(&a, &b, &out, &float32), &wanted, 3e-6);
        fs::remove_file(&out).unwrap();
    }
    // As the old C, and combined with other types.
    let (c, type_) = (numpys("ab_bf16_rounded"), ["--type", "bf16", "--out-type", "f4"]);
    let sum = multiplied::<f32>(
        &numpys("a_f4"),
        &numpys("b_f4"),
        &out,
        &[&type_[..], &["--c", &c]].concat(),
    );
    let parts = read::<f64>(numpys("ab_f4")).into_iter().zip(read_bf16(&c));
    is_near(&sum, &parts.map(|(x, y)| x + y).collect::<Vec<_>>(), 3e-6);
    // Only the output.
    let (a, b) = (numpys("a_f4"), numpys("b_f4"));
    let (_, object) = bits(gemm(&a, &b, &out, &["--out-type", "bf16", "--json"]), &out);
    assert_eq!((&object["out_type"], &object["verified"]), (&"bf16".into(), &true.into()));
    assert_eq!(object["write_bytes"], 2 * 63);
    let wanted = multiplied::<f32>(&a, &b, &folder.text("p.npy"), &[]);
    let wanted = wanted.iter().map(|x| x.to_bf16().to_f64()).collect::<Vec<_>>();
    assert_eq!(read_bf16(&out), wanted);
    // Without a file to which it could apply.
    fs::remove_file(&out).unwrap();
    fails(
        gemm(&a, &b, &out, &["--type", "bf16"]),
        2,
        &["--type = bf16: no operand", "--out-type bf16"],
    );
    assert_eq!(folder.files(), ["p.npy"]);
}

#[test]
fn a_vector_is_a_row_as_a_and_a_column_as_b() {
    let (_folder, out) = Folder::with_out();
    let x = numpys("one_dimension");
    let size = || {
        let header = *Reader::open("--a", Path::new(&out)).unwrap().header();
        (header.rows, header.cols)
    };
    let values = |name: &str, vector| {
        let meaning = Meaning { vector: Some(vector), ..Meaning::default() };
        let reader = Reader::open_as("--a", Path::new(&numpys(name)), meaning).unwrap();
        let Header { rows, cols, .. } = *reader.header();
        let mut values = vec![0.0; rows * cols];
        reader.read(0..rows, 0..cols, Layout::RowMajor, &mut values).unwrap();
        values
    };
    let row = values("ab_f4_row", Vector::Row);
    is_near(&multiplied::<f32>(&x, &numpys("b_f4"), &out, &[]), &row, 3e-6);
    assert_eq!(size(), (1, 9));
    // The old C may have one dimension: a row or a column, as C.
    let double = ["--c", &numpys("ab_f4_row")];
    let twice = row.iter().map(|x| 2.0 * x).collect::<Vec<_>>();
    is_near(&multiplied::<f64>(&x, &numpys("b_f4"), &out, &double), &twice, 1e-14);
    let column = values("aa_f4_column", Vector::Column);
    is_near(&multiplied::<f32>(&numpys("a_f4"), &x, &out, &[]), &column, 3e-6);
    assert_eq!(size(), (7, 1));
    let double = ["--c", &numpys("aa_f4_column")];
    let twice = column.iter().map(|x| 2.0 * x).collect::<Vec<_>>();
    is_near(&multiplied::<f64>(&numpys("a_f4"), &x, &out, &double), &twice, 1e-14);
    // The scalar product, and with both transposed all products.
    let x_values = values("one_dimension", Vector::Row);
    let square = x_values.iter().map(|x| x * x).sum::<f64>();
    is_near(&multiplied::<f32>(&x, &x, &out, &[]), &[square], 3e-6);
    let all = multiplied::<f32>(&x, &x, &out, &["--trans-a", "--trans-b"]);
    let wanted = x_values.iter().flat_map(|x| x_values.iter().map(move |y| x * y));
    is_near(&all, &wanted.collect::<Vec<_>>(), 1e-6);
    // A vector of the wrong length.
    let words = ["--b = ", "one_dimension.npy (5 x 1): must have 7 rows"];
    fails(gemm(&numpys("a_f4"), &x, &out, &["--trans-a"]), 2, &words);
    let words = ["--c = ", "one_dimension.npy (5 x 1): must be 7 x 9"];
    fails(gemm(&numpys("a_f4"), &numpys("b_f4"), &out, &["--c", &x]), 2, &words);
}

#[test]
fn bytes_behind_the_data_are_ignored_with_a_warning() {
    let (folder, out) = Folder::with_out();
    let (a, b) = (numpys("a_f4_and_more"), numpys("b_f4"));
    let wanted = multiplied::<f32>(&numpys("a_f4"), &b, &out, &[]);
    let warning = format!("warning: {a}: bytes behind the data are ignored: 308\n");
    for more in [&[][..], &["--plan"], &["--json"]] {
        let (code, _, stderr) = finish(gemm(&a, &b, &out, more));
        assert_eq!((code, stderr), (0, warning.clone()), "{more:?}");
    }
    assert_eq!(read::<f32>(&out), wanted);
    // Also in the old C.
    let c = folder.text("c.npy");
    fs::write(&c, [&fs::read(numpys("c_f4")).unwrap()[..], b"x"].concat()).unwrap();
    let (code, _, stderr) = finish(gemm(&a, &b, &out, &["--c", &c]));
    let both = format!("{warning}warning: {c}: bytes behind the data are ignored: 1\n");
    assert_eq!((code, stderr), (0, both));
}
