//! The table of element types: [`element_types!`](crate::element_types).
//!
//! A row has all that is written of a type: its name, its number format, and its codes in NumPy,
//! DLPack, TMA and cuBLAS. Whatever lists types reads this table. [`Typed`] has a type's row at
//! compile time, [`Type`] at run time. [`with_types!`](crate::with_types) leads from the latter to
//! the former.

mod number_format;

use core::{
    any::TypeId,
    fmt,
    hash::{Hash, Hasher},
};

pub use self::number_format::NumberFormat;
use crate::Element;

/// The table: calls a macro with what it is given and all rows. A row has, in this order:
///
/// * its constant of [`Type`], the Rust type, and the name;
/// * its [`NumberFormat`];
/// * NumPy's code without a byte order, and NumPy's name. (`bfloat16` is of the package
///   `ml_dtypes`; to NumPy it is two raw bytes);
/// * DLPack's `DLDataTypeCode`;
/// * TMA's `CUtensorMapDataType`. TMA copies bits, and knows the kind of numbers for reductions
///   alone: so a signed number may have the code of an unsigned one;
/// * cuBLAS's `cudaDataType`;
/// * if products are computed of it: the type of their sums, and the types that C may have. Further
///   pairs are of a C that the sums are converted to: to what type, and what C is then rounded to.
#[doc(hidden)]
#[macro_export]
macro_rules! element_types {
    ([$($callback:tt)+] $given:tt) => {
        $($callback)+! { $given
            U8:   u8           = "u8"   unsigned(8)   "u1" "uint8"    1 0 8;
            U16:  u16          = "u16"  unsigned(16)  "u2" "uint16"   1 1 22;
            I16:  i16          = "i16"  signed(16)    "i2" "int16"    0 1 20;
            U32:  u32          = "u32"  unsigned(32)  "u4" "uint32"   1 2 12;
            I32:  i32          = "i32"  signed(32)    "i4" "int32"    0 3 10;
            U64:  u64          = "u64"  unsigned(64)  "u8" "uint64"   1 4 26;
            I64:  i64          = "i64"  signed(64)    "i8" "int64"    0 5 24;
            F32:  f32          = "f32"  float(8, 23)  "f4" "float32"  2 7 0,  f32 => [f32];
            F64:  f64          = "f64"  float(11, 52) "f8" "float64"  2 8 1,  f64 => [f64];
            BF16: $crate::Bf16 = "bf16" float(8, 7)   "V2" "bfloat16" 4 1 14, f32 => [$crate::Bf16, f32];
            F16:  $crate::F16  = "f16"  float(5, 10)  "f2" "float16"  2 1 2,  f32 => [$crate::F16, f32];
            E4M3: $crate::E4m3 = "e4m3" float8(4, 3)  "V1" "float8_e4m3fn" 10 0 28, f32 => [f32, $crate::Bf16, $crate::F16];
            E5M2: $crate::E5m2 = "e5m2" float8(5, 2)  "f1" "float8_e5m2"   12 0 29, f32 => [f32, $crate::Bf16, $crate::F16];
            I8:   i8           = "i8"   signed(8)     "i1" "int8"     0 0 3,  i32 => [i32], f32 => [f32, $crate::Bf16, $crate::F16];
        }
    };
}

/// Implements [`Typed`] and [`MultipliesTo`] for the Rust types of rows. A row must fit its type:
/// this is checked at compile time.
#[doc(hidden)]
#[macro_export]
macro_rules! element_type {
    ({} $($row:ident: $ty:ty = $name:literal $kind:ident($($bits:literal),+)
        $code:literal $numpy:literal $dlpack:literal $tma:literal $cublas:literal
        $(, $sum:ty => [$($c:ty),+])*;)+) => {$(
        // SAFETY: the assertions below.
        unsafe impl $crate::types::Typed for $ty {
            const NAME: &'static str = $name;
            const FORMAT: $crate::types::NumberFormat = $crate::types::NumberFormat::$kind($($bits),+);
            const ROW: $crate::types::Row = $crate::types::Row {
                name: $name,
                id: || core::any::TypeId::of::<$ty>(),
                format: <$ty as $crate::types::Typed>::FORMAT,
                numpy_code: $code,
                numpy: $numpy,
                dlpack: $dlpack,
                tma: $tma,
                cublas: $cublas,
                sums: &[$(<$sum as $crate::types::Typed>::FORMAT),*],
                c: &[$($(<$c as $crate::types::Typed>::NAME,)+)*],
            };
        }

        const _: () = {
            let bytes = size_of::<$ty>();
            assert!(8 * bytes == $crate::types::NumberFormat::$kind($($bits),+).bits() as usize);
            assert!($crate::types::tma_bytes($tma) == bytes, "TMA copies elements of this size");
        };

        $($(impl $crate::types::MultipliesTo<$c> for $ty {
            type Sums = $sum;
        })+)*
    )+};
}

