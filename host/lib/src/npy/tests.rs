//! Files of NumPy's, what is refused, and bytes that nobody has meant.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

use super::*;
use crate::{Error, Layout, Type};

const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColMajor];

/// A file that NumPy wrote (`tests/data/npy/make.py`).
fn numpys(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/npy").join(name).with_extension("npy")
}

/// All of a file, row by row.
fn all<T: Element>(reader: &Reader) -> Vec<T> {
    let Header { rows, cols, .. } = *reader.header();
    let mut values = vec![T::default(); rows * cols];
    reader.read(0..rows, 0..cols, Layout::RowMajor, &mut values).unwrap();
    values
}

/// A place for a file, as long as the folder is kept.
fn place(name: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    (folder, path)
}

fn numpys_values(name: &str) -> Vec<f64> {
    all(&Reader::open("--a", &numpys(name)).unwrap())
}

#[test]
fn numpys_files_are_read() {
    let doubles = numpys_values("a_f8");
    assert_eq!(numpys_values("a_f8_big_endian_fortran"), doubles);
    let singles = doubles.iter().map(|&x| f64::from(x as f32)).collect::<Vec<_>>();
    for name in ["a_f4", "a_f4_fortran", "a_f4_big_endian", "a_f4_version_2", "a_f4_version_3"] {
        let reader = Reader::open("--a", &numpys(name)).unwrap();
        let Header { dtype, rows, cols, layout, big_endian, .. } = *reader.header();
        assert_eq!((dtype, rows, cols), (Type::F32, 7, 5), "{name}");
        assert_eq!(layout == Layout::ColMajor, name.ends_with("fortran"), "{name}");
        assert_eq!(big_endian, name.ends_with("endian"), "{name}");
        assert_eq!(all::<f64>(&reader), singles, "{name}");
        assert_eq!(all::<f32>(&reader), singles.iter().map(|&x| x as f32).collect::<Vec<_>>());
    }
    let transposed = Reader::open("--a", &numpys("a_f4_transposed")).unwrap();
    assert_eq!((transposed.header().rows, transposed.header().cols), (5, 7));
    assert_eq!(transposed.header().layout, Layout::ColMajor);
    let halves = doubles.iter().map(|&x| x.to_f16().to_f64()).collect::<Vec<_>>();
    assert_eq!(numpys_values("a_f2"), halves);
    assert_eq!(numpys_values("a_f2_big_endian"), halves);
    assert_eq!(numpys_values("empty"), []);
}

#[test]
fn spellings_of_types_are_numpys() {
    let (_folder, path) = place("x.npy");
    let spellings = numpys("spellings").with_extension("txt");
    let (mut floats, mut others) = (0, 0);
    for line in fs::read_to_string(spellings).unwrap().lines() {
        let (spelling, numpy) = line.rsplit_once(' ').unwrap();
        let header = format!("{{'descr': {spelling}, 'fortran_order': False, 'shape': (2, 3)}}");
        fs::write(&path, file(&header, 48)).unwrap();
        let dtype = match &numpy[1..] {
            "f2" => Some(Type::F16),
            "f4" => Some(Type::F32),
            "f8" => Some(Type::F64),
            "float16" if numpy.starts_with('b') => Some(Type::BF16),
            _ => None,
        };
        match (Reader::open("--a", &path), dtype) {
            (Ok(reader), Some(dtype)) => {
                let Header { dtype: read, big_endian, .. } = *reader.header();
                assert_eq!((read, big_endian), (dtype, numpy.starts_with('>')), "{line}");
                floats += 1;
            }
            (Err(Error::File { what, .. }), None) => {
                assert!(what.starts_with("descr = "), "{line}: {what}");
                others += 1;
            }
            (read, _) => panic!("{line}: {read:?}"),
        }
    }
    // Six codes and three with zeros in five byte orders, seven names and that of `ml_dtypes`, each
    // with and without `u`.
    assert_eq!((floats, others > 400), (2 * ((6 + 3) * 5 + 7 + 1), true));
}

