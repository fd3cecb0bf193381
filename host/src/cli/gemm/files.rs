//! The operands' files, and the check that they fit together.

use host::{
    Error, Shape, Type,
    blocks::{Source, Transposed},
    npy::{self, Header, Meaning, Reader, Vector},
};

use crate::cli::{args::Gemm, note};

/// The operands of a product of files.
pub(super) struct Files {
    a: Operand,
    b: Operand,
    /// The old C, also if it is not read.
    c: Option<Operand>,
    pub(super) shape: Shape,
    /// The type of the computation.
    pub(super) dtype: Type,
}

/// A file, and whether it is transposed.
struct Operand {
    reader: Reader,
    transposed: bool,
}

impl Operand {
    fn open(
        flag: &str,
        path: &std::path::Path,
        vector: Vector,
        transposed: bool,
        args: &Gemm,
    ) -> Result<Self, Error> {
        let meaning = Meaning { vector: Some(vector), bf16: args.raw_type.is_some() };
        Ok(Operand { reader: Reader::open_as(flag, path, meaning)?, transposed })
    }

    /// Rows and columns of the operand.
    fn size(&self) -> [usize; 2] {
        let Header { rows, cols, .. } = *self.reader.header();
        if self.transposed { [cols, rows] } else { [rows, cols] }
    }

    /// `a.npy (2 x 3)`, `a.npy transposed (3 x 2)`.
    fn described(&self) -> String {
        let [rows, cols] = self.size();
        let how = if self.transposed { " transposed" } else { "" };
        format!("{}{how} ({rows} x {cols})", self.reader.path().display())
    }
}

impl Files {
    /// Opens the files and compares their sizes.
    pub(super) fn open(args: &Gemm) -> Result<Self, Error> {
        let a = Operand::open("--a", &args.a, Vector::Row, args.trans_a, args)?;
        let b = Operand::open("--b", &args.b, Vector::Column, args.trans_b, args)?;
        let ([m, k], [inner, n]) = (a.size(), b.size());
        let vector = if m == 1 { Vector::Row } else { Vector::Column };
        let c =
            args.c.as_ref().map(|c| Operand::open("--c", c, vector, false, args)).transpose()?;
        if inner != k {
            let limit = format!("must have {k} rows, as many as --a {} has columns", a.described());
            return Err(Error::argument("--b", b.described(), limit));
        }
        if let Some(c) = &c
            && c.size() != [m, n]
        {
            let limit =
                format!("must be {m} x {n} for --a {} and --b {}", a.described(), b.described());
            return Err(Error::argument("--c", c.described(), limit));
        }
        if c.is_none() && args.beta() != 0.0 {
            return Err(Error::argument("--beta", args.beta(), "must be 0 without --c"));
        }
        let shape = Shape::new(m as u64, n as u64, k as u64)?;
        let readers = [Some(&a), Some(&b), c.as_ref()].into_iter().flatten();
        let readers = readers.map(|operand| &operand.reader).collect::<Vec<_>>();
        let dtypes = || readers.iter().map(|reader| reader.header().dtype);
        if let Some(raw_type) = args.raw_type
            && dtypes().all(|dtype| dtype != Type::BF16)
        {
            let limit = "no operand has two raw bytes an element, which it is for; --out-type bf16 rounds C to it";
            return Err(Error::argument("--type", npy::name(raw_type), limit));
        }
        for reader in &readers {
            let (bytes, path) = (reader.surplus_bytes(), reader.path().display());
            if bytes > 0 {
                note(format_args!("warning: {path}: bytes behind the data are ignored: {bytes}"));
            }
        }
        let dtype = npy::computed(dtypes());
        Ok(Files { a, b, c, shape, dtype })
    }

    /// Bytes of an element in A's, B's and C's file.
    pub(super) fn element_bytes(&self) -> [usize; 3] {
        let bytes = |operand: &Operand| operand.reader.header().dtype.bytes();
        [bytes(&self.a), bytes(&self.b), self.c.as_ref().map_or(0, bytes)]
    }

    /// Calls `work` with the operands as sources.
    pub(super) fn with_sources<T, R>(&self, work: impl FnOnce(Sources<T>) -> R) -> R
    where
        Reader: Source<T>,
    {
        let [a, b] = [&self.a.reader, &self.b.reader].map(|reader| reader as &dyn Source<T>);
        let [a_transposed, b_transposed] = [Transposed(a), Transposed(b)];
        work(Sources {
            a: if self.a.transposed { &a_transposed } else { a },
            b: if self.b.transposed { &b_transposed } else { b },
            c: self.c.as_ref().map(|c| &c.reader as &dyn Source<T>),
        })
    }
}

/// op(A), op(B) and the old C.
pub(super) struct Sources<'a, T> {
    pub(super) a: &'a dyn Source<T>,
    pub(super) b: &'a dyn Source<T>,
    pub(super) c: Option<&'a dyn Source<T>>,
}