/// [`Type`]'s constants, and the list of all.
#[doc(hidden)]
#[macro_export]
macro_rules! type_constants {
    ({} $($row:ident: $ty:ty = $name:literal $kind:ident $bits:tt
        $code:literal $numpy:literal $dlpack:literal $tma:literal $cublas:literal
        $(, $sum:ty => $c:tt)*;)+) => {
        impl Type {
            $(
                #[doc = concat!("`", $numpy, "`")]
                pub const $row: Type = <$ty as Typed>::TYPE;
            )+

            /// All of the table.
            pub const ALL: &[Type] = &[$(Type::$row),+];
        }
    };
}

/// Implements [`Element`] for the table's own rows.
macro_rules! elements {
    ({} $($row:ident: $ty:ty = $name:literal $kind:ident $bits:tt
        $code:literal $numpy:literal $dlpack:literal $tma:literal $cublas:literal
        $(, $sum:ty => $c:tt)*;)+) => {$(
        // SAFETY: a row of the table is of a plain number.
        unsafe impl Element for $ty {}
    )+};
}

element_types! { [elements] {} }
element_types! { [crate::element_type] {} }
element_types! { [crate::type_constants] {} }

/// The dispatch from types at run time to types at compile time. `Some` of the expression, in which
/// the two names are the types of A and B, and of C; or `None` if no such product is in the table.
///
/// ```
/// use simt::{types::Type, with_types};
///
/// let sizes = |types| with_types!(types, |T, C| [size_of::<T>(), size_of::<C>()]);
/// assert_eq!(sizes((Type::BF16, Type::F32)), Some([2, 4]));
/// assert_eq!(sizes((Type::F32, Type::BF16)), None);
/// ```
#[macro_export]
macro_rules! with_types {
    ($types:expr, |$t:ident, $c:ident| $body:expr) => {
        $crate::element_types! { [$crate::products_with_types] { ($types) $t $c ($body) } }
    };
}

/// [`with_types!`] for floating-point numbers of 16 bits and more alone.
///
/// ```
/// use simt::{types::Type, with_float_types};
///
/// let size = |of| with_float_types!((of, of), |T, C| size_of::<T>() + size_of::<C>());
/// assert_eq!(size(Type::BF16), Some(4));
/// assert_eq!(size(Type::I8), None);
/// ```
#[macro_export]
macro_rules! with_float_types {
    ($types:expr, |$t:ident, $c:ident| $body:expr) => {
        $crate::element_types! { [$crate::products_of_floats] { ($types) $t $c ($body) } }
    };
}