#[test]
fn headers_are_taken_where_numpy_takes_them() {
    let headers = fs::read_to_string(numpys("headers").with_extension("txt")).unwrap();
    let escapes = [("\\n", "\n"), ("\\r", "\r"), ("\\x0b", "\x0b"), ("\\x0c", "\x0c")];
    let (_folder, path) = place("x.npy");
    let (mut taken, mut refused) = (0, 0);
    for line in headers.lines() {
        let (shape, header) = line.split_once(' ').unwrap();
        let header =
            escapes.iter().fold(header.to_owned(), |header, (from, to)| header.replace(from, to));
        assert!(!header.contains('\\'), "{line}");
        // `refused` is no number.
        let shape = shape.split(',').map(|size| size.parse().ok()).collect::<Option<Vec<usize>>>();
        fs::write(&path, file(&header, 24)).unwrap();
        let meaning = Meaning { vector: Some(Vector::Row), ..Meaning::default() };
        match (Reader::open_as("--a", &path, meaning), shape) {
            (Ok(reader), Some(shape)) => {
                let Header { rows, cols, .. } = *reader.header();
                let wanted = if let [len] = shape[..] { vec![1, len] } else { shape };
                assert_eq!([rows, cols][..], wanted[..], "{header}");
                taken += 1;
            }
            (Err(Error::File { what, .. }), None) => {
                let field =
                    ["shape = ", "header = ", "descr = "].iter().any(|f| what.starts_with(f));
                assert!(field && !what.contains(|c: char| c.is_control()), "{header}: {what}");
                refused += 1;
            }
            (read, numpy) => panic!("{header}: {read:?}, and NumPy: {numpy:?}"),
        }
    }
    assert!(taken > 15 && refused > 15, "{taken} {refused}");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}";
    let message = self::refused(&file(header, 24));
    assert_eq!(message, "shape = (3): must be a tuple: of one dimension (3,)");
}

const BF16: Meaning = Meaning { vector: None, bf16: true };

#[test]
fn bfloat16_is_two_raw_bytes_where_that_is_said() {
    let nearest = |x: &f64| x.to_bf16().to_f64();
    let wanted = numpys_values("a_f8").iter().map(nearest).collect::<Vec<_>>();
    for name in ["a_bf16", "a_bf16_again", "a_bf16_fortran", "a_bf16_big_endian"] {
        let reader = Reader::open_as("--a", &numpys(name), BF16).unwrap();
        assert_eq!(reader.header().dtype, Type::BF16);
        assert_eq!(all::<f64>(&reader), wanted, "{name}");
        assert_eq!(all::<f32>(&reader), wanted.iter().map(|&x| x as f32).collect::<Vec<_>>());
        let message = refused(&fs::read(numpys(name)).unwrap());
        assert!(message.starts_with("descr = '"), "{message}");
        let advice = "V2': two raw bytes, which is how ml_dtypes writes bfloat16: if they are that, \
                      say so by --type bf16 (in a program by Meaning::bf16)";
        assert!(message.ends_with(advice), "{message}");
    }
    // It says nothing of other types.
    let reader = Reader::open_as("--a", &numpys("a_f2"), BF16).unwrap();
    assert_eq!(reader.header().dtype, Type::F16);
}

#[test]
fn a_vector_is_the_matrix_that_it_is_meant_as() {
    let first = &numpys_values("a_f4")[..5];
    for (vector, size) in [(Vector::Row, (1, 5)), (Vector::Column, (5, 1))] {
        let meaning = Meaning { vector: Some(vector), ..Meaning::default() };
        let reader = Reader::open_as("--a", &numpys("one_dimension"), meaning).unwrap();
        assert_eq!((reader.header().rows, reader.header().cols), size);
        assert_eq!(all::<f64>(&reader), first);
        // Of another number of dimensions it says nothing.
        let reader = Reader::open_as("--a", &numpys("a_f4"), meaning).unwrap();
        assert_eq!((reader.header().rows, reader.header().cols), (7, 5));
        for name in ["no_dimension", "three_dimensions"] {
            let error = Reader::open_as("--a", &numpys(name), meaning).unwrap_err().to_string();
            assert!(error.contains(": must be two numbers"), "{error}");
        }
    }
}

#[test]
fn bytes_behind_the_data_are_counted_and_ignored() {
    let reader = Reader::open("--a", &numpys("a_f4_and_more")).unwrap();
    assert_eq!(reader.surplus_bytes(), fs::metadata(numpys("b_f4")).unwrap().len());
    let first = Reader::open("--a", &numpys("a_f4")).unwrap();
    assert_eq!((all::<f32>(&reader), reader.header()), (all(&first), first.header()));
    assert_eq!(first.surplus_bytes(), 0);
}

