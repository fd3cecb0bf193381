//! General products: a [`Case`] describes a product and its places, [`Suite`] runs it with every
//! kernel on every device between guard bands, and [`Want`] is the right result.

mod bench;
mod case;
mod launch;
mod number;
mod operand;
mod suite;
mod table;
mod want;

pub use bench::Bench;
pub use case::{Case, Side};
pub use launch::{portable, watched};
pub use number::{Data, INFINITY, NAN, Number, Random, bytes};
pub use operand::{Operand, Order, Place};
pub use suite::Suite;
pub use table::{TABLE, cases, counted, each_device};
pub use want::{Want, activated, is_smooth, own_error, same_bits};