/// [`with_types!`] with the table.
#[doc(hidden)]
#[macro_export]
macro_rules! products_with_types {
    ({ $types:tt $t:ident $o:ident $body:tt } $($row:ident: $ty:ty = $name:literal $kind:ident $bits:tt
        $code:literal $numpy:literal $dlpack:literal $tma:literal $cublas:literal
        $(, $sum:ty => $c:tt)*;)+) => {{
        let given: ($crate::types::Type, $crate::types::Type) = $types;
        'found: {
            $($($crate::product_of! { float given 'found $t $o $body $ty, $sum, $c })*)+
            None
        }
    }};
}

/// [`with_float_types!`] with the table.
#[doc(hidden)]
#[macro_export]
macro_rules! products_of_floats {
    ({ $types:tt $t:ident $o:ident $body:tt } $($row:ident: $ty:ty = $name:literal $kind:ident $bits:tt
        $code:literal $numpy:literal $dlpack:literal $tma:literal $cublas:literal
        $(, $sum:ty => $c:tt)*;)+) => {{
        let given: ($crate::types::Type, $crate::types::Type) = $types;
        'found: {
            $($($crate::product_of! { $kind given 'found $t $o $body $ty, $sum, $c })*)+
            None
        }
    }};
}

/// The expression with the types of a row's products, if these are given. Of a row that is of no
/// floating-point numbers, or of 8 bits, nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! product_of {
    (float $given:ident $found:lifetime $t:ident $o:ident $body:tt $ty:ty, $sum:ty, [$($c:ty),+]) => {$(
        if $given == ($crate::types::Type::of::<$ty>(), $crate::types::Type::of::<$c>()) {
            #[allow(dead_code, reason = "an expression may name one of them")]
            type $t = $ty;
            #[allow(dead_code, reason = "as above")]
            type $o = $c;
            break $found Some($body);
        }
    )+};
    ($kind:ident $($rest:tt)*) => {};
}

/// A row of the table.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub id: fn() -> TypeId,
    pub format: NumberFormat,
    pub numpy_code: &'static str,
    pub numpy: &'static str,
    pub dlpack: u8,
    pub tma: u32,
    pub cublas: i32,
    /// One, if products are computed, and what it may be converted to.
    pub sums: &'static [NumberFormat],
    /// Names.
    pub c: &'static [&'static str],
}

/// A type with a row.
///
/// # Safety
/// 1. The row's number format has as many bytes as the type, and so has what TMA copies.
pub unsafe trait Typed: Element {
    /// The name.
    const NAME: &'static str;
    /// The number format.
    const FORMAT: NumberFormat;
    #[doc(hidden)]
    const ROW: Row;
    /// The type at run time.
    const TYPE: Type = Type(&Self::ROW);
}

/// A type of A and B that products with a C of type `C` are computed of.
pub trait MultipliesTo<C: Typed>: Typed {
    /// The type that their sums are finished in.
    type Sums: Typed;
}

/// An element type.
#[derive(Clone, Copy)]
pub struct Type(&'static Row);

impl Type {
    /// A type's.
    pub const fn of<T: Typed>() -> Self {
        T::TYPE
    }

    /// That of a Rust type, if it is in the table.
    pub fn of_id(id: TypeId) -> Option<Self> {
        Type::ALL.iter().copied().find(|of| (of.0.id)() == id)
    }

    /// The type of the table with that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Type::ALL.iter().copied().find(|of| of.name() == name)
    }

    /// The name, as in a kernel's name.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// The number format.
    pub const fn format(self) -> NumberFormat {
        self.0.format
    }

    /// Bytes of an element.
    pub const fn bytes(self) -> usize {
        self.0.format.bits() as usize / 8
    }

    /// NumPy's code, without a byte order: `f4`.
    pub const fn numpy_code(self) -> &'static str {
        self.0.numpy_code
    }

    /// NumPy's name: `float32`.
    pub const fn numpy(self) -> &'static str {
        self.0.numpy
    }

    /// DLPack's code. It has the bits besides.
    pub const fn dlpack(self) -> u8 {
        self.0.dlpack
    }

    /// The driver's number for TMA.
    pub const fn tma(self) -> u32 {
        self.0.tma
    }

    /// The number of cuBLAS's `cudaDataType`.
    pub const fn cublas(self) -> i32 {
        self.0.cublas
    }

    /// The number format of the sums, if products are computed.
    pub const fn sums(self) -> Option<NumberFormat> {
        match self.0.sums {
            [sums, ..] => Some(*sums),
            _ => None,
        }
    }

    /// The number format that sums are finished in, and of the scalars, for that type of C. Sums
    /// of integers are converted for a C of floating-point numbers.
    pub fn sums_for(self, c: Type) -> Option<NumberFormat> {
        let is_float = c.format().is_float();
        self.0.sums.iter().copied().find(|sums| sums.is_float() == is_float)
    }

    /// All of which products are computed.
    pub fn multiplied() -> impl Iterator<Item = Type> {
        Type::ALL.iter().copied().filter(|of| of.sums().is_some())
    }

    /// The type of C, unless another one is asked for: its own, if there is such a product,
    /// otherwise that of the sums.
    pub fn usual_c(self) -> Type {
        let first = self.0.c.first().and_then(|c| Type::of_name(c));
        first.filter(|_| !self.multiplies_to(self)).unwrap_or(self)
    }

    /// Whether products with a C of that type are computed.
    pub fn multiplies_to(self, c: Type) -> bool {
        self.0.c.contains(&c.name())
    }

    /// The types of A and B, and of C, of all products that are computed of the table's types.
    pub fn products() -> impl Iterator<Item = (Type, Type)> {
        let with_c = |of: Type| of.0.c.iter().filter_map(move |c| Some((of, Type::of_name(c)?)));
        Type::multiplied().flat_map(with_c)
    }
}

// Not derived: few comparisons need more than the address.
impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
            || self.0.name == other.0.name && self.0.format == other.0.format
    }
}

impl Eq for Type {}

impl Hash for Type {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Bytes of an element that TMA copies by that number.
#[doc(hidden)]
pub const fn tma_bytes(number: u32) -> usize {
    match number {
        0 => 1,
        1 | 6 | 9 => 2,
        2 | 3 | 7 => 4,
        4 | 5 | 8 => 8,
        _ => 0,
    }
}