#[test]
fn every_block_is_the_same_part_of_the_whole() {
    let (_folder, path) = place("x.npy");
    let (rows, cols) = (5, 7);
    let values = (0..rows * cols).map(|i| i as f32).collect::<Vec<_>>();
    let part = |r: &std::ops::Range<usize>, c: &std::ops::Range<usize>, layout| {
        let at = |row: usize, col: usize| values[row * cols + col];
        match layout {
            Layout::RowMajor => {
                r.clone().flat_map(|row| c.clone().map(move |col| at(row, col))).collect()
            }
            Layout::ColMajor => {
                c.clone().flat_map(|col| r.clone().map(move |row| at(row, col))).collect::<Vec<_>>()
            }
        }
    };
    for order in LAYOUTS {
        for layout in LAYOUTS {
            let mut writer = Writer::create("--out", &path, rows, cols, Type::F32, order).unwrap();
            for (r, c) in [(0..2, 0..7), (2..5, 0..3), (2..4, 3..7), (4..5, 3..7), (1..1, 2..5)] {
                writer.write(r.clone(), c.clone(), layout, &part(&r, &c, layout)).unwrap();
            }
            writer.finish().unwrap();
            let reader = Reader::open("--a", &path).unwrap();
            assert_eq!(reader.header().layout, order);
            for (r, c) in [(0..5, 0..7), (1..4, 2..6), (3..4, 0..7), (0..5, 6..7), (5..5, 7..7)] {
                let mut read = vec![0f32; r.len() * c.len()];
                reader.read(r.clone(), c.clone(), layout, &mut read).unwrap();
                assert_eq!(read, part(&r, &c, layout), "{order:?} {layout:?} {r:?} {c:?}");
            }
        }
    }
}

#[test]
fn what_is_written_is_what_numpy_writes() {
    let (_folder, path) = place("x.npy");
    let names = "a_f4 a_f4_fortran a_f8 a_f2 a_bf16 a_bf16_fortran b_f4_fortran empty";
    for name in names.split(' ') {
        let reader = Reader::open_as("--a", &numpys(name), BF16).unwrap();
        let Header { dtype, rows, cols, layout, .. } = *reader.header();
        let mut writer = Writer::create("--out", &path, rows, cols, dtype, layout).unwrap();
        writer.write(0..rows, 0..cols, Layout::RowMajor, &all::<f64>(&reader)).unwrap();
        assert_eq!(all::<f64>(&writer.reader().unwrap()), all::<f64>(&reader));
        writer.finish().unwrap();
        assert!(fs::read(&path).unwrap() == fs::read(numpys(name)).unwrap(), "{name}");
    }
}

/// The message for a file of these bytes.
fn refused(bytes: &[u8]) -> String {
    let (_folder, path) = place("bad.npy");
    fs::write(&path, bytes).unwrap();
    match Reader::open("--a", &path) {
        Err(error @ Error::File { .. }) => {
            let message = error.to_string();
            message.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
        }
        other => panic!("{other:?} for {}", bytes.escape_ascii()),
    }
}

/// A file of version 2.0 with that header and so many bytes.
fn file(header: &str, data: usize) -> Vec<u8> {
    let len = (header.len() as u32).to_le_bytes();
    [b"\x93NUMPY\x02\x00", &len[..], header.as_bytes(), &vec![0; data]].concat()
}

#[test]
fn what_is_no_matrix_of_floats_is_refused_by_its_field() {
    for (name, start, word) in [
        ("one_dimension", "shape = (5,): must be two numbers", "1 dimensions"),
        ("no_dimension", "shape = (): ", "0 dimensions"),
        ("three_dimensions", "shape = (2, 2, 2): ", "3 dimensions"),
        ("integers", "descr = '<i8': integers: must be floats", "such as '<f2', '<f4' or '<f8'"),
        ("complex", "descr = '<c8': complex numbers", "must be"),
        ("truth", "descr = '|b1': truth values", "must be"),
        ("text", "descr = '<U2': text", "must be"),
        ("structure", "descr = [('x, y', '<f4'), ('z', '<f4', (2,))]: a structure", "must be"),
        ("objects", "descr = '|O': objects, which Python alone can read", "must be"),
    ] {
        let message = refused(&fs::read(numpys(name)).unwrap());
        assert!(message.starts_with(start) && message.contains(word), "{name}: {message}");
    }
    let header = |descr: &str, order: &str, shape: &str| {
        file(&format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}"), 24)
    };
    for (bytes, start) in [
        (header("'<f16'", "False", "(2, 3)"), "descr = '<f16': floats of another kind"),
        (header("'<float32'", "False", "(2, 3)"), "descr = '<float32': floats of another kind"),
        (header("'|V4'", "False", "(2, 3)"), "descr = '|V4': raw bytes"),
        (header("7", "False", "(2, 3)"), "descr = 7: no type"),
        (header("'<f4'", "0", "(2, 3)"), "fortran_order = 0: must be True or False"),
        (header("'<f4'", "False", "(2, -3)"), "shape = (2, -3): must be whole numbers"),
        (header("'<f4'", "False", "(2, 3e0)"), "shape = (2, 3e0): must be whole numbers"),
        (header("'<f4'", "False", "[2, 3]"), "shape = [2, 3]: must be two numbers"),
        (
            header("'<f4'", "False", "(99999999999999999999, 3)"),
            "shape = (99999999999999999999, 3): no file",
        ),
        (
            header("'<f4'", "False", "(4294967295, 4294967295)"),
            "shape = (4294967295, 4294967295): no file",
        ),
        (
            header("'<f4'", "False", "(9999999999, 1)"),
            "data = 24 bytes: truncated: 9999999999 x 1 elements of f4 have 39999999996",
        ),
        (
            header("'<f8'", "False", "(2, 3)"),
            "data = 24 bytes: truncated: 2 x 3 elements of f8 have 48",
        ),
        (header("'<f4'", "False", "(2, 3), 'shape': (2, 3)"), "shape = (2, 3): must be there once"),
        (header("'<f4'", "False", "(2, 3), 'more': 1"), "header = more: must have descr"),
        (
            file("{'descr': '<f4', 'shape': (2, 3)}", 24),
            "header = {'descr': '<f4', 'shape': (2, 3)}: must have fortran_order",
        ),
        (file("{'descr': '<f4'", 24), "header = {'descr': '<f4': must be a dictionary"),
        (file("{'descr: '<f4'}", 24), "header = "),
        (file(&"[".repeat(60000), 24), "header = ["),
        (file(&format!("{{{}", "'".repeat(60000)), 24), "header = {'"),
        (file(&" ".repeat(70000), 24), "header length = 70000: must be at most 65536"),
        (b"\x93NUMPY\x04\x00\x00\x00\x00\x00".to_vec(), "version = 4.0: must be 1.0, 2.0 or 3.0"),
        (b"\x93NUMPY\x01".to_vec(), "file = 7 bytes: ends within its header"),
        (
            b"\x93NUMPY\x01\x00\x76\x00{'de".to_vec(),
            "file = 14 bytes: ends within its header, which says that it has 128",
        ),
        (b"PK\x03\x04 an archive".to_vec(), "magic = \"PK\\x03\\x04 a\": must be \"\\x93NUMPY\""),
        (vec![], "magic = \"\": "),
    ] {
        let message = refused(&bytes);
        assert!(message.starts_with(start), "{message}");
        assert!(message.len() < 300, "{message}");
    }
    // Python 2 wrote long integers so.
    let (_folder, path) = place("old.npy");
    fs::write(&path, header("'<f4'", "False", "(2L, 3L)")).unwrap();
    assert_eq!(all::<f32>(&Reader::open("--a", &path).unwrap()), [0.0; 6]);
}

#[test]
fn no_bytes_make_it_panic() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let (_folder, path) = place("bad.npy");
    let (mut taken, mut refused) = (0, 0);
    for name in
        ["a_f4", "a_f2_big_endian", "a_f8_big_endian_fortran", "a_f4_version_2", "structure"]
    {
        let good = fs::read(numpys(name)).unwrap();
        for round in 0..400 {
            let mut bytes = good.clone();
            match round % 4 {
                0 => bytes.truncate(rng.random_range(0..good.len())),
                1 => bytes.extend((0..rng.random_range(1..20)).map(|_| rng.next_u32() as u8)),
                // What stands in the header, elsewhere in it.
                2 => {
                    let [from, to] = [0; 2].map(|_| rng.random_range(8..128 - 16));
                    bytes.copy_within(from..from + rng.random_range(1..16), to);
                }
                _ => {}
            }
            if round % 4 > 1 {
                for _ in 0..rng.random_range(1..4) {
                    let place = rng.random_range(0..bytes.len().min(140));
                    let specials = b"{}[]()'\",: \n\\0123456789<>|fTL\x00\xff";
                    bytes[place] = match rng.random() {
                        true => specials[rng.random_range(0..specials.len())],
                        false => rng.next_u32() as u8,
                    };
                }
            }
            fs::write(&path, &bytes).unwrap();
            match Reader::open("--a", &path) {
                Ok(reader) => {
                    all::<f64>(&reader);
                    taken += 1;
                }
                Err(Error::File { file, what }) => {
                    assert!(file == path.display().to_string() && what.contains(" = "), "{what}");
                    assert!(!what.contains(|c: char| c.is_control()), "{what:?}");
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    // A sign of a number that still has so many elements, a copied space: a few are files still.
    assert!(taken > 5 && refused > 1000, "{taken} {refused}");
}

#[test]
fn a_file_that_shrinks_is_an_error() {
    let (_folder, path) = place("x.npy");
    fs::copy(numpys("a_f4"), &path).unwrap();
    let reader = Reader::open("--a", &path).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(150).unwrap();
    let error = reader.read(0..7, 0..5, Layout::RowMajor, &mut [0f32; 35]).unwrap_err().to_string();
    assert!(error.contains("data = 140 bytes from 128 on: cannot be read"), "{error}");
}

#[test]
fn what_cannot_be_done_names_its_argument() {
    let (folder, missing) = place("missing.npy");
    let message = Reader::open("--a", &missing).unwrap_err().to_string();
    let start = format!("--a = {}: cannot be read: ", missing.display());
    assert!(message.starts_with(&start), "{message}");
    let message = Reader::open("--b", folder.path()).unwrap_err().to_string();
    assert!(
        message.starts_with("--b = ") && message.ends_with(": is no file but a folder"),
        "{message}"
    );

    let reader = Reader::open("--a", &numpys("a_f8")).unwrap();
    let message = reader.read(0..1, 0..1, Layout::RowMajor, &mut [0f32]).unwrap_err().to_string();
    assert!(
        message.ends_with(
            "a_f8.npy: descr = f8: must be at most f4, or its elements would be rounded"
        ),
        "{message}"
    );
    let message = |rows, cols, len| {
        reader.read(rows, cols, Layout::RowMajor, &mut vec![0f64; len]).unwrap_err().to_string()
    };
    assert_eq!(message(0..8, 0..5, 40), "rows = 0..8: the matrix has 7");
    assert_eq!(message(0..7, 3..6, 21), "cols = 3..6: the matrix has 5");
    assert_eq!(message(0..7, 0..5, 34), "values.len() = 34: must be 7 x 5");

    let create = |path: &Path, rows, cols| {
        Writer::create("--out", path, rows, cols, Type::F32, Layout::RowMajor).map(drop)
    };
    let message = create(&folder.path().join("no/folder.npy"), 2, 3).unwrap_err().to_string();
    let end = format!(
        "no/folder.npy: cannot be written: there is no folder {}",
        folder.path().join("no").display()
    );
    assert!(message.starts_with("--out = ") && message.ends_with(&end), "{message}");
    let message = create(&missing, usize::MAX, 3).unwrap_err().to_string();
    assert!(message.starts_with("rows * cols = "), "{message}");
}

#[test]
fn a_file_is_there_when_all_of_it_is() {
    let (folder, path) = place("x.npy");
    let create = || Writer::create("--out", &path, 1, 2, Type::F32, Layout::RowMajor).unwrap();
    drop(create());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    fs::write(&path, "before").unwrap();
    let mut writer = create();
    writer.write(0..1, 0..2, Layout::RowMajor, &[1f32, 2.0]).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"before");
    writer.finish().unwrap();
    assert_eq!(all::<f32>(&Reader::open("--a", &path).unwrap()), [1.0, 2.0]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_type_that_is_not_multiplied_is_not_written() {
    let (_folder, path) = place("c.npy");
    let error = Writer::create("--out", &path, 1, 1, Type::U8, Layout::RowMajor).unwrap_err();
    assert_eq!(error.to_string(), "dtype = u8: must be one of f4, f8, bf16, f2");
    assert!(!path.exists());
}

#[test]
fn too_large_values_are_counted() {
    let (_folder, path) = place("x.npy");
    let mut writer = Writer::create("--out", &path, 2, 2, Type::F16, Layout::RowMajor).unwrap();
    writer.write(0..2, 0..2, Layout::ColMajor, &[1f32, 1e5, 2.0, -1e6]).unwrap();
    assert_eq!(writer.overflows(), 2);
    assert_eq!(all::<f32>(&writer.reader().unwrap()), [1.0, 2.0, f32::INFINITY, -f32::INFINITY]);
}
